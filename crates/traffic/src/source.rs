//! [`Source`]: a sans-IO state machine that generates traffic, and its [`Actions`].
//!
//! ```text
//! on_due ──> Actions: open a connection, write a message ──> transport, network
//! on_message (a message has arrived whole) ──> Actions: answer it, or record it
//! ```

use plimsoll_fabric::net::{Flags, HostId, Packet};
use plimsoll_units::{Span, Time};

use crate::record::{Records, Split, WaitedAt};

/// A state machine that generates the traffic of one workload.
pub trait Source: Send {
    /// Returns when the source next acts by itself; [`Time::MAX`] if only an arriving message can make it act.
    fn next_due(&self) -> Time;

    /// Acts at the time that [`Source::next_due`] returned.
    fn on_due(&mut self, now: Time, actions: &mut Actions);

    /// Handles the complete arrival of one of the source's messages or datagrams.
    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions);

    /// Handles the drop of one of the source's datagrams.
    fn on_lost(&mut self, _now: Time) {}

    /// Returns the connections that are worth opening before the run where connections are kept.
    fn kept_connections(&self) -> Vec<Opened> {
        Vec::new()
    }

    /// Returns whether arrivals are to say where their messages waited.
    fn follows_waits(&self) -> bool {
        false
    }

    /// Returns where the source acts when something happens to one of its packets.
    fn reach(&self) -> SourceReach {
        SourceReach::Hosts
    }

    /// Passes the data that the source will send and has not written yet to `_tell`, such as an answer whose request is
    /// under way, with the time at which it expects to write it. It is the hint of an application to a network that
    /// plans by demand.
    fn hints(&self, _tell: &mut dyn FnMut(Hint)) {}

    /// Returns whether the source has sent everything and everything has arrived.
    fn is_finished(&self) -> bool;

    /// Records the messages that are still open at the end of the run.
    fn on_end(&mut self, actions: &mut Actions);

    /// Returns what a reader of the records should know at the end of the run, such as iterations that are left out.
    fn caveat(&self) -> Option<String> {
        None
    }
}

/// An announcement of bytes that a workload will send, for the demand of a hybrid network's controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hint {
    /// The host that will send them.
    pub from: HostId,
    /// The host that will receive them.
    pub to: HostId,
    /// The number of announced bytes of payload.
    pub bytes: u64,
    /// When they will be ready to send, as far as the workload can say; [`Time::MAX`] if it cannot.
    pub ready: Time,
}

/// The place where a source acts on an event of one of its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SourceReach {
    /// The source notes where a message has arrived, and sends at times known before. Its messages are flows, which get
    /// no answer.
    Receiver,
    /// The source may act at any host when a message has arrived.
    Hosts,
    /// The source may act at any host when a switch drops a packet.
    Network,
}

/// One of the two ends of a connection: the one that opened it, or the one that accepted it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum ConnectionEnd {
    /// The end that opened the connection.
    Client = 0,
    /// The end that accepted the connection.
    Server = 1,
}

impl ConnectionEnd {
    /// Returns the peer of this end.
    #[inline]
    pub fn other(self) -> ConnectionEnd {
        match self {
            ConnectionEnd::Client => ConnectionEnd::Server,
            ConnectionEnd::Server => ConnectionEnd::Client,
        }
    }

    /// Returns the end that receives `packet`.
    #[inline]
    pub fn receiving(packet: &Packet) -> ConnectionEnd {
        if packet.flags.has(Flags::FROM_SERVER) { ConnectionEnd::Client } else { ConnectionEnd::Server }
    }

    /// Returns the end whose number is the lowest bit of `bit`.
    #[inline]
    pub fn from_bit(bit: u32) -> ConnectionEnd {
        if bit & 1 == 0 { ConnectionEnd::Client } else { ConnectionEnd::Server }
    }
}

/// The arrival of a message's last byte, as the source hears of it.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// The time at which its last byte arrived.
    pub now: Time,
    /// The tag that the source gave the message.
    pub tag: u64,
    /// The host that sent it.
    pub from: HostId,
    /// Its length: the payload of a message, a datagram on the wire.
    pub bytes: u64,
    /// The components of its latency.
    pub split: Split,
    /// The completion time of the message on idle links, the reference of its slowdown.
    pub ideal: Span,
    /// Where it waited, for a source that [follows](Source::follows_waits) its messages.
    pub waits: MessageWaits,
}

/// The places where a message waited, and how long: NIC and switches, which sum to these components of its latency.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MessageWaits(pub [(WaitedAt, Span); 5]);

impl Default for MessageWaits {
    /// Returns the waits of a message that has waited nowhere.
    fn default() -> MessageWaits {
        MessageWaits([(WaitedAt::Tier(0), Span::ZERO); 5])
    }
}

/// The actions of a source, carried out in this order after it returns.
#[derive(Debug, Default)]
pub struct Actions {
    /// Connections to open; they are numbered from `next_connection` on.
    pub opened: Vec<Opened>,
    /// The number of the next connection to be opened.
    pub next_connection: u32,
    /// Messages to write, once the connections are open.
    pub writes: Vec<Write>,
    /// Datagrams to send, after the writes.
    pub datagrams: Vec<Datagram>,
    /// The records to add to the outcome.
    pub records: Records,
    /// In a logical process of a parallel run: whether it holds a host, by host.
    pub here: Option<Box<[bool]>>,
}

/// A connection to open for the source that acts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Opened {
    /// The host that opens the connection.
    pub client: HostId,
    /// The host that accepts the connection.
    pub server: HostId,
}

/// A message in a single packet, which no transport acknowledges or repairs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Datagram {
    /// The host that sends it.
    pub from: HostId,
    /// The host that receives it.
    pub to: HostId,
    /// The bytes of the packet on the wire.
    pub size: u16,
    /// The source's tag, which the packet carries and its arrival returns.
    pub tag: u64,
}

/// A message that an end of a connection writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Write {
    /// The number of the connection.
    pub connection: u32,
    /// The end of the connection that writes the message.
    pub end: ConnectionEnd,
    /// The length of the message, at least 1.
    pub bytes: u64,
    /// The source's tag, which its arrival returns.
    pub tag: u64,
    /// The time at which it was created.
    pub created: Time,
}

impl Actions {
    /// Returns whether `host` is in this logical process.
    #[inline]
    pub fn is_here(&self, host: HostId) -> bool {
        self.here.as_ref().is_none_or(|here| here[host.0 as usize])
    }

    /// Opens a connection and returns the number that it will have.
    pub fn open(&mut self, client: HostId, server: HostId) -> u32 {
        let number = self.next_connection + self.opened.len() as u32;
        self.opened.push(Opened { client, server });
        number
    }
}

/// Returns every client with every server but itself.
pub(crate) fn pairs(clients: &[HostId], servers: &[HostId]) -> impl Iterator<Item = Opened> {
    clients.iter().flat_map(move |&client| {
        let others = servers.iter().filter(move |server| **server != client);
        others.map(move |&server| Opened { client, server })
    })
}
