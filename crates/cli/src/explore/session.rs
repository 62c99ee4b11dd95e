//! [`Session`]: what the reader wants, what has been found, and the one worker between them.
//!
//! ```text
//! POST /turn, /line, /replay ──> wanted ──> worker: one job at a time ──> found ──> GET /state, /line, /replay
//!                                  │                      │
//!                                  └── a new turn ────────┴─> cancels the job under way
//! ```
//!
//! A turn of a knob begins with a short run of every variant, and goes on with longer ones, each a scenario of its own:
//! the reader's, with `run.duration` and `run.warmup` cut to a share. The last one is the reader's scenario itself,
//! with further replicates as long as intervals are missing. What is shown is always a whole scenario with its digest.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_line::page::About;
use plimsoll_line::{Lines, Options as LineOptions, Over, Slo, Stopped};
use plimsoll_report::html;
use plimsoll_results::curves::Detail;
use plimsoll_results::outcome::Outcome;
use plimsoll_results::replay::ReplayWindow;
use plimsoll_results::summary::{Options, Warning};
use plimsoll_results::{Curves, PointOutcome, Summary};
use plimsoll_scenario::model::Model;
use plimsoll_scenario::{Overrides, Point, Scenario, ScenarioError};
use plimsoll_sim::batch::{self, BatchError, Watch};
use plimsoll_sim::{Extent, Progress, RunError, estimate};
use plimsoll_units::{Span, Time};
use serde::Serialize;

use super::line_watch::LineWatch;
use crate::job::key;
use crate::memory::Memory;
use crate::output;
use crate::replay::{self, Drawn};
use crate::source::{Source, quoted};

/// What the first look at a turn may take.
const FIRST_LOOK: Duration = Duration::from_millis(350);

/// How long a run is watched to know its speed.
const PROBE: Duration = Duration::from_millis(120);

/// Each look is so many times longer than the one before.
const GROWTH: f64 = 4.0;

/// The most replicates that are added for intervals.
const REPLICATES_MAX: u32 = 8;

/// The scenario of a page, what its reader wants, and what has been found.
pub struct Session {
    source: Source,
    scenario: Scenario,
    threads: usize,
    memory: Memory,
    state: Mutex<State>,
    changed: Condvar,
}

/// What is wanted and what has been found.
#[derive(Default)]
struct State {
    /// Counts the turns; a job of an earlier one is cancelled.
    turn: u64,
    /// The reader's changes, each as `key=value`.
    set: Vec<String>,
    /// The next look at this turn; `None` once the last has been taken.
    next: Option<Look>,
    wanted_line: Option<Slo>,
    wanted_replay: Option<(String, ReplayWindow)>,
    /// Counts what has been shown.
    version: u64,
    shown: Option<Shown>,
    /// Why the turn has no results.
    error: Option<String>,
    /// How far the job under way is, from 0 to 1.
    progress: f64,
    line: Page,
    replay: Page,
    ends: bool,
}

/// A look at a turn: a share of the scenario's duration, or its whole with replicates.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Look {
    /// The share of the duration; `None` if it is still to be chosen.
    share: Option<f64>,
    replicates: u32,
}

impl Look {
    const FIRST: Look = Look { share: None, replicates: 0 };
}

/// What the page shows of the latest look.
#[derive(Clone)]
struct Shown {
    turn: u64,
    scenario: Scenario,
    html: String,
    digest: String,
    command: String,
    /// By variant, the window around the message that was delayed most.
    delayed: BTreeMap<String, ReplayWindow>,
    stage: String,
    more: String,
}

/// A page in a frame: that of the line, or of a replay.
#[derive(Clone, Default)]
struct Page {
    /// Counts the pages; 0 if there is none.
    number: u64,
    html: String,
    state: String,
}

/// The answer to a question for the state, for the page's script.
#[derive(Serialize)]
pub struct StateAnswer {
    version: u64,
    /// The reader's changes.
    set: Vec<String>,
    /// The results are those of the latest turn.
    current: bool,
    busy: bool,
    stage: String,
    more: String,
    progress: f64,
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    html: Option<String>,
    digest: String,
    command: String,
    /// By variant, the begin and the length of the window around the message that was delayed most.
    delayed: BTreeMap<String, [String; 2]>,
    line: u64,
    line_state: String,
    replay: u64,
    replay_state: String,
}

