//! Observations of a run: plain data, the same for a simulated and an emulated run.
//!
//! One [`Outcome`] is one point: a variant at one sweep point with one seed. Everything else in
//! this crate (summaries, columns, digests) is computed from it.

use std::fmt;

use plimsoll_mechanisms::Mechanism;
use plimsoll_mechanisms::lossless::{LosslessParams, fuller};
pub use plimsoll_traffic::record::{
    ExtraLoad, IterationRecord, MessageRecord, Observation, OperationRecord, QueryRecord, RankRecord,
    RepeatRecord, Split, Supply, WorkloadInfo,
};
use plimsoll_units::{Bytes, Rate, Span, Time};
use serde::{Deserialize, Serialize};

use crate::capture::Capture;
use crate::stats::{Estimate, Interval};

pub use plimsoll_fabric::observed::{Counter, Counters, PriorityCounters, QueueObservation, When};
pub use plimsoll_fabric::{CircuitUse, CircuitWeek, ScheduleTimes};

/// Observations of one run, simulated or emulated: records, queues, counters and series.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Names of the workloads; records refer to them by index.
    pub workloads: Vec<WorkloadInfo>,
    /// Names of the switch tiers of the topology, from the hosts upwards (at most three).
    pub tiers: Vec<String>,
    /// The simulated time at which the run ended.
    pub end: Time,
    /// The time from which on messages and queues count.
    pub warmup: Span,
    /// Completed and unfinished messages, ordered by workload, then index.
    pub messages: Vec<MessageRecord>,
    /// Fan-out queries, ordered by workload, then index.
    pub queries: Vec<QueryRecord>,
    /// Measurements of workloads other than completion times, ordered by workload, then index.
    pub observations: Vec<Observation>,
    /// Iterations of jobs that have ended, ordered by workload, then index.
    pub iterations: Vec<IterationRecord>,
    /// What each rank of a job did in each iteration, ordered by workload, index, rank and group.
    pub ranks: Vec<RankRecord>,
    /// Operations of jobs that are asked for a timeline, ordered by workload, index and operation.
    pub operations: Vec<OperationRecord>,
    /// Where messages on the critical paths of iterations waited, ordered by workload and index.
    pub path_waits: Vec<PathWait>,
    /// What was replayed of each job that repeats.
    pub repeats: Vec<RepeatRecord>,
    /// Load that workloads requested beyond their need, one entry for each workload that may.
    pub extra: Vec<ExtraLoad>,
    /// The queues that the scenario watches (`observe.queue`), each with its series and counts.
    pub queues: Vec<QueueObservation>,
    /// Every link, by number, where the scenario asks for links.
    pub links: Vec<LinkTotals>,
    /// Totals of each host's processor, by host, where hosts have processors.
    pub processors: Vec<ProcessorTotals>,
    /// Every circuit that was established, in the order of time.
    pub circuits: Vec<CircuitUse>,
    /// Every week of the control loop of circuits, from week 0.
    pub circuit_weeks: Vec<CircuitWeek>,
    /// Every connection that carried data, with its segments, retransmissions and timeouts.
    pub connections: Vec<ConnectionRecord>,
    /// Per-connection series, where the scenario asks for them.
    pub series: Vec<SeriesPoint>,
    /// Goodput per interval, where the scenario asks for it.
    pub goodput: Vec<GoodputInterval>,
    /// Payload that the workloads delivered in the measurement window; nothing in an emulated run.
    pub delivered: Delivered,
    /// The counters of the whole run, warm-up included, such as drops, marks and packet-hops.
    pub counters: Counters,
    /// The links that were slow or dead for a while, from the scenario.
    pub faults: Vec<FaultRecord>,
    /// The packets that the scenario asks to keep; not in the run directory.
    pub capture: Capture,
    /// Facts that the reader must know before relying on a number.
    pub warnings: Vec<String>,
    /// The uses of the mechanisms of the ports.
    pub mechanisms: Vec<MechanismUse>,
    /// The packets that waited for pauses, where links are observed.
    pub blocked: BlockedTraffic,
    /// How far the messages of an approximate run can be trusted; `None` of a whole run.
    pub approximation: Option<Approximation>,
}

impl Outcome {
    /// Returns the number of packets of lossless priorities that found no room in the buffers of lossless ports; `None`
    /// where no port is lossless.
    pub fn lossless_drops(&self) -> Option<u64> {
        let lossless = self.mechanisms.iter().filter(|used| used.key == LosslessParams::TABLE.key);
        lossless.map(|used| used.dropped).reduce(|sum, one| sum + one)
    }
}

