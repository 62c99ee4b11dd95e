//! [`PriorityTotals`]: marks, cuts and losses by the priority of the packets, at ports that treat priorities
//! differently.

use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

use crate::net::topology::Link;
use crate::net::{Packet, PortId};
use crate::spec::FabricSpec;

/// Counters of the packets of one priority at ports with classes or trimming. A trimmed packet has the header's
/// priority from then on, and counts as trimmed at the priority that it had before.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PriorityCounters {
    /// Packets that the port marked CE.
    pub marked: u64,
    /// Packets that lost their payload.
    pub trimmed: u64,
    /// The bytes of payload that these lost.
    pub trimmed_bytes: u64,
    /// Trimmed packets that were sent back to their senders.
    pub bounced: u64,
    /// Packets that the port dropped, for any reason.
    pub dropped: u64,
    /// The bytes of these on the wire.
    pub dropped_bytes: u64,
}

/// The counters of all eight priorities.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct PriorityTotals([PriorityCounters; 8]);

impl PriorityTotals {
    /// Returns whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        *self == PriorityTotals::default()
    }

    /// Returns the counters of each priority, from 0 upwards.
    pub fn iter(&self) -> impl Iterator<Item = &PriorityCounters> {
        self.0.iter()
    }
}

impl AddAssign for PriorityTotals {
    fn add_assign(&mut self, other: PriorityTotals) {
        for (own, other) in self.0.iter_mut().zip(other.0) {
            own.marked += other.marked;
            own.trimmed += other.trimmed;
            own.trimmed_bytes += other.trimmed_bytes;
            own.bounced += other.bounced;
            own.dropped += other.dropped;
            own.dropped_bytes += other.dropped_bytes;
        }
    }
}

/// The ports whose packets are counted by priority: those with classes or trimming.
#[derive(Debug)]
pub(crate) struct PriorityPorts(Vec<bool>);

impl PriorityPorts {
    /// Finds the ports of `spec` that have classes or trim.
    pub(crate) fn new(spec: &FabricSpec) -> PriorityPorts {
        let has = |link: &Link| {
            let mechanisms = &spec.port(link).mechanisms;
            mechanisms.classes.is_some() || mechanisms.trim.is_some()
        };
        let ports: Vec<bool> = spec.network.links().iter().map(has).collect();
        // Empty in most runs.
        PriorityPorts(if ports.contains(&true) { ports } else { Vec::new() })
    }

    /// Returns the counters of the priority of `packet`, if `port` counts by priority.
    #[inline]
    pub(crate) fn counters<'a>(
        &self,
        port: PortId,
        packet: &Packet,
        totals: &'a mut PriorityTotals,
    ) -> Option<&'a mut PriorityCounters> {
        let counts = self.0.get(port.0 as usize).copied().unwrap_or(false);
        counts.then(|| &mut totals.0[usize::from(packet.priority & 7)])
    }
}
