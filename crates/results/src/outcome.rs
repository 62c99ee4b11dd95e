//! What a run observed: plain data, the same for a simulated and an emulated run.
//!
//! One [`Outcome`] is one point: a variant at one sweep point with one seed. Everything else in
//! this crate (summaries, columns, digests) is computed from it.

use std::fmt;
use std::ops::{Add, AddAssign};

use plimsoll_units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};

use crate::capture::Capture;

/// Everything one run observed.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Names of the workloads; records refer to them by index.
    pub workloads: Vec<WorkloadInfo>,
    /// Names of the switch tiers of the topology, from the hosts upwards (at most three).
    pub tiers: Vec<String>,
    /// The simulated time at which the run ended.
    pub end: Time,
    /// From when on messages and queues counted.
    pub warmup: Span,
    /// Completed and unfinished messages, ordered by workload, then index.
    pub messages: Vec<Message>,
    /// Fan-out queries, ordered by workload, then index.
    pub queries: Vec<Query>,
    /// What workloads measured that is no completion time, ordered by workload, then index.
    pub observations: Vec<Observation>,
    /// What workloads asked for beyond what they needed, one for each that may.
    pub extra: Vec<ExtraLoad>,
    /// The queues that the scenario watches.
    pub queues: Vec<Queue>,
    /// Every link, by number, where asked for.
    pub links: Vec<LinkTotals>,
    /// Every connection that carried data.
    pub connections: Vec<Connection>,
    /// Per-connection series, where asked for.
    pub series: Vec<SeriesPoint>,
    /// Goodput per interval, where asked for.
    pub goodput: Vec<GoodputInterval>,
    /// The counters of the whole run.
    pub counters: Counters,
    /// The links that were slow or dead for a while, as the scenario says.
    pub faults: Vec<Fault>,
    /// The packets that the scenario asks to keep; not in the run directory.
    pub capture: Capture,
    /// What the reader must know before believing a number.
    pub warnings: Vec<String>,
}

/// A workload's name and what its messages are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkloadInfo {
    /// The scenario's name for it.
    pub name: String,
    /// The scenario's `kind`.
    pub kind: String,
    /// The deadline of its responses.
    pub deadline: Option<Span>,
    /// What its [`Observation`]s are, in words: `clock offset`. Follows from the kind.
    pub observed: Option<String>,
    /// What bounds the number of its messages. Follows from the scenario; no digest covers it.
    pub supply: Supply,
}

/// What bounds the number of a workload's messages, which decides what advice about too few of them can work.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Supply {
    /// The point was kept by a version that did not note it.
    #[default]
    Unknown,
    /// It sends as long as `run.duration`.
    Duration,
    /// The scenario lists or counts its messages: a longer run has no more of them.
    Fixed,
    /// Flows without an end: none of them ever completes.
    Endless,
}

/// One message: a flow, or a request with its response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Message {
    /// Index into [`Outcome::workloads`].
    pub workload: u16,
    /// Which request of the workload; pairs the same message across variants.
    pub index: u64,
    /// The query it belongs to, for a fan-out.
    pub query: Option<u64>,
    /// Host that created it (the client of a request, the sender of a flow).
    pub source: u32,
    /// Host at the other end (the server of a request, the receiver of a flow).
    pub destination: u32,
    /// Payload bytes of the flow or of the response.
    pub bytes: u64,
    /// When it was created; the request's scheduled time.
    pub created: Time,
    /// When its last byte arrived, or `None` if the run ended first.
    pub completed: Option<Time>,
    /// Completion time on idle links, the reference of its slowdown.
    pub ideal: Span,
    /// Where the time went; sums to `completed - created`. All zero where that is not known, as over a kernel's
    /// sockets.
    pub split: Split,
}

impl Message {
    /// Returns the completion time, if the message completed.
    pub fn latency(&self) -> Option<Span> {
        self.completed.map(|completed| completed - self.created)
    }
}

/// Where a message's time went. The parts sum exactly to its completion time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Split {
    /// In the transport, before the last byte was first sent: window, handshake, bytes ahead.
    pub window: Span,
    /// From the first sending of the last byte to the sending that completed the message: losses.
    pub recovery: Span,
    /// In NICs: in the queue of the sender's, and held by the receiver's for coalescing.
    pub nic: Span,
    /// Held by the host's pacer.
    pub pacer: Span,
    /// In switch queues, by tier from the hosts upwards.
    pub tier: [Span; 3],
    /// On the wire, serialising.
    pub serialisation: Span,
    /// On the wire, propagating.
    pub propagation: Span,
    /// At the server: waiting for it and being served.
    pub service: Span,
}

