//! Makes the runs that the searches of all variants request, on all cores, until every line is known.

mod trials;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use plimsoll_experiment::slo::Metric;
use plimsoll_experiment::{Bench, BenchWatch, Store, StoreError};
use plimsoll_results::outcome::Supply;
use plimsoll_results::run_dir::Existing;
use plimsoll_results::stats;
use plimsoll_scenario::model::{Model, Run as RunTimes};
use plimsoll_scenario::{Point, ScenarioError, replicate_seed};
use plimsoll_sim::batch::BatchError;
use plimsoll_sim::{Progress, RunError};
use plimsoll_stats::search::{self, Objectives};

use crate::journal::{self, JournaledRun, Key};
use crate::lines::{self, Lines, Searched, Versus};
use crate::measure::{Run, SloSample, slow_when_idle, strain};
use crate::pace::{self, Pace};
use crate::question::AskedLine;
use crate::reach::Reach;
use crate::search::{
    Ask, ExpectedLines, FirstLook, Line, SearchRange, SearchState, Slos, VariantSearch, rounded,
};
use crate::so_far::{Judged, SoFar};
pub use trials::{LineTrial, trials};

/// The number of times that a run with too few messages is made ten times as long, to measure their rate.
const LENGTHENED: u32 = 5;
/// The messages by which a rate is measured where time is short.
const ENOUGH: u64 = 20;
/// The part of the scenario's run whose messages are counted first where time is short.
const SHORT: u64 = 16;

/// The calls that a search makes while it works, from any thread.
pub trait SearchWatch: Sync {
    /// Receives an event of the search.
    fn on_news(&self, _news: &SearchNews<'_>, _so_far: &SoFar) {}
    /// Called when a run has progressed, or is done and kept.
    fn on_progress(&self, _so_far: &SoFar) {}
    /// Returns false to stop the search.
    fn goes_on(&self) -> bool {
        true
    }
    /// Returns true once the search shall end with its results so far.
    fn is_out_of_time(&self) -> bool {
        false
    }
    /// Returns the time since the search began, by which runs are priced; zero where nothing tells the time.
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }
}

/// The events of a search that a progress display shows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SearchNews<'a> {
    /// The search begins; the directory may have finished runs already.
    Begin,
    /// The directory held something that the search does not use.
    Warning(&'a str),
    /// The price of a run at the load where the search begins, and of the search, as far as an estimate goes.
    Cost {
        /// The length of a run in messages.
        messages: u64,
        /// The time that it takes.
        run: Duration,
        /// The time that the search takes with all its runs.
        search: Duration,
    },
    /// A variant at a load has been judged.
    Judged(&'a Judged),
    /// A first look, of one run a load, has bracketed the lines.
    FirstLook,
    /// Several runs begin, and the lines may be other ones.
    Round,
}

/// The resources of a search: its threads, and the memory that concurrent runs may need together, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Room {
    /// The number of runs at the same time.
    pub threads: usize,
    /// The number of bytes that all concurrent runs may need.
    pub memory_max: u64,
}

/// The reasons why a search ends without lines.
#[derive(Debug, thiserror::Error)]
pub enum SearchStop {
    /// [`SearchWatch::goes_on`] returned false.
    #[error("the search was cancelled")]
    Cancelled,
    /// [`SearchWatch::is_out_of_time`] returned true before a load was run.
    #[error("the time ended before a run did; give the search more, or a smaller or shorter scenario")]
    OutOfTime,
    /// The scenario is invalid at some load.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Scenario(Vec<ScenarioError>),
    /// A run of the search failed.
    #[error(transparent)]
    Run(#[from] RunError),
    /// Finished runs cannot be kept.
    #[error(transparent)]
    Journal(#[from] StoreError),
    /// The length of a run cannot be chosen.
    #[error(
        "`--messages` makes `run.duration` longer or shorter, and the scenario has none; say how much its \
         workloads send with `--set workload.NAME.count=...`"
    )]
    NoDuration,
    /// A run has no message to judge.
    #[error(
        "no message of `{0}` is created after the warm-up; make the run longer with `--set run.duration=...`"
    )]
    NoMessage(String),
}

/// A variant, at one point of a sweep if there is one.
struct SearchedVariant {
    label: String,
    name: String,
    sweep: Vec<(String, String)>,
}

