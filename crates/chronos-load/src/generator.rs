//! The clients of one thread as a state machine: its inputs are the time and received bytes, its outputs are bytes to
//! send. It has neither sockets nor a clock, so that the effect of a stall on latencies is testable to the picosecond.
//!
//! ```text
//!  advance(now) ──> operations that are due ──┐                       ┌── take_sendable, output, sent
//!                                             ├──> requests ──> Link ─┤
//!  operations that ended (closed loop) ───────┘                       └── receive ──> Book
//! ```
//! An operation's latency counts from when it *should* have been sent. In a closed loop that is when it was sent. For
//! quantiles, a lost operation counts as the timeout or longer: omitting it would make the others look better.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::Arc;

use plimsoll_units::{Span, Time};
use rand::Rng;
use slab::Slab;

use crate::arrivals::Schedule;
use crate::book::Book;
use crate::draws::{below, draws};
use crate::link::ServerLink;
use crate::protocol::RequestKind;
use crate::setup::{LoadPhase, Pace, Setup, Shape};
use crate::values::FIRST_VERSION;

mod late;
mod receive;
mod send;

/// The clients of one thread.
#[derive(Debug)]
pub struct Generator {
    setup: Arc<Setup>,
    phase: LoadPhase,
    thread: u32,
    schedule: Option<Schedule>,
    /// The time at which the next operation of an open loop is due.
    next_due: Time,
    /// The number of operations of the open loop so far.
    arrived: u64,
    clients: Vec<GeneratorClient>,
    /// One client's connections to all servers, then the next client's.
    links: Vec<ServerLink>,
    operations: Slab<Operation>,
    sendable: Vec<usize>,
    /// The keys that the load phase must store again.
    again: Vec<u64>,
    /// The operations with a request that could not be sent, because its connection is closed or has no number left.
    stranded: Vec<usize>,
    /// The copies of gets that are sent unless their values arrive before.
    late: BinaryHeap<Reverse<late::LateCopy>>,
    next_check: Time,
    book: Book,
}

#[derive(Debug)]
struct GeneratorClient {
    /// The client's number among all threads' clients.
    id: u32,
    next_number: u64,
    /// Whether one of its connections is closed.
    broken: bool,
}

#[derive(Debug)]
struct Operation {
    client: usize,
    number: u64,
    kind: RequestKind,
    /// The time from which its latency counts; in a closed loop, none until it is sent.
    start: Option<Time>,
    /// The number of requests without a reply.
    waiting: u32,
    /// The number of copies of its get so far.
    copies: u32,
    /// The number of parts that are sent after this one.
    parts_left: u32,
    /// Whether it was counted already.
    counted: bool,
    failure: Option<Failure>,
}

/// The reason why an operation failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Failure {
    Lost,
    Refused,
    Wrong,
}

impl Generator {
    /// Creates the clients `clients` of thread `thread` of `threads`, in `phase`.
    pub fn new(
        setup: Arc<Setup>,
        phase: LoadPhase,
        clients: Range<u32>,
        thread: u32,
        threads: u32,
    ) -> Generator {
        let mut schedule = match phase.pace {
            Pace::Open(arrivals, rate) => {
                let seed = setup.seed.wrapping_add(u64::from(phase.index));
                Some(Schedule::new(arrivals, rate, seed, thread, threads))
            }
            Pace::Closed(_) | Pace::Load(_) => None,
        };
        let next_due = schedule.as_mut().map_or(Time::MAX, Schedule::next_due);
        let first = u64::from(phase.index) << NUMBER_BITS;
        let clients: Vec<GeneratorClient> =
            clients.map(|id| GeneratorClient { id, next_number: first, broken: false }).collect();
        let links = clients.len() * setup.placement.servers() as usize;
        let mut generator = Generator {
            setup,
            phase,
            thread,
            schedule,
            next_due,
            arrived: 0,
            clients,
            links: std::iter::repeat_with(ServerLink::default).take(links).collect(),
            operations: Slab::new(),
            sendable: Vec::new(),
            again: Vec::new(),
            stranded: Vec::new(),
            late: BinaryHeap::new(),
            next_check: Time::ZERO,
            book: Book::default(),
        };
        if let Pace::Closed(outstanding) | Pace::Load(outstanding) = phase.pace {
            for client in 0..generator.clients.len() {
                (0..outstanding).for_each(|_| generator.follow(client, Time::ZERO));
            }
        }
        generator
    }

