//! The way down: TCP's packets become pieces, the processor hands pieces to the NIC, and its queues send them in turn.

use plimsoll_fabric::net::{Flags, HostId, Packet, WaitPlace};
use plimsoll_units::{Bytes, Span, Time};

use super::{
    CoreWork, HostStack, HostStacks, StackOfEnd, StackPiece, TRANSMIT, owner_of, owner_of_pieces, place_of,
    stack_of,
};
use crate::hosts::Hosts;
use crate::hosts::connection::Half;
use crate::hosts::datagram_workload;
use crate::sim_hooks::SimFabric;
use plimsoll_traffic::ConnectionEnd as End;

impl HostStacks {
    /// Returns whether an end of a connection has sent as much on this event as it may, or has as much between TCP and
    /// the link. TCP then waits for the next event, or until some has left; acknowledgements, and the rest of a piece,
    /// do not wait.
    pub(in crate::hosts) fn holds_back(&mut self, now: Time, number: u32, end: End, half: &Half) -> bool {
        let (limit, max_burst) = (self.offloads.output_limit, self.offloads.max_burst);
        if max_burst > 0 && !half.endpoint.owes_ack() {
            let of_end = self.of_end(place_of(number, end));
            if of_end.called == Some(now) && of_end.sent_in_call >= max_burst {
                return true;
            }
        }
        if limit == Bytes::ZERO || half.endpoint.owes_ack() || half.endpoint.sent() < half.piece_end {
            return false;
        }
        let of_end = self.of_end(place_of(number, end));
        of_end.waits = of_end.below_tcp >= limit.get();
        of_end.waits
    }

    /// TCP sends a packet of a piece that ends at the stream offset `piece_end`.
    pub(in crate::hosts) fn on_packet(
        &mut self,
        fabric: &mut SimFabric,
        now: Time,
        packet: Packet,
        end: End,
        piece_end: u64,
    ) {
        let has_pieces = self.offloads.segmentation > Bytes::ZERO;
        let place = place_of(packet.flow, end);
        let of_end = stack_of(&mut self.ends, place);
        let mut packets = Vec::new();
        if packet.len > 0 {
            of_end.below_tcp += u64::from(packet.size);
            if of_end.called != Some(now) {
                (of_end.called, of_end.sent_in_call, of_end.owes_call) = (Some(now), 0, true);
            }
            of_end.sent_in_call += 1;
            let ends_at = packet.seq.wrapping_add(u32::from(packet.len));
            let is_new = !packet.flags.has(Flags::RETRANSMISSION);
            if has_pieces && is_new {
                let begins = of_end.open.is_empty();
                if begins {
                    of_end.open = self.lists.take();
                }
                of_end.open.push(packet);
                // Sequence numbers have 32 bits; a packet that passes the piece's end completes it too.
                if ends_at.wrapping_sub(piece_end as u32) > u32::MAX / 2 {
                    if begins {
                        self.end_piece_at(fabric, now, packet.src, place);
                    }
                    return;
                }
                packets = std::mem::take(&mut of_end.open);
            }
        }
        if packets.is_empty() {
            packets = self.lists.take();
            packets.push(packet);
        }
        let is_call = packet.len > 0 && std::mem::take(&mut of_end.owes_call);
        let call = if is_call { self.costs.send_call } else { Span::ZERO };
        self.on_piece(fabric, packet.src, StackPiece { packets, since: now, place: Some(place) }, call);
    }

    /// A piece that TCP does not complete at this instant ends with it: Nagle's algorithm, or a limiter, may keep the
    /// rest.
    fn end_piece_at(&mut self, fabric: &mut SimFabric, now: Time, host: HostId, place: u32) {
        let began = &mut self.hosts[host.0 as usize].began;
        if began.is_empty() {
            fabric.schedule(now, owner_of_pieces(host));
        }
        began.push(place);
    }

