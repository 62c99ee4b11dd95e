//! Runs the experiments of a study and sets every number beside the published one.
//!
//! ```text
//! figures ──> jobs ──(without those in the journal)──batch──> journal ──> rows, in the figures' order
//! ```
//!
//! Rows are made of the runs in the journal. If the full run of a point is missing, its quick run is used, marked and
//! without a tolerance; missing runs are listed.

mod bench;
mod compose;
mod gather;
#[cfg(test)]
mod pages;
mod replay;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::error::ReproduceError;
use crate::journal::Journal;
use crate::ledger::{self, Ledger};
use crate::options::{OnProgress, Options, Part};
use crate::orderings::{Ordering, orderings};
use crate::row::StudyRow;
use crate::study::{Study, StudyFigure};
use bench::{Bench, Job};
use compose::Composed;
pub use replay::{Replay, replay};

/// The results of a reproduction: every row, with the builds that measured them.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reproduction {
    /// Whether the runs are those of a quick look.
    pub quick: bool,
    /// The seed that every run was made with.
    pub seed: u64,
    /// One row for each number.
    pub rows: Vec<StudyRow>,
    /// The pairs of schemes with their published and measured order.
    pub orderings: Vec<Ordering>,
    /// Packets that completed a link, in all runs.
    pub packet_hops: u64,
    /// The builds that made the runs, each once; empty where none is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub builds: Vec<ProgramBuild>,
    /// Points that were not run, or only as short as a quick look has them: figure, base, x, scheme.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<[String; 4]>,
}

/// A build of the program, and the runs that it made.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ProgramBuild {
    /// The commit that it was built from.
    pub commit: String,
    /// The identities of its runs, by settings and by the outcomes of their scenarios:
    /// [`Entry::identity`](crate::journal::Entry::identity) of each, once and sorted.
    pub digests: BTreeSet<String>,
}

impl Reproduction {
    /// Judges the rows anew by the study's files: nothing of it needs a run.
    pub fn settle(&mut self, study: &Study) {
        ledger::settle(study, &mut self.rows);
    }

    /// Computes anew the rows that are made of others, and judges all.
    pub fn sum_up(&mut self, study: &Study) {
        if study.computes() {
            // Rows of a base that no run of their figure has are a model's: they are computed from the others.
            let is_measured = |row: &StudyRow| {
                let figure = study.figure(&row.figure)?;
                Some(figure.bases.iter().any(|base| base.name() == row.base))
            };
            let measured = |row: &&StudyRow| is_measured(row) == Some(true);
            let measured: Vec<StudyRow> = self.rows.iter().filter(measured).cloned().collect();
            let mut computed = study.computed(&measured);
            computed.iter_mut().filter(|row| row.suspect).for_each(StudyRow::let_go);
            let is_left = |row: &StudyRow| computed.iter().all(|other| other.figure != row.figure);
            self.rows.retain(|row| is_measured(row).unwrap_or_else(|| is_left(row)));
            self.rows.extend(computed);
        }
        self.orderings = orderings(&self.rows, study.bases[0].name(), &study.unordered);
        self.settle(study);
    }

    /// Counts the published values in each state.
    pub fn ledger(&self) -> Ledger {
        Ledger::of(&self.rows)
    }

    /// Counts the ratios of which only the order is held: those decided as published, those decided, and all.
    pub fn claims(&self) -> [usize; 3] {
        let of = || self.rows.iter().filter(|row| row.order_only && row.state.is_some());
        let count = |within| of().filter(|row| row.within == Some(within)).count();
        [count(true), count(true) + count(false), of().count()]
    }
}

