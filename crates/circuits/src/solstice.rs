//! [`Solstice`]: few long configurations, the rest by packets (Liu et al., CoNEXT 2015, section 4).
//!
//! ```text
//! D' = QuickStuff(D);  r = the largest power of two below max(D')
//! while the sums of D' exceed the capacity of the packet switch in T:
//!     P = a perfect matching of entries of at least r          (BigSlice)
//!     if there is one: day = min of D' on P;  D' -= day * P;  D -= day * P;  T += day + night
//!     else r = r / 2
//! ```
//!
//! Every row and column of a stuffed matrix has the same sum, and a permutation takes the same from each: one number is
//! the sum of all of them. BigSlice is a matching in the graph of the entries of at least r. A day lowers only the
//! entries on its circuits, and a halved r only adds edges, so the search for the next matching begins from the last
//! one, less the circuits that fell below r.

use plimsoll_units::Span;

use crate::bits::Bipartite;
use crate::demand::Demand;
use crate::matching::Matching;
use crate::schedule::{Configuration, Schedule, after};
use crate::scheduler::{Scheduler, Switching};
use crate::stuffing::{MatrixSums, quick_stuff};

/// Solstice. It serves the whole demand in little time with both switches; the packet switch carries the residue while
/// the schedule lasts.
#[derive(Clone, Debug, Default)]
pub struct Solstice {
    stuffed: Vec<u64>,
    sums: MatrixSums,
    graph: Bipartite,
}

impl Scheduler for Solstice {
    fn schedule(&mut self, demand: &Demand, switching: &Switching) -> Schedule {
        let ports = demand.ports();
        let mut schedule = Schedule::of(demand);
        let mut sum = quick_stuff(demand, &mut self.stuffed, &mut self.sums);
        let largest = self.stuffed.iter().copied().max().unwrap_or(0);
        let mut least = largest_power_below(largest);
        self.graph.reset(ports);
        self.join_at_least(least);
        let mut total = Span::ZERO;
        while sum > switching.packet_bytes(total) {
            if !self.graph.make_perfect() {
                // Entries are whole, and a matrix of equal sums has a perfect matching of entries that are not zero.
                assert!(least > 1, "a stuffed matrix has a perfect matching");
                least /= 2;
                self.join_at_least(least);
                continue;
            }
            let entries = (0..ports).map(|sender| self.stuffed[sender * ports + self.graph.receiver(sender)]);
            let bytes = entries.min().unwrap_or(0);
            let duration = switching.circuit_time(bytes);
            let matching = Matching::of_graph(self.graph.receivers());
            self.slice(bytes, switching.circuit_bytes(duration), least, &mut schedule.residue);
            schedule.configurations.push(Configuration { matching, duration });
            sum -= bytes;
            total = after(total, duration, switching.night);
        }
        schedule
    }
}

impl Solstice {
    fn join_at_least(&mut self, least: u64) {
        let rows = self.stuffed.chunks_exact(self.sums.rows.len().max(1));
        rows.enumerate().for_each(|(sender, row)| self.graph.join_at_least(sender, row, least));
    }

    /// Takes `bytes` from every entry on the matching, and `carried` from the demand; an entry that falls below `least`
    /// loses its circuit.
    fn slice(&mut self, bytes: u64, carried: u64, least: u64, residue: &mut Demand) {
        let ports = self.sums.rows.len();
        for sender in 0..ports {
            let receiver = self.graph.receiver(sender);
            let left = residue.get_mut(sender, receiver);
            *left = left.saturating_sub(carried);
            let entry = &mut self.stuffed[sender * ports + receiver];
            *entry -= bytes;
            if *entry < least {
                self.graph.part(sender, receiver);
            }
        }
    }
}

/// Returns the largest power of two below `value`, and 1 if `value` is at most 1.
fn largest_power_below(value: u64) -> u64 {
    1 << value.saturating_sub(1).max(1).ilog2()
}

#[cfg(test)]
mod tests {
    use plimsoll_units::Rate;

    use super::*;

    /// The worked example of the paper's Figs 2 and 3, in which a byte takes one unit of time: a picosecond.
    #[test]
    fn the_papers_example() {
        let demand = Demand::from_rows(&[
            &[0, 13, 10, 70, 4],
            &[0, 0, 14, 12, 69],
            &[65, 0, 0, 12, 14],
            &[15, 33, 2, 0, 11],
            &[12, 7, 3, 1, 0],
        ]);
        assert_eq!(demand.diameter(), 98);
        let switching = Switching {
            circuit_rate: Rate::from_bps(8_000_000_000_000),
            packet_rate: Rate::from_bps(800_000_000_000),
            night: Span::from_ps(1),
            window: Span::from_ps(100),
        };
        let schedule = Solstice::default().schedule(&demand, &switching);
        let days: Vec<u64> = schedule.configurations.iter().map(|each| each.duration.as_ps()).collect();
        assert_eq!(days, [69, 11, 10]);
        assert_eq!(schedule.total(switching.night), Span::from_ps(93));
        let circuits: Vec<String> =
            schedule.configurations.iter().map(|each| each.matching.to_string()).collect();
        assert_eq!(circuits[0], "0>3 1>4 2>0 3>1 4>2");
        // The residue fits the packet switch: 9 bytes in 93 units at a tenth of a byte a unit.
        assert!(schedule.residue.diameter() <= 9, "{:?}", schedule.residue);
    }

    #[test]
    fn powers_below() {
        for (value, power) in [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2), (5, 4), (71, 64), (u64::MAX, 1 << 63)]
        {
            assert_eq!(largest_power_below(value), power, "{value}");
        }
    }

    #[test]
    fn nothing_to_send_needs_no_circuit() {
        let switching = Switching {
            circuit_rate: Rate::from_gbps(100),
            packet_rate: Rate::from_gbps(10),
            night: Span::from_us(20),
            window: Span::from_ms(3),
        };
        for ports in [0, 1, 5] {
            let demand = Demand::new(ports);
            let schedule = Solstice::default().schedule(&demand, &switching);
            assert_eq!(schedule, Schedule { configurations: Vec::new(), residue: demand });
        }
    }
}
