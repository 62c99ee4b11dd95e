//! [`Session`]: one switch's connection, from hello to its packets.
//!
//! ```text
//! switch                              controller
//!   HELLO (at once)          ──>
//!                            <──        HELLO, FEATURES_REQUEST
//!   FEATURES_REPLY           ──>
//!                            <──        SET_CONFIG, in 1.3 a table-miss flow, BARRIER_REQUEST
//!   BARRIER_REPLY            ──>
//!   PACKET_IN                ──>
//!                            <──        FLOW_MOD, PACKET_OUT
//!   ECHO_REQUEST             ──>
//!                            <──        ECHO_REPLY
//!   silent for a while       <──        ECHO_REQUEST
//!   ECHO_REPLY               ──>        otherwise the connection is closed
//! ```
//!
//! Departure from the specification: our hello answers the switch's instead of crossing it. Every switch must send its
//! own at once (1.3.5, section 6.3.1), so none waits for ours.

use std::time::Duration;

use plimsoll_openflow::{
    ErrorCode, Features, HEADER_BYTES, Header, PacketIn, PortStatus, Version, Writer, kind, read,
};

use crate::service::OpenFlowSettings;

/// The state of a switch's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Session {
    phase: HandshakePhase,
    transaction: u32,
    /// The time at which the connection began, or at which its last whole message arrived while it was up.
    heard_at: Duration,
    /// The time of an echo request that no message has followed.
    probed_at: Option<Duration>,
}

/// The identity of a switch's connection once it is up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Peer {
    /// The version agreed upon.
    pub version: Version,
    /// The number of the switch's datapath.
    pub datapath: u64,
}

/// A message for the datapath's partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DatapathEvent<'a> {
    /// The switch's main connection is new.
    Join,
    /// The switch asks for a decision on a packet.
    Packet(PacketIn<'a>),
    /// A port of the switch has changed.
    Port(PortStatus),
}

