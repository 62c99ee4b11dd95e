//! [`RepeatMode`]: whether rounds and iterations of a job that repeat are replayed.

use plimsoll_units::Span;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which rounds and iterations of a job are replayed in place of simulated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RepeatMode {
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
    /// How many rounds, or iterations, stand for one that is simulated.
    pub(crate) every: u32,
}

impl Repeat {
    /// Returns whether what took `now` repeats what took `before`.
    pub(super) fn agree(&self, before: Span, now: Span) -> bool {
        match self.mode {
            RepeatMode::Detect => difference(before, now) <= TOLERANCE,
            RepeatMode::Exact => before == now,
        }
    }
}

/// Returns by how much `now` differs from `before`, as a share of that.
pub(super) fn difference(before: Span, now: Span) -> f64 {
    (now.as_us_f64() / before.as_us_f64().max(f64::MIN_POSITIVE) - 1.0).abs()
}

/// The largest difference of two durations that count as equal.
const TOLERANCE: f64 = 0.01;
