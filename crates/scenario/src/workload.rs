//! Workloads: who sends what to whom, and when.

use std::sync::Arc;

use plimsoll_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use crate::distribution::{SizeDistribution, TimeDistribution};
pub use crate::flow_list::ListedFlow;
pub use crate::hosts::{HostName, Hosts};
use crate::quantity::Load;

mod probe;
mod rounds;
mod service;

pub use probe::{Ping, PingOver, Ptp};
pub use rounds::{Barrier, BarrierPattern, Commit, CommitOver, Shuffle};
pub use service::{ClosedLoop, PageOrder, Pages};

/// A source of traffic.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Workload {
    /// A fixed number of flows that send from a start time on.
    Flows(Flows),
    /// Open-loop requests of one client to many servers; each gets a response.
    Rpc(Rpc),
    /// Like `rpc`, for large responses: bytes per second rather than requests are what one states.
    Transfer(Transfer),
    /// Queries that ask every server at once and wait for the slowest.
    FanOut(FanOut),
    /// Poisson flows between random pairs, sizes from a distribution.
    AllToAll(AllToAll),
    /// Every host sends to one other host and receives from one.
    Permutation(Permutation),
    /// Many hosts send to one at the same instant.
    Incast(Incast),
    /// Flows listed in a file: start, source, destination, size, class.
    FlowList(FlowList),
    /// Raw packets without a transport, for queueing theory.
    Packets(Packets),
    /// Small messages that come back at once; their round-trip time is what is measured.
    Ping(Ping),
    /// Clients that keep a number of requests in flight, as of memcached.
    ClosedLoop(ClosedLoop),
    /// The shuffle of a MapReduce job, in waves.
    Shuffle(Shuffle),
    /// Workers that wait for each other, round after round.
    Barrier(Barrier),
    /// Two-phase commit of a coordinator with its participants.
    Commit(Commit),
    /// Pages made of many retrievals, with deadlines, retries and replicated reads.
    Pages(Pages),
    /// Clocks compared by two-way timestamps; the error of the estimate is what is measured.
    Ptp(Ptp),
}

/// The shape that the scenario's own deserialiser reads; see the module `de`.
#[derive(Deserialize)]
#[serde(remote = "Workload", rename_all = "kebab-case")]
enum InFile {
    Flows(Flows),
    Rpc(Rpc),
    Transfer(Transfer),
    FanOut(FanOut),
    AllToAll(AllToAll),
    Permutation(Permutation),
    Incast(Incast),
    FlowList(FlowList),
    Packets(Packets),
    Ping(Ping),
    ClosedLoop(ClosedLoop),
    Shuffle(Shuffle),
    Barrier(Barrier),
    Commit(Commit),
    Pages(Pages),
    Ptp(Ptp),
}

impl<'de> Deserialize<'de> for Workload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Workload, D::Error> {
        InFile::deserialize(deserializer)
    }
}

impl Workload {
    /// The `kind` in a file.
    pub fn kind(&self) -> &'static str {
        match self {
            Workload::Flows(_) => "flows",
            Workload::Rpc(_) => "rpc",
            Workload::Transfer(_) => "transfer",
            Workload::FanOut(_) => "fan-out",
            Workload::AllToAll(_) => "all-to-all",
            Workload::Permutation(_) => "permutation",
            Workload::Incast(_) => "incast",
            Workload::FlowList(_) => "flow-list",
            Workload::Packets(_) => "packets",
            Workload::Ping(_) => "ping",
            Workload::ClosedLoop(_) => "closed-loop",
            Workload::Shuffle(_) => "shuffle",
            Workload::Barrier(_) => "barrier",
            Workload::Commit(_) => "commit",
            Workload::Pages(_) => "pages",
            Workload::Ptp(_) => "ptp",
        }
    }
}

/// A fixed number of flows.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flows {
    /// The sending hosts.
    pub from: Hosts,
    /// The receiving host.
    pub to: HostName,
    /// Bytes of each flow; without it the flows send until `run.duration`.
    #[serde(default)]
    pub size: Option<Bytes>,
    /// When the first flow starts.
    #[serde(default)]
    pub start: Span,
    /// Time between the starts of one flow and the next.
    #[serde(default)]
    pub stagger: Span,
    /// Each flow starts later than `start` and `stagger` say by a time drawn uniformly from zero to
    /// this.
    #[serde(default)]
    pub start_within: Span,
}

