//! Lines as a terminal table, JSON, CSV and Markdown.

use plimsoll_report::chart::Format as Number;
use plimsoll_report::table::{Column, Grid, Row, TableCell, csv_line, dim, escape_markdown, sentence};
use plimsoll_report::{Format, TableStyle, figures};
use plimsoll_text::{printable, printable_json};
use serde::Serialize;

use crate::lines::{AtLoad, LineVariant, Lines};
use crate::search::{Found, SearchState};

#[derive(Serialize)]
struct WithWords<'a> {
    #[serde(flatten)]
    lines: &'a Lines,
    sentences: Vec<String>,
}

impl Lines {
    /// Renders the lines in one of the forms.
    pub fn render(&self, format: Format, style: &TableStyle) -> String {
        match format {
            Format::Table => self.terminal(style),
            Format::Json => {
                let whole = WithWords { lines: self, sentences: self.sentences() };
                let text = serde_json::to_string_pretty(&whole).expect("lines have text keys only");
                format!("{}\n", printable_json(&text))
            }
            Format::Csv => self.csv(),
            Format::Md => {
                let sentences = self.sentences();
                let mut items: Vec<String> =
                    sentences.iter().map(|one| format!("* {}\n", escape_markdown(one))).collect();
                let warnings = self.warnings.iter().cloned().chain(self.said());
                items.extend(warnings.map(|one| format!("* **Warning:** {}\n", escape_markdown(&one))));
                format!("{}\n{}\n\n{}", self.grid().to_markdown(), self.interval_note(), items.concat())
            }
        }
    }

    fn terminal(&self, style: &TableStyle) -> String {
        let table = self.grid().to_terminal(style);
        let sentences: String = self.sentences().iter().map(|text| sentence(text, style)).collect();
        let warning = |text: String| format!("{}\n", style.prose(&format!("warning: {}", printable(&text))));
        let warnings: String = self.said().into_iter().map(warning).collect();
        format!("{table}\n{}\n\n{sentences}{warnings}", dim(&style.prose(self.interval_note()), style))
    }

    /// Makes the table with one row a variant.
    pub fn grid(&self) -> Grid {
        let column = Column::new;
        let plain = |value: String| TableCell::plain(value);
        let schemes = self.schemes();
        let (of, value) = if self.over.is_load() { ("the line", "load") } else { ("the knee", "value") };
        let at = self.at.map_or_else(String::new, |at| self.over.shown(at));
        let is_shown = |column: &Column| {
            // Where there is one objective, the title has it; a key without a value of today's has nothing beside it.
            let is_known = column.name == "objective" && self.slos.len() == 1;
            let is_missing = column.group == "today" && self.at.is_none();
            !is_known && !is_missing
        };
        let columns = [
            column(of, value),
            column(of, "95 % interval"),
            column("today", &format!("at {at}")),
            column("today", "headroom"),
            column("bottleneck", "component"),
            column("bottleneck", "objective"),
            column("", "runs"),
        ];
        let shown: Vec<bool> = columns.iter().map(is_shown).collect();
        let rows = self.variants.iter().enumerate().map(|(number, variant)| {
            let line = &variant.line;
            let load = match line.load() {
                Some(load) => self.over.shown(load),
                None if line.found() == Found::Line => "undecided".to_owned(),
                None => self.found_word(line.found()).to_owned(),
            };
            let binding = line.binding().and_then(|slo| self.slos.get(slo));
            let runs: usize = variant.loads.iter().map(|at| at.runs).sum();
            let cells = [
                TableCell { best: self.is_best(number), ..plain(load) },
                plain(self.interval(line)),
                plain(state_word(variant.today).to_owned()),
                plain(variant.headroom.map_or_else(String::new, |h| format!("{}x", figures::number(h)))),
                plain(part_word(variant)),
                plain(binding.map_or_else(String::new, |slo| slo.text.clone())),
                plain(figures::count(runs as u64)),
            ];
            Row {
                label: variant.name.clone(),
                scheme: schemes.find(&variant.name),
                cells: cells
                    .into_iter()
                    .zip(&shown)
                    .filter(|(_, shown)| **shown)
                    .map(|(cell, _)| cell)
                    .collect(),
            }
        });
        let rows: Vec<Row> = rows.collect();
        let columns = columns.into_iter().zip(&shown).filter(|(_, shown)| **shown).map(|(column, _)| column);
        let what = if self.over.is_load() { "Load line" } else { "Knee" };
        let title = format!("{what} of {} for {}", self.over.key, self.objectives());
        Grid { title, corner: "variant".to_owned(), rows, columns: columns.collect(), notes: Vec::new() }
    }

