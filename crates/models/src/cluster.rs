//! A queueing model of servers that have the same data: the cost of requests' copies for the servers, and its effect on
//! the latencies.
//!
//! ```text
//! client ──outside──> queue ──> server: service ──> client          first reply: the request is over
//!    └─ a copy to another server: at once, after a while, or instead of one that is given up
//! ```
//!
//! Copies of [`crate::Redundant`] cost nothing. Here each of them is served whole, also one whose request is over or
//! given up, since the server does not learn of that. Beyond a load that depends on the service times, copies therefore
//! make everything slower: two replicas of exponential service times help while each server is busy for less than a
//! third of the time. Retries can do worse, as each is sent because the servers are slow already.
//!
//! Arrivals are Poisson; each server has one thread and an unlimited queue in the order of arrival; the servers of a
//! request are different ones, drawn at random. [`run`] is a pure function of the model and the seed: a copy draws from
//! a stream keyed by the numbers of its request and of the copy, so policies meet the same requests.

use std::collections::VecDeque;

use plimsoll_fabric::engine::{EventQueue, Owner, OwnerKind};
use plimsoll_mechanisms::InvalidParam;
use plimsoll_traffic::distribution::{Sampler, TimeDistribution, exponential, uniform};
use plimsoll_units::{Span, Stream, Streams, Time};
use serde::Deserialize;

/// Servers with the same data, and their requests.
#[derive(Clone, PartialEq, Debug)]
pub struct ClusterModel {
    /// The number of servers, 1 to [`SERVERS_MAX`].
    pub servers: u32,
    /// Requests a second to all servers together, without copies; more than 0.
    pub rate: f64,
    /// The time that a copy takes of its server.
    pub service: TimeDistribution,
    /// The time of a copy outside the server, before it queues there.
    pub outside: TimeDistribution,
    /// The times at which copies are sent.
    pub sending: Sending,
    /// Requests in all; at least 1.
    pub requests: u64,
    /// The number of requests at the beginning that do not count; fewer than `requests`.
    pub warmup: u64,
}

/// The times at which copies of a request are sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Sending {
    /// A request is sent once.
    Once,
    /// A request is sent to this many servers at once, at least 1; the first reply counts.
    Replicas(u32),
    /// A request without a reply is sent to another server as well; the first reply counts.
    Hedge {
        /// The time after which a further copy is sent.
        after: Span,
        /// The most copies, at least 1.
        copies: u32,
    },
    /// A request without a reply is given up and sent to another server; only the last copy's reply counts.
    Retry {
        /// The time after which a request is given up.
        timeout: Span,
        /// The most copies after the first; the last of them has no timeout.
        retries: u32,
    },
}

impl Sending {
    /// Returns the most copies of a request.
    fn copies(self) -> u32 {
        match self {
            Sending::Once => 1,
            Sending::Replicas(copies) | Sending::Hedge { copies, .. } => copies,
            Sending::Retry { retries, .. } => retries + 1,
        }
    }

    /// Returns the time from one copy to the next, unless all are sent at once.
    fn interval(self) -> Option<Span> {
        match self {
            Sending::Once | Sending::Replicas(_) => None,
            Sending::Hedge { after, .. } => Some(after),
            Sending::Retry { timeout, .. } => Some(timeout),
        }
    }
}

/// The most servers of a cluster, and the most copies of a request.
pub const SERVERS_MAX: u32 = 64;

impl ClusterModel {
    fn check(&self) -> Result<(), InvalidParam> {
        let is_count = (1..=SERVERS_MAX).contains(&self.servers);
        InvalidParam::unless(is_count, "servers", self.servers, "1 to 64")?;
        InvalidParam::unless(
            self.rate > 0.0 && self.rate.is_finite(),
            "rate",
            self.rate,
            "more than 0 requests/s",
        )?;
        let copies = self.sending.copies();
        InvalidParam::unless(
            (1..=self.servers).contains(&copies),
            "copies",
            copies,
            "1 to the number of servers",
        )?;
        let interval = self.sending.interval();
        InvalidParam::unless(interval != Some(Span::ZERO), "timeout", Span::ZERO, "more than 0us")?;
        InvalidParam::unless(self.requests >= 1, "requests", self.requests, "1 or more")?;
        InvalidParam::unless(self.warmup < self.requests, "warmup", self.warmup, "less than `requests`")?;
        for (key, time) in [("service", &self.service), ("outside", &self.outside)] {
            let problem = time.validate().err().map(|error| error.to_string());
            let is_time = problem.is_none();
            InvalidParam::unless(
                is_time,
                key,
                problem.unwrap_or_default(),
                "what a scenario's distributions may be",
            )?;
        }
        Ok(())
    }
}

