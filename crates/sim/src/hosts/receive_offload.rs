//! [`ReceiveOffload`]: a host's NIC that gathers arriving packets, and merges them. Also the
//! other half of a NIC with offloads: [`Half::may_send`], by which trains leave.
//!
//! ```text
//! link ──> Coalescer (waits for time or number) ──> merged ──> the transport, once a piece
//! ```
//!
//! The time that a packet is held here counts as waiting in the NIC ([`Wait::Nic`]). The pacer is part of the
//! NIC: it sees ECE when the packet arrives, not when the host does.

use plimsoll_fabric::net::{EcnField, Flags, HostId, Packet, WaitPlace};
use plimsoll_mechanisms::nic_burst::{
    Coalescer, Merger, NicBurstParams, ReceivedSegment, SegmentationOffload,
};
use plimsoll_mechanisms::tcp::{self, Offer, TcpConfig};
use plimsoll_units::{Bytes, Time};

use crate::hosts::connection::Half;
use crate::hosts::datagram_workload;
use crate::hosts::packet_lists::PacketLists;

/// The receiving side of all NICs.
#[derive(Debug)]
pub(super) struct ReceiveOffload {
    /// The NIC of each host.
    nics: Vec<Coalescer<HeldPacket>>,
    merging: Merging,
    /// The packets being handed over; empty in between.
    batch: Vec<Packet>,
    /// The lists for the packets of pieces, which come back when the transport has received them.
    pub(super) lists: PacketLists,
}

/// The two stages of merging: LRO, and then GRO.
#[derive(Debug)]
struct Merging {
    lro: Merger,
    gro: Merger,
    /// By packet of the batch: the place of the frame that LRO made of it.
    frame_of: Vec<usize>,
    /// By frame of the batch: the place of the piece that GRO made of it.
    piece_of: Vec<usize>,
}

/// A piece that the host takes from its NIC.
#[derive(Debug)]
pub(super) struct TakenPiece {
    /// The number of frames that the NIC hands over for it.
    pub(super) frames: u32,
    /// The packets that it is made of, in their order.
    pub(super) packets: Vec<Packet>,
}

/// A packet in a NIC, and since when.
#[derive(Clone, Copy, Debug)]
struct HeldPacket {
    packet: Packet,
    since: Time,
}

impl ReceiveOffload {
    /// Builds the NICs of `hosts` hosts; none where coalescing is off, unless they have a ring that stacks empty.
    pub(super) fn new(params: &NicBurstParams, hosts: u32, has_rings: bool) -> Option<ReceiveOffload> {
        let nics = (0..hosts).map(|_| Coalescer::new(params)).collect();
        let merging = Merging::new(params.lro, params.receive_offload);
        let offload = ReceiveOffload { nics, merging, batch: Vec::new(), lists: PacketLists::default() };
        (has_rings || !params.coalesce_time.is_zero()).then_some(offload)
    }
}

impl ReceiveOffload {
    /// Returns when the NIC of `host` interrupts it next.
    pub(super) fn next_due(&self, host: HostId) -> Option<Time> {
        self.nics[host.0 as usize].next_due()
    }

    /// Returns how many packets the NIC of `host` holds.
    pub(super) fn held(&self, host: HostId) -> usize {
        self.nics[host.0 as usize].len()
    }

    /// Removes at most `most` packets from the NIC of `host`, due or not. Returns how many, and the pieces that LRO and
    /// GRO make of them.
    pub(super) fn take(&mut self, now: Time, host: HostId, most: usize) -> (usize, Vec<TakenPiece>) {
        self.batch.extend(self.nics[host.0 as usize].take(now, most).map(|held| held.taken(now)));
        (self.batch.len(), self.merge_batch())
    }

    /// The NIC of `packet.dst` gathers a packet.
    pub(super) fn on_packet(&mut self, now: Time, packet: &Packet) {
        self.nics[packet.dst.0 as usize].on_packet(now, HeldPacket { packet: *packet, since: now });
    }

    /// Removes the packets that the NIC of `host` hands over at `now`, as the pieces of receive offload.
    pub(super) fn take_pieces(&mut self, now: Time, host: HostId) -> Vec<TakenPiece> {
        self.batch.extend(self.nics[host.0 as usize].poll(now).map(|held| held.taken(now)));
        self.merge_batch()
    }

    fn merge_batch(&mut self) -> Vec<TakenPiece> {
        let pieces = self.merging.merge(&self.batch, &mut self.lists);
        self.batch.clear();
        pieces
    }
}

impl HeldPacket {
    /// Returns the packet, which the host takes at `now`.
    fn taken(self, now: Time) -> Packet {
        let HeldPacket { mut packet, since } = self;
        packet.add_wait(WaitPlace::Nic, now - since);
        packet
    }
}

impl Merging {
    fn new(lro: Bytes, gro: Bytes) -> Merging {
        let (frame_of, piece_of) = (Vec::new(), Vec::new());
        Merging { lro: Merger::new(lro), gro: Merger::new(gro), frame_of, piece_of }
    }

