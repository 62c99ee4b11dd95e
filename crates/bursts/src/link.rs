//! The headers below IP. Any link header may be followed by any number of VLAN tags, by PPPoE, MPLS labels or LLC with
//! SNAP, and then by IP; each layer names only the layer that follows it, so that they stack freely.

/// The link types that [`crate::Reader`] supports, for messages.
pub const LINK_TYPES: &str = "1 (Ethernet), 101, 12, 14, 228, 229 (raw IP), 113 and 276 (Linux cooked capture), 0 and \
                              108 (BSD loopback), 9 (PPP), 104 (Cisco HDLC)";

/// The outermost header of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LinkLayer {
    Ethernet,
    Ip,
    /// The address family of the machine that captured, in its byte order.
    Loopback,
    Ppp,
    /// A header of this many bytes, with the EtherType at this place.
    Typed {
        header: usize,
        ether_type: usize,
    },
}

impl LinkLayer {
    /// Returns the link of a number of the registry of link types.
    pub(crate) fn of(number: u32) -> Result<LinkLayer, u32> {
        match number {
            1 => Ok(LinkLayer::Ethernet),
            12 | 14 | 101 | 228 | 229 => Ok(LinkLayer::Ip),
            0 | 108 => Ok(LinkLayer::Loopback),
            9 => Ok(LinkLayer::Ppp),
            104 => Ok(LinkLayer::Typed { header: 4, ether_type: 2 }),
            113 => Ok(LinkLayer::Typed { header: 16, ether_type: 14 }),
            276 => Ok(LinkLayer::Typed { header: 20, ether_type: 0 }),
            other => Err(other),
        }
    }

    /// Returns the bytes of the link's own header, which another link does not have.
    pub(crate) fn header_bytes(self) -> u32 {
        match self {
            LinkLayer::Ethernet => 14,
            LinkLayer::Ip => 0,
            LinkLayer::Loopback | LinkLayer::Ppp => 4,
            LinkLayer::Typed { header, .. } => header as u32,
        }
    }

    /// Returns the packet behind the link's header and all that lies between it and IP.
    pub(crate) fn network(self, data: &[u8]) -> Option<NetworkPacket<'_>> {
        match self {
            LinkLayer::Ethernet => below(data.get(12..)?),
            LinkLayer::Ip => by_version(data),
            // The value of AF_INET6 differs between systems, the first nibble of IP does not.
            LinkLayer::Loopback => by_version(data.get(4..)?),
            LinkLayer::Ppp => ppp(data.strip_prefix(&[0xff, 0x03]).unwrap_or(data)),
            LinkLayer::Typed { header, ether_type } => {
                let kind = data.get(ether_type..)?.first_chunk::<2>()?;
                after(u16::from_be_bytes(*kind), data.get(header..)?)
            }
        }
    }
}

/// A packet of the network layer, from its first byte on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NetworkPacket<'a> {
    V4(&'a [u8]),
    V6(&'a [u8]),
}

/// Parses an EtherType and the layer that follows it.
fn below(bytes: &[u8]) -> Option<NetworkPacket<'_>> {
    let (kind, rest) = bytes.split_first_chunk::<2>()?;
    after(u16::from_be_bytes(*kind), rest)
}

/// Parses the layer that follows this EtherType. Every step consumes bytes, so the loop ends.
pub(crate) fn after(mut kind: u16, mut bytes: &[u8]) -> Option<NetworkPacket<'_>> {
    loop {
        match kind {
            IPV4 => return Some(NetworkPacket::V4(bytes)),
            IPV6 => return Some(NetworkPacket::V6(bytes)),
            MPLS_UNICAST | MPLS_MULTICAST => return mpls(bytes),
            PPPOE_SESSION => return ppp(bytes.get(6..)?),
            tag if TAGS.contains(&tag) => {
                let next = bytes.get(2..)?.first_chunk::<2>()?;
                (kind, bytes) = (u16::from_be_bytes(*next), bytes.get(4..)?);
            }
            // A length (IEEE 802.3), followed by LLC with SNAP, whose organisation is 0 for EtherTypes.
            ..=LONGEST_802_3 if bytes.starts_with(&[0xaa, 0xaa, 0x03, 0, 0, 0]) => {
                let next = bytes.get(6..)?.first_chunk::<2>()?;
                (kind, bytes) = (u16::from_be_bytes(*next), bytes.get(8..)?);
            }
            _ => return None,
        }
    }
}

/// Parses the layer that follows MPLS labels (RFC 3032). The labels do not name it: it is IP by its version, or, behind
/// a control word (RFC 4385) or without one, an Ethernet frame.
fn mpls(bytes: &[u8]) -> Option<NetworkPacket<'_>> {
    let labels = bytes.chunks_exact(4).position(|label| label[2] & 1 != 0)? + 1;
    let inside = bytes.get(4 * labels..)?;
    match inside.first()? >> 4 {
        4 | 6 => by_version(inside),
        0 => below(inside.get(4 + 12..)?),
        _ => below(inside.get(12..)?),
    }
}

