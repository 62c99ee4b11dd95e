//! `shuffle`: waves in which every reducer fetches from every mapper.

use plimsoll_fabric::engine::Streams;
use plimsoll_fabric::net::HostId;
use plimsoll_results::outcome::Query;
use plimsoll_scenario::distribution::Sampler;
use plimsoll_units::{Bytes, Span, Time};

use super::exchange::{Ask, Exchanges, Pool};
use super::{Actions, Arrival, Opened, Workload, uniform_choice};

/// Who fetches what from whom.
#[derive(Debug)]
pub(crate) struct ShuffleConfig {
    pub(crate) workload: u16,
    pub(crate) mappers: Vec<HostId>,
    pub(crate) reducers: Vec<HostId>,
    pub(crate) size: Sampler<Bytes>,
    pub(crate) request: Sampler<Bytes>,
    /// Transfers of a reducer at once.
    pub(crate) parallel: u32,
    pub(crate) waves: Option<u64>,
    pub(crate) pause: Span,
    pub(crate) start: Time,
    pub(crate) until: Time,
    pub(crate) warmup: Time,
    pub(crate) connection_per_message: bool,
}

/// A job that shuffles.
#[derive(Debug)]
pub(crate) struct Shuffle {
    config: ShuffleConfig,
    /// Family of the keyed streams for sizes; the next one is for the order of the mappers.
    draws: u64,
    pool: Pool,
    exchanges: Exchanges,
    wave: u64,
    /// When the next wave starts.
    next: Time,
    /// By reducer, the mappers that it still has to ask, the next one last.
    to_ask: Vec<Vec<u32>>,
    /// Transfers of the wave that are not done.
    left: u64,
    job: Job,
}

/// The query that the job is.
#[derive(Clone, Copy, Debug)]
struct Job {
    created: Option<Time>,
    done: u32,
    sum: Span,
    fastest: Span,
    is_over: bool,
}

impl Shuffle {
    pub(crate) fn new(config: ShuffleConfig, streams: &Streams, name: &str) -> Shuffle {
        Shuffle {
            draws: streams.word(&format!("workload/{name}/draws")),
            pool: Pool::new(config.connection_per_message),
            exchanges: Exchanges::new(config.workload, config.mappers.len(), u32::MAX),
            wave: 0,
            next: if config.start < config.until { config.start } else { Time::MAX },
            to_ask: vec![Vec::new(); config.reducers.len()],
            left: 0,
            job: Job { created: None, done: 0, sum: Span::ZERO, fastest: Span::MAX, is_over: false },
            config,
        }
    }

    fn begin_wave(&mut self, now: Time, actions: &mut Actions) {
        self.next = Time::MAX;
        self.job.created.get_or_insert(now);
        let reducers = self.config.reducers.len() as u64;
        for (number, reducer) in self.config.reducers.iter().enumerate() {
            let mappers = &self.config.mappers;
            let mut order: Vec<u32> =
                (0..mappers.len() as u32).filter(|&mapper| mappers[mapper as usize] != *reducer).collect();
            let mut stream = Streams::keyed(self.draws ^ 1, self.wave * reducers + number as u64);
            for last in (1..order.len()).rev() {
                order.swap(last, uniform_choice(&mut stream, last as u64 + 1) as usize);
            }
            self.left += order.len() as u64;
            self.to_ask[number] = order;
        }
        for reducer in 0..self.config.reducers.len() {
            for _ in 0..self.config.parallel {
                if !self.fetch(now, reducer, actions) {
                    break;
                }
            }
        }
    }

    /// Begins the reducer's next transfer, if there is one.
    fn fetch(&mut self, now: Time, reducer: usize, actions: &mut Actions) -> bool {
        if now >= self.config.until {
            return false;
        }
        let Some(mapper) = self.to_ask[reducer].pop() else { return false };
        let config = &self.config;
        let (from, to) = (config.reducers[reducer], config.mappers[mapper as usize]);
        let of_wave = reducer as u64 * config.mappers.len() as u64 + u64::from(mapper);
        let index = self.wave * (config.reducers.len() * config.mappers.len()) as u64 + of_wave;
        let mut stream = Streams::keyed(self.draws, index);
        let ask = Ask {
            index,
            query: config.waves.map(|_| 0),
            owner: reducer as u64,
            client: from,
            server: to,
            queue: mapper as usize,
            connection: self.pool.connection(from, to, 0, actions),
            response_bytes: config.size.sample(&mut stream).get().max(1),
            request_bytes: config.request.sample(&mut stream).get().max(1),
            service: Span::ZERO,
        };
        self.exchanges.ask(now, ask, actions);
        true
    }

    fn on_wave_done(&mut self, now: Time, actions: &mut Actions) {
        self.wave += 1;
        if self.config.waves.is_some_and(|waves| self.wave >= waves) {
            self.job.is_over = true;
            actions.queries.extend(self.record(Some(now)));
            return;
        }
        let next = now.saturating_add(self.config.pause);
        if next < self.config.until {
            self.next = next;
        }
    }

    /// The job as a query, if it has an end and counts.
    fn record(&self, completed: Option<Time>) -> Option<Query> {
        let waves = self.config.waves?;
        let Job { created, done, sum, fastest, .. } = self.job;
        let created = created.filter(|created| *created >= self.config.warmup)?;
        let ShuffleConfig { mappers, reducers, .. } = &self.config;
        let own = reducers.iter().filter(|host| mappers.contains(host)).count();
        let transfers = ((mappers.len() * reducers.len() - own) as u64).saturating_mul(waves);
        Some(Query {
            workload: self.config.workload,
            index: 0,
            created,
            completed,
            servers: u32::try_from(transfers).unwrap_or(u32::MAX),
            in_deadline: done,
            response_mean: sum / u64::from(done.max(1)),
            response_min: fastest,
        })
    }
}

impl Workload for Shuffle {
    fn next_due(&self) -> Time {
        self.next
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        if self.next <= now {
            self.begin_wave(now, actions);
        }
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        let Some(done) = self.exchanges.on_message(arrival, actions) else { return };
        let latency = arrival.now - done.message.created;
        self.job.done = self.job.done.saturating_add(1);
        self.job.sum += latency;
        self.job.fastest = self.job.fastest.min(latency);
        if done.message.created >= self.config.warmup {
            actions.messages.push(done.message);
        }
        self.left -= 1;
        if self.left == 0 {
            self.on_wave_done(arrival.now, actions);
        } else {
            self.fetch(arrival.now, done.owner as usize, actions);
        }
    }

    fn kept_connections(&self) -> Vec<Opened> {
        let ShuffleConfig { mappers, reducers, connection_per_message, .. } = &self.config;
        super::pairs(reducers, mappers).filter(|_| !connection_per_message).collect()
    }

    fn is_finished(&self) -> bool {
        self.next == Time::MAX && self.exchanges.is_empty()
    }

    fn on_end(&mut self, actions: &mut Actions) {
        let unfinished = self.exchanges.unfinished().map(|done| done.message);
        actions.messages.extend(unfinished.filter(|message| message.created >= self.config.warmup));
        if !self.job.is_over {
            actions.queries.extend(self.record(None));
        }
    }
}