/// The result of reading a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome<'a> {
    /// The message is answered, or needs no answer.
    Done,
    /// The connection is to be closed after an error.
    Close,
    /// The message is for the datapath's partition; with its transaction.
    Event(Peer, u32, DatapathEvent<'a>),
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum HandshakePhase {
    Hello,
    Features(Version),
    Up(Peer),
}

impl Session {
    /// Creates a session that begins at `now`, since the server's start.
    pub fn new(now: Duration) -> Session {
        Session { phase: HandshakePhase::Hello, transaction: 0, heard_at: now, probed_at: None }
    }

    /// Checks the deadlines at `now`, and returns false if the connection is to be closed: its switch has sent no hello
    /// and features in time, or nothing after an echo request. A switch that is silent for long gets an echo request.
    pub fn tick(&mut self, settings: &OpenFlowSettings, now: Duration, out: &mut Vec<u8>) -> bool {
        let is_over = |since: Duration, seconds: u16| {
            seconds > 0 && now.saturating_sub(since) >= Duration::from_secs(seconds.into())
        };
        let HandshakePhase::Up(Peer { version, .. }) = self.phase else {
            return !is_over(self.heard_at, settings.hello_seconds);
        };
        if let Some(probed_at) = self.probed_at {
            return !is_over(probed_at, settings.echo_seconds);
        }
        if is_over(self.heard_at, settings.echo_seconds) {
            self.probed_at = Some(now);
            Writer { version, transaction: self.next_transaction(), out }.bare(kind::ECHO_REQUEST);
        }
        true
    }

    /// Notes that a whole message arrived at `now`. Until the features have, messages do not extend the deadline.
    pub fn heard(&mut self, now: Duration) {
        if matches!(self.phase, HandshakePhase::Up(_)) {
            (self.heard_at, self.probed_at) = (now, None);
        }
    }

    /// Reports whether this is the head of a first message other than a hello. The bytes after it are not read:
    /// skipping as many bytes as it seems to announce would let a request of HTTP, for example, hide a switch's
    /// messages in its body.
    pub fn is_refused(&self, header: Header) -> bool {
        /// A hello is 8 or 16 bytes, and may carry the additions of later versions.
        const HELLO_BYTES_MAX: u16 = 1024;
        self.phase == HandshakePhase::Hello
            && (header.kind != kind::HELLO
                || !(HEADER_BYTES as u16..=HELLO_BYTES_MAX).contains(&header.length))
    }

    /// Answers the head of a first message other than a hello.
    pub fn refuse(&mut self, settings: &OpenFlowSettings, header: Header, out: &mut Vec<u8>) {
        let mut writer =
            Writer { version: settings.versions.highest(), transaction: header.transaction, out };
        writer.error(ErrorCode::INCOMPATIBLE, b"the first message must be a hello");
    }

    /// Handles the head of a message that is refused for its length.
    pub fn on_refused(
        &mut self,
        settings: &OpenFlowSettings,
        header: Header,
        head: &[u8],
        out: &mut Vec<u8>,
    ) {
        self.error(settings, header, ErrorCode::BAD_LENGTH, head, out);
    }

    /// Handles one whole message.
    pub fn on_message<'a>(
        &mut self,
        settings: &OpenFlowSettings,
        header: Header,
        message: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Outcome<'a> {
        match self.phase {
            HandshakePhase::Hello => self.on_hello(settings, header, message, out),
            HandshakePhase::Features(version) | HandshakePhase::Up(Peer { version, .. }) => {
                let event = if header.version == version as u8 {
                    self.on_known(settings, version, header, message, out)
                } else {
                    Err(ErrorCode::BAD_VERSION)
                };
                event.unwrap_or_else(|error| {
                    self.error(settings, header, error, message, out);
                    Outcome::Done
                })
            }
        }
    }

    fn on_hello<'a>(
        &mut self,
        settings: &OpenFlowSettings,
        header: Header,
        message: &[u8],
        out: &mut Vec<u8>,
    ) -> Outcome<'a> {
        let bitmap = read::hello_bitmap(message);
        let agreed = settings.versions.agree(header.version, bitmap);
        let highest = settings.versions.highest();
        let mut writer = Writer { version: highest, transaction: header.transaction, out };
        let Some(version) = agreed else {
            let reason = b"no common version: this controller has OpenFlow 1.0 and 1.3, or one";
            writer.error(ErrorCode::INCOMPATIBLE, reason);
            return Outcome::Close;
        };
        writer.transaction = self.next_transaction();
        writer.hello(settings.versions);
        writer = Writer { version, transaction: self.next_transaction(), out };
        writer.bare(kind::FEATURES_REQUEST);
        self.phase = HandshakePhase::Features(version);
        Outcome::Done
    }

    fn on_known<'a>(
        &mut self,
        settings: &OpenFlowSettings,
        version: Version,
        header: Header,
        message: &'a [u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome<'a>, ErrorCode> {
        let transaction = header.transaction;
        let peer = match self.phase {
            HandshakePhase::Up(peer) => Some(peer),
            HandshakePhase::Hello | HandshakePhase::Features(_) => None,
        };
        let event = match header.kind {
            kind::ECHO_REQUEST => {
                Writer { version, transaction, out }.echo_reply(&message[HEADER_BYTES..]);
                None
            }
            kind::FEATURES_REPLY => {
                let features = read::features(version, message).ok_or(ErrorCode::BAD_LENGTH)?;
                return Ok(self.on_features(settings, version, header, features, out));
            }
            kind::PACKET_IN => {
                let packet = read::packet_in(version, message).ok_or(ErrorCode::BAD_LENGTH)?;
                Some(DatapathEvent::Packet(packet))
            }
            kind::PORT_STATUS => {
                let status = read::port_status(version, message).ok_or(ErrorCode::BAD_LENGTH)?;
                Some(DatapathEvent::Port(status))
            }
            kind::EXPERIMENTER => return Err(ErrorCode::BAD_EXPERIMENTER),
            other if is_only_news(version, other) => None,
            _ => return Err(ErrorCode::BAD_TYPE),
        };
        // Packets before the features belong to no known datapath; the switch will ask again.
        Ok(peer.zip(event).map_or(Outcome::Done, |(peer, event)| Outcome::Event(peer, transaction, event)))
    }

    /// A second features reply, which a switch may send unasked, may name no other datapath than the first.
    fn on_features<'a>(
        &mut self,
        settings: &OpenFlowSettings,
        version: Version,
        header: Header,
        features: Features,
        out: &mut Vec<u8>,
    ) -> Outcome<'a> {
        let peer = Peer { version, datapath: features.datapath };
        match self.phase {
            HandshakePhase::Up(before) if before == peer => return Outcome::Done,
            HandshakePhase::Up(_) => return Outcome::Close,
            HandshakePhase::Hello | HandshakePhase::Features(_) => self.phase = HandshakePhase::Up(peer),
        }
        if features.auxiliary {
            return Outcome::Done;
        }
        let mut writer = Writer { version, transaction: self.next_transaction(), out };
        writer.set_config(settings.miss_send_bytes);
        settings.write_table_miss(&mut writer);
        writer.bare(kind::barrier_request(version));
        Outcome::Event(peer, header.transaction, DatapathEvent::Join)
    }

    fn error(
        &mut self,
        settings: &OpenFlowSettings,
        header: Header,
        error: ErrorCode,
        message: &[u8],
        out: &mut Vec<u8>,
    ) {
        // Errors are not answered with errors, or two peers could continue forever.
        if header.kind != kind::ERROR {
            let version = match self.phase {
                HandshakePhase::Hello => settings.versions.highest(),
                HandshakePhase::Features(version) | HandshakePhase::Up(Peer { version, .. }) => version,
            };
            Writer { version, transaction: header.transaction, out }.error(error, message);
        }
    }

    fn next_transaction(&mut self) -> u32 {
        self.transaction = self.transaction.wrapping_add(1);
        self.transaction
    }
}

/// Reports whether a message of a switch changes nothing here.
fn is_only_news(version: Version, kind: u8) -> bool {
    matches!(kind, kind::HELLO | kind::ERROR | kind::ECHO_REPLY | kind::GET_CONFIG_REPLY | kind::FLOW_REMOVED)
        || kind == kind::barrier_reply(version)
        || kind == kind::statistics_reply(version)
}
