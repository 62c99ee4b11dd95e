//! `barrier`: workers that wait for each other, round after round.
//!
//! ```text
//! coordinator: release ──> worker computes ──> report ──> all in? next release     one round a query
//! all to all:  worker computes ──> reports to all others ──> all have reported? next round
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Span, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::distribution::{Sampler, TimeDistribution};
use crate::exchange::{OutgoingMessage, WorkloadConnections};
use crate::facts::NetworkFacts;
use crate::hosts::{HostName, HostSet};
use crate::kind::{Context, ExpectedRecords, Input, Kind, cdf_inputs, number};
use crate::record::{QueryRecord, Supply};
use crate::source::{Actions, Arrival, Opened, Source, pairs};

/// Workers that wait for each other again and again, as Naiad's barrier does. A round is a query.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Barrier {
    /// The hosts that synchronise; default: all but the coordinator, or all where there is none.
    #[serde(default)]
    pub workers: HostSet,
    /// The pattern of the reports between hosts.
    #[serde(default)]
    pub pattern: BarrierPattern,
    /// The host that all report to, in the pattern `coordinator`; default `client`.
    #[serde(default)]
    pub coordinator: HostName,
    /// The payload of every message between hosts.
    #[serde(default = "Barrier::default_size")]
    pub size: Bytes,
    /// Time that a worker computes in a round before it reports.
    #[serde(default)]
    pub compute: TimeDistribution,
    /// The number of rounds, after which the workload stops. Default: no limit but `run.duration`.
    #[serde(default)]
    pub rounds: Option<u64>,
    /// The time at which the first round starts.
    #[serde(default)]
    pub start: Span,
}

/// The pattern of the reports by which hosts learn that all have reached the barrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BarrierPattern {
    /// A round begins when the coordinator releases the workers and ends when all have reported to it, which
    /// releases the next.
    #[default]
    Coordinator,
    /// Every worker reports to every other, and continues when all others have reported to it. A round begins
    /// with its first worker and ends when all have reported to the last one; rounds may overlap by one.
    AllToAll,
}

impl Barrier {
    fn default_size() -> Bytes {
        Bytes::new(64)
    }
}

impl Kind for Barrier {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        match self.pattern {
            BarrierPattern::Coordinator => {
                let coordinator = check.host("coordinator", &self.coordinator);
                check.members("workers", &self.workers, coordinator.as_slice());
            }
            BarrierPattern::AllToAll => {
                let workers = check.members("workers", &self.workers, &[]);
                if workers.len() == 1 {
                    check.error("workers", "one worker waits for nobody", "at least two hosts");
                }
            }
        }
        check.some_bytes("size", self.size);
        check.distribution("compute", &mut self.compute);
        check.at_least_one("rounds", self.rounds.unwrap_or(1), "no round at all");
        WorkloadDemand { ends: self.rounds.is_some(), start: self.start, ..WorkloadDemand::default() }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let coordinator = match self.pattern {
            BarrierPattern::Coordinator => Some(context.host(&self.coordinator, "coordinator")?),
            BarrierPattern::AllToAll => None,
        };
        let config = BarrierConfig {
            workload: context.index,
            workers: context.hosts(&self.workers, coordinator.as_slice(), "workers")?,
            coordinator,
            bytes: self.size.get(),
            compute: self.compute.sampler(),
            rounds: self.rounds,
            start: Time::ZERO + self.start,
            until: context.until,
            warmup: context.warmup,
            connection_per_message: !context.keeps_connections,
        };
        Ok(Box::new(BarrierSource::new(config, context.streams, context.name)))
    }

    fn supply(&self) -> Supply {
        Supply::counted(self.rounds)
    }

    fn bounding_key(&self) -> &'static str {
        "rounds"
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        cdf_inputs([self.compute.table()])
    }

    fn expected_records(&self, _: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        Some(ExpectedRecords::new("rounds", self.start).limit(number(self.rounds)).queries(0.0))
    }
}

/// The workers, their coordinator, and their messages.
#[derive(Debug)]
struct BarrierConfig {
    workload: u16,
    workers: Vec<HostId>,
    /// The host that all report to; `None` where every worker reports to every other.
    coordinator: Option<HostId>,
    bytes: u64,
    compute: Sampler<Span>,
    rounds: Option<u64>,
    start: Time,
    until: Time,
    warmup: Time,
    connection_per_message: bool,
}

