//! [`advise`]: the idle latency, trials of all candidates, lines of the best, two tuned keys of the best, and the best
//! preset with the best single mechanism that it does not set.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use plimsoll_line::lines::LineVariant;
use plimsoll_line::measure::Run;
use plimsoll_line::search::{Line, rounded};
use plimsoll_line::{
    AskedLine, LineQuestion, LineTrial, Room, SearchNews, SearchStop, SearchWatch, SoFar, draw, trials,
};
use plimsoll_report::figures;
use plimsoll_results::run_dir::Existing;
use plimsoll_stats::verdict::Verdict;

use crate::advice::{Advice, RankedCandidate, State};
use crate::candidates::AND;
use crate::prepare::{AdviseError, PreparedAdvice, reason};
use crate::trials::Trials;
use crate::variants::{BASE, value};

/// The calls that a search for advice makes while it works, from any thread.
pub trait AdviseWatch: Sync {
    /// Returns the spent share of the budget: from 1 on, no run begins, and runs that have begun are cancelled.
    fn spent(&self) -> f64 {
        0.0
    }
    /// Returns false to stop the search.
    fn goes_on(&self) -> bool {
        true
    }
    /// Receives a sentence about the progress.
    fn on_news(&self, _text: &str) {}
    /// Receives the first ranking, by the trials alone.
    fn on_first(&self, _advice: &Advice) {}
}

/// The factor of today's load at which a scenario that meets its objectives needs nothing.
const MARGIN: f64 = 2.0;
/// The share of the budget after which the first ranking is printed, whatever it knows.
const FIRST: f64 = 0.1;
/// The share of the budget after which lines of candidates are not searched further, so that the best can be tuned.
const TUNE_FROM: f64 = 0.8;
/// The rounds of the trials, by their replicates; after each the clearly worse are dropped.
const ROUNDS: [Range<u32>; 4] = [0..1, 1..2, 2..4, 4..8];
/// The rounds after which the first ranking is printed.
const FIRST_ROUNDS: usize = 3;
/// The replicates that judge the scenario as it is.
const JUDGES: u32 = 8;
/// The most candidates whose lines are searched.
const SURVIVORS_MAX: usize = 4;

/// A part of the budget.
struct Limited<'a> {
    watch: &'a dyn AdviseWatch,
    until: f64,
}

impl SearchWatch for Limited<'_> {
    fn on_news(&self, news: &SearchNews<'_>, _so_far: &SoFar) {
        match news {
            SearchNews::Judged(judged) if !judged.verdict.ends_with("first run") => {
                self.watch.on_news(&format!("{} at {}: {}", judged.variant, judged.load, judged.verdict));
            }
            SearchNews::Warning(text) => self.watch.on_news(text),
            _ => {}
        }
    }

    fn goes_on(&self) -> bool {
        self.watch.goes_on()
    }

    fn is_out_of_time(&self) -> bool {
        self.watch.spent() >= self.until
    }
}

/// The runs, the lines and the notes that a search for advice has so far.
struct Searching<'a> {
    prepared: &'a PreparedAdvice,
    asked: &'a AskedLine<'a>,
    dir: &'a Path,
    room: Room,
    watch: &'a dyn AdviseWatch,
    at: f64,
    trials: BTreeMap<String, Trials>,
    states: BTreeMap<String, State>,
    /// The reasons why candidates could not be run.
    failed: BTreeMap<String, String>,
    lines: BTreeMap<String, Line>,
    notes: Vec<String>,
}

