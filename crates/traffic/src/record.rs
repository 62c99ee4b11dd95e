//! Records of a run's traffic: plain data, the same for a simulated and an emulated run.

use std::ops::Add;

use plimsoll_units::{Span, Time};
use serde::{Deserialize, Serialize};

/// The records of a run's traffic, or of a part of it.
#[derive(Debug, Default)]
pub struct Records {
    /// Messages, complete or not.
    pub messages: Vec<MessageRecord>,
    /// Queries, complete or not.
    pub queries: Vec<QueryRecord>,
    /// Measurements of workloads other than completion times.
    pub observations: Vec<Observation>,
    /// Requests in addition to the needed ones, recorded at the end of a run.
    pub extra: Vec<ExtraLoad>,
    /// Iterations of jobs that have ended.
    pub iterations: Vec<IterationRecord>,
    /// What each rank did in each of these iterations.
    pub ranks: Vec<RankRecord>,
    /// The operations of jobs that are asked for a timeline.
    pub operations: Vec<OperationRecord>,
    /// Where messages on the critical paths of iterations waited.
    pub path_waits: Vec<PathWaitRecord>,
    /// What was replayed of each job that repeats, recorded at the end of a run.
    pub repeats: Vec<RepeatRecord>,
}

impl Records {
    /// Moves all records of `other` to `self`, behind its own.
    pub fn append(&mut self, other: &mut Records) {
        let Records {
            messages,
            queries,
            observations,
            extra,
            iterations,
            ranks,
            operations,
            path_waits,
            repeats,
        } = other;
        self.messages.append(messages);
        self.queries.append(queries);
        self.observations.append(observations);
        self.extra.append(extra);
        self.iterations.append(iterations);
        self.ranks.append(ranks);
        self.operations.append(operations);
        self.path_waits.append(path_waits);
        self.repeats.append(repeats);
    }

    /// Orders the records by workload and index.
    pub fn sort(&mut self) {
        self.messages.sort_unstable_by_key(|message| (message.workload, message.index));
        self.queries.sort_unstable_by_key(|query| (query.workload, query.index));
        self.observations.sort_unstable_by_key(|seen| (seen.workload, seen.index));
        self.iterations.sort_unstable_by_key(|iteration| (iteration.workload, iteration.index));
        self.ranks.sort_unstable_by_key(|rank| (rank.workload, rank.index, rank.rank, rank.group));
        self.operations.sort_unstable_by_key(|one| (one.workload, one.index, one.operation));
        self.path_waits.sort_unstable_by_key(|wait| (wait.workload, wait.index, wait.at));
        self.repeats.sort_unstable_by_key(|repeat| repeat.workload);
    }
}

/// A workload's name and the kind of its messages.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkloadInfo {
    /// The scenario's name for the workload.
    pub name: String,
    /// The workload's `kind` in the scenario, such as `rpc`.
    pub kind: String,
    /// The deadline of the workload's responses or messages, if it has one.
    pub deadline: Option<Span>,
    /// The name of its [`Observation`]s: `clock offset`. It follows from the kind.
    pub observed: Option<String>,
    /// The limit of the number of its messages. It follows from the scenario, and no digest covers it.
    pub supply: Supply,
    /// The names of a job's communication groups, the first for all communication. They follow from the scenario.
    pub groups: Vec<String>,
}

/// The limit of the number of a workload's messages, on which the advice about too few of them depends.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Supply {
    /// The point was kept by a version that did not note the supply.
    #[default]
    Unknown,
    /// The workload sends as long as `run.duration`.
    Duration,
    /// The scenario lists or counts the messages: a longer run has no more of them.
    Fixed,
    /// The flows have no end, and none of them ever completes.
    Endless,
}

impl Supply {
    /// Returns the supply of a workload that stops after `count` messages, or else with the run.
    pub fn counted(count: Option<u64>) -> Supply {
        if count.is_some() { Supply::Fixed } else { Supply::Duration }
    }
}

