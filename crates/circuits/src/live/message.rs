//! [`ControlMessage`] and its bytes.
//!
//! ```text
//! "plim" (4) | version (1) | kind (1) | host (2) | agent's nonce (8) | controller's nonce (8) | sequence (8) | body
//! Hello, Challenge: no body
//! Report: time (8), ns | sequence seen (8) | gate open (1) | entries (2) | entries: receiver (2), bytes (8)
//! Grant:  time (8), ns | configuration (8) | receiver (2), or 65535 | lease (8), ns
//! ```
//!
//! Numbers are big-endian. A message has exactly one form: its length follows from its kind and its entries, which are
//! in the order of receivers.

use plimsoll_units::{Span, Time};

/// The most hosts of a controller.
pub const LIVE_HOSTS_MAX: usize = 1_024;

const MAGIC: [u8; 4] = *b"plim";
const VERSION: u8 = 1;
const NO_RECEIVER: u16 = u16::MAX;
const PS_PER_NS: u64 = 1_000;

/// A message between a controller and the agent of a host.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ControlMessage {
    /// The number of the agent's host.
    pub host: u16,
    /// The random number of the agent for this session.
    pub agent: u64,
    /// The random number of the controller for this session; 0 in a Hello.
    pub controller: u64,
    /// The number of the message among its sender's.
    pub sequence: u64,
    /// The content of the message.
    pub body: MessageBody,
}

/// The content of a message between a controller and an agent, by its kind.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MessageBody {
    /// An agent requests a session.
    Hello,
    /// The controller answers with its nonce.
    Challenge,
    /// An agent reports its state.
    Report(DemandReport),
    /// The controller gives or takes a circuit.
    Grant(CircuitGrant),
}

/// The state of a host and of its gate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DemandReport {
    /// The time at the agent when it sends.
    pub sent: Time,
    /// The highest sequence number of a grant that the agent has accepted.
    pub seen: u64,
    /// True while the host may send by its circuit.
    pub is_open: bool,
    /// Bytes that wait for each receiver, in the order of receivers.
    pub demand: Vec<(u16, u64)>,
}

/// The circuit of a host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CircuitGrant {
    /// The time of the report that the grant answers.
    pub echo: Time,
    /// The number of the configuration.
    pub configuration: u64,
    /// The receiver at the other end of the circuit, and the length of the lease from `echo`.
    pub circuit: Option<(u16, Span)>,
}

/// The reason why bytes are no message.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum MessageError {
    /// The bytes do not begin as a message does.
    #[error("the datagram is not a message of `plimsoll circuits`")]
    Foreign,
    /// The message has another version.
    #[error("version {0} of the protocol is not supported; expected {VERSION}")]
    Version(u8),
    /// A field has a value that is not allowed.
    #[error("{field} is {value}; expected {allowed}")]
    Field {
        /// The name of the field.
        field: &'static str,
        /// The value of the field.
        value: u64,
        /// The values that are allowed.
        allowed: &'static str,
    },
    /// The message is shorter or longer than its kind and entries require.
    #[error("the message has {0} bytes, which does not fit its kind and its entries")]
    Length(usize),
}

impl ControlMessage {
    /// Appends the bytes of the message.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend(MAGIC);
        out.extend([VERSION, self.body.kind()]);
        out.extend(self.host.to_be_bytes());
        out.extend([self.agent, self.controller, self.sequence].map(u64::to_be_bytes).as_flattened());
        match &self.body {
            MessageBody::Hello | MessageBody::Challenge => {}
            MessageBody::Report(DemandReport { sent, seen, is_open, demand }) => {
                out.extend([ns(sent.as_ps()), *seen].map(u64::to_be_bytes).as_flattened());
                out.push(u8::from(*is_open));
                let entries = u16::try_from(demand.len()).expect("a controller has at most 1,024 hosts");
                out.extend(entries.to_be_bytes());
                for (receiver, bytes) in demand {
                    out.extend(receiver.to_be_bytes());
                    out.extend(bytes.to_be_bytes());
                }
            }
            MessageBody::Grant(CircuitGrant { echo, configuration, circuit }) => {
                out.extend([ns(echo.as_ps()), *configuration].map(u64::to_be_bytes).as_flattened());
                let (receiver, lease) = circuit.unwrap_or((NO_RECEIVER, Span::ZERO));
                out.extend(receiver.to_be_bytes());
                out.extend(ns(lease.as_ps()).to_be_bytes());
            }
        }
    }

    /// Reads a message.
    ///
    /// # Errors
    /// Names the first field that is not allowed.
    pub fn decode(bytes: &[u8]) -> Result<ControlMessage, MessageError> {
        let mut rest = Fields { rest: bytes, whole: bytes.len() };
        if bytes.get(..MAGIC.len()) != Some(&MAGIC[..]) {
            return Err(MessageError::Foreign);
        }
        rest.rest = &bytes[MAGIC.len()..];
        let version = rest.u8()?;
        if version != VERSION {
            return Err(MessageError::Version(version));
        }
        let kind = rest.u8()?;
        let host = rest.host("host")?;
        let (agent, controller, sequence) = (rest.u64()?, rest.u64()?, rest.u64()?);
        let body = match kind {
            HELLO => MessageBody::Hello,
            CHALLENGE => MessageBody::Challenge,
            REPORT => MessageBody::Report(rest.report()?),
            GRANT => MessageBody::Grant(rest.grant()?),
            kind => return Err(not_allowed("kind", kind, "1 to 4")),
        };
        if !rest.rest.is_empty() {
            return Err(MessageError::Length(bytes.len()));
        }
        Ok(ControlMessage { host, agent, controller, sequence, body })
    }
}

