//! [`ServerModel`]: the parts of a server, and its load.

use std::fmt;

use plimsoll_mechanisms::InvalidParam;
use plimsoll_mechanisms::partition_balancer::SplitBalance;
use plimsoll_traffic::distribution::TimeDistribution;
use plimsoll_units::Span;
use serde::Deserialize;

use super::arrivals::ServerArrivals;
use super::keys::Keys;
use super::lock::Locking;
use super::neighbour::Neighbour;

/// Threads of all processes together, at most.
pub const THREADS_MAX: u32 = 64;

/// A server and its clients. Its `Debug` text, by which pages know their runs, has the neighbour only if there is one.
#[derive(Clone, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct ServerModel {
    /// Processes, each with queues, locks and state of its own; a client always uses the same one. At least 1.
    pub processes: u32,
    /// Threads of a process; at least 1, and at most [`THREADS_MAX`] in all processes together.
    pub threads: u32,
    /// The rule by which a request gets its thread.
    pub dispatch: Dispatch,
    /// The mechanism that keeps the threads of a process from using a state at the same time.
    pub locking: Locking,
    /// The costs of a request when nothing is in its way.
    pub costs: Costs,
    /// The NUMA nodes, and the placement of memory on them.
    pub numa: Numa,
    /// The partitions that the requests are for.
    pub keys: Keys,
    /// The share of requests that change state, 0 to 1.
    pub writes: f64,
    /// The arrival process of requests.
    pub arrivals: ServerArrivals,
    /// Limit of the requests that wait in a queue; further ones are lost. `None` loses none. Only with arrivals that do
    /// not wait for answers.
    pub queue_limit: Option<u32>,
    /// Requests in all; at least 1.
    #[serde(default)]
    pub requests: u64,
    /// The number of requests at the beginning that do not count; fewer than `requests`.
    #[serde(default)]
    pub warmup: u64,
    /// A job on the same machine; `None` leaves the machine to the server.
    pub neighbour: Option<Neighbour>,
}

impl fmt::Debug for ServerModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ServerModel { processes, threads, dispatch, locking, costs, numa, keys, .. } = self;
        let ServerModel { writes, arrivals, queue_limit, requests, warmup, neighbour, .. } = self;
        let mut fields = formatter.debug_struct("ServerModel");
        fields.field("processes", processes).field("threads", threads).field("dispatch", dispatch);
        fields.field("locking", locking).field("costs", costs).field("numa", numa).field("keys", keys);
        fields.field("writes", writes).field("arrivals", arrivals).field("queue_limit", queue_limit);
        fields.field("requests", requests).field("warmup", warmup);
        if let Some(neighbour) = neighbour {
            fields.field("neighbour", neighbour);
        }
        fields.finish()
    }
}

/// The rule by which a request gets its thread.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Dispatch {
    /// One queue for each process, from which any idle thread of it takes: a socket that all threads read.
    Shared,
    /// The client's thread: a connection, or a hash of the client's address.
    ByConnection,
    /// The partition's thread, for ever: partition modulo threads.
    Static,
    /// The partition's owner, chosen anew each epoch.
    Steered(Steering),
}

/// Chronos's steering (dissertation, section 6.1.1). One process only.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Steering {
    /// The time between two runs of Algorithm 1; more than zero. The first mapping is random.
    pub epoch: Span,
    /// The extra cost of the first request for a partition to its new owner: a cold cache.
    pub hand_over: Span,
    /// True if requests for a moved partition wait until its old owner has served the earlier ones, as in this
    /// project's runtime. Else two threads may have requests for one partition, and locks per partition separate them,
    /// as in the paper.
    pub drains: bool,
    /// Partitions of one group, which begins on one thread and moves as one while it is not hot
    /// ([`plimsoll_mechanisms::partition_balancer::SplitBalance`]); 2 to 64. With `None` each partition moves by
    /// itself, as in the paper.
    pub split: Option<u32>,
}

/// The costs of a request when nothing is in its way.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Costs {
    /// The way to the server and back, without the server's own line.
    pub network: Span,
    /// Time from the NIC until a thread can see the request, in which it occupies no thread: interrupt and wake-up, or
    /// a user-level ring.
    pub delivery: TimeDistribution,
    /// The system's time on the thread: system calls, copies, context switches.
    pub system: TimeDistribution,
    /// The application's own time.
    pub application: TimeDistribution,
    /// The share of the application's time that is spent under the lock, 0 to 1.
    pub locked: f64,
    /// The time on the NIC's line of the response to a read, and of the response to a write.
    pub line: [Span; 2],
}

