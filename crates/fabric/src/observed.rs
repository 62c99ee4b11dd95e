//! Observations of a fabric: the counters of the run, the watched queues, and the totals of each link.

use std::ops::AddAssign;

use plimsoll_units::{Rate, Span, Time};

use crate::net::{Network, Node, Packet, PortId};

/// The part of a run that is measured: from the warm-up to the end of the sending. The time in which the network drains
/// is excluded, as it would only dilute the result.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MeasurementWindow {
    /// The first instant that counts.
    pub from: Time,
    /// The last instant that counts.
    pub until: Time,
}

impl MeasurementWindow {
    /// Returns whether `time` lies in the window.
    pub fn has(self, time: Time) -> bool {
        (self.from..=self.until).contains(&time)
    }

    /// Returns how much of the time between `start` and `end` lies in the window.
    pub fn part_of(self, start: Time, end: Time) -> Span {
        end.min(self.until).saturating_since(start.max(self.from))
    }
}

/// A queue that the run observes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WatchedQueue {
    /// The scenario's name for the queue.
    pub name: String,
    /// The port whose queue it is.
    pub port: PortId,
    /// The length of an interval.
    pub every: Span,
}

/// Observations of one watched queue.
#[derive(Clone, PartialEq, Debug)]
pub struct Queue {
    /// The scenario's name for it.
    pub name: String,
    /// The port in words: `tor -> h0`.
    pub port: String,
    /// The rate of its link, which turns bytes into queueing delay.
    pub rate: Rate,
    /// The length of an interval.
    pub every: Span,
    /// The start of the first interval.
    pub from: Time,
    /// The time average of the waiting bytes in each interval; the packet in service does not count.
    pub mean_bytes: Vec<f64>,
    /// The most bytes that waited in each interval.
    pub max_bytes: Vec<u64>,
    /// Picoseconds spent at each number of waiting bytes: bin 0 is the empty queue, bin `i` holds more
    /// than `i - 1` and at most `i` times [`Queue::BIN_BYTES`], and the last bin is open.
    pub time_at: Vec<u64>,
    /// The number of packets that found no room.
    pub drops: u64,
    /// The number of packets marked CE here.
    pub marks: u64,
    /// Packets that passed through the queue.
    pub packets: u64,
    /// Bytes that passed through the queue.
    pub bytes: u64,
}

impl Queue {
    /// The width of a bin of [`Queue::time_at`].
    pub const BIN_BYTES: u64 = 1_000;
}

/// Number and length of a link's pauses in the measurement window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PauseTotals {
    /// Pauses that began while the link was not paused.
    pub pauses: u64,
    /// The time in which at least one priority was paused.
    pub paused: Span,
}

/// Traffic of one direction of a link in the measurement window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Carried {
    /// Packets that completed the link.
    pub packets: u64,
    /// The bytes of these packets.
    pub bytes: u64,
    /// Packets that found no room at the link's port.
    pub drops: u64,
}

/// Counts the traffic of every link.
#[derive(Debug)]
pub(crate) struct LinkMeter {
    window: MeasurementWindow,
    /// The traffic of each link, by the link's number.
    carried: Vec<Carried>,
}

impl LinkMeter {
    pub(crate) fn new(links: usize, window: MeasurementWindow) -> LinkMeter {
        LinkMeter { window, carried: vec![Carried::default(); links] }
    }

    /// Counts a packet that has completed the link of `port`; its last bit left the port at `left`.
    pub(crate) fn on_hop(&mut self, left: Time, port: PortId, packet: &Packet) {
        if self.window.has(left) {
            let carried = &mut self.carried[port.0 as usize];
            carried.packets += 1;
            carried.bytes += u64::from(packet.size);
        }
    }

    /// Counts a packet that found no room at `port`.
    pub(crate) fn on_drop(&mut self, now: Time, port: PortId) {
        self.carried[port.0 as usize].drops += u64::from(self.window.has(now));
    }

    pub(crate) fn window(&self) -> MeasurementWindow {
        self.window
    }

    pub(crate) fn carried(&self) -> &[Carried] {
        &self.carried
    }
}

/// Counters of a whole run. In the end `sent = delivered + lost + in flight`; a simulated run asserts it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets that hosts have sent.
    pub packets_sent: u64,
    /// Packets that reached their host.
    pub packets_delivered: u64,
    /// Packets that their host lost at random before the NIC.
    pub host_drops: u64,
    /// Packets dropped in NIC queues.
    pub nic_drops: u64,
    /// Packets dropped in switches.
    pub switch_drops: u64,
    /// Packets lost with a link that failed: on it, waiting for it, or sent to it before routing knew.
    pub link_drops: u64,
    /// Packets dropped by a switch from which no live link led to their host.
    pub no_route_drops: u64,
    /// Packets lost in a circuit switch: it was dark, or their sender's circuit led elsewhere.
    pub circuit_drops: u64,
    /// Packets still queued or on a link at the end.
    pub packets_in_flight: u64,
    /// Packets that ports marked CE (congestion experienced).
    pub marks: u64,
    /// Packets that completed a link.
    pub packet_hops: u64,
    /// Events that the engine has handled.
    pub events: u64,
    /// Segments that were retransmitted.
    pub retransmissions: u64,
    /// The number of retransmission timeouts.
    pub timeouts: u64,
}

impl Counters {
    /// Returns the number of packets that were dropped or lost.
    pub fn packets_lost(&self) -> u64 {
        let at_links = self.link_drops + self.no_route_drops + self.circuit_drops;
        self.host_drops + self.nic_drops + self.switch_drops + at_links
    }

    /// Returns the number of packets whose fate is known: in the end, as many as were sent.
    pub fn packets_accounted_for(&self) -> u64 {
        self.packets_delivered + self.packets_lost() + self.packets_in_flight
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        let Counters {
            packets_sent,
            packets_delivered,
            host_drops,
            nic_drops,
            switch_drops,
            link_drops,
            no_route_drops,
            circuit_drops,
            packets_in_flight,
            marks,
            packet_hops,
            events,
            retransmissions,
            timeouts,
        } = other;
        self.packets_sent += packets_sent;
        self.packets_delivered += packets_delivered;
        self.host_drops += host_drops;
        self.nic_drops += nic_drops;
        self.switch_drops += switch_drops;
        self.link_drops += link_drops;
        self.no_route_drops += no_route_drops;
        self.circuit_drops += circuit_drops;
        self.packets_in_flight += packets_in_flight;
        self.marks += marks;
        self.packet_hops += packet_hops;
        self.events += events;
        self.retransmissions += retransmissions;
        self.timeouts += timeouts;
    }
}

/// Returns a port in words, by the ends of its link: `switch 0 -> h3`.
pub fn port_name(network: &Network, port: PortId) -> String {
    let link = network.link(port);
    let node = |node: Node| match node {
        Node::Host(host) => format!("h{}", host.0),
        Node::Switch(switch) => format!("switch {switch}"),
    };
    format!("{} -> {}", node(link.from), node(link.to))
}