/// Searches what raises the load line. Runs are kept in the folder `dir`, which a later call with the same question
/// resumes.
///
/// # Errors
/// Returns an error if a run fails or cannot be kept, or the watch cancels the search. An exhausted budget is not an
/// error.
pub fn advise(
    prepared: &PreparedAdvice,
    dir: &Path,
    room: Room,
    watch: &dyn AdviseWatch,
) -> Result<Advice, AdviseError> {
    let asked = prepared.ask()?;
    let mut searching = Searching {
        prepared,
        asked: &asked,
        dir,
        room,
        watch,
        at: rounded(asked.over.start()),
        trials: BTreeMap::new(),
        states: BTreeMap::new(),
        failed: BTreeMap::new(),
        lines: BTreeMap::new(),
        notes: prepared.notes.clone(),
    };
    if let Some(impossible) = searching.idle()? {
        return Ok(Advice { impossible: Some(impossible), ..searching.advice(true) });
    }
    if !searching.is_needed()? {
        return Ok(searching.advice(false));
    }
    searching.try_all()?;
    searching.search_lines()?;
    searching.tune()?;
    searching.combine()?;
    Ok(searching.advice(true))
}

impl Searching<'_> {
    /// Runs these variants of the question with these replicates at the load of the trials; missing runs stay missing.
    /// A candidate whose run fails is left out from then on.
    fn run(
        &mut self,
        asked: &AskedLine<'_>,
        names: &[String],
        replicates: Range<u32>,
        until: f64,
    ) -> Result<(), SearchStop> {
        // The numbers of other workloads are behind the objectives.
        let mut asked = asked.clone();
        asked.slos.extend(self.prepared.others.iter().cloned());
        let wanted: Vec<LineTrial> = replicates
            .flat_map(|replicate| names.iter().map(move |name| (name, replicate)))
            .map(|(name, replicate)| LineTrial { variant: name.clone(), load: self.at, replicate })
            .collect();
        let limited = Limited { watch: self.watch, until };
        let make = |wanted: &[LineTrial]| trials(&asked, self.dir, self.room, &limited, wanted);
        let done = match make(&wanted) {
            Ok(runs) => wanted.into_iter().zip(runs).collect(),
            Err(SearchStop::Run(_)) => {
                // Finished runs are kept, so that a retry runs only the failing candidates.
                let mut done: Vec<(LineTrial, Option<Run>)> = Vec::new();
                for name in names {
                    let own: Vec<LineTrial> =
                        wanted.iter().filter(|trial| trial.variant == *name).cloned().collect();
                    match make(&own) {
                        Ok(runs) => done.extend(own.into_iter().zip(runs)),
                        Err(SearchStop::Run(error)) if name != BASE => {
                            self.failed.insert(name.clone(), error.to_string());
                        }
                        Err(error) => return Err(error),
                    }
                }
                done
            }
            Err(error) => return Err(error),
        };
        for (trial, run) in done {
            let known = &mut self.trials.entry(trial.variant).or_default().0;
            let place = trial.replicate as usize;
            if known.len() <= place {
                known.resize(place + 1, None);
            }
            known[place] = run;
        }
        self.states.extend(self.failed.keys().map(|name| (name.clone(), State::Failed)));
        if self.watch.goes_on() { Ok(()) } else { Err(SearchStop::Cancelled) }
    }

    /// Runs the scenario as it is at the lowest load. Returns why no mechanism can help, where an objective is
    /// violated there by times that no candidate changes: serialisation, propagation, and the servers. One that is
    /// violated there by other times is a note.
    fn idle(&mut self) -> Result<Option<String>, SearchStop> {
        let at = std::mem::replace(&mut self.at, rounded(self.asked.over.low));
        self.run(self.asked, &[BASE.to_owned()], 0..JUDGES / 2, 1.0)?;
        let load = self.asked.over.shown(std::mem::replace(&mut self.at, at));
        let idle = self.trials.remove(BASE).unwrap_or_default();
        for (number, slo) in self.asked.slos.iter().enumerate() {
            let Some(found) = idle.violated(number, slo) else { continue };
            let value = figures::time(found.us);
            let part = format!("{} of it, {}", figures::time(found.largest.1), found.largest.0);
            let (fixed_us, most) = found.fixed;
            if fixed_us > slo.limit {
                return Ok(Some(format!(
                    "no load and no mechanism at a queue can meet {}: at {load}, the lowest load, {} is {value} \
                     ({part}), and without any queue {}, mostly {most}",
                    slo.text,
                    slo.subject(),
                    figures::time(fixed_us)
                )));
            }
            self.notes.push(format!(
                "{} is violated at {load} already, the lowest load: {} is {value} ({part})",
                slo.text,
                slo.subject()
            ));
        }
        Ok(None)
    }

    /// Judges the scenario as it is at its load and at a multiple of it. The load of the trials is then the lower one
    /// that violates an objective.
    fn is_needed(&mut self) -> Result<bool, SearchStop> {
        let slos = &self.asked.slos;
        let base = [BASE.to_owned()];
        self.run(self.asked, &base, 0..JUDGES / 2, 1.0)?;
        if self.trials.get(BASE).is_some_and(|trials| trials.verdict(slos) == Verdict::Breaks) {
            return Ok(true);
        }
        self.at = rounded((MARGIN * self.asked.over.start()).min(self.asked.over.high));
        self.trials.clear();
        self.run(self.asked, &base, 0..JUDGES, 1.0)?;
        Ok(self.trials.get(BASE).is_none_or(|trials| trials.verdict(slos) != Verdict::Keeps))
    }

    /// Tries all candidates, and drops the clearly worse.
    fn try_all(&mut self) -> Result<(), SearchStop> {
        let slos = self.asked.slos.clone();
        let names = self.prepared.tried.iter().map(|tried| tried.candidate.name.clone());
        let mut live: Vec<String> = std::iter::once(BASE.to_owned()).chain(names).collect();
        self.states.extend(live.iter().map(|name| (name.clone(), State::Open)));
        let mut is_first = true;
        for (number, replicates) in ROUNDS.into_iter().enumerate() {
            if is_first {
                self.run(self.asked, &live, replicates.clone(), FIRST)?;
                live.retain(|name| !self.failed.contains_key(name));
                if number + 1 == FIRST_ROUNDS || self.watch.spent() >= FIRST {
                    is_first = false;
                    self.watch.on_first(&self.advice(true));
                }
            }
            self.run(self.asked, &live, replicates, TUNE_FROM)?;
            live.retain(|name| !self.failed.contains_key(name));
            let strain = |name: &String| self.trials.get(name).and_then(|trials| trials.strain(&slos));
            let best = live.iter().filter_map(|name| Some((strain(name)?, name)));
            let Some(best) = best.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, name)| name.clone()) else {
                break;
            };
            let (best, base) = (&self.trials[&best], &self.trials[BASE]);
            for name in live.iter().filter(|name| *name != BASE) {
                let Some(trials) = self.trials.get(name) else { continue };
                let state = match trials {
                    trials if trials.is_same(base) => State::WithoutEffect,
                    trials if trials.is_clearly_worse(best, &slos) => State::Dropped,
                    _ => continue,
                };
                self.states.insert(name.clone(), state);
            }
            live.retain(|name| self.states[name] == State::Open);
            if self.watch.spent() >= TUNE_FROM {
                break;
            }
            self.watch.on_news(&format!(
                "{} of {} candidates are left",
                live.len() - 1,
                self.states.len() - 1
            ));
            if live.len() - 1 <= 1 {
                break;
            }
        }
        if is_first {
            self.watch.on_first(&self.advice(true));
        }
        Ok(())
    }

    /// Searches the lines of the scenario as it is and of the best candidates.
    fn search_lines(&mut self) -> Result<(), SearchStop> {
        let advice = self.advice(true);
        let open =
            advice.ranking.iter().filter(|one| one.state == State::Open && one.name != BASE && one.runs > 0);
        let mut names: Vec<String> = open.map(|one| one.name.clone()).collect();
        if names.len() > SURVIVORS_MAX {
            let rest = names.split_off(SURVIVORS_MAX);
            self.notes.push(format!(
                "the trials do not exclude {}; the lines of the {SURVIVORS_MAX} with the smallest strain were searched",
                rest.join(", ")
            ));
        }
        self.draw(self.asked, &names, TUNE_FROM)
    }

    /// Tunes the keys of the best candidate.
    fn tune(&mut self) -> Result<(), SearchStop> {
        let advice = self.advice(true);
        let Some(best) = advice.best().filter(|best| best.state == State::Searched) else { return Ok(()) };
        let Some(tried) = self.prepared.tried.iter().find(|tried| tried.candidate.name == best.name) else {
            return Ok(());
        };
        let names: Vec<String> = tried.tuned.iter().map(|(name, _)| name.clone()).collect();
        if names.is_empty() {
            return Ok(());
        }
        self.watch.on_news(&format!("tuning {}", best.name));
        self.draw(self.asked, &names, 1.0)
    }

    /// Tries the best preset with the best single mechanism that it does not set, if there is time left.
    fn combine(&mut self) -> Result<(), SearchStop> {
        let advice = self.advice(true);
        if self.watch.spent() >= 1.0 {
            return Ok(());
        }
        let strain =
            |name: &str| advice.ranking.iter().find(|one| one.name == name).and_then(|one| one.strain);
        let found = advice.ranking.iter().filter_map(|one| Some((one, self.prepared.find(&one.name)?.0)));
        let (presets, single): (Vec<_>, Vec<_>) =
            found.partition(|(_, candidate)| candidate.preset.is_some());
        let Some((preset, _)) = presets.first().filter(|(one, _)| one.state == State::Searched) else {
            return Ok(());
        };
        let helps = |one: &RankedCandidate| {
            let is_tried = !matches!(one.state, State::WithoutEffect | State::Failed);
            is_tried && one.strain.zip(strain(BASE)).is_some_and(|(mine, base)| mine < base)
        };
        let other = single.iter().find(|(one, _)| helps(one) && !self.sets(&preset.name, &one.name));
        let Some((other, _)) = other else { return Ok(()) };
        let name = format!("{}{AND}{}", preset.name, other.name);
        let Some((_, lines)) = self.prepared.find(&name) else { return Ok(()) };
        let names = [name.clone()];
        let scenario = match self.prepared.beside_base(&name, &lines) {
            Ok(scenario) => scenario,
            Err(errors) => {
                self.failed.insert(name.clone(), reason(&errors));
                self.states.insert(name, State::Failed);
                return Ok(());
            }
        };
        let Ok(asked) = self.prepared.question.clone().ask(&scenario) else { return Ok(()) };
        self.watch.on_news(&format!("trying {name}"));
        self.states.insert(name, State::Open);
        self.run(&asked, &names, 0..JUDGES, 1.0)?;
        self.draw(&asked, &names, 1.0)
    }

    /// Returns whether a preset sets a key of a single mechanism.
    fn sets(&self, preset: &str, mechanism: &str) -> bool {
        let settings =
            |name: &str| self.prepared.settings(name).map(|(settings, _)| settings).unwrap_or_default();
        let (base, with) = (settings(BASE), settings(preset));
        let lines = self.prepared.find(mechanism).map(|(_, lines)| lines).unwrap_or_default();
        lines
            .lines()
            .filter_map(|line| line.split_once(" = "))
            .any(|(key, _)| value(&base, key) != value(&with, key))
    }

    /// Searches lines of the question until this share of the budget is spent. The line of the scenario as it is is
    /// searched too. A candidate whose run fails is left out.
    fn draw(&mut self, asked: &AskedLine<'_>, names: &[String], until: f64) -> Result<(), SearchStop> {
        let base = BASE.to_owned();
        let mut names: Vec<String> =
            names.iter().filter(|name| !self.failed.contains_key(*name)).cloned().collect();
        let limited = Limited { watch: self.watch, until };
        let search = |names: &[String]| {
            let variants = std::iter::once(&base).chain(names).cloned().collect();
            let question = LineQuestion { variants, ..asked.question.clone() };
            let asked = AskedLine { question, ..asked.clone() };
            draw(&asked, Some(self.dir), Existing::Resume, self.room, &limited)
        };
        let mut found = search(&names);
        if let Err(SearchStop::Run(_)) = found {
            // Finished runs are kept, so that a search of each alone and then of the rest repeats none.
            let mut sound = Vec::new();
            for name in names {
                match search(std::slice::from_ref(&name)) {
                    Err(SearchStop::Run(error)) => drop(self.failed.insert(name, error.to_string())),
                    _ => sound.push(name),
                }
            }
            names = sound;
            self.states.extend(self.failed.keys().map(|name| (name.clone(), State::Failed)));
            found = search(&names);
        }
        let lines: BTreeMap<String, (Line, State)> = match found {
            Ok(lines) => {
                let state = |variant: &LineVariant| match variant.unfinished {
                    Some(_) => State::Unfinished,
                    None => State::Searched,
                };
                let found = lines.variants.into_iter();
                found.map(|variant| (variant.name.clone(), (variant.line.clone(), state(&variant)))).collect()
            }
            Err(SearchStop::OutOfTime) => BTreeMap::new(),
            Err(error) => return Err(error),
        };
        names.insert(0, base);
        for name in names {
            let known = self.states.get(&name).copied();
            // A search that the budget ended changes nothing of a line that is known already.
            if known == Some(State::Searched) {
                continue;
            }
            match lines.get(&name) {
                Some((line, state)) if line.low().is_some() || line.high().is_some() => {
                    self.lines.insert(name.clone(), line.clone());
                    self.states.insert(name, *state);
                }
                Some((_, State::Searched)) => {
                    self.states.insert(name, State::Searched);
                }
                _ => self.notes.push(format!("the time did not suffice for the line of {name}")),
            }
        }
        Ok(())
    }

    /// Ranks the candidates by the runs that are finished.
    fn advice(&self, is_needed: bool) -> Advice {
        let (asked, slos) = (self.asked, &self.asked.slos);
        let base = self.trials.get(BASE).cloned().unwrap_or_default();
        let nothing = Trials::default();
        let ranked = |(name, state): (&String, &State)| {
            let trials = self.trials.get(name).unwrap_or(&nothing);
            let candidate = self.prepared.find(name).map(|(candidate, _)| candidate).unwrap_or_default();
            RankedCandidate {
                name: name.clone(),
                what: candidate.what,
                state: *state,
                failed: self.failed.get(name).cloned(),
                line: self.lines.get(name).cloned(),
                factor: None,
                factor_interval: None,
                strain: trials.strain(slos),
                strain_change: trials.change(&base, slos).filter(|_| name != BASE),
                runs: trials.count(),
                paid: if name == BASE { Vec::new() } else { trials.paid(&base, slos, &self.prepared.others) },
                costs: candidate.costs,
                processor: candidate.processor,
            }
        };
        // In the order of the candidates, which decides where nothing else does.
        let place = |name: &String| {
            self.prepared
                .scenario
                .points()
                .iter()
                .position(|point| point.variant == *name)
                .unwrap_or(usize::MAX)
        };
        let mut known: Vec<(&String, &State)> = self.states.iter().collect();
        known.sort_by_key(|(name, _)| place(name));
        let ranking: Vec<RankedCandidate> = known.into_iter().map(ranked).collect();
        let is_met = !is_needed
            || ranking.iter().any(|one| {
                one.line.as_ref().is_some_and(Line::is_met)
                    || self.trials.get(&one.name).is_some_and(|trials| trials.verdict(slos) == Verdict::Keeps)
            });
        let mut advice = Advice {
            title: self.prepared.base.title().to_owned(),
            from: self.prepared.from.clone(),
            objectives: slos.iter().map(|slo| slo.text.as_str()).collect::<Vec<_>>().join(" and "),
            over: asked.over.clone(),
            tried_at: self.at,
            is_needed,
            impossible: None,
            is_met,
            ranking,
            untried: self.prepared.untried.clone(),
            notes: self.notes.clone(),
        };
        advice.rank();
        advice
    }
}
