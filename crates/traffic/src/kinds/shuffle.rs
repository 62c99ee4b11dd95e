//! `shuffle`: waves in which every reducer fetches from every mapper.

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Span, Stream, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::distribution::{Distribution, Sampler, SizeDistribution};
use crate::draw::uniform_choice;
use crate::exchange::{Exchanges, PendingRequest, WorkloadConnections};
use crate::facts::NetworkFacts;
use crate::hosts::HostSet;
use crate::kind::{Context, ExpectedRecords, Input, Kind, WorkingMemory, cdf_inputs, host_count, number};
use crate::record::{QueryRecord, Supply};
use crate::source::{Actions, Arrival, Hint, Opened, Source, pairs};

/// The shuffle of a MapReduce job: in each wave every reducer fetches from every mapper, but for its own
/// host's part. A transfer is a message; the job is a query, from its start to the end of its last wave.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shuffle {
    /// The hosts that hold map outputs; default: all.
    #[serde(default = "HostSet::all")]
    pub mappers: HostSet,
    /// The hosts that fetch them; default: all.
    #[serde(default = "HostSet::all")]
    pub reducers: HostSet,
    /// The payload of a transfer from one mapper to one reducer.
    pub size: SizeDistribution,
    /// The payload of the request for a transfer.
    #[serde(default = "Shuffle::default_request")]
    pub request: SizeDistribution,
    /// Transfers that a reducer has under way at once; each reducer requests from the mappers in its own order, drawn
    /// for each wave.
    #[serde(default = "Shuffle::default_parallel")]
    pub parallel: u32,
    /// Number of waves; without it waves follow each other until `run.duration`.
    #[serde(default)]
    pub waves: Option<u64>,
    /// Time from the end of a wave, when all its transfers are done, to the next.
    #[serde(default)]
    pub pause: Span,
    /// The time at which the first wave starts.
    #[serde(default)]
    pub start: Span,
}

impl Shuffle {
    /// Returns Hadoop's default of `mapreduce.reduce.shuffle.parallelcopies`.
    fn default_parallel() -> u32 {
        5
    }

    fn default_request() -> SizeDistribution {
        Distribution::Constant(Bytes::new(100))
    }
}

impl Kind for Shuffle {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let mappers = check.members("mappers", &self.mappers, &[]);
        let reducers = check.members("reducers", &self.reducers, &[]);
        if mappers.len() == 1 && mappers == reducers {
            check.error("reducers", "nothing leaves its host", "another host than the only mapper");
        }
        check.distribution("size", &mut self.size);
        check.distribution("request", &mut self.request);
        check.at_least_one("parallel", self.parallel.into(), "no transfer at all");
        check.at_least_one("waves", self.waves.unwrap_or(1), "no wave at all");
        WorkloadDemand { ends: self.waves.is_some(), start: self.start, ..WorkloadDemand::default() }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let config = ShuffleConfig {
            workload: context.index,
            mappers: context.hosts(&self.mappers, &[], "mappers")?,
            reducers: context.hosts(&self.reducers, &[], "reducers")?,
            size: self.size.sampler(),
            request: self.request.sampler(),
            parallel: self.parallel,
            waves: self.waves,
            pause: self.pause,
            start: Time::ZERO + self.start,
            until: context.until,
            warmup: context.warmup,
            connection_per_message: !context.keeps_connections,
        };
        Ok(Box::new(ShuffleSource::new(config, context.streams, context.name)))
    }

    fn supply(&self) -> Supply {
        Supply::counted(self.waves)
    }

    fn bounding_key(&self) -> &'static str {
        "waves"
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        cdf_inputs([self.size.table(), self.request.table()])
    }

    fn expected_records(&self, facts: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        let wave = host_count(facts, &self.mappers, &[]) * host_count(facts, &self.reducers, &[]);
        let records = ExpectedRecords::new("waves", self.start).limit(number(self.waves)).queries(wave);
        // The transfers of a wave are listed when it begins.
        let working =
            WorkingMemory { things: "transfers of a wave", count: wave, bytes: 4.0, key: "mappers" };
        Some(ExpectedRecords { working: Some(working), ..records })
    }
}

