//! [`Search`]: the choice of the next loads to run, and the estimate of the line. It runs nothing itself: it returns
//! the runs that it needs, takes their results and ends in a [`Line`].
//!
//! 1. Today's load and the lowest are run first: the lowest shows whether there is a line at all, and the components
//!    of the latency where nothing waits.
//! 2. From a load that meets every objective, the search goes upwards by half until one is violated, or straight to
//!    the highest load where the measured values are far below every limit; between two such loads it takes the
//!    geometric mean, until the two are as close as the wanted precision.
//! 3. Each load is run with 4, 8, 16, ... seeds until its interval decides. All these looks together are
//!    wrong about a load less than once in twenty: each is taken at a level of 1 - 0.05 / looks, the
//!    first two at 99.9 %.
//! 4. A load that stays open with all seeds is within the noise of the line. Then both ends of the noise are
//!    searched for in the same way, each to a quarter of the whole. A load for which that is nearly certain gets no
//!    further seeds.
//! 5. A load that cannot be measured is abandoned, which leaves it open; nothing above it is tried.
//! 6. At last the lower end gets more seeds until rare bad runs would have shown. If they show, or the seeds do not
//!    suffice, it is open, and the search continues below it.
//!
//! A *load* meets objectives up to its line. For another key (`SearchAxis::side` is `None`) the better direction is
//! unknown, so both ends of the range are run first:
//!
//! ```text
//! met ─────┐                    ┌───── met        met ─────────── met
//!          └── violated   violated ─┘             violated ─ violated
//! below the line            above the line        ends that agree: four values between them are run
//!
//! met ──┐      ┌── met      violated ──┐      ┌── violated
//!       └ violated                      └ met ─┘
//! below the line, up to     above the line, up to the
//! the first violation       lowest value that meets them
//! ```
//!
//! From then on, steps 3 to 6 apply, from the end that meets the objectives to the one that does not. Where a value
//! between ends that agree differs from them, the search is for the change next to the lower end: the other one, beyond
//! it, is not searched for, and the result says that it is there.
//!
//! The 95 % confidence *interval* of the line runs from the highest load that meets every objective to the lowest that
//! violates one. A load that meets them above an open one whose runs are over a limit in the mean does not count as a
//! lower end, as one of the two is chance. The line itself is where the mean of the measured numbers, taken linearly
//! between the loads in the interval, meets the limit of the first objective to be broken.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::verdict::{Looks, Verdict};

pub use crate::line::{Found, Judged, Line, Side};

/// The objectives of a search: the measurements of its runs, and whether these meet the objectives.
pub trait Objectives {
    /// The measurements of one run.
    type Run;

    /// Returns the number of objectives.
    fn count(&self) -> usize;

    /// Returns whether the runs of one load show by themselves that the system does not carry it: not all messages
    /// completed.
    fn is_overloaded(&self, runs: &[&Self::Run]) -> bool;

    /// Judges an objective by the runs of one load, so that a verdict is wrong with a probability of 1 - `level`.
    fn judge(&self, objective: usize, runs: &[&Self::Run], level: f64) -> Verdict;

    /// Returns whether the runs of one load, which meet an objective, would still meet it if rare bad runs were added.
    fn confirms(&self, objective: usize, runs: &[&Self::Run], level: f64) -> bool;

    /// Returns whether `most` runs may decide an objective that these leave open.
    fn may_decide(&self, _objective: usize, _runs: &[&Self::Run], _most: u32, _level: f64) -> bool {
        true
    }

    /// Returns whether the runs of one load are so far from every limit that the highest load is worth a try.
    fn is_far_below(&self, _runs: &[&Self::Run]) -> bool {
        false
    }

    /// Returns the measured number as a multiple of the limit: above 1 violates the objective. `None` if nothing was
    /// measured.
    fn strain(&self, objective: usize, runs: &[&Self::Run]) -> Option<f64>;
}

/// The range and the precision of a search.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SearchRange {
    /// The lowest load that is tried, in the unit of the load.
    pub low: f64,
    /// The load at which the search begins.
    pub start: f64,
    /// The highest load that is tried.
    pub high: f64,
    /// A load that is expected to violate an objective, and so is tried next above `start`; `None` where nothing is
    /// known.
    pub expected: Option<f64>,
    /// The wanted width of the interval, as a share of the load.
    pub precision: f64,
    /// The greatest number of runs of one load.
    pub replicates_max: u32,
    /// The axis of the search: a load, or the values of another key.
    pub axis: SearchAxis,
}

