//! Receiving NICs with coalescing: what they gather reaches the transport in batches.

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{Flags, HostId, Packet};
use plimsoll_units::Time;

use crate::world::World;

impl World {
    /// A packet has reached a NIC that coalesces.
    #[cold]
    pub(crate) fn on_nic(&mut self, now: Time, packet: &Packet) {
        if packet.flags.has(Flags::ECE) {
            self.on_ece(now, packet);
        }
        let host = packet.dst;
        let Some(offload) = &mut self.hosts.receive_offload else { return };
        let was_idle = offload.next_due(host).is_none();
        offload.on_packet(now, packet);
        match offload.next_due(host) {
            Some(due) if due <= now => self.on_receive_due(now, host),
            Some(due) if was_idle => self.fabric.schedule(due, Owner::new(OwnerKind::Receive, host.0)),
            _ => {}
        }
    }

    /// The NIC interrupts its host, if its batch is due. A batch that filled up early went without its event.
    #[cold]
    pub(crate) fn on_receive_due(&mut self, now: Time, host: HostId) {
        let Some(offload) = &mut self.hosts.receive_offload else { return };
        for piece in offload.take_pieces(now, host) {
            if let Some((last, before)) = piece.split_last() {
                self.receive(now, last, before);
            }
        }
    }
}
