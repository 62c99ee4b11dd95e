//! [`LookAhead`]: asks memory for what the events to come will use, many at a time.
//!
//! In a network that is larger than the cache every event waits for memory several times, each time at an
//! address that the load before gave:
//!
//! ```text
//! link ──> its first packet ──> destination, next port ──> the port ──> its queue, its link's last packet
//!                          └──> connection                          └──> what the connection refers to
//! ```
//!
//! The events of a bucket of the calendar are known together, and those of the next buckets too. So whenever a bucket
//! begins, each step is taken for the events of another of the buckets behind it, the first one for the farthest; by
//! then, what the step before asked for has come. Where a packet goes is looked up once and kept. Nothing else changes
//! but the cache, so a run is the same without it.
//!
//! Measured on fat-trees with k = 32, pairs in turns: 0.77 of the time that loads took which waited, a bucket at a
//! time. More steps, for the tables that say where a link's first packet and a connection are, cost 3 to 15 %.

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::PortId;
use plimsoll_fabric::{Fabric, Hooks, LeadsTo};

use crate::connection::{Connection, End};

/// What was asked for and has not been followed yet.
#[derive(Debug, Default)]
pub(crate) struct LookAhead {
    /// The links whose first packet was asked for.
    links: Vec<PortId>,
    /// The ports that were asked for.
    ports: Vec<PortId>,
    /// The ends of connections that were asked for.
    ends: Vec<(u32, End)>,
}

/// The number of ports from which on looking ahead pays: with fewer, what it asks for is in the cache already. Measured
/// on fat-trees: a fifth lost at 770 ports, even at 2,600, a little won at 6,100 and a quarter at 49,000.
pub(crate) const LOOK_AHEAD_PORTS: usize = 4_000;

/// How many buckets behind the current one are looked at: one for each step.
const BUCKETS: u64 = 3;

impl LookAhead {
    /// Takes the next step for each of the next buckets, if a bucket has begun.
    #[inline]
    pub(crate) fn prefetch<H: Hooks>(
        &mut self,
        fabric: &mut Fabric<H>,
        connections: &[Option<Box<Connection>>],
    ) {
        if fabric.events().take_turn() {
            self.step(fabric, connections);
        }
    }

    #[inline(never)] // once a bucket: within the loop over events it would take their registers
    fn step<H: Hooks>(&mut self, fabric: &mut Fabric<H>, connections: &[Option<Box<Connection>>]) {
        let open = |number: u32| connections.get(number as usize).and_then(Option::as_deref);
        for port in self.ports.drain(..) {
            fabric.prefetch_queue(port);
        }
        for (number, end) in self.ends.drain(..) {
            if let Some(connection) = open(number) {
                connection.prefetch_behind(end);
            }
        }
        for link in self.links.drain(..) {
            match fabric.prefetch_next_hop(link) {
                Some(LeadsTo::Port(port)) => self.ports.push(port),
                Some(LeadsTo::Host(packet)) => {
                    self.ports.push(PortId(packet.dst.0));
                    let (number, end) = (packet.flow, End::receiving(packet));
                    if let Some(connection) = open(number) {
                        connection.prefetch(end);
                        self.ends.push((number, end));
                    }
                }
                None => {}
            }
        }
        while let Some(owners) = fabric.events().look_further(BUCKETS) {
            self.links.extend(owners.filter(is_link).map(|owner| PortId(owner.number())));
        }
        for link in &self.links {
            fabric.prefetch_first(*link);
        }
    }
}

fn is_link(owner: &Owner) -> bool {
    owner.kind() == OwnerKind::Link
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::path::Path;

    use plimsoll_results::Digest;
    use plimsoll_scenario::Scenario;

    use crate::Extensions;
    use crate::build::build;

    /// Losses, retransmissions, marks and equal times, in a network in which nobody would look ahead otherwise.
    const PERMUTATION: &str = r#"
version = 1
title = "Looked at ahead"
[run]
duration = "2ms"
[topology]
kind = "fat-tree"
k = 4
rate = "10Gbps"
delay = "1us"
[port.switch]
buffer = "40 packets"
ecn = { threshold = "30 packets" }
[transport]
kind = "dctcp"
[workload.bulk]
kind = "permutation"
"#;

    #[test]
    fn a_run_is_the_same_without_looking_ahead() {
        let scenario = Scenario::parse("inline", PERMUTATION, Path::new(".")).unwrap();
        let digest = |looks_ahead: bool| {
            let mut build = build(&scenario.points()[0].model, Extensions::default()).unwrap();
            build.world.ahead = looks_ahead.then(Box::default);
            let end = build.world.run(&mut |_| true).unwrap();
            let outcome = build.finish(end);
            assert!(outcome.counters.switch_drops > 0 && outcome.counters.marks > 0);
            Digest::of(&outcome)
        };
        assert_eq!(digest(true), digest(false));
    }
}