/// The quantity that a search varies, which is called a load here whatever it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SearchAxis {
    /// The side of the line on which the objectives are met; `None` where the runs at both ends have to show it.
    pub side: Option<Side>,
    /// The numbers that may be tried.
    pub values: SearchValues,
}

impl SearchAxis {
    /// A load: objectives are met below the line.
    pub const LOAD: SearchAxis = SearchAxis { side: Some(Side::Below), values: SearchValues::Any };
}

/// The numbers that a search may try.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchValues {
    /// Numbers of four significant digits.
    #[default]
    Any,
    /// Whole numbers.
    Whole,
    /// Whole powers of two: 1, 2, 4.
    PowersOfTwo,
}

/// A run that a search needs.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ask {
    /// The load of the run, in the unit of the search.
    pub load: f64,
    /// The replicate, whose seed is the same for all variants and loads.
    pub replicate: u32,
}

/// Whether a load meets every objective.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SearchState {
    /// Every objective is met.
    Keeps,
    /// An objective is violated.
    Sinks,
    /// The runs so far do not decide.
    Running,
    /// The allowed runs do not decide: the load is within the noise of the line.
    Open,
}

/// The search for one line.
#[derive(Clone, Debug)]
pub struct Search<O: Objectives> {
    objectives: O,
    range: SearchRange,
    looks: Looks,
    /// The runs by the bits of the load: loads are positive, so the bits are in their order.
    loads: BTreeMap<u64, BTreeMap<u32, O::Run>>,
    /// The bits of the loads that stay open, since they cannot be measured.
    abandoned: BTreeSet<u64>,
    /// No load can meet the objectives.
    ruled_out: bool,
}

/// The step upwards while every load meets the objectives.
const STEP: f64 = 1.5;

/// The values that are run between two ends of a range that agree, evenly spaced; beside today's.
const INSIDE: u32 = 4;
/// A range that spans more than this factor has these values evenly spaced in the logarithm.
const WIDE: f64 = 10.0;

/// Rounds a load to the four significant digits with which it is run.
pub fn rounded(load: f64) -> f64 {
    format!("{load:.3e}").parse().unwrap_or(load)
}

impl SearchAxis {
    /// Rounds a load to one that may be run.
    pub fn rounded(self, load: f64) -> f64 {
        match self.values {
            SearchValues::Any => rounded(load),
            SearchValues::Whole => rounded(load).round().max(1.0),
            SearchValues::PowersOfTwo => load.log2().round().max(0.0).exp2(),
        }
    }
}

impl<O: Objectives> Search<O> {
    /// Makes a search that has not begun. The loads of `range` are rounded to four significant digits.
    pub fn new(objectives: O, range: SearchRange) -> Search<O> {
        let on_axis = |load| range.axis.rounded(load);
        let (low, high) = (on_axis(range.low), on_axis(range.high));
        let start = on_axis(range.start).clamp(low, high);
        let mut search = Search {
            objectives,
            range: SearchRange { low, start, high, ..range },
            looks: Looks { max: range.replicates_max },
            loads: BTreeMap::new(),
            abandoned: BTreeSet::new(),
            ruled_out: false,
        };
        let first = if range.axis.side.is_some() { [low, start] } else { [low, high] };
        for load in first {
            search.loads.insert(load.to_bits(), BTreeMap::new());
        }
        search
    }

    /// Returns the runs that are needed now; none when the line is determined.
    pub fn asks(&mut self) -> Vec<Ask> {
        if self.ruled_out {
            return Vec::new();
        }
        loop {
            let open = self.loads.keys().copied().find(|&bits| self.state(bits) == SearchState::Running);
            if open.is_none() {
                let inside = self.missing_inside();
                if !inside.is_empty() {
                    self.loads.extend(inside.into_iter().map(|load| (load.to_bits(), BTreeMap::new())));
                    continue;
                }
                if let Some(load) = self.next_load() {
                    self.loads.entry(load.to_bits()).or_default();
                    continue;
                }
                let lower_end = self.known().kept.map(f64::to_bits);
                return lower_end
                    .filter(|&bits| !self.is_confirmed(bits))
                    .map_or(Vec::new(), |bits| self.missing(bits));
            }
            let running = self.loads.keys().copied().filter(|&bits| self.state(bits) == SearchState::Running);
            return running.flat_map(|bits| self.missing(bits)).collect();
        }
    }