struct Driver<'a> {
    asked: &'a AskedLine<'a>,
    room: Room,
    watch: &'a dyn SearchWatch,
    journal: Mutex<Store<JournaledRun>>,
    variants: Vec<SearchedVariant>,
    /// The length of runs in messages, with their measured pace; `None` for the scenario's own length.
    length: Option<(Pace, u64)>,
    /// Whether the runs belong to the first look, which may be shorter.
    is_first_look: bool,
    /// The lines of a first look, with which a search of a given length of runs begins, by variant.
    looked: Vec<(String, Line)>,
    /// For each load as it is written, a model for each variant.
    models: BTreeMap<String, Vec<Model>>,
    so_far: Mutex<SoFar>,
}

/// Finds the line of every variant. Finished runs are kept in the folder `dir`, if any. Runs that it already has are
/// not repeated, unless `existing` demands it.
///
/// # Errors
/// If a run fails, or cannot be kept, or the search is cancelled.
pub fn draw(
    asked: &AskedLine<'_>,
    dir: Option<&Path>,
    existing: Existing,
    room: Room,
    watch: &dyn SearchWatch,
) -> Result<Lines, SearchStop> {
    let journal = match dir {
        Some(dir) => journal::open(dir, existing)?,
        None => Store::in_memory(),
    };
    let mut driver = Driver::new(asked, journal, room, watch);
    let AskedLine { slos, over, question, .. } = asked;
    let dropped = driver.journal().dropped().map(str::to_owned);
    driver.tell(&SearchNews::Begin);
    dropped.iter().for_each(|warning| driver.tell(&SearchNews::Warning(warning)));
    let start = driver.start();
    let pace = match question.messages {
        Some(_) => driver.pace(1, LENGTHENED)?,
        None => None,
    };
    driver.tell_cost(pace);
    driver.length = pace.zip(question.messages);
    let range = SearchRange {
        low: if over.is_load() { over.low.min(start) } else { over.low },
        start,
        high: over.high,
        expected: None,
        precision: question.precision,
        replicates_max: question.replicates_max,
        axis: over.axis(),
    };
    let reaches = driver.reaches()?;
    let looked = driver.first_look(&reaches, range, pace);
    let by_look: ExpectedLines = driver.looked.iter().cloned().collect();
    let known = if asked.expected.is_empty() { &by_look } else { &asked.expected };
    let range = |variant: &SearchedVariant| expected(range, known.get(&variant.label));
    let ranges: Vec<SearchRange> = driver.variants.iter().map(range).collect();
    let mut searches: Vec<VariantSearch<'_>> =
        reaches.iter().zip(&ranges).map(|(reach, range)| reach.search(Slos(slos), *range)).collect();
    let searched =
        looked.and_then(|()| driver.search(&mut searches, "", 0)).and_then(|()| driver.tell_apart(&searches));
    let versus = match searched {
        Err(SearchStop::OutOfTime) if is_known(&searches) || !driver.looked.is_empty() => {
            vec![None; searches.len()]
        }
        searched => searched?,
    };
    let looked =
        |number: usize| driver.looked.get(number).map(|(_, line)| line.brief(|load| over.shown(load)));
    let unfinished: Vec<Option<Option<String>>> = searches
        .iter_mut()
        .enumerate()
        .map(|(number, search)| (!search.asks().is_empty()).then(|| looked(number)))
        .collect();
    let labels: Vec<&str> = driver.variants.iter().map(|variant| variant.label.as_str()).collect();
    let found = labels.into_iter().zip(&searches).zip(&reaches).zip(versus).zip(unfinished);
    let found = found.map(|((((name, search), reach), versus), unfinished)| Searched {
        name,
        search,
        reach,
        versus,
        unfinished,
    });
    Ok(lines::assemble(asked, found))
}

