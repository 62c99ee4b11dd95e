//! [`Status`]: what an applied policy does now, described once, as text and (by serde) as JSON; `metrics.rs` has a third
//! form.

use std::fmt;

use plimsoll_units::{Bytes, Rate, Span};
use serde::Serialize;

use crate::names::{DeviceName, PolicyName};
use crate::policy::Side;

/// What a policy does.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Status {
    /// Its name.
    pub policy: PolicyName,
    /// The network namespace where it is applied, if that is not the one of who asks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Whether all its steps were begun; without, an apply was interrupted and wants a rollback.
    pub complete: bool,
    /// Whether it was confirmed, or never had to be.
    pub confirmed: bool,
    /// QJump's device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<DeviceName>,
    /// QJump's network epoch, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch_ns: Option<u64>,
    /// Whether QJump's limiter is at its device.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limiting: Option<bool>,
    /// QJump's levels, the lowest first.
    pub levels: Vec<LevelStatus>,
    /// Who has a level.
    pub assignments: Vec<AssignmentStatus>,
    /// Phantom queues.
    pub phantom_queues: Vec<PhantomQueueStatus>,
    /// HULL's pacer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacer: Option<PacerStatus>,
    /// DCTCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dctcp: Option<DctcpStatus>,
}

/// One level.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct LevelStatus {
    /// Its number.
    pub level: u8,
    /// Its budget, in bytes per epoch; none without limit.
    pub budget_bytes: Option<u64>,
    /// What that is at most, in bit/s.
    pub rate_bps: u64,
    /// Packets that left.
    pub passed_packets: u64,
    /// Their bytes.
    pub passed_bytes: u64,
    /// Packets beyond the budget.
    pub refused_packets: u64,
}

/// Who has a level.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct AssignmentStatus {
    /// A cgroup, a unit or a port.
    pub who: String,
    /// The level.
    pub level: u8,
    /// Whether it is given: a cgroup may be gone.
    pub attached: bool,
}

/// One phantom queue.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PhantomQueueStatus {
    /// Its device.
    pub device: DeviceName,
    /// Which packets of it.
    pub side: Side,
    /// Whether it is there.
    pub attached: bool,
    /// Its length now, in bytes.
    pub length_bytes: u64,
    /// The length above which it marks, in bytes.
    pub threshold_bytes: u64,
    /// Packets over the threshold that took the mark.
    pub marked_packets: u64,
    /// Packets over the threshold that cannot carry one.
    pub not_capable_packets: u64,
}

/// HULL's pacer.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PacerStatus {
    /// Its device.
    pub device: DeviceName,
    /// Whether both of its programs are there.
    pub attached: bool,
    /// The pacing rate at the last packet, in bit/s.
    pub rate_bps: u64,
    /// Packets that got a departure time.
    pub paced_packets: u64,
    /// Packets of connections that are not paced.
    pub bypassed_packets: u64,
    /// How long the paced ones were held in all, in ns.
    pub held_ns: u64,
    /// Acknowledgements with ECE.
    pub draws: u64,
    /// Those after which a connection is paced.
    pub associations: u64,
}

/// DCTCP over all its connections.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct DctcpStatus {
    /// Connections started.
    pub connections: u64,
    /// Windows after which alpha was updated.
    pub updates: u64,
    /// The last alpha, 0 to 1.
    pub last_alpha: f64,
    /// Windows cut because of marks.
    pub cuts: u64,
    /// Windows cut because of loss.
    pub losses: u64,
    /// Windows that the guard put back: more than none is suspect (docs/internals/bpf.md).
    pub guarded: u64,
}

/// In the manner of `tc -s`.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match (self.complete, self.confirmed) {
            (false, _) => "applied in part: roll it back",
            (true, false) => "applied, waits for confirmation",
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
            writeln!(f, " level {} budget {budget} rate {}", level.level, Rate::from_bps(level.rate_bps))?;
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
