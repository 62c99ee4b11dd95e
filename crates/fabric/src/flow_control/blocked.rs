//! [`BlockedTraffic`]: the packets that wait for pauses, and the ports at which these pauses have their origin. It is
//! kept where links are observed.
//!
//! ```text
//!  flow a ─┐               ┌─────────┬─> port X   most bytes of the link wait here: the origin of its pauses
//!  flow b ─┴> NIC, paused ─┤ switch  │
//!                          └─────────┴─> port Y   flow b waits in the NIC, and no port of its path is an origin:
//!                                                 it is a victim
//! ```
//!
//! A packet is *blocked* while it waits at a port at which its own priority is paused. Each port and priority has a
//! clock that runs while it is paused; the blocked time of a packet is the difference of two readings, one when it
//! joins the queue and one when it leaves. Packets that are dropped in a pause, or still wait at the end, are not
//! counted.
//!
//! A pause has its *origin* at the output port at which most of the bytes wait that the pausing account holds; unless
//! that port is paused itself: then the pause was passed on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use plimsoll_mechanisms::pfc::Priorities;
use plimsoll_units::{Span, Time};

use crate::net::{HostId, Network, Packet, PortId, Slot};
use crate::observed::MeasurementWindow;

/// The data packets of a flow, in one direction, that waited for pauses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BlockedFlow {
    /// The number of the flow.
    pub flow: u32,
    /// The blocked time of its packets, summed over packets and ports.
    pub blocked: Span,
    /// No port of its path was the origin of a pause: it waited for the congestion of others. Where paths are chosen
    /// for each packet, only the last link of the path counts.
    pub is_victim: bool,
}

/// The packets that wait for pauses, and the origins of these pauses.
#[derive(Debug)]
pub(super) struct BlockedTraffic {
    window: MeasurementWindow,
    /// By port and priority.
    clocks: Vec<[PauseClock; 8]>,
    /// The clock's reading when the packet in each slot joined its queue.
    joined: Vec<Span>,
    /// The bytes that wait, by the link by which they came, their priority and the output port.
    held: BTreeMap<(PortId, u8, PortId), u64>,
    /// A packet of each blocked flow, and the blocked time of all, by source, destination and flow.
    flows: BTreeMap<(HostId, HostId, u32), (Packet, Span)>,
    origins: BTreeSet<PortId>,
}

/// A clock that runs while a priority of a port is paused, in the measurement window.
#[derive(Clone, Copy, Default, Debug)]
struct PauseClock {
    /// The length of the pauses that have ended.
    total: Span,
    /// The start of the present pause.
    paused_since: Option<Time>,
    /// The number of packets that wait.
    waiting: u32,
    /// The time since which packets wait in the present pause, where some do.
    blocked_since: Time,
    /// The time in which packets waited in pauses that have ended.
    blocked: Span,
}

impl BlockedTraffic {
    pub(super) fn new(links: usize, window: MeasurementWindow) -> BlockedTraffic {
        BlockedTraffic {
            window,
            clocks: vec![Default::default(); links],
            joined: Vec::new(),
            held: BTreeMap::new(),
            flows: BTreeMap::new(),
            origins: BTreeSet::new(),
        }
    }

    /// Exactly the priorities in `paused` are paused at `port` from `now` on.
    pub(super) fn on_paused(&mut self, now: Time, port: PortId, paused: Priorities) {
        for (priority, clock) in (0..).zip(&mut self.clocks[port.0 as usize]) {
            match (clock.paused_since, paused.has(priority)) {
                (None, true) => (clock.paused_since, clock.blocked_since) = (Some(now), now),
                (Some(since), false) => {
                    clock.paused_since = None;
                    clock.total += self.window.part_of(since, now);
                    if clock.waiting > 0 {
                        clock.blocked += self.window.part_of(clock.blocked_since, now);
                    }
                }
                _ => {}
            }
        }
    }

