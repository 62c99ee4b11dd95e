//! [`Matcher`] follows each request through its events. It has neither clock nor kernel: events in, requests out.
//!
//! A connection carries one request at a time: data in, then data out. The kernel shows no more than that, so several
//! requests in one packet, or several that the server answers by one send, are one request here. Where data arrives
//! before the reply is complete, or several packets are answered by several sends, the data of a request cannot be
//! identified: such requests are counted, and their parts are not guessed.

use hashbrown::HashMap;

use crate::datagrams::DatagramQueues;
use crate::event::{Event, EventKind, Flow, Packet, Protocol};
use crate::exchange::RequestExchange;
use crate::request::{Reason, Request, Unmatched};
use crate::threads::{Off, Threads};

/// One connection, or one client of a UDP server.
#[derive(Debug, Default)]
struct RequestConnection {
    current: Option<RequestExchange>,
    /// The exchange before, which is complete unless more of its reply follows.
    previous: Option<RequestExchange>,
    /// The sequence number behind the last byte received, and that behind the last byte transmitted.
    received_end: Option<u32>,
    sent_end: Option<u32>,
    /// The time of the last event.
    active: u64,
}

/// Joins events to requests.
#[derive(Debug, Default)]
pub struct Matcher {
    connections: HashMap<Flow, RequestConnection>,
    threads: Threads,
    datagrams: DatagramQueues,
    done: Vec<Request>,
    unmatched: Unmatched,
}

impl Matcher {
    /// Handles the next event. Events come in the order of their times; [`crate::Sorter`] makes that order.
    pub fn on_event(&mut self, event: &Event) {
        let at = event.at;
        match event.kind {
            EventKind::Received { flow, protocol, sequence, bytes } => {
                self.on_received(at, flow, protocol, sequence, bytes);
            }
            EventKind::Ready { flow, socket } => {
                if let Some(socket) = socket {
                    self.datagrams.on_ready(socket, flow);
                }
                if let Some(exchange) = self.current(flow, at) {
                    exchange.on_ready(at);
                }
            }
            EventKind::ReadDatagram { socket, thread, bytes } => match self.datagrams.on_read(socket, thread)
            {
                // The client is not sampled, so nothing else is known of it.
                Some(flow) if !self.connections.contains_key(&flow) => {}
                Some(flow) => self.on_read(at, flow, thread, bytes),
                None => self.unmatched.add(Reason::ArrivalNotSeen, 1),
            },
            EventKind::Read { flow, thread, bytes } => self.on_read(at, flow, thread, bytes),
            EventKind::Send { flow, thread, bytes } => {
                self.threads.on_active(thread, at);
                self.with_reply(flow, at, |exchange, threads| exchange.on_send(at, thread, bytes, threads));
            }
            EventKind::Queued(packet) => {
                if let Some(exchange) = self.current(packet.flow, at) {
                    exchange.on_queued(at);
                }
            }
            EventKind::Transmitted(packet) => self.on_transmitted(at, &packet),
            EventKind::Resumed { thread, stopped, woken, preempted } => {
                self.threads.on_resumed(thread, Off { stopped, woken, resumed: at, preempted });
            }
            EventKind::Closed { flow } => {
                if let Some(connection) = self.connections.remove(&flow) {
                    self.finish_all(flow, connection, false);
                }
            }
        }
    }

    /// Spoils all requests in progress, since records were lost.
    pub fn on_lost(&mut self) {
        for connection in self.connections.values_mut() {
            for exchange in connection.current.iter_mut().chain(&mut connection.previous) {
                exchange.spoil(Reason::RecordsLost);
            }
        }
        self.datagrams = DatagramQueues::default();
    }

