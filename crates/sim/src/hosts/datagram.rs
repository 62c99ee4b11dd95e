//! Datagrams: messages of one packet, which no transport acknowledges or repairs.
//!
//! ```text
//! workload ──Datagram──> send_datagram ──> limiters ──> stack ──> NIC
//! workload <──Arrival── arrival_of <── agenda <── leave_datagram <── packet of flow u32::MAX - workload
//! ```
//!
//! A packet carries the tag in the fields of its sequence and acknowledgement numbers.

use plimsoll_fabric::net::{Network, Packet};
use plimsoll_traffic::{Arrival, ConnectionEnd as End, Datagram, MessageWaits};
use plimsoll_units::{Time, mix64};

use super::Hosts;
use super::agenda::Step;
use super::connection::transit_of;
use super::flow_number::of_datagrams;
use crate::sim_hooks::SimFabric;

impl Hosts {
    /// Sends a datagram through the limiters of its host.
    pub(super) fn send_datagram(
        &mut self,
        now: Time,
        fabric: &mut SimFabric,
        workload: u16,
        datagram: Datagram,
    ) {
        let Datagram { from, to, size, tag } = datagram;
        let flow = mix64(u64::from(from.0) << 32 | u64::from(to.0)) as u32;
        let [src, dst] = self.nics_of(fabric.network(), [from, to], flow);
        let mut packet = Packet::new(src, dst, of_datagrams(workload), size);
        (packet.len, packet.seq, packet.ack) = (size, (tag >> 32) as u32, tag as u32);
        if let Some(classes) = &mut self.classes {
            let priority = classes.priority(workload, u64::from(size));
            let path = classes.path_class(workload, End::Client);
            classes.label(&mut packet, priority, path, || u64::from(size));
            if !classes.passes(now, &packet, workload, None) {
                return fabric.refuse(now, &packet);
            }
        }
        match &mut self.stacks {
            Some(stacks) => stacks.on_datagram(fabric, now, packet),
            None => fabric.send_unpaced(now, packet),
        }
    }

    /// Leaves a datagram that has reached its host for its workload.
    #[inline(never)] // it takes the packet by reference, so that `receive` copies none
    pub(super) fn leave_datagram(&mut self, fabric: &mut SimFabric, workload: u16, packet: &Packet) {
        self.leave(fabric, Step::Datagram(workload, *packet));
    }
}

/// Returns the arrival of a datagram at `now`.
pub(super) fn arrival_of(network: &Network, now: Time, packet: &Packet) -> Arrival {
    let split = transit_of(network, packet);
    Arrival {
        now,
        tag: u64::from(packet.seq) << 32 | u64::from(packet.ack),
        from: network.nics().host_of(packet.src),
        bytes: u64::from(packet.size),
        split,
        ideal: split.serialisation + split.propagation,
        waits: MessageWaits::default(),
    }
}
