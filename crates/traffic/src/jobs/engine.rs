//! [`JobSource`]: carries out the operations of a job, iteration after iteration.
//!
//! ```text
//! all it waits for is done ──> ready ──┬─ compute ──> its stream is held ──────────────────────> ended ──> dependents
//!                                      ├─ send ─────> stream, NIC ──> a message leaves ────────> ended
//!                                      └─ receive ──> Matching ──> its message is here: stream ─> ended
//! message ──> transport, or the times of costs ──> Matching
//! ```
//!
//! Each end of an operation knows the critical path to it: the components of all time since the iteration began, of the
//! operation or message for which it waited last. They sum to that time exactly.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use plimsoll_fabric::net::HostId;
use plimsoll_text::counted;
use plimsoll_units::{Bytes, Rate, Span, Time};

use super::accounts::RankAccounts;
use super::costs::{JobNetwork, MessageCosts, ScaleUp};
use super::critical_path::{CriticalPaths, PathTo};
use super::graph::{JobGraph, Operation, OperationAction};
use super::ideal::{IdealTimes, MessageEnds};
use super::matching::{MatchKey, Matching};
use super::repeat::Repeat;
use super::resources::{Resource, Resources};
use super::size::JobSize;
use crate::exchange::WorkloadConnections;
use crate::record::{
    IterationRecord, MessageRecord, OperationRecord, PathWaitRecord, QueryRecord, RankRecord, Records, Split,
    WaitedAt,
};
use crate::source::{Actions, Arrival, ConnectionEnd, MessageWaits, Opened, Source, Write};

mod replay;

use replay::Replay;

/// A job, and how it runs.
#[derive(Clone, Debug)]
pub(crate) struct JobConfig {
    pub(crate) workload: u16,
    pub(crate) graph: Arc<JobGraph>,
    /// The host of each rank.
    pub(crate) hosts: Vec<HostId>,
    /// The rate of each rank's NIC.
    pub(crate) rates: Vec<Rate>,
    pub(crate) size: JobSize,
    /// How often the job runs.
    pub(crate) iterations: u64,
    /// The time between two iterations.
    pub(crate) pause: Span,
    pub(crate) start: Time,
    pub(crate) until: Time,
    pub(crate) warmup: Time,
    pub(crate) connection_per_message: bool,
    pub(crate) network: JobNetwork,
    pub(crate) costs: MessageCosts,
    pub(crate) scale_up: Option<ScaleUp>,
    /// Whether operations are recorded.
    pub(crate) timeline: bool,
    /// Whether rounds and iterations are replayed.
    pub(crate) repeat: Option<Repeat>,
}

/// The source: a job that runs again and again.
#[derive(Debug)]
pub(crate) struct JobSource {
    config: JobConfig,
    /// The costs of the network in use.
    costs: MessageCosts,
    pool: WorkloadConnections,
    /// When the next iteration begins.
    next: Time,
    iteration: u64,
    /// The iterations that began in the warm-up, of which there are no records.
    in_warmup: u64,
    /// When the iteration that runs has begun, in the time of the job.
    begun: Option<Time>,
    /// The number of operations for which each still waits; [`ENDED`] of one that has ended.
    open_waits: Vec<u32>,
    /// The operations of the iteration that have not ended.
    left: usize,
    accounts: RankAccounts,
    /// When each stream and NIC of a rank is free.
    free: Resources<Time>,
    /// What happens when; of one instant in the order in which it was noted, and without packets in that of operations.
    events: BTreeMap<(Time, u64), JobEvent>,
    turns: u64,
    /// Operations that may begin now.
    ready: VecDeque<(u32, PathTo)>,
    matching: Matching<u32, ArrivedMessage>,
    /// Messages under way, by the operation that sent them.
    sent: BTreeMap<u32, SentMessage>,
    ideal: IdealTimes,
    paths: CriticalPaths,
    /// When each operation has begun, and those that have ended, where operations are recorded.
    began: Vec<Time>,
    ended: Vec<OperationRecord>,
    /// What is replayed, where the job repeats.
    replay: Option<Box<Replay>>,
}

/// The mark of an operation that has ended, in place of the number for which it waits.
const ENDED: u32 = u32::MAX;