    /// Takes the result of a run that the search needed.
    pub fn take(&mut self, ask: Ask, run: O::Run) {
        self.loads.entry(ask.load.to_bits()).or_default().insert(ask.replicate, run);
    }

    /// Leaves a load open that cannot be measured; no more runs of it are requested.
    pub fn abandon(&mut self, load: f64) {
        self.abandoned.insert(load.to_bits());
    }

    /// Returns the loads that have been run, ascending, with their state and their runs.
    pub fn loads(&self) -> impl Iterator<Item = (f64, SearchState, Vec<&O::Run>)> {
        self.loads
            .iter()
            .filter(|(_, runs)| !runs.is_empty())
            .map(|(&bits, runs)| (f64::from_bits(bits), self.state(bits), runs.values().collect()))
    }

    /// Ends the search before any further run, since no load can meet the objectives.
    pub fn rule_out(&mut self) {
        self.ruled_out = true;
    }

    /// Returns the current estimate of the line; it is final once no more runs are needed.
    pub fn line(&self) -> Line {
        let side = self.side();
        let (nearest, farthest) = side.ends(self.range.low, self.far_end());
        let judged = |found, load, kept, sunk, binding, not_monotone| {
            let (low, high) = side.ends(kept, sunk);
            Line::from(Judged { found, load, low, high, binding, not_monotone, side })
        };
        if self.ruled_out {
            return judged(Found::Never, None, None, Some(nearest), None, false);
        }
        if !self.are_ends_judged() {
            return judged(Found::Undecided, None, None, None, None, false);
        }
        let Bracket { kept, sunk, above, .. } = self.known();
        let above = above || self.differs_inside().is_some();
        let found = match (kept, sunk) {
            (None, Some(sunk)) if !side.is_nearer(nearest, sunk) => Found::Never,
            (Some(kept), None) if !side.is_nearer(kept, farthest) => Found::Always,
            _ => Found::Line,
        };
        let (load, binding) = self.crossing(kept, sunk);
        judged(found, load, kept, sunk, binding, above)
    }

    /// Returns the side on which the objectives are met, as far as the runs at the ends show it.
    fn side(&self) -> Side {
        self.range.axis.side.unwrap_or_else(|| match self.states_of_ends() {
            (SearchState::Sinks, high) if high != SearchState::Sinks => Side::Above,
            _ => Side::Below,
        })
    }

    /// Returns the states of the lower end of the range and of its [`far_end`](Self::far_end).
    fn states_of_ends(&self) -> (SearchState, SearchState) {
        (self.state_of(self.range.low), self.state_of(self.far_end()))
    }

    /// Returns the upper end of the range; of another key than a load, if both ends agree, the lowest value between
    /// them that differs from them, where there is one.
    fn far_end(&self) -> f64 {
        self.differs_inside().unwrap_or(self.range.high)
    }

    /// Returns the lowest value between two ends of the range of another key that agree, which differs from them.
    fn differs_inside(&self) -> Option<f64> {
        let ends = [self.range.low, self.range.high].map(|end| self.state_of(end));
        let other = match ends {
            _ if self.range.axis.side.is_some() => return None,
            [SearchState::Keeps, SearchState::Keeps] => SearchState::Sinks,
            [SearchState::Sinks, SearchState::Sinks] => SearchState::Keeps,
            _ => return None,
        };
        self.loads.keys().copied().find(|bits| self.state(*bits) == other).map(f64::from_bits)
    }

