//! [`Bvn`]: the demand as a sum of permutations (Birkhoff 1946, von Neumann 1953), found one by one.
//!
//! QuickStuff makes the sums of rows and columns equal; then any permutation of entries that are not zero represents
//! its smallest entry, which becomes zero. Solstice's paper compares with this: its choice of permutations ignores the
//! cost of a night, so there are many short days. Like Solstice, it ends as soon as the packet switch can carry the
//! rest.

use plimsoll_units::Span;

use crate::bits::Bipartite;
use crate::demand::Demand;
use crate::matching::Matching;
use crate::schedule::{Schedule, after};
use crate::scheduler::{Scheduler, Switching};
use crate::stuffing::{MatrixSums, quick_stuff};

/// The decomposition of Birkhoff and von Neumann, of a demand that QuickStuff made even.
#[derive(Clone, Debug, Default)]
pub struct Bvn {
    stuffed: Vec<u64>,
    sums: MatrixSums,
    graph: Bipartite,
}

impl Scheduler for Bvn {
    fn schedule(&mut self, demand: &Demand, switching: &Switching) -> Schedule {
        let ports = demand.ports();
        let mut schedule = Schedule::of(demand);
        let mut sum = quick_stuff(demand, &mut self.stuffed, &mut self.sums);
        let mut total = Span::ZERO;
        while sum > switching.packet_bytes(total) {
            // Each permutation is searched for from scratch: keeping most of the previous one would be Solstice's idea.
            self.graph.reset(ports);
            for (sender, row) in self.stuffed.chunks_exact(ports).enumerate() {
                self.graph.join_at_least(sender, row, 1);
            }
            assert!(self.graph.make_perfect(), "a stuffed matrix has a perfect matching");
            let circuits = (0..ports).map(|sender| sender * ports + self.graph.receiver(sender));
            let bytes = circuits.clone().map(|at| self.stuffed[at]).min().unwrap_or(0);
            circuits.for_each(|at| self.stuffed[at] -= bytes);
            let duration = switching.circuit_time(bytes);
            let matching = Matching::of_graph(self.graph.receivers());
            schedule.hold(matching, duration, switching);
            sum -= bytes;
            total = after(total, duration, switching.night);
        }
        schedule
    }
}
