//! Runs the experiments and sets every number beside the published one.

use std::sync::Mutex;

use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::{Overrides, Scenario};
use plimsoll_sim::batch::{self, BatchError, Watch};
use plimsoll_sim::Progress;
use plimsoll_units::Span;
use serde::{Deserialize, Serialize};

use super::figures::{Case, Figure};
use super::{Base, SCENARIOS, association, figures, oracles, orderings, scenario_text, summary};
use crate::row::Row;

/// What to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Short runs: the shape of every figure in under a minute, without its tails.
    pub quick: bool,
    /// Cores to use.
    pub threads: usize,
    /// Seed of every run.
    pub seed: u64,
}

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reproduction {
    /// Whether the runs were short.
    pub quick: bool,
    /// Seed of every run.
    pub seed: u64,
    /// One row a number.
    pub rows: Vec<Row>,
    /// Which scheme is better, as published and as measured.
    pub orderings: Vec<orderings::Ordering>,
    /// Packets that completed a link, in all runs.
    pub packet_hops: u64,
}

/// Why there is no reproduction.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// A shipped scenario is wrong: a defect of this crate.
    #[error("the shipped scenario {name} does not load: {problem}")]
    Scenario {
        /// Its name.
        name: String,
        /// The first error.
        problem: String,
    },
    /// The scenarios could not be laid out for loading.
    #[error("cannot write the scenarios to a temporary folder: {0}")]
    Io(#[from] std::io::Error),
    /// A run failed or was cancelled.
    #[error(transparent)]
    Batch(#[from] BatchError),
}

/// One run: a point of a figure, with a scheme and a base.
struct Job {
    figure: usize,
    case: usize,
    series: &'static str,
    base: Base,
    model: plimsoll_scenario::model::Model,
}

/// Runs everything. `progress` hears `(done, of, packet_hops so far)` and may stop by returning
/// false.
///
/// # Errors
/// If a run is cancelled, or a shipped scenario does not load.
pub fn reproduce(
    options: Options,
    progress: &(dyn Fn(usize, usize, u64) -> bool + Sync),
) -> Result<Reproduction, ReproduceError> {
    let figures = figures();
    let folder = tempfile::tempdir()?;
    for (name, text) in SCENARIOS {
        std::fs::write(folder.path().join(name), text)?;
    }
    let mut jobs = Vec::new();
    for base in [Base::Source, Base::Standard] {
        for (index, figure) in figures.iter().enumerate() {
            jobs.extend(figure_jobs(index, figure, base, options, folder.path())?);
        }
    }
    // The longest first, so that no core is left with one at the end.
    jobs.sort_by_key(|job| std::cmp::Reverse(job.model.run.duration));
    let gather = Gather { figures: &figures, jobs: &jobs, progress, state: Mutex::default() };
    let models: Vec<_> = jobs.iter().map(|job| &job.model).collect();
    batch::run_all(&models, options.threads, &gather)?;
    let State { mut rows, packet_hops, .. } = gather.state.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    rows.sort_by_key(|(job, _)| {
        let Job { figure, case, series, base, .. } = &jobs[*job];
        let series = figures[*figure].series.iter().position(|name| name == series);
        (*base, *figure, *case, series)
    });
    let mut rows: Vec<Row> = rows.into_iter().flat_map(|(_, rows)| rows).collect();
    rows.extend(oracles::rows(options.seed, folder.path())?);
    rows.extend(summary::rows(&rows));
    let orderings = orderings(&rows);
    Ok(Reproduction { quick: options.quick, seed: options.seed, rows, orderings, packet_hops })
}

fn figure_jobs(
    index: usize,
    figure: &Figure,
    base: Base,
    options: Options,
    folder: &std::path::Path,
) -> Result<Vec<Job>, ReproduceError> {
    let mut jobs = Vec::new();
    for (case_index, case) in figure.cases.iter().enumerate() {
        if options.quick && !shown_in_quick(figure, case_index) {
            continue;
        }
        let text = scenario_text(figure.scenario, base);
        let scenario = load(figure.scenario, &text, folder, &settings(case, options))?;
        for &series in figure.series {
            let point = scenario.points().iter().find(|point| point.variant == series);
            let Some(point) = point else { continue };
            jobs.push(Job { figure: index, case: case_index, series, base, model: point.model.clone() });
        }
    }
    Ok(jobs)
}

/// A quick look has the first, a middle and the last point of a figure.
fn shown_in_quick(figure: &Figure, case: usize) -> bool {
    let last = figure.cases.len() - 1;
    case == 0 || case == last || case == last / 2
}

fn settings(case: &Case, options: Options) -> Overrides {
    let mut set = case.set.clone();
    match case.duration {
        Some((full, quick)) => {
            let duration = if options.quick { quick } else { full };
            set.push(format!("run.duration=\"{duration}\""));
        }
        None if options.quick => set.push("workload.bulk.size=\"20MB\"".to_owned()),
        None => {}
    }
    Overrides { set, seed: Some(options.seed), replicates: 1 }
}

pub(super) fn load(
    name: &str,
    text: &str,
    folder: &std::path::Path,
    overrides: &Overrides,
) -> Result<Scenario, ReproduceError> {
    Scenario::parse_with(name, text, folder, overrides).map_err(|errors| ReproduceError::Scenario {
        name: name.to_owned(),
        problem: errors.first().map(ToString::to_string).unwrap_or_default(),
    })
}

#[derive(Default)]
struct State {
    /// Rows by job.
    rows: Vec<(usize, Vec<Row>)>,
    done: usize,
    packet_hops: u64,
}

struct Gather<'a> {
    figures: &'a [Figure],
    jobs: &'a [Job],
    progress: &'a (dyn Fn(usize, usize, u64) -> bool + Sync),
    state: Mutex<State>,
}

