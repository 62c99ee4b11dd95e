//! Ethernet frames: the fields that the fabric needs, the fields that it may change, and the edge's own answers.
//!
//! IPv4 and IPv6 with any VLAN tags before them. The changes keep every checksum right (RFC 1624, equation 3; IPv6 has
//! none over its traffic class). The code trusts no length in a frame.

use std::net::{Ipv4Addr, Ipv6Addr};

use plimsoll_fabric::net::{EcnField, HostId};

/// Bytes of an Ethernet header without tags.
pub const ETHERNET: usize = 14;

/// The length of a VLAN tag in bytes.
pub const VLAN_TAG: usize = 4;

/// Most VLAN tags before the IP header.
const TAGS_MAX: usize = 2;

const IPV4: u16 = 0x0800;
const ARP: u16 = 0x0806;
const VLAN: u16 = 0x8100;
const SERVICE_VLAN: u16 = 0x88a8;
const IPV6: u16 = 0x86dd;

const TCP: u8 = 6;
const UDP: u8 = 17;
const ICMPV6: u8 = 58;

/// The hardware address of a host: locally administered, and its number.
pub fn mac(host: HostId) -> [u8; 6] {
    let [_, a, b, c] = host.0.to_be_bytes();
    [0x02, 0x50, 0x00, a, b, c]
}

/// The IPv4 address of a host, in 10.0.0.0/8, counted from 10.0.0.1.
pub fn ipv4(host: HostId) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(Ipv4Addr::new(10, 0, 0, 1)) + host.0)
}

/// The IPv6 address of a host, in fd50::/64, counted from fd50::1.
pub fn ipv6(host: HostId) -> Ipv6Addr {
    Ipv6Addr::from(u128::from(Ipv6Addr::new(0xfd50, 0, 0, 0, 0, 0, 0, 1)) + u128::from(host.0))
}

/// Further IPv4 addresses of a host, for subflows of MPTCP: `number` is 1 to 15.
pub fn alias(host: HostId, number: u8) -> Ipv4Addr {
    Ipv4Addr::from(u32::from(ipv4(host)) + (u32::from(number & 15) << ALIAS_BIT))
}

/// The host with an IPv4 address in 10.0.0.0/8, its first or an alias.
fn host_of(address: u32, hosts: u32) -> Option<HostId> {
    numbers_of(address).map(|(host, _)| host).filter(|host| host.0 < hosts)
}

/// The host with an IPv4 address in 10.0.0.0/8, of any number, and the number of the alias: 0 is its first address.
fn numbers_of(address: u32) -> Option<(HostId, u8)> {
    let number = address.checked_sub(u32::from(ipv4(HostId(0))))?;
    let host = number & ((1 << ALIAS_BIT) - 1);
    (number >> 24 == 0).then_some((HostId(host), (number >> ALIAS_BIT) as u8))
}

/// The host that has the IPv4 address, its first or an alias.
pub(crate) fn host_at(address: Ipv4Addr, hosts: u32) -> Option<HostId> {
    host_of(u32::from(address), hosts)
}

/// The host that has the IPv4 address, and the number of the alias: 0 is its first address.
pub(crate) fn end_at(address: Ipv4Addr, hosts: u32) -> Option<(HostId, u8)> {
    numbers_of(u32::from(address)).filter(|(host, _)| host.0 < hosts)
}

/// Where the number of an alias begins in an address.
const ALIAS_BIT: u32 = 20;

/// Most hosts that have addresses, with their aliases.
pub const HOSTS_MAX: u32 = (1 << ALIAS_BIT) - 2;

/// The fields of a frame that the fabric needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// The host that the frame is addressed to.
    pub to: HostId,
    /// A hash of addresses, protocol and ports, the same for both directions.
    pub flow: u32,
    /// Whether it travels from the larger of the two ends to the smaller.
    pub from_larger: bool,
    /// The priority of its VLAN tag, if it has one.
    pub tag_priority: Option<u8>,
    /// Its ECN bits; ECT(1) counts as ECT(0).
    pub ecn: EcnField,
    /// Bytes of the transport's payload; all that follows the IP header where that is not known.
    pub payload: u16,
    /// A TCP segment with ECE that opens no connection.
    pub ece: bool,
    /// A TCP segment without payload.
    pub is_control: bool,
    /// The larger number of its ends' alias addresses: 0 between first addresses.
    pub alias: u8,
    /// Its DSCP, 0 to 63.
    pub dscp: u8,
}

/// The lower three bits of the DSCP of packets that only the packet switch of a hybrid network carries. These code
/// points are for local use (RFC 2474, section 6); their upper three bits are the priority, as in any other.
pub const PACKET_ONLY: u8 = 0b011;
/// The lower three bits of the DSCP of packets that only circuits carry.
pub const CIRCUIT_ONLY: u8 = 0b111;

/// Where the network layer begins, and the outermost tag's priority.
#[derive(Clone, Copy, Debug)]
struct NetworkHeader {
    kind: u16,
    at: usize,
    tag_priority: Option<u8>,
}

