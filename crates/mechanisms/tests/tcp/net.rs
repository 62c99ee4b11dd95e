//! A virtual network: two endpoints, and between them a chain of FIFO ports in each direction. One
//! event a hop, events in order of time, then of their making.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use plimsoll_mechanisms::tcp::{Delivered, EcnField, Endpoint, TcpConfig, TcpSegment};
use plimsoll_units::{Bytes, Rate, Span, Time};

/// An output port and the link behind it.
#[derive(Clone)]
pub struct Hop {
    pub rate: Rate,
    pub delay: Span,
    /// Packets that may wait, one in transmission not counted.
    pub limit: usize,
    /// Marks where this many packets wait.
    pub mark_at: usize,
    departures: VecDeque<Time>,
    pub drops: u64,
    pub longest: usize,
}

impl Hop {
    pub fn new(rate: Rate, delay: Span, limit: usize) -> Hop {
        Hop { rate, delay, limit, mark_at: usize::MAX, departures: VecDeque::new(), drops: 0, longest: 0 }
    }

    pub fn marking(mut self, packets: usize) -> Hop {
        self.mark_at = packets;
        self
    }

    /// Returns when the packet is at the other end of the link; `None` if it is lost.
    fn admit(&mut self, now: Time, bytes: u32, segment: &mut TcpSegment) -> Option<Time> {
        while self.departures.front().is_some_and(|at| *at <= now) {
            self.departures.pop_front();
        }
        let waiting = self.departures.len().saturating_sub(1);
        if !self.departures.is_empty() && waiting >= self.limit {
            self.drops += 1;
            return None;
        }
        if waiting >= self.mark_at && segment.ecn == EcnField::Ect {
            segment.ecn = EcnField::Ce;
        }
        let start = self.departures.back().copied().unwrap_or(now).max(now);
        let departure = start + Bytes::new(u64::from(bytes)).time_at(self.rate);
        self.departures.push_back(departure);
        self.longest = self.longest.max(self.departures.len().saturating_sub(1));
        Some(departure + self.delay)
    }
}

/// The two ends of a connection.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum End {
    Client,
    Server,
}

impl End {
    fn other(self) -> End {
        match self {
            End::Client => End::Server,
            End::Server => End::Client,
        }
    }
}

struct Event {
    at: Time,
    order: u64,
    to: End,
    /// Next hop of the path towards `to`; its length when the packet is there.
    hop: usize,
    segment: TcpSegment,
}

impl PartialEq for Event {
    fn eq(&self, other: &Event) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Event {}
impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Event) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Event {
    fn cmp(&self, other: &Event) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

pub struct Net {
    pub config: TcpConfig,
    pub now: Time,
    pub client: Endpoint,
    pub server: Endpoint,
    pub to_server: Vec<Hop>,
    pub to_client: Vec<Hop>,
    events: BinaryHeap<Reverse<Event>>,
    order: u64,
    pub steps: u64,
}

impl Net {
    pub fn new(config: TcpConfig, to_server: Vec<Hop>, to_client: Vec<Hop>) -> Net {
        let (client, server) = (Endpoint::new(&config), Endpoint::new(&config));
        let events = BinaryHeap::new();
        Net { config, now: Time::ZERO, client, server, to_server, to_client, events, order: 0, steps: 0 }
    }

    pub fn endpoint(&mut self, end: End) -> &mut Endpoint {
        match end {
            End::Client => &mut self.client,
            End::Server => &mut self.server,
        }
    }

    pub fn write(&mut self, end: End, bytes: u64) {
        let (config, now) = (self.config.clone(), self.now);
        self.endpoint(end).write(&config, now, bytes);
        self.flush(end);
    }

    /// Sends what `end` has to send.
    pub fn flush(&mut self, end: End) {
        let (config, now) = (self.config.clone(), self.now);
        while let Some(segment) = self.endpoint(end).poll_transmit(&config, now) {
            self.forward(now, end.other(), 0, segment);
        }
    }

    fn forward(&mut self, now: Time, to: End, hop: usize, mut segment: TcpSegment) {
        let bytes = self.config.wire_bytes(&segment);
        let path = if to == End::Server { &mut self.to_server } else { &mut self.to_client };
        let Some(at) = path[hop].admit(now, bytes, &mut segment) else { return };
        self.order += 1;
        self.events.push(Reverse(Event { at, order: self.order, to, hop: hop + 1, segment }));
    }

    /// Runs the next event. Returns the delivered segment and its receiver, or `None` without a delivery.
    pub fn step(&mut self) -> Option<(End, Delivered)> {
        self.steps += 1;
        let timer = self.client.deadline().min(self.server.deadline());
        let arrival = self.events.peek().map_or(Time::MAX, |event| event.0.at);
        if timer < arrival {
            self.now = timer;
            let end = if self.client.deadline() <= timer { End::Client } else { End::Server };
            let (config, now) = (self.config.clone(), self.now);
            self.endpoint(end).on_deadline(&config, now);
            self.flush(end);
            return None;
        }
        let Reverse(event) = self.events.pop()?;
        self.now = event.at;
        let path = if event.to == End::Server { &self.to_server } else { &self.to_client };
        if event.hop < path.len() {
            self.forward(event.at, event.to, event.hop, event.segment);
            return None;
        }
        let (config, now) = (self.config.clone(), self.now);
        let delivered = self.endpoint(event.to).on_segment(&config, now, &event.segment);
        self.flush(event.to);
        Some((event.to, delivered))
    }

    /// Returns whether nothing is in flight and no timer is set.
    pub fn is_quiet(&self) -> bool {
        let timer = self.client.deadline().min(self.server.deadline());
        self.events.is_empty() && timer == Time::MAX
    }

    /// The time at which `end` has received `bytes`.
    #[track_caller]
    pub fn run_until_received(&mut self, end: End, bytes: u64) -> Time {
        while self.endpoint(end).received() < bytes {
            assert!(!self.is_quiet(), "quiet at {} before {bytes} bytes", self.now);
            self.step();
            assert!(self.steps < 50_000_000, "no end at {}", self.now);
        }
        self.now
    }

    /// Runs until nothing is scheduled.
    pub fn run_until_quiet(&mut self) {
        while !self.is_quiet() {
            self.step();
            assert!(self.steps < 50_000_000, "no end at {}", self.now);
        }
    }
}
