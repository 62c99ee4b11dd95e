//! [`Frame`]: the fields of a packet that the analysis needs. `etherparse` parses IP and its extensions.
//!
//! The fixed part of TCP's header is decoded here, since a snap length of 64 bytes cuts TCP's options off, and a parser
//! of whole headers then returns no ports. So are the headers below IP ([`crate::link`]):
//! slicing all layers took half of an analysis.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use etherparse::{LaxIpv4Slice, LaxIpv6Slice};
use plimsoll_units::Time;

use crate::link::{LinkLayer, NetworkPacket, inside_tunnel};
use crate::reader::Captured;

/// The address of a host.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Address {
    /// An IPv4 address.
    V4(u32),
    /// An IPv6 address.
    V6(u128),
    /// An Ethernet address, of a frame that is not IP.
    Mac([u8; 6]),
    /// The packet has no address that the capture shows.
    Unknown,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::V4(bits) => Ipv4Addr::from_bits(*bits).fmt(f),
            Address::V6(bits) => Ipv6Addr::from_bits(*bits).fmt(f),
            Address::Mac([a, b, c, d, e, g]) => write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}"),
            Address::Unknown => f.write_str("unknown"),
        }
    }
}

/// The fields of a TCP segment that losses and acknowledgements are computed from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CapturedSegment {
    /// The ports of source and destination.
    pub ports: (u16, u16),
    /// The number of the first payload byte; a SYN precedes it.
    pub sequence: u32,
    /// The next byte expected from the other side, if the segment acknowledges.
    pub ack: Option<u32>,
    /// The number of payload bytes.
    pub payload: u32,
    /// The window as the header has it, before any scaling.
    pub window: u16,
    /// The identification of the IPv4 packet, which is 0 where the sender gives none; `None` in IPv6.
    pub identification: Option<u16>,
    /// TCP's checksum if the packet has no identification, else 0: it distinguishes segments that differ in their
    /// options or payload only.
    pub checksum: u16,
    /// Whether the segment opens a connection.
    pub syn: bool,
    /// Whether the segment ends or resets a connection.
    pub ends: bool,
    /// Whether the segment resets a connection.
    pub is_reset: bool,
    /// Whether its payload begins like a TLS record of a handshake or of data (RFC 8446, section 5.1), as far as the
    /// capture has it.
    pub is_tls: bool,
}

impl CapturedSegment {
    /// Returns whether the segment only acknowledges.
    pub fn is_pure_ack(&self) -> bool {
        self.ack.is_some() && self.payload == 0 && !self.syn && !self.ends
    }
}

/// The fields by which a UDP datagram is recognized.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The ports of source and destination.
    pub ports: (u16, u16),
    /// The number of payload bytes.
    pub payload: u32,
    /// Whether the IPv4 packet has an identification, which the digest includes.
    pub is_identified: bool,
    /// A digest of its header, and of its captured payload if it has no identification.
    pub digest: u64,
}

/// A frame of one source to one destination.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Frame {
    /// The timestamp, relative to an hour before the first packet.
    pub time: Time,
    /// The interface that captured the frame.
    pub interface: u32,
    /// The sending host.
    pub source: Address,
    /// The receiving host.
    pub destination: Address,
    /// The bytes from the destination's Ethernet address to the last of the payload.
    pub bytes: u32,
    /// The differentiated services code point of the IP header (RFC 2474); 0 without one.
    pub dscp: u8,
    /// The TCP segment, if the frame is one and its header was captured.
    pub segment: Option<CapturedSegment>,
    /// The UDP datagram, if the frame is one and its header was captured.
    pub datagram: Option<Datagram>,
    /// Whether the capture has cut the packet before the end of its IP, TCP or UDP header.
    pub is_cut: bool,
}

/// The bytes of an Ethernet header.
const ETHERNET: u32 = 14;

