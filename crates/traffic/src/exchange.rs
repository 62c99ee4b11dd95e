//! [`Exchanges`]: requests that servers answer, and [`WorkloadConnections`]: the connections that carry them.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use plimsoll_fabric::net::HostId;
use plimsoll_units::{Span, Time};

use crate::record::{MessageRecord, Split};
use crate::slab::Slab;
use crate::source::{Actions, Arrival, ConnectionEnd, Hint, Write};

/// The connections of a workload: one kept for each pair of hosts and lane, or one for each message.
#[derive(Debug)]
pub(crate) struct WorkloadConnections {
    per_message: bool,
    /// The open connections by the host that opened them, the host at the other end, and the lane.
    open: BTreeMap<(HostId, HostId, u32), u32>,
}

impl WorkloadConnections {
    pub(crate) fn new(per_message: bool) -> WorkloadConnections {
        WorkloadConnections { per_message, open: BTreeMap::new() }
    }

    /// Returns the connection for the next message of `client` to `server`; messages of other lanes do not wait for it.
    pub(crate) fn connection(
        &mut self,
        client: HostId,
        server: HostId,
        lane: u32,
        actions: &mut Actions,
    ) -> u32 {
        if self.per_message {
            return actions.open(client, server);
        }
        *self.open.entry((client, server, lane)).or_insert_with(|| actions.open(client, server))
    }

    /// Sends a message that needs no answer, or whose answer is sent by [`WorkloadConnections::answer`].
    pub(crate) fn send(&mut self, now: Time, message: OutgoingMessage, actions: &mut Actions) {
        let connection = self.connection(message.from, message.to, 0, actions);
        let OutgoingMessage { bytes, tag, .. } = message;
        actions.writes.push(Write { connection, end: ConnectionEnd::Client, bytes, tag, created: now });
    }

    /// Sends a message to a host from which one has come, on the same connection where it was kept.
    pub(crate) fn answer(&mut self, now: Time, message: OutgoingMessage, actions: &mut Actions) {
        let OutgoingMessage { from, to, bytes, tag } = message;
        match self.open.get(&(to, from, 0)) {
            None => self.send(now, message, actions),
            Some(&connection) => {
                actions.writes.push(Write {
                    connection,
                    end: ConnectionEnd::Server,
                    bytes,
                    tag,
                    created: now,
                });
            }
        }
    }
}

/// A message of a [`WorkloadConnections`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct OutgoingMessage {
    pub(crate) from: HostId,
    pub(crate) to: HostId,
    pub(crate) bytes: u64,
    /// The source's tag, which its arrival returns.
    pub(crate) tag: u64,
}

/// A request and the work of its server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PendingRequest {
    pub(crate) index: u64,
    pub(crate) query: Option<u64>,
    /// The source's number for the thing that the request is for.
    pub(crate) owner: u64,
    pub(crate) client: HostId,
    pub(crate) server: HostId,
    /// The number of the server's queue.
    pub(crate) queue: usize,
    pub(crate) connection: u32,
    pub(crate) request_bytes: u64,
    pub(crate) response_bytes: u64,
    pub(crate) service: Span,
}

/// An exchange whose answer has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CompletedExchange {
    pub(crate) owner: u64,
    /// The exchange as a record.
    pub(crate) message: MessageRecord,
}

#[derive(Clone, Copy, Debug)]
struct OpenExchange {
    ask: PendingRequest,
    created: Time,
    /// The time at which the request reached its server.
    asked: Time,
    /// The time at which the answer is ready; before the request has reached its server, the earliest such time.
    ready: Time,
    split: Split,
    ideal: Span,
    /// The server has written the answer.
    is_answered: bool,
}

/// Requests in flight, and the servers that work on them: each first come first served by a number of threads.
#[derive(Debug)]
pub(crate) struct Exchanges {
    workload: u16,
    open: Slab<OpenExchange>,
    threads: usize,
    /// The times at which each server's threads that have ever worked are free, by server, the earliest on top. Without
    /// entries, servers work on all requests at once.
    free: Vec<BinaryHeap<Reverse<Time>>>,
    /// The requests in service: the time of completion, a tie-break, and the slot of the request.
    serving: BinaryHeap<Reverse<(Time, u64, usize)>>,
    served: u64,
}

/// The low bit of a tag: the message is the response of its exchange.
const RESPONSE: u64 = 1;

