//! Writers of a controller's messages, at the end of a buffer.

use crate::frame::Ethernet;
use crate::read::NO_BUFFER;
use crate::wire::{ERROR_DATA_BYTES, ErrorCode, HEADER_BYTES, Version, Versions, kind};

/// The destination of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Output {
    /// The packet leaves by one port.
    Port(u32),
    /// The packet leaves by every port except the one that it arrived by, and ports that must not flood (OFPP_FLOOD).
    Flood,
    /// The controller port (OFPP_CONTROLLER), with the number of packet bytes to send.
    Controller(u16),
}

impl Output {
    fn number(self, version: Version) -> u32 {
        let reserved = |low: u32| match version {
            Version::V10 => low & 0xffff,
            Version::V13 => low,
        };
        match self {
            Output::Port(port) => port,
            Output::Flood => reserved(0xffff_fffb),
            Output::Controller(_) => reserved(0xffff_fffd),
        }
    }

    fn bytes_max(self) -> u16 {
        match self {
            Output::Controller(bytes) => bytes,
            Output::Port(_) | Output::Flood => 0,
        }
    }
}

/// The packets that a flow matches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Match {
    /// The entry matches all packets.
    Any,
    /// Packets from one station to another through one port.
    Pair(u32, Ethernet),
    /// Packets to one station; its VLAN and destination count.
    To(Ethernet),
    /// All packets that arrive by one port.
    Port(u32),
}

/// The change that a flow-mod makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowChange {
    /// Adds a flow, or replaces the one with the same match and priority.
    Add {
        /// Seconds without a packet after which the flow is removed; 0 for never.
        idle_seconds: u16,
        /// Seconds after which the flow is removed; 0 for never.
        hard_seconds: u16,
        /// The entry with the higher priority applies.
        priority: u16,
        /// The packet kept by the switch that takes this flow at once; [`NO_BUFFER`] for none.
        buffer: u32,
        /// The destination of its packets.
        output: Output,
    },
    /// Removes all flows within the match; only flows to one port, or all.
    Delete(Option<u32>),
}

/// The end of a buffer, to which messages of one version and transaction are written.
pub struct Writer<'a> {
    /// The version of the protocol.
    pub version: Version,
    /// The transaction's number.
    pub transaction: u32,
    /// The buffer to which messages are appended.
    pub out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    /// Writes HELLO with the version bitmap.
    pub fn hello(&mut self, versions: Versions) {
        self.message(kind::HELLO, |out| {
            out.extend([0, 1, 0, 8]);
            out.extend(versions.bitmap().to_be_bytes());
        });
    }

    /// Writes a message of a header only: FEATURES_REQUEST, BARRIER_REQUEST.
    pub fn bare(&mut self, kind: u8) {
        self.message(kind, |_| ());
    }

    /// Writes ECHO_REPLY with the request's body.
    pub fn echo_reply(&mut self, body: &[u8]) {
        self.message(kind::ECHO_REPLY, |out| out.extend(body));
    }

    /// Writes SET_CONFIG: no special handling of fragments, and a packet-in has at most `miss_send_bytes` bytes of its
    /// packet.
    pub fn set_config(&mut self, miss_send_bytes: u16) {
        self.message(kind::SET_CONFIG, |out| {
            out.extend([0, 0]);
            out.extend(miss_send_bytes.to_be_bytes());
        });
    }

    /// Writes ERROR with its cause: the first 64 bytes of the message, or a text for [`ErrorCode::INCOMPATIBLE`].
    pub fn error(&mut self, error: ErrorCode, about: &[u8]) {
        self.message(kind::ERROR, |out| {
            out.extend(error.class.to_be_bytes());
            out.extend(error.code.to_be_bytes());
            out.extend(&about[..about.len().min(ERROR_DATA_BYTES)]);
        });
    }

    /// Appends a FLOW_MOD message.
    pub fn flow_mod(&mut self, matched: Match, change: FlowChange) {
        match self.version {
            Version::V10 => self.flow_mod_v10(matched, change),
            Version::V13 => self.flow_mod_v13(matched, change),
        }
    }

    /// Writes PACKET_OUT of the packet that the switch keeps in `buffer`, or, if that is [`NO_BUFFER`], of `data`.
    /// False, with nothing written, if it does not fit a message.
    pub fn packet_out(&mut self, buffer: u32, in_port: u32, output: Output, data: &[u8]) -> bool {
        let data = if buffer == NO_BUFFER { data } else { &[] };
        let version = self.version;
        if HEADER_BYTES + 32 + data.len() > usize::from(u16::MAX) {
            return false;
        }
        self.message(kind::PACKET_OUT, |out| {
            out.extend(buffer.to_be_bytes());
            match version {
                Version::V10 => {
                    out.extend((in_port as u16).to_be_bytes());
                    out.extend([0, 8]);
                }
                Version::V13 => {
                    out.extend(in_port.to_be_bytes());
                    out.extend([0, 16, 0, 0, 0, 0, 0, 0]);
                }
            }
            put_output(out, version, output);
            out.extend(data);
        });
        true
    }

    fn flow_mod_v10(&mut self, matched: Match, change: FlowChange) {
        const COMMAND_DELETE: u16 = 3;
        const PORT_NONE: u16 = 0xffff;
        self.message(kind::FLOW_MOD, |out| {
            put_match_v10(out, matched);
            out.extend([0; 8]);
            match change {
                FlowChange::Add { idle_seconds, hard_seconds, priority, buffer, output } => {
                    out.extend([0, 0]);
                    out.extend([idle_seconds, hard_seconds, priority].map(u16::to_be_bytes).as_flattened());
                    out.extend(buffer.to_be_bytes());
                    out.extend(PORT_NONE.to_be_bytes());
                    out.extend([0, 0]);
                    put_output(out, Version::V10, output);
                }
                FlowChange::Delete(port) => {
                    out.extend(COMMAND_DELETE.to_be_bytes());
                    out.extend([0; 6]);
                    out.extend(NO_BUFFER.to_be_bytes());
                    out.extend(port.map_or(PORT_NONE, |port| port as u16).to_be_bytes());
                    out.extend([0, 0]);
                }
            }
        });
    }

    fn flow_mod_v13(&mut self, matched: Match, change: FlowChange) {
        const COMMAND_DELETE: u8 = 3;
        const TABLE_ALL: u8 = 0xff;
        const ANY: u32 = u32::MAX;
        self.message(kind::FLOW_MOD, |out| {
            // Cookie and its mask.
            out.extend([0; 16]);
            match change {
                FlowChange::Add { idle_seconds, hard_seconds, priority, buffer, .. } => {
                    out.extend([0, 0]);
                    out.extend([idle_seconds, hard_seconds, priority].map(u16::to_be_bytes).as_flattened());
                    out.extend([buffer, ANY, ANY].map(u32::to_be_bytes).as_flattened());
                }
                FlowChange::Delete(port) => {
                    out.extend([TABLE_ALL, COMMAND_DELETE, 0, 0, 0, 0, 0, 0]);
                    out.extend([NO_BUFFER, port.unwrap_or(ANY), ANY].map(u32::to_be_bytes).as_flattened());
                }
            }
            // Flags, padding.
            out.extend([0; 4]);
            put_match_v13(out, matched);
            if let FlowChange::Add { output, .. } = change {
                // Instruction APPLY_ACTIONS with one action.
                out.extend([0, 4, 0, 24, 0, 0, 0, 0]);
                put_output(out, Version::V13, output);
            }
        });
    }

    fn message(&mut self, kind: u8, body: impl FnOnce(&mut Vec<u8>)) {
        let start = self.out.len();
        self.out.extend([self.version as u8, kind, 0, 0]);
        self.out.extend(self.transaction.to_be_bytes());
        body(self.out);
        let length = u16::try_from(self.out.len() - start).expect("what is written is checked, or short");
        self.out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
    }
}