/// Something that happens to an operation later.
#[derive(Clone, Copy, Debug)]
struct JobEvent {
    what: Happening,
    operation: u32,
    /// The critical path to it; of a message that arrives, the components of its latency.
    path: PathTo,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Happening {
    /// It begins, for which others wait.
    Begun,
    /// Its message leaves the rank.
    Leaves,
    /// Its message has arrived.
    Arrives,
    Ended,
}

/// A message that is under way.
#[derive(Clone, Copy, Debug)]
struct SentMessage {
    iteration: u64,
    /// The number by which the network knows it: that of its operation, before rounds were replayed.
    tag: u32,
    created: Time,
    path: PathTo,
    /// When it leaves where messages have idle links.
    ideal: Span,
}

/// A message that is at its rank.
#[derive(Clone, Copy, Debug)]
struct ArrivedMessage {
    operation: u32,
    arrived: Time,
    path: PathTo,
    /// When it arrives where messages have idle links.
    ideal: Span,
}

impl JobEvent {
    fn new(what: Happening, operation: u32, path: PathTo) -> JobEvent {
        JobEvent { what, operation, path }
    }
}

impl JobSource {
    pub(crate) fn new(config: JobConfig) -> JobSource {
        let costs = match config.network {
            JobNetwork::Packets => config.costs.over_packets(),
            JobNetwork::Loggops => config.costs,
        };
        let mut source = JobSource {
            costs,
            pool: WorkloadConnections::new(config.connection_per_message),
            next: if config.start < config.until { config.start } else { Time::MAX },
            iteration: 0,
            in_warmup: 0,
            begun: None,
            open_waits: Vec::new(),
            left: 0,
            accounts: RankAccounts::new(&config.graph),
            free: Resources::default(),
            events: BTreeMap::new(),
            turns: 0,
            ready: VecDeque::new(),
            matching: Matching::default(),
            sent: BTreeMap::new(),
            ideal: IdealTimes::default(),
            paths: CriticalPaths::new(
                config.timeline || config.network == JobNetwork::Packets || config.scale_up.is_some(),
            ),
            began: Vec::new(),
            ended: Vec::new(),
            replay: config.repeat.map(|repeat| Box::new(Replay::new(repeat, &config))),
            config,
        };
        if source.config.graph.operations().is_empty() {
            source.next = Time::MAX;
        }
        source
    }

    fn begin_iteration(&mut self, now: Time, actions: &mut Actions) {
        let graph = Arc::clone(&self.config.graph);
        self.next = Time::MAX;
        self.begun = Some(self.job_time(now));
        self.open_waits.clear();
        self.open_waits.extend_from_slice(graph.waits());
        self.left = graph.operations().len();
        if self.config.timeline {
            self.began.resize(self.left, now);
        }
        self.ideal.begin(self.left);
        self.paths.begin();
        self.accounts.begin(now, &graph);
        if let Some(replay) = &mut self.replay {
            replay.begin_iteration();
        }
        let first = (0..).zip(graph.waits()).filter(|(_, waits)| **waits == 0);
        self.ready.extend(first.map(|(operation, _)| (operation, PathTo::default())));
        self.carry_out(now, actions);
    }

    /// Begins the operations that are ready, and the ones that become ready by it.
    fn carry_out(&mut self, now: Time, actions: &mut Actions) {
        while let Some((number, path)) = self.ready.pop_front() {
            let operation = self.config.graph.operations()[number as usize];
            match operation.action {
                OperationAction::Compute(time) => self.compute(now, number, &operation, time, path, actions),
                OperationAction::Send { bytes, .. } => {
                    self.send(now, number, &operation, bytes, path, actions)
                }
                OperationAction::Receive { from, tag, .. } => {
                    self.has_begun(now, number, now, path, actions);
                    self.accounts.waits(now, operation.rank, operation.group, 1);
                    let key = MatchKey { rank: operation.rank, from, tag };
                    if let Some((_, message)) = self.matching.on_receive(key, number) {
                        self.received(now, number, message, path, actions);
                    }
                }
            }
        }
    }

    fn compute(
        &mut self,
        now: Time,
        number: u32,
        operation: &Operation,
        time: Span,
        path: PathTo,
        actions: &mut Actions,
    ) {
        let stream = Resource::Stream(operation.rank, operation.stream);
        let start = self.free.hold(stream, now, time);
        self.accounts.compute_begins(now, operation.rank);
        let mut path = self.paths.with_operation(path, number);
        path.split.service += start - now;
        self.has_begun(now, number, start, path, actions);
        path.split.service += time;
        self.ideal.hold(&self.config.graph, stream, number, Span::ZERO, time);
        self.happens(now, start + time, JobEvent::new(Happening::Ended, number, path), actions);
    }

