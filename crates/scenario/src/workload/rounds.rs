//! Work in rounds: `shuffle`, `barrier` and `commit`, where the slowest message holds up all.

use plimsoll_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{HostName, Hosts};
use crate::distribution::{Distribution, SizeDistribution, TimeDistribution};

/// The shuffle of a MapReduce job: in each wave every reducer fetches from every mapper, but for its own
/// host's part. A transfer is a message; the job is a query, from its start to the end of its last wave.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shuffle {
    /// The hosts that hold map outputs; default: all.
    #[serde(default = "all")]
    pub mappers: Hosts,
    /// The hosts that fetch them; default: all.
    #[serde(default = "all")]
    pub reducers: Hosts,
    /// Size of a transfer.
    pub size: SizeDistribution,
    /// Size of the request that asks for it.
    #[serde(default = "Shuffle::default_request")]
    pub request: SizeDistribution,
    /// Transfers that a reducer has under way at once; each reducer goes through the mappers in an order of
    /// its own, drawn for each wave.
    #[serde(default = "Shuffle::default_parallel")]
    pub parallel: u32,
    /// Number of waves; without it waves follow each other until `run.duration`.
    #[serde(default)]
    pub waves: Option<u64>,
    /// Time from the end of a wave, when all its transfers are done, to the next.
    #[serde(default)]
    pub pause: Span,
    /// When the first wave starts.
    #[serde(default)]
    pub start: Span,
}

impl Shuffle {
    /// Hadoop's default of `mapreduce.reduce.shuffle.parallelcopies`.
    fn default_parallel() -> u32 {
        5
    }

    fn default_request() -> SizeDistribution {
        Distribution::Constant(Bytes::new(100))
    }
}

fn all() -> Hosts {
    Hosts::Selector("all".to_owned())
}

/// Workers that wait for each other again and again, as Naiad's barrier does. A round is a query.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Barrier {
    /// The hosts that synchronise; default: all but the coordinator, or all where there is none.
    #[serde(default)]
    pub workers: Hosts,
    /// Who tells whom.
    #[serde(default)]
    pub pattern: BarrierPattern,
    /// The host that all report to, in the pattern `coordinator`; default `client`.
    #[serde(default)]
    pub coordinator: HostName,
    /// Size of every message.
    #[serde(default = "Barrier::default_size")]
    pub size: Bytes,
    /// Time that a worker computes in a round before it reports.
    #[serde(default)]
    pub compute: TimeDistribution,
    /// Stop after this many rounds.
    #[serde(default)]
    pub rounds: Option<u64>,
    /// When the first round starts.
    #[serde(default)]
    pub start: Span,
}

impl Barrier {
    fn default_size() -> Bytes {
        Bytes::new(64)
    }
}

/// Who tells whom that it has reached the barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BarrierPattern {
    /// A round begins when the coordinator releases the workers and ends when all have reported to it, which
    /// releases the next.
    #[default]
    Coordinator,
    /// Every worker tells every other, and goes on when it has heard of all. A round begins with its first
    /// worker and ends when the last one has heard of all; rounds may overlap by one.
    AllToAll,
}

/// Two-phase commit: prepare and vote, commit and acknowledge. A transaction is a query, from its first
/// prepare to its last acknowledgement; every participant votes yes, at once.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Commit {
    /// The host that begins transactions; default `client`.
    #[serde(default)]
    pub coordinator: HostName,
    /// The hosts that take part; default: all others.
    #[serde(default)]
    pub participants: Hosts,
    /// Payload of each of the four messages; in single packets `transport.header` comes on top.
    #[serde(default = "Commit::default_message")]
    pub message: Bytes,
    /// What carries the messages.
    #[serde(default)]
    pub over: CommitOver,
    /// After so long without an answer, `datagram` sends a message again, and `broadcast` gives its
    /// transaction up, which then counts as unfinished.
    #[serde(default = "Commit::default_timeout")]
    pub timeout: Span,
    /// Transactions under way at once.
    #[serde(default = "Commit::default_depth")]
    pub depth: u32,
    /// Stop after this many transactions.
    #[serde(default)]
    pub count: Option<u64>,
    /// When the first transactions start.
    #[serde(default)]
    pub start: Span,
}

impl Commit {
    /// Of QJump's two-phase commit (`q2pc`).
    fn default_message() -> Bytes {
        Bytes::new(16)
    }

    /// Of QJump's reliable UDP.
    fn default_timeout() -> Span {
        Span::from_ms(200)
    }

    fn default_depth() -> u32 {
        1
    }
}

/// What carries the messages of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CommitOver {
    /// The scenario's transport, on one connection to each participant.
    #[default]
    Tcp,
    /// Single packets made reliable by the application: to each participant one at a time, the next when the
    /// answer has come, and sent again after `timeout`.
    Datagram,
    /// Single packets back to back, each sent once, whatever is still unanswered. That relies on a network
    /// that loses none of them, such as QJump's guaranteed level.
    Broadcast,
}
