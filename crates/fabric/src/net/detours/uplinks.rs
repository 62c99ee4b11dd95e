//! [`UplinkDetours`]: the uplinks by which packets leave and reach the racks of a hybrid network, some of whose links
//! are dead.
//!
//! ```text
//! ToR of the source ── leaving: an uplink ──> packet network ── towards: an uplink of the other rack ──> its ToR
//! ```
//!
//! A host keeps its own uplink while that works, for each direction apart; then another one of its rack takes over,
//! which the flow's hash chooses. A switch farther on reaches at most what the switches before it reach, so that a
//! packet goes towards another uplink only where fewer are left, and circles never.

use std::collections::BTreeSet;

use super::Detours;
use crate::net::topology::{Choices, HybridHops, choose};
use crate::net::{HostId, Network, Packet, PortId};

/// The next hops within the packet network, whose hosts are the uplinks, and the uplinks without their link upwards.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct UplinkDetours {
    within: Detours,
    dead: BTreeSet<HostId>,
}

impl UplinkDetours {
    /// Computes the detours of a network with `hops`, in which the ports `dead` do not send.
    pub(super) fn around(hops: &HybridHops, dead: &BTreeSet<PortId>) -> UplinkDetours {
        let dead: BTreeSet<PortId> = dead.iter().filter_map(|port| hops.in_packet_network(*port)).collect();
        let network = hops.packet_network();
        let uplinks = dead.iter().filter(|port| port.0 < network.hosts());
        UplinkDetours {
            within: Detours::around(network, &dead),
            dead: uplinks.map(|port| HostId(port.0)).collect(),
        }
    }

    /// Returns the uplink by which a ToR sends `packet` to another rack; `None` if none leads there.
    pub(crate) fn leaving(
        &self,
        network: &Network,
        hops: &HybridHops,
        switch: u32,
        packet: &Packet,
    ) -> Option<HostId> {
        let leads_there = |uplink: &HostId| {
            let first = hops.packet_network().switch_of(*uplink);
            let reaches = |first| hops.uplinks_of_rack(packet.dst.0).any(|to| self.reaches(hops, first, to));
            !self.dead.contains(uplink) && first.is_some_and(reaches)
        };
        let live = hops.uplinks_of_rack(packet.src.0).filter(leads_there);
        one_of(network, live.collect(), hops.uplink_of(packet.src.0), switch, packet)
    }

    /// Returns the uplink of the destination's rack towards which the switch `within` the packet network sends
    /// `packet`; `None` if none can be reached.
    pub(crate) fn towards(
        &self,
        network: &Network,
        hops: &HybridHops,
        within: u32,
        packet: &Packet,
    ) -> Option<HostId> {
        let live = hops.uplinks_of_rack(packet.dst.0).filter(|uplink| self.reaches(hops, within, *uplink));
        // All switches of the packet network choose alike.
        let switch = hops.first_packet_switch();
        one_of(network, live.collect(), hops.uplink_of(packet.dst.0), switch, packet)
    }

    /// Returns the ports of the packet network as [`Detours::next_hops`] does.
    pub(crate) fn next_hops(&self, hops: &HybridHops, within: u32, uplink: HostId) -> Option<&[PortId]> {
        self.within.next_hops(hops.packet_network(), within, uplink)
    }

    fn reaches(&self, hops: &HybridHops, within: u32, uplink: HostId) -> bool {
        self.next_hops(hops, within, uplink).is_none_or(|ports| !ports.is_empty())
    }
}

/// Returns the host's `own` uplink if it is `live`, and otherwise the one that the flow's hash at `switch` chooses.
fn one_of(network: &Network, live: Vec<HostId>, own: HostId, switch: u32, packet: &Packet) -> Option<HostId> {
    if live.contains(&own) {
        return Some(own);
    }
    let count = live.len() as u32;
    live.get(choose(network.flow_hash(packet, switch, Choices::of_first_tier(count)), count) as usize)
        .copied()
}
