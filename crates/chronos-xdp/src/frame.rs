//! Requests and replies as Ethernet frames: extracts the datagram and the route of the reply from a frame, and writes
//! the frame of the reply. This module has neither sockets nor a clock.
//!
//! ```text
//! Ethernet 14 | IPv4 20 or IPv6 40 | UDP 8 | datagram | padding
//! ```
//!
//! * **Requests** are plain, as the XDP program hands them over: no tag, no options or extension headers, no fragment
//!   (`crates/bpf/programs/to_sockets.bpf.c`). Other frames are rejected here too.
//! * **Checksums** (RFC 1071, RFC 768, RFC 8200 section 8.1) are right, absent (IPv4 only), or the sum of the
//!   pseudo-header alone: a sender on the same machine leaves the rest to the network card, and veth delivers the
//!   packet unchanged.
//! * **Replies** return to the sender: MAC addresses, addresses and ports are swapped, and no route is looked up. DF is
//!   set, so the identification may be 0 (RFC 6864, section 4.1); TTL is 64; ECN and DSCP are 0 in every reply.
//! * **Not answered** are senders without a port, and senders whose address is multicast, broadcast, unspecified or
//!   this host's: an answer would reach another host, or this one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use plimsoll_chronos::ReturnAddress;

/// Bytes of an Ethernet header without a tag.
pub(crate) const ETHERNET_BYTES: usize = 14;
const IPV4_BYTES: usize = 20;
const IPV6_BYTES: usize = 40;
const UDP_BYTES: usize = 8;
const IPV4: [u8; 2] = [0x08, 0x00];
const IPV6: [u8; 2] = [0x86, 0xdd];
const UDP: u8 = 17;
/// The first byte of an IPv4 header without options: version 4, and five words of header.
const IPV4_WITHOUT_OPTIONS: u8 = 0x45;
/// IPv4's flag "don't fragment".
const DONT_FRAGMENT: u16 = 0x4000;
/// The flag "more fragments" and the offset of a fragment.
const FRAGMENT: u16 = 0x3fff;
/// The hop limit of a reply, which is Linux's default.
const HOPS: u8 = 64;
/// The encoded addresses of both sides, behind a byte for the address family.
const ADDRESS_BYTES: usize = 1 + 2 * 16;
/// The encoded Ethernet address and port of a side.
const SIDE_BYTES: usize = 6 + 2;

/// The addresses of a reply: `to` is the sender of the request.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ReplyRoute {
    to: FrameSide,
    from: FrameSide,
    addresses: FrameAddresses,
}

/// The Ethernet address and the UDP port of one side.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct FrameSide {
    hardware: [u8; 6],
    port: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum FrameAddresses {
    V4 { to: Ipv4Addr, from: Ipv4Addr },
    V6 { to: Ipv6Addr, from: Ipv6Addr },
}

/// The reason that a frame is not served.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FrameRefusal {
    /// A checksum is wrong: the frame was damaged in transit.
    Checksum,
    /// It is not a UDP datagram of the kind above, or its lengths do not fit.
    Malformed,
    /// The sender's address cannot be answered.
    Sender,
}

/// Returns the datagram in `frame`, and the route of its reply.
pub(crate) fn parse(frame: &[u8]) -> Result<(ReplyRoute, &[u8]), FrameRefusal> {
    let (&ethernet, packet) = frame.split_first_chunk::<ETHERNET_BYTES>().ok_or(FrameRefusal::Malformed)?;
    let [a, b, c, d, e, f, source @ .., _, _] = ethernet;
    let destination = [a, b, c, d, e, f];
    let (addresses, segment) = match [ethernet[12], ethernet[13]] {
        IPV4 => parse_ipv4(packet)?,
        IPV6 => parse_ipv6(packet)?,
        _ => return Err(FrameRefusal::Malformed),
    };
    let (udp, _) = segment.split_first_chunk::<UDP_BYTES>().ok_or(FrameRefusal::Malformed)?;
    let [source_port, destination_port, length, checksum] = words(udp);
    // IP's bytes behind the datagram's end belong to no datagram.
    let datagram = segment.get(..usize::from(length)).ok_or(FrameRefusal::Malformed)?;
    let payload = datagram.get(UDP_BYTES..).ok_or(FrameRefusal::Malformed)?;
    if !is_right(&addresses, checksum, datagram) {
        return Err(FrameRefusal::Checksum);
    }
    if source_port == 0 || is_group(source) || !addresses.can_be_answered() {
        return Err(FrameRefusal::Sender);
    }
    let to = FrameSide { hardware: source, port: source_port };
    let from = FrameSide { hardware: destination, port: destination_port };
    Ok((ReplyRoute { to, from, addresses }, payload))
}

