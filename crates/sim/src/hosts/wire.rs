//! Segments become packets and packets segments.
//!
//! On the wire sequence numbers have 32 bits, as in a real header; the ends count without wrapping
//! and put the missing bits back by nearness (RFC 9293, section 3.4: sequence space arithmetic).

use plimsoll_fabric::net::{Flags, HostId, Packet};
use plimsoll_mechanisms::tcp;
use plimsoll_mechanisms::transports::nearest;

/// The connection of a packet, and its sender and receiver.
#[derive(Clone, Copy, Debug)]
pub(super) struct PacketAddress {
    pub(super) flow: u32,
    pub(super) src: HostId,
    pub(super) dst: HostId,
    pub(super) from_server: bool,
}

/// Builds the packet that carries `segment` and takes `size` bytes on the wire.
#[inline(always)] // see Hosts::receive
pub(super) fn packet_of(segment: &tcp::TcpSegment, address: PacketAddress, size: u32) -> Packet {
    let mut packet = Packet::new(address.src, address.dst, address.flow, size as u16);
    packet.seq = segment.seq as u32;
    packet.ack = segment.ack as u32;
    packet.len = segment.len as u16;
    packet.ecn = segment.ecn;
    packet.flags = segment.flags.and(Flags::OF_SEGMENTS);
    if segment.entropy > 0 {
        packet.set_entropy(segment.entropy);
    }
    if address.from_server {
        packet.flags = packet.flags.with(Flags::FROM_SERVER);
    }
    if segment.len == 0 && !segment.sack.is_empty() {
        packet.set_sack(segment.sack.as_slice().iter().map(|&(start, end)| (start as u32, end as u32)));
    }
    packet
}

/// Returns the segment in `packet`. `received` and `sent` are the stream offsets up to which the receiving end has
/// received in order and has sent; the 32-bit numbers lie near them.
#[inline(always)] // see Hosts::receive
pub(super) fn segment_of(packet: &Packet, received: u64, sent: u64) -> tcp::TcpSegment {
    let mut sack = tcp::SackBlocks::default();
    for (start, end) in packet.sack() {
        sack.push(nearest::<32>(start.into(), sent), nearest::<32>(end.into(), sent));
    }
    tcp::TcpSegment {
        seq: nearest::<32>(packet.seq.into(), received),
        len: u32::from(packet.len),
        ack: nearest::<32>(packet.ack.into(), sent),
        flags: packet.flags.and(Flags::OF_SEGMENTS),
        ecn: packet.ecn,
        entropy: packet.entropy() as u16,
        sack,
    }
}
