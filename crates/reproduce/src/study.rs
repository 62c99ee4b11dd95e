//! [`Study`]: the reproduction of one paper, from its folder under `studies/`.

use std::path::Path;
use std::sync::Arc;

use plimsoll_results::outcome::Outcome;
use plimsoll_servers::Parameters;
use plimsoll_units::Span;
use serde::Deserialize;

pub use plimsoll_servers::{Measured, Task};

use crate::claim::Claims;
use crate::derived::DerivedFigure;
use crate::error::ReproduceError;
use crate::exact::ExactRun;
use crate::metric::FigureMetric;
use crate::ns2::{PairArrivals, RoundRobinTransfers};
use crate::published::Published;
use crate::row::StudyRow;
use crate::row_filter::RowFilter;
use crate::sources::Source;

/// Computes rows of a finished run beyond its figure's metrics.
pub(crate) type RunRows = fn(&Study, &FinishedRun<'_>) -> Vec<StudyRow>;
/// Computes rows whose value theory or raw data settle, with the scenarios in a folder.
pub(crate) type Exact = fn(&Study, seed: u64, folder: &Path) -> Result<Vec<StudyRow>, ReproduceError>;
/// Computes rows from all others.
pub(crate) type SummaryRows = fn(&Study, &[StudyRow]) -> Vec<StudyRow>;
/// Makes the task that measures a point of a figure; `None` where a series does not have the point.
pub type MakePointTask = Arc<dyn Fn(&Point<'_>) -> Option<Arc<dyn Task>> + Send + Sync>;

/// Functions of a kind, each with the name that a study file has for it.
pub(crate) type NamedFunctions<F> = &'static [(&'static str, F)];

/// A paper's evaluation: its figures, its published values, and the known reasons for differences.
#[derive(Debug)]
pub struct Study {
    /// The name of its folder, of its page and of the folder of its figures.
    pub id: String,
    /// The words that ask for it on the command line, after `plimsoll reproduce`.
    pub command: String,
    /// Its subject, for the command's help; none where another study of the same word has it.
    pub about: Option<String>,
    /// The base that is held to the published values, and the one printed beside it.
    pub bases: [Base; 2],
    /// The publications that it reproduces and builds on.
    pub sources: StudySources,
    /// The name and text of every scenario file, so that the program needs none of them beside it.
    pub scenarios: &'static [(&'static str, &'static str)],
    /// The figures and tables that are reproduced, in the order of the study's file.
    pub figures: Vec<StudyFigure>,
    /// The published values, from the study's `published.csv`.
    pub published: Published,
    /// Computes rows of a run beyond its figure's metrics.
    pub(crate) run_rows: Option<RunRows>,
    /// Computes the rows whose value theory or raw data settle exactly.
    pub(crate) exact: Option<Exact>,
    /// The short runs whose numbers theory settles, after those rows.
    pub(crate) exact_runs: Vec<ExactRun>,
    /// The rows that its file computes from all others.
    pub(crate) claims: Vec<Claims>,
    /// Computes rows from all others, before the claims.
    pub(crate) summary: Option<SummaryRows>,
    /// The figures whose schemes are not compared.
    pub unordered: Vec<String>,
    /// The number of seeds beside the first with which an experiment that is off is run.
    pub other_seeds: u64,
    /// The tables that are no figure of the study.
    pub tables: Vec<PageTable>,
    /// Whether rows have the value of an original paper that the study repeats.
    pub has_original: bool,
    /// The rows whose published value was given to a model or is a formula's.
    pub inputs: Vec<RowFilter>,
    /// The rows beside a published value that another figure reproduces: it counts there.
    pub repeats: Vec<RowFilter>,
    /// The rows of mechanisms that are not built: their published values are open, whatever bound is beside them.
    pub not_built: Vec<RowFilter>,
    /// The rows whose bound or tolerance is ours: the paper says it in words only.
    pub bounds_of_ours: Vec<RowFilter>,
    /// The deviations from published values whose cause an experiment of the page shows.
    pub explanations: Vec<Explanation>,
    /// The deviations whose cause is not known, with the experiments that were tried.
    pub open: Vec<Explanation>,
    /// The page's title and the study's subject.
    pub head: String,
    /// The section before the figures, which says how to read the page.
    pub reading: String,
    /// The section of the page after the explanations (`closing.md`).
    pub closing: String,
    /// The section about pairs of schemes in the other order.
    pub orderings: String,
}

