//! [`ClassQueues`]: the queues of a host in a hybrid network, one for each destination.
//!
//! ```text
//!              ┌ class of host 0: closed ─────────┐
//! packet ──────┼ class of host 1: has a circuit ──┼──> circuit, at its rate ──────────────┐
//!              └ class of host 2: no circuit, or ─┘                                       ├──> NIC
//!                    a residue ────────────────────> packet switch, at its rate, in turn ─┘
//!              ─ packets for the packet switch only ─────────^ first
//! ```
//!
//! At most two classes send at a time: the class of the established circuit, and one by the packet switch. REACToR
//! calls this the host's side of its control protocol (Kapoor's thesis, section 7.2). A host with uplinks to several
//! circuit switches has a circuit by each, to different destinations or to one.

use std::collections::VecDeque;

use plimsoll_circuits::{Classify, Configuration, Demand};
use plimsoll_units::{Rate, Span, Time};

use super::waiting::Waiting;
use crate::net::{Packet, PathClass, Slot};

/// The rates of a host's two ways into a hybrid network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClassRates {
    /// The rate at which the class of a circuit may send by it.
    pub circuit: Rate,
    /// The number of circuit switches to which the host has an uplink.
    pub circuit_uplinks: u32,
    /// The rate at which the host may send to the packet switch.
    pub packet: Rate,
    /// True if the circuit is served first where both may send: the packet switch's rate would leave it nothing.
    pub circuit_first: bool,
    /// When a packet's switch is decided.
    pub classify: Classify,
}

/// Signals from the controller to a host's queues.
#[derive(Clone, Copy, Debug)]
pub enum ClassSignal<'a> {
    /// The circuit by the circuit switch of this number to this host is established.
    Open(u32, u32),
    /// The host has no circuit by this circuit switch any more.
    Close(u32),
    /// A week begins, with these configurations of all circuit switches and this residue for the packet switch. Where a
    /// time is given, the residue may be sent at the rate that spreads it over that time; otherwise at once.
    Week(&'a [Configuration], &'a Demand, Option<Span>),
}

/// One queue for each destination, and one for packets that may use the packet switch only.
#[derive(Debug)]
pub struct ClassQueues {
    /// The number of the host.
    host: usize,
    classes: Vec<DestinationQueue>,
    /// Packets that may use the packet switch only, for all destinations.
    by_packet: VecDeque<Waiting>,
    by_packet_bytes: u64,
    packets: usize,
    /// The uplinks to circuit switches.
    circuits: Vec<CircuitUplink>,
    packet: Pace,
    circuit_first: bool,
    classify: Classify,
    /// The time at which the week began.
    week: Time,
    /// The time over which a residue is spread.
    spread: Option<Span>,
    /// The class to be served next by the packet switch.
    turn: usize,
}

/// A host's uplink to a circuit switch.
#[derive(Debug)]
struct CircuitUplink {
    /// The destination of the established circuit.
    open: Option<u32>,
    /// The time at which that circuit was established.
    opened: Time,
    pace: Pace,
}

/// The packets to one destination.
#[derive(Debug, Default)]
struct DestinationQueue {
    /// Packets that either switch may carry.
    either: VecDeque<Waiting>,
    /// Packets that only circuits may carry.
    by_circuit: VecDeque<Waiting>,
    bytes: u64,
    /// The schedule of this week has a circuit for the class, so that it waits for that.
    waits: bool,
    /// The bytes that the schedule of this week leaves to the packet switch.
    residue: u64,
    /// The part of the residue that has been sent.
    residue_sent: u64,
    /// Since when the class has not been waiting for a circuit.
    free_since: Time,
}

/// A packet that leaves the queues.
#[derive(Debug)]
pub(super) struct DepartingPacket {
    /// The packet, as waiting from the time on at which its class was open.
    pub(super) waiting: Waiting,
    /// The switch by which it travels.
    pub(super) by: PathClass,
    /// The number of the circuit switch, if a circuit carries it.
    pub(super) plane: u32,
    /// The time for which it has waited for a circuit, or for the end of one.
    pub(super) held: Span,
}

/// A rate, as the time from which on the next packet may be sent.
#[derive(Debug)]
struct Pace {
    rate: Rate,
    next: Time,
}

impl Pace {
    fn new(rate: Rate) -> Pace {
        Pace { rate, next: Time::ZERO }
    }

    fn on_sent(&mut self, now: Time, bytes: u64) {
        self.next = self.next.max(now) + self.rate.byte_time().span(bytes);
    }
}

impl DestinationQueue {
    /// Returns packets and bytes that wait.
    fn waiting(&self) -> (usize, u64) {
        (self.either.len() + self.by_circuit.len(), self.bytes)
    }