/// Returns the addresses and the payload of an IPv4 packet.
fn parse_ipv4(packet: &[u8]) -> Result<(FrameAddresses, &[u8]), FrameRefusal> {
    let (header, _) = packet.split_first_chunk::<IPV4_BYTES>().ok_or(FrameRefusal::Malformed)?;
    let [_, length, _, fragment, ..] = words::<_, 10>(header);
    if header[0] != IPV4_WITHOUT_OPTIONS || header[9] != UDP || fragment & FRAGMENT != 0 {
        return Err(FrameRefusal::Malformed);
    }
    let carried = packet.get(IPV4_BYTES..usize::from(length)).ok_or(FrameRefusal::Malformed)?;
    if fold(sum(header)) != u16::MAX {
        return Err(FrameRefusal::Checksum);
    }
    let address = |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]);
    Ok((FrameAddresses::V4 { to: address(12), from: address(16) }, carried))
}

/// Returns the addresses and the payload of an IPv6 packet.
fn parse_ipv6(packet: &[u8]) -> Result<(FrameAddresses, &[u8]), FrameRefusal> {
    let (header, carried) = packet.split_first_chunk::<IPV6_BYTES>().ok_or(FrameRefusal::Malformed)?;
    if header[0] >> 4 != 6 || header[6] != UDP {
        return Err(FrameRefusal::Malformed);
    }
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let carried = carried.get(..length).ok_or(FrameRefusal::Malformed)?;
    let address = |at: usize| -> Ipv6Addr {
        let octets: [u8; 16] = std::array::from_fn(|index| header[at + index]);
        octets.into()
    };
    Ok((FrameAddresses::V6 { to: address(8), from: address(24) }, carried))
}

/// Returns the numbers of 16 bits that a header is made of.
fn words<const BYTES: usize, const WORDS: usize>(header: &[u8; BYTES]) -> [u16; WORDS] {
    const { assert!(BYTES >= 2 * WORDS) };
    std::array::from_fn(|index| u16::from_be_bytes([header[2 * index], header[2 * index + 1]]))
}

/// Reports whether an Ethernet address is a multicast or broadcast address.
fn is_group(hardware: [u8; 6]) -> bool {
    hardware[0] & 1 == 1
}

/// Reports whether `checksum`, which is part of `datagram`, is right.
fn is_right(addresses: &FrameAddresses, checksum: u16, datagram: &[u8]) -> bool {
    if checksum == 0 {
        return matches!(addresses, FrameAddresses::V4 { .. });
    }
    let pseudo = addresses.pseudo_header(datagram.len());
    fold(pseudo + sum(datagram)) == u16::MAX || fold(pseudo) == checksum.to_be()
}

impl FrameAddresses {
    /// Returns the sum over the pseudo-header, which UDP's checksum covers beside the datagram.
    fn pseudo_header(&self, length: usize) -> u64 {
        let addresses = match self {
            FrameAddresses::V4 { to, from } => sum(&to.octets()) + sum(&from.octets()),
            FrameAddresses::V6 { to, from } => sum(&to.octets()) + sum(&from.octets()),
        };
        // The length of a datagram fits its own field.
        addresses + u64::from(u16::from(UDP).to_be()) + u64::from((length as u16).to_be())
    }

    /// Reports whether `to` is one host, and not this one.
    fn can_be_answered(&self) -> bool {
        let (to, from): (IpAddr, IpAddr) = match *self {
            FrameAddresses::V4 { to, from } => (to.into(), from.into()),
            FrameAddresses::V6 { to, from } => (to.into(), from.into()),
        };
        let is_one = !to.is_multicast() && !to.is_unspecified() && !to.is_loopback();
        is_one && to != from && to != Ipv4Addr::BROADCAST
    }
}

impl ReplyRoute {
    /// Returns the route in the form in which the runtime keeps it until the request is answered.
    pub(crate) fn encode(&self) -> ReturnAddress {
        let mut bytes = [0; ReturnAddress::BYTES];
        let (addresses, sides) = bytes.split_at_mut(ADDRESS_BYTES);
        match self.addresses {
            FrameAddresses::V4 { to, from } => {
                addresses[0] = 4;
                addresses[1..5].copy_from_slice(&to.octets());
                addresses[5..9].copy_from_slice(&from.octets());
            }
            FrameAddresses::V6 { to, from } => {
                addresses[0] = 6;
                addresses[1..17].copy_from_slice(&to.octets());
                addresses[17..33].copy_from_slice(&from.octets());
            }
        }
        for (place, side) in sides.chunks_exact_mut(SIDE_BYTES).zip([&self.to, &self.from]) {
            place[..6].copy_from_slice(&side.hardware);
            place[6..].copy_from_slice(&side.port.to_be_bytes());
        }
        ReturnAddress(bytes)
    }

