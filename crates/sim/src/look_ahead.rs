//! [`LookAhead`]: prefetches the memory that the next events will use.
//!
//! In a network that is larger than the cache next to the processor, the packet of the next event is asked for while
//! this one is handled. In one that is larger than all caches every event waits for memory several times, each time at
//! an address that the load before gave:
//!
//! ```text
//! link ──> its first packet ──> destination, next port ──> the port ──> its queue, its link's last packet
//!                          │                                       └──> the packet that leaves that queue next
//!                          └──> connection ──> the memory behind the connection
//! ```
//!
//! The events of a bucket of the calendar are known together, and so are the next buckets' events. So whenever a bucket
//! begins, each step is taken for the events of another of the buckets behind it, the first one for the farthest; by
//! then, the memory of the step before has arrived. Where a packet goes is looked up once and kept. With some sixty
//! events, of which each uses eight cache lines, three buckets need more than the nearest cache holds: so hints for
//! them fill the cache behind it, from which the next event's packet is asked for. Nothing else changes but the caches,
//! so a run is the same without it.
//!
//! Measured on fat-trees with k = 32, pairs in turns: 0.77 of the time that loads took which waited, a bucket at a
//! time; hints for the second cache instead of the nearest, 0.87 of that, and the next event's packet from there 0.94
//! of that again. The tables that say where a link leads and where its lane ends are asked for together with what is
//! behind them: with large pages that takes 0.97 of the time with k = 32 and 0.86 with k = 160, with small ones it cost
//! more than it gave. Hints in loops that do nothing else take 0.95 of that with k = 160, and as long with 32 and 48; a
//! step of its own for where a lane begins gains nothing. Steps taken for one event at a time, between events, take
//! 1.07 of the time with k = 32, 1.2 with 48 and 1.5 with 160: among other work fewer hints are under way. With k = 8
//! the next event's packet gains 3 %, its next port on top of that nothing. Where ports decide at each departure, what
//! they refer to takes 0.73 of the time on a loaded fat-tree with k = 32 and priorities, and 0.96 on one that is half
//! idle.

use plimsoll_fabric::engine::OwnerKind;
use plimsoll_fabric::net::PortId;
use plimsoll_fabric::{Fabric, Hooks, LeadsTo};
use plimsoll_traffic::ConnectionEnd as End;

use crate::hosts::Hosts;

/// How far ahead memory is asked.
#[derive(Debug)]
pub(crate) enum LookAhead {
    /// Not at all: all is in the nearest cache.
    Nothing,
    /// For the packet of the next event.
    NextPacket,
    /// For the events of the next buckets, a step each, and for the packet of the next event.
    Buckets(Box<BucketsAhead>),
}

/// The requests that have not been followed yet.
#[derive(Debug, Default)]
pub(crate) struct BucketsAhead {
    /// The links whose first packet was asked for.
    links: Vec<PortId>,
    /// The ports that were asked for because they begin to send.
    sending: Vec<PortId>,
    /// The ports whose queue was prefetched, and in which packets wait.
    serving: Vec<PortId>,
    /// The ports that were asked for.
    ports: Vec<PortId>,
    /// The ends of connections that were asked for.
    ends: Vec<(u32, End)>,
}

/// The number of ports from which on looking ahead by buckets pays: with fewer, the memory is in the cache
/// already. Measured on fat-trees: a fifth lost at 770 ports, even at 2,600, a little won at 6,100 and a quarter at
/// 49,000.
const BUCKETS_PORTS: usize = 4_000;
/// The number of ports from which on the next event's packet is worth its hint: 2 % lost at 20, even at 100 and 320.
const NEXT_PACKET_PORTS: usize = 500;

/// How many buckets behind the current one are looked at: one for each step.
const BUCKETS: u64 = 3;