/// One message: a flow, or a request with its response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageRecord {
    /// The index of its workload in the run.
    pub workload: u16,
    /// The number of the request within the workload, which pairs the same message across variants.
    pub index: u64,
    /// The query it belongs to, for a fan-out.
    pub query: Option<u64>,
    /// The host that created it (the client of a request, the sender of a flow).
    pub source: u32,
    /// The host at the other end (the server of a request, the receiver of a flow).
    pub destination: u32,
    /// The payload bytes of the flow or of the response.
    pub bytes: u64,
    /// The time at which it was created, which is the request's scheduled time.
    pub created: Time,
    /// The time at which its last byte arrived, or `None` if the run ended first.
    pub completed: Option<Time>,
    /// Its completion time on idle links, the reference of its slowdown.
    pub ideal: Span,
    /// Components of its latency; the parts sum to `completed - created`. All are zero where they are unknown, as over
    /// a kernel's sockets.
    pub split: Split,
}

impl MessageRecord {
    /// Returns the completion time; `None` if the message did not complete.
    pub fn latency(&self) -> Option<Span> {
        self.completed.map(|completed| completed - self.created)
    }

    /// Returns the completion time over the one on idle links; `None` if the message did not complete, or that time is
    /// not known.
    pub fn slowdown(&self) -> Option<f64> {
        self.latency().filter(|_| !self.ideal.is_zero()).map(|latency| self.slowdown_of(latency))
    }

    /// Returns a time over the completion time on idle links.
    pub fn slowdown_of(&self, latency: Span) -> f64 {
        latency.as_ps() as f64 / self.ideal.as_ps() as f64
    }
}

/// The components of a message's latency, which sum exactly to its completion time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Split {
    /// Time in the transport before the last byte was first sent: window, handshake, bytes ahead.
    pub window: Span,
    /// Time from the first sending of the last byte to the sending that completed the message: losses.
    pub recovery: Span,
    /// Time in NICs: in the queue of the sender's, and held by the receiver's for coalescing.
    pub nic: Span,
    /// Time that the host's pacer held it.
    pub pacer: Span,
    /// Time in switch queues, by tier from the hosts upwards.
    pub tier: [Span; 3],
    /// Time of serialisation on the links, which depends on size and rates alone.
    pub serialisation: Span,
    /// Time of propagation on the links.
    pub propagation: Span,
    /// Time at the server, waiting and in service.
    pub service: Span,
}

impl Split {
    /// Returns `total`, divided into components in proportion to those of `self`, of which the longest takes what does
    /// not divide; without any, it is service.
    pub(crate) fn shared(&self, total: Span) -> Split {
        let own = self.components();
        let all = u128::from(self.total().as_ps()).max(1);
        let share =
            |of: Span| Span::from_ps((u128::from(of.as_ps()) * u128::from(total.as_ps()) / all) as u64);
        let mut shares = own.map(share);
        let longest = (0..own.len()).max_by_key(|&place| own[place]).unwrap_or_default();
        shares[longest] += total - shares.into_iter().sum();
        Split::of(shares)
    }

    /// Returns what each component has more than in `other`, and nothing where it has less.
    pub(crate) fn more_than(&self, other: &Split) -> Split {
        let [own, other] = [self, other].map(Split::components);
        Split::of(std::array::from_fn(|place| own[place].saturating_sub(other[place])))
    }

    /// Returns the sum of all components, which is the completion time.
    pub fn total(&self) -> Span {
        self.components().into_iter().sum()
    }

    /// Returns the components in the order of the fields.
    fn components(&self) -> [Span; 10] {
        let Split { window, recovery, nic, pacer, tier: [a, b, c], serialisation, propagation, service } =
            *self;
        [window, recovery, nic, pacer, a, b, c, serialisation, propagation, service]
    }

    fn of(components: [Span; 10]) -> Split {
        let [window, recovery, nic, pacer, a, b, c, serialisation, propagation, service] = components;
        Split { window, recovery, nic, pacer, tier: [a, b, c], serialisation, propagation, service }
    }
}

/// Adds component by component.
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

/// One fan-out query, or something else that is complete when all its parts are: a page, a round of a barrier, a
/// transaction, a job.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct QueryRecord {
    /// The index of its workload in the run.
    pub workload: u16,
    /// The number of the query within the workload.
    pub index: u64,
    /// The time at which it was created.
    pub created: Time,
    /// The time at which the slowest response arrived, or `None`.
    pub completed: Option<Time>,
    /// The number of servers to which the query was sent.
    pub servers: u32,
    /// The number of responses strictly within the deadline; all of them without a deadline.
    pub in_deadline: u32,
    /// The mean completion time over the servers.
    pub response_mean: Span,
    /// The completion time of the fastest server.
    pub response_min: Span,
}

