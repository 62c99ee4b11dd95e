//! [`Schedule`]: the configurations that a scheduler makes for a demand.

use plimsoll_units::Span;

use crate::demand::Demand;
use crate::matching::Matching;
use crate::scheduler::Switching;

/// A matching, and the time for which it is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Configuration {
    /// The circuits that are established together.
    pub matching: Matching,
    /// The day: how long the circuits carry packets. The night before it is not counted.
    pub duration: Span,
}

/// Configurations in their order, and the residue that they leave to the packet switch.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Schedule {
    /// The configurations in their order.
    pub configurations: Vec<Configuration>,
    /// The bytes of the demand that no circuit has time for.
    pub residue: Demand,
}

impl Schedule {
    /// Returns the schedule without a configuration, which leaves all of a demand.
    pub fn of(demand: &Demand) -> Schedule {
        Schedule { configurations: Vec::new(), residue: demand.clone() }
    }

    /// Adds a configuration, and takes the bytes of its circuits from the residue.
    pub fn hold(&mut self, matching: Matching, duration: Span, switching: &Switching) {
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

    /// Ends the last day as soon as the packet switch can carry the rest, to a picosecond.
    ///
    /// Solstice as published takes a day whole, so that the packet switch may have little left to do; this is the
    /// variant in which both switches work to the end. A schedule that leaves more than the packet switch carries stays
    /// whole.
    pub fn cut_last_day(&mut self, demand: &Demand, switching: &Switching) {
        let Some(last) = self.configurations.pop() else { return };
        let (before, night) = (self.total(switching.night), switching.night);
        let mut left = Schedule::of(demand);
        for configuration in self.configurations.drain(..) {
            left.hold(configuration.matching, configuration.duration, switching);
        }
        let with = |duration: Span| {
            let mut with = left.clone();
            with.hold(last.matching.clone(), duration, switching);
            let is_enough = with.residue.diameter() <= switching.packet_bytes(after(before, duration, night));
            (with, is_enough)
        };
        // A longer day leaves less, and gives the packet switch more time.
        let (mut short, mut long) = (0, last.duration.as_ps());
        while short < long && with(last.duration).1 {
            let middle = short + (long - short) / 2;
            if with(Span::from_ps(middle)).1 {
                long = middle;
            } else {
                short = middle + 1;
            }
        }
        *self = with(Span::from_ps(long)).0;
    }
}

/// Returns when a day ends that begins a night after `total`, limited to the longest span.
pub(crate) fn after(total: Span, day: Span, night: Span) -> Span {
    Span::from_ps(total.as_ps().saturating_add(day.as_ps()).saturating_add(night.as_ps()))
}