/// The publications behind a study, from `studies/sources.toml`.
#[derive(Clone, Debug)]
pub struct StudySources {
    /// The publication whose evaluation is reproduced.
    pub of: &'static Source,
    /// The part of it that is reproduced, if not all.
    pub part: Option<String>,
    /// The papers that describe the evaluated system.
    pub papers: Vec<&'static Source>,
}

/// A table of the page beside the figures of the study.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageTable {
    /// The name of the figure in the table's rows.
    pub figure: String,
    /// The heading above it.
    pub title: String,
}

/// The settings that an experiment runs with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Base {
    /// The settings of the study's own scripts.
    Source,
    /// The settings of the RFCs and of the paper.
    Standard,
    /// The runs are on this machine's kernel: between network namespaces, or real servers.
    Kernel,
    /// The same runs are simulated.
    Simulated,
}

/// A figure or table of the study.
#[derive(Clone, Debug)]
pub struct StudyFigure {
    /// The name of the figure in rows, options and file names: `fig2b`.
    pub id: String,
    /// The heading above it.
    pub title: String,
    /// The work of each point: a scenario, a task, or none.
    pub runs: Runs,
    /// The parameters of its task.
    pub(crate) parameters: Parameters,
    /// How the model of the machine runs its points, if it does.
    pub(crate) model: Option<Parameters>,
    /// The bases with which its points are run.
    pub bases: Vec<Base>,
    /// The label of the x axis.
    pub axis: String,
    /// Whether the y axis is logarithmic however little the values span.
    pub log: bool,
    /// The points on the x axis, each with the settings that it adds.
    pub cases: Vec<Case>,
    /// The points of a quick look; if empty, the first, a middle and the last.
    pub quick: Vec<String>,
    /// Whether the standard base has the points and the length of a quick look also in a full run.
    pub standard_is_quick: bool,
    /// The schemes, as variants of the scenario.
    pub series: Vec<String>,
    /// The metrics measured in the outcome of a scenario; a task names its own.
    pub metrics: Vec<FigureMetric>,
    /// The metrics measured in the same outcome whose rows have another x.
    pub also: Vec<(String, Vec<FigureMetric>)>,
    /// The figure in whose runs `also` is measured; `None` for the figure's own.
    pub of: Option<String>,
    /// What the figure shows of another figure's runs, if it does.
    pub shows: Option<DerivedFigure>,
    /// The metrics that are worth a picture.
    pub drawn: Vec<String>,
    /// The factors within which rows count as reproduced: the first that fits a row holds.
    pub tolerance: Vec<Tolerance>,
}

/// The factor within which rows count as reproduced.
#[derive(Clone, Debug)]
pub struct Tolerance {
    /// The rows to which the tolerance applies.
    pub rows: RowFilter,
    /// The largest published value that it is for.
    pub up_to: Option<f64>,
    /// The factor, either way; `None` if the rows are held to nothing.
    pub factor: Option<f64>,
}

/// The work of each point of a figure.
#[derive(Clone)]
pub enum Runs {
    /// It runs a network: a scenario, one of the study's files, with the series as its variant.
    Scenario(String),
    /// It runs a task, which the registry has by a name.
    Task(MakePointTask),
    /// It runs nothing: its rows are made of other figures' runs.
    Nothing,
}

impl std::fmt::Debug for Runs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Runs::Scenario(name) => write!(f, "Scenario({name})"),
            Runs::Task(_) => f.write_str("Task"),
            Runs::Nothing => f.write_str("Nothing"),
        }
    }
}

/// A point of a figure, with all that its task may depend on.
#[derive(Clone, Copy, Debug)]
pub struct Point<'a> {
    /// The value on the figure's x axis.
    pub x: &'a str,
    /// The scheme that the point is of.
    pub series: &'static str,
    /// The set of settings with which the point is run.
    pub base: Base,
    /// Whether it is as short as a quick look has it.
    pub quick: bool,
    /// The seed of the run's random numbers.
    pub seed: u64,
    /// The folder of the servers' programs, for studies that run real servers.
    pub servers: &'a Path,
    /// Finds a study by the name of its folder.
    pub study: fn(&str) -> Option<&'static Study>,
}

