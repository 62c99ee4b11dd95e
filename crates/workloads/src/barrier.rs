//! `barrier`: workers that wait for each other, round after round.
//!
//! ```text
//! coordinator: release ──> worker computes ──> report ──> all in? next release     one round a query
//! all to all:  worker computes ──> tells all others ──> has heard of all? next round
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use plimsoll_fabric::engine::Streams;
use plimsoll_fabric::net::HostId;
use plimsoll_results::outcome::Query;
use plimsoll_scenario::distribution::Sampler;
use plimsoll_units::{Span, Time};

use super::exchange::{Letter, Pool};
use super::{Actions, Arrival, Opened, Workload};

/// Who waits for whom.
#[derive(Debug)]
pub(crate) struct BarrierConfig {
    pub(crate) workload: u16,
    pub(crate) workers: Vec<HostId>,
    /// Whom all report to; `None` where every worker tells every other.
    pub(crate) coordinator: Option<HostId>,
    pub(crate) bytes: u64,
    pub(crate) compute: Sampler<Span>,
    pub(crate) rounds: Option<u64>,
    pub(crate) start: Time,
    pub(crate) until: Time,
    pub(crate) warmup: Time,
    pub(crate) connection_per_message: bool,
}

/// A round whose end not all workers have seen.
#[derive(Clone, Copy, Debug)]
struct Round {
    created: Time,
    left: u32,
    sum: Span,
    fastest: Span,
}

/// How far a worker is, where every one tells every other.
#[derive(Clone, Copy, Debug, Default)]
struct Progress {
    round: u64,
    /// It has reached the round's barrier and said so.
    reached: bool,
    /// Others that have reached it in this round and in the next one.
    heard: [u32; 2],
}

/// Workers, and the barrier that they meet at.
#[derive(Debug)]
pub(crate) struct Barrier {
    config: BarrierConfig,
    /// Family of the keyed streams for computing times.
    draws: u64,
    pool: Pool,
    start: Time,
    /// When which worker has computed in its round.
    computing: BinaryHeap<Reverse<(Time, u32, u64)>>,
    rounds: BTreeMap<u64, Round>,
    progress: Vec<Progress>,
}

/// What a message says: the low bit of its tag; above it stands the worker that it is for or from.
const REPORT: u64 = 1;

impl Barrier {
    pub(crate) fn new(config: BarrierConfig, streams: &Streams, name: &str) -> Barrier {
        Barrier {
            draws: streams.word(&format!("workload/{name}/draws")),
            pool: Pool::new(config.connection_per_message),
            start: if config.start < config.until { config.start } else { Time::MAX },
            computing: BinaryHeap::new(),
            rounds: BTreeMap::new(),
            progress: vec![Progress::default(); config.workers.len()],
            config,
        }
    }

    /// Whether a worker may enter a round: the first one to do so opens it.
    fn enter(&mut self, now: Time, number: u64) -> bool {
        if !self.rounds.contains_key(&number) {
            if now >= self.config.until || self.config.rounds.is_some_and(|rounds| number >= rounds) {
                return false;
            }
            let left = self.config.workers.len() as u32;
            self.rounds.insert(number, Round { created: now, left, sum: Span::ZERO, fastest: Span::MAX });
        }
        true
    }

    fn release(&mut self, now: Time, coordinator: HostId, number: u64, actions: &mut Actions) {
        if !self.enter(now, number) {
            return;
        }
        for (worker, &to) in self.config.workers.iter().enumerate() {
            let tag = number << 32 | (worker as u64) << 1;
            let letter = Letter { from: coordinator, to, bytes: self.config.bytes, tag };
            self.pool.send(now, letter, actions);
        }
    }

    fn compute(&mut self, now: Time, worker: u32, number: u64, actions: &mut Actions) {
        let index = number * self.config.workers.len() as u64 + u64::from(worker);
        let compute = self.config.compute.sample(&mut Streams::keyed(self.draws, index));
        if compute.is_zero() {
            self.reach(now, worker, number, actions);
        } else {
            self.computing.push(Reverse((now.saturating_add(compute), worker, number)));
        }
    }