/// What the worker is to do next.
enum Job {
    Look(Look, Vec<String>),
    Line(Box<Slo>, Vec<String>),
    Replay(String, ReplayWindow),
}

/// How a job ended without a result.
enum Failure {
    /// Something newer is wanted.
    Cancelled,
    Failed(String),
}

impl Session {
    pub fn new(source: Source, scenario: Scenario, threads: usize, memory: Memory) -> Session {
        let state = Mutex::new(State { next: Some(Look::FIRST), ..State::default() });
        Session { source, scenario, threads, memory, state, changed: Condvar::new() }
    }

    /// Takes the reader's changes. Whatever is under way is cancelled.
    pub fn turn(&self, set: Vec<String>) {
        let mut state = self.state();
        state.turn += 1;
        state.set = set;
        state.next = Some(Look::FIRST);
        state.error = None;
        state.progress = 0.0;
        state.wanted_line = None;
        state.wanted_replay = None;
        state.line.state.clear();
        state.replay.state.clear();
        self.changed.notify_all();
    }

    /// Asks for the load line of what the page shows.
    ///
    /// # Errors
    /// Returns an error if the objective cannot be read or is not observed.
    pub fn want_line(&self, objective: &str) -> Result<(), String> {
        let slo = Slo::parse(objective).map_err(|error| error.to_string())?;
        slo.check(self.scenario.points().iter().map(|point| &point.model))
            .map_err(|error| error.to_string())?;
        let mut state = self.state();
        state.wanted_line = Some(slo);
        state.line.state = "searching".to_owned();
        self.changed.notify_all();
        Ok(())
    }

    /// Asks for a replay of what the page shows.
    ///
    /// # Errors
    /// Returns an error if a time cannot be read, or the variant is unknown.
    pub fn want_replay(&self, variant: &str, from: &str, length: &str) -> Result<(), String> {
        let span = |text: &str| text.trim().parse::<Span>().map_err(|error| error.to_string());
        let window = ReplayWindow { from: Time::ZERO + span(from)?, length: span(length)? };
        if window.length.is_zero() {
            return Err("a length above zero is needed, such as 200us".to_owned());
        }
        if !self.scenario.points().iter().any(|point| point.variant == variant) {
            return Err(format!("unknown variant `{variant}`"));
        }
        let mut state = self.state();
        state.wanted_replay = Some((variant.to_owned(), window));
        state.replay.state = "drawing".to_owned();
        self.changed.notify_all();
        Ok(())
    }

    /// Returns the state, with the results if they are newer than version `since`.
    pub fn answer(&self, since: Option<u64>) -> StateAnswer {
        let state = self.state();
        let shown = state.shown.as_ref();
        let current = shown.is_some_and(|shown| shown.turn == state.turn);
        let fresh = shown.is_some() && since != Some(state.version);
        let is_working = state.next.is_some() || state.wanted_line.is_some() || state.wanted_replay.is_some();
        let (stage, more) = match shown.filter(|_| current) {
            _ if state.error.is_some() => ("This cannot be run".to_owned(), String::new()),
            Some(shown) => (shown.stage.clone(), shown.more.clone()),
            None => ("Running".to_owned(), "a first look comes at once".to_owned()),
        };
        StateAnswer {
            version: state.version,
            set: state.set.clone(),
            current,
            busy: is_working,
            stage,
            more: if is_working || !current { more } else { String::new() },
            progress: state.progress,
            error: state.error.clone(),
            html: shown.filter(|_| fresh).map(|shown| shown.html.clone()),
            digest: shown.map(|shown| shown.digest.clone()).unwrap_or_default(),
            command: shown.map(|shown| shown.command.clone()).unwrap_or_default(),
            delayed: shown
                .iter()
                .flat_map(|shown| &shown.delayed)
                .map(|(variant, window)| {
                    let from = window.from.saturating_since(Time::ZERO);
                    (variant.clone(), [from, window.length].map(|span| span.to_string()))
                })
                .collect(),
            line: state.line.number,
            line_state: state.line.state.clone(),
            replay: state.replay.number,
            replay_state: state.replay.state.clone(),
        }
    }

