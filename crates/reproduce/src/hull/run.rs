//! Runs the experiments and sets every number beside the published one.

use std::sync::Mutex;

use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::{Overrides, Scenario};
use plimsoll_sim::Progress;
use plimsoll_sim::batch::{self, BatchError, Watch};
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
    let folder = laid_out()?;
    let mut jobs = Vec::new();
    for base in [Base::Source, Base::Standard] {
        for (index, figure) in figures.iter().enumerate() {
            jobs.extend(figure_jobs(index, figure, base, options, folder.path())?);
        }
    }
    // The longest first, so that no core is left with one at the end.
    jobs.sort_by_key(|job| std::cmp::Reverse(job.model.run.duration));
    let (mut rows, packet_hops) = run_jobs(&figures, &jobs, options.threads, progress)?;
    rows.sort_by_key(|(job, _)| {
        let Job { figure, case, series, base, .. } = &jobs[*job];
        let series = figures[*figure].series.iter().position(|name| name == series);
        (*base, *figure, *case, series)
    });
    if !options.quick {
        vary_seeds(&figures, &jobs, &mut rows, options, folder.path(), progress)?;
    }
    let mut rows: Vec<Row> = rows.into_iter().flat_map(|(_, rows)| rows).collect();
    rows.extend(oracles::rows(options.seed, folder.path())?);
    rows.extend(summary::rows(&rows));
    let orderings = orderings(&rows);
    Ok(Reproduction { quick: options.quick, seed: options.seed, rows, orderings, packet_hops })
}

/// The shipped scenarios in a temporary folder, where they find what they include.
pub(super) fn laid_out() -> std::io::Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    for (name, text) in SCENARIOS {
        std::fs::write(folder.path().join(name), text)?;
    }
    Ok(folder)
}

/// Runs all jobs; their rows by number of the job, in the order in which they came in.
fn run_jobs(
    figures: &[Figure],
    jobs: &[Job],
    threads: usize,
    progress: &(dyn Fn(usize, usize, u64) -> bool + Sync),
) -> Result<(JobRows, u64), ReproduceError> {
    let gather = Gather { figures, jobs, progress, state: Mutex::default() };
    let models: Vec<_> = jobs.iter().map(|job| &job.model).collect();
    batch::run_all(&models, threads, &gather)?;
    let state = gather.state.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
    Ok((state.rows, state.packet_hops))
}

/// Runs every job that has a row outside its tolerance with other seeds, and notes in its rows how
/// far the numbers move. What was measured and judged stays as it is.
fn vary_seeds(
    figures: &[Figure],
    jobs: &[Job],
    rows: &mut JobRows,
    options: Options,
    folder: &std::path::Path,
    progress: &(dyn Fn(usize, usize, u64) -> bool + Sync),
) -> Result<(), ReproduceError> {
    let off: Vec<usize> =
        rows.iter().filter(|(_, rows)| rows.iter().any(Row::is_off)).map(|(job, _)| *job).collect();
    let mut again = Vec::new();
    for &job in &off {
        let Job { figure, case, series, base, .. } = jobs[job];
        for seed in 1..=OTHER_SEEDS {
            let options = Options { seed: options.seed + seed, ..options };
            let text = scenario_text(figures[figure].scenario, base);
            let overrides = settings(&figures[figure].cases[case], options);
            let scenario = load(figures[figure].scenario, &text, folder, &overrides)?;
            let point = scenario.points().iter().find(|point| point.variant == series);
            let Some(point) = point else { continue };
            again.push((job, Job { figure, case, series, base, model: point.model.clone() }));
        }
    }
    let (jobs_of, again): (Vec<usize>, Vec<Job>) = again.into_iter().unzip();
    let (other_rows, _) = run_jobs(figures, &again, options.threads, progress)?;
    for (number, others) in other_rows {
        let original = rows.iter_mut().find(|(job, _)| *job == jobs_of[number]);
        let Some((_, original)) = original else { continue };
        for row in original.iter_mut() {
            let Some(other) = others.iter().find(|other| other.metric == row.metric) else { continue };
            let (low, high) = row.seeds.unwrap_or((row.measured, row.measured));
            row.seeds = Some((low.min(other.measured), high.max(other.measured)));
        }
    }
    Ok(())
}

/// Seeds beside the first with which an experiment that is off is run.
const OTHER_SEEDS: u64 = 8;

/// Rows by number of their job.
type JobRows = Vec<(usize, Vec<Row>)>;

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
    rows: JobRows,
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
                let mut row =
                    Row::new(figure.id, job.base.name(), job.series, &case.x, metric.name, metric.unit);
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