/// Results of the requests of a cluster.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct ClusterOutcome {
    /// Latencies in us of the requests that count, in the order of their replies.
    pub latencies_us: Vec<f64>,
    /// Copies that were sent, the first of each request among them.
    pub copies: u64,
    /// Requests that were answered.
    pub answered: u64,
    /// Time that all servers together spent on copies.
    pub busy: Span,
    /// From the beginning to the last reply.
    pub elapsed: Span,
}

impl ClusterOutcome {
    /// Returns how many requests the servers got for each that was needed.
    pub fn load(&self) -> f64 {
        self.copies as f64 / self.answered.max(1) as f64
    }

    /// Returns the share of the time for which `servers` servers were busy.
    pub fn utilisation(&self, servers: u32) -> f64 {
        self.busy.as_secs_f64() / (self.elapsed.as_secs_f64() * f64::from(servers)).max(f64::MIN_POSITIVE)
    }
}

/// Serves `model.requests` requests.
///
/// # Errors
/// If a value does not fit; the error names the allowed ones.
pub fn run(model: &ClusterModel, seed: u64) -> Result<ClusterOutcome, InvalidParam> {
    model.check()?;
    Ok(Cluster::new(model, seed).run())
}

/// The actors, as the engine's event queue names them.
const ARRIVAL: OwnerKind = OwnerKind::Workload;
const DELIVERY: OwnerKind = OwnerKind::Link;
const SERVER: OwnerKind = OwnerKind::Endpoint;
const TIMER: OwnerKind = OwnerKind::Clock;

/// A request that has an event or a copy somewhere.
#[derive(Clone, Copy, Debug, Default)]
struct Request {
    number: u64,
    sent: Time,
    /// The number of copies so far.
    copies: u32,
    /// Servers that have got one, as bits.
    asked: u64,
    /// Copies on their way or at a server, and a timer.
    pending: u32,
    is_over: bool,
}

/// A copy of a request, at a server or on its way there.
#[derive(Clone, Copy, Debug, Default)]
struct Copy {
    request: usize,
    /// Its place among the copies of its request, from 1.
    place: u32,
    server: usize,
    service: Span,
}

struct Cluster<'a> {
    model: &'a ClusterModel,
    events: EventQueue,
    arrivals: Stream,
    /// Family of the copies' streams.
    draws: u64,
    service: Sampler<Span>,
    outside: Sampler<Span>,
    requests: Slots<Request>,
    copies: Slots<Copy>,
    /// Copies at each server, the one that is served at the front.
    queues: Vec<VecDeque<usize>>,
    created: u64,
    outcome: ClusterOutcome,
}

/// Values that have numbers, which are used again.
struct Slots<T> {
    values: Vec<T>,
    free: Vec<usize>,
}

impl<T> Slots<T> {
    fn new() -> Slots<T> {
        Slots { values: Vec::new(), free: Vec::new() }
    }

    fn insert(&mut self, value: T) -> usize {
        if let Some(slot) = self.free.pop() {
            self.values[slot] = value;
            return slot;
        }
        self.values.push(value);
        self.values.len() - 1
    }
}

