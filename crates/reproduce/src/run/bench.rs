//! [`Bench`]: a study's runs, and how each is carried out.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{self, AtomicUsize};
use std::thread;

use plimsoll_experiment::bench::{self, BenchWatch as _};
use plimsoll_results::digest::Digest;
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::Overrides;
use plimsoll_scenario::model::Model;
use plimsoll_units::Span;

use super::gather::Gather;
use crate::error::ReproduceError;
use crate::journal::{self, Journal, StudyRun};
use crate::kernel;
use crate::ns2::{PairArrivals, RoundRobinTransfers};
use crate::options::{OnProgress, Options};
use crate::outcomes;
use crate::row::StudyRow;
use crate::single_run::load;
use crate::study::{Base, Case, FinishedRun, Measured, Point, Runs, Study, StudyFigure, Task};

/// A study laid out to be run.
pub(super) struct Bench<'a> {
    pub(super) study: &'static Study,
    pub(super) folder: tempfile::TempDir,
    pub(super) options: &'a Options,
}

/// One run: a point of a figure, with a scheme and a base.
#[derive(Clone)]
pub(super) struct Job {
    pub(super) figure: usize,
    pub(super) case: usize,
    pub(super) series: &'static str,
    pub(super) base: Base,
    /// Whether it is as short as a quick look has it.
    pub(super) quick: bool,
    pub(super) seed: u64,
    pub(super) digest: u64,
    /// The digest of its scenario's outcome today, if the table of digests has one.
    pub(super) outcomes: Option<String>,
    pub(super) work: Work,
}

/// The work that a job consists of.
#[derive(Clone)]
pub(super) enum Work {
    Network(Model),
    Task(Arc<dyn Task>),
}

impl Job {
    /// Returns how long the network of a scenario runs.
    pub(super) fn duration(&self) -> Option<Span> {
        match &self.work {
            Work::Network(model) => model.run.duration,
            Work::Task(_) => None,
        }
    }
}

