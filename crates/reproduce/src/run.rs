//! Runs the experiments of a study and sets every number beside the published one.
//!
//! ```text
//! figures ──> jobs ──(without those in the journal)──batch──> journal ──> rows, in the figures' order
//! ```
//!
//! Rows are made of what the journal has: where the full run of a point is not there, its quick one, which is marked
//! and held to nothing; both are named as missing.

mod bench;
mod compose;
mod gather;

use std::path::{Path, PathBuf};

use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::{Overrides, Scenario};
use plimsoll_sim::batch::BatchError;
use serde::{Deserialize, Serialize};

use crate::journal::Journal;
use crate::orderings::{Ordering, orderings};
use crate::row::Row;
use crate::study::{Figure, Study};
use bench::{Bench, Job};
use compose::Composed;

/// The options of a reproduction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Short runs: the shape of every figure, without its tails.
    pub quick: bool,
    /// The number of cores to use.
    pub threads: usize,
    /// The seed of every run.
    pub seed: u64,
    /// Run only these; everything if empty.
    pub only: Vec<Part>,
    /// The folder of the servers' programs, where a study runs real servers.
    pub servers: PathBuf,
    /// The commit of this build, where known: kept with every run.
    pub commit: Option<String>,
}

/// A figure, or some of its points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The name of the figure.
    pub figure: String,
    /// Points on its axis; all if empty.
    pub xs: Vec<String>,
}

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reproduction {
    /// Whether the runs are those of a quick look.
    pub quick: bool,
    /// The seed that every run was made with.
    pub seed: u64,
    /// One row for each number.
    pub rows: Vec<Row>,
    /// The pairs of schemes: which is better, as published and as measured.
    pub orderings: Vec<Ordering>,
    /// Packets that completed a link, in all runs.
    pub packet_hops: u64,
    /// Commits of the builds that made the runs, each once; empty where none is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<String>,
    /// Points that were not run, or only as short as a quick look has them: figure, base, x, scheme.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<[String; 4]>,
}

impl Reproduction {
    /// Counts the numbers that are held to a tolerance, or the ratios of which the order is (`order_only`): those that
    /// are as published, and all.
    pub fn held(&self, order_only: bool) -> (usize, usize) {
        let of = || self.rows.iter().filter(|row| row.order_only == order_only);
        let count = |within| of().filter(|row| row.within == Some(within)).count();
        (count(true), count(true) + count(false))
    }
}

/// Why there is no reproduction.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// A shipped scenario is wrong: a defect of this crate.
    #[error("the shipped scenario {name} does not load: {problem}")]
    Scenario {
        /// The name of its file.
        name: String,
        /// The first error that it has.
        problem: String,
    },
    /// The study has no such figure or point.
    #[error("there is no {part}; there is {known}")]
    Part {
        /// The figure or point that the caller named.
        part: String,
        /// The names that there are.
        known: String,
    },
    /// The scenarios could not be laid out for loading.
    #[error("cannot write the scenarios to a temporary folder: {0}")]
    Io(#[from] std::io::Error),
    /// A run failed or was cancelled.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// This system cannot carry a run, or a run on it failed; or a task did.
    #[error("{scheme} at {x}: {problem}")]
    Kernel {
        /// The scheme of the run that failed.
        scheme: String,
        /// The point on the axis that it is of.
        x: String,
        /// The reason: what is missing or went wrong.
        problem: String,
    },
    /// A run by the wall's clock was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The journal could not be written.
    #[error("{0}")]
    Journal(std::io::Error),
}

/// Hears `(done, of, packet_hops so far)` and may stop everything by returning false.
pub type OnProgress<'a> = &'a (dyn Fn(usize, usize, u64) -> bool + Sync);

