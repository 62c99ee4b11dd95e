//! [`ControlParams`]: the table `[circuits]` of a scenario.

use plimsoll_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::SchedulerKind;

/// The control loop of a hybrid network: what it schedules by, and how long each of its steps takes. The defaults are
/// those of REACToR's prototype of eight hosts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ControlParams {
    /// What makes a schedule of the demand.
    pub scheduler: SchedulerKind,
    /// The accumulation period of demand, for which one schedule is made; 1.5 ms in REACToR's prototype, 3 ms in
    /// Solstice's evaluation.
    pub week: Span,
    /// How long the circuit switch is dark while it changes its matching.
    pub reconfiguration: Span,
    /// How long the circuits still stand after the hosts have paused what they send by them. Default: what a frame of
    /// full size takes from a host to the circuit switch if it has just started when the pause comes. Less loses
    /// packets.
    pub drain: Option<Span>,
    /// How long before a week begins its demand is read. It must leave time for `demand_loop`, `demand_packet` and
    /// `computation`.
    pub lead: Span,
    /// How long a host takes to sum up its demand.
    pub demand_loop: Span,
    /// How long a host's demand takes to the controller.
    pub demand_packet: Span,
    /// How long the controller takes to compute a schedule.
    pub computation: Span,
    /// Where a host's demand is read.
    pub estimator: Estimator,
    /// The most bytes of a connection that a socket buffer shows to `socket_buffers` and `slow_socket_buffers`.
    pub socket_buffer: Bytes,
    /// How often `slow_socket_buffers` reads the buffers.
    pub poll: Span,
    /// How fast hosts may send the residue of a schedule by the packet switch.
    pub residue: ResidueRate,
    /// The share of the packet switch's rate that a `scheduled` residue may take, above 0 and at most 1. The rest is
    /// for what has no schedule: acknowledgements, `packet_only` workloads, and what comes between two readings.
    pub residue_share: f64,
    /// When a host decides by which switch a packet travels that may take either.
    pub classify: Classify,
    /// By which switch pure acknowledgements travel.
    pub acks: AckPath,
    /// Workloads whose packets go by the packet switch only, as requests that cannot wait for a circuit. `NAME.client`
    /// and `NAME.server` mean what one end of its connections sends.
    pub packet_only: Vec<String>,
    /// Workloads, or ends of their connections, whose packets go by circuits only.
    pub circuit_only: Vec<String>,
}

/// Where a host's demand is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// What waits in socket buffers and in the queues of the NIC, as REACToR reads it.
    #[default]
    SocketBuffers,
    /// What waits in the queues of the NIC alone.
    NicQueues,
    /// What the switches counted in the last week, as Helios reads it.
    SwitchCounters,
    /// What waited in socket buffers when they were read last, which is every `poll`, as in c-Through.
    SlowSocketBuffers,
    /// Everything that applications have passed to `send` and that has not been sent, as in FastPass.
    SendCalls,
    /// What `send_calls` knows, and what applications say that they will send: the answers to requests under way, and
    /// the transfers of a shuffle that are still to be fetched.
    Hints,
}

/// How fast hosts may send the residue of a schedule by the packet switch.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResidueRate {
    /// As fast as the host's link to the packet switch. Several senders may overload a receiver's link.
    #[default]
    Free,
    /// Each sender at the rate that spreads its residue over the week, so that no receiver's link is overloaded.
    Scheduled,
}

/// When a host decides by which switch a packet travels that may take either.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Classify {
    /// When it is sent: a circuit takes what waits for its destination.
    #[default]
    WhenSent,
    /// When it joins a queue: what was queued for the packet switch before there was a circuit leaves by the packet
    /// switch, beside what leaves by the circuit.
    WhenQueued,
}

/// By which switch pure acknowledgements travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AckPath {
    /// As data to the same host does.
    #[default]
    AsData,
    /// By the packet switch.
    Packet,
    /// By circuits.
    Circuit,
}

impl Default for ControlParams {
    fn default() -> ControlParams {
        ControlParams {
            scheduler: SchedulerKind::default(),
            week: Span::from_us(1500),
            reconfiguration: Span::from_us(30),
            drain: None,
            lead: Span::from_us(400),
            demand_loop: Span::from_ns(400),
            demand_packet: Span::from_us(5),
            computation: Span::from_us(100),
            estimator: Estimator::default(),
            socket_buffer: Bytes::new(4 << 20),
            poll: Span::from_ms(10),
            residue: ResidueRate::default(),
            residue_share: 0.9,
            classify: Classify::default(),
            acks: AckPath::default(),
            packet_only: Vec::new(),
            circuit_only: Vec::new(),
        }
    }
}

/// A value of the table that makes no sense.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{problem}; allowed: {allowed}")]
pub struct InvalidControl {
    /// The key within the table.
    pub key: &'static str,
    /// The problem in words, with the value.
    pub problem: String,
    /// The values that are allowed.
    pub allowed: String,
}

impl ControlParams {
    /// Checks the values, each by itself and together. `drain` is the default of the key of that name.
    ///
    /// # Errors
    /// Names the first key whose value makes no sense.
    pub fn validate(&self, drain: Span) -> Result<(), InvalidControl> {
        let invalid = |key, problem: String, allowed: String| Err(InvalidControl { key, problem, allowed });
        let night = self.reconfiguration + self.drain.unwrap_or(drain);
        if night >= self.week {
            let problem =
                format!("a night of {night}, with the drain, leaves nothing of a week of {}", self.week);
            return invalid("reconfiguration", problem, format!("less than {}", self.week));
        }
        let least = self.demand_loop + self.demand_packet + self.computation;
        if self.lead < least {
            let problem = format!("the schedule of a week comes {} after its beginning", least - self.lead);
            return invalid("lead", problem, format!("at least {least}, for its demand and its computation"));
        }
        if self.lead > self.week {
            return invalid(
                "lead",
                format!("{} is more than a week", self.lead),
                format!("at most {}", self.week),
            );
        }
        if !(self.residue_share > 0.0 && self.residue_share <= 1.0) {
            let problem = format!("{} is no share of the packet switch's rate", self.residue_share);
            return invalid("residue_share", problem, "above 0 and at most 1".to_owned());
        }
        if self.poll.is_zero() {
            return invalid(
                "poll",
                "buffers cannot be read all the time".to_owned(),
                "more than 0s".to_owned(),
            );
        }
        Ok(())
    }
}