    /// `packet`, which came by `link`, joins the queue of the port `out`.
    pub(super) fn entered(
        &mut self,
        now: Time,
        link: Option<PortId>,
        out: PortId,
        slot: Slot,
        packet: &Packet,
    ) {
        let priority = packet.priority & 7;
        let clock = &mut self.clocks[out.0 as usize][usize::from(priority)];
        if clock.waiting == 0 {
            clock.blocked_since = now;
        }
        clock.waiting += 1;
        let place = slot.number() as usize;
        if self.joined.len() <= place {
            self.joined.resize(place + 1, Span::ZERO);
        }
        let present = clock.paused_since.map_or(Span::ZERO, |since| self.window.part_of(since, now));
        self.joined[place] = clock.total + present;
        if let Some(link) = link {
            *self.held.entry((link, priority, out)).or_default() += u64::from(packet.size);
        }
    }

    /// `packet`, which came by `link`, leaves the queue of the port `out`.
    pub(super) fn left(&mut self, link: Option<PortId>, out: PortId, slot: Slot, packet: &Packet) {
        let priority = packet.priority & 7;
        let clock = &mut self.clocks[out.0 as usize][usize::from(priority)];
        clock.waiting -= 1;
        let blocked = clock.total.saturating_sub(self.joined[slot.number() as usize]);
        if packet.len > 0 && !blocked.is_zero() {
            let key = (packet.src, packet.dst, packet.flow);
            self.flows.entry(key).or_insert((*packet, Span::ZERO)).1 += blocked;
        }
        if let Some(link) = link
            && let Some(bytes) = self.held.get_mut(&(link, priority, out))
        {
            *bytes -= u64::from(packet.size);
            if *bytes == 0 {
                self.held.remove(&(link, priority, out));
            }
        }
    }

    /// The sender on `link` is to be paused: notes the origin of the pause.
    pub(super) fn on_pause(&mut self, link: PortId, priorities: Priorities) {
        let mut waiting: BTreeMap<PortId, u64> = BTreeMap::new();
        for priority in priorities.iter() {
            let of_priority = (link, priority, PortId(0))..=(link, priority, PortId(u32::MAX));
            for ((_, _, out), bytes) in self.held.range(of_priority) {
                *waiting.entry(*out).or_default() += bytes;
            }
        }
        let Some((out, _)) = waiting.into_iter().max_by_key(|(out, bytes)| (*bytes, Reverse(*out))) else {
            return;
        };
        let clocks = &self.clocks[out.0 as usize];
        if priorities.iter().all(|priority| clocks[usize::from(priority)].paused_since.is_none()) {
            self.origins.insert(out);
        }
    }

    /// Returns the time in which packets waited at `port` while their priority was paused, summed over priorities,
    /// until `end`.
    pub(super) fn blocked(&self, port: PortId, end: Time) -> Span {
        let of_clock = |clock: &PauseClock| match clock.paused_since {
            Some(_) if clock.waiting > 0 => clock.blocked + self.window.part_of(clock.blocked_since, end),
            _ => clock.blocked,
        };
        self.clocks[port.0 as usize].iter().map(of_clock).sum()
    }

    /// Adds what another logical process, which has ended, has observed at its ports.
    pub(super) fn absorb(&mut self, other: &BlockedTraffic, end: Time) {
        for (port, clocks) in (0..).map(PortId).zip(&mut self.clocks) {
            clocks[0].blocked += other.blocked(port, end);
        }
        self.origins.extend(&other.origins);
        for (key, (packet, blocked)) in &other.flows {
            self.flows.entry(*key).or_insert((*packet, Span::ZERO)).1 += *blocked;
        }
    }

    /// Returns the flows of which data packets were blocked. Where `by_hash` is false, paths are chosen for each
    /// packet, and only the last link of a flow is known.
    pub(super) fn flows(&self, network: &Network, by_hash: bool) -> Vec<BlockedFlow> {
        let of_flow =
            |((_, destination, flow), (packet, blocked)): (&(HostId, HostId, u32), &(Packet, Span))| {
                let crosses = if by_hash {
                    network.path(packet).any(|port| self.origins.contains(&port))
                } else {
                    self.origins.contains(&network.port_towards(*destination))
                };
                BlockedFlow { flow: *flow, blocked: *blocked, is_victim: !crosses }
            };
        self.flows.iter().map(of_flow).collect()
    }
}

#[cfg(test)]
#[path = "blocked_tests.rs"]
mod tests;
