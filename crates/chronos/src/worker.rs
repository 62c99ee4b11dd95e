//! [`Worker`]: one thread: its connections, and the turns that it takes.
//!
//! ```text
//! a turn:  driver (read, parse, run, write) ─> messages in ─> replies into their places ─> write ─> messages out
//! ```

use std::io;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::net::{SendFlags, send};
use slab::Slab;

use crate::balancer::Balancer;
use crate::connection::{Connection, Input, Link};
use crate::engine::{Engine, Halt};
use crate::mail::{Message, Newcomer};
use crate::output::Output;
use crate::store::Store;
use crate::tls::TlsStream;
use crate::{Now, Poll, Service, Transport};

/// What moves bytes between a worker's connections and the kernel.
pub(crate) trait Driver<S: Service> {
    /// Handles what the kernel has, after waiting for it no longer than `wait`. False if there was nothing.
    fn turn(&mut self, worker: &mut Worker<S>, wait: Duration) -> io::Result<bool>;
    /// Begins to read from a connection.
    fn open(&mut self, worker: &mut Worker<S>, key: u32) -> io::Result<()>;
    /// Sends, reads or closes, whatever the connection needs now.
    fn serve(&mut self, worker: &mut Worker<S>, key: u32);
    /// Closes a connection, whatever is to be sent still.
    fn close(&mut self, worker: &mut Worker<S>, key: u32);
    /// Sends what connections left for the end of the turn.
    fn flush(&mut self, worker: &mut Worker<S>);
    /// Whether it has more to do without waiting.
    fn is_busy(&self) -> bool;
    /// Takes no more connections and datagrams.
    fn stop_listening(&mut self);
}

/// One thread of a server.
pub(crate) struct Worker<S: Service> {
    pub(crate) engine: Engine<S>,
    pub(crate) connections: Slab<Connection<S>>,
    poll: Poll,
    clock: Clock,
    balancer: Option<Balancer>,
    /// Connections to look after in this turn.
    listed: Vec<u32>,
    /// Connections that wait until there is room in the rings.
    congested: Vec<u32>,
    incarnations: u32,
    /// The thread that the next connection is dealt to.
    next_thread: u32,
    next_second: Duration,
    /// The partition that is kept in order next, if any is.
    housekeeping: Option<u32>,
    turns: u64,
    stop_at: Option<Duration>,
    is_drained: bool,
}

/// When the server started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    unix_start: Duration,
}

/// Turns without anything to do, each of which lets other threads run, after which a thread that blocks sleeps: being
/// woken costs more than what comes in the meantime, and what comes together is handled together.
const WAKEFUL_TURNS: u32 = 4;
/// Turns between looks at the longer-term work of a thread that is never idle.
const HOUSEKEEPING_TURNS: u64 = 256;
/// Turns without anything to do after which a spinning thread lets others run (where processors are shared).
const YIELD_TURNS: u32 = 64;

impl Clock {
    pub(crate) fn new() -> Clock {
        let unix_start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Clock { start: Instant::now(), unix_start }
    }

    pub(crate) fn now(&self) -> Now {
        let elapsed = self.start.elapsed();
        Now { since_start: elapsed, unix_seconds: (self.unix_start + elapsed).as_secs() }
    }
}

impl<S: Service> Worker<S> {
    pub(crate) fn new(engine: Engine<S>, poll: Poll, clock: Clock, balancer: Option<Balancer>) -> Worker<S> {
        Worker {
            engine,
            connections: Slab::new(),
            poll,
            clock,
            balancer,
            listed: Vec::new(),
            congested: Vec::new(),
            incarnations: 0,
            next_thread: 0,
            next_second: Duration::from_secs(1),
            housekeeping: None,
            turns: 0,
            stop_at: None,
            is_drained: false,
        }
    }

    /// Serves until the server stops.
    pub(crate) fn run<D: Driver<S>>(&mut self, driver: &mut D) -> io::Result<()> {
        let mut idle_turns = 0;
        loop {
            let happened = self.wait(driver, idle_turns)?;
            let received = self.engine.receive();
            self.deliver(driver)?;
            self.publish();
            self.serve_listed(driver);
            self.publish();
            self.turns += 1;
            if happened || received {
                idle_turns = 0;
            } else {
                idle_turns += 1;
                self.housekeep();
                // A thread that blocks is here only because it waits for another thread, or is about to sleep.
                if self.poll == Poll::Block || idle_turns % YIELD_TURNS == 0 {
                    std::thread::yield_now();
                }
            }
            if self.turns.is_multiple_of(HOUSEKEEPING_TURNS) {
                self.housekeep();
            }
            self.on_time();
            if self.engine.shared.is_stopping() && self.drain(driver) {
                return Ok(());
            }
        }
    }