/// Returns whether a search has runs.
fn is_known(searches: &[VariantSearch<'_>]) -> bool {
    searches.iter().any(|search| search.loads().next().is_some())
}

/// Returns the range of a search that begins at the ends of a line that is expected.
fn expected(range: SearchRange, line: Option<&Line>) -> SearchRange {
    let Some(line) = line else { return range };
    SearchRange {
        start: line.met().or(line.violated()).unwrap_or(range.start),
        expected: line.violated(),
        ..range
    }
}

/// Returns the length of runs in messages with which a search takes about `budget`; `None` where the scenario's runs
/// end by themselves, so that their length cannot be chosen.
///
/// # Errors
/// As for [`draw`].
pub fn affordable(
    asked: &AskedLine<'_>,
    budget: Duration,
    room: Room,
    watch: &dyn SearchWatch,
) -> Result<Option<u64>, SearchStop> {
    let mut driver = Driver::new(asked, Store::in_memory(), room, watch);
    match driver.pace(SHORT, 2 * LENGTHENED) {
        Ok(pace) => Ok(pace.map(|pace| pace.affordable(budget, driver.variants.len(), room.threads))),
        Err(SearchStop::NoDuration) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Returns each variant once, without the key that is searched.
fn variants(points: &[Point], key: &str) -> Vec<SearchedVariant> {
    let mut variants: Vec<SearchedVariant> = Vec::new();
    for point in points {
        let sweep: Vec<(String, String)> =
            point.sweep.iter().filter(|(swept, _)| swept != key).cloned().collect();
        if !variants.iter().any(|known| known.name == point.variant && known.sweep == sweep) {
            let swept: String = sweep.iter().map(|(key, value)| format!(", {key} = {value}")).collect();
            let label = format!("{}{swept}", point.variant);
            variants.push(SearchedVariant { label, name: point.variant.clone(), sweep });
        }
    }
    variants
}

impl<'a> Driver<'a> {
    fn new(
        asked: &'a AskedLine<'a>,
        journal: Store<JournaledRun>,
        room: Room,
        watch: &'a dyn SearchWatch,
    ) -> Driver<'a> {
        let AskedLine { scenario, over, question, .. } = asked;
        let mut variants = variants(scenario.points(), &over.key);
        if !question.variants.is_empty() {
            variants.retain(|variant| question.variants.contains(&variant.name));
        }
        let so_far = Mutex::new(SoFar { there: journal.len(), ..SoFar::default() });
        let (journal, models) = (Mutex::new(journal), BTreeMap::new());
        Driver {
            asked,
            room,
            watch,
            journal,
            variants,
            length: None,
            is_first_look: false,
            looked: Vec::new(),
            models,
            so_far,
        }
    }

    /// Returns the value at which the search begins.
    fn start(&self) -> f64 {
        self.asked.at.unwrap_or(self.asked.over.start())
    }

    fn so_far(&self) -> MutexGuard<'_, SoFar> {
        self.so_far.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn journal(&self) -> MutexGuard<'_, Store<JournaledRun>> {
        self.journal.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, news: &SearchNews<'_>) {
        self.watch.on_news(news, &self.so_far());
    }

    /// Computes the loads that offer enough goodput, for each variant.
    fn reaches(&mut self) -> Result<Vec<Reach>, SearchStop> {
        let AskedLine { over, slos, .. } = self.asked;
        if !over.is_load() || slos.iter().all(|slo| slo.metric != Metric::Goodput) {
            return Ok(vec![Reach::default(); self.variants.len()]);
        }
        let models = self.models_at(rounded(over.high))?;
        Ok(models.iter().map(|model| Reach::of(model, over, slos)).collect())
    }

    /// Brackets all lines with one run a load, so that something is known early. The runs are kept, and the search,
    /// which decides by itself, begins with the ones that are as long as its own. Where a round of the search takes no
    /// longer than one run, there is no first look.
    fn first_look(
        &mut self,
        reaches: &[Reach],
        range: SearchRange,
        pace: Option<Pace>,
    ) -> Result<(), SearchStop> {
        let short = pace.zip(self.asked.question.messages.and_then(pace::of_first_look));
        let mut to_come: Vec<VariantSearch<'_>> =
            reaches.iter().map(|reach| reach.search(Slos(&self.asked.slos), range)).collect();
        let round = to_come.iter_mut().map(|search| search.asks().len()).sum();
        let is_known = !self.asked.expected.is_empty();
        if is_known || (short.is_none() && self.room.threads >= round) {
            return Ok(());
        }
        let rest = to_come.iter().map(VariantSearch::runs_left).sum();
        let range = FirstLook::range(range);
        let mut looks: Vec<search::Search<FirstLook<'_>>> =
            reaches.iter().map(|reach| reach.search(FirstLook(Slos(&self.asked.slos)), range)).collect();
        let length = self.length;
        if short.is_some() {
            self.use_length(short, true);
        }
        let looked = self.search(&mut looks, " by a first run", rest);
        self.use_length(length, false);
        self.so_far().lines = self.known(&looks);
        if pace.is_some() {
            self.looked = self.known(&looks);
        }
        self.tell(&SearchNews::FirstLook);
        looked
    }

    /// Uses another length of runs from now on.
    fn use_length(&mut self, length: Option<(Pace, u64)>, is_first_look: bool) {
        if self.length != length {
            self.models.clear();
        }
        (self.length, self.is_first_look) = (length, is_first_look);
    }

    /// Makes the runs that the searches need until their lines are known. `by` receives the verdicts, and `rest`
    /// further runs are expected afterwards.
    fn search<O: Objectives<Run = Run>>(
        &mut self,
        searches: &mut [search::Search<O>],
        by: &str,
        rest: usize,
    ) -> Result<(), SearchStop> {
        loop {
            let mut wanted = Vec::new();
            for (variant, search) in searches.iter_mut().enumerate() {
                wanted.extend(search.asks().into_iter().map(|ask| (variant, ask)));
            }
            if wanted.is_empty() {
                return Ok(());
            }
            let left = rest + searches.iter().map(search::Search::runs_left).sum::<usize>();
            let runs = self.run(&wanted, left, Some(self.known(searches)))?;
            let mut asked: Vec<(usize, f64)> = Vec::new();
            for ((variant, ask), run) in wanted.into_iter().zip(runs) {
                searches[variant].take(ask, run);
                if !asked.contains(&(variant, ask.load)) {
                    asked.push((variant, ask.load));
                }
            }
            // Another key may change the time that a message takes on idle links.
            for search in searches.iter_mut().filter(|_| self.asked.over.is_load()) {
                if slow_when_idle(search, &self.asked.slos).is_some() {
                    search.rule_out();
                }
            }
            for (variant, load) in asked {
                self.tell_verdict(variant, load, &searches[variant], by);
            }
        }
    }

    /// Returns the lines so far, by variant.
    fn known<O: Objectives>(&self, searches: &[search::Search<O>]) -> Vec<(String, Line)> {
        let labels = self.variants.iter().map(|variant| variant.label.clone());
        labels.zip(searches.iter().map(search::Search::line)).collect()
    }

    fn tell_verdict<O: Objectives>(&self, variant: usize, load: f64, search: &search::Search<O>, by: &str) {
        let verdict = match search.state_of(load) {
            SearchState::Running => return,
            SearchState::Keeps => "met",
            SearchState::Sinks => "violated",
            SearchState::Open => "too near to tell",
        };
        let runs = search.loads().find(|(known, ..)| *known == load).map_or(0, |(_, _, runs)| runs.len());
        let (variant, load) = (self.variants[variant].label.clone(), self.asked.over.shown(load));
        let judged = Judged { variant, load, verdict: format!("{verdict}{by}"), runs };
        self.so_far().judged.push(judged.clone());
        self.tell(&SearchNews::Judged(&judged));
    }

    /// Compares variants whose intervals overlap run by run, at one load between their lines, against the first
    /// variant; `None` where the intervals are disjoint.
    fn tell_apart(&mut self, searches: &[VariantSearch<'_>]) -> Result<Vec<Option<Versus>>, SearchStop> {
        let lines: Vec<Line> = searches.iter().map(VariantSearch::line).collect();
        let mut found = Vec::new();
        for (variant, line) in lines.iter().enumerate() {
            let base = &lines[0];
            let overlap = line.side() == base.side()
                && line.low().unwrap_or(0.0) <= base.high().unwrap_or(f64::INFINITY)
                && base.low().unwrap_or(0.0) <= line.high().unwrap_or(f64::INFINITY);
            let place = match (base.load(), line.load()) {
                (Some(a), Some(b)) if variant > 0 && overlap => {
                    self.asked.over.axis().rounded((a * b).sqrt())
                }
                _ => {
                    found.push(None);
                    continue;
                }
            };
            let binding = base.binding().or(line.binding()).unwrap_or(0);
            let replicates = self.asked.question.replicates_max;
            let asks = |of: usize| (0..replicates).map(move |replicate| (of, Ask { load: place, replicate }));
            let wanted: Vec<(usize, Ask)> = asks(0).chain(asks(variant)).collect();
            let runs = self.run(&wanted, wanted.len(), None)?;
            let (ours, theirs) = runs.split_at(replicates as usize);
            let slo = &self.asked.slos[binding];
            let at = |run: &Run| strain(slo, &[run.samples.get(binding)?]);
            let pairs: Vec<f64> =
                ours.iter().zip(theirs).filter_map(|(base, other)| Some(at(other)? - at(base)?)).collect();
            let base = stats::mean(&ours.iter().filter_map(at).collect::<Vec<f64>>()).unwrap_or(0.0);
            found.push(stats::mean(&pairs).map(|value| Versus {
                base,
                load: place,
                slo: binding,
                runs: pairs.len(),
                difference: value,
                interval: stats::mean_interval(&pairs, stats::LEVEL),
            }));
        }
        Ok(found)
    }

    /// Measures the rate of messages at the load where the search begins, and their cost: by the first variant, in a
    /// run of the scenario's duration over `part`, which becomes longer until it has `part` messages, at most
    /// `lengthened` times. `None` if no objective is about messages.
    fn pace(&mut self, part: u64, lengthened: u32) -> Result<Option<Pace>, SearchStop> {
        let over = &self.asked.over;
        let load = over.axis().rounded(self.start().clamp(over.low, over.high));
        let model = self.models_at(load)?[0].clone();
        self.models.clear();
        let warmup = model.run.warmup;
        let whole = model.run.duration.ok_or(SearchStop::NoDuration)?;
        let (mut counted, factor) = ((whole - warmup) / part, if part > 1 { 4 } else { 10 });
        for left in (0..=lengthened).rev() {
            let duration = warmup + counted;
            let run = RunTimes { duration: Some(duration), ..model.run.clone() };
            let model = Model { run, ..model.clone() };
            let began = self.watch.elapsed();
            let outcome =
                plimsoll_sim::run(&model, &mut |_| self.goes_on()).map_err(|error| self.stopped(error))?;
            let took = self.watch.elapsed() - began;
            let run = Run::of(&outcome, &self.asked.slos, is_endless(&model));
            let of_messages =
                run.samples.iter().zip(&self.asked.slos).filter(|(_, slo)| slo.is_of_messages());
            let fewest = of_messages.min_by_key(|(SloSample { messages, .. }, _)| *messages);
            let Some((SloSample { messages, .. }, slo)) = fewest else { return Ok(None) };
            if *messages >= part.min(ENOUGH) || (left == 0 && *messages > 0) {
                return Ok(Some(Pace {
                    load: over.is_load().then_some(load),
                    is_of_load: slo.workload == self.asked.over.workload(),
                    warmup: warmup.as_secs_f64(),
                    messages_per_second: *messages as f64 / counted.as_secs_f64(),
                    cost: took.as_secs_f64() / duration.as_secs_f64(),
                }));
            }
            if left == 0 {
                return Err(SearchStop::NoMessage(slo.workload.clone()));
            }
            counted = counted * factor;
        }
        Ok(None)
    }

    /// Returns why a run ended with an error, which a watch that stops it may have caused.
    fn stopped(&self, error: impl Into<SearchStop>) -> SearchStop {
        match (self.watch.goes_on(), self.watch.is_out_of_time()) {
            (false, _) => SearchStop::Cancelled,
            (true, true) => SearchStop::OutOfTime,
            (true, false) => error.into(),
        }
    }

    fn tell_cost(&self, pace: Option<Pace>) {
        if let Some((pace, messages)) =
            pace.zip(self.asked.question.messages).filter(|(pace, _)| pace.cost > 0.0)
        {
            let search = pace.search(messages, self.variants.len(), self.room.threads);
            self.tell(&SearchNews::Cost { messages, run: pace.run(messages), search });
        }
    }

    fn models_at(&mut self, load: f64) -> Result<&[Model], SearchStop> {
        let AskedLine { scenario, over, question, .. } = self.asked;
        let written = over.written(load);
        if !self.models.contains_key(&written) {
            let mut overrides = question.overrides(scenario);
            overrides.set.push(format!("{}={written}", over.key));
            overrides.set.extend(self.length.map(|(pace, messages)| pace.length(messages, load)));
            let scenario = scenario.with_overrides(&overrides).map_err(SearchStop::Scenario)?;
            let of = |variant: &SearchedVariant| {
                let mine = |point: &&Point| {
                    let swept = point.sweep.iter().filter(|(key, _)| *key != over.key);
                    point.variant == variant.name && swept.eq(&variant.sweep)
                };
                scenario.points().iter().find(mine).map(|point| point.model.clone())
            };
            let models: Vec<Model> = self.variants.iter().filter_map(of).collect();
            self.models.insert(written.clone(), models);
        }
        Ok(&self.models[&written])
    }

    fn key(&self, (variant, ask): &(usize, Ask)) -> Key {
        let variant = self.variants[*variant].label.clone();
        let load = self.asked.over.written(ask.load);
        Key { variant, load, replicate: ask.replicate, is_short: self.is_first_look }
    }

    /// Returns the runs that are needed, in their order: from the journal, or else run now. `left` runs are expected
    /// until all lines are known, these included; `lines` are the lines so far, or `None` while variants are compared.
    fn run(
        &mut self,
        wanted: &[(usize, Ask)],
        left: usize,
        lines: Option<Vec<(String, Line)>>,
    ) -> Result<Vec<Run>, SearchStop> {
        let keys: Vec<Key> = wanted.iter().map(|wanted| self.key(wanted)).collect();
        let mut todo: Vec<usize> =
            (0..wanted.len()).filter(|&index| self.journal().get(&keys[index]).is_none()).collect();
        self.so_far().on_round(left.saturating_sub(wanted.len() - todo.len()), lines);
        self.tell(&SearchNews::Round);
        // The longest first, so that no core waits long for the last.
        todo.sort_by(|&a, &b| wanted[b].1.load.total_cmp(&wanted[a].1.load).then(a.cmp(&b)));
        let mut models = Vec::with_capacity(todo.len());
        for &index in &todo {
            let (variant, ask) = wanted[index];
            let mut model = self.models_at(ask.load)?[variant].clone();
            model.run.seed = replicate_seed(model.run.seed, ask.replicate);
            models.push(model);
        }
        let models: Vec<&Model> = models.iter().collect();
        let Room { threads, memory_max } = self.room;
        let ended =
            Bench { threads, memory_max, watch: self, workers: None }.run(&models, |index, outcome| {
                let run = Run::of(&outcome, &self.asked.slos, is_endless(models[index]));
                Ok(self.journal().keep(JournaledRun { key: keys[todo[index]].clone(), run })?)
            });
        match ended {
            Ok(()) if self.goes_on() => {}
            Ok(()) => return Err(self.stopped(SearchStop::Cancelled)),
            Err(BatchError::Run(error)) => return Err(self.stopped(error)),
            Err(BatchError::Owner(error)) => {
                return Err(match error.downcast::<StoreError>() {
                    Ok(error) => SearchStop::Journal(*error),
                    Err(_) => self.stopped(SearchStop::Cancelled),
                });
            }
        }
        let journal = self.journal();
        let run = |key: &Key| journal.get(key).expect("it has just been kept").run.clone();
        Ok(keys.iter().map(run).collect())
    }
}

impl BenchWatch for Driver<'_> {
    fn on_progress(&self, run: usize, share: Option<f64>, _: Progress) {
        let mut so_far = self.so_far();
        share.into_iter().for_each(|share| so_far.on_progress(run, share));
        self.watch.on_progress(&so_far);
    }

    fn on_run(&self, run: usize, _: u64) {
        let mut so_far = self.so_far();
        so_far.on_run(run);
        self.watch.on_progress(&so_far);
    }

    fn goes_on(&self) -> bool {
        self.watch.goes_on() && !self.watch.is_out_of_time()
    }
}

/// Whether a run ends at its duration, since some of its flows have no end of their own.
fn is_endless(model: &Model) -> bool {
    model.workload.values().any(|workload| workload.params().supply() == Supply::Endless)
}