/// A point on a figure's x axis.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// The value on the x axis, as rows have it.
    pub x: String,
    /// The settings of the point, each in the form of `--set KEY=VALUE`.
    pub set: Vec<String>,
    /// The further settings of a quick look.
    pub quick_set: Vec<String>,
    /// What is added to the seed of the page's runs.
    pub seed: u64,
    /// The time that the study cut from the beginning.
    pub warmup: Span,
    /// How long the workloads run in the whole figure, and in a quick look.
    pub duration: Option<(Span, Span)>,
    /// How many flows there are in the whole figure, and in a quick look, where the rows say so.
    pub flows: Option<(u64, u64)>,
    /// The flows of the study, recomputed, in place of the workload `flows`; without it the scenario's own, in the
    /// number that `flows` has.
    pub arrivals: Option<PairArrivals>,
    /// Where the workload `background` has the transfers of the study, recomputed.
    pub transfers: Option<RoundRobinTransfers>,
}

/// A deviation from published values: the rows, and the text that explains it or lists the tried experiments.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Explanation {
    /// Its short name, the heading on the page.
    pub title: String,
    /// The rows that it explains: any that fit one of these filters.
    pub rows: Vec<RowFilter>,
    /// The smallest and the largest ratio to the published number that the mechanism accounts for (the number itself
    /// where none is published): the range that was seen here, and somewhat more. A row beyond is not explained.
    pub reach: (f64, f64),
    /// The mechanism, and the run that shows it.
    pub text: String,
}

/// A finished run of a figure's point.
pub(crate) struct FinishedRun<'a> {
    pub(crate) figure: &'a StudyFigure,
    pub(crate) case: &'a Case,
    pub(crate) series: &'a str,
    pub(crate) base: Base,
    pub(crate) outcome: &'a Outcome,
}

impl Explanation {
    /// Returns whether a row is one that it explains, and within its reach.
    pub fn accounts_for(&self, row: &StudyRow) -> bool {
        self.rows.iter().any(|rows| rows.has(row)) && (self.reach.0..=self.reach.1).contains(&row.deviation())
    }
}

impl Study {
    /// Returns the text of the scenario `file` with the settings of `base`: of `NAME-BASE.toml` instead of `NAME.toml`
    /// if there is one, else of the file with an include of `source.toml` turned into one of `BASE.toml`.
    pub(crate) fn text(&self, file: &str, base: Base) -> String {
        let find =
            |name: &str| self.scenarios.iter().find(|(known, _)| *known == name).map(|(_, text)| *text);
        let own = find(&file.replace(".toml", &format!("-{}.toml", base.name())));
        let include = |base: &str| format!("include = \"{base}.toml\"");
        own.map(str::to_owned).unwrap_or_else(|| {
            let text = find(file).expect("a study names files of its folder, which loading has checked");
            text.replace(&include(Base::Source.name()), &include(base.name()))
        })
    }

    /// Returns the figure of that name.
    pub(crate) fn figure(&self, id: &str) -> Option<&StudyFigure> {
        self.figures.iter().find(|figure| figure.id == id)
    }

    /// Returns the explanation of a row, if there is one.
    pub fn explanation(&self, row: &StudyRow) -> Option<&Explanation> {
        self.explanations.iter().find(|explanation| explanation.accounts_for(row))
    }

    /// Returns the open question that a row belongs to, if it does.
    pub fn open_question(&self, row: &StudyRow) -> Option<&Explanation> {
        self.open.iter().find(|open| open.accounts_for(row))
    }

    /// Returns whether a row is judged by a bound of ours.
    pub fn is_bound_of_ours(&self, row: &StudyRow) -> bool {
        row.state.is_some() && self.bounds_of_ours.iter().any(|rows| rows.has(row))
    }

    /// Returns whether its measured runs go by the wall's clock.
    pub fn is_live(&self) -> bool {
        self.bases[0].is_live()
    }