    /// Returns the explanation of the ends of an interval.
    pub(crate) fn interval_note(&self) -> &'static str {
        if self.over.is_load() { INTERVAL } else { INTERVAL_OF_KEY }
    }

    /// Returns the word for a kind of result.
    fn found_word(&self, found: Found) -> &'static str {
        match found {
            Found::Never if !self.over.is_load() => "violated at both ends",
            Found::Always if !self.over.is_load() => "met at both ends",
            found => found_word(found),
        }
    }

    /// Whether the interval of a variant's line lies above the intervals of all others.
    fn is_best(&self, number: usize) -> bool {
        let least = |variant: &LineVariant| match variant.line.found() {
            Found::Always => Some(f64::INFINITY),
            Found::Never | Found::Undecided | Found::Line => variant.line.low(),
        };
        let most = |variant: &LineVariant| match variant.line.found() {
            Found::Never => Some(0.0),
            Found::Always | Found::Undecided | Found::Line => variant.line.high(),
        };
        let Some(least) = least(&self.variants[number]) else { return false };
        let mut others = self.variants.iter().enumerate().filter(|(other, _)| *other != number);
        // Of another key than a load, more is not better.
        self.over.is_load()
            && self.variants.len() > 1
            && others.all(|(_, other)| most(other).is_some_and(|most| most < least))
    }

    /// Makes the table of every load that was run: one row a load.
    pub fn loads_grid(&self, slo: usize) -> Grid {
        let schemes = self.schemes();
        let columns = self.variants.iter().flat_map(|variant| {
            let scheme = schemes.find(&variant.name);
            ["measured", "verdict", "runs"].map(|name| Column { scheme, ..Column::new(&variant.name, name) })
        });
        let mut loads: Vec<f64> =
            self.variants.iter().flat_map(|v| v.loads.iter().map(|at| at.load)).collect();
        loads.sort_unstable_by(f64::total_cmp);
        loads.dedup();
        let rows = loads.iter().map(|&load| {
            let cells = self.variants.iter().flat_map(|variant| {
                let at = variant.loads.iter().find(|at| at.load == load);
                let (value, spread) = at.map_or_else(Default::default, |at| self.measured(at, slo));
                let verdict = at.map_or("", |at| state_word(at.state));
                [
                    TableCell { value, spread, best: false },
                    TableCell::plain(verdict),
                    TableCell::plain(at.map_or_else(String::new, |at| at.runs.to_string())),
                ]
            });
            Row { label: self.over.shown(load), cells: cells.collect(), ..Row::default() }
        });
        Grid {
            title: self.slos[slo].text.clone(),
            corner: if self.over.is_load() { "load" } else { "value" }.to_owned(),
            rows: rows.collect(),
            columns: columns.collect(),
            notes: Vec::new(),
        }
    }

    /// Writes a number with its unit, and its interval.
    fn measured(&self, at: &AtLoad, slo: usize) -> (String, String) {
        let written = |value: f64| match self.slos[slo].format() {
            Number::Rate => figures::rate(value),
            Number::Percent => format!("{} %", figures::number(value * 100.0)),
            Number::Time => figures::time(value),
            _ => figures::number(value),
        };
        let Some(estimate) = at.metrics[slo] else { return Default::default() };
        let spread = estimate.interval.map_or_else(String::new, |interval| {
            format!("({} .. {})", written(interval.low), written(interval.high))
        });
        (written(estimate.value), spread)
    }

    /// Writes one number a row: `variant,load,objective,metric,value,low,high,runs,warnings`. The line has no load
    /// of its own there; it is the value.
    fn csv(&self) -> String {
        let head = ["variant", "load", "objective", "metric", "value", "low", "high", "runs", "warnings"];
        let mut out = csv_line(&head.map(str::to_owned));
        let number = |value: Option<f64>| value.map_or_else(String::new, |value| format!("{value:?}"));
        for variant in &self.variants {
            let line = &variant.line;
            let runs: usize = variant.loads.iter().map(|at| at.runs).sum();
            out.push_str(&csv_line(&[
                variant.name.clone(),
                String::new(),
                self.objectives(),
                found_word(line.found()).to_owned(),
                number(line.load()),
                number(line.low()),
                number(line.high()),
                runs.to_string(),
                String::new(),
            ]));
            for at in &variant.loads {
                for (slo, metric) in self.slos.iter().zip(&at.metrics) {
                    let interval = metric.and_then(|metric| metric.interval);
                    out.push_str(&csv_line(&[
                        variant.name.clone(),
                        format!("{:?}", at.load),
                        slo.text.clone(),
                        slo.subject().to_owned(),
                        number(metric.map(|metric| metric.value)),
                        number(interval.map(|interval| interval.low)),
                        number(interval.map(|interval| interval.high)),
                        at.runs.to_string(),
                        at.warnings.join("; "),
                    ]));
                }
            }
        }
        out
    }
}

const INTERVAL: &str =
    "95 % interval: from the highest load that meets every objective to the lowest that violates one.";

const INTERVAL_OF_KEY: &str = "95 % interval: between the nearest two values of which one meets every objective and \
                               the other violates one.";

fn found_word(found: Found) -> &'static str {
    match found {
        Found::Line => "line",
        Found::Never => "never",
        Found::Undecided => "undecided",
        Found::Always => "always",
    }
}

pub(crate) fn state_word(state: SearchState) -> &'static str {
    match state {
        SearchState::Keeps => "met",
        SearchState::Sinks => "violated",
        SearchState::Open | SearchState::Running => "too near",
    }
}

fn part_word(variant: &LineVariant) -> String {
    match (&variant.undrained, &variant.part) {
        (Some(workload), _) => format!("{workload} piles up"),
        (None, Some(part)) => {
            let name = part.name.strip_prefix("the ").unwrap_or(&part.name);
            format!("{name} ({:.0} %)", part.share * 100.0)
        }
        (None, None) => String::new(),
    }
}
