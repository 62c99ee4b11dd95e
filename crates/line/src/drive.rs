//! Runs what the searches of all variants ask for, on all cores, until every line is known.

use std::collections::BTreeMap;
use std::path::Path;

use plimsoll_experiment::StoreError;
use plimsoll_results::outcome::{Outcome, Supply};
use plimsoll_results::stats;
use plimsoll_scenario::model::{Model, Run as RunTimes};
use plimsoll_scenario::{Overrides, Point, Scenario, ScenarioError, replicate_seed};
use plimsoll_sim::batch::{self, BatchError};
use plimsoll_sim::{Progress, RunError};
use plimsoll_stats::search::{self, Objectives};
use plimsoll_units::Span;

use crate::journal::{Journal, Key};
use crate::lines::{self, Lines, Searched, Versus};
use crate::measure::{Run, Sample, slow_when_idle, strain};
use crate::over::Over;
use crate::reach::Reach;
use crate::search::{Ask, FirstLook, Line, Range, Search, Slos, State, rounded};
use crate::slo::{Metric, Slo};

/// How often a run without a message is made ten times as long, to learn how many messages there are.
const LENGTHENED: u32 = 5;

/// The options of a search.
#[derive(Clone, PartialEq, Debug)]
pub struct Options {
    /// The variants to search, by name; none stands for all.
    pub variants: Vec<String>,
    /// The wanted width of a line's interval, as a share of the load.
    pub precision: f64,
    /// Most runs of one load.
    pub replicates_max: u32,
    /// Messages of each objective's workload that a run shall have; the scenario's own run length if
    /// `None`.
    pub messages: Option<u64>,
    /// The load to be judged beside the line, in the unit of the load; today's if `None`.
    pub at: Option<f64>,
    /// The number of runs at the same time.
    pub threads: usize,
    /// Forget the runs that the directory holds.
    pub anew: bool,
    /// Forget those runs of the directory that are damaged.
    pub repair: bool,
}

/// The calls that a search makes while it works; `goes_on` and `on_run` are called from any thread.
pub trait Watch: Sync {
    /// The search calls this with the number of runs that the directory held already.
    fn on_begin(&self, _there: usize) {}
    /// The search calls this when the directory held something that it does not use.
    fn on_warning(&self, _warning: &str) {}
    /// The search calls this when a variant at a load has been judged by so many runs.
    fn on_judged(&self, _variant: &str, _load: &str, _verdict: &str, _runs: usize) {}
    /// The search calls this when a first look, of one run a load, has bracketed the lines.
    fn on_first_look(&self, _lines: &[(String, Line)]) {}
    /// The search calls this before it makes several runs, with the lines so far.
    fn on_round(&self, _round: &Round<'_>) {}
    /// The search calls this when a run of the round has progressed; `share` is the part that is done, 0 to 1.
    fn on_progress(&self, _run: usize, _share: f64) {}
    /// The search calls this when run number `run` of the round is done and kept.
    fn on_run(&self, _run: usize) {}
    /// Returns the number of bytes that the runs in progress may need together.
    fn memory_max(&self) -> u64 {
        u64::MAX
    }
    /// Returns false to stop the search.
    fn goes_on(&self) -> bool {
        true
    }
}

/// Runs that are made beside each other.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Round<'a> {
    /// The number of these runs that are not kept yet.
    pub runs: usize,
    /// An estimate of the number of runs until all lines are known, these included.
    pub left: usize,
    /// The lines so far, by variant; none while variants are compared.
    pub lines: &'a [(String, Line)],
}

/// The reasons why a search ends without lines.
#[derive(Debug, thiserror::Error)]
pub enum Stopped {
    /// [`Watch::goes_on`] returned false.
    #[error("the search was cancelled")]
    Cancelled,
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
struct Variant {
    label: String,
    name: String,
    sweep: Vec<(String, String)>,
}

struct Driver<'a> {
    scenario: &'a Scenario,
    over: &'a Over,
    slos: &'a [Slo],
    options: &'a Options,
    watch: &'a dyn Watch,
    journal: Journal,
    variants: Vec<Variant>,
    /// The settings laid over the scenario beside the load.
    length: Option<String>,
    /// For each load as it is written, a model for each variant.
    models: BTreeMap<String, Vec<Model>>,
}

