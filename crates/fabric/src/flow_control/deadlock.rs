//! The search for switches that pause each other for ever.
//!
//! ```text
//!     ┌──────────────────────────── waits for ───────────────────────────┐
//!     │  s0 -> s1             s1 -> s2             s2 -> s0              │
//!     └> paused by s1         paused by s2         paused by s0 ─────────┘
//!        p p p p              q q q q              r r r r
//!                             └ entered s1 by s0 -> s1, and are more than its resume threshold
//! ```
//!
//! A priority of a paused port is *stuck* if the switch at the far end never resumes it: the packets from this link
//! that wait there in stuck priorities are alone more than the resume threshold. The stuck priorities are the greatest
//! fixed point of this: the search begins with all paused priorities and removes the ones that would be resumed if
//! everything else left, until none is removed. What remains never moves, whatever moves beside it. Each of its
//! priorities waits for another one, so that a walk ends in a circle.
//!
//! Nothing that may leave otherwise is taken for stuck: a priority with a resume under way, a link that will fail or
//! come back, which forgets its pauses, a port with a watchdog, and queues that may drop waiting packets
//! ([`Port::lines`]). So a deadlock is there at any later time, too.

use std::collections::BTreeMap;

use plimsoll_mechanisms::pfc::Priorities;
use plimsoll_units::Time;

use super::FlowControl;
use crate::engine::Lanes;
use crate::faults::Faults;
use crate::net::{Network, Node, Port, PortId, Slot};

/// Switches that pause each other in a circle: none of these links will ever move again.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deadlock {
    /// When a pause last took effect on one of the links.
    pub at: Time,
    /// The links of the circle, each as `from -> to`.
    pub links: Vec<String>,
}

/// A port of a switch that is paused, and the packets that wait there.
#[derive(Debug)]
pub struct HeldPort {
    port: PortId,
    /// The priorities that are paused until another signal is sent.
    paused: Priorities,
    /// When a pause last took effect.
    last_pause: Time,
    /// The waiting packets. A packet that may not be sent holds up the ones behind it in its line.
    lines: Vec<Vec<HeldPacket>>,
}

/// A packet that waits at a paused port.
#[derive(Clone, Copy, Debug)]
struct HeldPacket {
    /// The port that sends on the link by which the packet entered the switch, if the switch may pause it.
    entered_by: Option<PortId>,
    priority: u8,
    bytes: u64,
}

/// The paused ports, and the priorities of each that are still taken for stuck.
struct StuckSearch<'a> {
    control: &'a FlowControl,
    ports: BTreeMap<PortId, HeldPort>,
    stuck: BTreeMap<PortId, Priorities>,
}

impl FlowControl {
    /// Returns whether it is time to look for a deadlock after `events` events: in the long run a search looks at one
    /// packet for every few events.
    pub fn is_search_due(&self, events: u64) -> bool {
        events >= self.next_search && !self.paused.is_empty()
    }

    /// Notes that `ports` were searched after `events` events.
    pub fn on_search(&mut self, events: u64, ports: &[HeldPort]) {
        let packets: usize = ports.iter().flat_map(|port| &port.lines).map(Vec::len).sum();
        self.next_search =
            events + SEARCH_EVENTS_MIN + SEARCH_EVENTS_PER_ITEM * (ports.len() + packets) as u64;
    }

    /// Returns the paused ports of switches that no change of links frees after `now`, with the packets that wait
    /// there.
    pub fn held_ports(
        &self,
        now: Time,
        ports: &[Port],
        lanes: &Lanes,
        faults: Option<&Faults>,
    ) -> Vec<HeldPort> {
        let is_watched = |port: &PortId| self.link(*port).is_some_and(|link| link.sender.watchdog.is_some());
        let lasting = |port: &PortId| {
            !is_watched(port) && !faults.is_some_and(|faults| faults.breaks_after(*port, now))
        };
        self.paused
            .iter()
            .copied()
            .filter(lasting)
            .filter_map(|port| {
                let sender = &self.link(port)?.sender;
                let first = self.places[port.0 as usize].first()?;
                let held = |slot: Slot| {
                    let packet = lanes.packet(slot);
                    let link = &self.ingress[first + usize::from(packet.ingress)];
                    let entered_by = link.as_ref().map(|link| link.port);
                    HeldPacket { entered_by, priority: packet.priority & 7, bytes: packet.size.into() }
                };
                let lines = ports[port.0 as usize].lines(lanes.notes());
                Some(HeldPort {
                    port,
                    paused: sender.paused_for_now(),
                    last_pause: sender.last_pause(),
                    lines: lines.into_iter().map(|line| line.into_iter().map(held).collect()).collect(),
                })
            })
            .collect()
    }

