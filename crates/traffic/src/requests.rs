//! [`RequestSource`]: open-loop requests and their responses, of one server at a time (`rpc`, `transfer`) or of all at
//! once (`fan-out`).

use std::collections::BTreeSet;

use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Span, Stream, Streams, Time};

use crate::distribution::{Sampler, exponential};
use crate::draw::{stretched, uniform_choice};
use crate::exchange::{Exchanges, PendingRequest, WorkloadConnections};
use crate::record::QueryRecord;
use crate::slab::Slab;
use crate::source::{Actions, Arrival, Hint, Opened, Source, pairs};

/// The requests of a client: their servers, sizes and rate.
#[derive(Debug)]
pub(crate) struct RequestsConfig {
    /// The index of the workload, for its records.
    pub(crate) workload: u16,
    pub(crate) client: HostId,
    pub(crate) servers: Vec<HostId>,
    pub(crate) request: Sampler<Bytes>,
    pub(crate) response: Sampler<Bytes>,
    pub(crate) service: Sampler<Span>,
    /// The mean seconds between requests (between queries for a fan-out).
    pub(crate) mean_gap: f64,
    /// True if every server is asked at once.
    pub(crate) fan_out: bool,
    /// True if the server is drawn, rather than taken in turn.
    pub(crate) random_server: bool,
    pub(crate) deadline: Option<Span>,
    pub(crate) count: Option<u64>,
    pub(crate) start: Time,
    /// The time from which on no request is created.
    pub(crate) until: Time,
    /// The time before which requests do not count.
    pub(crate) warmup: Time,
    /// True if each request has a connection, rather than each server.
    pub(crate) connection_per_request: bool,
}

/// A fan-out query whose responses have not all arrived.
#[derive(Clone, Copy, Debug)]
struct OpenQuery {
    index: u64,
    created: Time,
    left: u32,
    in_deadline: u32,
    sum: Span,
    fastest: Span,
}

/// The source of a client's open-loop requests.
#[derive(Debug)]
pub(crate) struct RequestSource {
    config: RequestsConfig,
    pool: WorkloadConnections,
    exchanges: Exchanges,
    gaps: Stream,
    /// The family of the keyed streams for server, sizes and service time.
    draws: u64,
    next: Time,
    created: u64,
    queries: Slab<OpenQuery>,
}

impl RequestSource {
    pub(crate) fn new(config: RequestsConfig, streams: &Streams, name: &str) -> RequestSource {
        let mut requests = RequestSource {
            pool: WorkloadConnections::new(config.connection_per_request),
            exchanges: Exchanges::new(config.workload, config.servers.len(), 1),
            gaps: streams.stream(&format!("workload/{name}/gaps")),
            draws: streams.word(&format!("workload/{name}/draws")),
            next: config.start,
            created: 0,
            queries: Slab::default(),
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

    /// Sends a request; `slot` is the slot of its query.
    fn ask(&mut self, now: Time, index: u64, server: usize, slot: Option<usize>, actions: &mut Actions) {
        let config = &self.config;
        let mut stream = Streams::keyed(self.draws, index);
        let response_bytes = config.response.sample(&mut stream).get().max(1);
        let service = config.service.sample(&mut stream);
        // Drawn last, so that requests of one size leave the other draws as they are.
        let request_bytes = config.request.sample(&mut stream).get().max(1);
        let (client, host) = (config.client, config.servers[server]);
        let ask = PendingRequest {
            index,
            query: slot.map(|_| index / config.servers.len() as u64),
            owner: slot.map_or(0, |slot| slot as u64),
            client,
            server: host,
            queue: server,
            connection: self.pool.connection(client, host, 0, actions),
            request_bytes,
            response_bytes,
            service,
        };
        self.exchanges.ask(now, ask, actions);
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
                actions.records.queries.push(self.record_query(&query, Some(now)));
            }
        }
    }

    fn record_query(&self, query: &OpenQuery, completed: Option<Time>) -> QueryRecord {
        let servers = self.config.servers.len() as u32;
        let answered = u64::from(servers - query.left).max(1);
        QueryRecord {
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

impl Source for RequestSource {
    fn next_due(&self) -> Time {
        self.next.min(self.exchanges.next_due())
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        self.exchanges.on_due(now, actions);
        while self.next <= now {
            self.create(now, actions);
            self.draw_gap();
        }
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        let Some(done) = self.exchanges.on_message(arrival, actions) else { return };
        if done.message.query.is_some() {
            self.on_query_response(arrival.now, done.owner as usize, actions);
        }
        if done.message.created >= self.config.warmup {
            actions.records.messages.push(done.message);
        }
    }

    fn kept_connections(&self) -> Vec<Opened> {
        let RequestsConfig { client, servers, connection_per_request, .. } = &self.config;
        let kept = pairs(std::slice::from_ref(client), servers).filter(|_| !connection_per_request);
        kept.collect::<BTreeSet<Opened>>().into_iter().collect()
    }

    fn hints(&self, tell: &mut dyn FnMut(Hint)) {
        self.exchanges.hints(tell);
    }

    fn is_finished(&self) -> bool {
        self.next == Time::MAX && self.exchanges.is_empty()
    }

    fn on_end(&mut self, actions: &mut Actions) {
        let counted = |created: Time| created >= self.config.warmup;
        let unfinished = self.exchanges.unfinished().map(|done| done.message);
        actions.records.messages.extend(unfinished.filter(|message| counted(message.created)));
        for query in self.queries.iter().filter(|query| counted(query.created)) {
            actions.records.queries.push(self.record_query(query, None));
        }
    }
}
