//! [`advise`]: trials of all candidates, lines of the best, and two tuned keys of the best.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use plimsoll_line::lines::Variant;
use plimsoll_line::search::{Line, rounded};
use plimsoll_line::{Asked, LineQuestion, News, Room, SearchStop, SearchWatch, SoFar, Trial, draw, trials};
use plimsoll_results::run_dir::Existing;
use plimsoll_stats::verdict::Verdict;

use crate::advice::{Advice, Ranked, State};
use crate::prepare::{AdviseError, Prepared};
use crate::trials::Trials;
use crate::variants::BASE;

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
    fn on_news(&self, news: &News<'_>, _so_far: &SoFar) {
        match news {
            News::Judged(judged) if !judged.verdict.ends_with("first run") => {
                self.watch.on_news(&format!("{} at {}: {}", judged.variant, judged.load, judged.verdict));
            }
            News::Warning(text) => self.watch.on_news(text),
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
    prepared: &'a Prepared,
    asked: &'a Asked<'a>,
    /// The question with the numbers of other workloads behind the objectives.
    with_others: Asked<'a>,
    dir: &'a Path,
    room: Room,
    watch: &'a dyn AdviseWatch,
    at: f64,
    trials: BTreeMap<String, Trials>,
    states: BTreeMap<String, State>,
    lines: BTreeMap<String, Line>,
    notes: Vec<String>,
}

/// Searches what raises the load line. Runs are kept in the folder `dir`, which a later call with the same question
/// resumes.
///
/// # Errors
/// Returns an error if a run fails or cannot be kept, or the watch cancels the search. An exhausted budget is no error.
pub fn advise(
    prepared: &Prepared,
    dir: &Path,
    room: Room,
    watch: &dyn AdviseWatch,
) -> Result<Advice, AdviseError> {
    let asked = prepared.ask()?;
    let mut with_others = asked.clone();
    with_others.slos.extend(prepared.others.iter().cloned());
    let mut searching = Searching {
        prepared,
        asked: &asked,
        with_others,
        dir,
        room,
        watch,
        at: rounded(asked.over.today),
        trials: BTreeMap::new(),
        states: BTreeMap::new(),
        lines: BTreeMap::new(),
        notes: prepared.notes.clone(),
    };
    if !searching.is_needed()? {
        return Ok(searching.advice(false));
    }
    searching.try_all()?;
    searching.search_lines()?;
    searching.tune()?;
    Ok(searching.advice(true))
}

impl Searching<'_> {
    /// Runs these variants with these replicates at the load of the trials; missing runs stay missing.
    fn run(&mut self, names: &[String], replicates: Range<u32>, until: f64) -> Result<(), SearchStop> {
        let wanted: Vec<Trial> = replicates
            .flat_map(|replicate| names.iter().map(move |name| (name, replicate)))
            .map(|(name, replicate)| Trial { variant: name.clone(), load: self.at, replicate })
            .collect();
        let limited = Limited { watch: self.watch, until };
        let runs = trials(&self.with_others, self.dir, self.room, &limited, &wanted)?;
        for (trial, run) in wanted.into_iter().zip(runs) {
            let known = &mut self.trials.entry(trial.variant).or_default().0;
            let place = trial.replicate as usize;
            if known.len() <= place {
                known.resize(place + 1, None);
            }
            known[place] = run;
        }
        if self.watch.goes_on() { Ok(()) } else { Err(SearchStop::Cancelled) }
    }

    /// Judges the scenario as it is at its load and at a multiple of it. The load of the trials is then the lower one
    /// that violates an objective.
    fn is_needed(&mut self) -> Result<bool, SearchStop> {
        let slos = &self.asked.slos;
        let base = [BASE.to_owned()];
        self.run(&base, 0..JUDGES / 2, 1.0)?;
        if self.trials.get(BASE).is_some_and(|trials| trials.verdict(slos) == Verdict::Breaks) {
            return Ok(true);
        }
        self.at = rounded((MARGIN * self.asked.over.today).min(self.asked.over.high));
        self.trials.clear();
        self.run(&base, 0..JUDGES, 1.0)?;
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
                self.run(&live, replicates.clone(), FIRST)?;
                if number + 1 == FIRST_ROUNDS || self.watch.spent() >= FIRST {
                    is_first = false;
                    self.watch.on_first(&self.advice(true));
                }
            }
            self.run(&live, replicates, TUNE_FROM)?;
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
        self.draw(&names, TUNE_FROM)
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
        self.draw(&names, 1.0)
    }

    /// Searches lines until this share of the budget is spent. The line of the scenario as it is is searched too.
    fn draw(&mut self, names: &[String], until: f64) -> Result<(), SearchStop> {
        let mut names = names.to_vec();
        names.insert(0, BASE.to_owned());
        let question = LineQuestion { variants: names.clone(), ..self.asked.question.clone() };
        let asked = Asked { question, ..self.asked.clone() };
        let limited = Limited { watch: self.watch, until };
        let lines: BTreeMap<String, (Line, State)> =
            match draw(&asked, Some(self.dir), Existing::Resume, self.room, &limited) {
                Ok(lines) => {
                    let state = |variant: &Variant| match variant.unfinished {
                        Some(_) => State::Unfinished,
                        None => State::Searched,
                    };
                    let found = lines.variants.into_iter();
                    found
                        .map(|variant| (variant.name.clone(), (variant.line.clone(), state(&variant))))
                        .collect()
                }
                Err(SearchStop::OutOfTime) => BTreeMap::new(),
                Err(error) => return Err(error),
            };
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
            let candidate =
                self.prepared.find(name).map(|(candidate, _)| candidate.clone()).unwrap_or_default();
            Ranked {
                name: name.clone(),
                what: candidate.what,
                state: *state,
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
        let ranking: Vec<Ranked> = known.into_iter().map(ranked).collect();
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
            is_met,
            ranking,
            untried: self.prepared.untried.clone(),
            notes: self.notes.clone(),
        };
        advice.rank();
        advice
    }
}