impl Split {
    /// Part by part, this and `other`.
    pub fn plus(&self, other: &Split) -> Split {
        Split {
            window: self.window + other.window,
            recovery: self.recovery + other.recovery,
            nic: self.nic + other.nic,
            pacer: self.pacer + other.pacer,
            tier: std::array::from_fn(|tier| self.tier[tier] + other.tier[tier]),
            serialisation: self.serialisation + other.serialisation,
            propagation: self.propagation + other.propagation,
            service: self.service + other.service,
        }
    }

    /// The sum of all parts.
    pub fn total(&self) -> Span {
        self.window
            + self.recovery
            + self.nic
            + self.pacer
            + self.tier.iter().copied().sum()
            + self.serialisation
            + self.propagation
            + self.service
    }
}

/// Adds two breakdowns component by component.
impl Add for Split {
    type Output = Split;

    fn add(self, other: Split) -> Split {
        let [a, b, c] = self.tier;
        Split {
            window: self.window + other.window,
            recovery: self.recovery + other.recovery,
            nic: self.nic + other.nic,
            pacer: self.pacer + other.pacer,
            tier: [a + other.tier[0], b + other.tier[1], c + other.tier[2]],
            serialisation: self.serialisation + other.serialisation,
            propagation: self.propagation + other.propagation,
            service: self.service + other.service,
        }
    }
}

/// One fan-out query, or another thing that is whole when all its parts are: a page, a round of a barrier, a
/// transaction, a job.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Query {
    /// Index into [`Outcome::workloads`].
    pub workload: u16,
    /// Which query of the workload.
    pub index: u64,
    /// The time at which the query was created.
    pub created: Time,
    /// When the slowest response arrived, or `None`.
    pub completed: Option<Time>,
    /// The number of servers that were asked.
    pub servers: u32,
    /// Responses strictly within the deadline; all of them where there is none.
    pub in_deadline: u32,
    /// Mean completion time over the servers.
    pub response_mean: Span,
    /// Completion time of the fastest server.
    pub response_min: Span,
}

/// A length of time that a workload measured and that is no completion time, such as a clock's offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Observation {
    /// Index into [`Outcome::workloads`]; its `observed` says what the value is.
    pub workload: u16,
    /// Which observation of the workload; pairs the same one across variants.
    pub index: u64,
    /// The host that made the measurement.
    pub host: u32,
    /// When the measurement began.
    pub begun: Time,
    /// The measured length of time.
    pub value: Span,
}

/// Requests of a workload beyond one for each thing that it wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ExtraLoad {
    /// Index into [`Outcome::workloads`].
    pub workload: u16,
    /// Requests sent again because no answer had come.
    pub retries: u64,
    /// Further requests sent at once, so that the first answer may count.
    pub replicas: u64,
    /// Payload of the answers to both.
    pub bytes: u64,
}

/// The statistics of one watched queue.
#[derive(Clone, PartialEq, Debug)]
pub struct Queue {
    /// The scenario's name for it.
    pub name: String,
    /// The port it stands for, in words: `tor -> h0`.
    pub port: String,
    /// Rate of its link, which turns bytes into queueing delay.
    pub rate: Rate,
    /// Length of an interval.
    pub every: Span,
    /// Start of the first interval.
    pub from: Time,
    /// Time average of the bytes waiting (the packet in service not counted) in each interval.
    pub mean_bytes: Vec<f64>,
    /// Most bytes that waited in each interval.
    pub max_bytes: Vec<u64>,
    /// Picoseconds spent at each number of waiting bytes: bin 0 is the empty queue, bin `i` holds more
    /// than `i - 1` and at most `i` times [`Queue::BIN_BYTES`], and the last bin is open.
    pub time_at: Vec<u64>,
    /// Packets that found no room.
    pub drops: u64,
    /// Packets marked CE here.
    pub marks: u64,
    /// The number of packets that passed the queue.
    pub packets: u64,
    /// The number of bytes that passed the queue.
    pub bytes: u64,
}

impl Queue {
    /// Width of a bin of [`Queue::time_at`].
    pub const BIN_BYTES: u64 = 1_000;
}

/// What one direction of a link carried, from the warm-up to the end of the sending (`run.duration`).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkTotals {
    /// Name of the node whose port sends on it.
    pub from: String,
    /// Name of the node at its far end.
    pub to: String,
    /// The tiers that it connects: `host -> leaf`, `leaf -> spine`.
    pub tier: String,
    /// The rate at which the link sends.
    pub rate: Rate,
    /// How long it was observed.
    pub observed: Span,
    /// Packets that completed it.
    pub packets: u64,
    /// The number of bytes in these packets.
    pub bytes: u64,
    /// Packets that found no room at its port.
    pub drops: u64,
    /// Times that its far end paused it.
    pub pauses: u64,
    /// Time in which at least one priority was paused.
    pub paused: Span,
}

