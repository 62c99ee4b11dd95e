//! Ethernet, IPv4 and TCP headers made up from a [`PacketRecord`].
//!
//! Host `n` is 10.0.0.0/8 plus n + 1. A flow has the same pair of ports in both directions, so that
//! Wireshark follows it as one stream. A SYN has the sequence number 0 and data begins at 1, since a SYN counts as a
//! byte; it brings a window scale, so that no window is ever full. The payload is left out (`tcpdump -s` does the
//! same); it counts as zeros in TCP's checksum, which is therefore right.
//!
//! A frame is as long as the packet on the wire. A trimmed packet is a segment without data, and what it has beyond
//! TCP's header, as well as the bytes of telemetry, follows the IP packet:
//!
//! ```text
//! Ethernet │ IPv4 │ TCP │ payload of a packet that is not trimmed │ telemetry, padding
//!          └───────── total length of IPv4 ──────────────────────┘
//!          └───────── size on the wire ──────────────────────────────────────────────┘
//! ```

use super::{Flags, PacketRecord};

const ETHERNET: usize = 14;
const IPV4: usize = 20;
const TCP: usize = 20;

/// A packet's headers, and its length on the wire with the payload.
pub(super) struct CapturedHeaders {
    pub(super) headers: Vec<u8>,
    pub(super) wire_bytes: u32,
}

impl CapturedHeaders {
    pub(super) fn of(packet: &PacketRecord<'_>) -> CapturedHeaders {
        let tcp = tcp_header(packet);
        let ip = ip_header(packet, tcp.len());
        let mut headers = Vec::with_capacity(ETHERNET + ip.len() + tcp.len());
        headers.extend(mac(packet.destination));
        headers.extend(mac(packet.source));
        headers.extend(0x0800u16.to_be_bytes());
        headers.extend(&ip);
        headers.extend(&tcp);
        let in_ip = (IPV4 + tcp.len()) as u32 + payload(packet, tcp.len());
        CapturedHeaders { wire_bytes: ETHERNET as u32 + in_ip.max(packet.size), headers }
    }
}

/// The payload that the packet still has, as far as an IPv4 packet has room for it.
fn payload(packet: &PacketRecord<'_>, tcp_len: usize) -> u32 {
    let left = if packet.flags.has(Flags::TRIMMED) { 0 } else { packet.payload };
    left.min(u32::from(u16::MAX) - (IPV4 + tcp_len) as u32)
}

/// Returns whether the packet opens a connection. A trimmed packet that has the flag goes back to its sender.
fn is_syn(packet: &PacketRecord<'_>) -> bool {
    packet.flags.has(Flags::SYN) && !packet.flags.has(Flags::TRIMMED)
}

/// A locally administered address.
fn mac(host: u32) -> [u8; 6] {
    let [a, b, c, d] = host.to_be_bytes();
    [2, 0, a, b, c, d]
}

fn address(host: u32) -> [u8; 4] {
    let [_, b, c, d] = host.wrapping_add(1).to_be_bytes();
    [10, b, c, d]
}

/// The ports of the sender and of the receiver: the lower-numbered host always has the first.
fn ports(packet: &PacketRecord<'_>) -> (u16, u16) {
    const FIRST: u64 = 1_024;
    const PORTS: u64 = 64_000;
    let lower = (FIRST + packet.flow % PORTS) as u16;
    let higher = (FIRST + packet.flow / PORTS % PORTS) as u16;
    if packet.source <= packet.destination { (lower, higher) } else { (higher, lower) }
}

fn ip_header(packet: &PacketRecord<'_>, tcp_len: usize) -> [u8; IPV4] {
    let total = (IPV4 + tcp_len) as u32 + payload(packet, tcp_len);
    let mut ip = [0; IPV4];
    ip[0] = 0x45;
    ip[1] = packet.ecn as u8;
    ip[2..4].copy_from_slice(&(total as u16).to_be_bytes());
    ip[6] = 0x40; // Do not fragment.
    ip[8] = 64;
    ip[9] = 6;
    ip[12..16].copy_from_slice(&address(packet.source));
    ip[16..20].copy_from_slice(&address(packet.destination));
    let checksum = internet_checksum(&[&ip]);
    ip[10..12].copy_from_slice(&checksum.to_be_bytes());
    ip
}