/// The mappers, the reducers, and their transfers.
#[derive(Debug)]
struct ShuffleConfig {
    workload: u16,
    mappers: Vec<HostId>,
    reducers: Vec<HostId>,
    size: Sampler<Bytes>,
    request: Sampler<Bytes>,
    /// The number of transfers of a reducer in flight.
    parallel: u32,
    waves: Option<u64>,
    pause: Span,
    start: Time,
    until: Time,
    warmup: Time,
    connection_per_message: bool,
}

/// The source: a job that shuffles.
#[derive(Debug)]
struct ShuffleSource {
    config: ShuffleConfig,
    /// The family of the keyed streams for sizes; the next one is for the order of the mappers.
    draws: u64,
    pool: WorkloadConnections,
    exchanges: Exchanges,
    wave: u64,
    /// The time at which the next wave starts.
    next: Time,
    /// The mappers that each reducer has not asked in this wave, by reducer, the next one last.
    to_ask: Vec<Vec<u32>>,
    /// The number of transfers of the wave that are not complete.
    left: u64,
    job: ShuffleJob,
}

/// The state of the job, which is recorded as a query.
#[derive(Clone, Copy, Debug)]
struct ShuffleJob {
    created: Option<Time>,
    done: u32,
    sum: Span,
    fastest: Span,
    is_over: bool,
}

impl ShuffleSource {
    fn new(config: ShuffleConfig, streams: &Streams, name: &str) -> ShuffleSource {
        let begins = config.start < config.until;
        let mut source = ShuffleSource {
            draws: streams.word(&format!("workload/{name}/draws")),
            pool: WorkloadConnections::new(config.connection_per_message),
            exchanges: Exchanges::new(config.workload, config.mappers.len(), u32::MAX),
            wave: 0,
            next: if begins { config.start } else { Time::MAX },
            to_ask: vec![Vec::new(); config.reducers.len()],
            left: 0,
            job: ShuffleJob { created: None, done: 0, sum: Span::ZERO, fastest: Span::MAX, is_over: false },
            config,
        };
        if begins {
            source.list_wave();
        }
        source
    }

    /// Lists the transfers of the wave that begins next.
    fn list_wave(&mut self) {
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
    }

    fn begin_wave(&mut self, now: Time, actions: &mut Actions) {
        self.next = Time::MAX;
        self.job.created.get_or_insert(now);
        for reducer in 0..self.config.reducers.len() {
            for _ in 0..self.config.parallel {
                if !self.fetch(now, reducer, actions) {
                    break;
                }
            }
        }
    }

    /// Begins the reducer's next transfer and returns whether there was one.
    fn fetch(&mut self, now: Time, reducer: usize, actions: &mut Actions) -> bool {
        if now >= self.config.until {
            return false;
        }
        let Some(mapper) = self.to_ask[reducer].pop() else { return false };
        let config = &self.config;
        let (from, to) = (config.reducers[reducer], config.mappers[mapper as usize]);
        let ((index, mut stream), response_bytes) = self.draw(reducer, mapper);
        let ask = PendingRequest {
            index,
            query: config.waves.map(|_| 0),
            owner: reducer as u64,
            client: from,
            server: to,
            queue: mapper as usize,
            connection: self.pool.connection(from, to, 0, actions),
            response_bytes,
            request_bytes: config.request.sample(&mut stream).get().max(1),
            service: Span::ZERO,
        };
        self.exchanges.ask(now, ask, actions);
        true
    }

