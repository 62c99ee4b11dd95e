//! Records of a run's traffic: plain data, the same for a simulated and an emulated run.

use std::ops::Add;

use plimsoll_units::{Span, Time};
use serde::{Deserialize, Serialize};

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
    /// Returns the sum of `self` and `other`, component by component.
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

    /// Returns the sum of all components, which is the completion time.
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
