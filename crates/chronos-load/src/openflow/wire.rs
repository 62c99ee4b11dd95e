//! The messages of OpenFlow 1.0.0 and 1.3.5 that a querying switch needs (specification, sections 5 and 7).

use clap::ValueEnum;

/// A version of the protocol.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum ProtocolVersion {
    /// OpenFlow 1.0, wire version 1.
    #[value(name = "1.0")]
    V10,
    /// OpenFlow 1.3, wire version 4.
    #[value(name = "1.3")]
    V13,
}

/// The kinds of messages that a controller sends, as far as the switch distinguishes them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MessageKind {
    /// States the sender's version.
    Hello,
    /// Reports an error in a message of the switch.
    Error,
    /// Requests that its content is sent back.
    EchoRequest,
    /// Requests the datapath ID and features.
    FeaturesRequest,
    /// Requests the configuration.
    GetConfigRequest,
    /// Sends a packet, or releases its buffer.
    PacketOut,
    /// Installs or changes a rule.
    FlowMod,
    /// Requests descriptions and counters: stats in 1.0, multipart in 1.3.
    StatsRequest,
    /// Requests a reply after all earlier messages are processed.
    BarrierRequest,
    /// Requests or states the role of the controller.
    RoleRequest,
    /// Needs no answer by the switch.
    Other,
}

/// A whole message at the head of some input.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenFlowMessage<'a> {
    /// The kind of the message.
    pub kind: MessageKind,
    /// The transaction ID, which a reply repeats.
    pub xid: u32,
    /// The protocol version of the message.
    pub version: u8,
    /// The whole message, header included.
    pub bytes: &'a [u8],
}

/// The length of a header in bytes.
pub const HEADER: usize = 8;
/// The buffer number that means none.
pub const NO_BUFFER: u32 = u32::MAX;
/// The number of ports of a switch, numbered from 1.
pub const PORTS: u16 = 4;

impl ProtocolVersion {
    /// Returns the version's number on the wire.
    pub fn number(self) -> u8 {
        match self {
            ProtocolVersion::V10 => 1,
            ProtocolVersion::V13 => 4,
        }
    }