    /// Returns the number of a transfer of this wave, the stream that continues with its request, and the bytes.
    fn draw(&self, reducer: usize, mapper: u32) -> ((u64, Stream), u64) {
        let ShuffleConfig { mappers, reducers, size, .. } = &self.config;
        let of_wave = reducer as u64 * mappers.len() as u64 + u64::from(mapper);
        let index = self.wave * (reducers.len() * mappers.len()) as u64 + of_wave;
        let mut stream = Streams::keyed(self.draws, index);
        let bytes = size.sample(&mut stream).get().max(1);
        ((index, stream), bytes)
    }

    fn on_wave_done(&mut self, now: Time, actions: &mut Actions) {
        self.wave += 1;
        if self.config.waves.is_some_and(|waves| self.wave >= waves) {
            self.job.is_over = true;
            actions.records.queries.extend(self.record(Some(now)));
            return;
        }
        let next = now.saturating_add(self.config.pause);
        if next < self.config.until {
            self.next = next;
            self.list_wave();
        }
    }

    /// Returns when each of the transfers that a reducer may have under way at once can begin the next one, the
    /// earliest first, by reducer. A transfer under way is expected to take `mean`.
    fn slots(&self, mean: Option<Span>) -> Vec<Vec<Time>> {
        let mut slots = vec![Vec::new(); self.config.reducers.len()];
        if self.next < Time::MAX {
            slots.fill(vec![self.next; self.config.parallel as usize]);
        }
        for (reducer, created) in self.exchanges.created() {
            slots[reducer as usize].push(mean.map_or(Time::MAX, |mean| created.saturating_add(mean)));
        }
        slots.iter_mut().for_each(|slots| slots.sort_unstable());
        slots
    }

    /// Returns the record of the job, if it has an end and counts.
    fn record(&self, completed: Option<Time>) -> Option<QueryRecord> {
        let waves = self.config.waves?;
        let ShuffleJob { created, done, sum, fastest, .. } = self.job;
        let created = created.filter(|created| *created >= self.config.warmup)?;
        let ShuffleConfig { mappers, reducers, .. } = &self.config;
        let own = reducers.iter().filter(|host| mappers.contains(host)).count();
        let transfers = ((mappers.len() * reducers.len() - own) as u64).saturating_mul(waves);
        Some(QueryRecord {
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

impl Source for ShuffleSource {
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
            actions.records.messages.push(done.message);
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
        pairs(reducers, mappers).filter(|_| !connection_per_message).collect()
    }

    /// The requested transfers, and the transfers of the wave that will be requested: finished map outputs. A transfer
    /// begins when an earlier one of its reducer ends, which is expected after the mean time of the completed ones;
    /// before one has completed, only the first transfers of a wave have a time.
    fn hints(&self, tell: &mut dyn FnMut(Hint)) {
        self.exchanges.hints(tell);
        let mean = (self.job.done > 0).then(|| self.job.sum / u64::from(self.job.done));
        for ((reducer, to_ask), slots) in self.to_ask.iter().enumerate().zip(self.slots(mean)) {
            for (turn, &mapper) in to_ask.iter().rev().enumerate() {
                let (_, bytes) = self.draw(reducer, mapper);
                let rounds = turn.checked_div(slots.len()).unwrap_or(0) as u64;
                let ready = slots.get(turn.checked_rem(slots.len()).unwrap_or(0));
                let wait = if rounds == 0 { Some(Span::ZERO) } else { mean.map(|mean| mean * rounds) };
                tell(Hint {
                    from: self.config.mappers[mapper as usize],
                    to: self.config.reducers[reducer],
                    bytes,
                    ready: ready.zip(wait).map_or(Time::MAX, |(ready, wait)| ready.saturating_add(wait)),
                });
            }
        }
    }

    fn is_finished(&self) -> bool {
        self.next == Time::MAX && self.exchanges.is_empty()
    }

    fn on_end(&mut self, actions: &mut Actions) {
        let unfinished = self.exchanges.unfinished().map(|done| done.message);
        actions.records.messages.extend(unfinished.filter(|message| message.created >= self.config.warmup));
        if !self.job.is_over {
            actions.records.queries.extend(self.record(None));
        }
    }
}