impl Frame {
    /// Decodes a packet whose interface has a number from `first` on; with `decapsulate`, the headers inside tunnels
    /// count. Parts that cannot be decoded stay unknown; a packet is never an error.
    pub fn decode(captured: &Captured<'_>, first: u32, decapsulate: bool) -> Frame {
        let (data, length) = (captured.data, captured.length);
        let others = captured.link.header_bytes();
        let mut frame = Frame {
            time: captured.time,
            interface: first + captured.interface,
            source: Address::Unknown,
            destination: Address::Unknown,
            bytes: length.saturating_sub(others).saturating_add(ETHERNET),
            dscp: 0,
            segment: None,
            datagram: None,
            is_cut: false,
        };
        let is_short = (data.len() as u64) < u64::from(length);
        if captured.link == LinkLayer::Ethernet {
            frame.bytes = length;
            let Some(addresses) = data.first_chunk::<12>() else { return frame };
            let [to @ .., _, _, _, _, _, _] = *addresses;
            let [_, _, _, _, _, _, from @ ..] = *addresses;
            (frame.source, frame.destination) = (Address::Mac(from), Address::Mac(to));
        }
        let Some(network) = captured.link.network(data) else { return frame };
        let Some(mut inside) = ip(network) else {
            frame.is_cut = is_short;
            return frame;
        };
        while decapsulate
            && !inside.is_fragment
            && let Some(tunnelled) = inside_tunnel(inside.protocol, inside.payload).and_then(ip)
        {
            inside = tunnelled;
        }
        (frame.source, frame.destination) = (inside.source, inside.destination);
        frame.dscp = inside.dscp;
        if inside.is_fragment {
            return frame;
        }
        if inside.protocol == UDP {
            frame.datagram = datagram(inside.payload, inside.identification);
            frame.is_cut = is_short && frame.datagram.is_none();
        }
        if inside.protocol != TCP {
            return frame;
        }
        let (payload, claimed) = (inside.payload, inside.claimed);
        // Segmentation offload leaves the length at 0 if it is too large.
        let before = (payload.as_ptr() as usize).wrapping_sub(data.as_ptr() as usize) as u32;
        let claimed = if claimed == 0 { length.saturating_sub(before) } else { claimed };
        frame.segment = segment(payload, claimed, inside.identification);
        frame.is_cut = is_short && frame.segment.is_none();
        frame
    }
}

fn ip(packet: NetworkPacket<'_>) -> Option<IpHeader<'_>> {
    match packet {
        NetworkPacket::V4(packet) => plain_ipv4(packet).or_else(|| ipv4(packet)),
        NetworkPacket::V6(packet) => ipv6(packet),
    }
}

/// The fields of an IP header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct IpHeader<'a> {
    source: Address,
    destination: Address,
    /// The captured bytes behind the header and its extensions.
    payload: &'a [u8],
    /// The payload's length in the header.
    claimed: u32,
    /// The protocol of the payload, which begins with its header unless it is a fragment.
    protocol: u8,
    is_fragment: bool,
    dscp: u8,
    /// The identification of IPv4.
    identification: Option<u16>,
}

/// Decodes an IPv4 header (RFC 791) without extensions, whose lengths do not contradict each other. Nearly all are
/// such, and [`ipv4`] takes a tenth of an analysis.
#[inline]
fn plain_ipv4(packet: &[u8]) -> Option<IpHeader<'_>> {
    let header: &[u8; 20] = packet.first_chunk()?;
    let length = usize::from(header[0] & 0xf) * 4;
    let total = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let is_plain = header[0] >> 4 == 4 && length >= 20 && total >= length && header[9] != AUTHENTICATION;
    if !is_plain {
        return None;
    }
    let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let fragment = u16::from_be_bytes([header[6], header[7]]) & (MORE_FRAGMENTS | FRAGMENT_OFFSET);
    Some(IpHeader {
        source: Address::V4(word(12)),
        destination: Address::V4(word(16)),
        payload: packet.get(length..total.min(packet.len()))?,
        claimed: (total - length) as u32,
        protocol: header[9],
        is_fragment: fragment != 0,
        dscp: header[1] >> 2,
        identification: Some(u16::from_be_bytes([header[4], header[5]])),
    })
}

fn ipv4(packet: &[u8]) -> Option<IpHeader<'_>> {
    let (ip, _) = LaxIpv4Slice::from_slice(packet).ok()?;
    let (header, inside) = (ip.header(), ip.payload());
    Some(IpHeader {
        source: Address::V4(u32::from_be_bytes(header.source())),
        destination: Address::V4(u32::from_be_bytes(header.destination())),
        payload: inside.payload,
        claimed: u32::from(header.total_len()).saturating_sub(u32::from(header.ihl()) * 4),
        protocol: inside.ip_number.0,
        is_fragment: inside.fragmented,
        dscp: header.slice()[1] >> 2,
        identification: Some(header.identification()),
    })
}