fn word(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn network(frame: &[u8]) -> Option<NetworkHeader> {
    let mut at = ETHERNET - 2;
    let mut tag_priority = None;
    for _ in 0..=TAGS_MAX {
        let kind = word(frame, at)?;
        if kind != VLAN && kind != SERVICE_VLAN {
            return Some(NetworkHeader { kind, at: at + 2, tag_priority });
        }
        tag_priority = tag_priority.or(Some(frame.get(at + 2)? >> 5));
        at += VLAN_TAG;
    }
    None
}

/// Returns the host that the frame is for; `None` for a group, or a host that does not exist.
fn destination(frame: &[u8], hosts: u32) -> Option<HostId> {
    let [a, b, c] = *frame.get(..6)?.strip_prefix(&[0x02, 0x50, 0x00])? else { return None };
    let host = u32::from_be_bytes([0, a, b, c]);
    (host < hosts).then_some(HostId(host))
}

impl Header {
    /// Returns the lower three bits of its DSCP, which say by which switches of a hybrid network it may travel.
    pub fn pool(&self) -> u8 {
        self.dscp & 7
    }

    /// Parses a frame of a network of `hosts` hosts; `None` if it is not one that the fabric carries: IP to one of its
    /// hosts.
    pub fn parse(frame: &[u8], hosts: u32) -> Option<Header> {
        let to = destination(frame, hosts)?;
        let NetworkHeader { kind, at, tag_priority } = network(frame)?;
        let ip = frame.get(at..)?;
        let (traffic_class, source, target, protocol, header) = match kind {
            IPV4 => {
                let header = usize::from(*ip.first()? & 15) * 4;
                let fixed = ip.get(..20).filter(|fixed| fixed[0] >> 4 == 4 && header >= 20)?;
                // Fragments but the first have no ports; all are one flow without them.
                let fragment = u16::from_be_bytes([fixed[6], fixed[7]]) & 0x3fff != 0;
                let protocol = if fragment { 0 } else { fixed[9] };
                (fixed[1], &fixed[12..16], &fixed[16..20], protocol, header)
            }
            IPV6 => {
                let fixed = ip.get(..40).filter(|fixed| fixed[0] >> 4 == 6)?;
                (fixed[0] << 4 | fixed[1] >> 4, &fixed[8..24], &fixed[24..40], fixed[6], 40)
            }
            _ => return None,
        };
        let transport = ip.get(header..)?;
        let ports = match protocol {
            TCP | UDP => word(transport, 0).zip(word(transport, 2)),
            _ => None,
        };
        let (source_port, target_port) = ports.unwrap_or_default();
        let (one, other) = ((source, source_port), (target, target_port));
        let from_larger = one > other;
        let (low, high) = if from_larger { (other, one) } else { (one, other) };
        let tcp_flags = if protocol == TCP { transport.get(13).copied().unwrap_or(0) } else { 0 };
        let alias = |address: &[u8]| {
            let address = <[u8; 4]>::try_from(address).ok()?;
            numbers_of(u32::from_be_bytes(address)).map(|(_, alias)| alias)
        };
        let aliases = [source, target].map(|address| alias(address).unwrap_or(0));
        let own = match protocol {
            TCP => usize::from(transport.get(12).copied().unwrap_or(0) >> 4) * 4,
            UDP => 8,
            _ => 0,
        };
        let payload = transport.len().saturating_sub(own).min(usize::from(u16::MAX));
        Some(Header {
            to,
            flow: flow_hash(low, high, protocol),
            from_larger,
            tag_priority,
            ecn: match traffic_class & 3 {
                0 => EcnField::NotEct,
                3 => EcnField::Ce,
                _ => EcnField::Ect,
            },
            payload: payload as u16,
            ece: tcp_flags & 0x40 != 0 && tcp_flags & 0x02 == 0,
            is_control: protocol == TCP && payload == 0,
            alias: aliases[0].max(aliases[1]),
            dscp: traffic_class >> 2,
        })
    }
}

/// FNV-1a with a final mix, over both ends.
fn flow_hash(low: (&[u8], u16), high: (&[u8], u16), protocol: u8) -> u32 {
    let ports = [low.1.to_be_bytes(), high.1.to_be_bytes()];
    let bytes = low.0.iter().chain(high.0).chain(ports.as_flattened()).chain(std::slice::from_ref(&protocol));
    let hash = bytes.fold(0xcbf2_9ce4_8422_2325u64, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    // The upper bit marks raw packets of a simulated run and stays clear.
    ((hash ^ hash >> 32) as u32) & (u32::MAX >> 1)
}

/// Writes ECN bits, and a DSCP where one is given, into the IP header of a frame. Other frames stay as they are.
pub fn set_traffic_class(frame: &mut [u8], ecn: u8, dscp: Option<u8>) {
    let Some(NetworkHeader { kind, at, .. }) = network(frame) else { return };
    let Some(ip) = frame.get_mut(at..) else { return };
    let class = |old: u8| dscp.map_or(old & !3, |dscp| dscp << 2) | ecn & 3;
    match kind {
        IPV4 if ip.len() >= 20 => {
            let old = u16::from_be_bytes([ip[0], ip[1]]);
            ip[1] = class(ip[1]);
            let new = u16::from_be_bytes([ip[0], ip[1]]);
            let sum = u16::from_be_bytes([ip[10], ip[11]]);
            let sum = !ones_complement([!sum, !old, new].into_iter());
            ip[10..12].copy_from_slice(&sum.to_be_bytes());
        }
        IPV6 if ip.len() >= 40 => {
            let new = class(ip[0] << 4 | ip[1] >> 4);
            ip[0] = ip[0] & 0xf0 | new >> 4;
            ip[1] = new << 4 | ip[1] & 0x0f;
        }
        _ => {}
    }
}

/// Marks a frame: congestion experienced (RFC 3168, section 5).
pub fn mark(frame: &mut [u8]) {
    set_traffic_class(frame, EcnField::Ce as u8, None);
}

/// The ones' complement sum of `words` (RFC 1071).
fn ones_complement(words: impl Iterator<Item = u16>) -> u16 {
    let mut sum: u64 = words.map(u64::from).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// The answer to a question for the hardware address of another host of `hosts`: ARP (RFC 826) or neighbour
/// discovery (RFC 4861).
pub fn answer(frame: &[u8], hosts: u32) -> Option<Vec<u8>> {
    let NetworkHeader { kind, at, .. } = network(frame)?;
    match kind {
        ARP => answer_arp(frame, at, hosts),
        IPV6 => answer_solicitation(frame, at, hosts),
        _ => None,
    }
}

/// Returns the answer's layers below the network: a copy of the question's, to its sender, from `host`.
fn reply_to(frame: &[u8], at: usize, host: HostId) -> Option<Vec<u8>> {
    let mut reply = Vec::with_capacity(at + 72);
    reply.extend_from_slice(frame.get(6..12)?);
    reply.extend_from_slice(&mac(host));
    reply.extend_from_slice(frame.get(12..at)?);
    Some(reply)
}

fn answer_arp(frame: &[u8], at: usize, hosts: u32) -> Option<Vec<u8>> {
    let arp = frame.get(at..at + 28)?;
    // Ethernet, IPv4, address lengths, request.
    if arp[..8] != [0, 1, 8, 0, 6, 4, 0, 1] {
        return None;
    }
    let target = u32::from_be_bytes([arp[24], arp[25], arp[26], arp[27]]);
    let host = host_of(target, hosts)?;
    // A host that asks for its own address tests whether another has it: none has, so it gets no answer.
    if arp[14..18] == arp[24..28] || frame.get(6..12)? == mac(host) {
        return None;
    }
    let mut reply = reply_to(frame, at, host)?;
    reply.extend_from_slice(&[0, 1, 8, 0, 6, 4, 0, 2]);
    reply.extend_from_slice(&mac(host));
    reply.extend_from_slice(&arp[24..28]);
    reply.extend_from_slice(&arp[8..18]);
    Some(reply)
}

fn answer_solicitation(frame: &[u8], at: usize, hosts: u32) -> Option<Vec<u8>> {
    let ip = frame.get(at..at + 64)?;
    let (source, message) = (&ip[8..24], &ip[40..64]);
    if ip[6] != ICMPV6 || message[0] != SOLICITATION || source.iter().all(|byte| *byte == 0) {
        return None;
    }
    let target = u128::from_be_bytes(message[8..24].try_into().ok()?);
    let number = target.checked_sub(u128::from(ipv6(HostId(0))))?;
    let host = HostId(u32::try_from(number).ok().filter(|number| *number < hosts)?);
    if frame.get(6..12)? == mac(host) {
        return None;
    }
    let mut advertisement = vec![ADVERTISEMENT, 0, 0, 0, 0x60, 0, 0, 0]; // solicited, override
    advertisement.extend_from_slice(&message[8..24]);
    advertisement.extend_from_slice(&[2, 1]); // the target's link-layer address, 8 bytes
    advertisement.extend_from_slice(&mac(host));
    let pseudo = message[8..24].iter().chain(source).copied();
    let pseudo = pseudo.chain([0, 0, 0, advertisement.len() as u8, 0, 0, 0, ICMPV6]);
    let all: Vec<u8> = pseudo.chain(advertisement.iter().copied()).collect();
    let words = all.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let sum = !ones_complement(words);
    advertisement[2..4].copy_from_slice(&sum.to_be_bytes());
    let mut reply = reply_to(frame, at, host)?;
    reply.extend_from_slice(&[0x60, 0, 0, 0, 0, advertisement.len() as u8, ICMPV6, 255]);
    reply.extend_from_slice(&message[8..24]);
    reply.extend_from_slice(source);
    reply.extend_from_slice(&advertisement);
    Some(reply)
}

const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;

#[cfg(test)]
mod tests;