    /// A worker has reached the barrier.
    fn reach(&mut self, now: Time, worker: u32, number: u64, actions: &mut Actions) {
        let (from, bytes) = (self.config.workers[worker as usize], self.config.bytes);
        if let Some(to) = self.config.coordinator {
            let tag = number << 32 | u64::from(worker) << 1 | REPORT;
            return self.pool.answer(now, Letter { from, to, bytes, tag }, actions);
        }
        for (other, &to) in
            self.config.workers.iter().enumerate().filter(|(other, _)| *other != worker as usize)
        {
            let tag = number << 32 | (other as u64) << 1 | REPORT;
            self.pool.send(now, Letter { from, to, bytes, tag }, actions);
        }
        self.progress[worker as usize].reached = true;
        self.go_on(now, worker, actions);
    }

    /// A worker that has heard of all others goes on to the next round.
    fn go_on(&mut self, now: Time, worker: u32, actions: &mut Actions) {
        let others = self.config.workers.len() as u32 - 1;
        let progress = &mut self.progress[worker as usize];
        if !progress.reached || progress.heard[0] < others {
            return;
        }
        let number = progress.round;
        *progress = Progress { round: number + 1, reached: false, heard: [progress.heard[1], 0] };
        self.passed(now, number, actions);
        if self.enter(now, number + 1) {
            self.compute(now, worker, number + 1, actions);
        }
    }

    /// One worker more has passed a round's barrier (or its report has come in). Says whether all have.
    fn passed(&mut self, now: Time, number: u64, actions: &mut Actions) -> bool {
        let Some(round) = self.rounds.get_mut(&number) else { return false };
        let latency = now - round.created;
        round.left -= 1;
        round.sum += latency;
        round.fastest = round.fastest.min(latency);
        if round.left > 0 {
            return false;
        }
        if let Some(round) = self.rounds.remove(&number) {
            actions.queries.extend(self.record(number, &round, Some(now)));
        }
        true
    }

    fn record(&self, number: u64, round: &Round, completed: Option<Time>) -> Option<Query> {
        let workers = self.config.workers.len() as u32;
        let in_time = workers - round.left;
        (round.created >= self.config.warmup).then_some(Query {
            workload: self.config.workload,
            index: number,
            created: round.created,
            completed,
            servers: workers,
            in_deadline: in_time,
            response_mean: round.sum / u64::from(in_time.max(1)),
            response_min: round.fastest,
        })
    }
}

impl Workload for Barrier {
    fn next_due(&self) -> Time {
        let computing = self.computing.peek().map_or(Time::MAX, |Reverse((at, ..))| *at);
        self.start.min(computing)
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        if self.start <= now {
            self.start = Time::MAX;
            match self.config.coordinator {
                Some(coordinator) => self.release(now, coordinator, 0, actions),
                None => {
                    for worker in 0..self.config.workers.len() as u32 {
                        if self.enter(now, 0) {
                            self.compute(now, worker, 0, actions);
                        }
                    }
                }
            }
        }
        while let Some(&Reverse((at, worker, number))) = self.computing.peek()
            && at <= now
        {
            self.computing.pop();
            self.reach(now, worker, number, actions);
        }
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        let Arrival { now, tag, .. } = arrival;
        // Rounds that could be taken for each other are four billion apart.
        let worker = (tag as u32) >> 1;
        let number = tag >> 32;
        match self.config.coordinator {
            Some(_) if tag & REPORT == 0 => self.compute(now, worker, number, actions),
            Some(coordinator) => {
                if self.passed(now, number, actions) {
                    self.release(now, coordinator, number + 1, actions);
                }
            }
            None => {
                let progress = &mut self.progress[worker as usize];
                progress.heard[usize::from(number != progress.round)] += 1;
                self.go_on(now, worker, actions);
            }
        }
    }

    fn kept_connections(&self) -> Vec<Opened> {
        let BarrierConfig { workers, coordinator, connection_per_message, .. } = &self.config;
        let from = coordinator.as_ref().map_or(workers.as_slice(), std::slice::from_ref);
        super::pairs(from, workers).filter(|_| !connection_per_message).collect()
    }

    fn is_finished(&self) -> bool {
        self.start == Time::MAX && self.rounds.is_empty()
    }

    fn on_end(&mut self, actions: &mut Actions) {
        let open = self.rounds.iter().filter_map(|(&number, round)| self.record(number, round, None));
        actions.queries.extend(open);
    }
}
