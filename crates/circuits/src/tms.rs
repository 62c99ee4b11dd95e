//! [`Tms`]: traffic matrix scheduling, as Mordia does it (Porter et al., SIGCOMM 2013, section 3.1; Farrington 2012).
//!
//! Sinkhorn's scaling makes the demand doubly stochastic: each entry is the share of the window in which its circuit
//! would be established if nights took no time. Matchings are taken from it one by one, the heaviest first (Edmonds's
//! choice in c-Through, found here by the Hungarian method). Departures, as an exact source is missing:
//!
//! * a matching's share is the mean of its entries, not the least of them, which for the heaviest matching is often
//!   zero;
//! * days shorter than a night are not worth one, so the schedule ends before the first of them, and the window is
//!   divided among the others by their shares.

use plimsoll_units::Span;

use crate::assignment::Assignment;
use crate::demand::Demand;
use crate::matching::Matching;
use crate::schedule::Schedule;
use crate::scheduler::{Scheduler, Switching};

/// Traffic matrix scheduling: the window is shared between heaviest matchings of the scaled demand.
#[derive(Clone, Debug, Default)]
pub struct Tms {
    assignment: Assignment,
}

impl Scheduler for Tms {
    fn schedule(&mut self, demand: &Demand, switching: &Switching) -> Schedule {
        let ports = demand.ports();
        let mut schedule = Schedule::of(demand);
        if demand.total() == 0 {
            return schedule;
        }
        let mut shares = scaled(demand);
        let mut chosen: Vec<(Matching, f64)> = Vec::new();
        let window = switching.window.as_ps() as f64;
        let night = switching.night.as_ps() as f64;
        // A window of n nights has no day.
        while (chosen.len() as f64 + 1.0) * night < window && chosen.len() < ports * ports {
            let weights: Vec<i64> = shares.iter().map(|share| (share * WHOLE) as i64).collect();
            let receivers = self.assignment.heaviest(ports, &weights);
            let entries = receivers.iter().enumerate().map(|(from, to)| from * ports + *to as usize);
            let share = entries.clone().map(|at| shares[at]).sum::<f64>() / ports as f64;
            if share * window <= night || share * WHOLE < 1.0 {
                break;
            }
            // Only pairs with demand get a circuit.
            let circuits = receivers.iter().zip(entries.clone());
            let circuits =
                circuits.map(|(to, at)| (demand.bytes()[at] > 0 && shares[at] > 0.0).then_some(*to));
            chosen.push((Matching::of_graph(circuits), share));
            entries.for_each(|at| shares[at] = (shares[at] - share).max(0.0));
        }
        let days = window - chosen.len() as f64 * night;
        let all: f64 = chosen.iter().map(|(_, share)| share).sum();
        for (matching, share) in chosen {
            let duration = Span::from_ps((days * share / all) as u64);
            schedule.hold(matching, duration, switching);
        }
        schedule
    }
}

/// Returns the demand scaled such that rows and columns sum to one, row after row (Sinkhorn 1967).
fn scaled(demand: &Demand) -> Vec<f64> {
    let ports = demand.ports();
    // A byte more everywhere gives every matrix a scaling.
    let mut shares: Vec<f64> = demand.bytes().iter().map(|bytes| *bytes as f64 + 1.0).collect();
    for _ in 0..ROUNDS {
        let mut columns = vec![0.0; ports];
        for row in shares.chunks_exact_mut(ports) {
            let sum: f64 = row.iter().sum();
            for (share, column) in row.iter_mut().zip(&mut columns) {
                *share /= sum;
                *column += *share;
            }
        }
        let off = columns.iter().fold(0.0f64, |off, sum| off.max((sum - 1.0).abs()));
        for row in shares.chunks_exact_mut(ports) {
            row.iter_mut().zip(&columns).for_each(|(share, column)| *share /= column);
        }
        if off < EVEN {
            break;
        }
    }
    shares
}

/// Rounds of scaling at most; sums of a demand that has no even scaling stay apart.
const ROUNDS: usize = 200;
/// The largest difference of a column's sum from one.
const EVEN: f64 = 1e-6;
/// A share of one, as a weight.
const WHOLE: f64 = (1u64 << 40) as f64;