/// A round whose end some worker has not seen.
#[derive(Clone, Copy, Debug)]
struct Round {
    created: Time,
    left: u32,
    sum: Span,
    fastest: Span,
}

/// The progress of a worker, where every worker reports to every other.
#[derive(Clone, Copy, Debug, Default)]
struct WorkerProgress {
    round: u64,
    /// True if it has reached the round's barrier and reported it.
    reached: bool,
    /// The number of others that have reached the barrier in this round and in the next.
    heard: [u32; 2],
}

/// The source: workers, and the barrier that they wait at.
#[derive(Debug)]
struct BarrierSource {
    config: BarrierConfig,
    /// The family of the keyed streams for computing times.
    draws: u64,
    pool: WorkloadConnections,
    start: Time,
    /// The time at which each worker has computed in its round: (time, worker, round).
    computing: BinaryHeap<Reverse<(Time, u32, u64)>>,
    rounds: BTreeMap<u64, Round>,
    progress: Vec<WorkerProgress>,
}

/// The low bit of a tag: the message is a report. The bits above are the worker that it is for or from.
const REPORT: u64 = 1;

impl BarrierSource {
    fn new(config: BarrierConfig, streams: &Streams, name: &str) -> BarrierSource {
        BarrierSource {
            draws: streams.word(&format!("workload/{name}/draws")),
            pool: WorkloadConnections::new(config.connection_per_message),
            start: if config.start < config.until { config.start } else { Time::MAX },
            computing: BinaryHeap::new(),
            rounds: BTreeMap::new(),
            progress: vec![WorkerProgress::default(); config.workers.len()],
            config,
        }
    }

    /// Returns whether a worker may enter a round; the first worker opens the round.
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
            let letter = OutgoingMessage { from: coordinator, to, bytes: self.config.bytes, tag };
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

    /// Handles a worker's arrival at the barrier.
    fn reach(&mut self, now: Time, worker: u32, number: u64, actions: &mut Actions) {
        let (from, bytes) = (self.config.workers[worker as usize], self.config.bytes);
        if let Some(to) = self.config.coordinator {
            let tag = number << 32 | u64::from(worker) << 1 | REPORT;
            return self.pool.answer(now, OutgoingMessage { from, to, bytes, tag }, actions);
        }
        for (other, &to) in
            self.config.workers.iter().enumerate().filter(|(other, _)| *other != worker as usize)
        {
            let tag = number << 32 | (other as u64) << 1 | REPORT;
            self.pool.send(now, OutgoingMessage { from, to, bytes, tag }, actions);
        }
        self.progress[worker as usize].reached = true;
        self.advance(now, worker, actions);
    }

    /// Lets a worker enter the next round if all others have reported to it.
    fn advance(&mut self, now: Time, worker: u32, actions: &mut Actions) {
        let others = self.config.workers.len() as u32 - 1;
        let progress = &mut self.progress[worker as usize];
        if !progress.reached || progress.heard[0] < others {
            return;
        }
        let number = progress.round;
        *progress = WorkerProgress { round: number + 1, reached: false, heard: [progress.heard[1], 0] };
        self.passed(now, number, actions);
        if self.enter(now, number + 1) {
            self.compute(now, worker, number + 1, actions);
        }
    }

    /// Counts one worker more that has passed a round's barrier and returns whether all have.
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
            actions.records.queries.extend(self.record(number, &round, Some(now)));
        }
        true
    }

    fn record(&self, number: u64, round: &Round, completed: Option<Time>) -> Option<QueryRecord> {
        let workers = self.config.workers.len() as u32;
        let in_time = workers - round.left;
        (round.created >= self.config.warmup).then_some(QueryRecord {
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

impl Source for BarrierSource {
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
                self.advance(now, worker, actions);
            }
        }
    }

    fn kept_connections(&self) -> Vec<Opened> {
        let BarrierConfig { workers, coordinator, connection_per_message, .. } = &self.config;
        let from = coordinator.as_ref().map_or(workers.as_slice(), std::slice::from_ref);
        pairs(from, workers).filter(|_| !connection_per_message).collect()
    }

    fn is_finished(&self) -> bool {
        self.start == Time::MAX && self.rounds.is_empty()
    }

    fn on_end(&mut self, actions: &mut Actions) {
        let open = self.rounds.iter().filter_map(|(&number, round)| self.record(number, round, None));
        actions.records.queries.extend(open);
    }
}
