//! `closed-loop`: clients that keep a number of requests in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Span, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrivals::ServerChoice;
use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::distribution::{Distribution, Sampler, SizeDistribution, TimeDistribution};
use crate::draw::uniform_choice;
use crate::exchange::{Exchanges, PendingRequest, WorkloadConnections};
use crate::facts::NetworkFacts;
use crate::hosts::HostSet;
use crate::kind::{Context, ExpectedRecords, Input, Kind, cdf_inputs, host_count, number};
use crate::record::Supply;
use crate::source::{Actions, Arrival, Hint, Opened, Source, pairs};

/// Clients that keep a number of requests in flight, as memaslap does to memcached: each answer starts the
/// next request.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClosedLoop {
    /// The hosts that send requests; default `client`.
    #[serde(default = "HostSet::client")]
    pub clients: HostSet,
    /// The hosts that answer; default: all that do not ask.
    #[serde(default)]
    pub servers: HostSet,
    /// Requests that each client keeps in flight, each on a connection of its own to each server.
    #[serde(default = "ClosedLoop::default_outstanding")]
    pub outstanding: u32,
    /// The payload of a request.
    #[serde(default = "ClosedLoop::default_request")]
    pub request: SizeDistribution,
    /// The payload of a response.
    #[serde(default = "ClosedLoop::default_response")]
    pub response: SizeDistribution,
    /// The rule that chooses the server of the next request.
    #[serde(default)]
    pub pick: ServerChoice,
    /// Time a server's thread takes for a request.
    #[serde(default)]
    pub service: TimeDistribution,
    /// Threads of each server; requests are served first come first served.
    #[serde(default = "ClosedLoop::default_threads")]
    pub threads: u32,
    /// Time from an answer to the request that follows it.
    #[serde(default)]
    pub think: TimeDistribution,
    /// Stop after this many requests of each client.
    #[serde(default)]
    pub count: Option<u64>,
    /// The time at which the first requests are sent.
    #[serde(default)]
    pub start: Span,
}

impl ClosedLoop {
    /// Returns the concurrency of QJump's memaslap (section 6.2).
    fn default_outstanding() -> u32 {
        128
    }

    fn default_request() -> SizeDistribution {
        Distribution::Constant(Bytes::new(100))
    }

    /// Returns the size of the values of QJump's memaslap.
    fn default_response() -> SizeDistribution {
        Distribution::Constant(Bytes::new(1_000))
    }

    fn default_threads() -> u32 {
        1
    }
}

impl Kind for ClosedLoop {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let clients = check.members("clients", &self.clients, &[]);
        check.members("servers", &self.servers, &clients);
        check.one_to_many("outstanding", self.outstanding.into(), "requests in flight");
        check.distribution("request", &mut self.request);
        check.distribution("response", &mut self.response);
        check.distribution("service", &mut self.service);
        check.distribution("think", &mut self.think);
        check.one_to_many("threads", self.threads.into(), "threads");
        WorkloadDemand { ends: self.count.is_some(), start: self.start, ..WorkloadDemand::default() }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let clients = context.hosts(&self.clients, &[], "clients")?;
        let config = ClosedLoopConfig {
            workload: context.index,
            servers: context.hosts(&self.servers, &clients, "servers")?,
            clients,
            outstanding: self.outstanding,
            request: self.request.sampler(),
            response: self.response.sampler(),
            service: self.service.sampler(),
            threads: self.threads,
            think: self.think.sampler(),
            random_server: self.pick == ServerChoice::Random,
            count: self.count,
            start: Time::ZERO + self.start,
            until: context.until,
            warmup: context.warmup,
            connection_per_message: !context.keeps_connections,
        };
        Ok(Box::new(ClosedLoopSource::new(config, context.streams, context.name)))
    }

    fn supply(&self) -> Supply {
        Supply::counted(self.count)
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        let sizes = [self.request.table(), self.response.table()];
        cdf_inputs(sizes.into_iter().chain([self.service.table(), self.think.table()]))
    }

    fn expected_records(&self, facts: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        let clients = host_count(facts, &self.clients, &[]);
        let limit = number(self.count).map(|count| count * clients);
        Some(ExpectedRecords::new("count", self.start).limit(limit))
    }
}

/// The clients, their servers, and the requests in flight.
#[derive(Debug)]
struct ClosedLoopConfig {
    workload: u16,
    clients: Vec<HostId>,
    servers: Vec<HostId>,
    /// The number of requests of each client in flight.
    outstanding: u32,
    request: Sampler<Bytes>,
    response: Sampler<Bytes>,
    service: Sampler<Span>,
    threads: u32,
    think: Sampler<Span>,
    random_server: bool,
    /// The number of requests of each client.
    count: Option<u64>,
    start: Time,
    until: Time,
    warmup: Time,
    connection_per_message: bool,
}