impl Gather<'_> {
    fn rows(&self, job: &Job, outcome: &Outcome) -> Vec<Row> {
        let figure = &self.figures[job.figure];
        let case = &figure.cases[job.case];
        // A short run has no time to cut what the study cut.
        let warmup = match (case.duration, job.model.run.duration) {
            (Some((full, _)), Some(duration)) if duration < full => case.warmup / 4,
            (Some(_), _) => case.warmup,
            (None, _) => Span::ZERO,
        };
        let mut rows: Vec<Row> = figure
            .metrics
            .iter()
            .filter_map(|metric| {
                let mut row = Row::new(figure.id, job.base.name(), job.series, &case.x, metric.name, metric.unit);
                row.set_measured(&metric.measure(outcome, warmup)?);
                Some(self.beside_published(job, figure, row))
            })
            .collect();
        if figure.id == "fig4" && case.x == "200" && job.series == "DCTCP-PQ-Pacer" {
            rows.extend(association::rows(job.base, outcome));
        }
        rows
    }

    fn beside_published(&self, job: &Job, figure: &Figure, row: Row) -> Row {
        let published = (figure.published)(&row.series, &row.x, &row.metric);
        let original = (figure.original)(&row.series, &row.x, &row.metric);
        let tolerance = published
            .filter(|_| job.base == Base::Source)
            .and_then(|published| (figure.tolerance)(&row.series, &row.x, &row.metric, published));
        row.compare(published, original, tolerance)
    }
}

impl Watch for Gather<'_> {
    fn on_progress(&self, _: usize, _: Progress) -> bool {
        let state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        (self.progress)(state.done, self.jobs.len(), state.packet_hops)
    }

    fn on_done(
        &self,
        index: usize,
        outcome: Outcome,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let rows = self.rows(&self.jobs[index], &outcome);
        let mut state = self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        state.rows.push((index, rows));
        state.done += 1;
        state.packet_hops += outcome.counters.packet_hops;
        (self.progress)(state.done, self.jobs.len(), state.packet_hops);
        Ok(())
    }
}