/// Runs the parts that the options name and the journal does not have.
///
/// # Errors If a run is cancelled, or a shipped scenario does not load. The journal then has the finished runs.
pub fn reproduce(
    study: &'static Study,
    options: &Options,
    journal: &mut Journal,
    progress: OnProgress<'_>,
) -> Result<Reproduction, ReproduceError> {
    check(&options.only, &study.figures)?;
    let bench = Bench { study, folder: study.laid_out()?, options };
    let jobs = bench.jobs(options.quick, options.seed)?;
    let mut wanted: Vec<Job> = jobs.iter().filter(|job| bench.is_wanted(job)).cloned().collect();
    // The longest first, so that no core is left with one at the end.
    wanted.sort_by_key(|job| std::cmp::Reverse(job.duration()));
    bench.run(&wanted, journal, progress)?;

    // A point without a full run may have a quick one, and the other way round. Full runs are not prepared needlessly:
    // their lists of flows take seconds.
    let (short, full) = if options.quick {
        let full =
            if bench.is_all(&jobs, journal) { jobs.clone() } else { bench.jobs(false, options.seed)? };
        (jobs, full)
    } else {
        (bench.jobs(true, options.seed)?, jobs)
    };
    // A quick look beside full runs leaves a page of full runs, in which the short ones are marked.
    let quick = options.quick && !bench.has_longer(&short, &full, journal);
    let Composed { jobs, mut rows, packet_hops, missing, builds } =
        bench.compose(&short, &full, quick, journal);
    if !options.quick {
        bench.vary_seeds(&jobs, &mut rows, journal, progress)?;
    }
    let mut rows: Vec<StudyRow> = rows.into_iter().flatten().collect();
    rows.extend(study.exact_rows(options.seed, bench.folder.path())?);
    rows.extend(study.computed(&rows));
    rows.iter_mut().filter(|row| row.suspect).for_each(StudyRow::let_go);
    ledger::settle(study, &mut rows);
    let orderings = orderings(&rows, study.bases[0].name(), &study.unordered);
    let seed = options.seed;
    Ok(Reproduction { quick, seed, rows, orderings, packet_hops, builds, missing })
}

/// Takes the runs of an earlier page over into the journal, where that has none of them: their rows are known by their
/// place, and the settings are assumed to be those of today, which [`replay`] checks. The first such run has the
/// packet-hops of all.
///
/// # Errors
/// If the journal cannot be written, or the page has rows of a figure that no point of today has.
pub fn keep(
    study: &'static Study,
    options: &Options,
    journal: &mut Journal,
    earlier: &Reproduction,
) -> Result<(), ReproduceError> {
    let bench = Bench { study, folder: study.laid_out()?, options };
    let jobs = bench.jobs(earlier.quick, earlier.seed)?;
    let place = |job: &Job| (study.figures[job.figure].id.as_str(), job.base.name());
    let is_also_of = |job: &Job, row: &StudyRow| {
        let figure = &study.figures[job.figure].id;
        row.base == job.base.name()
            && study.figures.iter().any(|other| other.is_also_of(figure, job.series, row))
    };
    // Rows of a base that no run of their figure has are a model's: they are computed from the others.
    let is_measured = |row: &&StudyRow| {
        let own = (row.figure.as_str(), row.base.as_str());
        jobs.iter().any(|job| place(job) == own || is_also_of(job, row))
    };
    let mut left: Vec<&StudyRow> = earlier.rows.iter().filter(is_measured).collect();
    let mut packet_hops = earlier.packet_hops;
    let point = |job: &Job| (job.figure, job.case, job.base);
    for (number, job) in jobs.iter().enumerate() {
        // A task may measure several schemes in one run, that of the point's first.
        let is_first = !jobs[..number].iter().any(|other| point(other) == point(job));
        let has_none = |row: &StudyRow| {
            !jobs.iter().any(|other| point(other) == point(job) && other.series == row.series)
        };
        let is_own =
            |row: &StudyRow| bench.is_at(job, row) && (row.series == job.series || is_first && has_none(row));
        let (rows, others): (Vec<&StudyRow>, Vec<&StudyRow>) =
            left.into_iter().partition(|row| is_own(row) || is_also_of(job, row));
        left = others;
        let rows: Vec<StudyRow> = rows.into_iter().cloned().collect();
        if rows.is_empty() || bench.finished(journal, job).is_some() {
            continue;
        }
        let mut entry = bench.entry_of(job, std::mem::take(&mut packet_hops), rows);
        // Whether results have changed since is known only of runs that the page names with their outcomes.
        let build = earlier.builds.iter().find(|build| build.digests.contains(&entry.identity()));
        if build.is_none() {
            entry.outcomes = None;
        }
        entry.commit = build.map(|build| build.commit.clone());
        journal.keep(entry).map_err(ReproduceError::Journal)?;
    }
    if !left.is_empty() {
        return Err(ReproduceError::Keep(left.len()));
    }
    Ok(())
}

fn check(only: &[Part], figures: &[StudyFigure]) -> Result<(), ReproduceError> {
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
