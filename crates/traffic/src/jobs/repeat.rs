//! [`RepeatMode`]: whether rounds and iterations of a job that repeat are replayed.

use plimsoll_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which rounds and iterations of a job are replayed in place of simulated.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatMode {
    /// No round or iteration is replayed.
    #[default]
    Off,
    /// Those that follow two of equal length, within 1 %: an approximation, in which some are simulated again and
    /// compared.
    Detect,
    /// Those before which all is as it was one round or iteration earlier, so that a simulation would give the same.
    /// For `network = "loggops"`, whose state is that of the job alone.
    Exact,
}

/// Which rounds and iterations of a job are replayed, and how many.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Repeat {
    pub(crate) mode: RepeatMode,
    /// Up to how many rounds, or iterations, stand for one that is simulated.
    pub(crate) every: u32,
}

impl Repeat {
    /// Returns whether what took `now` repeats what took `before`.
    pub(super) fn agree(&self, before: Span, now: Span) -> bool {
        match self.mode {
            RepeatMode::Off => false,
            RepeatMode::Detect => difference(before, now) <= TOLERANCE,
            RepeatMode::Exact => before == now,
        }
    }
}

/// How often what has agreed is replayed: once at first, and twice as often and once more each time that a simulation
/// confirms a replay, so that an agreement by chance is found before much depends on it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Trust {
    times: u64,
    first: u64,
    most: u64,
}

impl Trust {
    pub(super) fn new(repeat: Repeat) -> Trust {
        let (first, most) = match repeat.mode {
            RepeatMode::Off => (0, 0),
            RepeatMode::Detect => (1, u64::from(repeat.every) - 1),
            RepeatMode::Exact => (u64::MAX, u64::MAX),
        };
        Trust { times: first, first, most }
    }

    /// Returns how often it is replayed now.
    pub(super) fn times(&self) -> u64 {
        self.times.min(self.most)
    }

    /// Notes whether what was replayed took as long when it was simulated again.
    pub(super) fn note(&mut self, agrees: bool) {
        self.times = if agrees { self.times.saturating_mul(2).saturating_add(1) } else { self.first };
    }
}

/// Returns by how much `now` differs from `before`, as a share of that.
pub(super) fn difference(before: Span, now: Span) -> f64 {
    (now.as_us_f64() / before.as_us_f64().max(f64::MIN_POSITIVE) - 1.0).abs()
}

/// The largest difference of two durations that count as equal.
const TOLERANCE: f64 = 0.01;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trust_grows_with_each_replay_that_a_simulation_confirms() {
        let mut trust = Trust::new(Repeat { mode: RepeatMode::Detect, every: 10 });
        let mut times = Vec::new();
        for agrees in [true, true, true, true, false, true] {
            times.push(trust.times());
            trust.note(agrees);
        }
        assert_eq!(times, [1, 3, 7, 9, 9, 1]);
        let mut trust = Trust::new(Repeat { mode: RepeatMode::Exact, every: 10 });
        trust.note(false);
        assert_eq!(trust.times(), u64::MAX);
    }
}