    /// The driver's part of a turn, asleep if there is nothing else to do.
    fn wait<D: Driver<S>>(&mut self, driver: &mut D, idle_turns: u32) -> io::Result<bool> {
        let is_busy = driver.is_busy()
            || !self.listed.is_empty()
            || !self.congested.is_empty()
            || self.housekeeping.is_some()
            || !self.engine.mail.is_published();
        if self.poll == Poll::Spin || is_busy || idle_turns < WAKEFUL_TURNS {
            return driver.turn(self, Duration::ZERO);
        }
        let (shared, me) = (self.engine.shared.clone(), self.engine.me);
        shared.fall_asleep(me);
        // A stop that was seen already must not keep the thread awake.
        let is_new_stop = shared.is_stopping() && self.stop_at.is_none();
        let is_last = shared.has_failed() || shared.all_drained();
        let may_sleep = self.engine.is_quiet() && !is_new_stop && !is_last;
        let wait = if may_sleep { self.until_next() } else { Duration::ZERO };
        let happened = driver.turn(self, wait);
        shared.awake(me);
        happened
    }

    fn until_next(&self) -> Duration {
        let mut next = self.next_second;
        if let Some(balancer) = &self.balancer {
            next = next.min(balancer.deadline());
        }
        if let Some(stop_at) = self.stop_at.filter(|_| !self.connections.is_empty()) {
            next = next.min(stop_at);
        }
        let now = self.clock.now().since_start;
        next.saturating_sub(now)
    }

    /// Reads the clock, for all that is done until it is read again.
    pub(crate) fn tick(&mut self) {
        self.engine.now = self.clock.now();
    }

    /// A connection begins; None if the server stops.
    pub(crate) fn add(&mut self, link: Link, transport: Transport) -> u32 {
        self.incarnations = self.incarnations.wrapping_add(1);
        let entry = self.connections.vacant_entry();
        let key = entry.key() as u32;
        entry.insert(Connection {
            key,
            incarnation: self.incarnations,
            session: self.engine.service.open(transport),
            input: Input::default(),
            output: Output::default(),
            everywhere: None,
            link,
            tls: None,
            active_at: self.engine.now.since_start,
            is_blocked: false,
            is_closing: false,
            is_ended: false,
            is_listed: false,
        });
        key
    }

    /// A connection was accepted: the threads get them in turn, unless there are too many.
    pub(crate) fn deal<D: Driver<S>>(&mut self, driver: &mut D, newcomer: Newcomer) -> io::Result<()> {
        let shared = &self.engine.shared;
        if shared.connections.fetch_add(1, Ordering::Relaxed) >= self.engine.limits.connections {
            shared.connections.fetch_sub(1, Ordering::Relaxed);
            self.engine.counters().refused.add(1);
            if newcomer.tls.is_some() {
                return Ok(());
            }
            // It is told why if it listens.
            let _ = send(
                &newcomer.socket,
                self.engine.service.refusal(),
                SendFlags::NOSIGNAL | SendFlags::DONTWAIT,
            );
            return Ok(());
        }
        let thread = self.next_thread;
        self.next_thread = (thread + 1) % shared.threads();
        if thread == self.engine.me {
            return self.open(driver, newcomer);
        }
        self.engine.mail.send(thread, Message::Connection(newcomer));
        Ok(())
    }

    /// A connection that this thread was dealt.
    pub(crate) fn open<D: Driver<S>>(&mut self, driver: &mut D, newcomer: Newcomer) -> io::Result<()> {
        if self.stop_at.is_some() {
            self.engine.shared.connections.fetch_sub(1, Ordering::Relaxed);
            return Ok(());
        }
        self.engine.counters().opened.add(1);
        let key = self.add(Link::stream(newcomer.socket), newcomer.transport);
        if let Some(tls) = &newcomer.tls {
            match TlsStream::new(tls) {
                Ok(tls) => self.connections[key as usize].tls = Some(Box::new(tls)),
                // A configuration that was accepted, and does not do: nobody is served in the clear instead.
                Err(_) => self.connections[key as usize].is_closing = true,
            }
        }
        driver.open(self, key)
    }

