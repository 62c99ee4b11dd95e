//! [`RequestEngine`]: requests, from a connection's bytes to the partition and back.
//!
//! ```text
//! consume: parse ─┬─ own partition: execute into the connection's output
//!                 ├─ another's: encode ──> PartitionSteering ──> Mail
//!                 └─ everywhere: both, for every partition
//! receive: Mail ──┬─ request: execute, reply to its origin   (or forward it, if the partition has moved on)
//!                 ├─ reply: `arrived`, for the worker to put into its place
//!                 └─ adopt: run the requests that came before the partition
//! ```

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use crate::buffers::Buffers;
use crate::connection::{Connection, ConnectionOrigin, Everywhere};
use crate::kernel_steering::KernelSteering;
use crate::look_ahead::ReadAhead;
use crate::mail::{Mail, Newcomer, Parcel, ThreadMessage, Ticket};
use crate::memory::ThreadMemory;
use crate::reply_budget::ReplyBudget;
use crate::shared::Shared;
use crate::stats::ThreadCounters;
use crate::steering::{PartitionSteering, RequestPlacement};
use crate::{Ahead, Limits, LoadMetric, Now, RuntimeStats, Service, Step};

/// The state with which one thread runs requests.
pub(crate) struct RequestEngine<S: Service> {
    pub(crate) me: u32,
    pub(crate) service: Arc<S>,
    /// The partitions that this thread owns, and the way to the others.
    pub(crate) partitions: PartitionSteering<S::Partition, Parcel>,
    pub(crate) mail: Mail<S::Partition>,
    pub(crate) buffers: Buffers,
    pub(crate) shared: Arc<Shared>,
    pub(crate) stats: Arc<RuntimeStats>,
    /// The programs by which the kernel steers datagrams.
    pub(crate) kernel_steering: Arc<KernelSteering>,
    pub(crate) limits: Limits,
    pub(crate) reply_budget: ReplyBudget,
    /// The memory that connections hold.
    pub(crate) memory: ThreadMemory,
    pub(crate) metric: LoadMetric,
    pub(crate) now: Now,
    /// Replies for connections of this thread.
    pub(crate) arrived: Vec<Parcel>,
    /// Connections that came for this thread.
    pub(crate) newcomers: Vec<Newcomer>,
    /// Messages of other threads; between turns, the messages that were left alone in the last.
    pub(crate) inbox: Vec<ThreadMessage<S::Partition>>,
    pub(crate) deferred: Vec<ThreadMessage<S::Partition>>,
    /// The generation that this thread has published as settled.
    pub(crate) settled: u64,
}

/// The reason that no further request of a connection was run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Halt {
    /// The input has no whole request.
    Input,
    /// The connection waits for replies, or for room.
    Blocked,
    /// It gives way to other connections until the next turn.
    Turn,
    /// The connection is to be closed.
    Close,
}

impl<S: Service> RequestEngine<S> {
    /// Returns the counters of this thread.
    pub(crate) fn counters(&self) -> &ThreadCounters {
        self.stats.thread(self.me)
    }

