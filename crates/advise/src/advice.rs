//! [`Advice`]: the ranking of candidates, with everything that its tables print.

use plimsoll_line::Over;
use plimsoll_line::search::{Found, Line};
use plimsoll_stats::Interval;
use serde::Serialize;

/// The result of a search for what to turn on.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Advice {
    /// The title of the scenario.
    pub title: String,
    /// The variant of the scenario that everything is compared with.
    pub from: String,
    /// The objectives in words.
    pub objectives: String,
    /// The load that is searched.
    pub over: Over,
    /// The load at which candidates were tried first, in the unit of `over`.
    pub tried_at: f64,
    /// False where the scenario as it is meets its objectives at `tried_at`, so that nothing was ranked.
    pub is_needed: bool,
    /// The reason why no candidate could meet an objective, so that nothing was ranked.
    pub impossible: Option<String>,
    /// Whether every objective is met at `tried_at` or at some searched load by some variant.
    pub is_met: bool,
    /// The candidates, the best first; the scenario as it is is one of them.
    pub ranking: Vec<RankedCandidate>,
    /// The candidates that were not tried, each with the reason.
    pub untried: Vec<(String, String)>,
    /// Facts that the reader needs beside the ranking: assumptions, and what the time did not suffice for.
    pub notes: Vec<String>,
}

/// The results of a candidate so far.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct RankedCandidate {
    /// The name of the candidate, with its tuned value if it has one.
    pub name: String,
    /// Its description, one line.
    pub what: String,
    /// How far the search went.
    pub state: State,
    /// The reason why it could not be run.
    pub failed: Option<String>,
    /// Its load line, where one was searched.
    pub line: Option<Line>,
    /// The line divided by that of the scenario as it is.
    pub factor: Option<f64>,
    /// The interval of the factor, from the ends of both lines' intervals.
    pub factor_interval: Option<Interval>,
    /// How close the objectives are to their limits at the load of the trials: measured over allowed, above 1 violates.
    pub strain: Option<f64>,
    /// The paired difference of the strain from the scenario as it is, with its 95 % interval.
    pub strain_change: Option<(f64, Option<Interval>)>,
    /// The number of runs of the trials.
    pub runs: usize,
    /// What other workloads pay, measured in the trials.
    pub paid: Vec<CandidateCost>,
    /// Who pays for it, in words.
    pub costs: String,
    /// The processor time at hosts, in words.
    pub processor: String,
}

/// The change of one number of another workload, at the load of the trials.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CandidateCost {
    /// The number: `goodput(bulk)`.
    pub measure: String,
    /// Its value divided by that in the scenario as it is, as the mean of pairs of runs.
    pub factor: f64,
    /// The 95 % interval of the factor; `None` for one pair.
    pub interval: Option<Interval>,
}

/// How far the search of a candidate went.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Its line was searched to the end.
    Searched,
    /// Its line is that of a search that the budget ended.
    Unfinished,
    /// It was clearly worse than another in the trials.
    Dropped,
    /// The trials do not exclude it, and its line was not searched.
    Open,
    /// It has the same runs as the scenario as it is.
    WithoutEffect,
    /// It could not be run, for the reason in [`RankedCandidate::failed`].
    Failed,
}

impl State {
    /// Returns the state in words.
    pub fn words(self) -> &'static str {
        match self {
            State::Searched => "searched",
            State::Unfinished => "unfinished",
            State::Dropped => "dropped",
            State::Open => "open",
            State::WithoutEffect => "no effect",
            State::Failed => "could not be run",
        }
    }
}

impl RankedCandidate {
    /// Returns the load by which candidates are ranked: the line's, or the highest load for a line above all.
    fn reached(&self) -> Option<f64> {
        let line = self.line.as_ref()?;
        match line.found() {
            Found::Always => Some(f64::INFINITY),
            Found::Never => Some(0.0),
            Found::Line | Found::Undecided => line.load().or(line.low()),
        }
    }
}

impl Advice {
    /// Sorts the candidates: lines first, the highest first, then by strain. Equal ones keep their order.
    pub fn rank(&mut self) {
        let base = self.ranking.iter().find(|one| one.name == crate::BASE).and_then(|one| one.line.clone());
        for one in &mut self.ranking {
            let ends = base.as_ref().zip(one.line.as_ref());
            let ratio = |a: Option<f64>, b: Option<f64>| Some(a? / b?);
            (one.factor, one.factor_interval) = match ends {
                Some((base, line)) => (
                    ratio(line.load(), base.load()),
                    ratio(line.low(), base.high())
                        .zip(ratio(line.high(), base.low()))
                        .map(|(low, high)| Interval { low, high }),
                ),
                None => (None, None),
            };
        }
        let place = |one: &RankedCandidate| match one.state {
            State::Searched | State::Unfinished => 0,
            State::Open => 1,
            State::Dropped | State::WithoutEffect => 2,
            State::Failed => 3,
        };
        self.ranking.sort_by(|a, b| {
            let (mine, theirs) = (a.reached().unwrap_or(-1.0), b.reached().unwrap_or(-1.0));
            let strain = |one: &RankedCandidate| one.strain.unwrap_or(f64::INFINITY);
            place(a).cmp(&place(b)).then(theirs.total_cmp(&mine)).then(strain(a).total_cmp(&strain(b)))
        });
    }

    /// Returns the best candidate, if it is better than the scenario as it is: by its line, or by the trials where no
    /// line is known.
    pub fn best(&self) -> Option<&RankedCandidate> {
        let best = self.ranking.first().filter(|best| best.name != crate::BASE)?;
        let base = self.ranking.iter().find(|one| one.name == crate::BASE)?;
        match (best.reached(), base.reached()) {
            (Some(best_load), Some(base_load)) => (best_load > base_load).then_some(best),
            (Some(best_load), None) => (best_load > 0.0).then_some(best),
            (None, _) => (best.strain? < base.strain?).then_some(best),
        }
    }

    /// Returns the line of the scenario as it is.
    pub(crate) fn base_line(&self) -> Option<&Line> {
        self.ranking.iter().find(|one| one.name == crate::BASE)?.line.as_ref()
    }

    /// Whether the intervals of the best and of the scenario as it is are disjoint.
    pub fn is_certain(&self, best: &RankedCandidate) -> bool {
        let change = best.strain_change.and_then(|(_, interval)| interval);
        match (&best.line, self.base_line()) {
            (Some(line), Some(base)) => match (line.low(), base.high()) {
                (Some(low), Some(high)) => low > high,
                _ => false,
            },
            (Some(_), None) => false,
            (None, _) => change.is_some_and(|change| change.high < 0.0),
        }
    }
}