    /// A workload sends a datagram.
    pub(in crate::hosts) fn on_datagram(&mut self, fabric: &mut SimFabric, now: Time, packet: Packet) {
        let mut packets = self.lists.take();
        packets.push(packet);
        self.on_piece(fabric, packet.src, StackPiece { packets, since: now, place: None }, Span::ZERO);
    }

    fn on_piece(&mut self, fabric: &mut SimFabric, host: HostId, piece: StackPiece, call: Span) {
        let costs = self.costs.send;
        let has_data = piece.packets.iter().any(|packet| packet.len > 0);
        let cost = call + costs.packet + if has_data { costs.segment } else { Span::ZERO };
        self.add_work(fabric, piece.since, host, 0, cost, CoreWork::Transmit(piece));
    }
}

impl Hosts {
    /// Hands over what pieces have that TCP began at this instant and did not complete.
    pub(super) fn end_pieces(&mut self, now: Time, fabric: &mut SimFabric, host: HostId) {
        let Some(stacks) = &mut self.stacks else { return };
        for place in std::mem::take(&mut stacks.hosts[host.0 as usize].began) {
            let packets = std::mem::take(&mut stacks.of_end(place).open);
            if !packets.is_empty() {
                let piece = StackPiece { packets, since: now, place: Some(place) };
                stacks.on_piece(fabric, host, piece, Span::ZERO);
            }
        }
    }

    /// The processor has handed a piece to the NIC of `host`.
    pub(super) fn hand_to_nic(&mut self, now: Time, fabric: &mut SimFabric, host: HostId, piece: StackPiece) {
        let Some(stacks) = &mut self.stacks else { return };
        let HostStack { transmit, byte_time, totals, .. } = &mut stacks.hosts[host.0 as usize];
        totals.frames_sent += 1;
        let bytes: u64 = piece.packets.iter().map(|packet| u64::from(packet.size)).sum();
        let flow = piece.packets.first().map_or(0, |packet| packet.flow);
        transmit.on_piece(flow, byte_time.span(bytes), piece);
        self.transmit_next(now, fabric, host);
    }

    /// The NIC of `host` sends its next piece, if the one before has left, whose connection may have more to send.
    pub(super) fn transmit_next(&mut self, now: Time, fabric: &mut SimFabric, host: HostId) {
        let Some(stacks) = &mut self.stacks else { return };
        let stack = &mut stacks.hosts[host.0 as usize];
        if stack.transmit.next_due().is_some_and(|due| due > now) {
            return;
        }
        let left = stack.sending.take();
        if let Some(StackPiece { mut packets, since, place }) = stack.transmit.poll(now) {
            let bytes = packets.iter().filter(|packet| packet.len > 0).map(|packet| u64::from(packet.size));
            stack.sending = place.map(|place| (place, bytes.sum()));
            if let Some(due) = stack.transmit.next_due() {
                fabric.schedule(due, owner_of(host, TRANSMIT));
            }
            for mut packet in packets.drain(..) {
                packet.add_wait(WaitPlace::Nic, now - since);
                if datagram_workload(packet.flow).is_some() {
                    fabric.send_unpaced(now, packet);
                } else {
                    fabric.send(now, packet);
                }
            }
            if let Some(stacks) = &mut self.stacks {
                stacks.lists.give_back(packets);
            }
        }
        if let Some((place, bytes)) = left {
            self.on_left(now, fabric, place, bytes);
        }
    }

    /// A number of bytes of an end of a connection have left its host.
    fn on_left(&mut self, now: Time, fabric: &mut SimFabric, place: u32, bytes: u64) {
        let Some(stacks) = &mut self.stacks else { return };
        let limit = stacks.offloads.output_limit.get();
        let of_end: &mut StackOfEnd = stacks.of_end(place);
        of_end.below_tcp = of_end.below_tcp.saturating_sub(bytes);
        if of_end.waits && of_end.below_tcp < limit {
            of_end.waits = false;
            self.send_from(now, fabric, place / 2, End::from_bit(place));
        }
    }
}
