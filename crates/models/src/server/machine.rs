//! The server at work: requests, queues, threads, in the order of events.

use std::collections::VecDeque;

use plimsoll_fabric::engine::{EventQueue, Owner, OwnerKind};
use plimsoll_traffic::distribution::{Sampler, uniform};
use plimsoll_units::{Span, Streams, Time};

use super::arrivals::{ArrivingClient, ServerArrivals};
use super::keys::{PartitionDraw, below};
use super::lock::{Locking, SimulatedLock};
use super::model::{Dispatch, MemoryPlacement, ServerModel};
use super::neighbour::{CoreSlices, Neighbour};
use super::outcome::{Served, ServerOutcome};
use super::steering::Owners;

/// The actors, as the engine's event queue names them.
const CLIENT: OwnerKind = OwnerKind::Workload;
const DELIVERY: OwnerKind = OwnerKind::Link;
const THREAD: OwnerKind = OwnerKind::Endpoint;
const BALANCER: OwnerKind = OwnerKind::Clock;

/// A request on its way.
#[derive(Clone, Copy, Debug, Default)]
struct Request {
    number: u64,
    client: u32,
    partition: u32,
    writes: bool,
    sent: Time,
    queued: Time,
    /// The parts of its time that are known so far.
    parts: Served,
}

/// The activity of a thread.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    Idle,
    /// In the system, and in the application outside the lock.
    Working,
    /// Adds itself to the count of readers.
    Entering,
    /// In line for the lock since then.
    Waiting(Time),
    /// In the application under the lock.
    Holding,
    /// Takes itself off the count of readers.
    Leaving,
}

#[derive(Clone, Copy, Debug)]
struct ServerThread {
    phase: Phase,
    /// Slot of its request, unless it is idle.
    slot: usize,
    began: Time,
}

struct Samplers {
    delivery: Sampler<Span>,
    system: Sampler<Span>,
    application: Sampler<Span>,
}

/// A server and its clients in one state.
pub(super) struct ServerMachine<'a> {
    model: &'a ServerModel,
    events: EventQueue,
    clients: Vec<ArrivingClient>,
    partitions: PartitionDraw,
    owners: Option<Owners>,
    /// The node of each partition's first owner.
    homes: Vec<u32>,
    samplers: Samplers,
    /// Family of the requests' streams.
    draws: u64,
    requests: Vec<Request>,
    free: Vec<usize>,
    queues: Vec<VecDeque<usize>>,
    /// Idle threads of each queue, the last busy one at the end.
    idle: Vec<Vec<usize>>,
    threads: Vec<ServerThread>,
    /// The neighbour's slices on the cores of the first threads.
    slices: Vec<CoreSlices>,
    locks: Vec<SimulatedLock>,
    /// The time on the NIC's line of the response to a read, and of the response to a write.
    line: [Span; 2],
    /// When the NIC's line is free.
    line_free: Time,
    created: u64,
    done: u64,
    first: Time,
    last: Time,
    outcome: ServerOutcome,
}

