//! Sources of traffic: who sends what to whom, and what becomes of it.
//!
//! ```text
//! on_due ──> Actions: open a connection, write a message ──> transport, network
//! on_message (a message has arrived whole) ──> Actions: answer it, or record it
//! ```
//!
//! A source draws what a request needs (gap, size, server, service time) from streams keyed by its
//! own name and the request's index, never by time or variant: the same request meets every variant.
//!
//! Sans-IO: the simulator drives sources by its events, an emulated run by the wall's clock and the kernel's sockets.

#![forbid(unsafe_code)]

mod barrier;
mod closed_loop;
mod commit;
mod exchange;
mod one_way;
mod pages;
mod ping;
mod ptp;
mod raw;
mod requests;
mod shuffle;
mod slab;
mod traffic;

pub(crate) use barrier::{Barrier, BarrierConfig};
pub(crate) use closed_loop::{ClosedLoop, ClosedLoopConfig};
pub(crate) use commit::{Carrier, CommitConfig, Commits};
pub(crate) use one_way::{Flow, OneWay, Poisson};
pub(crate) use pages::{Pages, PagesConfig, Sizes};
pub(crate) use ping::{PingConfig, Pings};
pub(crate) use ptp::{Ptp, PtpConfig};
pub(crate) use raw::RawPackets;
pub(crate) use requests::{Requests, RequestsConfig};
pub(crate) use shuffle::{Shuffle, ShuffleConfig};

use plimsoll_fabric::net::{Flags, HostId, Packet};
use plimsoll_results::outcome::{ExtraLoad, Message, Observation, Query, Split};
use plimsoll_units::{Span, Time};
pub(crate) use plimsoll_wiring::{stretched, uniform_choice};

pub use raw::{raw_packet, workload_of_raw};
pub use traffic::Traffic;

/// A source of traffic.
pub trait Workload: Send {
    /// When it next wants to act; [`Time::MAX`] if only an arriving message can make it.
    fn next_due(&self) -> Time;

    /// Its time has come.
    fn on_due(&mut self, now: Time, actions: &mut Actions);

    /// One of its messages has arrived whole.
    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions);

    /// One of its raw packets has arrived.
    fn on_packet(&mut self, _now: Time, _packet: &Packet, _split: Split, _actions: &mut Actions) {}

    /// One of its raw packets has been dropped.
    fn on_lost(&mut self, _now: Time) {}

    /// Connections that it is certain to open where connections are kept, each as often as it opens it.
    fn kept_connections(&self) -> Vec<Opened> {
        Vec::new()
    }

    /// Where it acts when something happens to one of its packets.
    fn reach(&self) -> Reach {
        Reach::Hosts
    }

    /// Whether it has sent everything and everything has arrived.
    fn is_finished(&self) -> bool;

    /// Records what is still open at the end of the run.
    fn on_end(&mut self, actions: &mut Actions);
}

/// Where a workload acts when something happens to one of its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reach {
    /// Nowhere: it notes where a message has arrived, and sends at times known before. Its messages are flows,
    /// which nobody answers.
    Receiver,
    /// At any host, when a message has arrived.
    Hosts,
    /// At any host, when a switch drops a packet.
    Network,
}

/// Which end of a connection: the one that opened it, or the other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum End {
    /// The one that opened it.
    Client = 0,
    /// The other.
    Server = 1,
}

impl End {
    /// The end that this one talks to.
    #[inline]
    pub fn other(self) -> End {
        match self {
            End::Client => End::Server,
            End::Server => End::Client,
        }
    }

    /// The end that gets `packet`.
    #[inline]
    pub fn receiving(packet: &Packet) -> End {
        if packet.flags.has(Flags::FROM_SERVER) { End::Client } else { End::Server }
    }

    /// The one with this number, by the lowest bit.
    #[inline]
    pub fn from_bit(bit: u32) -> End {
        if bit & 1 == 0 { End::Client } else { End::Server }
    }
}

/// A message that has arrived whole.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    /// When.
    pub now: Time,
    /// What the workload called it.
    pub tag: u64,
    /// Where its time went.
    pub split: Split,
    /// Its completion time on idle links.
    pub ideal: Span,
}

/// What a source wants done, carried out in this order after it returns.
#[derive(Debug, Default)]
pub struct Actions {
    /// Connections to open; they are numbered from `next_connection` on.
    pub opened: Vec<Opened>,
    /// Number of the next connection to be opened.
    pub next_connection: u32,
    /// Messages to write, once the connections are open.
    pub writes: Vec<Write>,
    /// Single packets to send.
    pub packets: Vec<Packet>,
    /// Records of messages.
    pub messages: Vec<Message>,
    /// Records of queries.
    pub queries: Vec<Query>,
    /// Records of observations.
    pub observations: Vec<Observation>,
    /// What it asked for beyond what it needed, at the end of a run.
    pub extra: Vec<ExtraLoad>,
    /// By host, where this is a part of a network: whether it is here.
    pub here: Option<Box<[bool]>>,
}

/// A connection to open, by the workload that acts.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    /// The host that opens it.
    pub client: HostId,
    /// The host at its other end.
    pub server: HostId,
}

/// Every client with every server but itself.
fn pairs(clients: &[HostId], servers: &[HostId]) -> impl Iterator<Item = Opened> {
    clients.iter().flat_map(move |&client| {
        let others = servers.iter().filter(move |server| **server != client);
        others.map(move |&server| Opened { client, server })
    })
}

/// A message to write.
#[derive(Clone, Copy, Debug)]
pub struct Write {
    /// Number of the connection.
    pub connection: u32,
    /// Which of its ends writes.
    pub end: End,
    /// Its length, at least 1.
    pub bytes: u64,
    /// What the workload calls it.
    pub tag: u64,
    /// When it was created.
    pub created: Time,
}

impl Actions {
    /// Whether `host` is in this part of the network.
    #[inline]
    pub fn is_here(&self, host: HostId) -> bool {
        self.here.as_ref().is_none_or(|here| here[host.0 as usize])
    }

    /// Opens a connection and says what its number will be.
    pub fn open(&mut self, client: HostId, server: HostId) -> u32 {
        let number = self.next_connection + self.opened.len() as u32;
        self.opened.push(Opened { client, server });
        number
    }
}
