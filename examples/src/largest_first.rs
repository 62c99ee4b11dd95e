//! A scheduler of circuits: the largest flows first.

use plimsoll_circuits::{Demand, Matching, Schedule, Scheduler, Switching};
use plimsoll_units::Span;

/// Gives the largest flow a circuit, then the largest flow whose ports are both free, and so on; the circuits stay
/// until half of them have nothing left. It ends as soon as the packet switch can carry the rest.
#[derive(Clone, Copy, Debug, Default)]
pub struct LargestFirst;

impl Scheduler for LargestFirst {
    fn schedule(&mut self, demand: &Demand, switching: &Switching) -> Schedule {
        let mut schedule = Schedule::of(demand);
        let mut total = Span::ZERO;
        while schedule.residue.diameter() > switching.packet_bytes(total) {
            let (matching, mut sizes) = largest_first(&schedule.residue);
            sizes.sort_unstable();
            let day = switching.circuit_time(sizes[sizes.len() / 2]);
            schedule.hold(matching, day, switching);
            total = total + switching.night + day;
        }
        schedule
    }
}

/// Returns circuits for the largest flows, and the bytes of each.
fn largest_first(demand: &Demand) -> (Matching, Vec<u64>) {
    let ports = demand.ports();
    let pairs = (0..ports).flat_map(|sender| (0..ports).map(move |receiver| (sender, receiver)));
    let mut flows: Vec<(u64, usize, usize)> = pairs
        .map(|(sender, receiver)| (demand.get(sender, receiver), sender, receiver))
        .filter(|(bytes, ..)| *bytes > 0)
        .collect();
    // Flows of the same size have an order too, so that a demand always has the same schedule.
    flows.sort_unstable_by(|a, b| b.cmp(a));
    let mut receivers = vec![None; ports];
    let mut taken = vec![false; ports];
    let mut sizes = Vec::new();
    for (bytes, sender, receiver) in flows {
        if receivers[sender].is_none() && !taken[receiver] {
            receivers[sender] = Some(receiver as u32);
            taken[receiver] = true;
            sizes.push(bytes);
        }
    }
    (Matching::new(receivers), sizes)
}