/// What an approximate run simulated, and its slowdowns by size.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Approximation {
    /// The load of the busiest link, with the headers of data packets and without acknowledgements.
    pub busiest: f64,
    /// The number of simulated directions of links.
    pub links: u64,
    /// The number of all directions of links.
    pub of_links: u64,
    /// The number of all flows of the run; its messages are a part of them.
    pub flows: u64,
    /// The simulated packet-hops.
    pub packet_hops: u64,
    /// The slowdowns of each workload, by size, ascending.
    pub slowdowns: Vec<ApproximateSlowdown>,
}

/// The slowdown of a workload's messages of some sizes in an approximate run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ApproximateSlowdown {
    /// The name of the workload.
    pub workload: String,
    /// The largest size in bytes; `None` for messages above all others.
    pub up_to: Option<u64>,
    /// Percentiles in the order of [`Approximation::SHARES`], each with the interval that the sample of links and
    /// messages gives.
    pub slowdown: [Option<Estimate>; 3],
    /// By how much approximate runs were above whole ones at such a load, as a share: the least and the most, by
    /// percentile.
    pub bias: [Interval; 3],
}

impl Approximation {
    /// The percentiles of [`ApproximateSlowdown`].
    pub const SHARES: [f64; 3] = [0.5, 0.9, 0.99];
}

/// The time that messages on the critical path of a job's iteration waited at a place. Those of an iteration sum to the
/// path's waiting in NICs and switches.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PathWait {
    /// The index of the workload in the run.
    pub workload: u16,
    /// The number of the iteration.
    pub index: u64,
    /// The port by its link: `leaf0 -> spine3`; of two in unknown shares both, with `or` between them; where ports are
    /// not known, the tier: `leaf switches`.
    pub at: String,
    /// The time that they waited there.
    pub waited: Span,
}

/// How often a mechanism acted, and how far its buffers were used.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct MechanismUse {
    /// The key of its table, such as `pfc`.
    pub key: String,
    /// The number of its actions.
    pub acted: u64,
    /// The action in words, such as `paused a sender`.
    pub action: String,
    /// The highest use of its buffers as a share of the threshold at which it acts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub peak: Option<f64>,
    /// The bytes in the headroom of the link and priority that came closest to filling its own.
    #[serde(default)]
    pub headroom_peak: u64,
    /// The size of that headroom in bytes; 0 where it has none.
    #[serde(default)]
    pub headroom: u64,
    /// The number of lossless packets that found no room.
    #[serde(default)]
    pub dropped: u64,
    /// The most bytes that one of them did not find.
    #[serde(default)]
    pub missing: u64,
    /// The number of packets of other priorities that found no room.
    #[serde(default)]
    pub dropped_lossy: u64,
    /// The number of frames that refreshed a pause.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub refreshes: u64,
    /// The number of storms of pauses that watchdogs have found.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub storms: u64,
}

/// Returns whether a count is left out of the file.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl MechanismUse {
    /// Merges the use in another run.
    pub fn merge(&mut self, other: &MechanismUse) {
        self.acted += other.acted;
        self.peak = self.peak.into_iter().chain(other.peak).reduce(f64::max);
        let (own, others) = ((self.headroom_peak, self.headroom), (other.headroom_peak, other.headroom));
        (self.headroom_peak, self.headroom) = fuller(own, others);
        self.dropped += other.dropped;
        self.dropped_lossy += other.dropped_lossy;
        self.missing = self.missing.max(other.missing);
        self.refreshes += other.refreshes;
        self.storms += other.storms;
    }
}

/// The packets that waited for pauses, in the measurement window.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct BlockedTraffic {
    /// The tiers of links that were blocked.
    pub tiers: Vec<BlockedTier>,
    /// The workloads of which data packets were blocked.
    pub workloads: Vec<BlockedWorkload>,
}

impl BlockedTraffic {
    /// Returns whether no packet waited for a pause.
    pub fn is_empty(&self) -> bool {
        self.tiers.is_empty() && self.workloads.is_empty()
    }
}

/// The links that connect two tiers, and that had packets waiting for a pause.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BlockedTier {
    /// The tiers that they connect: `host -> leaf`, `leaf -> spine`.
    pub tier: String,
    /// The time in which packets of a paused priority waited at the port of a link, summed over links and priorities,
    /// in nanoseconds.
    pub blocked_ns: u64,
}