    /// Removes the oldest packet that a circuit may carry. Returns with it whether only a circuit may.
    fn pop_by_circuit(&mut self) -> Option<(Waiting, bool)> {
        let since = |queue: &VecDeque<Waiting>| queue.front().map_or(Time::MAX, |waiting| waiting.since);
        let only_circuit = since(&self.by_circuit) < since(&self.either);
        let queue = if only_circuit { &mut self.by_circuit } else { &mut self.either };
        let waiting = queue.pop_front()?;
        self.bytes -= u64::from(waiting.size);
        Some((waiting, only_circuit))
    }
}

impl ClassQueues {
    /// Returns the queues of `host` towards `hosts` destinations; without a schedule, all packets that may use the
    /// packet switch take it.
    pub fn new(host: u32, hosts: u32, rates: ClassRates) -> ClassQueues {
        ClassQueues {
            host: host as usize,
            classes: (0..hosts).map(|_| DestinationQueue::default()).collect(),
            by_packet: VecDeque::new(),
            by_packet_bytes: 0,
            packets: 0,
            circuits: (0..rates.circuit_uplinks)
                .map(|_| CircuitUplink { open: None, opened: Time::ZERO, pace: Pace::new(rates.circuit) })
                .collect(),
            packet: Pace::new(rates.packet),
            circuit_first: rates.circuit_first,
            classify: rates.classify,
            week: Time::ZERO,
            spread: None,
            turn: 0,
        }
    }

    /// Returns the number of packets that wait.
    pub fn len(&self) -> usize {
        self.packets
    }

    /// Returns whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Returns packets and bytes that wait in the queue that a packet of `class` to `destination` would join.
    pub fn waiting(&self, destination: u32, class: PathClass) -> (usize, u64) {
        if self.joins_packet_queue(destination, class) {
            return (self.by_packet.len(), self.by_packet_bytes);
        }
        self.classes[destination as usize].waiting()
    }

    /// Returns packets and bytes that wait in each queue.
    pub fn all_waiting(&self) -> impl Iterator<Item = (usize, u64)> {
        let by_packet = (self.by_packet.len(), self.by_packet_bytes);
        std::iter::once(by_packet).chain(self.classes.iter().map(DestinationQueue::waiting))
    }

    /// Returns whether a packet to `destination` joins the queue of the packet switch.
    fn joins_packet_queue(&self, destination: u32, class: PathClass) -> bool {
        let is_decided = self.classify == Classify::WhenQueued && !self.classes[destination as usize].waits;
        class == PathClass::Packet || class == PathClass::Either && is_decided
    }

    /// Returns the bytes that wait in the class of `destination`, which a circuit would carry.
    pub fn class_bytes(&self, destination: u32) -> u64 {
        self.classes[destination as usize].bytes
    }

    /// Returns whether this week has a circuit to `destination`, now or later.
    pub fn has_circuit(&self, destination: u32) -> bool {
        let is_open = || self.circuits.iter().any(|uplink| uplink.open == Some(destination));
        self.classes[destination as usize].waits || is_open()
    }

    /// Handles a signal from the controller at `now`.
    pub fn on_signal(&mut self, now: Time, signal: ClassSignal<'_>) {
        match signal {
            ClassSignal::Open(plane, destination) => {
                let uplink = &mut self.circuits[plane as usize];
                (uplink.open, uplink.opened) = (Some(destination), now);
            }
            ClassSignal::Close(plane) => self.circuits[plane as usize].open = None,
            ClassSignal::Week(configurations, residue, spread) => {
                (self.week, self.spread) = (now, spread);
                for (destination, class) in self.classes.iter_mut().enumerate() {
                    let mut matchings = configurations.iter().map(|configuration| &configuration.matching);
                    let waits =
                        matchings.any(|matching| matching.receiver(self.host) == Some(destination as u32));
                    if class.waits && !waits {
                        class.free_since = now;
                    }
                    class.waits = waits;
                    class.residue = residue.get(self.host, destination);
                    class.residue_sent = 0;
                }
            }
        }
    }

    /// Adds a packet to the queue of its class.
    pub(super) fn push(&mut self, waiting: Waiting, packet: &mut Packet) {
        self.packets += 1;
        if self.joins_packet_queue(packet.dst.0, packet.path_class()) {
            packet.set_path_class(PathClass::Packet);
        }
        let class = &mut self.classes[packet.dst.0 as usize];
        let (bytes, queue) = match packet.path_class() {
            PathClass::Packet => (&mut self.by_packet_bytes, &mut self.by_packet),
            PathClass::Either => (&mut class.bytes, &mut class.either),
            PathClass::Circuit => (&mut class.bytes, &mut class.by_circuit),
        };
        *bytes += u64::from(waiting.size);
        queue.push_back(waiting);
    }

    /// Removes the packet that is sent next, if one may be sent at `now`.
    pub(super) fn pop(&mut self, now: Time) -> Option<DepartingPacket> {
        if self.packets == 0 {
            return None;
        }
        let next = if self.circuit_first {
            self.pop_circuit(now).or_else(|| self.pop_packet(now))
        } else {
            self.pop_packet(now).or_else(|| self.pop_circuit(now))
        };
        self.packets -= usize::from(next.is_some());
        next
    }