    /// A connection is gone.
    pub(crate) fn remove(&mut self, key: u32) -> Connection<S> {
        let connection = self.connections.remove(key as usize);
        if matches!(connection.link, Link::Stream(_)) {
            self.engine.shared.connections.fetch_sub(1, Ordering::Relaxed);
            self.engine.counters().closed.add(1);
        }
        connection
    }

    /// Bytes came on a connection.
    pub(crate) fn on_bytes(&mut self, key: u32, bytes: &[u8]) {
        let connection = &mut self.connections[key as usize];
        connection.active_at = self.engine.now.since_start;
        self.engine.counters().received_bytes.add(bytes.len() as u64);
        let Some(tls) = &mut connection.tls else { return self.on_plain(key, bytes) };
        let mut plain = self.engine.buffers.take();
        match tls.receive(bytes, &mut plain) {
            Ok(has_ended) => connection.is_ended |= has_ended,
            // The client is told by an alert.
            Err(_) => connection.is_closing = true,
        }
        if !connection.is_closing {
            self.on_plain(key, &plain);
        }
        self.engine.buffers.give(plain);
    }

    fn on_plain(&mut self, key: u32, bytes: &[u8]) {
        let connection = &mut self.connections[key as usize];
        if connection.input.is_empty() && !connection.is_blocked {
            let (used, halt) = self.engine.consume(connection, bytes);
            connection.input.keep(&bytes[used..], &mut self.engine.buffers);
            self.halt(key, halt);
        } else {
            connection.input.keep(bytes, &mut self.engine.buffers);
            self.parse(key);
        }
    }

    /// `count` bytes were read into the connection's own input.
    pub(crate) fn on_read(&mut self, key: u32, count: usize) {
        self.connections[key as usize].active_at = self.engine.now.since_start;
        self.engine.counters().received_bytes.add(count as u64);
        self.parse(key);
    }

    /// Looks at what a connection has said, if it may and there is enough of it.
    pub(crate) fn parse(&mut self, key: u32) {
        let connection = &mut self.connections[key as usize];
        if connection.is_blocked {
            let limits = &self.engine.limits;
            if !connection.has_room(limits.output_bytes, limits.under_way) {
                return;
            }
        } else if connection.input.rest().len() < connection.input.wanted {
            return;
        }
        let lent = connection.input.lend();
        let (used, halt) = self.engine.consume(connection, lent.rest());
        connection.input.restore(lent, used, &mut self.engine.buffers);
        self.halt(key, halt);
    }

    /// Whether a connection that was blocked may have its next request looked at. If it waits for the rings only, it
    /// is looked after once they have room.
    pub(crate) fn may_go_on(&mut self, key: u32) -> bool {
        let connection = &self.connections[key as usize];
        let limits = &self.engine.limits;
        if !connection.is_blocked || !connection.has_room(limits.output_bytes, limits.under_way) {
            return false;
        }
        let is_congested = self.engine.mail.is_congested();
        if is_congested {
            self.congested.push(key);
        }
        !is_congested
    }

    fn halt(&mut self, key: u32, halt: Halt) {
        let connection = &mut self.connections[key as usize];
        connection.is_blocked = halt == Halt::Blocked;
        connection.is_closing |= halt == Halt::Close;
        if halt == Halt::Blocked && self.engine.mail.is_congested() {
            self.congested.push(key);
        }
    }

    /// Looks after the connection before the turn ends.
    pub(crate) fn list(&mut self, key: u32) {
        let connection = &mut self.connections[key as usize];
        if !connection.is_listed {
            connection.is_listed = true;
            self.listed.push(key);
        }
    }