    /// Returns the shown scenario with all that it depends on, as a file.
    pub fn saved(&self) -> Option<String> {
        self.state().shown.as_ref().map(|shown| shown.scenario.self_contained().to_owned())
    }

    /// Returns the page of the line.
    pub fn line_page(&self) -> String {
        self.state().line.html.clone()
    }

    /// Returns the page of the replay.
    pub fn replay_page(&self) -> String {
        self.state().replay.html.clone()
    }

    /// Ends the worker; what is under way is cancelled.
    pub fn end(&self) {
        self.state().ends = true;
        self.changed.notify_all();
    }

    /// Does the jobs, until [`Session::end`].
    pub fn work(&self) {
        let _asked = self.memory.asked();
        while let Some((turn, job)) = self.next_job() {
            match job {
                Job::Look(look, set) => self.look(turn, look, &set),
                Job::Line(slo, set) => self.line(turn, *slo, &set),
                Job::Replay(variant, window) => self.replay(turn, &variant, window),
            }
        }
    }

    /// Waits for a job: what the reader has asked for by a button comes before a longer look, a first look before both.
    fn next_job(&self) -> Option<(u64, Job)> {
        let mut state = self.state();
        loop {
            if state.ends {
                return None;
            }
            let turn = state.turn;
            let has_first_look = state.shown.as_ref().is_some_and(|shown| shown.turn == turn);
            if let Some(look) = state.next.filter(|_| !has_first_look) {
                return Some((turn, Job::Look(look, state.set.clone())));
            }
            if let Some((variant, window)) = state.wanted_replay.clone() {
                return Some((turn, Job::Replay(variant, window)));
            }
            if let Some(slo) = state.wanted_line.clone() {
                return Some((turn, Job::Line(Box::new(slo), state.set.clone())));
            }
            if let Some(look) = state.next {
                return Some((turn, Job::Look(look, state.set.clone())));
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Takes a look at a turn, and decides on the next.
    fn look(&self, turn: u64, look: Look, set: &[String]) {
        let looked = self.scenario_with(set, &Look { share: Some(1.0), ..look }).and_then(|whole| {
            for point in first_points(&whole) {
                estimate::check(&point.model, self.memory.limit())
                    .map_err(|error| Failure::Failed(error.to_string()))?;
            }
            let share = match look.share {
                Some(share) => share,
                None => self.first_share(turn, &whole)?,
            };
            let look = Look { share: Some(share), ..look };
            let scenario = if share < 1.0 { self.scenario_with(set, &look)? } else { whole };
            let outcomes = self.run(turn, &scenario)?;
            Ok((look, self.shown(turn, look, scenario, &outcomes)))
        });
        let mut state = self.state();
        if state.turn != turn {
            return;
        }
        match looked {
            Ok((look, (shown, wants_more))) => {
                state.next = next_look(look, wants_more);
                state.version += 1;
                state.progress = 0.0;
                state.error = None;
                state.shown = Some(shown);
            }
            Err(Failure::Cancelled) => {}
            Err(Failure::Failed(why)) => {
                state.next = None;
                state.error = Some(why);
            }
        }
    }

    /// Returns the scenario with the reader's changes, cut to a look.
    fn scenario_with(&self, set: &[String], look: &Look) -> Result<Scenario, Failure> {
        let own = self.scenario.overrides();
        let mut overrides = Overrides { set: laid_over(&own.set, set), ..own.clone() };
        if look.replicates > 0 {
            overrides.replicates = look.replicates;
        }
        let scenario = self.scenario.with_overrides(&overrides).map_err(failed)?;
        let Some(share) = look.share.filter(|share| *share < 1.0) else { return Ok(scenario) };
        let Some(model) = scenario.points().first().map(|point| &point.model) else { return Ok(scenario) };
        if let Some(duration) = model.run.duration {
            let cut = |span: Span| Span::from_us(((span.as_us_f64() * share).ceil() as u64).max(1));
            overrides.set.push(format!("run.duration={}", cut(duration)));
            if !model.run.warmup.is_zero() {
                overrides.set.push(format!("run.warmup={}", cut(model.run.warmup)));
            }
        }
        self.scenario.with_overrides(&overrides).map_err(failed)
    }

    /// Returns the share of the scenario's duration that all variants run within the time of a first look, from the
    /// speed of the first variant.
    fn first_share(&self, turn: u64, whole: &Scenario) -> Result<f64, Failure> {
        let points = first_points(whole);
        let Some(point) = points.first() else { return Ok(1.0) };
        let Some(duration) = point.model.run.duration else { return Ok(1.0) };
        let began = Instant::now();
        let mut reached = Time::ZERO;
        let probed = plimsoll_sim::run(&point.model, &mut |progress| {
            reached = progress.now;
            began.elapsed() < PROBE && self.goes_on(turn, false)
        });
        match probed {
            Ok(_) => return Ok(1.0),
            Err(RunError::Cancelled) if !self.goes_on(turn, false) => return Err(self.cancelled()),
            Err(RunError::Cancelled) => {}
            Err(error) => return Err(Failure::Failed(error.to_string())),
        }
        let speed = reached.as_secs_f64() / began.elapsed().as_secs_f64().max(1e-3);
        let rounds = (points.len() as f64 / self.threads as f64).ceil();
        let share = speed * FIRST_LOOK.as_secs_f64() / rounds / duration.as_secs_f64();
        // A look of more than half of the whole is not worth its own.
        Ok(if share > 0.5 { 1.0 } else { share.max(1e-6) })
    }

    /// Runs the first sweep point of every variant, with its replicates.
    fn run(&self, turn: u64, scenario: &Scenario) -> Result<Vec<PointOutcome>, Failure> {
        let points = first_points(scenario);
        let models: Vec<&Model> = points.iter().map(|point| &point.model).collect();
        let keeper = Keeper {
            session: self,
            turn,
            points: &points,
            done: Mutex::default(),
            progress: Mutex::default(),
        };
        match batch::run_all(&models, self.threads, &keeper) {
            Ok(()) => {}
            Err(BatchError::Run(RunError::Cancelled)) => return Err(self.cancelled()),
            Err(error) => return Err(Failure::Failed(error.to_string())),
        }
        let mut done = keeper.done.into_inner().unwrap_or_else(PoisonError::into_inner);
        done.sort_by_key(|(index, _)| *index);
        Ok(done.into_iter().map(|(_, outcome)| outcome).collect())
    }

    /// Returns what the page shows of a look, and whether further replicates would give intervals that are missing.
    fn shown(&self, turn: u64, look: Look, scenario: Scenario, outcomes: &[PointOutcome]) -> (Shown, bool) {
        let summary = Summary::of(outcomes, &Options::default());
        let curves = Curves::of(outcomes, Detail::for_runs(outcomes.len()));
        let wants_more =
            summary.warnings.iter().any(|warning| matches!(warning, Warning::TooFewSamples { .. }));
        let duration = scenario.points().first().and_then(|point| point.model.run.duration);
        let length = duration.map_or_else(String::new, |duration| format!(" of {}", rounded(duration)));
        let is_whole = look.share.is_none_or(|share| share >= 1.0);
        let (stage, more) = match (is_whole, look.replicates) {
            (false, _) => (format!("First results: runs{length}"), "longer runs follow".to_owned()),
            (true, replicates) if replicates > 1 => (
                format!("{replicates} runs{length} of each variant"),
                "more runs follow, for the intervals".to_owned(),
            ),
            (true, _) => (
                format!("The whole scenario: runs{length}"),
                "more runs follow, for the intervals".to_owned(),
            ),
        };
        let shown = Shown {
            turn,
            html: html::results(&summary, &curves, !is_whole),
            digest: output::digest(&summary).to_string(),
            command: self.command(&scenario),
            delayed: outcomes
                .iter()
                .filter(|point| point.key.replicate == 0)
                .filter_map(|point| Some((point.key.variant.clone(), replay::worst(&point.outcome)?)))
                .collect(),
            scenario,
            stage,
            more,
        };
        (shown, wants_more)
    }

    /// Returns the command that repeats the shown runs.
    fn command(&self, scenario: &Scenario) -> String {
        let overrides = scenario.overrides();
        let replicates = (overrides.replicates > 0).then_some(overrides.replicates);
        let source = Source { set: overrides.set.clone(), replicates, ..self.source.clone() };
        source.command_of("run", scenario.points())
    }

    /// Searches the load line of the reader's scenario.
    fn line(&self, turn: u64, slo: Slo, set: &[String]) {
        let found = self.scenario_with(set, &Look { share: Some(1.0), replicates: 1 }).and_then(|scenario| {
            let over =
                Over::find(scenario.points(), None).map_err(|error| Failure::Failed(error.to_string()))?;
            let options = LineOptions {
                variants: Vec::new(),
                precision: 0.05,
                replicates_max: 32,
                messages: None,
                at: None,
                threads: self.threads,
                anew: false,
                repair: false,
            };
            let command = format!(
                "{} --slo {} --over {}",
                self.command(&scenario).replacen(" run ", " line ", 1),
                quoted(&slo.text),
                over.key
            );
            let watch = LineWatch::new((self, turn), &scenario, (&over, &slo), &command);
            let slos = [slo.clone()];
            match plimsoll_line::draw(&scenario, &over, &slos, &options, None, &watch) {
                Ok(lines) => Ok(line_page(&scenario, &lines, &command)),
                Err(Stopped::Cancelled) => Err(self.cancelled()),
                Err(error) => Err(Failure::Failed(error.to_string())),
            }
        });
        let mut state = self.state();
        if state.turn == turn {
            state.wanted_line = None;
            state.line.take(found);
        }
    }

    /// Shows how far the search for a line is, and the loads that it has decided where there are new ones.
    pub(super) fn show_line(&self, turn: u64, page: Option<String>, so_far: String) {
        let mut state = self.state();
        if state.turn == turn {
            if let Some(page) = page {
                state.line.take(Ok(page));
            }
            state.line.state = so_far;
        }
    }

    /// Returns the memory that runs may need together, in bytes.
    pub(super) fn memory_limit(&self) -> u64 {
        self.memory.limit()
    }

    /// Draws a replay of the reader's scenario.
    fn replay(&self, turn: u64, variant: &str, window: ReplayWindow) {
        let shown = self.state().shown.clone();
        let drawn = shown.ok_or(Failure::Cancelled).and_then(|Shown { scenario, delayed, .. }| {
            let point = scenario.points().iter().find(|point| point.variant == variant);
            let point = point.ok_or_else(|| Failure::Failed(format!("unknown variant `{variant}`")))?;
            let mut goes_on = |_| self.goes_on(turn, false);
            let may_shorten = delayed.get(variant) == Some(&window);
            let recorded = replay::record(&point.model, window, Extent::Window, may_shorten, &mut goes_on);
            match recorded {
                Ok((recording, _)) => {
                    let command = format!(
                        "{} --variant {} --from {} --for {}",
                        self.command(&scenario).replacen(" run ", " replay ", 1),
                        quoted(variant),
                        Span::from_ps(recording.from),
                        Span::from_ps(recording.length)
                    );
                    let drawn = Drawn {
                        scenario: &scenario,
                        point,
                        recording: &recording,
                        command: &command,
                        digest: None,
                    };
                    Ok(replay::page(&drawn))
                }
                Err(plimsoll_sim::RecordError::Run(RunError::Cancelled)) => Err(self.cancelled()),
                Err(error) => Err(Failure::Failed(error.to_string())),
            }
        });
        let mut state = self.state();
        if state.turn == turn {
            state.wanted_replay = None;
            state.replay.take(drawn);
        }
    }

    /// Returns why a job has been cancelled: something newer is wanted, or there is no memory left for it.
    fn cancelled(&self) -> Failure {
        if !self.memory.is_exceeded() {
            return Failure::Cancelled;
        }
        let error = self.memory.error().to_string();
        self.memory.resume();
        Failure::Failed(error)
    }

    /// Returns whether a job of `turn` is still wanted. A look that is not the first one gives way to a button.
    pub(super) fn goes_on(&self, turn: u64, gives_way: bool) -> bool {
        let state = self.state();
        let asked = state.wanted_line.is_some() || state.wanted_replay.is_some();
        let is_latest = state.turn == turn && !state.ends;
        is_latest && !self.memory.is_exceeded() && (!gives_way || !asked)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Page {
    fn take(&mut self, result: Result<String, Failure>) {
        match result {
            Ok(html) => {
                self.number += 1;
                self.html = html;
                self.state.clear();
            }
            Err(Failure::Cancelled) => self.state.clear(),
            Err(Failure::Failed(why)) => self.state = why,
        }
    }
}

/// Returns the look after `look`, whose results lack intervals or not.
fn next_look(look: Look, wants_more: bool) -> Option<Look> {
    let share = look.share.unwrap_or(1.0);
    if share < 1.0 {
        let next = share * GROWTH;
        return Some(Look { share: Some(if next > 0.5 { 1.0 } else { next }), ..look });
    }
    let replicates = (look.replicates.max(1) * 4).min(REPLICATES_MAX);
    (wants_more && replicates > look.replicates).then_some(Look { share: Some(1.0), replicates })
}

/// Returns the points of the first point of the sweep, in every variant and replicate.
pub fn first_points(scenario: &Scenario) -> Vec<&Point> {
    let points = scenario.points();
    let Some(first) = points.first() else { return Vec::new() };
    points.iter().filter(|point| point.sweep == first.sweep).collect()
}

/// Returns settings, each as `key=value`, with those of the reader in the place of earlier ones of the same keys.
fn laid_over(own: &[String], readers: &[String]) -> Vec<String> {
    let key = |setting: &String| setting.split('=').next().unwrap_or_default().trim().to_owned();
    let changed: BTreeSet<String> = readers.iter().map(key).collect();
    own.iter().filter(|setting| !changed.contains(&key(setting))).chain(readers).cloned().collect()
}

fn failed(errors: Vec<ScenarioError>) -> Failure {
    Failure::Failed(errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}

/// Returns a duration to three digits.
fn rounded(span: Span) -> String {
    let us = span.as_us_f64();
    let digits = 10f64.powf(us.max(1.0).log10().floor() - 2.0).max(1.0);
    Span::from_us(((us / digits).round() * digits) as u64).to_string()
}

fn line_page(scenario: &Scenario, lines: &Lines, command: &str) -> String {
    lines.page(&About {
        description: "",
        command,
        seed: scenario.points().first().map_or(0, |point| point.seed),
        version: env!("CARGO_PKG_VERSION"),
        commit: output::commit(),
        scenario: "",
    })
}

/// Gathers the outcomes of a look.
struct Keeper<'a> {
    session: &'a Session,
    turn: u64,
    points: &'a [&'a Point],
    done: Mutex<Vec<(usize, PointOutcome)>>,
    progress: Mutex<Vec<f64>>,
}

impl Watch for Keeper<'_> {
    fn on_progress(&self, index: usize, progress: Progress) -> bool {
        let share = if progress.horizon == Time::MAX {
            0.0
        } else {
            // A run may end long before its horizon, which has room for what is still to be answered.
            let end = self.points[index].model.run.duration.unwrap_or(Span::MAX).as_secs_f64();
            (progress.now.as_secs_f64() / end.min(progress.horizon.as_secs_f64())).min(1.0)
        };
        self.note(index, share);
        self.session.goes_on(self.turn, true)
    }

    fn memory_max(&self) -> u64 {
        self.session.memory.limit()
    }

    fn on_done(
        &self,
        index: usize,
        outcome: Outcome,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let point = self.points[index];
        let outcome = PointOutcome::new(key(point), point.seed, outcome);
        self.done.lock().unwrap_or_else(PoisonError::into_inner).push((index, outcome));
        self.note(index, 1.0);
        Ok(())
    }
}

impl Keeper<'_> {
    fn note(&self, index: usize, share: f64) {
        let mut all = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        all.resize(self.points.len(), 0.0);
        all[index] = share;
        let progress = all.iter().sum::<f64>() / all.len() as f64;
        let mut state = self.session.state();
        if state.turn == self.turn {
            state.progress = progress;
        }
    }
}