    fn send(
        &mut self,
        now: Time,
        number: u32,
        operation: &Operation,
        bytes: u64,
        path: PathTo,
        actions: &mut Actions,
    ) {
        let Operation { rank, stream, nic, .. } = *operation;
        let [stream, nic] = [Resource::Stream(rank, stream), Resource::NicOut(rank, nic)];
        let start = self.free.all_free(now, [stream, nic]);
        self.free.hold(stream, start, self.costs.sending(bytes));
        self.ideal.hold(&self.config.graph, stream, number, Span::ZERO, self.costs.sending(bytes));
        let inside = self.is_inside(operation);
        if !inside {
            self.free.hold(nic, start, self.costs.holding(bytes));
        }
        let mut path = self.paths.with_operation(path, number);
        path.split.service += start - now;
        self.has_begun(now, number, start, path, actions);
        let before = path.split.service;
        path.split.service += self.costs.overhead;
        self.happens(
            now,
            start + self.costs.overhead,
            JobEvent::new(Happening::Leaves, number, path),
            actions,
        );
        if inside || bytes <= self.costs.eager.get() {
            let ended = start + self.costs.sending(bytes);
            path.split.service = before + (ended - start);
            self.happens(now, ended, JobEvent::new(Happening::Ended, number, path), actions);
        }
    }

    /// Has something happen at a time, which may be now.
    fn happens(&mut self, now: Time, at: Time, event: JobEvent, actions: &mut Actions) {
        let JobEvent { what, operation, path } = event;
        if at > now {
            self.turns += 1;
            let turn = match self.config.network {
                JobNetwork::Packets => self.turns,
                // The same in each round, whatever came before.
                JobNetwork::Loggops => u64::from(operation) << 2 | what as u64,
            };
            self.events.insert((at, turn), event);
            return;
        }
        match what {
            Happening::Begun => self.release(operation, true, path),
            Happening::Leaves => self.leaves(now, operation, path, actions),
            Happening::Arrives => {
                let split = path.split;
                let ideal = split.propagation + split.serialisation;
                self.arrives(now, operation, split, ideal, self.waits_inside(operation, &split), actions);
            }
            Happening::Ended => self.ended(now, operation, path, actions),
        }
    }

    /// An operation begins at `start`; few have others that wait for that.
    fn has_begun(&mut self, now: Time, operation: u32, start: Time, path: PathTo, actions: &mut Actions) {
        if let Some(began) = self.began.get_mut(operation as usize) {
            *began = start;
        }
        let dependents = self.config.graph.dependents(operation);
        if dependents.iter().any(|dependent| dependent.on_begin) {
            self.happens(now, start, JobEvent::new(Happening::Begun, operation, path), actions);
        }
    }

    /// The message of a send leaves its rank.
    fn leaves(&mut self, now: Time, number: u32, path: PathTo, actions: &mut Actions) {
        let operation = self.config.graph.operations()[number as usize];
        let OperationAction::Send { to, bytes, .. } = operation.action else { return };
        // The send ends, ideally, so long after its message has left.
        let ideal = self.ideal.end_of(number) - (self.costs.sending(bytes) - self.costs.overhead);
        self.sent.insert(
            number,
            SentMessage { iteration: self.iteration, tag: number, created: now, path, ideal },
        );
        let arrival = match self.config.scale_up {
            Some(inside) if self.is_inside(&operation) => {
                Some(self.cross_server(now, operation.rank, to, bytes, inside))
            }
            _ if self.config.network == JobNetwork::Loggops => {
                let propagation = self.costs.latency;
                Some((now + propagation, Split { propagation, ..Split::default() }))
            }
            _ => None,
        };
        if let Some((at, split)) = arrival {
            let path = PathTo::of(split);
            return self.happens(now, at, JobEvent::new(Happening::Arrives, number, path), actions);
        }
        let [from, to] = [operation.rank, to].map(|rank| self.config.hosts[rank as usize]);
        let connection = self.pool.connection(from, to, operation.nic.into(), actions);
        let tag = self.iteration << 32 | u64::from(number);
        actions.writes.push(Write { connection, end: ConnectionEnd::Client, bytes, tag, created: now });
    }

    /// Returns when a message inside a server has arrived, with the components of its latency.
    fn cross_server(&mut self, now: Time, from: u32, to: u32, bytes: u64, inside: ScaleUp) -> (Time, Split) {
        let serialisation = Bytes::new(bytes).time_at(inside.rate);
        let out = self.free.hold(Resource::LinkOut(from), now, serialisation);
        let first = out + inside.delay;
        let begin = self.free.hold(Resource::LinkIn(to), first, serialisation);
        let split = Split {
            nic: (out - now) + (begin - first),
            propagation: inside.delay,
            serialisation,
            ..Split::default()
        };
        (begin + serialisation, split)
    }