    /// Puts replies and connections that came from other threads into their places.
    fn deliver<D: Driver<S>>(&mut self, driver: &mut D) -> io::Result<()> {
        let mut arrived = std::mem::take(&mut self.engine.arrived);
        for parcel in arrived.drain(..) {
            let ticket = parcel.ticket;
            let connection = self.connections.get_mut(ticket.connection as usize);
            let Some(connection) = connection.filter(|found| found.incarnation == ticket.incarnation) else {
                self.engine.buffers.give(parcel.bytes);
                continue;
            };
            if let Some(hole) = ticket.hole {
                connection.output.fill(hole, parcel.bytes);
            } else if let Some(everywhere) = &mut connection.everywhere {
                everywhere.replies[parcel.partition as usize] = parcel.bytes;
                everywhere.missing -= 1;
                if everywhere.missing == 0 {
                    self.engine.finish_everywhere(connection);
                }
            }
            self.list(ticket.connection);
        }
        self.engine.arrived = arrived;
        for newcomer in std::mem::take(&mut self.engine.newcomers) {
            self.open(driver, newcomer)?;
        }
        if !self.congested.is_empty() && !self.engine.mail.is_congested() {
            for key in std::mem::take(&mut self.congested) {
                // It may have been closed, and another have its number, since.
                if self.connections.contains(key as usize) {
                    self.list(key);
                }
            }
        }
        Ok(())
    }

    fn serve_listed<D: Driver<S>>(&mut self, driver: &mut D) {
        let mut listed = std::mem::take(&mut self.listed);
        for key in listed.drain(..) {
            if let Some(connection) = self.connections.get_mut(key as usize) {
                connection.is_listed = false;
                driver.serve(self, key);
            }
        }
        if self.listed.is_empty() {
            self.listed = listed;
        }
        driver.flush(self);
    }

    fn publish(&mut self) {
        let published = self.engine.mail.publish(&self.engine.shared);
        if published.wakes > 0 {
            self.engine.counters().wakes.add(published.wakes);
        }
        if published.full {
            self.engine.counters().rings_full.add(1);
        }
    }

    /// What the clock makes due.
    fn on_time(&mut self) {
        let now = self.engine.now.since_start;
        if let Some(balancer) = self.balancer.as_mut().filter(|_| self.stop_at.is_none()) {
            balancer.on_turn(now, &self.engine.shared, &self.engine.stats);
        }
        if now < self.next_second {
            return;
        }
        self.next_second = now + Duration::from_secs(1);
        self.housekeeping.get_or_insert(0);
        if let Some(idle) = self.engine.limits.idle {
            let has_idled = |connection: &Connection<S>| now.saturating_sub(connection.active_at) >= idle;
            let idle: Vec<u32> = self
                .connections
                .iter()
                .filter(|(_, connection)| has_idled(connection) && matches!(connection.link, Link::Stream(_)))
                .map(|(key, _)| key as u32)
                .collect();
            for key in idle {
                self.engine.counters().timed_out.add(1);
                self.connections[key as usize].is_closing = true;
                self.list(key);
            }
        }
    }

    /// A little of the service's own work, on the next partition that is here.
    fn housekeep(&mut self) {
        let Some(partition) = self.housekeeping else { return };
        if partition >= self.engine.stats.partitions_len() {
            self.housekeeping = None;
            return;
        }
        let (service, now) = (&self.engine.service, self.engine.now);
        let has_more = match &mut self.engine.store {
            Store::Owner(steering) => {
                steering.here(partition).is_some_and(|state| service.housekeeping(state, now))
            }
            // Under a lock one thread does it for all.
            Store::Locked(locked) => {
                self.engine.me == 0 && locked.with(partition, |state| service.housekeeping(state, now))
            }
        };
        if !has_more {
            self.housekeeping = Some(partition + 1);
        }
    }

    /// The end of a server: what has been asked is answered. True when the thread may go.
    fn drain<D: Driver<S>>(&mut self, driver: &mut D) -> bool {
        let now = self.engine.now.since_start;
        let stop_at = match self.stop_at {
            Some(stop_at) => stop_at,
            None => {
                driver.stop_listening();
                let keys: Vec<u32> = self.connections.iter().map(|(key, _)| key as u32).collect();
                for key in keys {
                    self.connections[key as usize].is_ended = true;
                    self.list(key);
                }
                let stop_at = now.saturating_add(self.engine.limits.drain);
                self.stop_at = Some(stop_at);
                stop_at
            }
        };
        if now >= stop_at {
            let keys: Vec<u32> = self.connections.iter().map(|(key, _)| key as u32).collect();
            keys.into_iter().for_each(|key| driver.close(self, key));
        }
        if self.connections.is_empty() && !self.is_drained {
            self.is_drained = true;
            self.engine.shared.drain();
        }
        self.engine.shared.has_failed() || self.engine.shared.all_drained()
    }
}
