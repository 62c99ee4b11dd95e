//! [`Summary`]: every number for a table, a report or a script, from the outcomes of all points.
//!
//! Times are in microseconds, rates in Mb/s, queues in microseconds of delay (waiting bytes x 8 /
//! rate of the link). Written as `summary.json` in the order of the fields below; lists keep the
//! order of the scenario.
//!
//! The numbers cover messages and queries created at or after the warm-up, and queue intervals that start at or after
//! it. Completion times are times of completed messages; the number that never completed is printed beside them and,
//! above one in a hundred, warned about.

mod approximation;
mod blocked;
mod build;
pub mod circuits;
mod jobs;
mod mechanism;
pub mod one_run;
mod processors;
pub(crate) mod queue;
mod tier;
mod warning;
pub(crate) mod workload;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::outcome::{Approximation, Counters};
use crate::stats::Estimate;
use crate::stats::paired::Change;

pub use blocked::BlockedSummary;
pub use circuits::FILLED_ENOUGH;
pub use jobs::{GroupSummary, JobSummary, PathSummary, PlaceSummary};
pub use mechanism::MechanismSummary;
pub use warning::{Warning, too_few};
pub use workload::WAITING_FOR_CIRCUIT;

/// Version of the layout of `summary.json`.
pub const FORMAT: u32 = 1;

/// The options with which a summary is made.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Options {
    /// Cut the leading and the trailing intervals of a queue in which nothing waited; zeros between
    /// others stay. The published numbers were made so, and it keeps the idle end of a run out.
    pub trim_idle_ends: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { trim_idle_ends: true }
    }
}

/// Every number of an experiment, with its 95 % interval: the content of `summary.json`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// The version of this layout, [`FORMAT`].
    pub format: u32,
    /// The options with which the summary was made.
    pub options: Options,
    /// Variants in the order of the scenario; the others are compared against the first.
    pub variants: Vec<String>,
    /// The swept keys; empty without a sweep.
    pub sweep_keys: Vec<String>,
    /// Every sweep point, then every variant at it.
    pub cells: Vec<Cell>,
    /// Every sweep point, then every variant but the first, against the first.
    pub comparisons: Vec<Comparison>,
    /// The best variant of each workload and statistic at each sweep point, where it is significantly so.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub best: Vec<Best>,
    /// Facts that the reader must know before relying on a number.
    pub warnings: Vec<Warning>,
    /// The uses of the mechanisms of the ports in the runs of each variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mechanisms: Vec<MechanismSummary>,
    /// The workloads of which packets waited for pauses, in the runs of each variant.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blocked: Vec<BlockedSummary>,
}

/// A variant whose statistic of a workload is lower than that of every other variant, and whose paired difference from
/// the second lowest has an interval that excludes zero.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Best {
    /// The name of the variant with the lowest value.
    pub variant: String,
    /// The swept keys and their values.
    pub sweep: Vec<(String, String)>,
    /// The scenario's name for the workload.
    pub workload: String,
    /// The name of the statistic: `mean`, `p50` or `p99`.
    pub statistic: String,
}

/// One variant at one sweep point, all replicates together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Cell {
    /// The name of the variant.
    pub variant: String,
    /// Swept keys and their values.
    pub sweep: Vec<(String, String)>,
    /// The runs that the cell summarises.
    pub runs: Vec<RunInfo>,
    /// One for each workload, in the order of the scenario.
    pub workloads: Vec<WorkloadSummary>,
    /// A summary of each watched queue, in the order of the scenario.
    pub queues: Vec<QueueSummary>,
    /// One for each kind of link, where links were counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tiers: Vec<TierSummary>,
    /// The circuits of a hybrid network; `None` for other topologies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuits: Option<CircuitSummary>,
    /// The processors of the hosts, where they have such.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<ProcessorSummary>,
    /// The jobs among the workloads, in the order of the scenario.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub jobs: Vec<JobSummary>,
    /// What approximate runs simulated, and their slowdowns by size, as means of the replicates.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approximation: Option<Approximation>,
    /// The counters of the network, summed over all replicates.
    pub counters: Counters,
    /// Links that were slow or dead for a while, in words.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub faults: Vec<String>,
}

/// A run that a cell summarises: its replicate, seed and digest.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RunInfo {
    /// The number of the replicate, from 0.
    pub replicate: u32,
    /// The seed of the run, derived from the scenario's and the replicate.
    pub seed: u64,
    /// The digest of the run's outcome: equal digests mean equal results.
    pub digest: Digest,
}