/// The data packets of a workload that waited for pauses.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct BlockedWorkload {
    /// The name of the workload.
    pub workload: String,
    /// The number of blocked flows; each direction of a connection is one.
    pub flows: u64,
    /// The number of these no port of whose path was the origin of a pause.
    pub victims: u64,
    /// The time that their packets waited at ports at which their priority was paused, summed over packets, in
    /// nanoseconds.
    pub blocked_ns: u64,
    /// The part of this time that belongs to victims.
    pub victims_blocked_ns: u64,
}

impl BlockedWorkload {
    /// Adds the same workload's packets in another run.
    pub fn merge(&mut self, other: &BlockedWorkload) {
        self.flows += other.flows;
        self.victims += other.victims;
        self.blocked_ns += other.blocked_ns;
        self.victims_blocked_ns += other.victims_blocked_ns;
    }
}

/// Traffic of one direction of a link, from the warm-up to the end of the sending (`run.duration`).
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
    /// Length of the observation: from the warm-up to `run.duration`.
    pub observed: Span,
    /// Packets whose last bit reached the far end within the observation.
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

/// Totals of a host's processor: its stack's part of the run.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProcessorTotals {
    /// The number of the host, counted from 0.
    pub host: u32,
    /// Busy time of each core from the warm-up to the end; interrupts are on the first, applications on the last.
    pub busy: Vec<Span>,
    /// Frames that the host took from its NIC in the whole run: packets, or the frames that LRO made of them.
    pub frames_received: u64,
    /// Frames that the host handed to its NIC in the whole run: packets, or pieces for segmentation offload.
    pub frames_sent: u64,
    /// Packets that were lost in the whole run because the receive ring was full.
    pub ring_drops: u64,
}

/// Totals of one connection over the whole run, both directions together.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ConnectionRecord {
    /// Index into [`Outcome::workloads`].
    pub workload: u16,
    /// The number of the host that opened the connection.
    pub client: u32,
    /// The number of the host that accepted the connection.
    pub server: u32,
    /// Bytes delivered to the applications, both directions.
    pub delivered: u64,
    /// First and last delivery of application bytes.
    pub active: Option<(Time, Time)>,
    /// Segments with payload that both ends sent, retransmissions included.
    pub segments: u64,
    /// The number of segments that were retransmitted.
    pub retransmissions: u64,
    /// Times that a retransmission timer fired, at either end.
    pub timeouts: u64,
    /// Segments with payload that arrived with the ECN mark CE.
    pub marked: u64,
    /// Times that the pacer associated the connection anew.
    pub pacer_associations: u64,
    /// Times that an association was renewed before it ran out.
    pub pacer_renewals: u64,
    /// Times that an association of the pacer timed out.
    pub pacer_dissociations: u64,
}

/// A sample of one connection's sender (`observe.flow_series`), at a fixed interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SeriesPoint {
    /// The time of the sample.
    pub time: Time,
    /// Index into [`Outcome::connections`].
    pub connection: u32,
    /// Congestion window in bytes of payload.
    pub cwnd: u64,
    /// Slow start threshold in bytes; [`SeriesPoint::NO_SSTHRESH`] while slow start has no end.
    pub ssthresh: u64,
    /// DCTCP's estimate of the marked share; 0 for others.
    pub alpha: f64,
    /// Bytes acknowledged since the last sample, per second.
    pub rate: Rate,
    /// Segments that the sender has retransmitted so far.
    pub retransmissions: u64,
    /// The subflow that the sample is of; 0 for a plain TCP connection.
    pub subflow: u8,
}

impl SeriesPoint {
    /// The threshold of a slow start without an end.
    pub const NO_SSTHRESH: u64 = u64::MAX;
}

/// Bytes sent for the first time by all senders of a workload in one interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GoodputInterval {
    /// The start of the interval, since the start of the run.
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

/// Payload that reached applications in the measurement window: from the warm-up to the end of the sending
/// (`run.duration`).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Delivered {
    /// Length of the window.
    pub observed: Span,
    /// Bytes by workload, without what was delivered twice or out of order.
    pub bytes: Vec<u64>,
}

/// A link that was slow or dead for a while.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FaultRecord {
    /// The link: `leaf0 - spine1`, or `leaf0 -> spine1` if only that direction was.
    pub link: String,
    /// The time at which the fault began.
    pub from: Time,
    /// The time at which it ended, if it did.
    pub until: Option<Time>,
    /// The remaining rate; `None` if it was dead.
    pub rate: Option<Rate>,
}

impl fmt::Display for FaultRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate {
            Some(rate) => write!(f, "{} at {rate} from {}", self.link, self.from)?,
            None => write!(f, "{} dead from {}", self.link, self.from)?,
        }
        self.until.map_or(Ok(()), |until| write!(f, " to {until}"))
    }
}
