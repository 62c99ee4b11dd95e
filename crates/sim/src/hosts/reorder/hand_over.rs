//! Pieces go into reorder buffers, and what these release goes to the transport.

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{Packet, WaitPlace};
use plimsoll_mechanisms::reorder_buffer::ReorderBuffer;
use plimsoll_traffic::ConnectionEnd as End;
use plimsoll_units::Time;

use super::{EndBuffer, ReorderedPiece};
use crate::hosts::Hosts;
use crate::hosts::agenda::Step;
use crate::sim_hooks::SimFabric;
use plimsoll_mechanisms::transports::nearest;

impl Hosts {
    /// The NIC hands over the packets of a piece: to the transport, or to a buffer if data before them is missing.
    pub(in crate::hosts) fn on_piece(&mut self, now: Time, fabric: &mut SimFabric, packets: Vec<Packet>) {
        let Some(first) = packets.first() else { return };
        let (number, end, is_data) = (first.flow, End::receiving(first), first.len > 0);
        let (Some(buffers), true) = (&mut self.reorder_buffers, is_data) else {
            return self.receive_piece(now, fabric, packets);
        };
        // A raw packet has no connection.
        let Some(connection) = self.connections.get_mut(number) else {
            return self.receive_piece(now, fabric, packets);
        };
        let received = connection.half(end).endpoint.received();
        let seq = nearest::<32>(first.seq.into(), received);
        let place = number * 2 + end as u32;
        if seq <= received && !buffers.ends.contains_key(&place) {
            return self.receive_piece(now, fabric, packets);
        }
        let bytes = packets.iter().map(|packet| u64::from(packet.len)).sum();
        let params = buffers.params;
        let empty = || EndBuffer { buffer: ReorderBuffer::new(&params), armed: Time::MAX };
        let buffer = &mut buffers.ends.entry(place).or_insert_with(empty).buffer;
        let mut released = Vec::new();
        buffer.on_data(now, received, seq, bytes, ReorderedPiece { packets, since: now }, &mut released);
        self.hand_over(now, place, released);
    }

    /// The event of a buffer has come; its time may have moved on since.
    pub(in crate::hosts) fn on_reorder_due(&mut self, now: Time, place: u32) {
        let Some(buffers) = &mut self.reorder_buffers else { return };
        let Some(of_end) = buffers.ends.get_mut(&place) else { return };
        if of_end.armed != now {
            return;
        }
        of_end.armed = Time::MAX;
        let mut released = Vec::new();
        of_end.buffer.poll(now, &mut released);
        self.hand_over(now, place, released);
    }

    /// Hands the released packets of the buffer of `place` to the transport, piece by piece.
    fn hand_over(&mut self, now: Time, place: u32, released: Vec<ReorderedPiece>) {
        self.agenda.push(Step::Released(place));
        for ReorderedPiece { mut packets, since } in released.into_iter().rev() {
            packets.iter_mut().for_each(|packet| packet.add_wait(WaitPlace::Nic, now - since));
            self.agenda.push(Step::Receive(packets));
        }
    }

    /// The transport has all released packets of the buffer of `place`: arms the buffer's timer, or removes a
    /// buffer whose end misses nothing.
    pub(in crate::hosts) fn on_released(&mut self, fabric: &mut SimFabric, place: u32) {
        let Some(buffers) = &mut self.reorder_buffers else { return };
        let Some(of_end) = buffers.ends.get_mut(&place) else { return };
        let connection = self.connections.get_mut(place / 2);
        let received = connection.map(|open| open.half(End::from_bit(place)).endpoint.received());
        if received.is_none_or(|received| of_end.buffer.is_done_at(received)) {
            buffers.ends.remove(&place);
        } else if let Some(due) = of_end.buffer.next_due().filter(|due| *due < of_end.armed) {
            of_end.armed = due;
            let number = fabric.network().hosts() + place;
            fabric.schedule(due, Owner::new(OwnerKind::Receive, number));
        }
    }

    /// The transport gets the packets of a piece.
    pub(in crate::hosts) fn receive_piece(
        &mut self,
        now: Time,
        fabric: &mut SimFabric,
        packets: Vec<Packet>,
    ) {
        if let Some((last, before)) = packets.split_last() {
            self.receive(now, fabric, last, before);
        }
        if let Some(offload) = &mut self.receive_offload {
            offload.lists.give_back(packets);
        }
    }
}
