//! Sources of traffic.
//!
//! ```text
//! on_due ──> Actions: open a connection, write a message ──> transport, network
//! on_message (a message has arrived whole) ──> Actions: answer it, or record it
//! ```
//!
//! A source draws what a request needs (gap, size, server, service time) from streams keyed by its
//! own name and the request's index, never by time or variant: the same request meets every variant.

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

pub(crate) use barrier::{Barrier, BarrierConfig};
pub(crate) use closed_loop::{ClosedLoop, ClosedLoopConfig};
pub(crate) use commit::{Carrier, CommitConfig, Commits};
pub(crate) use one_way::{Flow, OneWay, Poisson};
pub(crate) use pages::{Pages, PagesConfig, Sizes};
pub(crate) use ping::{PingConfig, Pings};
pub(crate) use ptp::{Ptp, PtpConfig};
pub(crate) use raw::{RawPackets, workload_of_raw};
pub(crate) use requests::{Requests, RequestsConfig};
pub(crate) use shuffle::{Shuffle, ShuffleConfig};

use plimsoll_fabric::net::{HostId, Packet};
use plimsoll_results::outcome::{ExtraLoad, Message, Observation, Query, Split};
use plimsoll_units::{Span, Time};
pub(crate) use plimsoll_wiring::{stretched, uniform_choice};

use crate::connection::End;

/// A source of traffic.
pub(crate) trait Workload: Send {
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
pub(crate) enum Reach {
    /// Nowhere: it notes where a message has arrived, and sends at times known before. Its messages are flows,
    /// which nobody answers.
    Receiver,
    /// At any host, when a message has arrived.
    Hosts,
    /// At any host, when a switch drops a packet.
    Network,
}

/// A message that has arrived whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arrival {
    pub(crate) now: Time,
    /// What the workload called it.
    pub(crate) tag: u64,
    /// Where its time went.
    pub(crate) split: Split,
    /// Its completion time on idle links.
    pub(crate) ideal: Span,
}

/// What a source wants done, carried out in this order after it returns.
#[derive(Debug, Default)]
pub(crate) struct Actions {
    /// Connections to open; they are numbered from `next_connection` on.
    pub(crate) opened: Vec<Opened>,
    pub(crate) next_connection: u32,
    pub(crate) writes: Vec<Write>,
    pub(crate) packets: Vec<Packet>,
    pub(crate) messages: Vec<Message>,
    pub(crate) queries: Vec<Query>,
    pub(crate) observations: Vec<Observation>,
    pub(crate) extra: Vec<ExtraLoad>,
    /// By host, where this is a part of a network: whether it is here.
    pub(crate) here: Option<Box<[bool]>>,
}

/// A connection to open, by the workload that acts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    pub(crate) client: HostId,
    pub(crate) server: HostId,
}

/// A message to write.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Write {
    pub(crate) connection: u32,
    pub(crate) end: End,
    pub(crate) bytes: u64,
    pub(crate) tag: u64,
    pub(crate) created: Time,
}

impl Actions {
    /// Whether `host` is in this part of the network.
    pub(crate) fn is_here(&self, host: HostId) -> bool {
        self.here.as_ref().is_none_or(|here| here[host.0 as usize])
    }

    /// Opens a connection and says what its number will be.
    pub(crate) fn open(&mut self, client: HostId, server: HostId) -> u32 {
        let number = self.next_connection + self.opened.len() as u32;
        self.opened.push(Opened { client, server });
        number
    }
}
