//! [`Eclipse`]: most bytes a unit of time, greedily (Bojja Venkatakrishnan, Alizadeh and Viswanath, SIGMETRICS 2016).
//!
//! The bytes that a set of days serves are a submodular function of the set, so the greedy choice of the day with the
//! largest `bytes served / (day + night)` serves at least a constant share of the bytes that the best schedule of the
//! window serves. For a given day, the best matching is the heaviest one in the demand, each entry limited to the bytes
//! of a circuit in that day. The best day ends when some flow does: between two such days, the bytes of a matching grow
//! no faster than at the one before.
//!
//! Departure: the paper searches the days by bisection. Here a grid of [`GRID`] sizes of flows is tried and then one
//! between the neighbours of its best, since the quotient need not have a single peak.

use plimsoll_units::Span;

use crate::assignment::{Assignment, HEAVIEST};
use crate::demand::Demand;
use crate::matching::Matching;
use crate::schedule::Schedule;
use crate::scheduler::{Scheduler, Switching};

/// Eclipse: serves as much of the demand as it can in the window, by circuits alone.
#[derive(Clone, Debug, Default)]
pub struct Eclipse {
    assignment: Assignment,
    weights: Vec<i64>,
}

/// A day with its matching.
struct Day {
    receivers: Vec<u32>,
    duration: Span,
    bytes: u64,
}

impl Scheduler for Eclipse {
    fn schedule(&mut self, demand: &Demand, switching: &Switching) -> Schedule {
        let mut schedule = Schedule::of(demand);
        let mut left = switching.window;
        loop {
            let longest = left.saturating_sub(switching.night);
            let Some(day) = self.best_day(&schedule.residue, longest, switching) else { return schedule };
            let circuits = day.receivers.iter().enumerate();
            let circuits = circuits
                .map(|(from, to)| (schedule.residue.get(from, *to as usize) > 0).then_some(*to))
                .collect::<Vec<_>>();
            schedule.hold(Matching::of_graph(circuits.into_iter()), day.duration, switching);
            left = left.saturating_sub(day.duration).saturating_sub(switching.night);
        }
    }
}

impl Eclipse {
    /// Returns the day of at most `longest` that serves most a unit of time, if one serves anything.
    fn best_day(&mut self, demand: &Demand, longest: Span, switching: &Switching) -> Option<Day> {
        let most = switching.circuit_bytes(longest).min(HEAVIEST as u64);
        let mut sizes: Vec<u64> =
            demand.bytes().iter().filter(|bytes| **bytes > 0).map(|bytes| (*bytes).min(most)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        sizes.retain(|bytes| *bytes > 0);
        let last = sizes.len().checked_sub(1)?;
        let (mut best, mut best_at): (Option<Day>, usize) = (None, 0);
        let (mut from, mut to) = (0, last);
        loop {
            let step = (to - from).div_ceil(GRID).max(1);
            for at in (from..=to).step_by(step).chain([to]) {
                let day = self.day(demand, sizes[at], switching);
                if best.as_ref().is_none_or(|best| day.is_better_than(best, switching.night)) {
                    (best, best_at) = (Some(day), at);
                }
            }
            if step == 1 {
                return best;
            }
            (from, to) = (best_at.saturating_sub(step), (best_at + step).min(last));
        }
    }

    /// Returns the day in which a circuit carries `bytes`, with the matching that serves most in it.
    fn day(&mut self, demand: &Demand, bytes: u64, switching: &Switching) -> Day {
        self.weights.clear();
        self.weights.extend(demand.bytes().iter().map(|left| (*left).min(bytes) as i64));
        let receivers = self.assignment.heaviest(demand.ports(), &self.weights);
        let circuits = receivers.iter().enumerate();
        let served = circuits.map(|(from, to)| demand.get(from, *to as usize).min(bytes)).sum();
        Day { receivers, duration: switching.circuit_time(bytes), bytes: served }
    }
}

impl Day {
    fn is_better_than(&self, other: &Day, night: Span) -> bool {
        let cost = |day: &Day| u128::from(day.duration.as_ps()) + u128::from(night.as_ps());
        u128::from(self.bytes) * cost(other) > u128::from(other.bytes) * cost(self)
    }
}

/// Days that are tried between two.
const GRID: usize = 12;