    /// Returns the route that [`ReplyRoute::encode`] wrote; None if the bytes are of another kind of device.
    pub(crate) fn decode(ReturnAddress(bytes): &ReturnAddress) -> Option<ReplyRoute> {
        let (addresses, sides) = bytes.split_at(ADDRESS_BYTES);
        let octets = |from: usize| -> [u8; 16] { std::array::from_fn(|index| addresses[from + index]) };
        let octets_v4 = |from: usize| -> [u8; 4] { std::array::from_fn(|index| addresses[from + index]) };
        let addresses = match addresses[0] {
            4 => FrameAddresses::V4 { to: octets_v4(1).into(), from: octets_v4(5).into() },
            6 => FrameAddresses::V6 { to: octets(1).into(), from: octets(17).into() },
            _ => return None,
        };
        let side = |from: usize| FrameSide {
            hardware: std::array::from_fn(|index| sides[from + index]),
            port: u16::from_be_bytes([sides[from + 6], sides[from + 7]]),
        };
        Some(ReplyRoute { to: side(0), from: side(SIDE_BYTES), addresses })
    }

    /// Returns the bytes before the datagram.
    fn header_bytes(&self) -> usize {
        let packet = match self.addresses {
            FrameAddresses::V4 { .. } => IPV4_BYTES,
            FrameAddresses::V6 { .. } => IPV6_BYTES,
        };
        ETHERNET_BYTES + packet + UDP_BYTES
    }

    /// Writes the frame that carries `payload` to the start of `frame`, and returns its length; None if it is longer
    /// than `frame` or than a packet can be.
    pub(crate) fn write(&self, payload: &[u8], frame: &mut [u8]) -> Option<usize> {
        let total = self.header_bytes() + payload.len();
        let frame = frame.get_mut(..total)?;
        let (ethernet, packet) = frame.split_at_mut(ETHERNET_BYTES);
        let length = u16::try_from(packet.len()).ok()?;
        ethernet[..6].copy_from_slice(&self.to.hardware);
        ethernet[6..12].copy_from_slice(&self.from.hardware);
        let (kind, segment) = match &self.addresses {
            FrameAddresses::V4 { to, from } => {
                let (header, segment) = packet.split_at_mut(IPV4_BYTES);
                write_ipv4(header, *to, *from, length);
                (IPV4, segment)
            }
            FrameAddresses::V6 { to, from } => {
                let (header, segment) = packet.split_at_mut(IPV6_BYTES);
                write_ipv6(header, *to, *from, length - IPV6_BYTES as u16);
                (IPV6, segment)
            }
        };
        ethernet[12..].copy_from_slice(&kind);
        self.write_udp(payload, segment);
        Some(total)
    }

    /// Writes a UDP header and the payload, which together are as long as `segment`.
    fn write_udp(&self, payload: &[u8], segment: &mut [u8]) {
        let numbers = [self.from.port, self.to.port, segment.len() as u16, 0];
        let (header, rest) = segment.split_at_mut(UDP_BYTES);
        for (place, number) in header.chunks_exact_mut(2).zip(numbers) {
            place.copy_from_slice(&number.to_be_bytes());
        }
        rest.copy_from_slice(payload);
        let checksum = !fold(self.addresses.pseudo_header(segment.len()) + sum(segment));
        // A checksum of 0 would mean that there is none; both values are zero in this arithmetic.
        let checksum = if checksum == 0 { u16::MAX } else { checksum };
        segment[6..8].copy_from_slice(&checksum.to_ne_bytes());
    }
}

fn write_ipv4(header: &mut [u8], to: Ipv4Addr, from: Ipv4Addr, length: u16) {
    header.fill(0);
    header[0] = IPV4_WITHOUT_OPTIONS;
    header[2..4].copy_from_slice(&length.to_be_bytes());
    header[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
    header[8] = HOPS;
    header[9] = UDP;
    header[12..16].copy_from_slice(&from.octets());
    header[16..20].copy_from_slice(&to.octets());
    let checksum = !fold(sum(header));
    header[10..12].copy_from_slice(&checksum.to_ne_bytes());
}

fn write_ipv6(header: &mut [u8], to: Ipv6Addr, from: Ipv6Addr, length: u16) {
    header.fill(0);
    header[0] = 6 << 4;
    header[4..6].copy_from_slice(&length.to_be_bytes());
    header[6] = UDP;
    header[7] = HOPS;
    header[8..24].copy_from_slice(&from.octets());
    header[24..40].copy_from_slice(&to.octets());
}

/// Returns the sum of the bytes as numbers of 16 bits, with the carries still to be added. Neither the byte order nor
/// the addition of 32 bits at a time changes a ones' complement sum (RFC 1071, section 2).
fn sum(bytes: &[u8]) -> u64 {
    let (words, rest) = bytes.as_chunks::<4>();
    let mut last = [0; 4];
    last[..rest.len()].copy_from_slice(rest);
    let whole: u64 = words.iter().map(|word| u64::from(u32::from_ne_bytes(*word))).sum();
    whole + u64::from(u32::from_ne_bytes(last))
}

/// Adds the carries of a sum, which gives the ones' complement sum.
fn fold(mut sum: u64) -> u16 {
    while sum > u64::from(u16::MAX) {
        sum = (sum >> 16) + (sum & u64::from(u16::MAX));
    }
    sum as u16
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