/// The numbers of one workload in a cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkloadSummary {
    /// The scenario's name for it.
    pub name: String,
    /// The workload's `kind` in the scenario, such as `rpc`.
    pub kind: String,
    /// The number of messages created after the warm-up.
    pub messages: u64,
    /// The messages of these that had not completed when the run ended.
    pub unfinished: u64,
    /// Completion times of messages in us, from creation to the last byte.
    pub completion_us: Option<Distribution>,
    /// Completion time over that on idle links.
    pub slowdown: Option<Slowdown>,
    /// Payload per second of the time in which the workload was active.
    pub goodput_mbps: Option<Estimate>,
    /// Payload first sent per second, from the goodput intervals where the scenario records them.
    pub sent_mbps: Option<Estimate>,
    /// Where the time of its messages went.
    pub time: Option<TimeSplit>,
    /// Queries of the workload, for the kinds that have queries, such as `fan-out`.
    pub queries: Option<QuerySummary>,
    /// The workload's measurements other than completion times, such as clock offsets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed: Option<Observed>,
    /// The load that it requested beyond its need, where it may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extra: Option<ExtraTotals>,
    /// Jain's index of the throughput of its connections.
    pub fairness: Option<f64>,
    /// The totals over the workload's connections.
    pub connections: ConnectionTotals,
}

/// Mean, extremes and percentiles of one quantity over all samples, with intervals.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Distribution {
    /// The mean over all samples.
    pub mean: Estimate,
    /// The smallest of all samples.
    pub min: f64,
    /// The median of all samples.
    pub p50: Estimate,
    /// The 90th percentile of all samples.
    pub p90: Estimate,
    /// The 99th percentile of all samples.
    pub p99: Estimate,
    /// The 99.9th percentile of all samples.
    pub p999: Estimate,
    /// The largest of all samples.
    pub max: f64,
}

/// A measurement of a workload other than completion times.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Observed {
    /// The name of the measured quantity: `clock offset`.
    pub what: String,
    /// The distribution of the values, in us.
    pub us: Distribution,
}

/// Requests in addition to one for each wanted thing, over all replicates and from the start of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ExtraTotals {
    /// Requests sent again because no answer had come.
    pub retries: u64,
    /// Requests that were sent at the same time as the first one (`replicas`).
    pub replicas: u64,
    /// Payload bytes of the answers to both kinds of request.
    pub bytes: u64,
}

/// Completion time over that on idle links.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Slowdown {
    /// The mean of the slowdown over all messages; 1 is the time on idle links.
    pub mean: Estimate,
    /// The 99th percentile of the slowdown over all messages.
    pub p99: Estimate,
}

/// Where the time of messages went: parts that sum to the completion time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TimeSplit {
    /// The names of the components, in the order of the values below.
    pub parts: Vec<String>,
    /// Mean of each over all messages, in us.
    pub mean_us: Vec<f64>,
    /// Mean of each over the slowest hundredth of the messages (at least one), in us.
    pub slowest_us: Vec<f64>,
    /// The number of messages in that hundredth.
    pub slowest_count: u64,
}

/// Fan-out queries of a workload. A query completes with its slowest response.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct QuerySummary {
    /// The number of queries created after the warm-up.
    pub queries: u64,
    /// The queries of these that had not completed when the run ended.
    pub unfinished: u64,
    /// Completion times of queries in us, from creation to the slowest response.
    pub completion_us: Option<Distribution>,
    /// Over queries, the mean completion time of its responses.
    pub response_us: Option<Distribution>,
    /// Over queries, the completion time of its fastest response.
    pub fastest_us: Option<Distribution>,
    /// Share of a query's responses that met the deadline, mean over queries.
    pub in_deadline: Option<Estimate>,
    /// The same, mean over the worst hundredth of the queries.
    pub in_deadline_worst: Option<f64>,
}