/// Parses a PPP protocol number (RFC 1661), of one or two bytes, and the layer that follows it.
fn ppp(bytes: &[u8]) -> Option<NetworkPacket<'_>> {
    match bytes {
        [0x21, rest @ ..] | [0x00, 0x21, rest @ ..] => Some(NetworkPacket::V4(rest)),
        [0x57, rest @ ..] | [0x00, 0x57, rest @ ..] => Some(NetworkPacket::V6(rest)),
        [0x02, 0x81, rest @ ..] | [0x02, 0x83, rest @ ..] => mpls(rest),
        _ => None,
    }
}

fn by_version(bytes: &[u8]) -> Option<NetworkPacket<'_>> {
    match bytes.first()? >> 4 {
        4 => Some(NetworkPacket::V4(bytes)),
        6 => Some(NetworkPacket::V6(bytes)),
        _ => None,
    }
}

/// Returns the packet inside a tunnel, where the payload of an IP packet of this protocol is one: VXLAN (RFC 7348),
/// GENEVE (RFC 8926), GRE (RFC 2784, 2890) with IP or Ethernet inside, ERSPAN, and IP in IP (RFC 2003, 4213).
pub(crate) fn inside_tunnel(protocol: u8, payload: &[u8]) -> Option<NetworkPacket<'_>> {
    match protocol {
        IP_IN_IP => Some(NetworkPacket::V4(payload)),
        IPV6_IN_IP => Some(NetworkPacket::V6(payload)),
        GRE => gre(payload),
        UDP => {
            let (header, rest) = payload.split_first_chunk::<8>()?;
            match u16::from_be_bytes([header[2], header[3]]) {
                // The eight bytes of VXLAN have no length of their own.
                VXLAN if rest.first()? & 0x08 != 0 => below(rest.get(8 + 12..)?),
                GENEVE => {
                    let options = usize::from(rest.first()? & 0x3f) * 4;
                    let kind = u16::from_be_bytes(*rest.get(2..)?.first_chunk::<2>()?);
                    ether_or(kind, rest.get(8 + options..)?)
                }
                _ => None,
            }
        }
        _ => None,
    }
}

fn gre(bytes: &[u8]) -> Option<NetworkPacket<'_>> {
    let (header, rest) = bytes.split_first_chunk::<4>()?;
    let flags = u16::from_be_bytes([header[0], header[1]]);
    let has_sequence = flags & 0x1000 != 0;
    // Checksum with routing, key and sequence number, each of four bytes where its flag is set.
    let optional = [flags & 0xc000 != 0, flags & 0x2000 != 0, has_sequence];
    let inside = rest.get(4 * optional.iter().filter(|is_there| **is_there).count()..)?;
    match u16::from_be_bytes([header[2], header[3]]) {
        // Type I has no sequence number and no header, type II a header of 8 bytes, type III one of 12, and 8 more
        // where its last bit says so.
        ERSPAN if !has_sequence => below(inside.get(12..)?),
        ERSPAN => below(inside.get(8 + 12..)?),
        ERSPAN_III => {
            let more = if inside.get(11)? & 1 != 0 { 8 } else { 0 };
            below(inside.get(12 + more + 12..)?)
        }
        kind => ether_or(kind, inside),
    }
}

/// Parses an Ethernet frame, where the type says so (RFC 1701), or the layer that follows another EtherType.
fn ether_or(kind: u16, bytes: &[u8]) -> Option<NetworkPacket<'_>> {
    if kind == BRIDGED_ETHERNET { below(bytes.get(12..)?) } else { after(kind, bytes) }
}

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const MPLS_UNICAST: u16 = 0x8847;
const MPLS_MULTICAST: u16 = 0x8848;
const PPPOE_SESSION: u16 = 0x8864;
const BRIDGED_ETHERNET: u16 = 0x6558;
const ERSPAN: u16 = 0x88be;
const ERSPAN_III: u16 = 0x22eb;
/// VLAN tags: IEEE 802.1Q, 802.1ad, and two predecessors of the latter.
const TAGS: [u16; 4] = [0x8100, 0x88a8, 0x9100, 0x9200];
/// The greatest length of IEEE 802.3; larger numbers are EtherTypes.
const LONGEST_802_3: u16 = 1_500;
const UDP: u8 = 17;
const IP_IN_IP: u8 = 4;
const IPV6_IN_IP: u8 = 41;
const GRE: u8 = 47;
const VXLAN: u16 = 4_789;
const GENEVE: u16 = 6_081;