/// The source: clients whose requests wait for answers.
#[derive(Debug)]
struct ClosedLoopSource {
    config: ClosedLoopConfig,
    /// The family of the keyed streams for sizes and service time; the next two are for server and think time.
    draws: u64,
    pool: WorkloadConnections,
    exchanges: Exchanges,
    /// The number of requests created, by client.
    created: Vec<u64>,
    /// The time at which a slot of a client sends its next request: (time, client, slot).
    thinking: BinaryHeap<Reverse<(Time, u32, u32)>>,
}

impl ClosedLoopSource {
    fn new(config: ClosedLoopConfig, streams: &Streams, name: &str) -> ClosedLoopSource {
        let clients = config.clients.len() as u32;
        let slots = (0..clients).flat_map(|client| (0..config.outstanding).map(move |slot| (client, slot)));
        let begins = config.start < config.until;
        ClosedLoopSource {
            draws: streams.word(&format!("workload/{name}/draws")),
            pool: WorkloadConnections::new(config.connection_per_message),
            exchanges: Exchanges::new(config.workload, config.servers.len(), config.threads),
            created: vec![0; config.clients.len()],
            thinking: slots
                .filter(|_| begins)
                .map(|(client, slot)| Reverse((config.start, client, slot)))
                .collect(),
            config,
        }
    }

    fn is_enough(&self, client: u32) -> bool {
        self.config.count.is_some_and(|count| self.created[client as usize] >= count)
    }

    fn ask(&mut self, now: Time, client: u32, slot: u32, actions: &mut Actions) {
        if self.is_enough(client) {
            return;
        }
        let config = &self.config;
        let number = self.created[client as usize];
        self.created[client as usize] += 1;
        let index = number * config.clients.len() as u64 + u64::from(client);
        let servers = config.servers.len() as u64;
        let server = if config.random_server {
            uniform_choice(&mut Streams::keyed(self.draws ^ 1, index), servers)
        } else {
            (number + u64::from(client)) % servers
        } as usize;
        let (from, to) = (config.clients[client as usize], config.servers[server]);
        let mut stream = Streams::keyed(self.draws, index);
        let ask = PendingRequest {
            index,
            query: None,
            owner: u64::from(client) << 32 | u64::from(slot),
            client: from,
            server: to,
            queue: server,
            connection: self.pool.connection(from, to, slot, actions),
            request_bytes: config.request.sample(&mut stream).get().max(1),
            response_bytes: config.response.sample(&mut stream).get().max(1),
            service: config.service.sample(&mut stream),
        };
        self.exchanges.ask(now, ask, actions);
    }
}

impl Source for ClosedLoopSource {
    fn next_due(&self) -> Time {
        let thinking = self.thinking.peek().map_or(Time::MAX, |Reverse((at, ..))| *at);
        thinking.min(self.exchanges.next_due())
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        self.exchanges.on_due(now, actions);
        while let Some(&Reverse((at, client, slot))) = self.thinking.peek()
            && at <= now
        {
            self.thinking.pop();
            self.ask(now, client, slot, actions);
        }
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        let Some(done) = self.exchanges.on_message(arrival, actions) else { return };
        if done.message.created >= self.config.warmup {
            actions.records.messages.push(done.message);
        }
        let (client, slot) = ((done.owner >> 32) as u32, done.owner as u32);
        let mut stream = Streams::keyed(self.draws ^ 2, done.message.index);
        let next = arrival.now.saturating_add(self.config.think.sample(&mut stream));
        if next >= self.config.until || self.is_enough(client) {
            return;
        }
        if next == arrival.now {
            self.ask(next, client, slot, actions);
        } else {
            self.thinking.push(Reverse((next, client, slot)));
        }
    }

    fn kept_connections(&self) -> Vec<Opened> {
        let ClosedLoopConfig { clients, servers, outstanding, connection_per_message, .. } = &self.config;
        let slots = if *connection_per_message { 0 } else { *outstanding };
        let pairs = pairs(clients, servers);
        pairs.flat_map(|pair| std::iter::repeat_n(pair, slots as usize)).collect()
    }

    fn hints(&self, tell: &mut dyn FnMut(Hint)) {
        self.exchanges.hints(tell);
    }

    fn is_finished(&self) -> bool {
        self.thinking.is_empty() && self.exchanges.is_empty()
    }

    fn on_end(&mut self, actions: &mut Actions) {
        let unfinished = self.exchanges.unfinished().map(|done| done.message);
        actions.records.messages.extend(unfinished.filter(|message| message.created >= self.config.warmup));
    }
}