fn tcp_header(packet: &PacketRecord<'_>) -> Vec<u8> {
    let (from, to) = ports(packet);
    let mut tcp = Vec::with_capacity(TCP + 28);
    tcp.extend(from.to_be_bytes());
    tcp.extend(to.to_be_bytes());
    let sequence = if is_syn(packet) { packet.seq as u32 } else { after_syn(packet.seq) };
    tcp.extend(sequence.to_be_bytes());
    tcp.extend(packet.ack.map_or(0, after_syn).to_be_bytes());
    let mut options = sack_option(packet.sack);
    if is_syn(packet) {
        options.extend(WINDOW_SCALE);
    }
    let words = ((TCP + options.len()) / 4) as u8;
    let bits = [
        (is_syn(packet), 0x02),
        (packet.ack.is_some(), 0x10),
        (packet.flags.has(Flags::ECE), 0x40),
        (packet.flags.has(Flags::CWR), 0x80),
    ];
    let flags = bits.iter().filter(|(set, _)| *set).fold(0u8, |flags, (_, bit)| flags | bit);
    tcp.extend([words << 4, flags]);
    tcp.extend(u16::MAX.to_be_bytes());
    tcp.extend([0; 4]);
    tcp.extend(options);
    let length = (tcp.len() as u32 + payload(packet, tcp.len())) as u16;
    let mut pseudo = [0; 12];
    pseudo[0..4].copy_from_slice(&address(packet.source));
    pseudo[4..8].copy_from_slice(&address(packet.destination));
    pseudo[9] = 6;
    pseudo[10..12].copy_from_slice(&length.to_be_bytes());
    let checksum = internet_checksum(&[&pseudo, &tcp]);
    tcp[16..18].copy_from_slice(&checksum.to_be_bytes());
    tcp
}

/// The sequence number of a byte of the stream: the SYN before it counts as one.
fn after_syn(byte: u64) -> u32 {
    (byte as u32).wrapping_add(1)
}

/// A no-operation and the largest window scale (RFC 7323).
const WINDOW_SCALE: [u8; 4] = [1, 3, 3, 14];

/// Two no-operations and the blocks (RFC 2018).
fn sack_option(blocks: &[(u64, u64)]) -> Vec<u8> {
    let blocks = &blocks[..blocks.len().min(3)];
    if blocks.is_empty() {
        return Vec::new();
    }
    let mut option = vec![1, 1, 5, 2 + 8 * blocks.len() as u8];
    for &(first, after) in blocks {
        option.extend(after_syn(first).to_be_bytes());
        option.extend(after_syn(after).to_be_bytes());
    }
    option
}

/// RFC 1071, over parts of even length.
fn internet_checksum(parts: &[&[u8]]) -> u16 {
    let words = parts.iter().flat_map(|part| part.chunks(2));
    let mut sum: u32 =
        words.map(|pair| u32::from(pair[0]) << 8 | pair.get(1).map_or(0, |&low| u32::from(low))).sum();
    while sum > 0xFFFF {
        sum = (sum & 0xFFFF) + (sum >> 16);
    }
    !(sum as u16)
}

#[cfg(test)]
mod tests {
    use plimsoll_units::Time;

    use super::*;
    use crate::capture::EcnField;

    /// A frame is as long as its packet, and the length in the IP header is that of the payload which is left.
    #[test]
    fn a_frame_has_the_size_of_its_packet() {
        let data = PacketRecord {
            time: Time::ZERO,
            interface: 0,
            source: 3,
            destination: 0,
            flow: 1,
            seq: 1_000,
            ack: Some(0),
            size: 1_500,
            payload: 1_460,
            flags: Flags::default(),
            ecn: EcnField::NotEct,
            sack: &[],
        };
        let trimmed = PacketRecord { size: 64, flags: Flags::TRIMMED, ..data };
        let bounced = PacketRecord { flags: Flags::TRIMMED.with(Flags::SYN), ..trimmed };
        let telemetry = PacketRecord { size: 1_542, ..data };
        let large_header = PacketRecord { size: 9_064, payload: 9_000, ..data };
        // SACK blocks take 12 B more than the model counts.
        let ack = PacketRecord { size: 40, payload: 0, sack: &[(1, 2)], ..data };
        for (packet, wire, of_ip) in [
            (data, 1_514, 1_500),
            (trimmed, 78, 40),
            (bounced, 78, 40),
            (telemetry, 1_556, 1_500),
            (large_header, 9_078, 9_040),
            (ack, 66, 52),
        ] {
            let CapturedHeaders { headers, wire_bytes } = CapturedHeaders::of(&packet);
            let total = u16::from_be_bytes([headers[ETHERNET + 2], headers[ETHERNET + 3]]);
            assert_eq!((wire_bytes, total), (wire, of_ip), "{packet:?}");
            assert_eq!(headers[ETHERNET + IPV4 + 13] & 0x02, 0, "no SYN: {packet:?}");
        }
    }

    #[test]
    fn checksum_of_a_known_header() {
        // The example of many textbooks; its checksum is b861.
        let header =
            [0x45, 0, 0, 0x73, 0, 0, 0x40, 0, 0x40, 0x11, 0, 0, 0xc0, 0xa8, 0, 1, 0xc0, 0xa8, 0, 0xc7];
        assert_eq!(internet_checksum(&[&header]), 0xb861);
    }
}