impl<'a> ServerMachine<'a> {
    pub(super) fn new(model: &'a ServerModel, seed: u64) -> ServerMachine<'a> {
        let streams = Streams::new(seed);
        let clients: Vec<ArrivingClient> = (0..model.arrivals.clients())
            .map(|number| ArrivingClient::new(&model.arrivals, number, &streams))
            .collect();
        let threads = model.threads_in_all() as usize;
        let queues = match model.dispatch {
            Dispatch::Shared => model.processes as usize,
            _ => threads,
        };
        let owners = Owners::new(model, &streams);
        let (neighbour, line) = (model.neighbour.as_ref(), model.costs.line);
        let node = |thread: u32| thread * model.numa.nodes / model.threads_in_all();
        let homes = (0..model.keys.partitions)
            .map(|partition| {
                let modulo = partition % model.numa.nodes;
                owners.as_ref().map_or(modulo, |owners| node(owners.of(partition)))
            })
            .collect();
        let locks = match model.locking {
            Locking::PerPartition { .. } => model.processes * model.keys.partitions,
            _ => model.processes,
        };
        let mut machine = ServerMachine {
            model,
            events: EventQueue::new(),
            partitions: PartitionDraw::new(&model.keys, &streams),
            owners,
            homes,
            samplers: Samplers {
                delivery: model.costs.delivery.sampler(),
                system: model.costs.system.sampler(),
                application: model.costs.application.sampler(),
            },
            draws: streams.word("server/requests"),
            requests: Vec::new(),
            free: Vec::new(),
            queues: vec![VecDeque::new(); queues],
            idle: vec![Vec::new(); queues],
            threads: vec![ServerThread { phase: Phase::Idle, slot: 0, began: Time::ZERO }; threads],
            slices: neighbour.map_or_else(Vec::new, |neighbour| neighbour.slices(threads as u32, &streams)),
            line: neighbour.map_or(line, |neighbour| line.map(|alone| neighbour.line(alone))),
            locks: vec![SimulatedLock::default(); locks as usize],
            line_free: Time::ZERO,
            created: 0,
            done: 0,
            first: Time::MAX,
            last: Time::ZERO,
            outcome: ServerOutcome::default(),
            clients,
        };
        machine.start();
        machine
    }

    fn start(&mut self) {
        for thread in (0..self.threads.len()).rev() {
            let queue = self.queue_of_thread(thread);
            self.idle[queue].push(thread);
        }
        for (number, client) in self.clients.iter().enumerate() {
            self.events.push(client.next(), Owner::new(CLIENT, number as u32));
        }
        if let Some(epoch) = self.owners.as_ref().and_then(Owners::epoch) {
            self.events.push(Time::ZERO + epoch, Owner::new(BALANCER, 0));
        }
    }

    pub(super) fn run(mut self) -> ServerOutcome {
        while self.done < self.model.requests {
            let (now, owner) = self.events.pop().expect("a request that is not done has an event");
            let number = owner.number();
            match owner.kind() {
                CLIENT => self.on_client(now, number),
                DELIVERY => self.on_delivered(now, number as usize),
                BALANCER => self.on_epoch(now),
                _ => self.on_thread(now, number as usize),
            }
        }
        self.outcome.elapsed = self.last.saturating_since(self.first);
        if let Some(owners) = &self.owners {
            owners.report(&mut self.outcome);
        }
        self.outcome
    }

    fn is_closed(&self) -> bool {
        matches!(self.model.arrivals, ServerArrivals::Closed { .. })
    }

    fn counts(&self, request: &Request) -> bool {
        request.number >= self.model.warmup
    }

    /// Creates the next request of `client`, unless all requests exist already.
    fn on_client(&mut self, now: Time, client: u32) {
        if self.created == self.model.requests {
            return;
        }
        let number = self.created;
        self.created += 1;
        let mut stream = Streams::keyed(self.draws, number);
        let writes = uniform(&mut stream) < self.model.writes;
        let partition = self.partitions.draw(now, &mut stream);
        let source = client as usize;
        // One stream that represents many clients.
        let client = match self.clients.len() {
            1 if !self.is_closed() => below(&mut stream, CONNECTIONS),
            _ => client,
        };
        let parts = Served {
            network: self.model.costs.network,
            delivery: self.samplers.delivery.sample(&mut stream),
            system: self.samplers.system.sample(&mut stream),
            application: self.samplers.application.sample(&mut stream),
            ..Served::default()
        };
        let request = Request { number, client, partition, writes, sent: now, queued: now, parts };
        if self.counts(&request) {
            self.first = self.first.min(now);
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.requests.push(Request::default());
            self.requests.len() - 1
        });
        self.requests[slot] = request;
        self.events.push(now + parts.network + parts.delivery, Owner::new(DELIVERY, slot as u32));
        if self.clients[source].on_sent() {
            self.events.push(self.clients[source].next(), Owner::new(CLIENT, source as u32));
        }
    }

    /// A request reaches its queue.
    fn on_delivered(&mut self, now: Time, slot: usize) {
        self.requests[slot].queued = now;
        let Request { client, partition, .. } = self.requests[slot];
        let queue = match self.model.dispatch {
            Dispatch::Shared => Some((client % self.model.processes) as usize),
            Dispatch::ByConnection => Some(client as usize % self.threads.len()),
            Dispatch::Static | Dispatch::Steered(_) => {
                let owners = self.owners.as_mut().expect("partitions have owners under this dispatch");
                owners.admit(partition, slot).map(|thread| thread as usize)
            }
        };
        if let Some(queue) = queue {
            self.enqueue(now, queue, slot);
        }
    }