/// Finds the line of every variant. Finished runs are kept in the folder `dir`, if any, and those that are there
/// already are not run again.
///
/// # Errors
/// If a run fails, or cannot be kept, or the search is cancelled.
pub fn draw(
    scenario: &Scenario,
    over: &Over,
    slos: &[Slo],
    options: &Options,
    dir: Option<&Path>,
    watch: &dyn Watch,
) -> Result<Lines, Stopped> {
    let journal = match dir {
        Some(dir) => Journal::open(dir, options.anew, options.repair)?,
        None => Journal::default(),
    };
    watch.on_begin(journal.len());
    journal.dropped().iter().for_each(|warning| watch.on_warning(warning));
    let mut variants = variants(scenario.points(), &over.key);
    if !options.variants.is_empty() {
        variants.retain(|variant| options.variants.contains(&variant.name));
    }
    let mut driver = Driver {
        scenario,
        over,
        slos,
        options,
        watch,
        journal,
        variants,
        length: None,
        models: BTreeMap::new(),
    };
    let start = options.at.unwrap_or(over.today);
    driver.length = driver.length(rounded(start.clamp(over.low, over.high)))?;
    let range = Range {
        low: over.low.min(start),
        start,
        high: over.high,
        precision: options.precision,
        replicates_max: options.replicates_max,
    };
    let reaches = driver.reaches()?;
    let mut searches: Vec<Search<'_>> = reaches.iter().map(|reach| reach.search(Slos(slos), range)).collect();
    driver.first_look(&reaches, range)?;
    driver.search(&mut searches, "", 0)?;
    let versus = driver.tell_apart(&searches)?;
    let labels: Vec<&str> = driver.variants.iter().map(|variant| variant.label.as_str()).collect();
    let found = labels.into_iter().zip(&searches).zip(&reaches).zip(versus);
    let found = found.map(|(((name, search), reach), versus)| Searched { name, search, reach, versus });
    Ok(lines::assemble(scenario, over, slos, options, found))
}

/// Returns each variant once, without the key that is searched.
fn variants(points: &[Point], key: &str) -> Vec<Variant> {
    let mut variants: Vec<Variant> = Vec::new();
    for point in points {
        let sweep: Vec<(String, String)> =
            point.sweep.iter().filter(|(swept, _)| swept != key).cloned().collect();
        if !variants.iter().any(|known| known.name == point.variant && known.sweep == sweep) {
            let swept: String = sweep.iter().map(|(key, value)| format!(", {key} = {value}")).collect();
            let label = format!("{}{swept}", point.variant);
            variants.push(Variant { label, name: point.variant.clone(), sweep });
        }
    }
    variants
}