    /// Returns where a message that crosses no network waited: at the links of its server, if at all.
    fn waits_inside(&self, number: u32, split: &Split) -> MessageWaits {
        let mut waits = MessageWaits::default();
        if let Some(inside) = self.config.scale_up {
            let rank = self.config.graph.operations()[number as usize].rank;
            waits.0[0] = (WaitedAt::Server(rank / inside.ranks), split.nic);
        }
        waits
    }

    /// A message has arrived, whose latency has the components of `split`.
    fn arrives(
        &mut self,
        now: Time,
        number: u32,
        split: Split,
        ideal: Span,
        waits: MessageWaits,
        actions: &mut Actions,
    ) {
        let operation = self.config.graph.operations()[number as usize];
        let OperationAction::Send { to, tag, .. } = operation.action else { return };
        let Some(sent) = self.sent.remove(&number) else { return };
        let message = self.message(number, &sent);
        actions.records.messages.extend(message.map(|message| MessageRecord {
            completed: Some(now),
            ideal,
            split,
            ..message
        }));
        let ideal = match self.ends(&operation) {
            Some(ends) => self.ideal.arrival(sent.ideal, ideal, &ends),
            None => sent.ideal + ideal,
        };
        let path = self.paths.with_message(sent.path, split, &waits);
        let message = ArrivedMessage { operation: number, arrived: now, path, ideal };
        let key = MatchKey { rank: to, from: Some(operation.rank), tag: Some(tag) };
        if let Some((receive, message)) = self.matching.on_message(key, message) {
            self.received(now, receive, message, PathTo::default(), actions);
        }
    }

    /// A receive has its message: the later of both is on the critical path. `path` leads to the receive.
    fn received(
        &mut self,
        now: Time,
        number: u32,
        message: ArrivedMessage,
        path: PathTo,
        actions: &mut Actions,
    ) {
        let operation = self.config.graph.operations()[number as usize];
        let OperationAction::Send { bytes, .. } =
            self.config.graph.operations()[message.operation as usize].action
        else {
            return;
        };
        let path = if message.arrived == now { message.path } else { path };
        let sender = self.config.graph.operations()[message.operation as usize];
        let inside = self.is_inside(&sender);
        let [stream, nic] = [
            Resource::Stream(operation.rank, operation.stream),
            Resource::NicIn(operation.rank, operation.nic),
        ];
        let start = self.free.all_free(now, [stream, nic]);
        let time = if inside { self.costs.sending(bytes) } else { self.costs.receiving(bytes) };
        self.free.hold(stream, start, time);
        self.ideal.hold(&self.config.graph, stream, number, message.ideal, time);
        if !inside {
            self.free.hold(nic, start, self.costs.holding(bytes));
        }
        if !inside && bytes > self.costs.eager.get() {
            // The sender of a large message hears that it was taken.
            let heard = start + self.costs.latency;
            let mut path = path;
            path.split.service += start - now;
            path.split.propagation += self.costs.latency;
            self.happens(now, heard, JobEvent::new(Happening::Ended, message.operation, path), actions);
        }
        let mut path = self.paths.with_operation(path, number);
        path.split.service += start + time - now;
        self.happens(now, start + time, JobEvent::new(Happening::Ended, number, path), actions);
    }

    /// An operation has ended; with the last one the iteration has.
    fn ended(&mut self, now: Time, number: u32, path: PathTo, actions: &mut Actions) {
        let operation = self.config.graph.operations()[number as usize];
        match operation.action {
            OperationAction::Compute(_) => self.accounts.compute_ends(now, operation.rank),
            OperationAction::Receive { .. } => self.accounts.waits(now, operation.rank, operation.group, -1),
            OperationAction::Send { .. } => {}
        }
        if self.config.timeline {
            self.ended.push(self.operation_record(number, &operation, now));
        }
        self.left -= 1;
        self.open_waits[number as usize] = ENDED;
        let now_of_job = self.job_time(now);
        let took = now_of_job - self.begun.unwrap_or(now_of_job);
        if let Some(replay) = &mut self.replay {
            replay.ended(number, now, path);
        }
        self.accounts.ended(operation.rank, took);
        self.release(number, false, path);
        if self.left == 0 {
            self.end_iteration(now, path, actions);
        }
    }

