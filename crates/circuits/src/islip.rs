//! [`Islip`]: the matchings of a packet switch's crossbar (McKeown, IEEE/ACM Transactions on Networking 1999), held
//! long enough for circuits.
//!
//! An iteration has three steps. A sender that is free *requests* every receiver for which it has demand; a free
//! receiver *grants* the first request from its pointer on; a sender *accepts* the first grant from its pointer on. A
//! pointer moves past its choice when the choice was accepted in the first iteration. Iterations are repeated until
//! none adds a circuit, so a matching is maximal.
//!
//! A crossbar holds a matching for one cell. A circuit switch cannot, so a matching stays until the first of its
//! circuits has nothing left, which is how long it stays the answer to the same requests: the reading under which
//! Solstice's paper can call it a scheduler without a notion of night. It ends as soon as the packet switch can carry
//! the rest.

use plimsoll_units::Span;

use crate::bits::refill;
use crate::demand::Demand;
use crate::matching::Matching;
use crate::schedule::{Schedule, after};
use crate::scheduler::{Scheduler, Switching};
use crate::stuffing::MatrixSums;

/// iSLIP, by default with as many iterations as add a circuit.
#[derive(Clone, Debug)]
pub struct Islip {
    /// The most iterations of a matching, at least 1.
    iterations_max: usize,
    /// The sender from which on each receiver grants.
    grants: Vec<usize>,
    /// The receiver from which on each sender accepts.
    accepts: Vec<usize>,
    sums: MatrixSums,
}

impl Default for Islip {
    fn default() -> Islip {
        Islip::with_iterations(usize::MAX)
    }
}

impl Scheduler for Islip {
    fn schedule(&mut self, demand: &Demand, switching: &Switching) -> Schedule {
        let ports = demand.ports();
        refill(&mut self.grants, ports, 0);
        refill(&mut self.accepts, ports, 0);
        self.sums.of(demand);
        let mut schedule = Schedule::of(demand);
        let mut total = Span::ZERO;
        while self.sums.largest() > switching.packet_bytes(total) {
            let matching = self.matching(&schedule.residue);
            let left = matching.circuits().map(|(from, to)| schedule.residue.get(from, to));
            let duration = switching.circuit_time(left.min().unwrap_or(0));
            let carried = switching.circuit_bytes(duration);
            for (from, to) in matching.circuits() {
                let bytes = carried.min(schedule.residue.get(from, to));
                self.sums.rows[from] -= bytes;
                self.sums.columns[to] -= bytes;
            }
            schedule.hold(matching, duration, switching);
            total = after(total, duration, switching.night);
        }
        schedule
    }
}

impl Islip {
    /// Returns iSLIP with at most `iterations_max` iterations a matching, and one for 0: fewer than the ports may leave
    /// a sender and a receiver free that could have a circuit.
    pub fn with_iterations(iterations_max: usize) -> Islip {
        let iterations_max = iterations_max.max(1);
        Islip { iterations_max, grants: Vec::new(), accepts: Vec::new(), sums: MatrixSums::default() }
    }

    /// Returns a matching of the entries that are not zero, maximal if iterations went on until none added a circuit.
    fn matching(&mut self, demand: &Demand) -> Matching {
        let ports = demand.ports();
        let mut receivers: Vec<Option<u32>> = vec![None; ports];
        let mut taken = vec![false; ports];
        // The receivers whose grant a sender has.
        let mut offers: Vec<Vec<usize>> = vec![Vec::new(); ports];
        for iteration in 0..self.iterations_max {
            for receiver in (0..ports).filter(|receiver| !taken[*receiver]) {
                let from = self.grants[receiver];
                let wants =
                    |sender: &usize| receivers[*sender].is_none() && demand.get(*sender, receiver) > 0;
                if let Some(sender) = (from..ports).chain(0..from).find(wants) {
                    offers[sender].push(receiver);
                }
            }
            let mut added = false;
            for (sender, offers) in offers.iter_mut().enumerate().filter(|(_, offers)| !offers.is_empty()) {
                let from = self.accepts[sender];
                let turn = |receiver: &usize| (receiver + ports - from) % ports;
                let receiver = offers.drain(..).min_by_key(turn).expect("there are offers");
                receivers[sender] = Some(receiver as u32);
                taken[receiver] = true;
                added = true;
                if iteration == 0 {
                    self.accepts[sender] = (receiver + 1) % ports;
                    self.grants[receiver] = (sender + 1) % ports;
                }
            }
            if !added {
                break;
            }
        }
        Matching::of_graph(receivers.into_iter())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All queues full: in the first cell every pointer shows to port 0; they come apart, and matchings rotate.
    #[test]
    fn pointers_come_apart() {
        let full = [1, 1, 1];
        let demand = Demand::from_rows(&[&full, &full, &full]);
        let mut islip = Islip { grants: vec![0; 3], accepts: vec![0; 3], ..Islip::default() };
        let matchings: Vec<String> = (0..4).map(|_| islip.matching(&demand).to_string()).collect();
        assert_eq!(matchings, ["0>0 1>1 2>2", "0>1 1>0 2>2", "0>2 1>1 2>0", "0>0 1>2 2>1"]);
    }

    /// With one iteration, each cell adds a circuit until the pointers are apart.
    #[test]
    fn one_iteration_leaves_ports_free() {
        let full = [1, 1, 1];
        let demand = Demand::from_rows(&[&full, &full, &full]);
        let mut islip = Islip { grants: vec![0; 3], accepts: vec![0; 3], ..Islip::with_iterations(1) };
        let matchings: Vec<String> = (0..4).map(|_| islip.matching(&demand).to_string()).collect();
        assert_eq!(matchings, ["0>0", "0>1 1>0", "0>2 1>1 2>0", "0>0 1>2 2>1"]);
    }
}