impl Exchanges {
    pub(crate) fn new(workload: u16, servers: usize, threads: u32) -> Exchanges {
        Exchanges {
            workload,
            open: Slab::default(),
            threads: threads as usize,
            free: vec![BinaryHeap::new(); servers],
            serving: BinaryHeap::new(),
            served: 0,
        }
    }

    /// Returns exchanges whose servers work on all requests at once.
    pub(crate) fn unlimited(workload: u16) -> Exchanges {
        Exchanges::new(workload, 0, 0)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Returns the time at which the next answer is ready.
    pub(crate) fn next_due(&self) -> Time {
        self.serving.peek().map_or(Time::MAX, |Reverse((done, ..))| *done)
    }

    pub(crate) fn ask(&mut self, now: Time, ask: PendingRequest, actions: &mut Actions) {
        let open = OpenExchange {
            ask,
            created: now,
            asked: now,
            ready: now.saturating_add(ask.service),
            split: Split::default(),
            ideal: ask.service,
            is_answered: false,
        };
        let slot = self.open.insert(open);
        actions.writes.push(Write {
            connection: ask.connection,
            end: ConnectionEnd::Client,
            bytes: ask.request_bytes,
            tag: (slot as u64) << 1,
            created: now,
        });
    }

    /// Sends the answers that are ready.
    pub(crate) fn on_due(&mut self, now: Time, actions: &mut Actions) {
        while let Some(&Reverse((done, _, slot))) = self.serving.peek()
            && done <= now
        {
            self.serving.pop();
            self.answer(now, slot, actions);
        }
    }

    /// Handles the arrival of a message of an exchange; the exchange is complete if it was the answer.
    pub(crate) fn on_message(
        &mut self,
        arrival: Arrival,
        actions: &mut Actions,
    ) -> Option<CompletedExchange> {
        let slot = (arrival.tag >> 1) as usize;
        let open = self.open.get_mut(slot);
        open.split = open.split + arrival.split;
        open.ideal += arrival.ideal;
        if arrival.tag & RESPONSE == 0 {
            self.on_request(arrival.now, slot, actions);
            return None;
        }
        let open = self.open.remove(slot);
        Some(CompletedExchange { owner: open.ask.owner, message: self.record(&open, Some(arrival.now)) })
    }

    /// Passes the answers that servers have yet to write to `tell`.
    pub(crate) fn hints(&self, tell: &mut dyn FnMut(Hint)) {
        for OpenExchange { ask, ready, .. } in self.open.iter().filter(|open| !open.is_answered) {
            tell(Hint { from: ask.server, to: ask.client, bytes: ask.response_bytes, ready: *ready });
        }
    }

    /// Returns the owner and the creation time of each exchange without an answer.
    pub(crate) fn created(&self) -> impl Iterator<Item = (u64, Time)> {
        self.open.iter().map(|open| (open.ask.owner, open.created))
    }

    /// Returns the exchanges without an answer, for the end of a run.
    pub(crate) fn unfinished(&self) -> impl Iterator<Item = CompletedExchange> {
        self.open
            .iter()
            .map(|open| CompletedExchange { owner: open.ask.owner, message: self.record(open, None) })
    }

    fn on_request(&mut self, now: Time, slot: usize, actions: &mut Actions) {
        let open = self.open.get_mut(slot);
        open.asked = now;
        let mut done = now + open.ask.service;
        if let Some(free) = self.free.get_mut(open.ask.queue) {
            if free.len() >= self.threads {
                let begin = free.pop().map_or(now, |Reverse(free)| free.max(now));
                done = begin + open.ask.service;
            }
            free.push(Reverse(done));
        }
        open.ready = done;
        if done == now {
            self.answer(now, slot, actions);
        } else {
            self.served += 1;
            self.serving.push(Reverse((done, self.served, slot)));
        }
    }

    fn answer(&mut self, now: Time, slot: usize, actions: &mut Actions) {
        let open = self.open.get_mut(slot);
        open.split.service = now - open.asked;
        open.is_answered = true;
        actions.writes.push(Write {
            connection: open.ask.connection,
            end: ConnectionEnd::Server,
            bytes: open.ask.response_bytes,
            tag: (slot as u64) << 1 | RESPONSE,
            created: now,
        });
    }

    fn record(&self, open: &OpenExchange, completed: Option<Time>) -> MessageRecord {
        let OpenExchange { ask, created, split, ideal, .. } = *open;
        MessageRecord {
            workload: self.workload,
            index: ask.index,
            query: ask.query,
            source: ask.client.0,
            destination: ask.server.0,
            bytes: ask.response_bytes,
            created,
            completed,
            ideal,
            split,
        }
    }
}
