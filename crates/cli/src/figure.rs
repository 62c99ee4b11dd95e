//! Implements `plimsoll figure`, which writes a figure of a report as a file.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, anyhow, bail};
use plimsoll_experiment::Measure;
use plimsoll_experiment::measure::Unit;
use plimsoll_files::Origin;
use plimsoll_line::{Lines, Slo};
use plimsoll_process::note;
use plimsoll_report::chart::{Chart, Format};
use plimsoll_report::html::{self, Figure};
use plimsoll_report::svg::{self, Size};
use plimsoll_results::curves::{Curves, Detail};
use plimsoll_results::summary::{Cell, Options};
use plimsoll_results::{PointOutcome, Summary};
use plimsoll_scenario::Registry;
use plimsoll_text::spelling::did_you_mean;
use plimsoll_text::{counted, printable, printable_lines};

use crate::memory::{Budget, Work};
use crate::output::{self, Done};
use crate::raster::{self, ImageKind};

/// Write a figure of a run's report as SVG, PNG or PDF.
///
/// Without NAME, the figures that the report has are listed. With --measure, the figure is of any number of the runs
/// over their sweep. Without a file, the SVG goes to stdout. With --all, each figure is a file of a folder, one for
/// each sweep point where it shows one of several.
#[derive(clap::Args)]
pub struct Args {
    /// Run directory of `plimsoll run`, `emulate`, `merge` or `line`.
    run: PathBuf,
    /// Figure, by its name in the list.
    #[arg(group = "drawn")]
    name: Option<String>,
    /// Draw this measure over the sweep, such as `p99(small)` or `slowdown.p99(flows, 0..100KB)`: one line for each
    /// variant, with 95 % confidence intervals.
    #[arg(long, value_name = "MEASURE", group = "drawn")]
    measure: Option<String>,
    /// Sweep point of a figure that shows one of several: the values of the swept keys, such as `0.4`, or the beginning
    /// of them that only one point has. With --measure, the values of the swept keys that are not on the axis.
    #[arg(long, value_name = "POINT", requires = "drawn")]
    at: Option<String>,
    /// View of a figure that has several, as in the list; by default the first.
    #[arg(long, value_name = "VIEW", requires = "drawn")]
    view: Option<String>,
    /// Also draw the limit of an objective, such as `p99(query) < 1ms`, as a dashed line.
    #[arg(long, value_name = "OBJECTIVE", requires = "drawn")]
    slo: Option<String>,
    /// Write the figure as SVG.
    #[arg(long, value_name = "FILE", requires = "drawn")]
    svg: Option<PathBuf>,
    /// Write the figure as PNG, which needs rsvg-convert or Chromium.
    #[arg(long, value_name = "FILE", requires = "drawn")]
    png: Option<PathBuf>,
    /// Write the figure as PDF, which needs rsvg-convert or Chromium.
    #[arg(long, value_name = "FILE", requires = "drawn")]
    pdf: Option<PathBuf>,
    /// Write every figure into this folder, as SVG, in its first view.
    #[arg(long, value_name = "DIR", conflicts_with = "drawn")]
    all: Option<PathBuf>,
    #[command(flatten)]
    budget: Budget,
}

