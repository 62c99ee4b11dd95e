//! [`ControlParams`]: the table `[circuits]` of a scenario.

use std::ops::RangeInclusive;

use plimsoll_units::{Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::kind::SchedulerKind;

/// The control loop of a hybrid network: the input of its schedules, and the time of each of its steps. The defaults
/// are the values of REACToR's prototype of eight hosts.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ControlParams {
    /// The algorithm that makes a schedule of the demand.
    pub scheduler: SchedulerKind,
    /// The accumulation period of demand, for which one schedule is made; 1.5 ms in REACToR's prototype, 3 ms in
    /// Solstice's evaluation.
    pub week: Span,
    /// Time for which the circuit switch is dark while it changes its matching.
    pub reconfiguration: Span,
    /// Time for which the circuits still hold after the hosts have paused sending by them. Default: the time that a
    /// frame of full size takes from a host to the circuit switch if it has just started when the pause comes. Less
    /// loses packets.
    pub drain: Option<Span>,
    /// Time before the begin of a week at which its demand is read. It must leave time for `demand_loop`,
    /// `demand_packet` and `computation`.
    pub lead: Span,
    /// Time that a host takes to sum up its demand.
    pub demand_loop: Span,
    /// Time that a host's demand takes to the controller.
    pub demand_packet: Span,
    /// Time that the controller takes to compute a schedule.
    pub computation: Span,
    /// Where a host's demand is read.
    pub estimator: Estimator,
    /// The most bytes of a connection that a socket buffer shows to `socket_buffers` and `slow_socket_buffers`.
    pub socket_buffer: Bytes,
    /// Interval at which `slow_socket_buffers` reads the buffers.
    pub poll: Span,
    /// The rate at which hosts may send the residue of a schedule by the packet switch.
    pub residue: ResidueRate,
    /// The share of the packet switch's rate that a `scheduled` residue may take, above 0 and at most 1. The rest is
    /// for traffic without a schedule: acknowledgements, `packet_only` workloads, and data that arrives between two
    /// readings.
    pub residue_share: f64,
    /// When a host decides by which switch a packet travels that may take either.
    pub classify: Classify,
    /// The switch by which pure acknowledgements travel.
    pub acks: AckPath,
    /// Workloads whose packets go by the packet switch only, such as requests that cannot wait for a circuit.
    /// `NAME.client` and `NAME.server` mean the packets that one end of its connections sends.
    pub packet_only: Vec<String>,
    /// Workloads, or ends of their connections, whose packets go by circuits only.
    pub circuit_only: Vec<String>,
}

/// Where a host's demand is read.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// Bytes that wait in socket buffers and in the queues of the NIC, as REACToR reads them.
    #[default]
    SocketBuffers,
    /// Bytes that wait in the queues of the NIC alone.
    NicQueues,
    /// Bytes that the switches counted in the last week, as Helios reads them.
    SwitchCounters,
    /// Bytes that waited in socket buffers at the last reading, which is every `poll`, as in c-Through.
    SlowSocketBuffers,
    /// Everything that applications have passed to `send` and that has not been sent, as in FastPass.
    SendCalls,
    /// The demand of `send_calls`, and the data that applications announce, whenever it will be ready: the answers to
    /// requests under way, the transfers of a shuffle that are still to be fetched, and the flows of a list.
    Hints,
    /// As `hints`, but announced data counts only if it becomes ready after the reading and before the end of the week
    /// that the schedule is for. Data that is late does not count until it has been written.
    TimedHints,
}

/// The rate at which hosts may send the residue of a schedule by the packet switch.
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
    /// When it is sent: a circuit takes the packets that wait for its destination.
    #[default]
    WhenSent,
    /// When it joins a queue: packets queued for the packet switch before there was a circuit leave by the packet
    /// switch, beside the ones that leave by the circuit.
    WhenQueued,
}

/// The switch by which pure acknowledgements travel.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AckPath {
    /// The switch of data to the same host.
    #[default]
    AsData,
    /// The packet switch.
    Packet,
    /// Circuits.
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
    /// Returns the times between which announced data may become ready to count in a demand that is read at `read`;
    /// `None` where announcements do not count.
    pub fn hints_within(&self, read: Time) -> Option<RangeInclusive<Time>> {
        match self.estimator {
            Estimator::Hints => Some(Time::ZERO..=Time::MAX),
            Estimator::TimedHints => {
                Some(read..=read.saturating_add(self.lead + self.week - Span::from_ps(1)))
            }
            _ => None,
        }
    }

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