    /// Runs the whole requests at the head of `input`, as many as a turn allows. Returns the number of bytes consumed,
    /// and the reason that it stopped.
    pub(crate) fn consume(&mut self, connection: &mut Connection<S>, input: &[u8]) -> (usize, Halt) {
        let mut used = 0;
        let mut steps = 0;
        let mut batch = ReadAhead::new();
        loop {
            if connection.input.skip > 0 {
                let skipped = connection.input.skip.min(input.len() - used);
                connection.input.skip -= skipped;
                used += skipped;
                if connection.input.skip > 0 {
                    connection.input.wanted = 1;
                    return (used, Halt::Input);
                }
            }
            let is_over = steps >= self.limits.turn;
            if is_over
                || batch.is_full()
                || self.reply_budget.is_little_for(batch.len() + 1, &connection.replies)
            {
                self.run_batch(connection, &mut batch);
            }
            // Nothing of a batch is answered yet, so it counts with the next.
            if batch.is_empty() && (!self.may_run(connection) || self.mail.is_congested()) {
                return (used, Halt::Blocked);
            }
            if is_over {
                return (used, Halt::Turn);
            }
            steps += 1;
            connection.output.prepare(&mut self.buffers);
            let rest = &input[used..];
            let reply = connection.output.tail();
            let replied = reply.len();
            let step = self.service.parse(&mut connection.session, self.now, rest, reply);
            if !batch.is_empty() && connection.output.tail().len() > replied {
                // The earlier requests are answered first.
                let late = connection.output.tail().split_off(replied);
                self.run_batch(connection, &mut batch);
                connection.output.tail().extend_from_slice(&late);
            }
            if let Step::Run { consumed, partition, request } = step {
                used += consumed;
                if self.looks_ahead(partition.0, &request) {
                    batch.push(partition.0, request);
                } else {
                    self.run_batch(connection, &mut batch);
                    self.run(connection, partition.0, &request);
                }
                continue;
            }
            self.run_batch(connection, &mut batch);
            match step {
                Step::Incomplete { total } if total > self.limits.input_bytes => return (used, Halt::Close),
                Step::Incomplete { total } => {
                    connection.input.wanted = total.max(rest.len() + 1);
                    return (used, Halt::Input);
                }
                Step::Done { consumed } => used += consumed,
                Step::Run { .. } => unreachable!("it has run, or is in the batch"),
                Step::Everywhere { consumed, request } => {
                    used += consumed;
                    self.run_everywhere(connection, &request);
                }
                Step::Skip { bytes } => connection.input.skip = bytes,
                Step::Close => return (used, Halt::Close),
            }
        }
    }

    /// Reports whether a connection's next request may be read, as far as the connection and memory decide.
    #[inline]
    pub(crate) fn may_run(&mut self, connection: &Connection<S>) -> bool {
        connection.has_room(&self.reply_budget) && (self.memory.is_free() || self.memory_allows(connection))
    }

    /// Reports whether memory allows a connection to continue.
    pub(crate) fn memory_allows(&mut self, connection: &Connection<S>) -> bool {
        // A datagram is answered, or the memory that it asks for would wait in its place.
        let is_datagram = matches!(connection.link, ConnectionOrigin::Datagram { .. });
        let replies = connection.replies.expected().saturating_mul(connection.missing() as usize + 1);
        is_datagram || self.memory.allows(connection.held().saturating_add(replies))
    }

    /// True if `request` may wait for others that came with it: its partition is this thread's own.
    #[inline]
    fn looks_ahead(&mut self, partition: u32, request: &S::Request<'_>) -> bool {
        match self.partitions.own(partition) {
            Some(state) if S::LOOKS_AHEAD => {
                self.service.look_ahead(state, self.service.place(request), Ahead::Index);
                true
            }
            _ => false,
        }
    }

    /// Returns the partition and the place of the first request of `input`, if it is of an own partition.
    pub(crate) fn glance(&mut self, input: &[u8]) -> Option<(u32, u64)> {
        let (partition, place) = self.service.glance(input)?;
        self.look_ahead((partition.0, place), Ahead::Index);
        Some((partition.0, place))
    }

    /// Prefetches the memory that a request will use, if its partition is an own one.
    #[inline]
    pub(crate) fn look_ahead(&mut self, (partition, place): (u32, u64), ahead: Ahead) {
        if let Some(state) = self.partitions.own(partition) {
            self.service.look_ahead(state, place, ahead);
        }
    }

    #[inline]
    fn run_batch(&mut self, connection: &mut Connection<S>, batch: &mut ReadAhead<S::Request<'_>>) {
        batch.run(
            self,
            |engine, partition, request| {
                engine.look_ahead((partition, engine.service.place(request)), Ahead::Data);
            },
            |engine, partition, request| engine.run(connection, partition, request),
        );
    }

    #[inline]
    fn run(&mut self, connection: &mut Connection<S>, partition: u32, request: &S::Request<'_>) {
        let counters = self.stats.thread(self.me);
        if let Some(state) = self.partitions.own(partition) {
            counters.own.add(1);
            let load = &self.stats.partition(partition).load;
            let reply = connection.output.tail();
            let before = reply.len();
            load.add(execute(&*self.service, self.metric, state, request, self.now, reply));
            connection.replies.note(reply.len() - before);
            return;
        }
        counters.foreign.add(1);
        let mut bytes = self.buffers.take();
        self.service.encode(request, &mut bytes);
        let hole = Some(connection.output.hole(&mut self.buffers));
        connection.output.prepare(&mut self.buffers);
        self.submit(connection, partition, hole, bytes);
    }