/// Open-loop requests of one client.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rpc {
    /// The host that asks; default `client`.
    #[serde(default)]
    pub client: HostName,
    /// The hosts that answer; default: all others.
    #[serde(default)]
    pub servers: Hosts,
    /// Size of a request.
    pub request: Bytes,
    /// Size of a response.
    pub response: SizeDistribution,
    /// Response bytes asked for per second: a rate, or a share of the client's link.
    pub load: Load,
    /// Which server is asked next.
    #[serde(default)]
    pub pick: Pick,
    /// Time a server takes to answer; it serves one request at a time.
    #[serde(default)]
    pub service: TimeDistribution,
    /// A response later than this misses its deadline.
    #[serde(default)]
    pub deadline: Option<Span>,
    /// Stop after this many requests.
    #[serde(default)]
    pub count: Option<u64>,
    /// When the first request may come.
    #[serde(default)]
    pub start: Span,
}

/// Open-loop bulk transfers to one client.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// The host that asks; default `client`.
    #[serde(default)]
    pub client: HostName,
    /// The hosts that send; default: all others.
    #[serde(default)]
    pub servers: Hosts,
    /// Size of the request that asks for a transfer.
    #[serde(default = "Transfer::default_request")]
    pub request: Bytes,
    /// Size of a transfer.
    pub size: SizeDistribution,
    /// Bytes transferred per second: a rate, or a share of the client's link.
    pub load: Load,
    /// Which server is asked next.
    #[serde(default)]
    pub pick: Pick,
    /// Stop after this many transfers.
    #[serde(default)]
    pub count: Option<u64>,
    /// When the first transfer may come.
    #[serde(default)]
    pub start: Span,
}

impl Transfer {
    fn default_request() -> Bytes {
        Bytes::new(100)
    }
}

/// Queries to every server at once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FanOut {
    /// The host that asks; default `client`.
    #[serde(default)]
    pub client: HostName,
    /// The hosts that answer; default: all others.
    #[serde(default)]
    pub servers: Hosts,
    /// Size of the request to each server.
    pub request: Bytes,
    /// Size of each response.
    pub response: SizeDistribution,
    /// Queries per second (Poisson).
    pub queries_per_second: f64,
    /// Time a server takes to answer; it serves one request at a time, first come first served.
    #[serde(default)]
    pub service: TimeDistribution,
    /// Responses later than this miss the deadline.
    #[serde(default)]
    pub deadline: Option<Span>,
    /// Stop after this many queries.
    #[serde(default)]
    pub count: Option<u64>,
    /// When the first query may come.
    #[serde(default)]
    pub start: Span,
}

/// Poisson flows between random pairs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AllToAll {
    /// Size of a flow.
    pub size: SizeDistribution,
    /// Bytes that each host sends per second: a rate, or a share of a host's link.
    pub load: Load,
    /// Stop after this many flows.
    #[serde(default)]
    pub count: Option<u64>,
    /// When the first flow may come.
    #[serde(default)]
    pub start: Span,
}

/// A random permutation of hosts, none to itself.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Permutation {
    /// Bytes of each flow; without it the flows send until `run.duration`.
    #[serde(default)]
    pub size: Option<Bytes>,
    /// Each flow starts at a time uniform in zero to this.
    #[serde(default)]
    pub start_within: Span,
}

/// Many to one, in rounds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Incast {
    /// The receiving host; default `client`.
    #[serde(default)]
    pub to: HostName,
    /// The sending hosts; default: all others.
    #[serde(default)]
    pub from: Hosts,
    /// Bytes of each sender in a round.
    pub size: Bytes,
    /// Time from one round to the next.
    pub every: Span,
    /// Number of rounds.
    #[serde(default = "one")]
    pub rounds: u64,
    /// When the first round starts.
    #[serde(default)]
    pub start: Span,
}

fn one() -> u64 {
    1
}

/// Flows from a file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowList {
    /// CSV with the columns start (with unit), source, destination, size (with unit), class;
    /// relative to the scenario.
    pub path: String,
    /// The rows of the file, read when the scenario is checked.
    #[serde(skip)]
    pub flows: Arc<Vec<ListedFlow>>,
}

/// Raw packets without a transport.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Packets {
    /// The sending hosts.
    pub from: Hosts,
    /// The receiving host.
    pub to: HostName,
    /// Size on the wire, header included.
    pub size: SizeDistribution,
    /// Bytes per second of each sender: a rate, or a share of its link.
    pub load: Load,
    /// Time between packets: exponential (Poisson) or constant.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Send for this long, then not for `pause`, and again: all senders at the same times, from time zero on.
    /// Without it they always send.
    #[serde(default)]
    pub burst: Option<Span>,
    /// Time between two bursts; needs `burst`.
    #[serde(default)]
    pub pause: Span,
    /// Stop after this many packets of each sender.
    #[serde(default)]
    pub count: Option<u64>,
}

/// How arrivals are spaced.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Exponential gaps.
    #[default]
    Poisson,
    /// Equal gaps.
    Constant,
}

/// Which server is asked next.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Pick {
    /// Request k goes to server k mod n.
    #[default]
    RoundRobin,
    /// Each request draws its server.
    Random,
}