impl Bench<'_> {
    /// Returns every run, in the order of the figures.
    pub(super) fn jobs(&self, quick: bool, seed: u64) -> Result<Vec<Job>, ReproduceError> {
        let mut jobs = Vec::new();
        for base in self.study.bases {
            for (index, figure) in self.study.figures.iter().enumerate() {
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
        let figure = &self.study.figures[index];
        let mut jobs = Vec::new();
        for case in 0..figure.cases.len() {
            if quick && !figure.is_in_quick(case) {
                continue;
            }
            let series: Vec<&str> = figure.series.iter().map(String::as_str).collect();
            jobs.extend(self.point(index, case, &series, base, quick, seed)?);
        }
        Ok(jobs)
    }

    /// Returns the runs of a point of a figure by the `series` that it has: its scenario is read once for all of them.
    pub(super) fn point(
        &self,
        figure: usize,
        case: usize,
        series: &[&'static str],
        base: Base,
        quick: bool,
        seed: u64,
    ) -> Result<Vec<Job>, ReproduceError> {
        let StudyFigure { runs, cases, .. } = &self.study.figures[figure];
        let seed = seed + cases[case].seed;
        let job = |series, digest, outcomes, work| Job {
            figure,
            case,
            series,
            base,
            quick,
            seed,
            digest,
            outcomes,
            work,
        };
        let name = match runs {
            Runs::Nothing => return Ok(Vec::new()),
            Runs::Scenario(name) => name,
            Runs::Task(task) => {
                let (servers, study) =
                    (self.options.servers.as_path(), crate::studies::find as fn(&str) -> _);
                let job = |&series: &&'static str| {
                    let task = task(&Point { x: &cases[case].x, series, base, quick, seed, servers, study })?;
                    let digest = Digest::of_text(&task.settings()).low();
                    Some(job(series, digest, None, Work::Task(task)))
                };
                return Ok(series.iter().filter_map(job).collect());
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
        if let Some(transfers) = &cases[case].transfers {
            let RoundRobinTransfers { servers, mbps, seconds, .. } = transfers;
            let file = format!("transfers-of-{servers}-at-{mbps}-for-{seconds}.csv");
            std::fs::write(self.folder.path().join(&file), transfers.list())?;
            set.push(format!("workload.background={{kind=\"flow-list\",path=\"{file}\"}}"));
        }
        let overrides = Overrides { set, seed: Some(seed), replicates: 1, ..Overrides::default() };
        let scenario = load(name, &self.study.text(name, base), self.folder.path(), &overrides)?;
        let job = |&series: &&'static str| {
            let point = scenario.points().iter().find(|point| point.variant == series)?;
            let outcomes =
                (!base.is_live()).then(|| outcomes::of(&self.study.id, name, base, series)).flatten();
            Some(job(series, point.settings_digest(), outcomes, Work::Network(point.model.clone())))
        };
        Ok(series.iter().filter_map(job).collect())
    }

    pub(super) fn finished<'j>(&self, journal: &'j Journal, job: &Job) -> Option<&'j StudyRun> {
        let entry = self.kept(journal, job);
        entry.filter(|entry| entry.outcomes.is_none() || entry.outcomes == job.outcomes)
    }

    /// Returns whether the journal has only runs of `jobs`.
    pub(super) fn is_all(&self, jobs: &[Job], journal: &Journal) -> bool {
        jobs.iter().filter(|job| self.kept(journal, job).is_some()).count() == journal.len()
    }

    /// Returns whether the journal has a run of `full` that is longer than the runs of `short`.
    pub(super) fn has_longer(&self, short: &[Job], full: &[Job], journal: &Journal) -> bool {
        let short: HashSet<_> = short.iter().map(|job| job.digest).collect();
        full.iter().any(|job| !short.contains(&job.digest) && self.finished(journal, job).is_some())
    }

    /// Returns the journal's entry of a run, of any outcomes.
    fn kept<'j>(&self, journal: &'j Journal, job: &Job) -> Option<&'j StudyRun> {
        let StudyFigure { id, cases, .. } = &self.study.figures[job.figure];
        journal::find(journal, job.digest, [id, job.base.name(), &cases[job.case].x, job.series])
    }

    /// Returns whether the options ask for a run.
    pub(super) fn is_wanted(&self, job: &Job) -> bool {
        let StudyFigure { id, cases, .. } = &self.study.figures[job.figure];
        self.options.only.is_empty() || self.options.only.iter().any(|part| part.has(id, &cases[job.case].x))
    }

    /// Returns the figure, base, x and scheme of a run.
    pub(super) fn names(&self, job: &Job) -> [String; 4] {
        let StudyFigure { id, cases, .. } = &self.study.figures[job.figure];
        [id, job.base.name(), &cases[job.case].x, job.series].map(str::to_owned)
    }

    /// Runs the jobs that are not in the journal.
    pub(super) fn run(
        &self,
        jobs: &[Job],
        journal: &mut Journal,
        progress: OnProgress<'_>,
    ) -> Result<(), ReproduceError> {
        let open = jobs.iter().filter(|job| self.finished(journal, job).is_none());
        let (live, open): (Vec<&Job>, Vec<&Job>) = open.partition(|job| job.base.is_live());
        // Tasks that this system cannot run are reported before anything runs.
        for job in &live {
            let can = match &job.work {
                Work::Network(model) => kernel::check(model),
                Work::Task(task) => task.check(),
            };
            can.map_err(|problem| self.kernel_error(job, problem))?;
        }
        let of = open.len() + live.len();
        let (mut networks, mut models, mut tasks) = (Vec::new(), Vec::new(), Vec::new());
        for jobs in by_run(open) {
            match &jobs[0].work {
                Work::Network(model) => {
                    networks.push(jobs);
                    models.push(model);
                }
                Work::Task(task) => tasks.push((jobs, task)),
            }
        }
        let gather = Gather::new(of, progress, journal);
        let threads = self.options.threads;
        bench::Bench { threads, memory_max: u64::MAX, watch: &gather, workers: None }.run(
            &models,
            |index, outcome| {
                let entries = networks[index].iter().map(|job| self.entry(job, &outcome));
                Ok(gather.keep(entries.collect())?)
            },
        )?;
        self.run_tasks(&tasks, &gather)?;
        // Tasks by the wall clock run one after the other, without other tasks.
        for job in live {
            let entries = match &job.work {
                Work::Network(model) => vec![self.carry(job, model, &|| gather.goes_on())?],
                Work::Task(task) => self.perform(&[job], task.as_ref(), &|| gather.goes_on())?,
            };
            gather.keep(entries).map_err(ReproduceError::Journal)?;
        }
        Ok(())
    }

    /// Runs tasks, which share nothing: each core takes the next.
    fn run_tasks(
        &self,
        tasks: &[(Vec<&Job>, &Arc<dyn Task>)],
        gather: &Gather<'_>,
    ) -> Result<(), ReproduceError> {
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((jobs, task)) = tasks.get(next.fetch_add(1, atomic::Ordering::Relaxed)) {
                if !gather.goes_on() {
                    return Err(ReproduceError::Cancelled);
                }
                let entries = self.perform(jobs, task.as_ref(), &|| gather.goes_on())?;
                gather.keep(entries).map_err(ReproduceError::Journal)?;
            }
            Ok(())
        };
        thread::scope(|scope| {
            let others = 1..self.options.threads.clamp(1, tasks.len().max(1));
            // Where no further thread can be started, the others do the work.
            let others = others.map_while(|_| thread::Builder::new().spawn_scoped(scope, work).ok());
            let others: Vec<_> = others.collect();
            let own = work();
            let panicked = "a task that fails says so and does not panic";
            others.into_iter().map(|other| other.join().expect(panicked)).fold(own, Result::and)
        })
    }

    /// Does the work that all of `jobs` have in common, and makes an entry for each.
    fn perform(
        &self,
        jobs: &[&Job],
        task: &dyn Task,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Vec<StudyRun>, ReproduceError> {
        let measured = task.measure(goes_on);
        if !goes_on() {
            return Err(ReproduceError::Cancelled);
        }
        let measured = measured.map_err(|problem| self.kernel_error(jobs[0], problem))?;
        let entry = |job: &&Job| {
            let figure = &self.study.figures[job.figure];
            let x = &figure.cases[job.case].x;
            let row = |Measured { series, metric, unit, estimate, suspect }: &Measured| {
                let series = series.unwrap_or(job.series);
                let mut row = StudyRow::new(&figure.id, job.base.name(), series, x, metric, unit);
                row.set_measured(estimate);
                row.suspect = *suspect;
                row
            };
            self.entry_of(job, 0, measured.iter().map(row).collect())
        };
        Ok(jobs.iter().map(entry).collect())
    }

    /// Makes a run, and repeats it a few times if the machine was too slow for it.
    fn carry(
        &self,
        job: &Job,
        model: &Model,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<StudyRun, ReproduceError> {
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
        let x = self.study.figures[job.figure].cases[job.case].x.clone();
        ReproduceError::Kernel { scheme: job.series.to_owned(), x, problem }
    }

    /// Makes the journal's entry of a run.
    pub(super) fn entry(&self, job: &Job, outcome: &Outcome) -> StudyRun {
        let figure = &self.study.figures[job.figure];
        let case = &figure.cases[job.case];
        // A short run has no time for the study's warm-up.
        let warmup = match (case.duration, job.duration()) {
            (Some((full, _)), Some(duration)) if duration < full => case.warmup / 4,
            (Some(_), _) => case.warmup,
            (None, _) => Span::ZERO,
        };
        let row = |name, unit| StudyRow::new(&figure.id, job.base.name(), job.series, &case.x, name, unit);
        let measured = figure.metrics.iter().filter_map(|metric| {
            let mut row = row(&metric.name, &metric.unit);
            row.set_measured(&metric.measure(outcome, warmup)?);
            row.flows = case.flows(job.quick);
            Some(row)
        });
        let mut rows: Vec<StudyRow> = measured.collect();
        let (series, base) = (job.series, job.base);
        rows.extend(self.study.further_rows(&FinishedRun { figure, case, series, base, outcome }));
        self.entry_of(job, outcome.counters.packet_hops, rows)
    }

    /// Returns whether a row is of a run's point.
    pub(super) fn is_at(&self, job: &Job, row: &StudyRow) -> bool {
        let figure = &self.study.figures[job.figure];
        (row.figure.as_str(), row.base.as_str()) == (figure.id.as_str(), job.base.name())
            && row.x == figure.cases[job.case].x
    }

    pub(super) fn entry_of(&self, job: &Job, packet_hops: u64, rows: Vec<StudyRow>) -> StudyRun {
        let figure = &self.study.figures[job.figure];
        StudyRun {
            digest: journal::text(job.digest),
            version: journal::VERSION.to_owned(),
            commit: self.options.commit.clone(),
            outcomes: job.outcomes.clone(),
            seed: job.seed,
            figure: figure.id.clone(),
            base: job.base.name().to_owned(),
            x: figure.cases[job.case].x.clone(),
            series: job.series.to_owned(),
            packet_hops,
            rows,
        }
    }
}

/// Puts jobs of the same digest together, which are one run, in the order of the first of each: several figures may
/// measure different things in it, or draw it beside different others.
fn by_run(jobs: Vec<&Job>) -> Vec<Vec<&Job>> {
    let mut runs: Vec<Vec<&Job>> = Vec::new();
    let mut places = BTreeMap::new();
    for job in jobs {
        let place = *places.entry(job.digest).or_insert(runs.len());
        if place == runs.len() {
            runs.push(Vec::new());
        }
        runs[place].push(job);
    }
    runs
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

/// The number of attempts at a run before its numbers count as they are, marked as suspect.
const TRIES: u32 = 3;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::study;

    /// Flows of the runs that are passed over, but for those at the load [`LISTED_AT`]: each has a list to recompute.
    const LONGEST: u64 = 100_000;
    const LISTED_AT: &str = "0.5";

    #[test]
    fn figures_share_the_run_that_they_have_in_common() {
        let study: &'static Study = study("hull");
        let finish = |only: &[&str]| {
            let only = only.iter().map(|part| part.parse().expect("any text is a part")).collect();
            let (threads, servers) = (1, PathBuf::new());
            let options = Options { quick: true, threads, seed: 1, only, servers, commit: None };
            let bench =
                Bench { study, folder: study.laid_out().expect("a temporary folder"), options: &options };
            let jobs = bench.jobs(true, 1).expect("shipped scenarios load");
            let jobs: Vec<Job> = jobs.into_iter().filter(|job| bench.is_wanted(job)).collect();
            let mut journal = Journal::in_memory();
            bench.run(&jobs, &mut journal, &|_, _, _| true).expect("they run");
            let entry = |job: &Job| bench.finished(&journal, job).expect("it was run").clone();
            let mut entries: Vec<StudyRun> = jobs.iter().map(entry).collect();
            entries.sort_by_key(|entry| (entry.figure.clone(), entry.base.clone()));
            (by_run(jobs.iter().collect()).len(), entries)
        };
        let (runs, together) = finish(&["fig2b-phase", "fig2b-window"]);
        assert_eq!(runs, together.len() - 1, "one run is of both figures");
        let alone = ["fig2b-phase", "fig2b-window"].map(|figure| finish(&[figure]).1);
        assert_eq!(together, alone.concat(), "and both measure what they measure alone");
    }

    /// A day of runs is repeated where a key moves unnoticed.
    #[test]
    fn the_committed_journal_has_the_keys_of_today_s_points() {
        let study: &'static Study = study("qjump");
        let options = Options {
            quick: false,
            threads: 1,
            seed: 1,
            only: Vec::new(),
            servers: PathBuf::new(),
            commit: None,
        };
        let folder = study.laid_out().expect("a temporary folder can be written to");
        let bench = Bench { study, folder, options: &options };
        let mut keys = BTreeSet::new();
        for (index, figure) in study.figures.iter().enumerate() {
            let series: Vec<&'static str> = figure.series.iter().map(String::as_str).collect();
            for (case, quick) in (0..figure.cases.len()).flat_map(|case| [(case, true), (case, false)]) {
                let Case { x, .. } = &figure.cases[case];
                let is_long = !quick && figure.cases[case].flows(false) == Some(LONGEST) && x != LISTED_AT;
                if is_long || (quick && !figure.is_in_quick(case)) {
                    continue;
                }
                for base in &figure.bases {
                    let jobs =
                        bench.point(index, case, &series, *base, quick, 1).expect("shipped scenarios load");
                    keys.extend(jobs.iter().map(|job| (journal::text(job.digest), figure.id.clone(), *base)));
                }
            }
        }
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproductions/qjump/journal.jsonl");
        let text = std::fs::read_to_string(path).expect("the journal is committed");
        let mut checked = 0;
        for line in text.lines() {
            let line =
                plimsoll_experiment::store::sealed_line::opened(line).expect("a line has its checksum");
            let StudyRun { digest, figure, base, x, series, rows, .. } =
                serde_json::from_str(&line).expect("a line is an entry");
            if rows[0].flows == Some(LONGEST) && x != LISTED_AT {
                continue;
            }
            let base_of_key = study.bases.into_iter().find(|known| known.name() == base).expect("a base");
            let place = format!("{figure}, {base}, {series} at {x}");
            assert!(keys.contains(&(digest, figure, base_of_key)), "{place} has the key of no point");
            checked += 1;
        }
        assert!(checked > 150, "{checked} lines");
    }
}