    /// Lets the operations that wait for the beginning or the end of another begin.
    fn release(&mut self, number: u32, on_begin: bool, path: PathTo) {
        for dependent in
            self.config.graph.dependents(number).iter().filter(|other| other.on_begin == on_begin)
        {
            let waits = &mut self.open_waits[dependent.operation as usize];
            *waits -= 1;
            if *waits == 0 {
                self.ready.push_back((dependent.operation, path));
            }
            if !on_begin {
                self.ideal.await_until(dependent.operation, self.ideal.end_of(number));
            }
        }
    }

    /// Returns the ends of the way of a send's message; `None` where messages have no network.
    fn ends(&self, operation: &Operation) -> Option<MessageEnds> {
        let OperationAction::Send { to, bytes, .. } = operation.action else { return None };
        let (from, bytes) = (operation.rank, Bytes::new(bytes));
        match self.config.scale_up {
            Some(inside) if self.is_inside(operation) => {
                let time = bytes.time_at(inside.rate);
                Some(MessageEnds { out: (Resource::LinkOut(from), time), into: (Resource::LinkIn(to), time) })
            }
            _ if self.config.network == JobNetwork::Loggops => None,
            _ => {
                let of = |rank: u32| bytes.time_at(self.config.rates[rank as usize]);
                Some(MessageEnds {
                    out: (Resource::NicOut(from, 0), of(from)),
                    into: (Resource::NicIn(to, 0), of(to)),
                })
            }
        }
    }

    fn end_iteration(&mut self, now: Time, path: PathTo, actions: &mut Actions) {
        let query = self.query(Some(now));
        self.in_warmup += u64::from(query.is_none());
        self.begun = None;
        let (on_path, waits) = self.paths.trace(path);
        let mut ended = std::mem::take(&mut self.ended);
        let place_of: BTreeMap<u32, u32> = on_path.into_iter().zip(0..).collect();
        ended.iter_mut().for_each(|one| one.path = place_of.get(&one.operation).copied());
        actions.records.operations.extend(ended);
        let mut records = Records::default();
        if let Some((query, completed)) = query.and_then(|query| Some((query, query.completed?))) {
            records.queries.push(query);
            records.iterations.push(IterationRecord {
                workload: self.config.workload,
                index: self.iteration,
                took: completed - query.created,
                ideal: self.ideal.end(),
                bytes: self.config.size.bytes,
                bus_bytes: self.config.size.bus_bytes,
                split: path.split,
            });
            records.ranks.extend(self.rank_records());
            let (workload, index) = (self.config.workload, self.iteration);
            let record = |(at, waited)| PathWaitRecord { workload, index, at, waited };
            records.path_waits.extend(waits.into_iter().map(record));
        }
        self.free.clear();
        self.iteration += 1;
        self.replay_iterations(now, &records, actions);
        actions.records.append(&mut records);
        let next = now.saturating_add(self.config.pause);
        let has_more = self.iteration < self.config.iterations;
        self.next = if has_more && self.job_time(next) < self.config.until { next } else { Time::MAX };
    }

    /// Returns the time of the job at a time of the run, which is later by what was replayed.
    fn job_time(&self, at: Time) -> Time {
        at.saturating_add(self.replay.as_ref().map_or(Span::ZERO, |replay| replay.time()))
    }

    /// Returns the record of the iteration, if it has begun and counts.
    fn query(&self, completed: Option<Time>) -> Option<QueryRecord> {
        let created = self.begun.filter(|begun| *begun >= self.config.warmup)?;
        let done = || self.accounts.times();
        Some(QueryRecord {
            workload: self.config.workload,
            index: self.iteration,
            created,
            completed: completed.map(|completed| self.job_time(completed)),
            servers: self.accounts.len(),
            in_deadline: self.accounts.done(),
            response_mean: done().sum::<Span>() / u64::from(self.accounts.done().max(1)),
            response_min: done().min().unwrap_or(Span::MAX),
        })
    }

    /// Returns what each rank did in the iteration that has ended.
    fn rank_records(&self) -> impl Iterator<Item = RankRecord> {
        self.accounts.all().map(move |(rank, group, of_rank, of_group)| RankRecord {
            workload: self.config.workload,
            index: self.iteration,
            rank,
            host: self.config.hosts[rank as usize].0,
            group,
            took: of_rank.took,
            computed: of_rank.computed,
            waited: of_group.waited,
            exposed: of_group.exposed,
        })
    }