    /// Returns the message at the head of `input`; none if it is not complete.
    ///
    /// # Errors
    /// Returns an error if the input is not a message.
    pub fn split(self, input: &[u8]) -> Result<Option<OpenFlowMessage<'_>>, String> {
        let Some(header) = input.first_chunk::<HEADER>() else { return Ok(None) };
        let length = usize::from(u16::from_be_bytes([header[2], header[3]]));
        if length < HEADER {
            return Err(format!("a message of {length} bytes is shorter than its header of {HEADER}"));
        }
        let Some(bytes) = input.get(..length) else { return Ok(None) };
        let xid = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
        Ok(Some(OpenFlowMessage { kind: self.kind(header[1]), xid, version: header[0], bytes }))
    }

    fn kind(self, number: u8) -> MessageKind {
        match (self, number) {
            (_, 0) => MessageKind::Hello,
            (_, 1) => MessageKind::Error,
            (_, 2) => MessageKind::EchoRequest,
            (_, 5) => MessageKind::FeaturesRequest,
            (_, 7) => MessageKind::GetConfigRequest,
            (_, 13) => MessageKind::PacketOut,
            (_, 14) => MessageKind::FlowMod,
            (ProtocolVersion::V10, 16) | (ProtocolVersion::V13, 18) => MessageKind::StatsRequest,
            (ProtocolVersion::V10, 18) | (ProtocolVersion::V13, 20) => MessageKind::BarrierRequest,
            (ProtocolVersion::V13, 24) => MessageKind::RoleRequest,
            _ => MessageKind::Other,
        }
    }

    /// Returns the buffer that a flow-mod or packet-out names; none for other messages and for truncated ones.
    pub fn buffer(self, message: &OpenFlowMessage<'_>) -> Option<u32> {
        let at = match (self, message.kind) {
            (_, MessageKind::PacketOut) => 8,
            (ProtocolVersion::V10, MessageKind::FlowMod) => 64,
            (ProtocolVersion::V13, MessageKind::FlowMod) => 32,
            _ => return None,
        };
        message
            .bytes
            .get(at..at + 4)
            .map(|field| u32::from_be_bytes([field[0], field[1], field[2], field[3]]))
    }

    /// Appends a message of type `number` with `body`.
    fn message(self, number: u8, xid: u32, out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
        let start = out.len();
        out.extend_from_slice(&[self.number(), number, 0, 0]);
        out.extend_from_slice(&xid.to_be_bytes());
        body(out);
        let length = (out.len() - start) as u16;
        out[start + 2..start + 4].copy_from_slice(&length.to_be_bytes());
    }

    /// Appends a hello message.
    pub fn hello(self, out: &mut Vec<u8>) {
        self.message(0, 0, out, |_| ());
    }

    /// Appends the switch's reply to `message`, if it has one.
    pub fn reply(self, message: &OpenFlowMessage<'_>, datapath: u64, out: &mut Vec<u8>) {
        let OpenFlowMessage { kind, xid, bytes, .. } = *message;
        match (self, kind) {
            (_, MessageKind::EchoRequest) => {
                self.message(3, xid, out, |out| out.extend_from_slice(&bytes[HEADER..]))
            }
            (_, MessageKind::FeaturesRequest) => self.features(xid, datapath, out),
            // There are no flags, and packets are sent whole.
            (_, MessageKind::GetConfigRequest) => {
                self.message(8, xid, out, |out| out.extend_from_slice(&[0, 0, 0xff, 0xff]))
            }
            (_, MessageKind::StatsRequest) => self.stats(message, out),
            (ProtocolVersion::V10, MessageKind::BarrierRequest) => self.message(19, xid, out, |_| ()),
            (ProtocolVersion::V13, MessageKind::BarrierRequest) => self.message(21, xid, out, |_| ()),
            (_, MessageKind::RoleRequest) => {
                self.message(25, xid, out, |out| out.extend_from_slice(&bytes[HEADER..]))
            }
            _ => {}
        }
    }

    fn features(self, xid: u32, datapath: u64, out: &mut Vec<u8>) {
        self.message(6, xid, out, |out| {
            out.extend_from_slice(&datapath.to_be_bytes());
            out.extend_from_slice(&BUFFERS.to_be_bytes());
            // There is one table; in 1.3 the auxiliary connection 0 follows; the rest is padding.
            out.extend_from_slice(&[1, 0, 0, 0]);
            out.extend_from_slice(&[0; 4]);
            match self {
                ProtocolVersion::V10 => {
                    // The action is OFPAT_OUTPUT.
                    out.extend_from_slice(&1_u32.to_be_bytes());
                    self.ports(datapath, out);
                }
                ProtocolVersion::V13 => out.extend_from_slice(&[0; 4]),
            }
        });
    }

    fn ports(self, datapath: u64, out: &mut Vec<u8>) {
        for port in 1..=PORTS {
            match self {
                ProtocolVersion::V10 => out.extend_from_slice(&port.to_be_bytes()),
                ProtocolVersion::V13 => {
                    out.extend_from_slice(&u32::from(port).to_be_bytes());
                    out.extend_from_slice(&[0; 4]);
                }
            }
            out.extend_from_slice(&mac(0xff, datapath, u64::from(port)));
            if self == ProtocolVersion::V13 {
                out.extend_from_slice(&[0; 2]);
            }
            let mut name = [0; 16];
            name[..5].copy_from_slice(b"port0");
            name[4] += port as u8;
            out.extend_from_slice(&name);
            // These are configuration, state and features; in 1.3 also two speeds.
            out.extend_from_slice(&[0; 24]);
            if self == ProtocolVersion::V13 {
                out.extend_from_slice(&[0; 8]);
            }
        }
    }

    fn stats(self, message: &OpenFlowMessage<'_>, out: &mut Vec<u8>) {
        let Some(&[high, low]) = message.bytes.get(HEADER..HEADER + 2) else { return };
        let what = u16::from_be_bytes([high, low]);
        let number = if self == ProtocolVersion::V10 { 17 } else { 19 };
        self.message(number, message.xid, out, |out| {
            out.extend_from_slice(&[high, low, 0, 0]);
            if self == ProtocolVersion::V13 {
                out.extend_from_slice(&[0; 4]);
            }
            match (self, what) {
                (_, DESCRIPTION) => {
                    let mut description = [0; DESCRIPTION_BYTES];
                    description[..8].copy_from_slice(b"plimsoll");
                    out.extend_from_slice(&description);
                }
                (ProtocolVersion::V13, PORT_DESCRIPTION) => self.ports(0, out),
                _ => {}
            }
        });
    }

    /// Appends a packet-in: `packet` arrived at `port` and is stored in `buffer`.
    pub fn packet_in(self, buffer: u32, port: u16, packet: &[u8], out: &mut Vec<u8>) {
        self.message(10, 0, out, |out| {
            out.extend_from_slice(&buffer.to_be_bytes());
            out.extend_from_slice(&(packet.len() as u16).to_be_bytes());
            match self {
                // The reason is OFPR_NO_MATCH; padding follows.
                ProtocolVersion::V10 => {
                    out.extend_from_slice(&port.to_be_bytes());
                    out.extend_from_slice(&[0, 0]);
                }
                ProtocolVersion::V13 => {
                    // The reason is OFPR_NO_MATCH; the table is 0; a cookie follows.
                    out.extend_from_slice(&[0; 10]);
                    // The match has 12 bytes: the field in_port of class OpenFlow basic, 4 bytes; padded to 8, and 2
                    // more.
                    out.extend_from_slice(&[0, 1, 0, 12, 0x80, 0, 0, 4]);
                    out.extend_from_slice(&u32::from(port).to_be_bytes());
                    out.extend_from_slice(&[0; 6]);
                }
            }
            out.extend_from_slice(packet);
        });
    }
}

/// Returns a locally administered address of an address space, a switch and a number.
pub fn mac(space: u8, datapath: u64, number: u64) -> [u8; 6] {
    let [.., third, second, first] = number.to_be_bytes();
    let switch = datapath as u8 ^ (datapath >> 8) as u8;
    [0x02, space, switch, third, second, first]
}

/// The number of packets that the switch claims to buffer.
const BUFFERS: u32 = 1 << 16;
/// The type of a request for descriptions (OFPST_DESC, OFPMP_DESC).
const DESCRIPTION: u16 = 0;
/// The type of a request for ports (OFPMP_PORT_DESC).
const PORT_DESCRIPTION: u16 = 13;
/// The bytes of a description: manufacturer, hardware, software, serial number, datapath.
const DESCRIPTION_BYTES: usize = 256 + 256 + 256 + 32 + 256;