    /// Returns the rows of a run that are beyond its figure's metrics.
    pub(crate) fn further_rows(&self, run: &FinishedRun<'_>) -> Vec<StudyRow> {
        let mut rows = Vec::new();
        for figure in &self.figures {
            rows.extend(figure.rows_also_of(run));
            let shown = figure.shows.iter().filter(|shown| shown.of() == run.figure.id);
            rows.extend(
                shown.flat_map(|shown| shown.rows(&figure.id, run.base.name(), run.series, run.outcome)),
            );
        }
        rows.extend(self.run_rows.iter().flat_map(|of| of(self, run)));
        rows
    }

    /// Writes the shipped scenarios to a temporary folder, where they find included files.
    pub(crate) fn laid_out(&self) -> std::io::Result<tempfile::TempDir> {
        let folder = tempfile::tempdir()?;
        for (name, text) in self.scenarios {
            std::fs::write(folder.path().join(name), text)?;
        }
        Ok(folder)
    }
}

impl Case {
    /// Returns how many flows there are in a quick look or else in the whole figure, where the rows say so.
    pub(crate) fn flows(&self, quick: bool) -> Option<u64> {
        self.flows.map(|(full, few)| if quick { few } else { full })
    }
}

impl Base {
    /// Returns the name in rows and files.
    pub fn name(self) -> &'static str {
        match self {
            Base::Source => "source",
            Base::Standard => "standard",
            Base::Kernel => "kernel",
            Base::Simulated => "simulated",
        }
    }

    /// Returns whether its runs go by the wall's clock.
    pub fn is_live(self) -> bool {
        self == Base::Kernel
    }
}

impl StudyFigure {
    /// Returns whether a row of this figure comes from a run of a figure with a scheme, beside the rows of that run's
    /// own point.
    pub(crate) fn is_also_of(&self, figure: &str, series: &str, row: &StudyRow) -> bool {
        let also = self.of.as_ref().unwrap_or(&self.id) == figure
            && row.series == series
            && self.also.iter().any(|(x, _)| *x == row.x);
        let is_shown = self
            .shows
            .as_ref()
            .is_some_and(|shown| shown.of() == figure && shown.series().get(series) == Some(&row.series));
        self.id == row.figure && (also || is_shown)
    }

    /// Returns the rows that `also` measures in a run.
    fn rows_also_of(&self, run: &FinishedRun<'_>) -> Vec<StudyRow> {
        let is_of = self.of.as_ref().unwrap_or(&self.id) == &run.figure.id
            && self.series.iter().any(|series| series == run.series);
        let also = self.also.iter().filter(|_| is_of);
        let metrics = also.flat_map(|(x, metrics)| metrics.iter().map(move |metric| (x, metric)));
        let row = |(x, metric): (&String, &FigureMetric)| {
            let mut row = StudyRow::new(&self.id, run.base.name(), run.series, x, &metric.name, &metric.unit);
            row.set_measured(&metric.measure(run.outcome, Span::ZERO)?);
            Some(row)
        };
        metrics.filter_map(row).collect()
    }

    /// Returns the first of the servers that take turns with the one of that name.
    pub(crate) fn first_of(&self, series: &str) -> Option<&str> {
        let groups =
            self.parameters.with.get("groups")?.as_array()?.iter().filter_map(|group| group.as_array());
        let has = |group: &&Vec<toml::Value>| group.iter().any(|name| name.as_str() == Some(series));
        groups.into_iter().find(has)?.first()?.as_str()
    }

    /// Returns whether a quick look has the point.
    pub(crate) fn is_in_quick(&self, case: usize) -> bool {
        if !self.quick.is_empty() {
            return self.quick.contains(&self.cases[case].x);
        }
        let last = self.cases.len() - 1;
        case == 0 || case == last || case == last / 2
    }

    /// Returns the factor within which a row with this published value counts as reproduced, or `None`.
    pub(crate) fn tolerance(&self, row: &StudyRow, published: f64) -> Option<f64> {
        let fits = |tolerance: &&Tolerance| {
            tolerance.rows.has(row) && tolerance.up_to.is_none_or(|most| published <= most)
        };
        self.tolerance.iter().find(fits)?.factor
    }
}