/// A length of time that a workload measured, other than a completion time, such as a clock's offset.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Observation {
    /// The index of its workload in the run; its `observed` names the value.
    pub workload: u16,
    /// The number of the observation within the workload, which pairs the same one across variants.
    pub index: u64,
    /// The number of the host that made the measurement.
    pub host: u32,
    /// The time at which the measurement began.
    pub begun: Time,
    /// The length of time that was measured.
    pub value: Span,
}

/// An iteration of a job that has ended, and its critical path: each operation on it waited for the one before it last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct IterationRecord {
    /// The index of the workload in the run.
    pub workload: u16,
    /// The number of the iteration, which is that of its query.
    pub index: u64,
    /// The time that it took.
    pub took: Span,
    /// The time that it takes where each message has idle links, but for the other messages of its ends.
    pub ideal: Span,
    /// The size of a collective operation; of other jobs the payload of all messages, in bytes.
    pub bytes: u64,
    /// The bytes that a rank's link carries at least (nccl-tests); of other jobs the most of a rank.
    pub bus_bytes: u64,
    /// The components of `took` on the critical path: those of messages, and as service the time of operations.
    pub split: Split,
}

/// The times of a rank of a job in an iteration, for all communication or one group.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankRecord {
    /// The index of the workload in the run.
    pub workload: u16,
    /// The number of the iteration.
    pub index: u64,
    /// The number of the rank.
    pub rank: u32,
    /// The number of the host that has it.
    pub host: u32,
    /// The number of the group; 0 for all communication.
    pub group: u8,
    /// From the beginning of the iteration to the end of the rank's last operation.
    pub took: Span,
    /// The time in which it computed.
    pub computed: Span,
    /// The time in which it waited for messages of the group.
    pub waited: Span,
    /// The time of these in which it did not compute.
    pub exposed: Span,
}

/// An operation of a job that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OperationRecord {
    /// The index of the workload in the run.
    pub workload: u16,
    /// The number of the iteration.
    pub index: u64,
    /// The number of the operation, over all ranks.
    pub operation: u32,
    /// The rank that carried it out.
    pub rank: u32,
    /// The stream of the rank.
    pub stream: u8,
    /// The number of its communication group; 0 without one.
    pub group: u8,
    /// The work: 0 a computation, 1 a send, 2 a receive.
    pub action: u8,
    /// The other rank of a message.
    pub peer: Option<u32>,
    /// The payload of a message.
    pub bytes: u64,
    /// When it began; of a receive when it began to wait.
    pub began: Time,
    /// When it ended, with all its work.
    pub ended: Time,
    /// Its place on the critical path of its iteration, from 0; `None` if it is not on it.
    pub path: Option<u32>,
}

/// What was replayed in place of simulated of a job that repeats.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct RepeatRecord {
    /// The index of the workload in the run.
    pub workload: u16,
    /// Whether replayed times are those that a simulation would have given.
    pub is_exact: bool,
    /// The iterations that have ended.
    pub iterations: u64,
    /// Those of them that were replayed.
    pub replayed_iterations: u64,
    /// The rounds of the other iterations, which are those of their longest chain of operations.
    pub rounds: u64,
    /// Those of them that were replayed.
    pub replayed_rounds: u64,
    /// The largest difference of a simulated duration from the replayed one before it, as a share of that.
    pub largest_difference: f64,
}

/// The time that messages on the critical path of a job's iteration waited at a place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathWaitRecord {
    /// The index of the workload in the run.
    pub workload: u16,
    /// The number of the iteration.
    pub index: u64,
    /// The place where they waited.
    pub at: WaitedAt,
    /// The time that they waited there.
    pub waited: Span,
}

/// A place where a message waited, as far as its packet knows.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum WaitedAt {
    /// At the port of the link of this number.
    Link(u32),
    /// At the ports of two links of one tier, in any shares.
    Links(u32, u32),
    /// At switches of this tier, whose ports are not known.
    Tier(u8),
    /// At the links inside the server of this number.
    Server(u32),
}

/// Requests of a workload beyond one for each thing that it needed.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct ExtraLoad {
    /// The index of its workload in the run.
    pub workload: u16,
    /// Requests sent again because no answer had come.
    pub retries: u64,
    /// Further requests sent at once, so that the first answer may count.
    pub replicas: u64,
    /// The payload of the answers to both.
    pub bytes: u64,
}