fn ipv6(packet: &[u8]) -> Option<IpHeader<'_>> {
    let (ip, _) = LaxIpv6Slice::from_slice(packet).ok()?;
    let (header, inside) = (ip.header(), ip.payload());
    let extensions = ip.extensions().slice().len() as u32;
    Some(IpHeader {
        source: Address::V6(u128::from_be_bytes(header.source())),
        destination: Address::V6(u128::from_be_bytes(header.destination())),
        payload: inside.payload,
        claimed: u32::from(header.payload_length()).saturating_sub(extensions),
        protocol: inside.ip_number.0,
        is_fragment: inside.fragmented,
        dscp: (header.slice()[0] & 0xf) << 2 | header.slice()[1] >> 6,
        identification: None,
    })
}

/// Protocol numbers: TCP, UDP, and the authentication header, which is followed by another protocol (RFC 4302).
const TCP: u8 = 6;
const UDP: u8 = 17;
const AUTHENTICATION: u8 = 51;
const MORE_FRAGMENTS: u16 = 0x2000;
const FRAGMENT_OFFSET: u16 = 0x1fff;

/// Decodes the fixed part of a TCP header (RFC 9293, section 3.1) of a segment of `length` bytes.
fn segment(bytes: &[u8], length: u32, identification: Option<u16>) -> Option<CapturedSegment> {
    let header: &[u8; 20] = bytes.first_chunk()?;
    let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let flags = header[13];
    Some(CapturedSegment {
        ports: (u16::from_be_bytes([header[0], header[1]]), u16::from_be_bytes([header[2], header[3]])),
        sequence: word(4).wrapping_add(u32::from(flags & SYN != 0)),
        ack: (flags & ACK != 0).then(|| word(8)),
        payload: length.saturating_sub(u32::from(header[12] >> 4) * 4),
        window: u16::from_be_bytes([header[14], header[15]]),
        identification,
        checksum: if is_given(identification) { 0 } else { u16::from_be_bytes([header[16], header[17]]) },
        syn: flags & SYN != 0,
        ends: flags & (FIN | RST) != 0,
        is_reset: flags & RST != 0,
        is_tls: is_tls(bytes.get(usize::from(header[12] >> 4) * 4..)),
    })
}

/// Decodes a UDP datagram (RFC 768).
fn datagram(bytes: &[u8], identification: Option<u16>) -> Option<Datagram> {
    let header: &[u8; 8] = bytes.first_chunk()?;
    let is_identified = is_given(identification);
    let digest = digest(u64::from(identification.unwrap_or(0)), if is_identified { header } else { bytes });
    let half = |at: usize| u16::from_be_bytes([header[at], header[at + 1]]);
    let payload = u32::from(half(4)).saturating_sub(header.len() as u32);
    Some(Datagram { ports: (half(0), half(2)), payload, is_identified, digest })
}

/// Returns whether a payload begins with the head of a TLS record: a handshake or data, of version 3.
fn is_tls(payload: Option<&[u8]>) -> bool {
    matches!(payload, Some([TLS_HANDSHAKE | TLS_DATA, 3, 0..=4, ..]))
}

/// Types of TLS records (RFC 8446, section B.1).
const TLS_HANDSHAKE: u8 = 22;
const TLS_DATA: u8 = 23;

/// Returns whether the sender has given a packet an identification.
pub(crate) fn is_given(identification: Option<u16>) -> bool {
    identification.is_some_and(|identification| identification != 0)
}

/// Mixes bytes into a number: a hash whose collisions are left to chance.
fn digest(number: u64, bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(number ^ (bytes.len() as u64) << 32, |digest, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        (digest ^ u64::from_le_bytes(word)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
    })
}

const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// The decoder here and the library agree on all bytes.
        #[test]
        fn a_plain_header_is_decoded_as_the_library_does(
            mut packet in prop::collection::vec(any::<u8>(), 0..80), length in 5u8..8, total in 0u16..100, is_tcp: bool,
        ) {
            if let Some(header) = packet.first_chunk_mut::<20>() {
                header[0] = 0x40 | length;
                header[2..4].copy_from_slice(&total.to_be_bytes());
                if is_tcp {
                    (header[6], header[7], header[9]) = (0x40, 0, TCP);
                }
            }
            if let Some(plain) = plain_ipv4(&packet) {
                prop_assert_eq!(Some(plain), ipv4(&packet));
            }
        }
    }

    #[test]
    fn most_headers_are_plain() {
        let mut packet = [0; 60];
        (packet[0], packet[3], packet[9]) = (0x45, 60, TCP);
        assert!(plain_ipv4(&packet).is_some_and(|inside| inside.protocol == TCP && inside.claimed == 40));
    }
}
