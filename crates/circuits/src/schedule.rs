//! [`Schedule`]: what a scheduler makes of a demand.

use plimsoll_units::Span;

use crate::demand::Demand;
use crate::matching::Matching;
use crate::scheduler::Switching;

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
    /// Adds a configuration, and takes from the residue what its circuits carry.
    pub(crate) fn hold(&mut self, matching: Matching, duration: Span, switching: &Switching) {
        let carried = switching.circuit_bytes(duration);
        for (sender, receiver) in matching.circuits() {
            let left = self.residue.get_mut(sender, receiver);
            *left = left.saturating_sub(carried);
        }
        self.configurations.push(Configuration { matching, duration });
    }

    /// Returns how long the schedule takes with a `night` before each day.
    pub fn total(&self, night: Span) -> Span {
        let days = self.configurations.iter().map(|configuration| configuration.duration);
        days.fold(Span::ZERO, |total, day| after(total, day, night))
    }
}

/// Returns when a day ends that begins a night after `total`; the longest span stands for what is longer.
pub(crate) fn after(total: Span, day: Span, night: Span) -> Span {
    Span::from_ps(total.as_ps().saturating_add(day.as_ps()).saturating_add(night.as_ps()))
}