/// The numbers of one watched queue in a cell.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct QueueSummary {
    /// The scenario's name for it.
    pub name: String,
    /// The port of the queue, in words.
    pub port: String,
    /// The length of the intervals in us (`observe.queue.NAME.every`).
    pub every_us: f64,
    /// Mean over the intervals of their mean delay.
    pub mean_us: Option<Estimate>,
    /// 99th percentile over the intervals of their mean delay.
    pub p99_us: Option<Estimate>,
    /// The largest queueing delay at any instant, in us.
    pub max_us: f64,
    /// Share of the time in which nothing waited.
    pub nearly_empty: Option<f64>,
    /// Delay at an instant, by time; each the upper edge of its bin of waiting bytes.
    pub instant_us: Option<InstantDelay>,
    /// Share of the link's time that was used, from the first interval to the end of the run.
    pub utilisation: Option<f64>,
    /// Packets that found no room in the queue and were dropped.
    pub drops: u64,
    /// The number of packets that were marked CE.
    pub marks: u64,
    /// The number of packets that passed the queue.
    pub packets: u64,
}

/// Returns whether a share is left out of the file.
fn is_zero(share: &f64) -> bool {
    *share == 0.0
}

/// Links that connect the same two tiers in the same direction, all replicates together.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct TierSummary {
    /// The two tiers with the direction: `host -> leaf`, `leaf -> spine`.
    pub name: String,
    /// The number of links in the tier.
    pub links: u64,
    /// Share of the time in which they sent, the mean over links.
    pub utilisation: f64,
    /// The utilisation of the busiest link of all replicates.
    pub utilisation_most: f64,
    /// Packets that found no room at their ports.
    pub drops: u64,
    /// Times that flow control paused one of these links.
    pub pauses: u64,
    /// Share of the time in which at least one of their priorities was paused, the mean over links.
    pub paused: f64,
    /// Share of the time in which packets waited whose priority was paused, summed over priorities: the mean over
    /// links.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub blocked: f64,
}

/// The circuits of a hybrid network, all replicates together: the weeks that began at or after the warm-up, but for
/// week 0, which has no schedule.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct CircuitSummary {
    /// The number of weeks that count, over all replicates.
    pub weeks: u64,
    /// The number of circuits that were established; one that stays into the next week counts again.
    pub circuits: u64,
    /// Bytes that circuits carried over the bytes that fit while they were established.
    pub filled: f64,
    /// Share of the circuits' time in circuits that were filled to less than [`FILLED_ENOUGH`].
    pub wasted: f64,
    /// Share of the time in which the circuit switch was dark.
    pub dark: f64,
    /// Configurations of a week's schedule, the mean.
    pub configurations_per_week: f64,
    /// Bytes on the wire that circuits carried.
    pub circuit_bytes: u64,
    /// Bytes that passed the packet switch between racks.
    pub packet_bytes: u64,
    /// Packets that the circuit switch lost while it was dark.
    pub lost_dark: u64,
    /// Packets that the circuit switch lost because their sender had no circuit to their receiver.
    pub lost_unmatched: u64,
}

/// The processors of all hosts, all replicates together: shares are of the time from the warm-up to the end.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct ProcessorSummary {
    /// The number of hosts with a processor.
    pub hosts: u64,
    /// The largest number of cores of a host.
    pub cores: u64,
    /// Share of the time in which the core with the interrupts was busy, the mean over hosts.
    pub interrupts: f64,
    /// Share of the time in which the core with the applications was busy, the mean over hosts; with one core the same.
    pub application: f64,
    /// Share of the time in which the busiest core of all hosts and replicates was busy.
    pub busiest: f64,
    /// Frames that hosts took from their NICs in the whole run.
    pub frames_received: u64,
    /// Frames that hosts handed to their NICs in the whole run.
    pub frames_sent: u64,
    /// Packets that found no room in a receive ring in the whole run.
    pub ring_drops: u64,
}

/// Time-weighted percentiles of the delay at an instant, in us.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct InstantDelay {
    /// The median over time, in us.
    pub p50: f64,
    /// The 90th percentile over time, in us.
    pub p90: f64,
    /// The 99th percentile over time, in us.
    pub p99: f64,
    /// The 99.9th percentile over time, in us.
    pub p999: f64,
    /// Whether the 99.9th percentile lies in the last bin, which has no upper edge.
    pub beyond_scale: bool,
}

/// Sums over the connections of a workload and over replicates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ConnectionTotals {
    /// Connections that carried data.
    pub connections: u64,
    /// Bytes delivered to the applications, both directions.
    pub delivered: u64,
    /// Segments with payload that were sent, retransmissions included.
    pub segments: u64,
    /// The number of segments that were retransmitted.
    pub retransmissions: u64,
    /// The number of retransmission timeouts.
    pub timeouts: u64,
    /// Segments with payload that arrived with the ECN mark CE.
    pub marked: u64,
    /// Times that the pacer associated a connection that was not associated.
    pub pacer_associations: u64,
    /// The number of associations that were renewed.
    pub pacer_renewals: u64,
    /// The number of associations that timed out.
    pub pacer_dissociations: u64,
}