    fn operation_record(&self, number: u32, operation: &Operation, ended: Time) -> OperationRecord {
        let (action, peer, bytes) = match operation.action {
            OperationAction::Compute(_) => (0, None, 0),
            OperationAction::Send { to, bytes, .. } => (1, Some(to), bytes),
            OperationAction::Receive { from, bytes, .. } => (2, from, bytes),
        };
        OperationRecord {
            workload: self.config.workload,
            index: self.iteration,
            operation: number,
            rank: operation.rank,
            stream: operation.stream,
            group: operation.group,
            action,
            peer,
            bytes,
            began: self.began[number as usize],
            ended,
            path: None,
        }
    }

    /// Returns the record of a message that has not arrived, if it counts.
    fn message(&self, number: u32, sent: &SentMessage) -> Option<MessageRecord> {
        let operations = self.config.graph.operations();
        let Operation { rank, action, .. } = operations[number as usize];
        let OperationAction::Send { to, bytes, .. } = action else { return None };
        let [source, destination] = [rank, to].map(|rank| self.config.hosts[rank as usize].0);
        (sent.created >= self.config.warmup).then_some(MessageRecord {
            workload: self.config.workload,
            index: sent.iteration * operations.len() as u64 + u64::from(number),
            query: Some(sent.iteration),
            source,
            destination,
            bytes,
            created: sent.created,
            completed: None,
            ideal: Span::ZERO,
            split: Split::default(),
        })
    }

    /// Returns whether a send is to another rank of its server.
    fn is_inside(&self, operation: &Operation) -> bool {
        let server = |rank: u32, inside: ScaleUp| rank / inside.ranks;
        let OperationAction::Send { to, .. } = operation.action else { return false };
        self.config.scale_up.is_some_and(|inside| server(operation.rank, inside) == server(to, inside))
    }
}

impl Source for JobSource {
    fn next_due(&self) -> Time {
        let event = self.events.first_key_value().map_or(Time::MAX, |((at, _), _)| *at);
        self.next.min(event)
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        if self.next <= now {
            self.begin_iteration(now, actions);
        }
        while let Some(first) = self.events.first_entry()
            && first.key().0 <= now
        {
            let at = first.key().0;
            let event = first.remove();
            self.happens(at, at, event, actions);
            self.carry_out(at, actions);
            self.replay_rounds(at);
        }
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        let Arrival { now, tag, split, ideal, waits, .. } = arrival;
        let number = self.replay.as_mut().map_or(tag as u32, |replay| replay.operation_of(tag as u32));
        self.arrives(now, number, split, ideal, waits, actions);
        self.carry_out(now, actions);
        self.replay_rounds(now);
    }

    fn kept_connections(&self) -> Vec<Opened> {
        if self.config.connection_per_message || self.config.network == JobNetwork::Loggops {
            return Vec::new();
        }
        let operations = self.config.graph.operations().iter();
        let pairs = operations.filter_map(|operation| match operation.action {
            OperationAction::Send { to, .. } if !self.is_inside(operation) => {
                let [client, server] = [operation.rank, to].map(|rank| self.config.hosts[rank as usize]);
                Some(Opened { client, server })
            }
            _ => None,
        });
        pairs.collect::<BTreeSet<_>>().into_iter().collect()
    }

    fn follows_waits(&self) -> bool {
        true
    }

    fn is_finished(&self) -> bool {
        self.next == Time::MAX && self.begun.is_none() && self.sent.is_empty()
    }

    fn on_end(&mut self, actions: &mut Actions) {
        actions.records.operations.append(&mut self.ended);
        actions
            .records
            .messages
            .extend(self.sent.iter().filter_map(|(&number, sent)| self.message(number, sent)));
        actions.records.queries.extend(self.query(None));
        let replay = self.replay.as_ref();
        actions.records.repeats.extend(replay.map(|replay| replay.record()));
    }
    fn caveat(&self) -> Option<String> {
        let (begun, all) = (self.iteration + u64::from(self.begun.is_some()), self.config.iterations);
        let late = (begun < all && self.begun.is_none()).then(|| {
            format!(
                "{begun} of {all} iterations began before `run.duration` ended; a longer one has them all"
            )
        });
        let early = (self.in_warmup > 0)
            .then(|| format!("{} of the warm-up left out", counted(self.in_warmup, "iteration")));
        let caveats: Vec<String> = [late, early].into_iter().flatten().collect();
        (!caveats.is_empty()).then(|| caveats.join("; "))
    }
}