    /// Returns the number of connections; connection i is of server i modulo the number of servers.
    pub fn links(&self) -> usize {
        self.links.len()
    }

    /// Returns when [`Generator::advance`] must be called next.
    pub fn next_event(&self) -> Time {
        if !self.stranded.is_empty() {
            return Time::ZERO;
        }
        let check =
            if self.setup.datagrams && !self.operations.is_empty() { self.next_check } else { Time::MAX };
        let other = check.min(self.next_copy());
        if self.next_due < self.phase.to { self.next_due.min(other) } else { other }
    }

    /// Creates requests for due operations, and times out unanswered datagrams.
    pub fn advance(&mut self, now: Time) {
        while self.next_due <= now && self.next_due < self.phase.to {
            let due = self.next_due;
            let mut rng = draws(self.setup.seed, self.thread, self.arrived, CLIENT);
            let client = below(rng.next_u64(), self.clients.len() as u64) as usize;
            self.arrived += 1;
            self.begin(client, due);
            self.next_due = self.schedule.as_mut().map_or(Time::MAX, Schedule::next_due);
        }
        self.send_late_copies(now);
        while let Some(operation) = self.stranded.pop() {
            self.end_part(operation, now, Some(Failure::Lost), false);
        }
        if self.setup.datagrams && now >= self.next_check {
            self.next_check = now + CHECK_EVERY;
            self.give_up(now);
        }
    }

    /// Returns whether nothing is left to send or to wait for at `now`.
    pub fn is_over(&self, now: Time) -> bool {
        let sent_all = match self.phase.pace {
            Pace::Open(..) | Pace::Closed(_) => now >= self.phase.to,
            Pace::Load(_) => true,
        };
        let given_up = !matches!(self.phase.pace, Pace::Load(_))
            && now >= self.phase.to.saturating_add(self.setup.timeout);
        let gone = self.clients.iter().all(|client| client.broken);
        (sent_all && self.operations.is_empty()) || given_up || gone
    }

    /// Returns the counts. Operations without a reply are lost.
    pub fn finish(mut self) -> Book {
        for (_, operation) in &self.operations {
            if !operation.counted && operation.start.is_some_and(|start| self.is_measured(start)) {
                self.book.counts.due += 1;
                self.book.counts.lost += 1;
                Book::record(&mut self.book.given_up, self.setup.timeout);
            }
        }
        self.book
    }

    /// Returns the counts so far.
    pub fn book(&mut self) -> &mut Book {
        &mut self.book
    }

    /// Returns a connection with output.
    pub fn take_sendable(&mut self) -> Option<usize> {
        let link = self.sendable.pop()?;
        self.links[link].listed = false;
        Some(link)
    }

    /// Returns the output of connection `link` at the time of the write: all bytes and the ends of its datagrams.
    pub fn output(&mut self, link: usize, now: Time) -> (&[u8], &[usize]) {
        let link = &mut self.links[link];
        for pending in link.take_unsent() {
            pending.sent = now;
            if (self.phase.from..self.phase.to).contains(&pending.due) {
                Book::record(&mut self.book.lag, now.saturating_since(pending.due));
            }
            let operation = &mut self.operations[pending.operation];
            operation.start.get_or_insert(now);
        }
        (&link.out, &link.ends)
    }

    /// Records that the first `bytes` of the output of `link` (and `datagrams` of its datagrams) are sent.
    pub fn sent(&mut self, link: usize, bytes: usize, datagrams: usize) {
        let link = &mut self.links[link];
        link.out.drain(..bytes);
        link.ends.drain(..datagrams);
        link.ends.iter_mut().for_each(|end| *end -= bytes);
    }

    fn is_measured(&self, start: Time) -> bool {
        (self.phase.from..self.phase.to).contains(&start)
    }

    /// In a closed loop, starts the next operation of `client`.
    fn follow(&mut self, client: usize, now: Time) {
        let more = match self.phase.pace {
            Pace::Open(..) => false,
            Pace::Closed(_) => now < self.phase.to,
            Pace::Load(_) => !self.again.is_empty() || self.next_to_load(client).is_some(),
        };
        if more && !self.clients[client].broken {
            self.begin(client, now);
        }
    }

