//! Runs the experiments of a study and sets every number beside the published one.
//!
//! ```text
//! figures ──> jobs ──(without those in the journal)──batch──> journal ──> rows, in the figures' order
//! ```
//!
//! Rows are made of what the journal has: where the full run of a point is not there, its quick one; what is
//! neither is named as missing.

use std::path::{Path, PathBuf};
use std::sync::atomic::{self, AtomicUsize};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;

use plimsoll_results::digest::Digest;
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::Model;
use plimsoll_scenario::{Overrides, Scenario};
use plimsoll_sim::Progress;
use plimsoll_sim::batch::{self, BatchError, Watch};
use plimsoll_units::Span;
use serde::{Deserialize, Serialize};

use crate::journal::{self, Entry, Journal};
use crate::kernel;
use crate::ns2::PairArrivals;
use crate::orderings::{Ordering, orderings};
use crate::row::Row;
use crate::study::{Base, Case, Figure, Measured, Point, Runs, Study, Task};

/// What to run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// Short runs: the shape of every figure, without its tails.
    pub quick: bool,
    /// Cores to use.
    pub threads: usize,
    /// Seed of every run.
    pub seed: u64,
    /// Run only these; everything if empty.
    pub only: Vec<Part>,
    /// The folder of the servers' programs, where a study runs real servers.
    pub servers: PathBuf,
}

/// A figure, or some of its points.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The figure.
    pub figure: String,
    /// Points on its axis; all if empty.
    pub xs: Vec<String>,
}

/// Everything that was measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Reproduction {
    /// Whether only short runs were asked for.
    pub quick: bool,
    /// Seed of every run.
    pub seed: u64,
    /// One row a number.
    pub rows: Vec<Row>,
    /// Which scheme is better, as published and as measured.
    pub orderings: Vec<Ordering>,
    /// Packets that completed a link, in all runs.
    pub packet_hops: u64,
    /// Points that were not run: figure, base, x, scheme.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<[String; 4]>,
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
    /// The study has no such figure or point.
    #[error("there is no {part}; there is {known}")]
    Part {
        /// What was asked for.
        part: String,
        /// What could have been.
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
        /// The scheme.
        scheme: String,
        /// The point.
        x: String,
        /// What is missing or went wrong.
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

/// One run: a point of a figure, with a scheme and a base.
#[derive(Clone)]
struct Job {
    figure: usize,
    case: usize,
    series: &'static str,
    base: Base,
    /// Whether it is as short as a quick look has it.
    quick: bool,
    seed: u64,
    digest: u64,
    work: Work,
}

/// What is to be done for a job.
#[derive(Clone)]
enum Work {
    Network(Model),
    Task(Arc<dyn Task>),
}

impl Job {
    /// How long the network of a scenario runs.
    fn duration(&self) -> Option<Span> {
        match &self.work {
            Work::Network(model) => model.run.duration,
            Work::Task(_) => None,
        }
    }
}

/// Runs what is asked for and is not in the journal yet.
///
/// # Errors
/// If a run is cancelled, or a shipped scenario does not load. The journal then has what was finished.
pub fn reproduce(
    study: &Study,
    options: &Options,
    journal: &mut Journal,
    progress: OnProgress<'_>,
) -> Result<Reproduction, ReproduceError> {
    let figures = (study.figures)();
    check(&options.only, &figures)?;
    let bench = Bench { study, figures, folder: study.laid_out()?, options };
    let jobs = bench.jobs(options.quick, options.seed)?;
    let is_wanted = |job: &Job| {
        let Figure { id, cases, .. } = &bench.figures[job.figure];
        options.only.is_empty() || options.only.iter().any(|part| part.has(id, &cases[job.case].x))
    };
    let mut wanted: Vec<Job> = jobs.into_iter().filter(is_wanted).collect();
    // The longest first, so that no core is left with one at the end.
    wanted.sort_by_key(|job| std::cmp::Reverse(job.duration()));
    bench.run(&wanted, journal, progress)?;

    let Composed { jobs, mut rows, packet_hops, missing } = bench.compose(journal)?;
    if !options.quick {
        bench.vary_seeds(&jobs, &mut rows, journal, progress)?;
    }
    let mut rows: Vec<Row> = rows.into_iter().flatten().collect();
    rows.extend((study.exact)(options.seed, bench.folder.path())?);
    rows.extend((study.summary)(&rows));
    rows.iter_mut().filter(|row| row.suspect).for_each(Row::let_go);
    let orderings = orderings(&rows, study.bases[0].name(), study.unordered);
    Ok(Reproduction { quick: options.quick, seed: options.seed, rows, orderings, packet_hops, missing })
}

/// A study laid out to be run.
struct Bench<'a> {
    study: &'a Study,
    figures: Vec<Figure>,
    folder: tempfile::TempDir,
    options: &'a Options,
}