    /// Returns the values that are still to be run between two ends of the range of another key that agree.
    fn missing_inside(&self) -> Vec<f64> {
        let SearchRange { low, high, start, axis, .. } = self.range;
        if axis.side.is_some() || !self.are_ends_judged() || self.has_knee() {
            return Vec::new();
        }
        let at = |step: u32| {
            let share = f64::from(step) / f64::from(INSIDE + 1);
            axis.rounded(if high > WIDE * low {
                low * (high / low).powf(share)
            } else {
                low + share * (high - low)
            })
        };
        let mut inside: Vec<f64> = (1..=INSIDE).map(at).chain([start]).collect();
        inside.retain(|load| !self.loads.contains_key(&load.to_bits()));
        inside
    }

    /// Returns whether the runs at both ends decide; true where the side is known without them.
    fn are_ends_judged(&self) -> bool {
        let (low, high) = self.states_of_ends();
        let is_judged = |state| matches!(state, SearchState::Keeps | SearchState::Sinks);
        self.range.axis.side.is_some() || (is_judged(low) && is_judged(high))
    }

    /// Returns whether the load that meets every objective does so for certain; true where there is none.
    pub fn is_lower_end_confirmed(&self) -> bool {
        self.known().kept.is_none_or(|kept| self.is_confirmed(kept.to_bits()))
    }

    /// Estimates the number of further runs until the line is determined, from the width of the bracket and the runs
    /// that a load has taken so far.
    pub fn runs_left(&self) -> usize {
        if self.ruled_out {
            return 0;
        }
        let SearchRange { low, precision, axis, .. } = self.range;
        let high = self.far_end();
        let running = self.loads.keys().copied().filter(|&bits| self.state(bits) == SearchState::Running);
        let pending: usize = running.map(|bits| self.missing(bits).len()).sum();
        let Bracket { kept, sunk, .. } = self.known();
        let side = self.side();
        let (nearest, farthest) = side.ends(low, high);
        if kept.is_some_and(|kept| !side.is_nearer(kept, farthest))
            || sunk.is_some_and(|sunk| !side.is_nearer(nearest, sunk))
            || (axis.side.is_none() && pending == 0 && !self.has_knee())
        {
            return pending + self.missing_inside().len() * self.looks.all()[0] as usize;
        }
        let width = (sunk.unwrap_or(farthest) / kept.unwrap_or(nearest)).ln().abs() / (1.0 + precision).ln();
        let steps = width.max(1.0).log2().ceil();
        let judged: Vec<usize> = self.loads.values().map(BTreeMap::len).filter(|runs| *runs > 0).collect();
        let each = judged.iter().sum::<usize>() as f64 / judged.len().max(1) as f64;
        pending + (steps * each.max(f64::from(self.looks.all()[0]))).ceil() as usize
    }

    /// Returns whether a load that has been run meets the objectives.
    pub fn state_of(&self, load: f64) -> SearchState {
        self.state(load.to_bits())
    }

    /// Returns the missing runs up to the next look.
    fn missing(&self, bits: u64) -> Vec<Ask> {
        let runs = &self.loads[&bits];
        let next = self.looks.all().into_iter().find(|&look| runs.len() < look as usize).unwrap_or(0);
        let load = f64::from_bits(bits);
        (0..next)
            .filter(|replicate| !runs.contains_key(replicate))
            .map(|replicate| Ask { load, replicate })
            .collect()
    }

    fn state(&self, bits: u64) -> SearchState {
        if self.abandoned.contains(&bits) {
            return SearchState::Open;
        }
        let Some(runs) = self.loads.get(&bits) else { return SearchState::Running };
        let looks = self.looks.all();
        if !looks.contains(&(runs.len() as u32)) {
            return SearchState::Running;
        }
        let (runs, level): (Vec<&O::Run>, f64) = (runs.values().collect(), self.looks.level(runs.len()));
        if self.objectives.is_overloaded(&runs) {
            return SearchState::Sinks;
        }
        let verdicts: Vec<Verdict> = (0..self.objectives.count())
            .map(|objective| self.objectives.judge(objective, &runs, level))
            .collect();
        if verdicts.contains(&Verdict::Breaks) {
            SearchState::Sinks
        } else if verdicts.iter().all(|verdict| *verdict == Verdict::Keeps) {
            // With fewer runs it is not confirmed yet; it is confirmed only if it is to be the lower end.
            let is_last = looks.last() == Some(&(runs.len() as u32));
            if is_last && !self.confirms(&runs, level) { SearchState::Open } else { SearchState::Keeps }
        } else {
            let most = looks[looks.len() - 1];
            let level = self.looks.level(most as usize);
            let may_decide = |objective: usize| self.objectives.may_decide(objective, &runs, most, level);
            let mut open = (0..verdicts.len()).filter(|&number| verdicts[number] == Verdict::Open);
            if runs.len() as u32 >= most || !open.any(may_decide) {
                SearchState::Open
            } else {
                SearchState::Running
            }
        }
    }

