//! `closed-loop`: clients that keep a number of requests in flight.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_fabric::engine::Streams;
use plimsoll_fabric::net::HostId;
use plimsoll_scenario::distribution::Sampler;
use plimsoll_units::{Bytes, Span, Time};

use super::exchange::{Ask, Exchanges, Pool};
use super::{Actions, Arrival, Opened, Workload, uniform_choice};

/// Who asks whom, and how much at once.
#[derive(Debug)]
pub(crate) struct ClosedLoopConfig {
    pub(crate) workload: u16,
    pub(crate) clients: Vec<HostId>,
    pub(crate) servers: Vec<HostId>,
    /// Requests of each client in flight.
    pub(crate) outstanding: u32,
    pub(crate) request: Sampler<Bytes>,
    pub(crate) response: Sampler<Bytes>,
    pub(crate) service: Sampler<Span>,
    pub(crate) threads: u32,
    pub(crate) think: Sampler<Span>,
    pub(crate) random_server: bool,
    /// Requests of each client.
    pub(crate) count: Option<u64>,
    pub(crate) start: Time,
    pub(crate) until: Time,
    pub(crate) warmup: Time,
    pub(crate) connection_per_message: bool,
}

/// Clients whose requests wait for answers.
#[derive(Debug)]
pub(crate) struct ClosedLoop {
    config: ClosedLoopConfig,
    /// Family of the keyed streams for sizes and service time; the next two are for server and thinking.
    draws: u64,
    pool: Pool,
    exchanges: Exchanges,
    /// Requests created, by client.
    created: Vec<u64>,
    /// When which client's which slot asks again.
    thinking: BinaryHeap<Reverse<(Time, u32, u32)>>,
}

impl ClosedLoop {
    pub(crate) fn new(config: ClosedLoopConfig, streams: &Streams, name: &str) -> ClosedLoop {
        let clients = config.clients.len() as u32;
        let slots = (0..clients).flat_map(|client| (0..config.outstanding).map(move |slot| (client, slot)));
        let begins = config.start < config.until;
        ClosedLoop {
            draws: streams.word(&format!("workload/{name}/draws")),
            pool: Pool::new(config.connection_per_message),
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
        let ask = Ask {
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

impl Workload for ClosedLoop {
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
            actions.messages.push(done.message);
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
        let pairs = super::pairs(clients, servers);
        pairs.flat_map(|pair| std::iter::repeat_n(pair, slots as usize)).collect()
    }

    fn is_finished(&self) -> bool {
        self.thinking.is_empty() && self.exchanges.is_empty()
    }

    fn on_end(&mut self, actions: &mut Actions) {
        let unfinished = self.exchanges.unfinished().map(|done| done.message);
        actions.messages.extend(unfinished.filter(|message| message.created >= self.config.warmup));
    }
}