/// Effect of a variant on one workload against the first variant, by pairs of the same message (or the same query where
/// the workload has queries, or the same observation where it has only observations).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Comparison {
    /// The name of the variant.
    pub variant: String,
    /// The variant that it is compared against.
    pub base: String,
    /// Swept keys and their values.
    pub sweep: Vec<(String, String)>,
    /// One for each workload that has pairs.
    pub workloads: Vec<WorkloadChange>,
}

/// Changes of the completion time of one workload, or of its observations.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct WorkloadChange {
    /// The scenario's name for it.
    pub name: String,
    /// Whether the pairs are of queries instead of messages.
    pub by_query: bool,
    /// Pairs that completed under both variants.
    pub pairs: u64,
    /// The change of the mean, with its paired interval.
    pub mean: Change,
    /// The change of the median, with its paired interval.
    pub p50: Change,
    /// The change of the 99th percentile, with its paired interval.
    pub p99: Change,
}

impl WorkloadChange {
    /// Every change, with the name of its statistic.
    pub fn statistics(&self) -> [(&'static str, &Change); 3] {
        [("mean", &self.mean), ("p50", &self.p50), ("p99", &self.p99)]
    }
}

impl Summary {
    /// The cell of a variant at a sweep point.
    pub fn cell(&self, variant: &str, sweep: &[(String, String)]) -> Option<&Cell> {
        self.cells.iter().find(|cell| cell.variant == variant && cell.sweep == sweep)
    }

    /// The comparison of a variant with the first one at a sweep point.
    pub fn comparison(&self, variant: &str, sweep: &[(String, String)]) -> Option<&Comparison> {
        self.comparisons.iter().find(|c| c.variant == variant && c.sweep == sweep)
    }

    /// The variant with the significantly lowest statistic of a workload at a sweep point, if there is one.
    pub fn best(&self, workload: &str, statistic: &str, sweep: &[(String, String)]) -> Option<&str> {
        let of =
            |best: &&Best| best.workload == workload && best.statistic == statistic && best.sweep == sweep;
        self.best.iter().find(of).map(|best| best.variant.as_str())
    }

    /// The sweep points in order; one empty point without a sweep.
    pub fn sweep_points(&self) -> Vec<&[(String, String)]> {
        let mut points: Vec<&[(String, String)]> = Vec::new();
        for cell in &self.cells {
            if !points.contains(&cell.sweep.as_slice()) {
                points.push(&cell.sweep);
            }
        }
        points
    }

    /// Returns the name of the quantity by which a workload is judged: `Completion time`, or its observation.
    pub fn quantity(&self, workload: &str) -> String {
        let mut known = self.cells.iter().filter_map(|cell| cell.workload(workload));
        known.next().map_or_else(|| COMPLETION_TIME.to_owned(), WorkloadSummary::quantity)
    }

    /// The names of all workloads, in the order in which they first appear.
    pub fn workloads(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for workload in self.cells.iter().flat_map(|cell| &cell.workloads) {
            if !names.contains(&workload.name.as_str()) {
                names.push(&workload.name);
            }
        }
        names
    }
}

impl Cell {
    /// Returns the summary of the workload with this name.
    pub fn workload(&self, name: &str) -> Option<&WorkloadSummary> {
        self.workloads.iter().find(|workload| workload.name == name)
    }
}

impl WorkloadSummary {
    /// Returns the values by which it is judged: its observations where it exists to observe, the completion time of
    /// queries where there are any, of messages elsewhere. [`WorkloadSummary::quantity`] names it.
    pub fn waited_us(&self) -> Option<&Distribution> {
        match (&self.observed, &self.queries) {
            (Some(observed), _) => Some(&observed.us),
            (None, Some(queries)) => queries.completion_us.as_ref(),
            (None, None) => self.completion_us.as_ref(),
        }
    }

    /// Returns the name of [`WorkloadSummary::waited_us`]: `Completion time`, or the observed quantity.
    pub fn quantity(&self) -> String {
        self.observed
            .as_ref()
            .map_or_else(|| COMPLETION_TIME.to_owned(), |observed| capitalised(&observed.what))
    }
}

/// The quantity by which most workloads are judged.
const COMPLETION_TIME: &str = "Completion time";

fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

#[cfg(test)]
mod tests;