    /// Removes any packet, to be dropped.
    pub(super) fn pop_any(&mut self) -> Option<Slot> {
        let of_a_class = self.classes.iter_mut().find_map(|class| {
            let waiting = class.either.pop_front().or_else(|| class.by_circuit.pop_front())?;
            class.bytes -= u64::from(waiting.size);
            Some(waiting)
        });
        let waiting = of_a_class.or_else(|| {
            let waiting = self.by_packet.pop_front()?;
            self.by_packet_bytes -= u64::from(waiting.size);
            Some(waiting)
        })?;
        self.packets -= 1;
        Some(waiting.slot)
    }

    /// Returns when a packet that waits may be sent, where only a rate is in its way at `now`.
    pub(super) fn next_due(&self, now: Time) -> Option<Time> {
        let has_packets = |uplink: &&CircuitUplink| {
            uplink.open.is_some_and(|destination| self.classes[destination as usize].bytes > 0)
        };
        let circuit = self.circuits.iter().filter(has_packets).map(|uplink| uplink.pace.next);
        let at_packet_rate = |at: Time| at.max(self.packet.next);
        let by_packet = (!self.by_packet.is_empty()).then_some(self.packet.next);
        let classes = self.classes.iter().filter_map(|class| self.may_leave_by_packet(class));
        let next = circuit.chain(by_packet).chain(classes.map(at_packet_rate)).min();
        next.filter(|at| *at > now)
    }

    /// Returns the time from which on the first packet of `class` may leave by the packet switch, apart from its rate.
    fn may_leave_by_packet(&self, class: &DestinationQueue) -> Option<Time> {
        let first = class.either.front()?;
        if let Some(spread) = self.spread.filter(|_| class.residue > 0) {
            let needed = class.residue_sent + u64::from(first.size);
            if needed > class.residue {
                return (!class.waits).then_some(self.week + spread);
            }
            let ps = u128::from(needed) * u128::from(spread.as_ps());
            return Some(self.week + Span::from_ps(ps.div_ceil(u128::from(class.residue)) as u64));
        }
        let has_residue = class.residue_sent + u64::from(first.size) <= class.residue;
        (!class.waits || has_residue).then_some(self.week)
    }

    fn pop_circuit(&mut self, now: Time) -> Option<DepartingPacket> {
        // Of several circuits the one that has been free to send for the longest time.
        let ready = (0..).zip(&mut self.circuits).filter_map(|(plane, uplink)| {
            let destination = uplink.open.filter(|_| uplink.pace.next <= now)?;
            (self.classes[destination as usize].bytes > 0).then_some((plane, destination, uplink))
        });
        let (plane, destination, uplink) = ready.min_by_key(|(_, _, uplink)| uplink.pace.next)?;
        let class = &mut self.classes[destination as usize];
        let (waiting, only_circuit) = class.pop_by_circuit()?;
        uplink.pace.on_sent(now, u64::from(waiting.size));
        // A class that needed no circuit before this one opened did not wait for it.
        let waited = class.waits || only_circuit;
        let since = if waited { waiting.since } else { waiting.since.max(uplink.opened) };
        let departing = DepartingPacket::held(waiting, PathClass::Circuit, since, uplink.opened);
        Some(DepartingPacket { plane, ..departing })
    }

    fn pop_packet(&mut self, now: Time) -> Option<DepartingPacket> {
        if self.packet.next > now {
            return None;
        }
        if let Some(waiting) = self.by_packet.pop_front() {
            let size = u64::from(waiting.size);
            self.by_packet_bytes -= size;
            self.packet.on_sent(now, size);
            return Some(DepartingPacket { waiting, by: PathClass::Packet, plane: 0, held: Span::ZERO });
        }
        let count = self.classes.len();
        let in_turn = (0..count).map(|step| (self.turn + step) % count);
        let mut ready = in_turn
            .filter(|class| self.may_leave_by_packet(&self.classes[*class]).is_some_and(|from| from <= now));
        let number = ready.next()?;
        self.turn = (number + 1) % count;
        let class = &mut self.classes[number];
        let waiting = class.either.pop_front()?;
        let size = u64::from(waiting.size);
        class.bytes -= size;
        class.residue_sent += size;
        self.packet.on_sent(now, size);
        // A residue is free from the beginning of its week.
        let freed = if class.waits { self.week } else { class.free_since };
        Some(DepartingPacket::held(waiting, PathClass::Packet, waiting.since, freed))
    }
}

impl DepartingPacket {
    /// A packet that has waited for a circuit, or for the end of that, from `since` until `freed`.
    fn held(waiting: Waiting, by: PathClass, since: Time, freed: Time) -> DepartingPacket {
        let held = freed.saturating_since(since);
        DepartingPacket { waiting: Waiting { since: waiting.since + held, ..waiting }, by, plane: 0, held }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
