//! `report.html` of a search: the verdict, the knee of every variant, and the loads behind it.

use plimsoll_experiment::slo::Metric;
use plimsoll_report::chart::{Around, Axis, Chart, ChartLine, Color, Format, Schemes, Shape, Stroke};
use plimsoll_report::html::{self, Article, Figure, PageSection};

use crate::lines::Lines;
use crate::over::Unit;

/// The texts of the page beside the lines.
#[derive(Clone, Copy, Debug)]
pub struct PageTexts<'a> {
    /// The description of the experiment; may be empty.
    pub description: &'a str,
    /// The command that repeats the search.
    pub command: &'a str,
    /// The seed of the search.
    pub seed: u64,
    /// The version of plimsoll that made the page.
    pub version: &'a str,
    /// The commit that plimsoll was built from, where known.
    pub commit: Option<&'a str>,
    /// The text of the scenario, which the page includes.
    pub scenario: &'a str,
}

impl Lines {
    /// Assigns the colours and markers of the variants.
    pub(crate) fn schemes(&self) -> Schemes {
        Schemes::of([self.variants.iter().map(|variant| variant.name.as_str())])
    }

    /// Returns the figures of the page: the knee of each objective.
    pub fn figures(&self) -> Vec<Figure> {
        let knee =
            |slo: usize| Figure::new(format!("knee-{slo}"), self.knee(slo), vec![self.loads_grid(slo)]);
        (0..self.slos.len()).map(knee).collect()
    }

    /// Renders `report.html` with its figures and tables.
    pub fn page(&self, about: &PageTexts<'_>) -> String {
        let sections = [
            PageSection {
                id: "knee",
                name: "The knee",
                lead: "Each objective at the values that were run. A variant's line is between those that meet its \
                       limit and those that violate it.",
                figures: self.figures(),
                tables: Vec::new(),
            },
            PageSection {
                id: "numbers",
                name: "Numbers",
                lead: self.interval_note(),
                figures: Vec::new(),
                tables: vec![self.grid()],
            },
        ];
        let warnings: Vec<String> = self.warnings.iter().cloned().chain(self.said()).collect();
        html::article(&Article {
            kind: "Plimsoll line",
            title: &self.title,
            description: about.description,
            found: &self.sentences(),
            warnings: &warnings,
            sections: &sections,
            schemes: &self.schemes(),
            command: about.command,
            seed: Some(about.seed),
            version: about.version,
            commit: about.commit,
            runs: self.variants.iter().flat_map(|variant| &variant.loads).map(|at| at.runs).sum(),
            scenario: about.scenario,
        })
    }

    /// Charts an objective's number against the load: a point with its interval for every load that was run, the limit,
    /// and each variant's line.
    pub fn knee(&self, number: usize) -> Chart {
        let slo = &self.slos[number];
        let format = slo.format();
        let quantity = match slo.metric {
            Metric::Goodput => "goodput",
            Metric::Deadline => "met their deadline",
            _ => slo.subject(),
        };
        let unit = self.over.unit.scale();
        let is_load = self.over.is_load();
        let mut curves = Vec::new();
        let (mut low, mut high) = (slo.limit, slo.limit);
        let (mut left, mut right) = (f64::INFINITY, 0.0f64);
        let schemes = self.schemes();
        for variant in &self.variants {
            // The search tries few loads, which differ between variants, so values between them are not known.
            let mut line = ChartLine {
                apart: true,
                ..ChartLine::new(&variant.name, schemes.color(&variant.name), Vec::new(), Vec::new())
            };
            let mut around = Around { shape: Shape::ErrorBars, low: Vec::new(), high: Vec::new() };
            for at in &variant.loads {
                let Some(estimate) = at.metrics[number] else { continue };
                line.x.push(at.load / unit);
                line.y.push(estimate.value);
                around.low.push(estimate.interval.map(|interval| interval.low));
                around.high.push(estimate.interval.map(|interval| interval.high));
                (left, right) = (left.min(at.load / unit), right.max(at.load / unit));
                (low, high) = (low.min(estimate.value), high.max(estimate.value));
            }
            line.around = Some(around);
            curves.push(line);
        }
        if left > right {
            (left, right) = (self.over.low / unit, self.over.high / unit);
        }
        // Where one is ten times another, only a logarithmic axis shows both.
        let log = |low: f64, high: f64| low > 0.0 && high > 10.0 * low;
        let y_log = slo.metric != Metric::Deadline && log(low, high);
        let bottom = if y_log { low / 1.3 } else { 0.0 };
        let top = if y_log { high * 1.3 } else { 1.05 * high };
        let mut series = curves;
        series.push(dashed(&slo.text, Color::Reference, [left, right], [slo.limit; 2]));
        for variant in &self.variants {
            if let Some(load) = variant.line.load() {
                let what = if is_load { "line" } else { "knee" };
                let name = format!("{what} of {}: {}", variant.name, self.over.shown(load));
                series.push(dashed(&name, schemes.color(&variant.name), [load / unit; 2], [bottom, top]));
            }
        }
        let y = Axis {
            label: quantity.to_owned(),
            format,
            log: y_log,
            min: Some(bottom),
            max: Some(top),
            categories: Vec::new(),
        };
        let x = Axis {
            label: self.over.key.clone(),
            format: match self.over.unit {
                Unit::BitsPerSecond => Format::Rate,
                Unit::Picoseconds => Format::Time,
                Unit::Bytes => Format::Size,
                Unit::Share | Unit::PerSecond | Unit::Packets | Unit::Count => Format::Number,
            },
            log: log(left, right),
            ..Axis::default()
        };
        Chart::lines(
            format!("{} against {}", slo.subject(), if is_load { "the load" } else { &self.over.key }),
            match is_load {
                true => {
                    "The loads that were run, with 95 % intervals. Dashed: the limit, and each variant's line."
                }
                false => {
                    "The values that were run, with 95 % intervals. Dashed: the limit, and each variant's knee."
                }
            },
            x,
            y,
            series,
        )
    }
}

fn dashed(name: &str, color: Color, x: [f64; 2], y: [f64; 2]) -> ChartLine {
    ChartLine { stroke: Stroke::Dashed, ..ChartLine::new(name, color, x.to_vec(), y.to_vec()) }
}