impl<'a> Cluster<'a> {
    fn new(model: &'a ClusterModel, seed: u64) -> Cluster<'a> {
        let streams = Streams::new(seed);
        Cluster {
            model,
            events: EventQueue::new(),
            arrivals: streams.stream("cluster/arrivals"),
            draws: streams.word("cluster/copies"),
            service: model.service.sampler(),
            outside: model.outside.sampler(),
            requests: Slots::new(),
            copies: Slots::new(),
            queues: vec![VecDeque::new(); model.servers as usize],
            created: 0,
            outcome: ClusterOutcome::default(),
        }
    }

    fn run(mut self) -> ClusterOutcome {
        self.next_arrival(Time::ZERO);
        while self.outcome.answered < self.model.requests {
            let (now, owner) = self.events.pop().expect("a request without a reply has a copy somewhere");
            let number = owner.number() as usize;
            match owner.kind() {
                ARRIVAL => self.on_arrival(now),
                DELIVERY => self.on_delivered(now, number),
                SERVER => self.on_served(now, number),
                _ => self.on_timer(now, number),
            }
        }
        self.outcome
    }

    fn next_arrival(&mut self, now: Time) {
        let gap = Span::from_secs_f64(exponential(&mut self.arrivals) / self.model.rate);
        self.events.push(now + gap, Owner::new(ARRIVAL, 0));
    }

    fn on_arrival(&mut self, now: Time) {
        let request = self.requests.insert(Request { number: self.created, sent: now, ..Request::default() });
        self.created += 1;
        let at_once = if let Sending::Replicas(copies) = self.model.sending { copies } else { 1 };
        (0..at_once).for_each(|_| self.send(now, request));
        self.arm(now, request);
        if self.created < self.model.requests {
            self.next_arrival(now);
        }
    }

    /// Sends a copy of a request to a server that has none.
    fn send(&mut self, now: Time, slot: usize) {
        let request = &mut self.requests.values[slot];
        request.copies += 1;
        request.pending += 1;
        let key = request.number * u64::from(SERVERS_MAX) + u64::from(request.copies - 1);
        let mut stream = Streams::keyed(self.draws, key);
        let (outside, service) = (self.outside.sample(&mut stream), self.service.sample(&mut stream));
        let server = loop {
            let drawn = (uniform(&mut stream) * f64::from(self.model.servers)) as u32 % self.model.servers;
            if request.asked & (1 << drawn) == 0 {
                break drawn;
            }
        };
        request.asked |= 1 << server;
        let copy = Copy { request: slot, place: request.copies, server: server as usize, service };
        let copy = self.copies.insert(copy);
        self.outcome.copies += 1;
        self.events.push(now + outside, Owner::new(DELIVERY, copy as u32));
    }

    /// Sets a request's timer, if it may have a further copy.
    fn arm(&mut self, now: Time, slot: usize) {
        let request = &mut self.requests.values[slot];
        if let Some(interval) = self.model.sending.interval()
            && request.copies < self.model.sending.copies()
        {
            request.pending += 1;
            self.events.push(now + interval, Owner::new(TIMER, slot as u32));
        }
    }

    fn on_timer(&mut self, now: Time, slot: usize) {
        if !self.requests.values[slot].is_over {
            self.send(now, slot);
            self.arm(now, slot);
        }
        self.release(slot);
    }

    /// Frees a request to which no event or copy refers.
    fn release(&mut self, slot: usize) {
        let request = &mut self.requests.values[slot];
        request.pending -= 1;
        if request.pending == 0 {
            self.requests.free.push(slot);
        }
    }

    fn on_delivered(&mut self, now: Time, copy: usize) {
        let server = self.copies.values[copy].server;
        self.queues[server].push_back(copy);
        if self.queues[server].len() == 1 {
            self.serve(now, server);
        }
    }

    /// Begins to serve the first copy in a queue.
    fn serve(&mut self, now: Time, server: usize) {
        if let Some(&copy) = self.queues[server].front() {
            let service = self.copies.values[copy].service;
            self.outcome.busy += service;
            self.events.push(now + service, Owner::new(SERVER, server as u32));
        }
    }

    fn on_served(&mut self, now: Time, server: usize) {
        let slot = self.queues[server].pop_front().expect("what was served was at the front");
        let copy = self.copies.values[slot];
        self.copies.free.push(slot);
        let request = &mut self.requests.values[copy.request];
        let is_given_up = matches!(self.model.sending, Sending::Retry { .. }) && copy.place < request.copies;
        if !request.is_over && !is_given_up {
            request.is_over = true;
            self.outcome.answered += 1;
            self.outcome.elapsed = now.saturating_since(Time::ZERO);
            if request.number >= self.model.warmup {
                self.outcome.latencies_us.push(now.saturating_since(request.sent).as_us_f64());
            }
        }
        self.release(copy.request);
        self.serve(now, server);
    }
}

#[cfg(test)]
mod tests;
