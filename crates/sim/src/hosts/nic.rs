//! Receiving NICs that hold packets back: what coalescing gathers reaches the transport in batches, and a reorder
//! buffer behind it holds packets that are out of order.

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{Flags, HostId, Network, Packet};
use plimsoll_traffic::ConnectionEnd as End;
use plimsoll_units::Time;

use super::Hosts;
use super::agenda::Step;
use super::credit::CREDIT_EVENTS;
use super::homa::HOMA_EVENTS;
use super::stack::STACK_EVENTS;
use crate::hosts::datagram_workload;
use crate::sim_hooks::SimFabric;

impl Hosts {
    /// A packet has reached a host whose NIC, or whose reorder buffer, may hold it.
    #[cold]
    pub(super) fn on_nic(&mut self, now: Time, fabric: &mut SimFabric, packet: &Packet) {
        if packet.flags.has(Flags::ECE) {
            self.on_ece(now, fabric, packet);
        }
        let host = packet.dst;
        let Some(offload) = &mut self.receive_offload else {
            return self.on_piece(now, fabric, vec![*packet]);
        };
        if let Some(stacks) = &mut self.stacks
            && !stacks.has_room(host, offload.held(host))
        {
            return on_ring_drop(fabric, packet);
        }
        let was_idle = offload.next_due(host).is_none();
        offload.on_packet(now, packet);
        match offload.next_due(host) {
            Some(due) if due <= now => self.on_receive_due(now, fabric, host),
            Some(due) if was_idle => schedule_receive(fabric, due, host),
            _ => {}
        }
    }

    /// A packet with ECE has reached its host: the pacer may associate the connection, if that is still open.
    #[cold]
    pub(super) fn on_ece(&mut self, now: Time, fabric: &mut SimFabric, packet: &Packet) {
        let is_open = self.connections.get(packet.flow).is_some();
        if is_open || self.multipath.as_ref().is_some_and(|open| open.has_flow(packet.flow)) {
            fabric.on_ece(now, packet);
        }
    }

    /// The event of a NIC has come, or that of a reorder buffer, whose numbers follow the hosts' numbers.
    #[cold]
    pub(super) fn on_receive_event(&mut self, now: Time, fabric: &mut SimFabric, number: u32) {
        if let Some(host) = number.checked_sub(HOMA_EVENTS) {
            return self.on_grants_due(now, fabric, HostId(host));
        }
        if let Some(host) = number.checked_sub(CREDIT_EVENTS) {
            return self.on_credit_due(now, fabric, HostId(host));
        }
        if let Some(number) = number.checked_sub(STACK_EVENTS) {
            return self.on_stack_due(now, fabric, number);
        }
        match number.checked_sub(fabric.network().hosts()) {
            None => self.on_receive_due(now, fabric, HostId(number)),
            Some(place) => self.on_reorder_due(now, place),
        }
    }

    /// Returns the host, or its NIC, that handles the event of an endpoint or a receiver, unless it is one of stacks or
    /// MPTCP; the first host, where the connection is closed.
    pub(crate) fn host_of(&self, owner: Owner, network: &Network) -> HostId {
        let number = owner.number();
        let place = if owner.kind() == OwnerKind::Endpoint {
            number
        } else if let Some(host) = number.checked_sub(HOMA_EVENTS).or(number.checked_sub(CREDIT_EVENTS)) {
            return HostId(host);
        } else if let Some(place) = number.checked_sub(network.hosts()) {
            place
        } else {
            return HostId(number);
        };
        let (number, end) = (place / 2, End::from_bit(place));
        let host = self.connections.get(number).map(|open| open.host(end));
        host.or_else(|| self.datagrams.nic(number, end)).unwrap_or(HostId(0))
    }

    /// The NIC interrupts its host, if its batch is due. A batch that filled up early went without its event.
    #[cold]
    fn on_receive_due(&mut self, now: Time, fabric: &mut SimFabric, host: HostId) {
        let Some(offload) = &mut self.receive_offload else { return };
        if let Some(stacks) = &mut self.stacks {
            if offload.next_due(host).is_some_and(|due| due <= now) {
                stacks.interrupt(now, fabric, host);
            }
            return;
        }
        let pieces = offload.take_pieces(now, host).into_iter().rev();
        self.agenda.extend(pieces.map(|piece| Step::Piece(piece.packets)));
    }
}

/// Has the NIC of `host` look at `due` whether it interrupts.
pub(super) fn schedule_receive(fabric: &mut SimFabric, due: Time, host: HostId) {
    fabric.schedule(due, Owner::new(OwnerKind::Receive, host.0));
}

/// The ring of a NIC has no room for a packet: TCP misses it and its telemetry, and a workload learns of it.
fn on_ring_drop(fabric: &mut SimFabric, packet: &Packet) {
    fabric.forget_returned_stamps(packet);
    let hooks = fabric.hooks_mut();
    hooks.lost.extend(datagram_workload(packet.flow));
    hooks.has_aftermath |= !hooks.lost.is_empty();
}
