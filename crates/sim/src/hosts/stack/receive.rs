//! The way up: the host takes what its NIC holds, TCP gets it segment by segment, and the application copies it.

use plimsoll_fabric::net::{HostId, Packet, Wait};
use plimsoll_traffic::workload_of_raw;
use plimsoll_units::{Bytes, Span, Time};

use super::{Delivery, HostStacks, Work, place_of};
use crate::hosts::connection::End;
use crate::hosts::receive_offload::TakenPiece;
use crate::world::World;

impl HostStacks {
    /// Returns whether the NIC of `host`, which holds `held` packets, has room for one more. If not, that is lost.
    pub(crate) fn has_room(&mut self, host: HostId, held: usize) -> bool {
        let has_room = held < self.costs.ring as usize;
        self.hosts[host.0 as usize].totals.ring_drops += u64::from(!has_room);
        has_room
    }

    /// Returns whether the NIC may interrupt `host`, which is otherwise still taking packets; from now on it is.
    fn begins_polling(&mut self, host: HostId) -> bool {
        !std::mem::replace(&mut self.hosts[host.0 as usize].polling, true)
    }
}

impl World {
    /// The NIC of `host` has packets that are due.
    pub(crate) fn interrupt(&mut self, now: Time, host: HostId) {
        let Some(stacks) = &mut self.hosts.stacks else { return };
        if stacks.begins_polling(host) {
            let cost = stacks.costs.interrupt;
            self.add_work(now, host, 0, cost, Work::Interrupt);
        }
    }

    /// The host takes packets from its NIC, as the frames that LRO made, of which GRO makes segments.
    pub(super) fn take_received(&mut self, now: Time, host: HostId) {
        let hosts = &mut self.hosts;
        let (Some(stacks), Some(nic)) = (&mut hosts.stacks, &mut hosts.receive_offload) else { return };
        let (costs, lro) = (stacks.costs, stacks.offloads.lro);
        // A frame that LRO has made counts once, so all packets are within the budget.
        let budget = if lro > Bytes::ZERO { usize::MAX } else { costs.budget as usize };
        let (taken, pieces) = nic.take(now, host, budget);
        let all = taken < budget;
        stacks.hosts[host.0 as usize].totals.frames_received +=
            pieces.iter().map(|piece| u64::from(piece.frames)).sum::<u64>();
        for TakenPiece { frames, packets } in pieces {
            let has_data = packets.iter().any(|packet| packet.len > 0);
            let of_segment = if has_data { costs.receive.segment } else { Span::ZERO };
            let cost = costs.receive.packet * u64::from(frames) + of_segment;
            self.add_work(now, host, 0, cost, Work::Receive(packets, now));
        }
        self.add_work(now, host, 0, Span::ZERO, Work::Taken { all });
    }

    /// The stack has received all that it took, and interrupts are on again unless there was more.
    pub(super) fn on_taken(&mut self, now: Time, host: HostId, all: bool) {
        let hosts = &mut self.hosts;
        let (Some(stacks), Some(nic)) = (&mut hosts.stacks, &hosts.receive_offload) else { return };
        let due = nic.next_due(host);
        if !all && due.is_some() {
            return self.add_work(now, host, 0, Span::ZERO, Work::Interrupt);
        }
        stacks.hosts[host.0 as usize].polling = false;
        match due {
            Some(due) if due <= now => self.interrupt(now, host),
            Some(due) => self.schedule_receive(due, host),
            None => {}
        }
    }

    /// TCP gets the packets of a segment, and the application what TCP has put in order.
    pub(super) fn receive_segment(&mut self, now: Time, mut packets: Vec<Packet>, taken: Time) {
        packets.iter_mut().for_each(|packet| packet.add_wait(Wait::Nic, now - taken));
        let Some(first) = packets.first().copied() else { return };
        self.on_piece(now, packets);
        if workload_of_raw(first.flow).is_none() {
            let end = End::receiving(&first);
            self.copy_received(now, first.flow, end);
            self.write_on(now, first.flow, end);
        }
    }

    /// The application copies what the end has received in order.
    fn copy_received(&mut self, now: Time, number: u32, end: End) {
        let Some(connection) = self.hosts.connections.get_mut(number) else { return };
        let (host, received) = (connection.host(end), connection.half(end).endpoint.received());
        self.copy(now, host, number, end, received, Work::Copy);
    }

    fn copy(&mut self, now: Time, host: HostId, number: u32, end: End, received: u64, work: Work) {
        let Some(stacks) = &mut self.hosts.stacks else { return };
        let of_end = stacks.of_end(place_of(number, end));
        let bytes = received - std::mem::replace(&mut of_end.copied, received);
        let cost = stacks.costs.receive.byte * bytes;
        if bytes > 0 || matches!(work, Work::Deliver(_)) {
            let core = stacks.application_core();
            self.add_work(now, host, core, cost, work);
        }
    }

    /// Has the application copy the messages that `packet` completes before it receives them. Returns false where
    /// copying takes no time.
    pub(crate) fn defers_delivery(
        &mut self,
        now: Time,
        number: u32,
        end: End,
        received: u64,
        packet: &Packet,
        before: &[Packet],
    ) -> bool {
        let Some(stacks) = &self.hosts.stacks else { return false };
        if stacks.costs.receive.byte.is_zero() {
            return false;
        }
        let (packet, before) = (*packet, before.to_vec());
        let delivery = Delivery { number, end, received, packet, before, since: now };
        self.copy(now, packet.dst, number, end, received, Work::Deliver(Box::new(delivery)));
        true
    }

    /// The application has copied messages to their last byte.
    pub(super) fn deliver(&mut self, now: Time, delivery: Delivery) {
        let Delivery { number, end, received, mut packet, mut before, since } = delivery;
        for packet in before.iter_mut().chain([&mut packet]) {
            packet.add_wait(Wait::Nic, now - since);
        }
        self.on_delivered(now, number, end, received, &packet, &before);
    }
}