const HELLO: u8 = 1;
const CHALLENGE: u8 = 2;
const REPORT: u8 = 3;
const GRANT: u8 = 4;

impl MessageBody {
    fn kind(&self) -> u8 {
        match self {
            MessageBody::Hello => HELLO,
            MessageBody::Challenge => CHALLENGE,
            MessageBody::Report(_) => REPORT,
            MessageBody::Grant(_) => GRANT,
        }
    }
}

/// The fields of a message that have not been read.
struct Fields<'a> {
    rest: &'a [u8],
    whole: usize,
}

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], MessageError> {
        let (head, rest) = self.rest.split_first_chunk().ok_or(MessageError::Length(self.whole))?;
        self.rest = rest;
        Ok(*head)
    }

    fn u8(&mut self) -> Result<u8, MessageError> {
        Ok(self.take::<1>()?[0])
    }

    fn u16(&mut self) -> Result<u16, MessageError> {
        self.take().map(u16::from_be_bytes)
    }

    fn u64(&mut self) -> Result<u64, MessageError> {
        self.take().map(u64::from_be_bytes)
    }

    /// Reads nanoseconds, and returns them in picoseconds.
    fn ps(&mut self, field: &'static str) -> Result<u64, MessageError> {
        let ns = self.u64()?;
        ns.checked_mul(PS_PER_NS).ok_or_else(|| not_allowed(field, ns, "less than 213 days, in ns"))
    }

    fn host(&mut self, field: &'static str) -> Result<u16, MessageError> {
        let host = self.u16()?;
        let is_host = usize::from(host) < LIVE_HOSTS_MAX;
        if is_host { Ok(host) } else { Err(not_allowed(field, host, "0 to 1023")) }
    }

    fn report(&mut self) -> Result<DemandReport, MessageError> {
        let (sent, seen) = (Time::from_ps(self.ps("time")?), self.u64()?);
        let is_open = match self.u8()? {
            0 => false,
            1 => true,
            other => return Err(not_allowed("gate open", other, "0 or 1")),
        };
        let mut demand: Vec<(u16, u64)> = Vec::new();
        for _ in 0..self.u16()? {
            let (receiver, bytes) = (self.host("receiver")?, self.u64()?);
            if demand.last().is_some_and(|(last, _)| *last >= receiver) {
                return Err(not_allowed("receiver", receiver, "more than that of the entry before"));
            }
            demand.push((receiver, bytes));
        }
        Ok(DemandReport { sent, seen, is_open, demand })
    }

    fn grant(&mut self) -> Result<CircuitGrant, MessageError> {
        let (echo, configuration) = (Time::from_ps(self.ps("time")?), self.u64()?);
        let is_dark = self.rest.starts_with(&NO_RECEIVER.to_be_bytes());
        let receiver = if is_dark { self.u16()? } else { self.host("receiver")? };
        let lease = Span::from_ps(self.ps("lease")?);
        Ok(CircuitGrant { echo, configuration, circuit: (!is_dark).then_some((receiver, lease)) })
    }
}

fn not_allowed(field: &'static str, value: impl Into<u64>, allowed: &'static str) -> MessageError {
    MessageError::Field { field, value: value.into(), allowed }
}

/// Returns whole nanoseconds: a lease that is rounded down ends no later.
fn ns(ps: u64) -> u64 {
    ps / PS_PER_NS
}