    /// Finds a circle of links that pause each other for ever, among all paused ports.
    pub fn find_deadlock(&self, network: &Network, ports: Vec<HeldPort>) -> Option<Deadlock> {
        let stuck = ports.iter().map(|held| (held.port, held.paused)).collect();
        let ports = ports.into_iter().map(|held| (held.port, held)).collect();
        let mut search = StuckSearch { control: self, ports, stuck };
        while search.narrows() {}
        let circle = search.circle()?;
        let at = circle.iter().map(|port| search.ports[port].last_pause).max()?;
        let links = circle.into_iter().map(|port| {
            let link = network.link(port);
            format!("{} -> {}", name(link.from), name(link.to))
        });
        Some(Deadlock { at, links: links.collect() })
    }
}

impl StuckSearch<'_> {
    /// Removes the priorities that are resumed once everything has left that is not stuck. Returns whether there were
    /// any.
    fn narrows(&mut self) -> bool {
        let mut held: BTreeMap<PortId, [u64; 8]> = BTreeMap::new();
        for (_, _, packet) in self.stuck_packets() {
            if let Some(port) = packet.entered_by {
                held.entry(port).or_default()[usize::from(packet.priority)] += packet.bytes;
            }
        }
        let control = self.control;
        let mut narrows = false;
        self.stuck.retain(|port, stuck| {
            let stays = |priority: &u8| control.keeps_paused(*port, *priority, &held);
            let rest = stuck.iter().filter(stays).fold(Priorities::default(), Priorities::with);
            narrows |= rest != *stuck;
            *stuck = rest;
            !rest.is_empty()
        });
        narrows
    }

    /// Returns the packets that never leave, each with its port and the priority there that holds it up.
    fn stuck_packets(&self) -> impl Iterator<Item = (PortId, u8, HeldPacket)> {
        self.stuck.iter().flat_map(|(&port, &stuck)| {
            self.ports[&port].lines.iter().flat_map(move |line| {
                let mut held_up =
                    line.iter().skip_while(move |packet| !stuck.has(packet.priority)).peekable();
                let by = held_up.peek().map_or(0, |first| first.priority);
                held_up.map(move |packet| (port, by, *packet))
            })
        })
    }

    /// Returns the ports of a circle, from its lowest one on, if anything is stuck.
    fn circle(&self) -> Option<Vec<PortId>> {
        let (&port, stuck) = self.stuck.first_key_value()?;
        let mut walk = vec![(port, stuck.highest()?)];
        loop {
            let next = self.waits_for(*walk.last()?)?;
            if let Some(first) = walk.iter().position(|passed| *passed == next) {
                let mut circle: Vec<PortId> = walk[first..].iter().map(|(port, _)| *port).collect();
                let lowest = circle.iter().enumerate().min_by_key(|(_, port)| **port)?.0;
                circle.rotate_left(lowest);
                return Some(circle);
            }
            walk.push(next);
        }
    }

    /// Returns the stuck priority of a port that holds up packets from the link of `port`, so that its `priority` stays
    /// paused.
    fn waits_for(&self, (port, priority): (PortId, u8)) -> Option<(PortId, u8)> {
        let members = self.control.members(port, priority);
        let mut packets = self.stuck_packets();
        packets
            .find(|(_, _, packet)| packet.entered_by == Some(port) && members.has(packet.priority))
            .map(|(next, by, _)| (next, by))
    }
}

fn name(node: Node) -> String {
    match node {
        Node::Host(host) => format!("h{}", host.0),
        Node::Switch(switch) => format!("s{switch}"),
    }
}

/// Events between two searches for a deadlock, for each paused port and each packet that waits there: a search of them
/// takes about as long as an event.
const SEARCH_EVENTS_PER_ITEM: u64 = 8;

/// The fewest events between two searches for a deadlock.
const SEARCH_EVENTS_MIN: u64 = 1_000;

#[cfg(test)]
#[path = "deadlock_tests.rs"]
mod tests;