/// Placement of the memory that a thread works on.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Numa {
    /// Nodes, 1 or more; neighbouring threads share one.
    pub nodes: u32,
    /// Factor by which the application takes longer where the memory is another node's; 1 or more.
    pub remote: f64,
    /// The node on which a partition's memory is placed.
    pub placement: MemoryPlacement,
}

/// The node of a partition's memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum MemoryPlacement {
    /// On the node of the thread that uses it.
    Local,
    /// On another node than the thread that uses it.
    Remote,
    /// On the node of its first owner, for ever: steering may move a partition away from its memory. Without owners, on
    /// node partition modulo nodes.
    FirstOwner,
}

impl Numa {
    /// A machine with one NUMA node, where all memory is local.
    pub const NONE: Numa = Numa { nodes: 1, remote: 1.0, placement: MemoryPlacement::Local };
}

impl ServerModel {
    /// Threads of all processes together.
    pub fn threads_in_all(&self) -> u32 {
        self.processes.saturating_mul(self.threads)
    }

    /// Checks that every value fits.
    ///
    /// # Errors
    /// Names the first value that does not fit, and the allowed ones.
    pub fn check(&self) -> Result<(), InvalidParam> {
        unless(self.processes >= 1, "processes", self.processes, "1 or more")?;
        let threads = self.threads_in_all();
        unless(
            (1..=THREADS_MAX).contains(&threads),
            "threads",
            threads,
            "1 to 64 in all processes together",
        )?;
        unless(is_share(self.writes), "writes", self.writes, "0 to 1")?;
        unless(is_share(self.costs.locked), "locked", self.costs.locked, "0 to 1")?;
        unless(self.requests >= 1, "requests", self.requests, "1 or more")?;
        unless(self.warmup < self.requests, "warmup", self.warmup, "less than `requests`")?;
        let Numa { nodes, remote, .. } = self.numa;
        unless((1..=threads).contains(&nodes), "nodes", nodes, "1 to the number of threads")?;
        unless(remote >= 1.0 && remote.is_finite(), "remote", remote, "1 or more")?;
        let costs = &self.costs;
        let times =
            [("delivery", &costs.delivery), ("system", &costs.system), ("application", &costs.application)];
        for (key, time) in times {
            is_time(key, time)?;
        }
        self.keys.check()?;
        self.arrivals.check()?;
        if let Some(neighbour) = &self.neighbour {
            neighbour.check(threads)?;
        }
        let waits = matches!(self.arrivals, ServerArrivals::Closed { .. });
        let limit = self.queue_limit.unwrap_or(0);
        unless(
            !(waits && self.queue_limit.is_some()),
            "queue_limit",
            limit,
            "none where clients wait for answers",
        )?;
        let one_process = self.processes == 1;
        match &self.dispatch {
            Dispatch::Steered(steering) => {
                unless(one_process, "processes", self.processes, "1 with steering")?;
                unless(steering.epoch > Span::ZERO, "epoch", steering.epoch, "more than zero")?;
                let ways = steering.split.unwrap_or(2);
                unless((2..=SplitBalance::WAYS_MAX).contains(&ways), "split", ways, "2 to 64")
            }
            Dispatch::Static => {
                unless(one_process, "processes", self.processes, "1 with a mapping of partitions")
            }
            Dispatch::Shared | Dispatch::ByConnection => Ok(()),
        }
    }
}

pub(super) fn is_time(key: &'static str, time: &TimeDistribution) -> Result<(), InvalidParam> {
    let problem = time.validate().err().map(|error| error.to_string());
    unless(problem.is_none(), key, problem.unwrap_or_default(), "what a scenario's distributions may be")
}

pub(super) fn is_share(share: f64) -> bool {
    (0.0..=1.0).contains(&share)
}

pub(super) fn is_rate(rate: f64) -> bool {
    rate > 0.0 && rate.is_finite()
}

pub(super) fn unless(
    ok: bool,
    key: &'static str,
    value: impl fmt::Display,
    allowed: &'static str,
) -> Result<(), InvalidParam> {
    InvalidParam::unless(ok, key, value, allowed)
}
