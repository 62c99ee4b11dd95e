//! [`Study`]: what the reproduction of one paper consists of, as plain data and functions.

use std::path::Path;
use std::sync::Arc;

use plimsoll_results::outcome::Outcome;
use plimsoll_results::stats::Estimate;
use plimsoll_units::Span;

use crate::metric::Metric;
use crate::ns2::PairArrivals;
use crate::row::Row;
use crate::run::ReproduceError;

/// A paper's evaluation: its figures, its published values, and what is known about the differences.
#[derive(Debug)]
pub struct Study {
    /// The name of its page and of the folder of its figures.
    pub id: &'static str,
    /// What asks for it on the command line, after `plimsoll reproduce`.
    pub command: &'static str,
    /// The base that is held to the published values, and the one printed beside it.
    pub bases: [Base; 2],
    /// Every scenario file, so that the program needs none of them beside it.
    pub scenarios: &'static [(&'static str, &'static str)],
    /// The text of a figure's scenario with the settings of a base; if none, the file's as it is.
    pub scenario_text: Option<fn(file: &str, base: Base) -> String>,
    /// The figures, in the study's order.
    pub figures: fn() -> Vec<Figure>,
    /// Rows of a run that belong to no figure.
    pub also: fn(&Figure, &Case, series: &str, Base, &Outcome) -> Vec<Row>,
    /// Rows whose value theory or raw data settle exactly, from runs of a second or so; the folder holds
    /// the scenarios.
    pub exact: fn(seed: u64, folder: &Path) -> Result<Vec<Row>, ReproduceError>,
    /// Rows computed from all others.
    pub summary: fn(&[Row]) -> Vec<Row>,
    /// Figures whose schemes are not compared.
    pub unordered: &'static [&'static str],
    /// Seeds beside the first with which an experiment that is off is run.
    pub other_seeds: u64,
    /// The metrics of a figure that are worth a picture.
    pub drawn: fn(figure: &str) -> &'static [&'static str],
    /// Tables that are no figure of the study: figure in the rows, heading.
    pub tables: &'static [(&'static str, &'static str)],
    /// Whether rows have the value of an original paper that the study repeats.
    pub has_original: bool,
    /// Every known deviation.
    pub explanations: &'static [Explanation],
    /// What is off and not understood.
    pub open: &'static [Explanation],
    /// The page's title and what the study is about.
    pub head: &'static str,
    /// How to read the page, before the figures.
    pub reading: &'static str,
    /// What is said after the explanations.
    pub closing: &'static str,
    /// What is said about pairs of schemes in the other order.
    pub orderings: &'static str,
}

/// Which settings an experiment runs with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Base {
    /// As the study's scripts ran it.
    Source,
    /// By the book.
    Standard,
    /// On this machine's kernel: between network namespaces, or real servers.
    Kernel,
    /// The same, simulated.
    Simulated,
}

/// A figure or table of the study.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its name in rows: `fig2b`.
    pub id: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What a point runs.
    pub runs: Runs,
    /// The settings that it runs with.
    pub bases: &'static [Base],
    /// What the x axis is.
    pub axis: &'static str,
    /// Whether the y axis is logarithmic however little the values span.
    pub log: bool,
    /// The points on the x axis.
    pub cases: Vec<Case>,
    /// The points of a quick look; if empty, the first, a middle and the last.
    pub quick: &'static [&'static str],
    /// Whether the standard base has the points and the length of a quick look also in a full run.
    pub standard_is_quick: bool,
    /// The schemes, as variants of the scenario.
    pub series: &'static [&'static str],
    /// What is measured in the outcome of a scenario; a task says itself.
    pub metrics: Vec<Metric>,
    /// Where the published value of a row stands.
    pub published: fn(series: &str, x: &str, metric: &str) -> Option<f64>,
    /// The original paper's value of a row.
    pub original: fn(series: &str, x: &str, metric: &str) -> Option<f64>,
    /// The factor within which a row counts as reproduced.
    pub tolerance: fn(series: &str, x: &str, metric: &str, published: f64) -> Option<f64>,
}

