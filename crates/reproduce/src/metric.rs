//! [`FigureMetric`]: a [`Measure`] under the name that rows have for it.

use plimsoll_experiment::Measure;
use plimsoll_results::outcome::Outcome;
use plimsoll_results::stats::Estimate;
use plimsoll_units::Span;

/// A measure, and how rows name it.
#[derive(Clone, PartialEq, Debug)]
pub struct FigureMetric {
    /// The name that rows have for it.
    pub name: String,
    /// The unit of the number: `us`, `Mb/s`.
    pub unit: String,
    /// The measure that computes the number from an outcome.
    pub of: Measure,
}

impl FigureMetric {
    /// Measures; `warmup` is cut from the beginning.
    pub fn measure(&self, outcome: &Outcome, warmup: Span) -> Option<Estimate> {
        self.of.estimate(outcome, warmup)
    }
}