/// One connection, both directions.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Connection {
    /// Index into [`Outcome::workloads`].
    pub workload: u16,
    /// The host that opened it.
    pub client: u32,
    /// The host at the other end.
    pub server: u32,
    /// Bytes delivered to the applications, both directions.
    pub delivered: u64,
    /// First and last delivery of application bytes.
    pub active: Option<(Time, Time)>,
    /// Data segments sent, retransmissions included.
    pub segments: u64,
    /// The number of segments that were retransmitted.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Data segments that arrived with CE.
    pub marked: u64,
    /// Times that the pacer associated the connection anew.
    pub pacer_associations: u64,
    /// Times that an association was renewed before it ran out.
    pub pacer_renewals: u64,
    /// Times that an association ran out.
    pub pacer_dissociations: u64,
}

/// A sample of one connection's sender.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SeriesPoint {
    /// The time of the event.
    pub time: Time,
    /// Index into [`Outcome::connections`].
    pub connection: u32,
    /// Congestion window in bytes.
    pub cwnd: u64,
    /// Slow start threshold in bytes; [`SeriesPoint::NO_SSTHRESH`] while slow start has no end.
    pub ssthresh: u64,
    /// DCTCP's estimate of the marked share; 0 for others.
    pub alpha: f64,
    /// Bytes acknowledged since the last sample, per second.
    pub rate: Rate,
}

impl SeriesPoint {
    /// The threshold of a slow start without an end.
    pub const NO_SSTHRESH: u64 = u64::MAX;
}

/// Bytes sent for the first time by all senders of a workload in one interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GoodputInterval {
    /// Start of the interval.
    pub time: Time,
    /// Its length, the same for all; the run may end within the last.
    pub length: Span,
    /// Index into [`Outcome::workloads`].
    pub workload: u16,
    /// Payload sent less retransmissions, by the senders.
    pub sent: Bytes,
    /// Payload delivered in order to the applications.
    pub delivered: Bytes,
}

/// A link that was slow or dead for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The link: `leaf0 - spine1`, or `leaf0 -> spine1` if only that direction was.
    pub link: String,
    /// The time at which the fault began.
    pub from: Time,
    /// Until when, if it ended.
    pub until: Option<Time>,
    /// What was left of its rate; `None` if it was dead.
    pub rate: Option<Rate>,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate {
            Some(rate) => write!(f, "{} at {rate} from {}", self.link, self.from)?,
            None => write!(f, "{} dead from {}", self.link, self.from)?,
        }
        self.until.map_or(Ok(()), |until| write!(f, " to {until}"))
    }
}

/// Whole-run counters. In the end `sent = delivered + dropped + in flight`, asserted by the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counters {
    /// Packets handed to NIC queues.
    pub packets_sent: u64,
    /// Packets that reached their host.
    pub packets_delivered: u64,
    /// Packets dropped in NIC queues.
    pub nic_drops: u64,
    /// Packets dropped in switches.
    pub switch_drops: u64,
    /// Packets lost with a link that failed: on it, waiting for it, or sent to it before routing knew.
    pub link_drops: u64,
    /// Packets dropped by a switch from which no live link led to their host.
    pub no_route_drops: u64,
    /// Packets still queued or on a link at the end.
    pub packets_in_flight: u64,
    /// The number of packets that were marked CE.
    pub marks: u64,
    /// Packets that completed a link.
    pub packet_hops: u64,
    /// The number of events that were handled.
    pub events: u64,
    /// The number of segments that were retransmitted.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
}

impl Counters {
    /// Packets lost on their way, wherever.
    pub fn packets_lost(&self) -> u64 {
        self.nic_drops + self.switch_drops + self.link_drops + self.no_route_drops
    }

    /// Packets whose whereabouts are known: as many as were sent, in the end.
    pub fn packets_accounted_for(&self) -> u64 {
        self.packets_delivered + self.packets_lost() + self.packets_in_flight
    }
}

impl AddAssign for Counters {
    fn add_assign(&mut self, other: Counters) {
        let Counters {
            packets_sent,
            packets_delivered,
            nic_drops,
            switch_drops,
            link_drops,
            no_route_drops,
            packets_in_flight,
            marks,
            packet_hops,
            events,
            retransmissions,
            timeouts,
        } = other;
        self.packets_sent += packets_sent;
        self.packets_delivered += packets_delivered;
        self.nic_drops += nic_drops;
        self.switch_drops += switch_drops;
        self.link_drops += link_drops;
        self.no_route_drops += no_route_drops;
        self.packets_in_flight += packets_in_flight;
        self.marks += marks;
        self.packet_hops += packet_hops;
        self.events += events;
        self.retransmissions += retransmissions;
        self.timeouts += timeouts;
    }
}
