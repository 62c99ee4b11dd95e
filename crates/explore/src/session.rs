//! [`Session`]: the reader's requests, the results so far, and the one worker between them.
//!
//! ```text
//! POST /turn, /line, /replay ──> wanted ──> worker: one job at a time ──> found ──> GET /state, /line, /replay
//!                                  │                      │
//!                                  └── a new turn ────────┴─> cancels the job under way
//! ```
//!
//! A turn of a knob begins with a short run of every variant, followed by longer ones, each a scenario of its own: the
//! reader's, with `run.duration` and `run.warmup` cut to a share. The last one is the reader's scenario itself, with
//! further replicates as long as intervals are missing. Every shown result is of a complete scenario, with its digest.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use plimsoll_experiment::points::digest;
use plimsoll_experiment::question::{self, key, quoted};
use plimsoll_experiment::replay::{self, Drawn};
use plimsoll_experiment::{Bench, BenchWatch, Memory, Slo};
use plimsoll_line::page::PageTexts;
use plimsoll_line::{LineQuestion, Room, SearchStop};
use plimsoll_report::html;
use plimsoll_results::curves::Detail;
use plimsoll_results::replay::ReplayWindow;
use plimsoll_results::run_dir::Existing;
use plimsoll_results::summary::{Options, Warning};
use plimsoll_results::{Curves, PointOutcome, Summary};
use plimsoll_scenario::model::Model;
use plimsoll_scenario::{Overrides, Point, Scenario, ScenarioError};
use plimsoll_sim::batch::BatchError;
use plimsoll_sim::{Extent, Progress, RunError, estimate};
use plimsoll_units::{Span, Time};
use serde_json::{Value, json};

use crate::line_watch::LineWatch;

/// The time that the first look at a turn may take.
const FIRST_LOOK: Duration = Duration::from_millis(350);

/// The time for which a run is watched to measure its speed.
const PROBE: Duration = Duration::from_millis(120);

/// The ratio of the durations of two successive looks.
const GROWTH: f64 = 4.0;

/// The most replicates that are added for intervals.
const REPLICATES_MAX: u32 = 8;

/// The scenario of a page, its reader's requests, and the results so far.
pub struct Session {
    /// The path of the scenario, as commands name it.
    path: PathBuf,
    scenario: Scenario,
    threads: usize,
    memory: Memory,
    /// The commit of this build, where known.
    commit: Option<&'static str>,
    state: Mutex<State>,
    changed: Condvar,
}

/// The requests of the reader, and the results so far.
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
    /// The version of the shown results, which grows with each change.
    version: u64,
    shown: Option<Shown>,
    /// The reason why the turn has no results.
    error: Option<String>,
    /// The finished share of the running job, from 0 to 1.
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

/// The results of the latest look, as the page shows them.
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

/// The next job of the worker.
enum Job {
    Look(Look, Vec<String>),
    Line(Box<Slo>, Vec<String>),
    Replay(String, ReplayWindow),
}

/// How a job ended without a result.
enum Failure {
    /// A newer request replaces the job.
    Cancelled,
    Failed(String),
}

impl Session {
    pub fn new(
        path: PathBuf,
        scenario: Scenario,
        threads: usize,
        memory: Memory,
        commit: Option<&'static str>,
    ) -> Session {
        let state = Mutex::new(State { next: Some(Look::FIRST), ..State::default() });
        Session { path, scenario, threads, memory, commit, state, changed: Condvar::new() }
    }

    /// Takes the reader's changes, and cancels the running job.
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

    /// Requests the load line of the shown scenario.
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

    /// Requests a replay of the shown scenario.
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

    /// Returns the state for the script of the page, with the results if they are newer than version `since`. Its times
    /// are of the window around the message that was delayed most, by variant.
    pub fn answer(&self, since: Option<u64>) -> Value {
        let state = self.state();
        let shown = state.shown.as_ref();
        let of_turn = shown.filter(|shown| shown.turn == state.turn);
        let busy = state.next.is_some() || state.wanted_line.is_some() || state.wanted_replay.is_some();
        let (stage, more) = match of_turn {
            _ if state.error.is_some() => ("This cannot be run", ""),
            Some(shown) => (shown.stage.as_str(), if busy { shown.more.as_str() } else { "" }),
            None => ("Running", "a first look comes at once"),
        };
        let times = |(variant, window): (&String, &ReplayWindow)| {
            let from = window.from.saturating_since(Time::ZERO);
            (variant.clone(), [from, window.length].map(|span| span.to_string()))
        };
        let delayed: BTreeMap<String, [String; 2]> =
            shown.iter().flat_map(|shown| &shown.delayed).map(times).collect();
        let mut answer = json!({
            "version": state.version,
            "set": state.set,
            "current": of_turn.is_some(),
            "busy": busy,
            "stage": stage,
            "more": more,
            "progress": state.progress,
            "error": state.error,
            "digest": shown.map_or("", |shown| &shown.digest),
            "command": shown.map_or("", |shown| &shown.command),
            "delayed": delayed,
            "line": state.line.number,
            "line_state": state.line.state,
            "replay": state.replay.number,
            "replay_state": state.replay.state,
        });
        if let Some(shown) = shown.filter(|_| since != Some(state.version)) {
            answer["html"] = json!(shown.html);
        }
        answer
    }