    fn enqueue(&mut self, now: Time, queue: usize, slot: usize) {
        if let Some(thread) = self.idle_thread(now, queue) {
            self.begin(now, thread, slot);
            return;
        }
        let is_full = self.model.queue_limit.is_some_and(|limit| self.queues[queue].len() >= limit as usize);
        if !is_full {
            self.queues[queue].push_back(slot);
            return;
        }
        if self.counts(&self.requests[slot]) {
            self.outcome.lost += 1;
            self.last = self.last.max(now);
        }
        self.forget(now, slot);
    }

    /// Takes the idle thread of a queue that was busy last, if there is one: the scheduler prefers a thread whose core
    /// no neighbour has.
    fn idle_thread(&mut self, now: Time, queue: usize) -> Option<usize> {
        let ServerMachine { idle, slices, .. } = self;
        let free = |&thread: &usize| slices.get_mut(thread).is_none_or(|slices| !slices.holds(now));
        let last = idle[queue].len().checked_sub(1)?;
        let place = idle[queue].iter().rposition(free).unwrap_or(last);
        Some(idle[queue].remove(place))
    }

    /// The request leaves the server, served or not.
    fn forget(&mut self, now: Time, slot: usize) {
        self.free.push(slot);
        self.done += 1;
        let partition = self.requests[slot].partition;
        let Some(owners) = &mut self.owners else { return };
        let mut freed = Vec::new();
        let thread = owners.finish(partition, &mut freed);
        for slot in freed {
            self.enqueue(now, thread as usize, slot);
        }
    }

    fn on_epoch(&mut self, now: Time) {
        let owners = self.owners.as_mut().expect("only steering has epochs");
        owners.balance();
        let epoch = owners.epoch().expect("only steering has epochs");
        self.events.push(now + epoch, Owner::new(BALANCER, 0));
    }

    fn queue_of_thread(&self, thread: usize) -> usize {
        match self.model.dispatch {
            Dispatch::Shared => thread / self.model.threads as usize,
            _ => thread,
        }
    }

    /// An idle thread takes a request.
    fn begin(&mut self, now: Time, thread: usize, slot: usize) {
        let remote = self.is_remote(thread, self.requests[slot].partition);
        let request = &mut self.requests[slot];
        request.parts.queue = now - request.queued;
        if let Some(owners) = &mut self.owners {
            request.parts.system += owners.begin(request.partition, thread as u32);
        }
        if remote {
            let longer = request.parts.application.as_secs_f64() * self.model.numa.remote;
            request.parts.application = Span::from_secs_f64(longer);
        }
        request.parts.application += self.model.neighbour.as_ref().map_or(Span::ZERO, Neighbour::misses);
        let Request { writes, parts, .. } = *request;
        let outside = match self.model.locking.takes(writes) {
            true => parts.application.saturating_sub(self.locked(slot)),
            false => parts.application,
        };
        self.threads[thread] = ServerThread { phase: Phase::Working, slot, began: now };
        let done = self.work(thread, now, parts.system + outside);
        self.wake(done, thread);
    }

    /// Returns when a thread has done `work`, which can begin at `from`: later, where a neighbour has its core.
    fn work(&mut self, thread: usize, from: Time, work: Span) -> Time {
        let Some(slices) = self.slices.get_mut(thread) else { return from + work };
        let done = slices.end_of(from, work);
        self.requests[self.threads[thread].slot].parts.preempted += (done - from).saturating_sub(work);
        done
    }

    fn is_remote(&self, thread: usize, partition: u32) -> bool {
        let nodes = self.model.numa.nodes;
        let node = thread as u32 * nodes / self.model.threads_in_all();
        match self.model.numa.placement {
            MemoryPlacement::Local => false,
            MemoryPlacement::Remote => true,
            MemoryPlacement::FirstOwner => self.homes[partition as usize] != node,
        }
    }

    /// The application's time under the lock.
    fn locked(&self, slot: usize) -> Span {
        let application = self.requests[slot].parts.application.as_ps();
        Span::from_ps((application as f64 * self.model.costs.locked).round() as u64)
    }

    fn wake(&mut self, at: Time, thread: usize) {
        self.events.push(at, Owner::new(THREAD, thread as u32));
    }

    fn lock_of(&self, slot: usize) -> usize {
        let Request { client, partition, .. } = self.requests[slot];
        let process = client % self.model.processes;
        let lock = match self.model.locking {
            Locking::PerPartition { .. } => process * self.model.keys.partitions + partition,
            _ => process,
        };
        lock as usize
    }