    fn run_everywhere(&mut self, connection: &mut Connection<S>, request: &S::Request<'_>) {
        let partitions = self.stats.partitions_len();
        let mut everywhere = Box::new(Everywhere {
            message: self.buffers.take(),
            replies: (0..partitions).map(|_| self.buffers.take()).collect(),
            missing: 0,
        });
        self.service.encode(request, &mut everywhere.message);
        let (own, foreign) = (&self.stats.thread(self.me).own, &self.stats.thread(self.me).foreign);
        let mut elsewhere = Vec::new();
        for (partition, reply) in (0..).zip(&mut everywhere.replies) {
            match self.partitions.own(partition) {
                Some(state) => {
                    own.add(1);
                    let load = &self.stats.partition(partition).load;
                    load.add(execute(&*self.service, self.metric, state, request, self.now, reply));
                }
                None => {
                    foreign.add(1);
                    elsewhere.push(partition);
                }
            }
        }
        everywhere.missing = elsewhere.len() as u32;
        for partition in elsewhere {
            let mut bytes = self.buffers.take();
            bytes.extend_from_slice(&everywhere.message);
            self.submit(connection, partition, None, bytes);
        }
        let is_complete = everywhere.missing == 0;
        connection.everywhere = Some(everywhere);
        if is_complete {
            self.finish_everywhere(connection);
        }
    }

    /// Once all partitions have replied, makes one reply of theirs.
    pub(crate) fn finish_everywhere(&mut self, connection: &mut Connection<S>) {
        let Some(everywhere) = connection.everywhere.take() else { return };
        connection.output.prepare(&mut self.buffers);
        let request = self.service.decode(&everywhere.message);
        let reply = connection.output.tail();
        self.service.merge(&mut connection.session, &request, &everywhere.replies, self.now, reply);
        drop(request);
        everywhere.replies.into_iter().for_each(|reply| self.buffers.give(reply));
        self.buffers.give(everywhere.message);
    }

    /// Takes the messages of other threads. True if there were any.
    ///
    /// While connections hold as much memory as they may, requests are left alone, and so are the messages behind them
    /// except replies, as if they were still in the rings: each thread's messages keep their order.
    pub(crate) fn receive(&mut self) -> bool {
        let mut inbox = std::mem::take(&mut self.inbox);
        let before = inbox.len();
        self.mail.receive(&mut inbox);
        // After taking messages and before handling them: see `steering`.
        self.refresh();
        let mut is_any = inbox.len() > before;
        for message in inbox.drain(..) {
            let is_deferred = match &message {
                ThreadMessage::Request(_) => {
                    !self.deferred.is_empty() || self.memory.is_full_without_coming()
                }
                ThreadMessage::Adopt { .. } => !self.deferred.is_empty(),
                ThreadMessage::Reply(_) | ThreadMessage::Connection(_) => false,
            };
            if is_deferred {
                self.deferred.push(message);
                continue;
            }
            is_any = true;
            match message {
                ThreadMessage::Request(parcel) => {
                    let place = self.partitions.place_foreign(parcel.partition, parcel);
                    self.put(place, true);
                }
                ThreadMessage::Reply(parcel) => self.replied(parcel),
                ThreadMessage::Adopt { partition, state } => self.adopt(partition, *state),
                ThreadMessage::Connection(newcomer) => self.newcomers.push(newcomer),
            }
        }
        self.inbox = std::mem::replace(&mut self.deferred, inbox);
        self.settle();
        is_any
    }

    /// Sends a request that is not run at once on its way.
    fn submit(&mut self, connection: &Connection<S>, partition: u32, hole: Option<u32>, bytes: Vec<u8>) {
        self.memory.expect(bytes.capacity() as isize);
        let ticket = Ticket { connection: connection.key, incarnation: connection.incarnation, hole };
        let parcel = Parcel { origin: self.me, partition, ticket, travelled: false, bytes };
        self.place_own(parcel);
    }

