//! [`Collected`]: the messages of all conversations, and the counters of their classes.

use hashbrown::HashMap;
use plimsoll_units::{Span, Time};

use super::classes::{ClassOf, Classes};
use super::compared::Tally;
use super::options::{CaptureClassBy, CaptureOptions};

/// A request and its response, by the times of the capture.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenExchange {
    pub(super) class: u16,
    pub(super) connection: u32,
    pub(super) client: u32,
    pub(super) server: u32,
    pub(super) start: Time,
    /// The time since the response before on the connection, if nothing else came between.
    pub(super) think: Option<Span>,
    pub(super) request: u64,
    pub(super) response: u64,
    /// The time from the last byte of the request to the first of the response.
    pub(super) turnaround: Span,
    pub(super) latency: Span,
    /// Packets passed several interfaces, so that it has the times of arrivals and of departures.
    pub(super) has_copies: bool,
}

/// Bytes in one direction, by the times of the capture.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenFlow {
    pub(super) class: u16,
    pub(super) start: Time,
    pub(super) end: Time,
    pub(super) source: u32,
    pub(super) destination: u32,
    pub(super) bytes: u64,
}

/// The shortest times in which hosts have answered a peer: the round trip between the place of the capture and the
/// host.
#[derive(Default)]
pub(super) struct Turnarounds {
    /// By acknowledgements without data, which a host sends at once: by host and peer.
    pure: HashMap<(u32, u32), Span>,
    /// By anything, by host.
    any: HashMap<u32, Span>,
}

impl Turnarounds {
    pub(super) fn add(&mut self, host: u32, peer: u32, time: Span, is_pure: bool) {
        if is_pure {
            let least = self.pure.entry((host, peer)).or_insert(time);
            *least = time.min(*least);
        }
        let least = self.any.entry(host).or_insert(time);
        *least = time.min(*least);
    }

    /// Returns the part of a host's turnaround that the network takes, and whether that is assumed from the fastest
    /// response.
    pub(super) fn network(&self, host: u32, peer: u32, has_copies: bool) -> (Span, bool) {
        if let Some(least) = self.pure.get(&(host, peer)) {
            return (*least, false);
        }
        let others = || self.pure.values().copied().min();
        match (has_copies, self.any.get(&host)) {
            (true, _) => (others().unwrap_or(Span::ZERO), false),
            (false, least) => (least.copied().unwrap_or(Span::ZERO), true),
        }
    }
}

/// Everything that captures have had so far.
pub(super) struct Collected {
    pub(super) idle: Span,
    pub(super) classes: Classes,
    pub(super) tallies: Vec<Tally>,
    pub(super) exchanges: Vec<SeenExchange>,
    pub(super) flows: Vec<SeenFlow>,
    pub(super) turnarounds: Turnarounds,
    /// Frames without ports, or from a host to itself.
    pub(super) left_out: u64,
    messages_max: usize,
    connections: u32,
}

impl Collected {
    pub(super) fn new(by: CaptureClassBy, options: &CaptureOptions) -> Collected {
        Collected {
            idle: options.idle,
            classes: Classes::new(by),
            tallies: Vec::new(),
            exchanges: Vec::new(),
            flows: Vec::new(),
            turnarounds: Turnarounds::default(),
            left_out: 0,
            messages_max: options.messages_max,
            connections: 0,
        }
    }

    /// Begins a conversation, and returns the number of its class.
    pub(super) fn begin(&mut self, of: &ClassOf) -> u16 {
        let number = self.classes.number(of);
        if usize::from(number) >= self.tallies.len() {
            self.tallies.push(Tally::default());
        }
        self.tally(number).begin();
        number
    }

    pub(super) fn tally(&mut self, class: u16) -> &mut Tally {
        &mut self.tallies[usize::from(class)]
    }

    pub(super) fn next_connection(&mut self) -> u32 {
        self.connections += 1;
        self.connections - 1
    }

    /// Keeps a request with its response; one that ends after the last message that there is room for is left out.
    pub(super) fn exchange(&mut self, exchange: SeenExchange) {
        if self.is_full() {
            return;
        }
        self.tally(exchange.class).bytes += exchange.request + exchange.response;
        self.exchanges.push(exchange);
    }

    pub(super) fn flow(&mut self, flow: SeenFlow) {
        if self.is_full() {
            return;
        }
        self.tally(flow.class).bytes += flow.bytes;
        self.flows.push(flow);
    }

    pub(super) fn leave_out_frame(&mut self) {
        self.left_out += 1;
    }

    /// Returns whether there is room for no further message.
    pub(super) fn is_full(&self) -> bool {
        self.exchanges.len() + self.flows.len() >= self.messages_max
    }

    /// Returns whether no message was collected.
    pub(super) fn is_silent(&self) -> bool {
        self.exchanges.is_empty() && self.flows.is_empty()
    }
}