    /// Returns the key that `client` stores next in the load phase.
    fn next_to_load(&self, client: usize) -> Option<u64> {
        let GeneratorClient { id, next_number, .. } = self.clients[client];
        let clients = self.clients.len() as u64;
        let (thread, count) = (u64::from(self.thread), next_number & ((1 << NUMBER_BITS) - 1));
        // A single thread loads, so that its clients are all clients.
        debug_assert!(thread == 0);
        let key = u64::from(id) + count * clients;
        (key < self.setup.choice.keys()).then_some(key)
    }

    fn begin(&mut self, client: usize, due: Time) {
        let GeneratorClient { id, next_number, broken } = self.clients[client];
        let open = matches!(self.phase.pace, Pace::Open(..));
        if broken || self.operations.len() >= self.setup.outstanding_max {
            if self.is_measured(due) {
                self.book.counts.due += 1;
                self.book.counts.unsent += 1;
            }
            return;
        }
        let loads = matches!(self.phase.pace, Pace::Load(_));
        let kind = if loads { RequestKind::Set } else { self.setup.kind(id, next_number) };
        let parts_left = match self.setup.shape {
            Shape::Chain(length) if !loads => length - 1,
            _ => 0,
        };
        let operation = self.operations.insert(Operation {
            client,
            number: next_number,
            kind,
            start: open.then_some(due),
            waiting: 0,
            copies: 0,
            parts_left,
            counted: false,
            failure: None,
        });
        if loads {
            let key = self.again.pop().or_else(|| {
                let key = self.next_to_load(client);
                self.clients[client].next_number += 1;
                key
            });
            let key = key.expect("follow has seen that a key is left");
            self.send_to_homes(operation, key, FIRST_VERSION, due);
        } else {
            self.clients[client].next_number += 1;
            self.send_part(operation, 0, due);
        }
    }

    /// Ends a request of `operation`, which the client may have given up before.
    fn end_part(&mut self, operation: usize, now: Time, failure: Option<Failure>, is_given_up: bool) {
        let state = &mut self.operations[operation];
        state.waiting -= 1;
        state.failure = state.failure.or(failure);
        let client = state.client;
        let first_wins = matches!(self.setup.shape, Shape::Replicas(_)) && state.kind == RequestKind::Get;
        let is_last = state.waiting == 0;
        if is_last && state.parts_left > 0 && state.failure.is_none() {
            state.parts_left -= 1;
            let Shape::Chain(length) = self.setup.shape else { unreachable!("only chains have parts") };
            let part = length - 1 - state.parts_left;
            return self.send_part(operation, part, now);
        }
        let wins = first_wins && failure.is_none() && !is_given_up;
        let is_decided = !state.counted && (is_last || wins);
        if is_decided {
            state.counted = true;
            // With one replica's reply, the results of the others do not matter.
            let failure = if wins { None } else { state.failure };
            let start = state.start.unwrap_or(now);
            self.count(start, now, failure);
        }
        if is_last {
            self.operations.remove(operation);
        }
        if is_decided {
            self.follow(client, now);
        }
    }

    fn count(&mut self, start: Time, now: Time, failure: Option<Failure>) {
        let measured_end = self.is_measured(now);
        let measured = self.is_measured(start);
        let counts = &mut self.book.counts;
        match failure {
            None => {
                counts.completed += u64::from(measured_end);
                if measured {
                    Book::record(&mut self.book.latency, now.saturating_since(start));
                }
            }
            Some(Failure::Lost) => {
                counts.lost += u64::from(measured);
                if measured {
                    let waited = now.saturating_since(start).max(self.setup.timeout);
                    Book::record(&mut self.book.given_up, waited);
                }
            }
            Some(Failure::Refused) => counts.refused += u64::from(measured),
            // Wrong values are counted one by one, measured or not.
            Some(Failure::Wrong) => {}
        }
        self.book.counts.due += u64::from(measured);
    }
}

/// The bits of an operation's number below its phase.
const NUMBER_BITS: u32 = 28;
/// The interval at which datagrams are checked for timeouts.
const CHECK_EVERY: Span = Span::from_us(500);
/// The part of [`draws`] that selects an operation's client.
const CLIENT: u32 = u32::MAX - 2;

#[cfg(test)]
mod tests;