    /// Returns the pieces that LRO and then GRO make of a batch.
    fn merge(&mut self, batch: &[Packet], lists: &mut PacketLists) -> Vec<TakenPiece> {
        self.lro.begin();
        self.gro.begin();
        self.frame_of.clear();
        self.piece_of.clear();
        self.frame_of.extend(batch.iter().map(|packet| self.lro.add(received(packet))));
        self.piece_of.extend(self.lro.pieces().iter().map(|frame| self.gro.add(*frame)));
        let empty = |_| TakenPiece { frames: 0, packets: lists.take() };
        let mut pieces: Vec<TakenPiece> = self.gro.pieces().iter().map(empty).collect();
        self.piece_of.iter().for_each(|piece| pieces[*piece].frames += 1);
        for (packet, frame) in batch.iter().zip(&self.frame_of) {
            pieces[self.piece_of[*frame]].packets.push(*packet);
        }
        pieces
    }
}

/// Returns a connection's direction, as one number.
fn flow(packet: &Packet) -> u64 {
    u64::from(packet.flow) << 1 | u64::from(packet.flags.has(Flags::FROM_SERVER))
}

/// Returns what receive offload sees of a packet. A raw packet counts as one without payload, which is never merged.
fn received(packet: &Packet) -> ReceivedSegment {
    let is_datagram = datagram_workload(packet.flow).is_some();
    // That a segment was sent before is nothing that a header says.
    let flags = packet.flags.0 & !Flags::RETRANSMISSION.0;
    ReceivedSegment {
        flow: flow(packet),
        seq: u64::from(packet.seq),
        bytes: if is_datagram { 0 } else { u64::from(packet.len) },
        ce: packet.ecn == EcnField::Ce,
        header: u64::from(packet.ack) << 8 | u64::from(flags),
        segments: 1,
    }
}

/// Puts the payload of the packets `before` in front of a segment that continues it.
#[cold]
pub(super) fn prepend(segment: &mut tcp::TcpSegment, before: &[Packet]) {
    let bytes: u32 = before.iter().map(|packet| u32::from(packet.len)).sum();
    segment.seq -= u64::from(bytes);
    segment.len += bytes;
}

impl Half {
    /// Returns whether the end's next segment may leave now: new data leaves in pieces that are large enough, and
    /// anything else at once.
    #[cold]
    pub(super) fn may_send(&mut self, offload: &SegmentationOffload, config: &TcpConfig) -> bool {
        let sent = self.endpoint.sent();
        if sent < self.piece_end {
            return true;
        }
        let Some(Offer { allowed, window, in_flight, more_data }) = self.endpoint.offer(config) else {
            return true;
        };
        // A piece is cut between two segments.
        let piece = offload.piece_bytes();
        let piece = (piece - piece % config.segment).max(config.segment);
        let sendable = offload.sendable(allowed, window, in_flight, more_data).min(piece);
        self.piece_end = sent + sendable;
        sendable > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(flow: u32, seq: u32) -> Packet {
        let mut packet = Packet::new(HostId(1), HostId(0), flow, 1_040);
        (packet.seq, packet.len, packet.flags) = (seq, 1_000, Flags::ACK);
        packet
    }

    fn merged(batch: &[Packet], lro: u64, gro: u64) -> Vec<TakenPiece> {
        Merging::new(Bytes::new(lro), Bytes::new(gro)).merge(batch, &mut PacketLists::default())
    }

    #[test]
    fn pieces_hold_the_packets_that_they_were_made_of() {
        let mut marked = data(1, 2_000);
        marked.ecn = EcnField::Ce;
        let mut again = data(2, 1_000);
        again.flags = again.flags.with(Flags::RETRANSMISSION);
        let mut other_ack = data(2, 2_000);
        other_ack.ack = 1;
        let batch = [data(1, 0), data(2, 0), data(1, 1_000), marked, again, other_ack];
        let seen: Vec<Vec<(u32, u32)>> = merged(&batch, 0, 64_000)
            .iter()
            .map(|piece| piece.packets.iter().map(|packet| (packet.flow, packet.seq)).collect())
            .collect();
        assert_eq!(
            seen,
            [vec![(1, 0), (1, 1_000)], vec![(2, 0), (2, 1_000)], vec![(1, 2_000)], vec![(2, 2_000)]]
        );
    }

    #[test]
    fn both_directions_and_raw_packets_stay_apart() {
        let mut back = data(1, 1_000);
        back.flags = back.flags.with(Flags::FROM_SERVER);
        let batch = [data(1, 0), back, data(u32::MAX, 0), data(u32::MAX, 1_000)];
        assert_eq!(merged(&batch, 0, 64_000).len(), 4);
    }

    #[test]
    fn without_receive_offload_every_packet_is_a_piece() {
        assert_eq!(merged(&[data(1, 0), data(1, 1_000)], 0, 0).len(), 2);
    }

    #[test]
    fn lro_makes_frames_of_packets_and_gro_segments_of_frames() {
        let batch = [data(1, 0), data(2, 0), data(1, 1_000), data(1, 2_000), data(1, 3_000), data(1, 5_000)];
        let counts = |lro, gro| -> Vec<(u32, usize)> {
            merged(&batch, lro, gro).iter().map(|piece| (piece.frames, piece.packets.len())).collect()
        };
        assert_eq!(counts(2_000, 64_000), [(2, 4), (1, 1), (1, 1)]);
        assert_eq!(counts(2_000, 0), [(1, 2), (1, 1), (1, 2), (1, 1)]);
        assert_eq!(counts(64_000, 0), [(1, 4), (1, 1), (1, 1)]);
        assert_eq!(counts(0, 64_000), [(4, 4), (1, 1), (1, 1)]);
    }
}
