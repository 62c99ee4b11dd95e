//! Receiving NICs that hold packets back: what coalescing gathers reaches the transport in batches, and a reorder
//! buffer behind it holds what is out of order.

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{Flags, HostId, Packet};
use plimsoll_traffic::workload_of_raw;
use plimsoll_units::Time;

use crate::hosts::stack::STACK_EVENTS;
use crate::world::World;

impl World {
    /// A packet has reached a host whose NIC, or whose reorder buffer, may hold it.
    #[cold]
    pub(crate) fn on_nic(&mut self, now: Time, packet: &Packet) {
        if packet.flags.has(Flags::ECE) {
            self.on_ece(now, packet);
        }
        let host = packet.dst;
        let Some(offload) = &mut self.hosts.receive_offload else {
            return self.on_piece(now, vec![*packet]);
        };
        if let Some(stacks) = &mut self.hosts.stacks
            && !stacks.has_room(host, offload.held(host))
        {
            return self.on_ring_drop(packet);
        }
        let was_idle = offload.next_due(host).is_none();
        offload.on_packet(now, packet);
        match offload.next_due(host) {
            Some(due) if due <= now => self.on_receive_due(now, host),
            Some(due) if was_idle => self.schedule_receive(due, host),
            _ => {}
        }
    }

    /// The event of a NIC has come, or that of a reorder buffer, whose numbers follow those of the hosts.
    #[cold]
    pub(crate) fn on_receive_event(&mut self, now: Time, number: u32) {
        if let Some(number) = number.checked_sub(STACK_EVENTS) {
            return self.on_stack_due(now, number);
        }
        match number.checked_sub(self.fabric.network().hosts()) {
            None => self.on_receive_due(now, HostId(number)),
            Some(place) => self.on_reorder_due(now, place),
        }
    }

    /// The NIC interrupts its host, if its batch is due. A batch that filled up early went without its event.
    #[cold]
    pub(crate) fn on_receive_due(&mut self, now: Time, host: HostId) {
        let Some(offload) = &mut self.hosts.receive_offload else { return };
        if self.hosts.stacks.is_some() {
            return if offload.next_due(host).is_some_and(|due| due <= now) {
                self.interrupt(now, host)
            };
        }
        for piece in offload.take_pieces(now, host) {
            self.on_piece(now, piece.packets);
        }
    }

    /// Has the NIC of `host` look at `due` whether it interrupts.
    pub(crate) fn schedule_receive(&mut self, due: Time, host: HostId) {
        self.fabric.schedule(due, Owner::new(OwnerKind::Receive, host.0));
    }

    /// The ring of a NIC has no room for a packet: TCP misses it, and a workload learns of it.
    fn on_ring_drop(&mut self, packet: &Packet) {
        let hooks = self.fabric.hooks_mut();
        hooks.lost.extend(workload_of_raw(packet.flow));
        hooks.has_aftermath |= !hooks.lost.is_empty();
    }
}