pub fn run(args: &Args, registry: &Registry) -> Done {
    args.budget.watch(Work::Other)?;
    let known = match &args.measure {
        Some(text) => ReportFigures::of_measure(registry, &args.run, text)?,
        None => ReportFigures::read(&args.run, args.name.as_deref())?,
    };
    if let Some(folder) = &args.all {
        return known.write_all(folder);
    }
    let measured = args.measure.is_some().then(|| known.figures[0].id());
    let Some(name) = args.name.as_deref().or(measured) else {
        output::print(&known.list())?;
        return Ok(ExitCode::SUCCESS);
    };
    let chart = view(known.chart(name, args.at.as_deref())?, args.view.as_deref())?;
    let chart = match &args.slo {
        Some(slo) => with_objective(chart, slo, known.subject(name), name)?,
        None => chart,
    };
    let text = drawn(&chart);
    if let Some(file) = &args.svg {
        output::write_whole(file, &text)?;
    }
    for (file, kind) in [(&args.png, ImageKind::Png), (&args.pdf, ImageKind::Pdf)] {
        if let Some(file) = file {
            raster::draw(&text, kind, file)?;
        }
    }
    if args.svg.is_none() && args.png.is_none() && args.pdf.is_none() {
        output::print(&text)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Draws a chart as the text of an SVG file.
fn drawn(chart: &Chart) -> String {
    printable_lines(&svg::render(chart, Size::default())).into_owned()
}

/// The figures of a report, and the values of the sweep points that some of them show one by one.
struct ReportFigures {
    figures: Vec<Figure>,
    points: Vec<String>,
}

impl ReportFigures {
    /// Reads a run directory: that of a search has its knees, any other the figures of its points. Points are only read
    /// where `name` needs more than the summary, since that may take long.
    fn read(path: &Path, name: Option<&str>) -> anyhow::Result<ReportFigures> {
        let run = output::open_run(path)?;
        let lines = path.join("lines.json");
        if lines.exists() {
            let text = output::read_text(&lines, Origin::Folder)?;
            let lines: Lines = serde_json::from_str(&text)
                .with_context(|| format!("{} has no lines; run the search again", lines.display()))?;
            let figures = lines.figures().into_iter().zip(&lines.slos);
            let figures = figures.map(|(figure, slo)| figure.showing(slo.subject())).collect();
            return Ok(ReportFigures { figures, points: Vec::new() });
        }
        let known = run.read_summary().ok().map(|summary| ReportFigures::of(&summary, &Curves::default()));
        if let Some(known) = known
            && known.figures.iter().any(|figure| Some(figure.id()) == name)
        {
            return Ok(known);
        }
        let outcomes = output::read_points(&run)?;
        if outcomes.is_empty() {
            bail!("{} has no finished point, so its report has no figures", path.display());
        }
        let curves = Curves::of(&outcomes, Detail::for_runs(outcomes.len()));
        Ok(ReportFigures::of(&Summary::of(&outcomes, &Options::default()), &curves))
    }

    /// Makes the figure of a measure over the sweep of a run directory.
    fn of_measure(registry: &Registry, path: &Path, text: &str) -> anyhow::Result<ReportFigures> {
        let measure = Measure::parse(text).map_err(|error| anyhow!("--measure: {error}"))?;
        let run = output::open_run(path)?;
        if path.join("lines.json").exists() {
            bail!(
                "--measure: {} holds a search of `plimsoll line`, whose runs have no measures",
                path.display()
            );
        }
        let scenario = output::scenario(registry, &run, path)?;
        if let Some(point) = scenario.as_ref().and_then(|scenario| scenario.points().first()) {
            measure.check(text, &point.model).map_err(|error| anyhow!("--measure: {error}"))?;
        }
        let points = output::read_points(&run)?;
        let summary = Summary::of(&points, &Options::default());
        let measured = |cell: &Cell| {
            let is_here =
                |point: &&PointOutcome| point.key.variant == cell.variant && point.key.sweep == cell.sweep;
            let here = points.iter().filter(is_here).map(|point| &point.outcome);
            measure.of_replicates(&here.collect::<Vec<_>>())
        };
        let numbers: Vec<_> = summary.cells.iter().map(|cell| (cell, measured(cell))).collect();
        let value = |variant: &str, sweep: &[(String, String)]| {
            let is_it = |(cell, _): &&(&Cell, _)| cell.variant == variant && cell.sweep == sweep;
            numbers.iter().find(is_it).and_then(|(_, estimate)| *estimate)
        };
        let label = match measure.unit() {
            Unit::Fixed(unit) if measure.format() == Format::Number => format!("{} ({unit})", measure.head()),
            _ => measure.head().to_owned(),
        };
        if numbers.iter().all(|(_, estimate)| estimate.is_none()) {
            bail!("--measure: no finished point of {} has a sample of `{}`", path.display(), measure.text());
        }
        let open =
            points.iter().map(|PointOutcome { outcome, .. }| measure.so_far(outcome, outcome.warmup).len());
        match open.sum::<usize>() as u64 {
            0 => {}
            open => note!("{} did not complete: not in this figure", counted(open, "message")),
        }
        let (figure, points) = html::sweep_figure(&summary, measure.text(), &label, measure.format(), value);
        if points.is_empty() {
            bail!(
                "--measure: {} sweeps no key, so the figure has no axis; `--set` a list of values",
                path.display()
            );
        }
        Ok(ReportFigures { figures: vec![figure], points })
    }

    fn of(summary: &Summary, curves: &Curves) -> ReportFigures {
        let values = |point: &[(String, String)]| {
            let values: Vec<&str> = point.iter().map(|(_, value)| value.as_str()).collect();
            values.join(", ")
        };
        let points = summary.sweep_points().into_iter().map(values).collect();
        ReportFigures { figures: html::figures(summary, curves), points }
    }

    /// Writes one line a figure: its name, its title and its views.
    fn list(&self) -> String {
        let width = self.figures.iter().map(|figure| figure.id().len()).max().unwrap_or(0);
        let line = |figure: &Figure| {
            let chart = figure.charts().first()?;
            let views: Vec<&str> = chart.views().iter().map(|(name, _)| *name).collect();
            let views = if views.len() > 1 { format!(" ({})", views.join(", ")) } else { String::new() };
            let each = if figure.charts().len() > 1 { ", at each sweep point" } else { "" };
            Some(format!("{:<width$}  {}{each}{views}\n", figure.id(), printable(&chart.title)))
        };
        self.figures.iter().filter_map(line).collect()
    }

    /// Writes the first view of each figure into a folder, one file for each sweep point where it shows one of several.
    fn write_all(&self, folder: &Path) -> Done {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let file_names: Vec<String> = self.points.iter().map(|point| file_name(point)).collect();
        let mut count = 0;
        for figure in &self.figures {
            let charts = figure.charts();
            for (number, chart) in charts.iter().enumerate() {
                let name = file_names.get(number).filter(|_| charts.len() == file_names.len());
                let name = name.filter(|name| file_names.iter().filter(|other| other == name).count() == 1);
                let at = match name {
                    _ if charts.len() == 1 => String::new(),
                    Some(name) => format!("-at-{name}"),
                    None => format!("-at-{number}"),
                };
                let file = folder.join(format!("{}{at}.svg", figure.id()));
                output::write_whole(&file, &drawn(&view(chart.clone(), None)?))?;
                count += 1;
            }
        }
        note!("{} in {}", counted(count as u64, "figure"), folder.display());
        Ok(ExitCode::SUCCESS)
    }

    /// Returns the number of the sweep point with these values, or the only one whose values begin so.
    fn point(&self, at: &str) -> anyhow::Result<usize> {
        let begins: Vec<usize> = (0..self.points.len()).filter(|&n| self.points[n].starts_with(at)).collect();
        match (self.points.iter().position(|point| point == at), &begins[..]) {
            (Some(found), _) | (None, &[found]) => Ok(found),
            (None, []) => {
                let (hint, allowed) = (hint(at, &self.points), self.points.join("; "));
                bail!("--at {at}: the run has no such sweep point; {hint}allowed: {allowed}")
            }
            (None, several) => {
                let several: Vec<&str> = several.iter().map(|&number| self.points[number].as_str()).collect();
                bail!("--at {at}: several sweep points begin so; allowed: {}", several.join("; "))
            }
        }
    }

    /// Returns the number of a workload that the figure shows, as an objective names it.
    fn subject(&self, name: &str) -> Option<&str> {
        self.figures.iter().find(|figure| figure.id() == name)?.subject()
    }

    fn chart(&self, name: &str, at: Option<&str>) -> anyhow::Result<Chart> {
        let names: Vec<String> = self.figures.iter().map(|figure| figure.id().to_owned()).collect();
        let found = self.figures.iter().find(|figure| figure.id() == name).ok_or_else(|| {
            anyhow!("the report has no figure `{name}`; {}allowed: {}", hint(name, &names), listed(&names))
        })?;
        let charts = found.charts();
        match (charts, at) {
            ([only], None) => Ok(only.clone()),
            (_, Some(at)) if charts.len() > 1 && charts.len() == self.points.len() => {
                Ok(charts[self.point(at)?].clone())
            }
            (_, Some(_)) => Err(anyhow!("--at: `{name}` is not of one sweep point")),
            _ => Err(anyhow!(
                "`{name}` shows one sweep point at a time; name one with --at: {}",
                self.points.join("; ")
            )),
        }
    }
}

/// Returns the chart in the view of this name, or in its first.
fn view(chart: Chart, name: Option<&str>) -> anyhow::Result<Chart> {
    let views = chart.views();
    let found = match name {
        None => views.first(),
        Some(name) => views.iter().find(|(known, _)| *known == name),
    };
    match (found, name) {
        (Some((_, view)), _) => Ok(view.clone().into_owned()),
        (None, Some(name)) if views.len() > 1 => {
            let names: Vec<String> = views.iter().map(|(name, _)| (*name).to_owned()).collect();
            Err(anyhow!("--view {name}: no such view; {}allowed: {}", hint(name, &names), listed(&names)))
        }
        _ => Err(anyhow!("--view: the figure has only one view")),
    }
}

/// Returns the chart of the figure `name`, which shows `subject`, with the limit of an objective for just that.
fn with_objective(chart: Chart, text: &str, subject: Option<&str>, name: &str) -> anyhow::Result<Chart> {
    let slo = Slo::parse(text).map_err(|error| anyhow!("--slo: {error}"))?;
    let Some(subject) = subject else {
        bail!(
            "--slo: the vertical axis of `{name}` has no number of a workload, so no objective is about it"
        );
    };
    if !slo.text.strip_prefix(subject).is_some_and(|rest| rest.starts_with(' ')) {
        bail!("--slo: `{name}` shows {subject}, not {}", slo.subject());
    }
    let limited = chart.with_limit(&slo.text, slo.limit, slo.format());
    limited.ok_or_else(|| anyhow!("--slo: the vertical axis of `{name}` has another quantity in this view"))
}

/// Writes the values of a sweep point as a part of a file's name: `0.4, 65 packets` is `0.4-65-packets`.
fn file_name(point: &str) -> String {
    let words = point.split(|c: char| !(c.is_ascii_alphanumeric() || "._".contains(c)));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join("-")
}

fn listed(names: &[String]) -> String {
    names.join(", ")
}

fn hint(name: &str, names: &[String]) -> String {
    did_you_mean(name, names.iter().map(String::as_str)).map_or_else(String::new, |hint| hint + " ")
}