    /// Returns whether a load meets the objectives for certain.
    fn is_confirmed(&self, bits: u64) -> bool {
        let Some(runs) = self.loads.get(&bits) else { return false };
        let level = self.looks.level(runs.len());
        self.state(bits) == SearchState::Keeps && self.confirms(&runs.values().collect::<Vec<_>>(), level)
    }

    fn confirms(&self, runs: &[&O::Run], level: f64) -> bool {
        (0..self.objectives.count()).all(|objective| self.objectives.confirms(objective, runs, level))
    }

    /// Returns whether a load between the ends of the interval has fewer seeds than another would get: its mean is not
    /// comparable, as the first seeds deviate to the same side at all loads.
    fn was_given_up(&self, bits: u64, runs: usize, kept: Option<f64>) -> bool {
        let is_between = kept.is_none_or(|kept| self.side().is_nearer(kept, f64::from_bits(bits)))
            && self.state(bits) != SearchState::Sinks;
        is_between && self.looks.all().last().is_some_and(|most| runs < *most as usize)
    }

    /// Returns whether the runs of a load are over the limit of an objective in the mean.
    fn is_over_in_the_mean(&self, load: f64) -> bool {
        let runs: Vec<&O::Run> = self.loads[&load.to_bits()].values().collect();
        let strain = |objective| self.objectives.strain(objective, &runs);
        (0..self.objectives.count()).any(|objective| strain(objective).is_some_and(|strain| strain > 1.0))
    }

    /// Returns whether the lower and the far end of the range of another key than a load differ, so that a knee is
    /// between them.
    fn has_knee(&self) -> bool {
        let (low, high) = self.states_of_ends();
        self.are_ends_judged() && low != high
    }

    /// Chooses the next load to try, once all that have been tried are judged.
    fn next_load(&self) -> Option<f64> {
        let SearchRange { low, precision, axis, .. } = self.range;
        let high = self.far_end();
        if axis.side.is_none() {
            if !self.has_knee() {
                return None;
            }
            if !self.loads.contains_key(&self.range.start.to_bits()) {
                return Some(self.range.start);
            }
        }
        let Bracket { kept, sunk, open, .. } = self.known();
        let Some(sunk) = sunk else {
            let from = kept.unwrap_or(low);
            let mut abandoned = self.abandoned.iter().map(|&bits| f64::from_bits(bits));
            if let Some(to) = abandoned.find(|load| *load >= from) {
                // Loads above it cannot be measured either.
                let middle = axis.rounded((from * to).sqrt());
                let is_wide = (to / from).ln() > (1.0 + precision).ln();
                return (is_wide && !self.loads.contains_key(&middle.to_bits())).then_some(middle);
            }
            let (&bits, runs) = self.loads.last_key_value()?;
            let most = f64::from_bits(bits);
            let is_far_below = self.objectives.is_far_below(&runs.values().collect::<Vec<_>>());
            let next = match self.range.expected.map(rounded).filter(|expected| *expected > most) {
                Some(expected) => expected.min(high),
                None if is_far_below => high,
                None => axis.rounded((most * STEP).min(high)),
            };
            return (most < high && next > most).then_some(next);
        };
        let side = self.side();
        let (nearest, _) = side.ends(low, high);
        // The end where objectives are met is always tried, so without a kept load it is sunk or open.
        if kept.is_none() && !side.is_nearer(nearest, sunk) {
            return None;
        }
        let kept = kept.unwrap_or(nearest);
        let first = open.first().copied().unwrap_or(sunk);
        let last = open.last().copied().unwrap_or(kept);
        let width = |from: f64, to: f64| (to / from).ln().abs();
        // The step is a factor of the load: without noise the whole, with noise a quarter of it, in the logarithm.
        let whole = if open.is_empty() { 0.0 } else { width(kept, sunk) / 4.0 };
        let near = whole.max((1.0 + precision).ln());
        for (from, to) in [(kept, first), (last, sunk)] {
            let middle = axis.rounded((from * to).sqrt());
            if width(from, to) > near && !self.loads.contains_key(&middle.to_bits()) {
                return Some(middle);
            }
        }
        None
    }

