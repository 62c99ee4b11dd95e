//! Requests and responses: one server at a time (`rpc`, `transfer`) or all at once (`fan-out`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_fabric::engine::{Stream, Streams};
use plimsoll_fabric::net::HostId;
use plimsoll_results::outcome::{Message, Query, Split};
use plimsoll_scenario::distribution::{Sampler, exponential};
use plimsoll_units::{Bytes, Span, Time};

use super::slab::Slab;
use super::{Actions, Arrival, Workload, Write, stretched, uniform_choice};
use crate::connection::End;

/// What a client asks, of whom, and how often.
#[derive(Debug)]
pub(crate) struct RequestsConfig {
    /// Index of the workload, for its records.
    pub(crate) workload: u16,
    pub(crate) client: HostId,
    pub(crate) servers: Vec<HostId>,
    pub(crate) request_bytes: u64,
    pub(crate) response: Sampler<Bytes>,
    pub(crate) service: Sampler<Span>,
    /// Mean seconds between requests (between queries for a fan-out).
    pub(crate) mean_gap: f64,
    /// Ask every server at once.
    pub(crate) fan_out: bool,
    /// Draw the server instead of taking turns.
    pub(crate) random_server: bool,
    pub(crate) deadline: Option<Span>,
    pub(crate) count: Option<u64>,
    pub(crate) start: Time,
    /// No request is created from then on.
    pub(crate) until: Time,
    /// Requests created before do not count.
    pub(crate) warmup: Time,
    /// A connection for each request, rather than one for each server.
    pub(crate) connection_per_request: bool,
}

/// A request on its way.
#[derive(Clone, Copy, Debug)]
struct Open {
    index: u64,
    query: Option<usize>,
    server: usize,
    connection: u32,
    created: Time,
    response_bytes: u64,
    service: Span,
    /// When the request reached its server.
    asked: Time,
    split: Split,
    ideal: Span,
}

/// A fan-out query whose responses are still coming.
#[derive(Clone, Copy, Debug)]
struct OpenQuery {
    index: u64,
    created: Time,
    left: u32,
    in_deadline: u32,
    sum: Span,
    fastest: Span,
}

/// A client's open-loop requests.
#[derive(Debug)]
pub(crate) struct Requests {
    config: RequestsConfig,
    /// One connection for each server, opened at the first request.
    connections: Vec<Option<u32>>,
    gaps: Stream,
    /// Family of the keyed streams for server, response size and service time.
    draws: u64,
    next: Time,
    created: u64,
    open: Slab<Open>,
    queries: Slab<OpenQuery>,
    /// When each server is free again.
    busy_until: Vec<Time>,
    /// What servers work on: when it is done, tie-break, which request.
    serving: BinaryHeap<Reverse<(Time, u64, usize)>>,
    served: u64,
}

/// Which leg of an exchange a message is: the low bit of its tag.
const RESPONSE: u64 = 1;

impl Requests {
    pub(crate) fn new(config: RequestsConfig, streams: &Streams, name: &str) -> Requests {
        let servers = config.servers.len();
        let mut requests = Requests {
            connections: vec![None; servers],
            gaps: streams.stream(&format!("workload/{name}/gaps")),
            draws: streams.word(&format!("workload/{name}/draws")),
            next: config.start,
            created: 0,
            open: Slab::default(),
            queries: Slab::default(),
            busy_until: vec![Time::ZERO; servers],
            serving: BinaryHeap::new(),
            served: 0,
            config,
        };
        requests.draw_gap();
        requests
    }

    fn draw_gap(&mut self) {
        let gap = stretched(self.config.mean_gap, exponential(&mut self.gaps));
        self.next = self.next.saturating_add(gap);
        let enough = self.config.count.is_some_and(|count| self.created >= count);
        if enough || self.next >= self.config.until {
            self.next = Time::MAX;
        }
    }

    fn create(&mut self, now: Time, actions: &mut Actions) {
        let index = self.created;
        self.created += 1;
        let servers = self.config.servers.len();
        if self.config.fan_out {
            let query = self.queries.insert(OpenQuery {
                index,
                created: now,
                left: servers as u32,
                in_deadline: 0,
                sum: Span::ZERO,
                fastest: Span::MAX,
            });
            for server in 0..servers {
                self.ask(now, index * servers as u64 + server as u64, server, Some(query), actions);
            }
        } else {
            let server = if self.config.random_server {
                uniform_choice(&mut Streams::keyed(self.draws ^ 1, index), servers as u64) as usize
            } else {
                (index % servers as u64) as usize
            };
            self.ask(now, index, server, None, actions);
        }
    }

