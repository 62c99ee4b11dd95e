//! [`Schedule`]: what a scheduler makes of a demand.

use plimsoll_units::Span;

use crate::demand::Demand;
use crate::matching::Matching;

/// A matching, and how long it stands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configuration {
    /// The circuits.
    pub matching: Matching,
    /// The day: how long the circuits carry packets. The night before it is not counted.
    pub duration: Span,
}

/// Configurations in the order in which they stand, and what they leave to the packet switch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schedule {
    /// The configurations in their order.
    pub configurations: Vec<Configuration>,
    /// The bytes of the demand that no circuit has time for.
    pub residue: Demand,
}

impl Schedule {
    /// Returns how long the schedule takes with a `night` before each day.
    pub fn total(&self, night: Span) -> Span {
        let days = self.configurations.iter().map(|configuration| configuration.duration + night);
        days.fold(Span::ZERO, |total, day| total + day)
    }
}
