//! [`PolicyStatus`] is the present state of an applied policy, which is printed as text and (by serde) as JSON;
//! `metrics.rs` prints it as OpenMetrics.

use std::fmt;

use plimsoll_units::{Bytes, Rate, Span};
use serde::Serialize;

use crate::names::{DeviceName, MacAddress, PolicyName};
use crate::policy::DeviceSide;

/// The present state of an applied policy.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PolicyStatus {
    /// The name of the policy.
    pub policy: PolicyName,
    /// The network namespace in which it is applied, if that is not the caller's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Whether all its steps have begun; if not, an apply was interrupted and should be rolled back.
    pub complete: bool,
    /// Whether it was confirmed, or needs no confirmation.
    pub confirmed: bool,
    /// The device of QJump's limiter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceName>,
    /// QJump's network epoch, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch_ns: Option<u64>,
    /// Whether QJump's limiter is attached to its device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limiting: Option<bool>,
    /// QJump's levels, in ascending order: the host's, then those of each guest.
    pub levels: Vec<LevelStatus>,
    /// The members of the levels.
    pub assignments: Vec<AssignmentStatus>,
    /// The state of each phantom queue.
    pub phantom_queues: Vec<PhantomQueueStatus>,
    /// The state of HULL's pacer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacer: Option<PacerStatus>,
    /// The state of DCTCP on the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dctcp: Option<DctcpStatus>,
}

/// The state of one level.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LevelStatus {
    /// The guest whose bucket it is; none for the host itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guest: Option<MacAddress>,
    /// The number of the level.
    pub level: u8,
    /// The level's budget in bytes per epoch; none without limit.
    pub budget_bytes: Option<u64>,
    /// The rate of that budget, in bit/s.
    pub rate_bps: u64,
    /// The packets that left.
    pub passed_packets: u64,
    /// The bytes of these packets.
    pub passed_bytes: u64,
    /// The packets beyond the budget.
    pub refused_packets: u64,
}

/// The state of a member of a level.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AssignmentStatus {
    /// The member: a cgroup, a unit or a port.
    pub who: String,
    /// The level that the member is assigned to.
    pub level: u8,
    /// Whether the level is attached; a cgroup may be gone.
    pub attached: bool,
}

/// The state of one phantom queue.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PhantomQueueStatus {
    /// The device whose packets it counts.
    pub device: DeviceName,
    /// The direction of these packets.
    pub side: DeviceSide,
    /// Whether the phantom queue is attached.
    pub attached: bool,
    /// Its present length, in bytes.
    pub length_bytes: u64,
    /// The length above which it marks, in bytes.
    pub threshold_bytes: u64,
    /// The packets over the threshold that were marked.
    pub marked_packets: u64,
    /// The packets over the threshold that cannot carry a mark.
    pub not_capable_packets: u64,
}

/// The state of HULL's pacer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PacerStatus {
    /// The device whose packets it paces.
    pub device: DeviceName,
    /// Whether both of its programs are attached.
    pub attached: bool,
    /// The pacing rate at the last packet, in bit/s.
    pub rate_bps: u64,
    /// The packets that got a departure time.
    pub paced_packets: u64,
    /// The packets of connections that are not paced.
    pub bypassed_packets: u64,
    /// The total delay of the paced packets, in ns.
    pub held_ns: u64,
    /// The acknowledgements with ECE.
    pub draws: u64,
    /// The acknowledgements after which a connection is paced.
    pub associations: u64,
}

/// The counts of DCTCP over all its connections.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DctcpStatus {
    /// The number of connections started.
    pub connections: u64,
    /// The number of windows after which alpha was updated.
    pub updates: u64,
    /// The latest alpha, 0 to 1.
    pub last_alpha: f64,
    /// The number of windows cut because of marks.
    pub cuts: u64,
    /// The number of windows cut because of loss.
    pub losses: u64,
    /// The number of windows that the guard restored; a run with any is suspect (docs/internals/bpf.md).
    pub guarded: u64,
}

/// Prints the state in the style of `tc -s`.
impl fmt::Display for PolicyStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match (self.complete, self.confirmed) {
            (false, _) => "applied in part: roll it back",
            (true, false) => "applied, not yet confirmed",
            (true, true) => "applied",
        };
        let elsewhere = self.network.as_ref().map(|way| format!(", in the network namespace {way}"));
        writeln!(f, "policy {}: {state}{}", self.policy, elsewhere.unwrap_or_default())?;
        if let (Some(device), Some(epoch)) = (&self.device, self.epoch_ns) {
            let gone = if self.limiting == Some(false) { " (gone)" } else { "" };
            writeln!(f, "qjump dev {device} egress epoch {}{gone}", Span::from_ps(epoch * PS_PER_NS))?;
        }
        for level in &self.levels {
            let budget =
                level.budget_bytes.map_or_else(|| "any".to_owned(), |bytes| Bytes::new(bytes).to_string());
            let guest = level.guest.as_ref().map_or_else(String::new, |guest| format!(" guest {guest}"));
            let rate = Rate::from_bps(level.rate_bps);
            writeln!(f, "{guest} level {} budget {budget} rate {rate}", level.level)?;
            let LevelStatus { passed_bytes, passed_packets, refused_packets, .. } = level;
            writeln!(f, "  Sent {passed_bytes} bytes {passed_packets} pkt (refused {refused_packets})")?;
        }
        for AssignmentStatus { who, level, attached } in &self.assignments {
            writeln!(f, " {who} level {level}{}", if *attached { "" } else { " (gone)" })?;
        }
        for queue in &self.phantom_queues {
            let gone = if queue.attached { "" } else { " (gone)" };
            writeln!(f, "phantom-queue dev {} {}{gone}", queue.device, queue.side.name())?;
            let PhantomQueueStatus {
                length_bytes, threshold_bytes, marked_packets, not_capable_packets, ..
            } = queue;
            writeln!(
                f,
                "  length {length_bytes}b threshold {threshold_bytes}b marked {marked_packets} not-capable \
                 {not_capable_packets}"
            )?;
        }
        if let Some(pacer) = &self.pacer {
            let PacerStatus { paced_packets, bypassed_packets, held_ns, draws, associations, .. } = pacer;
            let gone = if pacer.attached { "" } else { " (gone)" };
            writeln!(f, "pacer dev {} rate {}{gone}", pacer.device, Rate::from_bps(pacer.rate_bps))?;
            let mean = Span::from_ps(held_ns.saturating_mul(PS_PER_NS) / (*paced_packets).max(1));
            writeln!(
                f,
                "  paced {paced_packets} pkt (held {mean} on average) bypassed {bypassed_packets} pkt"
            )?;
            writeln!(f, "  ece {draws} associations {associations}")?;
        }
        if let Some(dctcp) = &self.dctcp {
            let DctcpStatus { connections, updates, last_alpha, cuts, losses, guarded } = dctcp;
            writeln!(f, "dctcp connections {connections} updates {updates} last-alpha {last_alpha:.4}")?;
            writeln!(f, "  cuts {cuts} losses {losses} guarded {guarded}")?;
        }
        Ok(())
    }
}

const PS_PER_NS: u64 = 1_000;