    fn ask(&mut self, now: Time, index: u64, server: usize, query: Option<usize>, actions: &mut Actions) {
        let mut stream = Streams::keyed(self.draws, index);
        let response_bytes = self.config.response.sample(&mut stream).get().max(1);
        let service = self.config.service.sample(&mut stream);
        let connection = self.connection(server, actions);
        let slot = self.open.insert(Open {
            index,
            query,
            server,
            connection,
            created: now,
            response_bytes,
            service,
            asked: now,
            split: Split::default(),
            ideal: service,
        });
        actions.writes.push(Write {
            connection,
            end: End::Client,
            bytes: self.config.request_bytes,
            tag: (slot as u64) << 1,
            created: now,
        });
    }

    fn connection(&mut self, server: usize, actions: &mut Actions) -> u32 {
        let (client, host) = (self.config.client, self.config.servers[server]);
        if self.config.connection_per_request {
            return actions.open(client, host);
        }
        *self.connections[server].get_or_insert_with(|| actions.open(client, host))
    }

    fn on_request(&mut self, now: Time, slot: usize, actions: &mut Actions) {
        let open = self.open.get_mut(slot);
        open.asked = now;
        let start = now.max(self.busy_until[open.server]);
        let done = start + open.service;
        self.busy_until[open.server] = done;
        if done == now {
            self.answer(now, slot, actions);
        } else {
            self.served += 1;
            self.serving.push(Reverse((done, self.served, slot)));
        }
    }

    fn answer(&mut self, now: Time, slot: usize, actions: &mut Actions) {
        let open = self.open.get_mut(slot);
        open.split.service = now - open.asked;
        actions.writes.push(Write {
            connection: open.connection,
            end: End::Server,
            bytes: open.response_bytes,
            tag: (slot as u64) << 1 | RESPONSE,
            created: now,
        });
    }

    fn on_response(&mut self, now: Time, slot: usize, actions: &mut Actions) {
        let open = self.open.remove(slot);
        if let Some(query) = open.query {
            self.on_query_response(now, query, actions);
        }
        if open.created >= self.config.warmup {
            actions.messages.push(self.record(&open, Some(now)));
        }
    }

    fn on_query_response(&mut self, now: Time, slot: usize, actions: &mut Actions) {
        let query = self.queries.get_mut(slot);
        let latency = now - query.created;
        query.left -= 1;
        query.sum += latency;
        query.fastest = query.fastest.min(latency);
        query.in_deadline += u32::from(self.config.deadline.is_none_or(|deadline| latency < deadline));
        if query.left == 0 {
            let query = self.queries.remove(slot);
            if query.created >= self.config.warmup {
                actions.queries.push(self.record_query(&query, Some(now)));
            }
        }
    }

    fn record(&self, open: &Open, completed: Option<Time>) -> Message {
        let servers = self.config.servers.len() as u64;
        Message {
            workload: self.config.workload,
            index: open.index,
            query: open.query.map(|_| open.index / servers),
            source: self.config.client.0,
            destination: self.config.servers[open.server].0,
            bytes: open.response_bytes,
            created: open.created,
            completed,
            ideal: open.ideal,
            split: open.split,
        }
    }

    fn record_query(&self, query: &OpenQuery, completed: Option<Time>) -> Query {
        let servers = self.config.servers.len() as u32;
        let answered = u64::from(servers - query.left).max(1);
        Query {
            workload: self.config.workload,
            index: query.index,
            created: query.created,
            completed,
            servers,
            in_deadline: query.in_deadline,
            response_mean: query.sum / answered,
            response_min: query.fastest,
        }
    }
}

impl Workload for Requests {
    fn next_due(&self) -> Time {
        let serving = self.serving.peek().map_or(Time::MAX, |Reverse((done, ..))| *done);
        self.next.min(serving)
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        while let Some(&Reverse((done, _, slot))) = self.serving.peek()
            && done <= now
        {
            self.serving.pop();
            self.answer(now, slot, actions);
        }
        while self.next <= now {
            self.create(now, actions);
            self.draw_gap();
        }
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        let slot = (arrival.tag >> 1) as usize;
        let open = self.open.get_mut(slot);
        open.split = open.split + arrival.split;
        open.ideal += arrival.ideal;
        if arrival.tag & RESPONSE == 0 {
            self.on_request(arrival.now, slot, actions);
        } else {
            self.on_response(arrival.now, slot, actions);
        }
    }

    fn is_finished(&self) -> bool {
        self.next == Time::MAX && self.open.is_empty()
    }

    fn on_end(&mut self, actions: &mut Actions) {
        let counted = |created: Time| created >= self.config.warmup;
        for open in self.open.iter().filter(|open| counted(open.created)) {
            actions.messages.push(self.record(open, None));
        }
        for query in self.queries.iter().filter(|query| counted(query.created)) {
            actions.queries.push(self.record_query(query, None));
        }
    }
}