    /// Handles the end of a thread's current activity.
    fn on_thread(&mut self, now: Time, thread: usize) {
        let ServerThread { phase, slot, .. } = self.threads[thread];
        let (locking, writes) = (self.model.locking, self.requests[slot].writes);
        match phase {
            Phase::Working if !locking.takes(writes) => self.finish(now, thread),
            Phase::Working if locking.count() > Span::ZERO => {
                self.change_count(now, thread, Phase::Entering);
            }
            Phase::Working | Phase::Entering => self.enter(now, thread),
            Phase::Holding if locking.count() > Span::ZERO => {
                self.change_count(now, thread, Phase::Leaving);
            }
            Phase::Holding | Phase::Leaving => {
                self.leave(now, thread);
                self.finish(now, thread);
            }
            Phase::Idle | Phase::Waiting(_) => unreachable!("nothing of it is due"),
        }
    }

    fn change_count(&mut self, now: Time, thread: usize, phase: Phase) {
        let slot = self.threads[thread].slot;
        let lock = self.lock_of(slot);
        let at = self.locks[lock].change_count(now, self.model.locking.count());
        self.requests[slot].parts.lock += at - now;
        self.threads[thread].phase = phase;
        self.wake(at, thread);
    }

    fn enter(&mut self, now: Time, thread: usize) {
        let slot = self.threads[thread].slot;
        let lock = self.lock_of(slot);
        let alone = self.model.locking.excludes(self.requests[slot].writes);
        let is_taken = self.locks[lock].enter(thread, alone);
        if self.counts(&self.requests[slot]) {
            self.outcome.locks.requests += 1;
            self.outcome.locks.contended += u64::from(!is_taken);
        }
        if is_taken {
            self.hold(now, thread);
        } else {
            self.threads[thread].phase = Phase::Waiting(now);
        }
    }

    /// Works under the lock, from `from` on.
    fn hold(&mut self, from: Time, thread: usize) {
        let slot = self.threads[thread].slot;
        let grace = self.model.locking.grace(self.requests[slot].writes);
        self.requests[slot].parts.lock += grace;
        self.threads[thread].phase = Phase::Holding;
        let done = self.work(thread, from, self.locked(slot));
        self.wake(done + grace, thread);
    }

    fn leave(&mut self, now: Time, thread: usize) {
        let slot = self.threads[thread].slot;
        let lock = self.lock_of(slot);
        let alone = self.model.locking.excludes(self.requests[slot].writes);
        let mut next = Vec::new();
        self.locks[lock].leave(alone, &mut next);
        let from = now + self.model.locking.wake();
        for thread in next {
            let ServerThread { phase: Phase::Waiting(since), slot, .. } = self.threads[thread] else {
                unreachable!("who gets the lock has waited for it");
            };
            self.requests[slot].parts.lock += from - since;
            self.hold(from, thread);
        }
    }

    /// Ends a request: the answer is sent by the line, and the thread takes the next request of its queue.
    fn finish(&mut self, now: Time, thread: usize) {
        let ServerThread { slot, began, .. } = self.threads[thread];
        let takes = self.line[usize::from(self.requests[slot].writes)];
        self.line_free = self.line_free.max(now) + takes;
        let request = &mut self.requests[slot];
        request.parts.line = self.line_free - now;
        let (request, answered) = (*request, self.line_free);
        assert_eq!(request.parts.latency(), answered - request.sent, "the parts sum to the latency");
        if self.counts(&request) {
            self.last = self.last.max(answered);
            self.outcome.served.push(request.parts);
            self.outcome.busy += now - began;
            self.outcome.locks.waited += request.parts.lock;
        }
        if self.is_closed() {
            let client = &mut self.clients[request.client as usize];
            client.on_answer(answered);
            self.events.push(client.next(), Owner::new(CLIENT, request.client));
        }
        // The thread reads its queue before the requests that this one delayed can reach it.
        self.threads[thread].phase = Phase::Idle;
        let queue = self.queue_of_thread(thread);
        match self.queues[queue].pop_front() {
            Some(next) => self.begin(now, thread, next),
            None => self.idle[queue].push(thread),
        }
        self.forget(now, slot);
    }
}

/// Number of clients that one open-loop stream represents.
const CONNECTIONS: u32 = 1 << 16;