    fn known(&self) -> Bracket {
        let (side, last) = (self.side(), self.far_end());
        let loads = self.loads.keys().map(|&bits| f64::from_bits(bits)).filter(|load| *load <= last);
        let mut states: Vec<(f64, SearchState)> = loads.map(|load| (load, self.state_of(load))).collect();
        if side == Side::Above {
            states.reverse();
        }
        let of = |wanted: SearchState| {
            states.iter().filter(move |(_, state)| *state == wanted).map(|(load, _)| *load)
        };
        let sunk = of(SearchState::Sinks).next();
        let below = |load: &f64| sunk.is_none_or(|sunk| side.is_nearer(*load, sunk));
        let doubtful = of(SearchState::Open).find(|load| self.is_over_in_the_mean(*load));
        let kept = of(SearchState::Keeps)
            .rfind(|load| below(load) && doubtful.is_none_or(|doubtful| side.is_nearer(*load, doubtful)));
        Bracket {
            kept,
            sunk,
            open: of(SearchState::Open)
                .filter(below)
                .filter(|load| kept.is_none_or(|kept| side.is_nearer(kept, *load)))
                .collect(),
            above: of(SearchState::Keeps).any(|load| !below(&load)),
        }
    }

    /// Returns the load at which the first objective reaches its limit, and the number of that objective.
    fn crossing(&self, kept: Option<f64>, sunk: Option<f64>) -> (Option<f64>, Option<usize>) {
        let side = self.side();
        let inside = |load: f64| {
            kept.is_none_or(|kept| !side.is_nearer(load, kept))
                && sunk.is_none_or(|sunk| !side.is_nearer(sunk, load))
        };
        let middle = || {
            Some(match (kept, sunk) {
                (Some(kept), Some(sunk)) => (kept * sunk).sqrt(),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => return None,
            })
        };
        let mut first: Option<(f64, usize)> = None;
        for number in 0..self.objectives.count() {
            let points = self.loads.iter().filter(|(bits, runs)| {
                !runs.is_empty()
                    && inside(f64::from_bits(**bits))
                    && !self.was_given_up(**bits, runs.len(), kept)
            });
            let mut strains: Vec<(f64, f64)> = points
                .filter_map(|(bits, runs)| {
                    let runs: Vec<&O::Run> = runs.values().collect();
                    Some((f64::from_bits(*bits), self.objectives.strain(number, &runs)?))
                })
                .collect();
            if side == Side::Above {
                strains.reverse();
            }
            let here = match strains.first() {
                Some(&(load, strain)) if strain > 1.0 => Some(load),
                _ => strains.windows(2).find(|pair| pair[0].1 <= 1.0 && pair[1].1 > 1.0).map(between),
            };
            if let Some(load) = here
                && first.is_none_or(|(least, _)| side.is_nearer(load, least))
            {
                first = Some((load, number));
            }
        }
        match first {
            Some((load, number)) => (Some(load), Some(number)),
            // No number crosses: the runs at the upper end did not drain.
            None => (middle(), None),
        }
    }
}

/// The bracket that the judged loads give, seen from the side on which the objectives are met: "below" means nearer to
/// that side.
struct Bracket {
    /// The highest load that meets the objectives below every violated one and every doubtful one.
    kept: Option<f64>,
    /// The lowest violated load.
    sunk: Option<f64>,
    /// The open loads between the two.
    open: Vec<f64>,
    /// A load that meets the objectives lies above a violated one.
    above: bool,
}

/// Returns the position at which the line through two points is 1.
fn between(pair: &[(f64, f64)]) -> f64 {
    let [(x0, y0), (x1, y1)] = [pair[0], pair[1]];
    x0 + (x1 - x0) * (1.0 - y0) / (y1 - y0)
}