/// Writes the action OUTPUT (type 0).
fn put_output(out: &mut Vec<u8>, version: Version, output: Output) {
    let port = output.number(version);
    match version {
        Version::V10 => {
            out.extend([0, 0, 0, 8]);
            out.extend((port as u16).to_be_bytes());
            out.extend(output.bytes_max().to_be_bytes());
        }
        Version::V13 => {
            out.extend([0, 0, 0, 16]);
            out.extend(port.to_be_bytes());
            out.extend(output.bytes_max().to_be_bytes());
            out.extend([0; 6]);
        }
    }
}

/// Writes the 40 bytes of ofp_match (1.0.0, section 5.2.3); wildcarded fields are zero.
fn put_match_v10(out: &mut Vec<u8>, matched: Match) {
    const ALL: u32 = (1 << 22) - 1;
    const IN_PORT: u32 = 1 << 0;
    const DL_VLAN: u32 = 1 << 1;
    const DL_SRC: u32 = 1 << 2;
    const DL_DST: u32 = 1 << 3;
    const VLAN_NONE: u16 = 0xffff;
    let (wildcards, port, source, destination, vlan) = match matched {
        Match::Any => (ALL, 0, [0; 6], [0; 6], 0),
        Match::Port(port) => (ALL & !IN_PORT, port as u16, [0; 6], [0; 6], 0),
        Match::Pair(port, ethernet) => (
            ALL & !(IN_PORT | DL_VLAN | DL_SRC | DL_DST),
            port as u16,
            ethernet.source,
            ethernet.destination,
            ethernet.vlan.unwrap_or(VLAN_NONE),
        ),
        Match::To(ethernet) => {
            (ALL & !(DL_VLAN | DL_DST), 0, [0; 6], ethernet.destination, ethernet.vlan.unwrap_or(VLAN_NONE))
        }
    };
    out.extend(wildcards.to_be_bytes());
    out.extend(port.to_be_bytes());
    out.extend(source);
    out.extend(destination);
    out.extend(vlan.to_be_bytes());
    out.extend([0; 20]);
}

/// Writes an OXM match (1.3.5, section 7.2.3), padded.
fn put_match_v13(out: &mut Vec<u8>, matched: Match) {
    const IN_PORT: u8 = 0;
    const ETH_DST: u8 = 3;
    const ETH_SRC: u8 = 4;
    const VLAN_VID: u8 = 6;
    const VLAN_PRESENT: u16 = 0x1000;
    let start = out.len();
    out.extend([0, 1, 0, 0]);
    let mut field = |number: u8, value: &[u8]| {
        out.extend([0x80, 0x00, number << 1, value.len() as u8]);
        out.extend(value);
    };
    let ethernet = match matched {
        Match::Any => None,
        Match::Port(port) => {
            field(IN_PORT, &port.to_be_bytes());
            None
        }
        Match::Pair(port, ethernet) => {
            field(IN_PORT, &port.to_be_bytes());
            field(ETH_SRC, &ethernet.source);
            Some(ethernet)
        }
        Match::To(ethernet) => Some(ethernet),
    };
    if let Some(ethernet) = ethernet {
        field(ETH_DST, &ethernet.destination);
        field(VLAN_VID, &ethernet.vlan.map_or(0, |vlan| vlan | VLAN_PRESENT).to_be_bytes());
    }
    let length = out.len() - start;
    out[start + 2..start + 4].copy_from_slice(&(length as u16).to_be_bytes());
    out.resize(start + length.next_multiple_of(8), 0);
}
