//! [`AgentPlan`]: the sources that the agent drives, and when their run ends.

use plimsoll_circuits::ControlParams;
use plimsoll_fabric::Unbuildable;
use plimsoll_scenario::model::Model;
use plimsoll_traffic::record::WorkloadInfo;
use plimsoll_traffic::{Source, Traffic};
use plimsoll_units::{Streams, Time};

use crate::edge::frame::{CIRCUIT_ONLY, PACKET_ONLY};
use crate::read_outs::control;

/// The most connections of a source that are open at a time: each has two sockets.
pub(super) const CONNECTIONS_MAX: usize = 4_000;

/// The headers of Ethernet, IPv4 and UDP, in bytes.
const UDP_FRAME: u64 = 14 + 20 + 8;

/// The marks of a source's messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct DrivenSource {
    /// The number of the workload in the scenario.
    pub(crate) number: u16,
    /// The 802.1p priority of its messages.
    pub(crate) priority: u8,
    /// The DSCP of its packets. Where the scenario gives it none, the upper three bits are the priority, and the lower
    /// three name the switches of a hybrid network that may carry them.
    pub(crate) dscp: u8,
    /// The bytes of its single packets that are not payload: for packets whose size is that of the frame, the headers
    /// of Ethernet, IP and UDP; for others the scenario's header.
    pub(crate) packet_header: u64,
}

/// All traffic of an emulated run: the same sources that a simulated run has.
#[derive(Clone, Debug)]
pub(crate) struct AgentPlan {
    /// The workloads, by number.
    pub(crate) workloads: Vec<WorkloadInfo>,
    /// Their sources' marks, by number.
    pub(crate) driven: Vec<DrivenSource>,
    /// The number of connections that are opened before the workloads begin.
    pub(crate) kept_connections: usize,
    /// The latest end of the run, on the workloads' clock.
    pub(crate) horizon: Time,
    /// Whether some flows send for as long as the run lasts.
    pub(crate) endless: bool,
}

impl AgentPlan {
    /// Returns the plan of `model`, and its sources by number.
    ///
    /// # Errors
    /// Fails if a source cannot be built or needs too many connections.
    pub(crate) fn new(model: &Model) -> Result<(AgentPlan, Vec<Box<dyn Source>>), Unbuildable> {
        let traffic = Traffic::new(&model.traffic_spec(), &Streams::new(model.run.seed))?;
        let mut plan = AgentPlan {
            horizon: traffic.horizon(),
            endless: traffic.endless,
            workloads: traffic.infos,
            driven: Vec::new(),
            kept_connections: 0,
        };
        let control = control::control(model);
        for ((number, (name, workload)), source) in (0..).zip(&model.workload).zip(&traffic.sources) {
            let kept = source.kept_connections().len();
            if kept > CONNECTIONS_MAX {
                let problem =
                    format!("{kept} connections; at most {CONNECTIONS_MAX} of a workload are emulated");
                return Err(Unbuildable::new(format!("workload.{name}"), problem));
            }
            plan.kept_connections += kept;
            let of_frames = workload.params().sizes_are_of_frames();
            let priority = model.priority_of(name).unwrap_or(0) & 7;
            let of_priority = || priority << 3 | pool(control.as_ref(), name);
            plan.driven.push(DrivenSource {
                number,
                priority,
                dscp: model.dscp_of(name).unwrap_or_else(of_priority),
                packet_header: if of_frames { UDP_FRAME } else { model.transport_of(name).header.get() },
            });
        }
        Ok((plan, traffic.sources))
    }
}

/// Returns the lower bits of the DSCP of a workload, which say which switches of a hybrid network may carry it.
fn pool(control: Option<&ControlParams>, workload: &String) -> u8 {
    match control {
        Some(control) if control.packet_only.contains(workload) => PACKET_ONLY,
        Some(control) if control.circuit_only.contains(workload) => CIRCUIT_ONLY,
        _ => 0,
    }
}
