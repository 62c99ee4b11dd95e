//! Readers of a switch's messages. Each function takes one whole message, header included, and returns None if lengths
//! do not fit: the answer to that is OFPBRC_BAD_LEN.

use crate::wire::{HEADER_BYTES, Version, u16_at, u32_at, u64_at};

/// The contents of a features reply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Features {
    /// The switch's number, which its connections share.
    pub datapath: u64,
    /// True for an auxiliary connection (1.3), false for the main one.
    pub auxiliary: bool,
}

/// A packet that the switch sends for a decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PacketIn<'a> {
    /// The switch's buffer with the packet; [`NO_BUFFER`] if it keeps none.
    pub buffer: u32,
    /// The packet's whole length in bytes.
    pub total_bytes: u16,
    /// The port by which the packet arrived.
    pub port: u32,
    /// Its beginning; all of it if the switch does not keep it, or was asked for all.
    pub data: &'a [u8],
}

impl PacketIn<'_> {
    /// Reports whether it can be forwarded: the switch has it, or this has all of it.
    pub fn is_whole(&self) -> bool {
        self.buffer != NO_BUFFER || self.data.len() >= usize::from(self.total_bytes)
    }
}

/// A port was added, changed or removed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PortStatus {
    /// The number of the port.
    pub port: u32,
    /// True if the port leads nowhere any more: it is removed, switched off, or its link is down.
    pub gone: bool,
}

/// OFP_NO_BUFFER: the switch keeps no packet.
pub const NO_BUFFER: u32 = u32::MAX;

/// Returns the version bitmap of a hello, if there is one: bit n means wire version n (1.3.5, section 7.5.1). Elements
/// that do not fit the message end the list, since a hello must not be refused for the elements of a later version.
pub fn hello_bitmap(message: &[u8]) -> Option<u32> {
    const VERSION_BITMAP: u16 = 1;
    let mut elements = message.get(HEADER_BYTES..)?;
    loop {
        let (element, length) = (u16_at(elements, 0)?, usize::from(u16_at(elements, 2)?));
        let body = elements.get(4..length)?;
        if element == VERSION_BITMAP {
            return u32_at(body, 0);
        }
        elements = elements.get(length.next_multiple_of(8)..)?;
    }
}

/// Parses a FEATURES_REPLY.
pub fn features(version: Version, message: &[u8]) -> Option<Features> {
    const BYTES: usize = 32;
    const PORT_BYTES_V10: usize = 48;
    let ports = message.len().checked_sub(BYTES)?;
    let (fits, auxiliary) = match version {
        Version::V10 => (ports.is_multiple_of(PORT_BYTES_V10), false),
        Version::V13 => (ports == 0, message[21] != 0),
    };
    fits.then_some(Features { datapath: u64_at(message, 8)?, auxiliary })
}

/// Parses a PACKET_IN message.
pub fn packet_in(version: Version, message: &[u8]) -> Option<PacketIn<'_>> {
    let (buffer, total_bytes) = (u32_at(message, 8)?, u16_at(message, 12)?);
    let (port, data) = match version {
        Version::V10 => (u32::from(u16_at(message, 14)?), message.get(18..)?),
        Version::V13 => {
            const MATCH: usize = 24;
            let length = usize::from(u16_at(message, MATCH + 2)?);
            let fields = message.get(MATCH + 4..MATCH + length)?;
            (in_port(fields)?, message.get(MATCH + length.next_multiple_of(8) + 2..)?)
        }
    };
    Some(PacketIn { buffer, total_bytes, port, data })
}

/// Parses a PORT_STATUS message.
pub fn port_status(version: Version, message: &[u8]) -> Option<PortStatus> {
    const REASON_DELETE: u8 = 1;
    const CONFIG_PORT_DOWN: u32 = 1;
    const STATE_LINK_DOWN: u32 = 1;
    let (length, port, config) = match version {
        Version::V10 => (64, u32::from(u16_at(message, 16)?), 40),
        Version::V13 => (80, u32_at(message, 16)?, 48),
    };
    if message.len() != length {
        return None;
    }
    let down = u32_at(message, config)? & CONFIG_PORT_DOWN != 0
        || u32_at(message, config + 4)? & STATE_LINK_DOWN != 0;
    Some(PortStatus { port, gone: down || message[8] == REASON_DELETE })
}

/// Returns the ingress port among a packet-in's OXM fields (1.3.5, section 7.2.3.7).
fn in_port(mut fields: &[u8]) -> Option<u32> {
    /// Class OPENFLOW_BASIC, field IN_PORT, no mask, 4 bytes.
    const IN_PORT: u32 = 0x8000_0004;
    loop {
        let header = u32_at(fields, 0)?;
        let length = header as usize & 0xff;
        let value = fields.get(4..4 + length)?;
        if header == IN_PORT {
            return u32_at(value, 0);
        }
        fields = &fields[4 + length..];
    }
}