/// What a point of a figure runs.
#[derive(Clone, Copy, Debug)]
pub enum Runs {
    /// A network: a scenario, one of the study's files, with the series as its variant.
    Scenario(&'static str),
    /// A task of the study's own; `None` where a series does not have the point.
    Task(fn(&Point<'_>) -> Option<Arc<dyn Task>>),
}

/// A point of a figure, with all that its task may depend on.
#[derive(Clone, Copy, Debug)]
pub struct Point<'a> {
    /// The value on the figure's x axis.
    pub x: &'a str,
    /// The scheme.
    pub series: &'static str,
    /// The settings that it runs with.
    pub base: Base,
    /// Whether it is as short as a quick look has it.
    pub quick: bool,
    /// Seed of the run.
    pub seed: u64,
    /// Where the servers' programs are.
    pub servers: &'a Path,
}

/// Something that is measured by other means than a scenario: a formula, the model of a server, a server.
pub trait Task: Send + Sync {
    /// All that its numbers follow from, its seed as well: tasks of a figure with the same text are the same run.
    fn settings(&self) -> String;

    /// Whether this system has what the task needs; asked before anything runs.
    ///
    /// # Errors
    /// What is missing, and what brings it.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Measures. A task by the wall's clock has the machine for itself, and asks `goes_on` between its parts; once that
    /// was false, whatever it returns does not count.
    ///
    /// # Errors
    /// What went wrong, in words.
    fn measure(&self, goes_on: &dyn Fn() -> bool) -> Result<Vec<Measured>, String>;
}

/// One number of a task.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// The scheme that it is of, where a task measures several in turn; none: the point's.
    pub series: Option<&'static str>,
    /// What is measured.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The number.
    pub estimate: Estimate,
    /// Whether it is not to be believed: the machine was too slow for it.
    pub suspect: bool,
}

/// A point on a figure's x axis.
#[derive(Clone, Debug, Default)]
pub struct Case {
    /// The value on the axis.
    pub x: String,
    /// What it sets, as `--set` would.
    pub set: Vec<String>,
    /// What a quick look sets as well.
    pub quick_set: Vec<String>,
    /// What the study cut from the beginning.
    pub warmup: Span,
    /// How long the workloads run when the whole figure is asked for, and in a quick look.
    pub duration: Option<(Span, Span)>,
    /// How many flows there are when the whole figure is asked for, and in a quick look, where the rows say
    /// so.
    pub flows: Option<(u64, u64)>,
    /// Where the workload `flows` has those of the study, recomputed; without it the scenario's own, of which
    /// there are so many.
    pub arrivals: Option<PairArrivals>,
}

/// A deviation and its mechanism.
#[derive(Clone, Copy, Debug)]
pub struct Explanation {
    /// Short name, the heading on the page.
    pub title: &'static str,
    /// Which rows it explains.
    pub covers: fn(&Row) -> bool,
    /// The smallest and the largest ratio to the published number that the mechanism accounts for (the number itself where
    /// none is published): what was seen here, and somewhat more. A row beyond is not explained.
    pub reach: (f64, f64),
    /// The mechanism, and the run that shows it.
    pub text: &'static str,
}

impl Explanation {
    fn accounts_for(&self, row: &Row) -> bool {
        (self.covers)(row) && (self.reach.0..=self.reach.1).contains(&row.deviation())
    }
}

impl Study {
    /// What studies on this machine's kernel have in common: their second base is a model, nothing is settled exactly,
    /// and claims are not compared.
    pub(crate) const ON_KERNEL: Study = Study {
        id: "",
        command: "",
        bases: [Base::Kernel, Base::Simulated],
        scenarios: &[],
        scenario_text: None,
        figures: Vec::new,
        also: |_, _, _, _, _| Vec::new(),
        exact: |_, _| Ok(Vec::new()),
        summary: |_| Vec::new(),
        unordered: &["claims"],
        other_seeds: 0,
        drawn: |_| &[],
        tables: &[],
        has_original: false,
        explanations: &[],
        open: &[],
        head: "",
        reading: "",
        closing: "",
        orderings: "",
    };

    /// The text of the scenario `file` with the settings of `base`.
    pub(crate) fn text(&self, file: &str, base: Base) -> String {
        match self.scenario_text {
            Some(text) => text(file, base),
            None => {
                let found = self.scenarios.iter().find(|(name, _)| *name == file);
                found.expect("figures name files of their study").1.to_owned()
            }
        }
    }

    /// The explanation of a row, if there is one.
    pub fn explanation(&self, row: &Row) -> Option<&'static Explanation> {
        self.explanations.iter().find(|explanation| explanation.accounts_for(row))
    }

    /// The open question that a row belongs to, if it does.
    pub fn open_question(&self, row: &Row) -> Option<&'static Explanation> {
        self.open.iter().find(|open| open.accounts_for(row))
    }

    /// Whether its measured runs go by the wall's clock.
    pub fn is_live(&self) -> bool {
        self.bases[0].is_live()
    }

    /// The rows that are settled exactly, measured: a second of work.
    ///
    /// # Errors
    /// If a shipped scenario does not load.
    pub fn measure_exact(&self, seed: u64) -> Result<Vec<Row>, ReproduceError> {
        (self.exact)(seed, self.laid_out()?.path())
    }

    /// The shipped scenarios in a temporary folder, where they find what they include.
    pub(crate) fn laid_out(&self) -> std::io::Result<tempfile::TempDir> {
        let folder = tempfile::tempdir()?;
        for (name, text) in self.scenarios {
            std::fs::write(folder.path().join(name), text)?;
        }
        Ok(folder)
    }
}

impl Case {
    /// How many flows there are in a quick look or else in the whole figure, where the rows say so.
    pub(crate) fn flows(&self, quick: bool) -> Option<u64> {
        self.flows.map(|(full, few)| if quick { few } else { full })
    }
}

impl Base {
    /// The name in rows and files.
    pub fn name(self) -> &'static str {
        match self {
            Base::Source => "source",
            Base::Standard => "standard",
            Base::Kernel => "kernel",
            Base::Simulated => "simulated",
        }
    }

    /// Whether its runs go by the wall's clock.
    pub fn is_live(self) -> bool {
        self == Base::Kernel
    }
}

impl Figure {
    /// Whether a quick look has the point.
    pub(crate) fn is_in_quick(&self, case: usize) -> bool {
        if !self.quick.is_empty() {
            return self.quick.contains(&self.cases[case].x.as_str());
        }
        let last = self.cases.len() - 1;
        case == 0 || case == last || case == last / 2
    }
}

/// For figures without published values.
pub(crate) fn nothing(_: &str, _: &str, _: &str) -> Option<f64> {
    None
}

/// For figures that are not held to their published values.
pub(crate) fn no_tolerance(_: &str, _: &str, _: &str, _: f64) -> Option<f64> {
    None
}