    fn place_own(&mut self, parcel: Parcel) {
        let place = self.partitions.place_own(parcel.partition, parcel);
        self.put(place, false);
    }

    fn put(&mut self, placement: RequestPlacement<Parcel>, is_forward: bool) {
        match placement {
            RequestPlacement::Kept => {}
            RequestPlacement::Run(parcel) => self.run_parcel(parcel),
            RequestPlacement::Send(to, mut parcel) => {
                if is_forward {
                    self.counters().forwarded.add(1);
                }
                parcel.travelled = true;
                self.mail.send(to, ThreadMessage::Request(parcel));
            }
        }
    }

    fn run_parcel(&mut self, mut parcel: Parcel) {
        let mut reply = self.buffers.take();
        let state = self.partitions.here(parcel.partition).expect("a request is run where its partition is");
        let request = self.service.decode(&parcel.bytes);
        self.service.look_ahead(state, self.service.place(&request), Ahead::Data);
        let cost = execute(&*self.service, self.metric, state, &request, self.now, &mut reply);
        drop(request);
        let bytes = parcel.bytes.len() as u64 * u64::from(self.metric == LoadMetric::Bytes);
        self.stats.partition(parcel.partition).load.add(cost + bytes);
        self.memory.hold(reply.capacity() as isize);
        self.memory.expect(-(parcel.bytes.capacity() as isize));
        self.buffers.give(std::mem::replace(&mut parcel.bytes, reply));
        if parcel.origin != self.me {
            self.mail.send(parcel.origin, ThreadMessage::Reply(parcel));
        } else if parcel.travelled {
            self.replied(parcel);
        } else {
            self.arrived.push(parcel);
        }
    }

    fn replied(&mut self, parcel: Parcel) {
        let held = self.partitions.on_reply(parcel.partition);
        self.arrived.push(parcel);
        held.into_iter().for_each(|parcel| self.place_own(parcel));
    }

    fn adopt(&mut self, partition: u32, state: S::Partition) {
        let early = self.partitions.adopt(partition, state);
        self.stats.partition(partition).owner.store(self.me, Ordering::Relaxed);
        self.counters().adopted.add(1);
        self.kernel_steering.set_owner(partition, self.me);
        early.into_iter().for_each(|parcel| self.run_parcel(parcel));
    }

    /// Follows the table of owners.
    fn refresh(&mut self) {
        let generation = self.shared.generation();
        if generation == self.partitions.generation() {
            return;
        }
        let (shared, mail) = (&self.shared, &mut self.mail);
        let hand_over = |partition, state, to| {
            mail.send(to, ThreadMessage::Adopt { partition, state: Box::new(state) });
        };
        self.partitions.refresh(generation, |partition| shared.owner(partition), hand_over);
    }

    fn settle(&mut self) {
        if self.partitions.generation() != self.settled && self.partitions.is_settled() {
            self.settled = self.partitions.generation();
            self.shared.settle(self.me, self.settled);
        }
    }

    /// Reports whether nothing has arrived that this thread has not handled.
    pub(crate) fn is_quiet(&self) -> bool {
        let follows = self.shared.generation() == self.partitions.generation();
        follows && self.inbox.is_empty() && self.mail.is_empty() && self.mail.is_published()
    }
}

/// Runs a request, and returns its load by the metric.
#[inline]
fn execute<S: Service>(
    service: &S,
    metric: LoadMetric,
    state: &mut S::Partition,
    request: &S::Request<'_>,
    now: Now,
    reply: &mut Vec<u8>,
) -> u64 {
    match metric {
        LoadMetric::Requests => {
            service.execute(state, request, now, reply);
            1
        }
        LoadMetric::Bytes => {
            let before = reply.len();
            service.execute(state, request, now, reply);
            (reply.len() - before) as u64
        }
        LoadMetric::Nanoseconds => {
            let before = Instant::now();
            service.execute(state, request, now, reply);
            before.elapsed().as_nanos() as u64
        }
    }
}