/// What the journal gives.
struct Composed {
    jobs: Vec<Job>,
    /// By job.
    rows: Vec<Vec<Row>>,
    packet_hops: u64,
    missing: Vec<[String; 4]>,
}

impl Bench<'_> {
    /// Every run, in the order of the figures.
    fn jobs(&self, quick: bool, seed: u64) -> Result<Vec<Job>, ReproduceError> {
        let mut jobs = Vec::new();
        for base in self.study.bases {
            for (index, figure) in self.figures.iter().enumerate() {
                if figure.bases.contains(&base) {
                    let quick = quick || base == Base::Standard && figure.standard_is_quick;
                    jobs.extend(self.figure_jobs(index, base, quick, seed)?);
                }
            }
        }
        Ok(jobs)
    }

    fn figure_jobs(
        &self,
        index: usize,
        base: Base,
        quick: bool,
        seed: u64,
    ) -> Result<Vec<Job>, ReproduceError> {
        let figure = &self.figures[index];
        let mut jobs = Vec::new();
        for case in 0..figure.cases.len() {
            if quick && !figure.is_in_quick(case) {
                continue;
            }
            for &series in figure.series {
                jobs.extend(self.job(index, case, series, base, quick, seed)?);
            }
        }
        Ok(jobs)
    }

    fn job(
        &self,
        figure: usize,
        case: usize,
        series: &'static str,
        base: Base,
        quick: bool,
        seed: u64,
    ) -> Result<Option<Job>, ReproduceError> {
        let Figure { runs, cases, .. } = &self.figures[figure];
        let name = match runs {
            Runs::Scenario(name) => name,
            Runs::Task(task) => {
                let servers = self.options.servers.as_path();
                let point = Point { x: &cases[case].x, series, base, quick, seed, servers };
                return Ok(task(&point).map(|task| {
                    let digest = Digest::of_text(&task.settings()).low();
                    Job { figure, case, series, base, quick, seed, digest, work: Work::Task(task) }
                }));
            }
        };
        let mut set = settings(&cases[case], quick);
        if let (Some(arrivals), Some(flows)) = (&cases[case].arrivals, cases[case].flows(quick)) {
            // The name says all that the list follows from.
            let PairArrivals { hosts, load, mean_packets, .. } = arrivals;
            let file = format!("pairs-of-{hosts}-load-{load}-mean-{mean_packets}-flows-{flows}.csv");
            let path = self.folder.path().join(&file);
            if !path.exists() {
                std::fs::write(path, arrivals.list(flows))?;
            }
            set.push(format!("workload.flows={{kind=\"flow-list\",path=\"{file}\"}}"));
        }
        let overrides = Overrides { set, seed: Some(seed), replicates: 1 };
        let scenario = load(name, &self.study.text(name, base), self.folder.path(), &overrides)?;
        let point = scenario.points().iter().find(|point| point.variant == series);
        Ok(point.map(|point| {
            let (digest, model) = (point.settings_digest(), point.model.clone());
            Job { figure, case, series, base, quick, seed, digest, work: Work::Network(model) }
        }))
    }

    fn finished<'j>(&self, journal: &'j Journal, job: &Job) -> Option<&'j Entry> {
        journal.get(job.digest, self.figures[job.figure].id, job.base.name())
    }

    /// Runs the jobs that are not in the journal.
    fn run(
        &self,
        jobs: &[Job],
        journal: &mut Journal,
        progress: OnProgress<'_>,
    ) -> Result<(), ReproduceError> {
        let open = jobs.iter().filter(|job| self.finished(journal, job).is_none());
        let (live, open): (Vec<&Job>, Vec<&Job>) = open.partition(|job| job.base.is_live());
        // What this system cannot carry is told before anything runs.
        for job in &live {
            let can = match &job.work {
                Work::Network(model) => kernel::check(model),
                Work::Task(task) => task.check(),
            };
            can.map_err(|problem| self.kernel_error(job, problem))?;
        }
        let of = open.len() + live.len();
        let (mut networks, mut models, mut tasks) = (Vec::new(), Vec::new(), Vec::new());
        for job in open {
            match &job.work {
                Work::Network(model) => {
                    networks.push(job);
                    models.push(model);
                }
                Work::Task(task) => tasks.push((job, task)),
            }
        }
        let state = Mutex::new(State { journal, done: 0, packet_hops: 0 });
        let gather = Gather { bench: self, of, jobs: &networks, progress, state };
        batch::run_all(&models, self.options.threads, &gather)?;
        self.run_tasks(&tasks, &gather)?;
        // By the wall's clock: one after the other, and nothing beside it.
        for job in live {
            let entry = match &job.work {
                Work::Network(model) => self.carry(job, model, &|| gather.tell())?,
                Work::Task(task) => self.perform(job, task.as_ref(), &|| gather.tell())?,
            };
            gather.keep(entry).map_err(ReproduceError::Journal)?;
        }
        Ok(())
    }

    /// Tasks share nothing: each core takes the next.
    fn run_tasks(&self, tasks: &[(&Job, &Arc<dyn Task>)], gather: &Gather<'_>) -> Result<(), ReproduceError> {
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((job, task)) = tasks.get(next.fetch_add(1, atomic::Ordering::Relaxed)) {
                if !gather.tell() {
                    return Err(ReproduceError::Cancelled);
                }
                let entry = self.perform(job, task.as_ref(), &|| gather.tell())?;
                gather.keep(entry).map_err(ReproduceError::Journal)?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let others = 1..self.options.threads.clamp(1, tasks.len().max(1));
            let others: Vec<_> = others.map(|_| scope.spawn(work)).collect();
            let own = work();
            let panicked = "a task that fails says so and does not panic";
            others.into_iter().map(|other| other.join().expect(panicked)).fold(own, Result::and)
        })
    }

    fn perform(
        &self,
        job: &Job,
        task: &dyn Task,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Entry, ReproduceError> {
        let measured = task.measure(goes_on);
        if !goes_on() {
            return Err(ReproduceError::Cancelled);
        }
        let measured = measured.map_err(|problem| self.kernel_error(job, problem))?;
        let figure = &self.figures[job.figure];
        let x = &figure.cases[job.case].x;
        let row = |Measured { series, metric, unit, estimate, suspect }: Measured| {
            let series = series.unwrap_or(job.series);
            let mut row = Row::new(figure.id, job.base.name(), series, x, &metric, &unit);
            row.set_measured(&estimate);
            row.suspect = suspect;
            row
        };
        Ok(self.entry_of(job, 0, measured.into_iter().map(row).collect()))
    }

    /// Carries a run, anew if the machine was too slow for it, but not for ever.
    fn carry(&self, job: &Job, model: &Model, goes_on: &dyn Fn() -> bool) -> Result<Entry, ReproduceError> {
        let mut tries = 0;
        loop {
            tries += 1;
            let outcome = kernel::carry(model, goes_on);
            let outcome = outcome.map_err(|problem| self.kernel_error(job, problem))?;
            let outcome = outcome.ok_or(ReproduceError::Cancelled)?;
            let suspect = outcome.warnings.iter().any(|warning| warning.starts_with("suspect:"));
            if !suspect || tries == TRIES {
                let mut entry = self.entry(job, &outcome);
                entry.rows.iter_mut().for_each(|row| row.suspect = suspect);
                return Ok(entry);
            }
        }
    }

    fn kernel_error(&self, job: &Job, problem: String) -> ReproduceError {
        let x = self.figures[job.figure].cases[job.case].x.clone();
        ReproduceError::Kernel { scheme: job.series.to_owned(), x, problem }
    }

    /// The rows of every point, from its full run if that is there, else from its quick one.
    fn compose(&self, journal: &Journal) -> Result<Composed, ReproduceError> {
        let mut of = Composed { jobs: Vec::new(), rows: Vec::new(), packet_hops: 0, missing: Vec::new() };
        let seed = self.options.seed;
        let quick_jobs = self.jobs(true, seed)?;
        let same =
            |a: &Job, b: &Job| (a.figure, a.case, a.series, a.base) == (b.figure, b.case, b.series, b.base);
        for job in self.jobs(false, seed)? {
            let quick = quick_jobs.iter().find(|quick| same(quick, &job));
            let Some((job, entry)) = [Some(&job), quick]
                .into_iter()
                .flatten()
                .find_map(|job| Some((job, self.finished(journal, job)?)))
            else {
                if quick.is_some() || !self.options.quick {
                    let Figure { id, cases, .. } = &self.figures[job.figure];
                    let names = [*id, job.base.name(), &cases[job.case].x, job.series];
                    of.missing.push(names.map(str::to_owned));
                }
                continue;
            };
            of.packet_hops += entry.packet_hops;
            of.rows.push(entry.rows.iter().map(|row| self.beside_published(job, row.clone())).collect());
            of.jobs.push(job.clone());
        }
        Ok(of)
    }

    /// Runs every job that has a row outside its tolerance with other seeds, and notes in its rows how
    /// far the numbers move. What was measured and judged stays as it is.
    fn vary_seeds(
        &self,
        jobs: &[Job],
        rows: &mut [Vec<Row>],
        journal: &mut Journal,
        progress: OnProgress<'_>,
    ) -> Result<(), ReproduceError> {
        let mut again = Vec::new();
        for (index, job) in jobs.iter().enumerate().filter(|(index, _)| rows[*index].iter().any(Row::is_off))
        {
            for other in 1..=self.study.other_seeds {
                let &Job { figure, case, series, base, quick, .. } = job;
                let job = self.job(figure, case, series, base, quick, self.options.seed + other)?;
                again.extend(job.map(|job| (index, job)));
            }
        }
        let (of, again): (Vec<usize>, Vec<Job>) = again.into_iter().unzip();
        self.run(&again, journal, progress)?;
        for (index, job) in of.into_iter().zip(&again) {
            let Some(entry) = self.finished(journal, job) else { continue };
            for row in &mut rows[index] {
                let Some(other) = entry.rows.iter().find(|other| other.metric == row.metric) else {
                    continue;
                };
                let (low, high) = row.seeds.unwrap_or((row.measured, row.measured));
                row.seeds = Some((low.min(other.measured), high.max(other.measured)));
            }
        }
        Ok(())
    }

    /// What a run gives, as it goes to the journal.
    fn entry(&self, job: &Job, outcome: &Outcome) -> Entry {
        let figure = &self.figures[job.figure];
        let case = &figure.cases[job.case];
        // A short run has no time to cut what the study cut.
        let warmup = match (case.duration, job.duration()) {
            (Some((full, _)), Some(duration)) if duration < full => case.warmup / 4,
            (Some(_), _) => case.warmup,
            (None, _) => Span::ZERO,
        };
        let row = |name, unit| Row::new(figure.id, job.base.name(), job.series, &case.x, name, unit);
        let measured = figure.metrics.iter().filter_map(|metric| {
            let mut row = row(metric.name, metric.unit);
            row.set_measured(&metric.measure(outcome, warmup)?);
            row.flows = case.flows(job.quick);
            Some(row)
        });
        let mut rows: Vec<Row> = measured.collect();
        rows.extend((self.study.also)(figure, case, job.series, job.base, outcome));
        self.entry_of(job, outcome.counters.packet_hops, rows)
    }

    fn entry_of(&self, job: &Job, packet_hops: u64, rows: Vec<Row>) -> Entry {
        let figure = &self.figures[job.figure];
        Entry {
            digest: journal::text(job.digest),
            version: journal::VERSION.to_owned(),
            seed: job.seed,
            figure: figure.id.to_owned(),
            base: job.base.name().to_owned(),
            x: figure.cases[job.case].x.clone(),
            series: job.series.to_owned(),
            packet_hops,
            rows,
        }
    }

    fn beside_published(&self, job: &Job, row: Row) -> Row {
        let Some(figure) = self.figures.iter().find(|figure| figure.id == row.figure) else { return row };
        let published = (figure.published)(&row.series, &row.x, &row.metric);
        let original = (figure.original)(&row.series, &row.x, &row.metric);
        // Too few flows show the shape, but are not what was published.
        let is_judged = job.base == self.study.bases[0] && !(job.quick && row.flows.is_some());
        let tolerance = published
            .filter(|_| is_judged)
            .and_then(|published| (figure.tolerance)(&row.series, &row.x, &row.metric, published));
        row.compare(published, original, tolerance)
    }
}