impl LookAhead {
    /// Returns how far ahead it pays to look in a network with this number of ports.
    pub(crate) fn for_network(ports: usize) -> LookAhead {
        match ports {
            BUCKETS_PORTS.. => LookAhead::Buckets(Box::default()),
            NEXT_PACKET_PORTS.. => LookAhead::NextPacket,
            _ => LookAhead::Nothing,
        }
    }

    /// Prefetches the memory that the next events will use.
    #[inline]
    pub(crate) fn prefetch<H: Hooks>(&mut self, fabric: &mut Fabric<H>, hosts: &Hosts) {
        if let LookAhead::Nothing = self {
            return;
        }
        if let LookAhead::Buckets(buckets) = self {
            buckets.prefetch(fabric, hosts);
        }
        fabric.prefetch_next();
    }
}

impl BucketsAhead {
    /// Takes the next step for each of the next buckets, if a bucket has begun.
    #[inline]
    fn prefetch<H: Hooks>(&mut self, fabric: &mut Fabric<H>, hosts: &Hosts) {
        if fabric.events().take_turn() {
            self.step(fabric, hosts);
        }
    }

    #[inline(never)] // once a bucket: within the loop over events it would take their registers
    fn step<H: Hooks>(&mut self, fabric: &mut Fabric<H>, hosts: &Hosts) {
        for port in self.serving.drain(..) {
            fabric.prefetch_departure(port);
        }
        for port in self.ports.drain(..).chain(self.sending.drain(..)) {
            if fabric.prefetch_queue(port) {
                self.serving.push(port);
            }
        }
        for (number, end) in self.ends.drain(..) {
            hosts.prefetch_behind(number, end);
        }
        for link in self.links.drain(..) {
            match fabric.find_next_hop(link) {
                Some(LeadsTo::Port(port)) => self.ports.push(port),
                Some(LeadsTo::Host(packet)) => {
                    self.ports.push(PortId(packet.dst.0));
                    self.ends.push((packet.flow, End::receiving(packet)));
                }
                None => {}
            }
        }
        // Loops of their own: between hints for one hop and the next the processor has less to do.
        for port in &self.ports {
            fabric.prefetch_port(*port);
        }
        for (number, end) in &self.ends {
            hosts.prefetch(*number, *end);
        }
        while let Some(owners) = fabric.events().look_further(BUCKETS) {
            for owner in owners {
                match owner.kind() {
                    OwnerKind::Link => self.links.push(PortId(owner.number())),
                    OwnerKind::Port => self.sending.push(PortId(owner.number())),
                    _ => {}
                }
            }
        }
        for port in &self.sending {
            fabric.prefetch_port(*port);
        }
        for link in &self.links {
            fabric.prefetch_first(*link);
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use std::path::Path;

    use plimsoll_results::Digest;
    use plimsoll_scenario::Scenario;

    use super::*;
    use crate::build::build;

    /// Losses, retransmissions, marks and equal times, in a network in which a run would not look ahead otherwise.
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
        // Ports whose departures are known at admission, ports that decide at each, and paths that a switch chooses for
        // each packet.
        for (order, paths) in [("fifo", ""), ("priorities", ""), ("fifo", "paths.spray = {}\n")] {
            let order = format!("[port.switch]\norder = \"{order}\"");
            let text =
                PERMUTATION.replace("[port.switch]", &order).replace("[run]\n", &format!("{paths}[run]\n"));
            let scenario = Scenario::parse("inline", &text, Path::new(".")).unwrap();
            let digest = |ahead: LookAhead| {
                let mut build = build(&scenario.points()[0].model).unwrap();
                build.world.ahead = ahead;
                let end = build.world.run(&mut |_| true).unwrap();
                let outcome = build.finish(end);
                let counters = &outcome.counters;
                assert!(!paths.is_empty() || counters.switch_drops > 0 && counters.marks > 0, "{order}");
                Digest::of(&outcome)
            };
            let without = digest(LookAhead::Nothing);
            assert_eq!(digest(LookAhead::NextPacket), without, "{order}");
            assert_eq!(digest(LookAhead::Buckets(Box::default())), without, "{order}");
        }
    }
}
