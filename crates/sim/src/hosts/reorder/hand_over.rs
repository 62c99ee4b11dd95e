//! The world's part in reorder buffers: pieces go into them, and what they release goes to the transport.

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{Packet, Wait};
use plimsoll_mechanisms::reorder_buffer::ReorderBuffer;
use plimsoll_units::Time;

use super::{EndBuffer, Piece};
use crate::hosts::connection::End;
use crate::hosts::wire::unwrap;
use crate::world::World;

impl World {
    /// The NIC hands over the packets of a piece: to the transport, or to a buffer if data before them is missing.
    pub(crate) fn on_piece(&mut self, now: Time, packets: Vec<Packet>) {
        let Some(first) = packets.first() else { return };
        let (number, end, is_data) = (first.flow, End::receiving(first), first.len > 0);
        let (Some(buffers), true) = (&mut self.hosts.reorder_buffers, is_data) else {
            return self.receive_piece(now, packets);
        };
        // A raw packet has no connection.
        let Some(connection) = self.hosts.connections.get_mut(number) else {
            return self.receive_piece(now, packets);
        };
        let received = connection.half(end).endpoint.received();
        let seq = unwrap(first.seq, received);
        let place = number * 2 + end as u32;
        if seq <= received && !buffers.ends.contains_key(&place) {
            return self.receive_piece(now, packets);
        }
        let bytes = packets.iter().map(|packet| u64::from(packet.len)).sum();
        let params = buffers.params;
        let empty = || EndBuffer { buffer: ReorderBuffer::new(&params), armed: Time::MAX };
        let buffer = &mut buffers.ends.entry(place).or_insert_with(empty).buffer;
        let mut released = Vec::new();
        buffer.on_data(now, received, seq, bytes, Piece { packets, since: now }, &mut released);
        self.hand_over(now, place, released);
    }

    /// The event of a buffer has come; its time may have moved on since.
    pub(crate) fn on_reorder_due(&mut self, now: Time, place: u32) {
        let Some(buffers) = &mut self.hosts.reorder_buffers else { return };
        let Some(of_end) = buffers.ends.get_mut(&place) else { return };
        if of_end.armed != now {
            return;
        }
        of_end.armed = Time::MAX;
        let mut released = Vec::new();
        of_end.buffer.poll(now, &mut released);
        self.hand_over(now, place, released);
    }

    /// Hands the transport what the buffer of `place` has released, and arms the buffer's timer, or removes a buffer
    /// whose end misses nothing.
    fn hand_over(&mut self, now: Time, place: u32, released: Vec<Piece>) {
        for Piece { mut packets, since } in released {
            packets.iter_mut().for_each(|packet| packet.add_wait(Wait::Nic, now - since));
            self.receive_piece(now, packets);
        }
        let Some(buffers) = &mut self.hosts.reorder_buffers else { return };
        let Some(of_end) = buffers.ends.get_mut(&place) else { return };
        let connection = self.hosts.connections.get_mut(place / 2);
        let received = connection.map(|open| open.half(End::from_bit(place)).endpoint.received());
        if received.is_none_or(|received| of_end.buffer.is_done_at(received)) {
            buffers.ends.remove(&place);
        } else if let Some(due) = of_end.buffer.next_due().filter(|due| *due < of_end.armed) {
            of_end.armed = due;
            let number = self.fabric.network().hosts() + place;
            self.fabric.schedule(due, Owner::new(OwnerKind::Receive, number));
        }
    }

    fn receive_piece(&mut self, now: Time, packets: Vec<Packet>) {
        if let Some((last, before)) = packets.split_last() {
            self.receive(now, last, before);
        }
        if let Some(offload) = &mut self.hosts.receive_offload {
            offload.lists.give_back(packets);
        }
    }
}