impl Part {
    fn has(&self, figure: &str, x: &str) -> bool {
        self.figure == figure && (self.xs.is_empty() || self.xs.iter().any(|other| other == x))
    }
}

impl std::str::FromStr for Part {
    type Err = std::convert::Infallible;
    /// `fig9` or `fig9@0.2,0.5`; whether there is such a part only the study knows.
    fn from_str(text: &str) -> Result<Part, Self::Err> {
        let (figure, xs) = text.split_once('@').unwrap_or((text, ""));
        let xs = xs.split(',').map(str::trim).filter(|x| !x.is_empty());
        Ok(Part { figure: figure.trim().to_owned(), xs: xs.map(str::to_owned).collect() })
    }
}

fn check(only: &[Part], figures: &[Figure]) -> Result<(), ReproduceError> {
    for part in only {
        let Some(figure) = figures.iter().find(|figure| figure.id == part.figure) else {
            let known: Vec<&str> = figures.iter().map(|figure| figure.id).collect();
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

fn settings(case: &Case, quick: bool) -> Vec<String> {
    let mut set = case.set.clone();
    if let Some((full, short)) = case.duration {
        set.push(format!("run.duration=\"{}\"", if quick { short } else { full }));
    }
    if let (Some(flows), None) = (case.flows(quick), &case.arrivals) {
        set.push(format!("workload.flows.count={flows}"));
    }
    if quick {
        set.extend(case.quick_set.iter().cloned());
    }
    set
}

pub(crate) fn load(
    name: &str,
    text: &str,
    folder: &Path,
    overrides: &Overrides,
) -> Result<Scenario, ReproduceError> {
    Scenario::parse_with(name, text, folder, overrides).map_err(|errors| ReproduceError::Scenario {
        name: name.to_owned(),
        problem: errors.first().map(ToString::to_string).unwrap_or_default(),
    })
}

/// How often a run is carried before its numbers count as they are, marked as suspect.
const TRIES: u32 = 3;

struct State<'a> {
    journal: &'a mut Journal,
    done: usize,
    packet_hops: u64,
}

struct Gather<'a> {
    bench: &'a Bench<'a>,
    jobs: &'a [&'a Job],
    /// How many runs there are, with those that are not simulated.
    of: usize,
    progress: OnProgress<'a>,
    state: Mutex<State<'a>>,
}

impl<'a> Gather<'a> {
    fn state(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn tell(&self) -> bool {
        let state = self.state();
        (self.progress)(state.done, self.of, state.packet_hops)
    }

    fn keep(&self, entry: Entry) -> std::io::Result<()> {
        let mut state = self.state();
        state.done += 1;
        state.packet_hops += entry.packet_hops;
        state.journal.keep(entry)?;
        (self.progress)(state.done, self.of, state.packet_hops);
        Ok(())
    }
}

impl Watch for Gather<'_> {
    fn on_progress(&self, _: usize, _: Progress) -> bool {
        self.tell()
    }

    fn on_done(
        &self,
        index: usize,
        outcome: Outcome,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        Ok(self.keep(self.bench.entry(self.jobs[index], &outcome))?)
    }
}