    /// Returns the shown scenario with all that it depends on, as a file.
    pub fn saved(&self) -> Option<String> {
        self.state().shown.as_ref().map(|shown| shown.scenario.self_contained().to_owned())
    }

    /// Returns the HTML of the latest load line; empty before one was searched.
    pub fn line_page(&self) -> String {
        self.state().line.html.clone()
    }

    /// Returns the HTML of the latest replay; empty before one was drawn.
    pub fn replay_page(&self) -> String {
        self.state().replay.html.clone()
    }

    /// Ends the worker, and cancels its running job.
    pub fn end(&self) {
        self.state().ends = true;
        self.changed.notify_all();
    }

    /// Does the session's jobs one after the other, until [`Session::end`].
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

    /// Waits for a job: a request by a button has precedence over a longer look, and a first look over both.
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
        let done = Mutex::new(BTreeMap::new());
        let gives_way = self.state().shown.as_ref().is_some_and(|shown| shown.turn == turn);
        let shares = Mutex::new(vec![0.0; points.len()]);
        let watch = LookWatch { session: self, turn, gives_way, shares };
        let bench =
            Bench { threads: self.threads, memory_max: self.memory.limit(), watch: &watch, workers: None };
        let ended = bench.run(&models, |index, outcome| {
            let outcome = PointOutcome::new(key(points[index]), points[index].seed, outcome);
            done.lock().unwrap_or_else(PoisonError::into_inner).insert(index, outcome);
            Ok(())
        });
        match ended {
            Ok(()) => Ok(done.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()),
            Err(BatchError::Run(RunError::Cancelled)) => Err(self.cancelled()),
            Err(error) => Err(Failure::Failed(error.to_string())),
        }
    }

    /// Returns the results of a look as the page shows them, and whether further replicates would give missing
    /// intervals.
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
            digest: digest(&summary).to_string(),
            command: self.command("run", &scenario),
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

    /// Returns the command that repeats the shown result by `subcommand`. A search chooses its replicates itself.
    fn command(&self, subcommand: &str, scenario: &Scenario) -> String {
        let mut overrides = scenario.overrides().clone();
        if subcommand == "line" {
            overrides.replicates = 0;
        }
        question::command(subcommand, &self.path, &overrides, scenario.points())
    }

    /// Searches the load line of the reader's scenario.
    fn line(&self, turn: u64, slo: Slo, set: &[String]) {
        let found = self.scenario_with(set, &Look { share: Some(1.0), replicates: 1 }).and_then(|scenario| {
            let asked = LineQuestion { slo: vec![slo.text], ..LineQuestion::default() };
            let asked = asked.ask(&scenario).map_err(|error| Failure::Failed(error.to_string()))?;
            let plan = asked.plan(self.command("line", &scenario), self.commit);
            let watch = LineWatch::new((self, turn), &asked, &plan);
            let room = Room { threads: self.threads, memory_max: self.memory.limit() };
            match plimsoll_line::draw(&asked, None, Existing::Resume, room, &watch) {
                Ok(lines) => Ok(lines.page(&PageTexts {
                    description: "",
                    command: &plan.command,
                    seed: plan.seed,
                    version: &plan.version,
                    commit: self.commit,
                    scenario: "",
                })),
                Err(SearchStop::Cancelled) => Err(self.cancelled()),
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
    pub(crate) fn show_line(&self, turn: u64, page: Option<String>, so_far: String) {
        let mut state = self.state();
        if state.turn == turn {
            if let Some(page) = page {
                state.line.take(Ok(page));
            }
            state.line.state = so_far;
        }
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
                        self.command("replay", &scenario),
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
                        commit: self.commit,
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

    /// Returns the reason why a job has been cancelled: a newer request, or a lack of memory.
    fn cancelled(&self) -> Failure {
        if !self.memory.is_exceeded() {
            return Failure::Cancelled;
        }
        let error = self.memory.error().to_string();
        self.memory.resume();
        Failure::Failed(error)
    }

    /// Returns whether a job of `turn` is still wanted. A look that is not the first one gives way to a button.
    pub(crate) fn goes_on(&self, turn: u64, gives_way: bool) -> bool {
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

/// Returns settings, each as `key=value`, in which the reader's replace earlier ones of the same keys.
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

/// The watch of a look's runs.
struct LookWatch<'a> {
    session: &'a Session,
    turn: u64,
    /// Whether the look ends when a button is pressed. The first one does not, since both buttons need its results.
    gives_way: bool,
    /// The finished part of each run, 0 to 1.
    shares: Mutex<Vec<f64>>,
}

impl BenchWatch for LookWatch<'_> {
    fn on_progress(&self, run: usize, share: Option<f64>, _: Progress) {
        self.note(run, share.unwrap_or(0.0));
    }

    fn on_run(&self, run: usize, _: u64) {
        self.note(run, 1.0);
    }

    fn goes_on(&self) -> bool {
        self.session.goes_on(self.turn, self.gives_way)
    }
}

impl LookWatch<'_> {
    fn note(&self, run: usize, share: f64) {
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        shares[run] = share;
        let progress = shares.iter().sum::<f64>() / shares.len() as f64;
        let mut state = self.session.state();
        if state.turn == self.turn {
            state.progress = progress;
        }
    }
}