    /// Removes and returns the requests that are complete.
    pub fn take(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.done)
    }

    /// Ends all connections. A request without its reply is then counted as cut off.
    pub fn finish(&mut self) {
        for (flow, connection) in std::mem::take(&mut self.connections) {
            self.finish_all(flow, connection, true);
        }
    }

    /// Returns the numbers of requests that have no breakdown.
    pub fn unmatched(&self) -> &Unmatched {
        &self.unmatched
    }

    fn on_received(&mut self, at: u64, flow: Flow, protocol: Protocol, sequence: u32, bytes: u32) {
        if self.connections.len() >= CONNECTIONS_MAX && !self.connections.contains_key(&flow) {
            self.forget_quiet(at);
        }
        let connection = self.connections.entry(flow).or_default();
        connection.active = at;
        let new = match protocol {
            Protocol::Tcp => advance(&mut connection.received_end, sequence, bytes),
            Protocol::Udp => bytes,
        };
        if new == 0 {
            return;
        }
        match &mut connection.current {
            Some(exchange) if exchange.is_waiting() && protocol == Protocol::Tcp => {
                exchange.on_received(at, new);
            }
            Some(exchange) if exchange.is_waiting() => {
                // Two datagrams of one client, and no reply in between.
                exchange.requests += 1;
                exchange.spoil(Reason::Pipelined);
                exchange.on_received(at, new);
            }
            _ => {
                let last = connection.current.replace(RequestExchange::received(at, new));
                if let Some(before) = std::mem::replace(&mut connection.previous, last) {
                    self.finish_one(flow, before, false);
                }
            }
        }
    }

    fn on_read(&mut self, at: u64, flow: Flow, thread: u32, bytes: u32) {
        let active = self.threads.on_active(thread, at);
        let connection = self.connections.entry(flow).or_default();
        connection.active = at;
        let is_new = connection.received_end.is_none() && connection.current.is_none();
        match &mut connection.current {
            Some(exchange) if exchange.is_waiting() => {
                exchange.on_read(at, thread, bytes, active, &self.threads);
                if let Some(before) = connection.previous.take() {
                    self.finish_one(flow, before, false);
                }
            }
            // The request began before tracing did: its reply must not count as one to the next request.
            _ if is_new => self.unmatched.cut_off += 1,
            Some(exchange) if !exchange.is_seen() && !exchange.replies() => {}
            current => {
                if let Some(before) = current.replace(RequestExchange::unseen()) {
                    self.finish_one(flow, before, false);
                }
            }
        }
    }

    fn on_transmitted(&mut self, at: u64, packet: &Packet) {
        let Some(connection) = self.connections.get_mut(&packet.flow) else { return };
        connection.active = at;
        // A datagram has no sequence number, and every one is new.
        let is_datagram = connection.received_end.is_none();
        let new = if is_datagram {
            packet.bytes
        } else {
            advance(&mut connection.sent_end, packet.sequence, packet.bytes)
        };
        if new == 0 {
            if let Some(exchange) = &mut connection.current {
                exchange.on_repeated(at, packet);
            }
            return;
        }
        if is_datagram && let Some(read) = self.datagrams.reply(packet.thread, packet.flow) {
            // The thread answers another client than the one whose datagram it read: the order of the queue is lost.
            for flow in read {
                if let Some(exchange) = self.connections.get_mut(&flow).and_then(|one| one.current.as_mut()) {
                    exchange.spoil(Reason::Disorder);
                }
            }
        }
        let packet = Packet { bytes: new, ..*packet };
        self.with_reply(packet.flow, at, |exchange, threads| exchange.on_transmitted(at, &packet, threads));
        self.threads.on_active(packet.thread, at);
    }

    fn current(&mut self, flow: Flow, at: u64) -> Option<&mut RequestExchange> {
        let connection = self.connections.get_mut(&flow)?;
        connection.active = at;
        connection.current.as_mut()
    }

    /// Calls `act` for the exchange to which the server replies. Output before the current request was read belongs to
    /// the previous one, so that both overlap.
    fn with_reply(&mut self, flow: Flow, at: u64, act: impl FnOnce(&mut RequestExchange, &Threads)) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        connection.active = at;
        let Some(exchange) = &mut connection.current else { return };
        if exchange.is_read() {
            act(exchange, &self.threads);
        } else if exchange.is_seen() {
            if let Some(before) = &mut connection.previous {
                before.spoil(Reason::Pipelined);
            }
            exchange.spoil(Reason::Pipelined);
        }
    }

    fn finish_one(&mut self, flow: Flow, exchange: RequestExchange, at_end: bool) {
        let requests = exchange.requests;
        let replied = exchange.replies();
        match exchange.finish(flow) {
            Ok(request) => self.done.push(request),
            Err(Reason::NoReply) if at_end && !replied => self.unmatched.cut_off += requests,
            Err(reason) => self.unmatched.add(reason, requests),
        }
    }

    fn finish_all(&mut self, flow: Flow, mut connection: RequestConnection, at_end: bool) {
        if let Some(before) = connection.previous.take() {
            self.finish_one(flow, before, false);
        }
        if let Some(last) = connection.current.take() {
            self.finish_one(flow, last, at_end);
        }
    }

    /// Ends the connections that were quiet for a minute: clients of a UDP server never close.
    fn forget_quiet(&mut self, now: u64) {
        let quiet = |connection: &RequestConnection| now.saturating_sub(connection.active) > QUIET_NS;
        let flows: Vec<Flow> =
            self.connections.iter().filter(|(_, one)| quiet(one)).map(|(flow, _)| *flow).collect();
        for flow in flows {
            if let Some(connection) = self.connections.remove(&flow) {
                self.finish_all(flow, connection, false);
            }
        }
    }
}

/// Moves the end of a stream of bytes past a segment and returns how many bytes of it are new.
fn advance(end: &mut Option<u32>, sequence: u32, bytes: u32) -> u32 {
    let segment_end = sequence.wrapping_add(bytes);
    let new = match *end {
        None => bytes,
        Some(end) => {
            let ahead = segment_end.wrapping_sub(end);
            // The upper half of the numbers is behind (RFC 9293, section 3.4).
            if ahead as i32 <= 0 { 0 } else { ahead.min(bytes) }
        }
    };
    if new > 0 {
        *end = Some(segment_end);
    }
    new
}

/// The connections that are followed before the quiet ones are forgotten.
const CONNECTIONS_MAX: usize = 1 << 18;
const QUIET_NS: u64 = 60_000_000_000;