impl Driver<'_> {
    /// Computes the loads that offer enough goodput, for each variant.
    fn reaches(&mut self) -> Result<Vec<Reach>, Stopped> {
        let (over, slos) = (self.over, self.slos);
        if slos.iter().all(|slo| slo.metric != Metric::Goodput) {
            return Ok(vec![Reach::default(); self.variants.len()]);
        }
        let models = self.models_at(rounded(over.high))?;
        Ok(models.iter().map(|model| Reach::of(model, over, slos)).collect())
    }

    /// Brackets all lines with one run a load, so that something is known early. The runs are kept, and the search,
    /// which decides by itself, begins with them. Where a round of the search takes no longer than one run, there is
    /// no first look.
    fn first_look(&mut self, reaches: &[Reach], range: Range) -> Result<(), Stopped> {
        let mut to_come: Vec<Search<'_>> =
            reaches.iter().map(|reach| reach.search(Slos(self.slos), range)).collect();
        if self.options.threads >= to_come.iter_mut().map(|search| search.asks().len()).sum() {
            return Ok(());
        }
        let rest = to_come.iter().map(Search::runs_left).sum();
        let range = FirstLook::range(range);
        let mut looks: Vec<search::Search<FirstLook<'_>>> =
            reaches.iter().map(|reach| reach.search(FirstLook(Slos(self.slos)), range)).collect();
        self.search(&mut looks, " by a first run", rest)?;
        self.watch.on_first_look(&self.known(&looks));
        Ok(())
    }

    /// Runs what the searches need until their lines are known. `by` follows the verdicts that are told, and `rest`
    /// further runs are expected afterwards.
    fn search<O: Objectives<Run = Run>>(
        &mut self,
        searches: &mut [search::Search<O>],
        by: &str,
        rest: usize,
    ) -> Result<(), Stopped> {
        loop {
            let mut wanted = Vec::new();
            for (variant, search) in searches.iter_mut().enumerate() {
                wanted.extend(search.asks().into_iter().map(|ask| (variant, ask)));
            }
            if wanted.is_empty() {
                return Ok(());
            }
            let left = rest + searches.iter().map(search::Search::runs_left).sum::<usize>();
            let runs = self.run(&wanted, left, &self.known(searches))?;
            let mut asked: Vec<(usize, f64)> = Vec::new();
            for ((variant, ask), run) in wanted.into_iter().zip(runs) {
                searches[variant].take(ask, run);
                if !asked.contains(&(variant, ask.load)) {
                    asked.push((variant, ask.load));
                }
            }
            for search in searches.iter_mut() {
                if slow_when_idle(search, self.slos).is_some() {
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
            State::Running => return,
            State::Keeps => "met",
            State::Sinks => "violated",
            State::Open => "too near to tell",
        };
        let runs = search.loads().find(|(known, ..)| *known == load).map_or(0, |(_, _, runs)| runs.len());
        let label = &self.variants[variant].label;
        self.watch.on_judged(label, &self.over.shown(load), &format!("{verdict}{by}"), runs);
    }

    /// Compares variants whose intervals overlap run by run, at one load between their lines, against the first
    /// variant; `None` where the intervals are disjoint.
    fn tell_apart(&mut self, searches: &[Search<'_>]) -> Result<Vec<Option<Versus>>, Stopped> {
        let lines: Vec<Line> = searches.iter().map(Search::line).collect();
        let mut found = Vec::new();
        for (variant, line) in lines.iter().enumerate() {
            let base = &lines[0];
            let overlap = line.low().unwrap_or(0.0) <= base.high().unwrap_or(f64::INFINITY)
                && base.low().unwrap_or(0.0) <= line.high().unwrap_or(f64::INFINITY);
            let place = match (base.load(), line.load()) {
                (Some(a), Some(b)) if variant > 0 && overlap => rounded((a * b).sqrt()),
                _ => {
                    found.push(None);
                    continue;
                }
            };
            let binding = base.binding().or(line.binding()).unwrap_or(0);
            let replicates = self.options.replicates_max;
            let asks = |of: usize| (0..replicates).map(move |replicate| (of, Ask { load: place, replicate }));
            let wanted: Vec<(usize, Ask)> = asks(0).chain(asks(variant)).collect();
            let runs = self.run(&wanted, wanted.len(), &[])?;
            let (ours, theirs) = runs.split_at(replicates as usize);
            let slo = &self.slos[binding];
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

    /// Computes the length of a run that gives as many messages as wanted, as `--set` takes it: by the first variant at
    /// the load where the search begins.
    fn length(&mut self, load: f64) -> Result<Option<String>, Stopped> {
        let Some(wanted) = self.options.messages else { return Ok(None) };
        let model = &self.models_at(load)?[0].clone();
        let Some(duration) = model.run.duration else { return Err(Stopped::NoDuration) };
        self.length_from(model, duration, wanted, LENGTHENED)
    }

    /// Computes it by a run of `duration`, or by one that is ten times as long if that has no message.
    fn length_from(
        &mut self,
        model: &Model,
        duration: Span,
        wanted: u64,
        times: u32,
    ) -> Result<Option<String>, Stopped> {
        let model =
            &Model { run: RunTimes { duration: Some(duration), ..model.run.clone() }, ..model.clone() };
        let outcome = plimsoll_sim::run(model, &mut |_| self.watch.goes_on())
            .map_err(|error| if self.watch.goes_on() { error.into() } else { Stopped::Cancelled })?;
        let counted = (duration - model.run.warmup).as_secs_f64();
        let run = Run::of(&outcome, self.slos, is_endless(model));
        let of_messages = run.samples.iter().zip(self.slos).filter(|(_, slo)| slo.metric != Metric::Number);
        let fewest = of_messages.min_by_key(|(Sample { messages, .. }, _)| *messages);
        let warmup = model.run.warmup.as_secs_f64();
        self.models.clear();
        match fewest {
            Some((Sample { messages: 0, .. }, _)) if times > 0 => {
                self.length_from(model, duration * 10, wanted, times - 1)
            }
            Some((Sample { messages: 0, .. }, slo)) => Err(Stopped::NoMessage(slo.workload.clone())),
            Some((sample, _)) => {
                let length = warmup + counted * wanted as f64 / sample.messages as f64;
                Ok(Some(format!("run.duration={}us", (length * 1e6).ceil())))
            }
            None => Ok(None),
        }
    }

    fn models_at(&mut self, load: f64) -> Result<&[Model], Stopped> {
        let written = self.over.written(load);
        if !self.models.contains_key(&written) {
            let mut overrides = Overrides { replicates: 1, ..self.scenario.overrides().clone() };
            overrides.set.push(format!("{}={written}", self.over.key));
            overrides.set.extend(self.length.clone());
            let scenario = self.scenario.with_overrides(&overrides).map_err(Stopped::Scenario)?;
            let of = |variant: &Variant| {
                let mine = |point: &&Point| {
                    let swept = point.sweep.iter().filter(|(key, _)| *key != self.over.key);
                    point.variant == variant.name && swept.eq(&variant.sweep)
                };
                scenario.points().iter().find(mine).map(|point| point.model.clone())
            };
            let models: Vec<Model> = self.variants.iter().filter_map(of).collect();
            self.models.insert(written.clone(), models);
        }
        Ok(&self.models[&written])
    }

    /// Returns the runs that are needed, in their order: from the journal, or else run now. `left` and `lines` are
    /// those of [`Round`].
    fn run(
        &mut self,
        wanted: &[(usize, Ask)],
        left: usize,
        lines: &[(String, Line)],
    ) -> Result<Vec<Run>, Stopped> {
        let key = |(variant, ask): &(usize, Ask)| Key {
            variant: self.variants[*variant].label.clone(),
            load: self.over.written(ask.load),
            replicate: ask.replicate,
        };
        let keys: Vec<Key> = wanted.iter().map(key).collect();
        let mut todo: Vec<usize> =
            (0..wanted.len()).filter(|&index| self.journal.get(&keys[index]).is_none()).collect();
        self.watch.on_round(&Round {
            runs: todo.len(),
            left: left.saturating_sub(wanted.len() - todo.len()),
            lines,
        });
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
        let keeper = Keeper { driver: self, keys: &keys, todo: &todo, models: &models };
        match batch::run_all(&models, self.options.threads, &keeper) {
            _ if !self.watch.goes_on() => return Err(Stopped::Cancelled),
            Ok(()) => {}
            Err(BatchError::Run(error)) => return Err(error.into()),
            Err(BatchError::Owner(error)) => {
                return Err(match error.downcast::<StoreError>() {
                    Ok(error) => Stopped::Journal(*error),
                    Err(_) => Stopped::Cancelled,
                });
            }
        }
        Ok(keys.iter().map(|key| self.journal.get(key).expect("it has just been kept")).collect())
    }
}

/// Appends the runs of a batch to the journal as they are done.
struct Keeper<'a> {
    driver: &'a Driver<'a>,
    keys: &'a [Key],
    todo: &'a [usize],
    models: &'a [&'a Model],
}

impl batch::Watch for Keeper<'_> {
    fn on_progress(&self, index: usize, progress: Progress) -> bool {
        if let Some(duration) = self.models[index].run.duration {
            let share = progress.now.as_secs_f64() / duration.as_secs_f64();
            self.driver.watch.on_progress(index, share.min(1.0));
        }
        self.driver.watch.goes_on()
    }

    fn memory_max(&self) -> u64 {
        self.driver.watch.memory_max()
    }

    fn on_done(
        &self,
        index: usize,
        outcome: Outcome,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let run = Run::of(&outcome, self.driver.slos, is_endless(self.models[index]));
        self.driver.journal.keep(self.keys[self.todo[index]].clone(), run)?;
        self.driver.watch.on_run(index);
        if self.driver.watch.goes_on() { Ok(()) } else { Err(Box::new(RunError::Cancelled)) }
    }
}

/// Whether a run ends at its duration, since some of its flows have no end of their own.
fn is_endless(model: &Model) -> bool {
    model.workload.values().any(|workload| workload.params().supply() == Supply::Endless)
}