/// Runs the parts that the options name and the journal does not have.
///
/// # Errors
/// If a run is cancelled, or a shipped scenario does not load. The journal then has what was finished.
pub fn reproduce(
    study: &'static Study,
    options: &Options,
    journal: &mut Journal,
    progress: OnProgress<'_>,
) -> Result<Reproduction, ReproduceError> {
    check(&options.only, &study.figures)?;
    let bench = Bench { study, folder: study.laid_out()?, options };
    let jobs = bench.jobs(options.quick, options.seed)?;
    let is_wanted = |job: &Job| {
        let Figure { id, cases, .. } = &study.figures[job.figure];
        options.only.is_empty() || options.only.iter().any(|part| part.has(id, &cases[job.case].x))
    };
    let mut wanted: Vec<Job> = jobs.iter().filter(|job| is_wanted(job)).cloned().collect();
    // The longest first, so that no core is left with one at the end.
    wanted.sort_by_key(|job| std::cmp::Reverse(job.duration()));
    bench.run(&wanted, journal, progress)?;

    // What is not there in full may be there as a quick look had it, and the other way round.
    let others = bench.jobs(!options.quick, options.seed)?;
    let (quick, full) = if options.quick { (jobs, others) } else { (others, jobs) };
    let Composed { jobs, mut rows, packet_hops, missing, builds } = bench.compose(&quick, &full, journal);
    if !options.quick {
        bench.vary_seeds(&jobs, &mut rows, journal, progress)?;
    }
    let mut rows: Vec<Row> = rows.into_iter().flatten().collect();
    rows.extend(study.exact_rows(options.seed, bench.folder.path())?);
    let summary = study.summary.map_or_else(Vec::new, |summary| summary(study, &rows));
    rows.extend(summary);
    rows.iter_mut().filter(|row| row.suspect).for_each(Row::let_go);
    let orderings = orderings(&rows, study.bases[0].name(), &study.unordered);
    let Options { quick, seed, .. } = *options;
    Ok(Reproduction { quick, seed, rows, orderings, packet_hops, builds, missing })
}

impl Part {
    pub(crate) fn has(&self, figure: &str, x: &str) -> bool {
        self.figure == figure && (self.xs.is_empty() || self.xs.iter().any(|other| other == x))
    }
}

impl std::str::FromStr for Part {
    type Err = std::convert::Infallible;
    /// Reads `fig9` or `fig9@0.2,0.5`; `reproduce` checks that the study has such a part.
    fn from_str(text: &str) -> Result<Part, Self::Err> {
        let (figure, xs) = text.split_once('@').unwrap_or((text, ""));
        let xs = xs.split(',').map(str::trim).filter(|x| !x.is_empty());
        Ok(Part { figure: figure.trim().to_owned(), xs: xs.map(str::to_owned).collect() })
    }
}

fn check(only: &[Part], figures: &[Figure]) -> Result<(), ReproduceError> {
    for part in only {
        let Some(figure) = figures.iter().find(|figure| figure.id == part.figure) else {
            let known: Vec<&str> = figures.iter().map(|figure| figure.id.as_str()).collect();
            return Err(ReproduceError::Part { part: part.figure.clone(), known: known.join(", ") });
        };
        let known: Vec<&str> = figure.cases.iter().map(|case| case.x.as_str()).collect();
        if let Some(x) = part.xs.iter().find(|x| !known.contains(&x.as_str())) {
            let part = format!("{} at {x}", part.figure);
            return Err(ReproduceError::Part { part, known: known.join(", ") });
        }
    }
    Ok(())
}

/// Runs a scenario of a study, with the settings of its first base and others, with the scheme `series`.
pub(crate) fn run_once(
    study: &Study,
    name: &str,
    series: &str,
    set: &[&str],
    seed: u64,
    folder: &Path,
) -> Result<Outcome, ReproduceError> {
    let set = set.iter().map(|&set| set.to_owned()).collect();
    let overrides = Overrides { set, seed: Some(seed), replicates: 1 };
    let scenario = load(name, &study.text(name, study.bases[0]), folder, &overrides)?;
    let point = scenario.points().iter().find(|point| point.variant == series);
    let point = point.expect("the scenario has a variant of that name");
    let outcome = plimsoll_sim::run(&point.model, &mut |_| true);
    outcome.map_err(|error| ReproduceError::Batch(error.into()))
}

fn load(name: &str, text: &str, folder: &Path, overrides: &Overrides) -> Result<Scenario, ReproduceError> {
    Scenario::parse_with(name, text, folder, overrides).map_err(|errors| ReproduceError::Scenario {
        name: name.to_owned(),
        problem: errors.first().map(ToString::to_string).unwrap_or_default(),
    })
}
