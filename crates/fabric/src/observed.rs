//! Observations of a fabric: the counters of the run, the watched queues, and the totals of each link.

mod by_priority;

use std::ops::AddAssign;

use plimsoll_mechanisms::transports::PacketTypes;
use plimsoll_units::{Rate, Span, Time};
use serde::ser::SerializeMap;
use serde::{Deserialize, Serialize, Serializer};

use crate::net::{Network, Node, Packet, PortId};

pub(crate) use by_priority::PriorityPorts;
pub use by_priority::{PriorityCounters, PriorityTotals};

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
pub struct QueueObservation {
    /// The scenario's name for it.
    pub name: String,
    /// The port in words: `switch 0 -> h0`.
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
    /// than `i - 1` and at most `i` times [`QueueObservation::BIN_BYTES`], and the last bin is open.
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

impl QueueObservation {
    /// The width of a bin of [`QueueObservation::time_at`].
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
pub struct LinkTraffic {
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
    carried: Vec<LinkTraffic>,
}

impl LinkMeter {
    pub(crate) fn new(links: usize, window: MeasurementWindow) -> LinkMeter {
        LinkMeter { window, carried: vec![LinkTraffic::default(); links] }
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

    /// Adds what another logical process has counted.
    pub(crate) fn absorb(&mut self, other: &LinkMeter) {
        for (own, other) in self.carried.iter_mut().zip(&other.carried) {
            own.packets += other.packets;
            own.bytes += other.bytes;
            own.drops += other.drops;
        }
    }

    pub(crate) fn window(&self) -> MeasurementWindow {
        self.window
    }

    pub(crate) fn carried(&self) -> &[LinkTraffic] {
        &self.carried
    }
}

/// When an output of a run has a counter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum When {
    /// The outputs of every run have it.
    Always,
    /// Runs whose links fail or degrade have it.
    WithFaults,
    /// Runs of hybrid networks have it.
    WithCircuits,
    /// Runs in which it is not 0 have it, so that the outputs of all other runs stay as they are without it.
    IfAny,
    /// The outputs of no run have it.
    Never,
}

/// How a counter appears in the outputs of a run. Its sum over logical processes and over replicates is in all of them.
#[derive(Clone, Copy, Debug)]
pub struct Counter {
    /// The name of its field, which is its key in JSON and its metric in CSV.
    pub name: &'static str,
    /// The documentation of its field.
    pub about: &'static str,
    /// Returns the counter's value.
    pub get: fn(&Counters) -> u64,
    /// Whether it counts packets that were dropped or lost, each of which is in one counter only.
    pub is_loss: bool,
    /// When the digest of a run covers it.
    pub digest: When,
    /// When the rows of CSV have it.
    pub csv: When,
    /// The heading of its column in tables, which have it where some run has counted one.
    pub heading: Option<&'static str>,
}

impl Counter {
    const PLAIN: Counter = Counter {
        name: "",
        about: "",
        get: |_| 0,
        is_loss: false,
        digest: When::Always,
        csv: When::Never,
        heading: None,
    };
    const LOSS: Counter = Counter { is_loss: true, ..Counter::PLAIN };
}

/// Declares the counters: the fields of [`Counters`] with their documentation, and how each differs from one that only
/// JSON and the digest have.
macro_rules! counters {
    ($($(#[doc = $about:literal])+ $name:ident: $base:ident { $($field:ident: $value:expr),* },)+) => {
        /// Counters of a whole run. In the end `sent = delivered + lost + in flight`; a simulated run asserts it.
        #[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
        #[serde(default)]
        pub struct Counters {
            $($(#[doc = $about])+ pub $name: u64,)+
            /// What happened at ports with classes or trimming, by priority. Digests do not cover it.
            pub by_priority: PriorityTotals,
        }

        impl Counters {
            /// All counters, in the order of their declaration.
            pub const ALL: &[Counter] = &[$(Counter {
                name: stringify!($name),
                about: concat!($($about),+),
                get: |counters| counters.$name,
                $($field: $value,)*
                ..Counter::$base
            }),+];
        }

        impl AddAssign for Counters {
            fn add_assign(&mut self, other: Counters) {
                $(self.$name += other.$name;)+
                self.by_priority += other.by_priority;
            }
        }
    };
}

counters! {
    /// Packets that hosts have sent.
    packets_sent: PLAIN {},
    /// Packets that reached their host.
    packets_delivered: PLAIN {},
    /// Packets that their host lost at random before the NIC.
    host_drops: LOSS { digest: When::IfAny, csv: When::IfAny, heading: Some("lost at hosts") },
    /// Packets dropped in NIC queues.
    nic_drops: LOSS {},
    /// Packets dropped in switches.
    switch_drops: LOSS {},
    /// Packets lost with a link that failed: on it, waiting for it, or sent to it before routing knew.
    link_drops: LOSS { digest: When::WithFaults, csv: When::WithFaults, heading: Some("link drops") },
    /// Packets dropped by a switch from which no live link led to their host.
    no_route_drops: LOSS { digest: When::WithFaults, csv: When::WithFaults, heading: Some("no route") },
    /// Packets lost in a circuit switch: it was dark, or their sender's circuit led elsewhere.
    circuit_drops: LOSS { digest: When::WithCircuits },
    /// Packets still queued or on a link at the end.
    packets_in_flight: PLAIN {},
    /// Packets that ports marked CE (congestion experienced).
    marks: PLAIN { csv: When::Always, heading: Some("marks") },
    /// Packets that lost their payload in a switch; they go on, and count as delivered or dropped in the end.
    trimmed: PLAIN { digest: When::IfAny, csv: When::IfAny, heading: Some("trimmed") },
    /// Trimmed packets that found no room and were sent back to their senders.
    bounced: PLAIN { digest: When::IfAny, csv: When::IfAny, heading: Some("bounced") },
    /// Acknowledgements that returned stamps of ports (`port.*.int`) to their senders.
    echoes: PLAIN { digest: When::IfAny, csv: When::IfAny, heading: Some("echoes") },
    /// Stamps that acknowledgements returned.
    echoed_stamps: PLAIN { digest: When::IfAny, csv: When::IfAny },
    /// Bytes of queue in the stamps that acknowledgements returned: by `echoed_stamps`, the mean queue that senders
    /// see.
    echoed_queue_bytes: PLAIN { digest: When::IfAny, csv: When::IfAny },
    /// Nanoseconds in queues in the stamps that acknowledgements returned: by `echoes`, the mean queueing delay that
    /// senders see.
    echoed_delay_ns: PLAIN { digest: When::IfAny, csv: When::IfAny },
    /// Packets that completed a link.
    packet_hops: PLAIN {},
    /// Events that the engine has handled, departures excepted: whether one is an event depends on the port engine.
    events: PLAIN { digest: When::Never },
    /// Segments that were retransmitted.
    retransmissions: PLAIN { heading: Some("retransmissions") },
    /// The number of retransmission timeouts.
    timeouts: PLAIN { heading: Some("timeouts") },
    /// Packets with payload that queue pairs of RoCE have sent.
    roce_data_sent: PLAIN { digest: When::Never, csv: When::IfAny },
    /// Packets with payload that have reached a queue pair.
    roce_data_received: PLAIN { digest: When::Never, csv: When::IfAny },
    /// Packets with payload that were dropped or lost on their way between queue pairs.
    roce_data_lost: PLAIN { digest: When::Never, csv: When::IfAny },
    /// Acknowledgements that queue pairs have sent.
    roce_acks_sent: PLAIN { digest: When::Never, csv: When::IfAny },
    /// Acknowledgements that have reached a queue pair.
    roce_acks_received: PLAIN { digest: When::Never, csv: When::IfAny },
    /// Acknowledgements that were dropped or lost on their way between queue pairs.
    roce_acks_lost: PLAIN { digest: When::Never, csv: When::IfAny },
    /// Negative acknowledgements that queue pairs have sent.
    naks_sent: PLAIN { digest: When::Never, csv: When::IfAny, heading: Some("NAKs") },
    /// Negative acknowledgements that have reached a queue pair.
    naks_received: PLAIN { digest: When::Never, csv: When::IfAny },
    /// Negative acknowledgements that were dropped or lost on their way.
    naks_lost: PLAIN { digest: When::Never, csv: When::IfAny },
    /// Congestion notification packets that queue pairs have sent.
    cnps_sent: PLAIN { digest: When::Never, csv: When::IfAny, heading: Some("CNPs") },
    /// Congestion notification packets that have reached a queue pair.
    cnps_received: PLAIN { digest: When::Never, csv: When::IfAny },
    /// Congestion notification packets that were dropped or lost on their way.
    cnps_lost: PLAIN { digest: When::Never, csv: When::IfAny },
    /// Grants of credit that receivers of Ultra Ethernet have sent.
    pulls_sent: PLAIN { digest: When::Never, csv: When::IfAny, heading: Some("grants") },
    /// Grants of credit that have reached a sender.
    pulls_received: PLAIN { digest: When::Never, csv: When::IfAny },
    /// Grants of credit that were dropped or lost on their way.
    pulls_lost: PLAIN { digest: When::Never, csv: When::IfAny },
    /// READ requests of RoCE, and requests for credit of Ultra Ethernet, that have left.
    requests_sent: PLAIN { digest: When::Never, csv: When::IfAny },
    /// Requests that have reached the other end.
    requests_received: PLAIN { digest: When::Never, csv: When::IfAny },
    /// Requests that were dropped or lost on their way.
    requests_lost: PLAIN { digest: When::Never, csv: When::IfAny },
}

impl Counters {
    /// Returns the number of packets that found no room, anywhere.
    pub fn drops(&self) -> u64 {
        self.nic_drops + self.switch_drops
    }

    /// Returns the number of packets that were dropped or lost.
    pub fn packets_lost(&self) -> u64 {
        Counters::ALL.iter().filter(|counter| counter.is_loss).map(|counter| (counter.get)(self)).sum()
    }

    /// Sets the counts of packets of NICs' transports by type.
    pub fn set_types(&mut self, types: &PacketTypes) {
        let PacketTypes { data, acks, naks, cnps, pulls, requests } = *types;
        (self.roce_data_sent, self.roce_data_received, self.roce_data_lost) =
            (data.sent, data.received, data.lost);
        (self.roce_acks_sent, self.roce_acks_received, self.roce_acks_lost) =
            (acks.sent, acks.received, acks.lost);
        (self.naks_sent, self.naks_received, self.naks_lost) = (naks.sent, naks.received, naks.lost);
        (self.cnps_sent, self.cnps_received, self.cnps_lost) = (cnps.sent, cnps.received, cnps.lost);
        (self.pulls_sent, self.pulls_received, self.pulls_lost) = (pulls.sent, pulls.received, pulls.lost);
        (self.requests_sent, self.requests_received, self.requests_lost) =
            (requests.sent, requests.received, requests.lost);
    }

    /// Returns the number of packets whose fate is known: in the end, as many as were sent.
    pub fn packets_accounted_for(&self) -> u64 {
        self.packets_delivered + self.packets_lost() + self.packets_in_flight
    }
}

impl Serialize for Counters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let written = Counters::ALL
            .iter()
            .map(|counter| (counter, (counter.get)(self)))
            .filter(|(counter, value)| counter.csv != When::IfAny || *value > 0);
        let mut map = serializer.serialize_map(None)?;
        for (counter, value) in written {
            map.serialize_entry(counter.name, &value)?;
        }
        if !self.by_priority.is_empty() {
            map.serialize_entry("by_priority", &self.by_priority)?;
        }
        map.end()
    }
}

/// Returns a port in words, by the names of the ends of its link: `leaf0 -> h3`.
pub fn port_name(network: &Network, port: PortId, name: &dyn Fn(Node) -> String) -> String {
    let link = network.link(port);
    format!("{} -> {}", name(link.from), name(link.to))
}

/// Returns the name of a node in a network without names: `h3` or `switch 0`. Observed and captured ports have it, and
/// digests cover the names of queues.
pub fn number_name(node: Node) -> String {
    match node {
        Node::Host(host) => format!("h{}", host.0),
        Node::Switch(switch) => format!("switch {switch}"),
    }
}
