//! [`Worker`]: one thread: its connections, and the turns that it takes.
//!
//! ```text
//! a turn:  driver (read, parse, run, write) ─> messages in ─> replies into their places ─> write ─> messages out
//! ```

mod clock;
mod connections;
mod shedding;
mod wakefulness;

use std::io;
use std::time::Duration;

use slab::Slab;

use crate::balancer::Balancer;
use crate::connection::Connection;
use crate::engine::RequestEngine;
use crate::{Poll, Service};

pub(crate) use clock::Clock;
use wakefulness::Wakefulness;

/// Moves bytes between a worker's connections and the kernel.
pub(crate) trait IoDriver<S: Service> {
    /// Handles the kernel's events, after waiting for them no longer than `wait`. False if there were none.
    fn turn(&mut self, worker: &mut Worker<S>, wait: Duration) -> io::Result<bool>;
    /// Begins to read from a connection.
    fn open(&mut self, worker: &mut Worker<S>, key: u32) -> io::Result<()>;
    /// Sends, reads or closes, as the connection needs now.
    fn serve(&mut self, worker: &mut Worker<S>, key: u32);
    /// Closes a connection, even with bytes still to send.
    fn close(&mut self, worker: &mut Worker<S>, key: u32);
    /// Sends the bytes that connections left for the end of the turn.
    fn flush(&mut self, worker: &mut Worker<S>);
    /// Reports whether it has more to do without waiting.
    fn is_busy(&self) -> bool;
    /// Reports whether the replies to datagrams have left.
    fn is_sent(&mut self) -> bool;
    /// Takes no more connections and datagrams.
    fn stop_listening(&mut self);
}

/// One thread of a server.
pub(crate) struct Worker<S: Service> {
    pub(crate) engine: RequestEngine<S>,
    pub(crate) connections: Slab<Connection<S>>,
    /// The number of datagrams among them.
    pub(crate) datagrams: usize,
    poll: Poll,
    clock: Clock,
    balancer: Option<Balancer>,
    /// Connections to serve in this turn.
    listed: Vec<u32>,
    /// Connections that wait for room in the rings.
    congested: Vec<u32>,
    incarnations: u32,
    /// The thread that the next connection is dealt to.
    next_thread: u32,
    next_second: Duration,
    /// The partition whose housekeeping is next, if any.
    housekeeping: Option<u32>,
    turns: u64,
    stop_at: Option<Duration>,
    is_drained: bool,
}

/// Turns between two rounds of housekeeping of a thread that is never idle.
const HOUSEKEEPING_TURNS: u64 = 256;
/// Turns without anything to do after which a spinning thread lets others run (where processors are shared).
const YIELD_TURNS: u32 = 64;

impl<S: Service> Worker<S> {
    pub(crate) fn new(
        engine: RequestEngine<S>,
        poll: Poll,
        clock: Clock,
        balancer: Option<Balancer>,
    ) -> Worker<S> {
        Worker {
            engine,
            connections: Slab::new(),
            datagrams: 0,
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
    pub(crate) fn run<D: IoDriver<S>>(&mut self, driver: &mut D) -> io::Result<()> {
        let mut wakefulness = Wakefulness::default();
        loop {
            let happened = self.wait(driver, &wakefulness)?;
            let received = self.engine.receive();
            self.deliver(driver)?;
            self.publish();
            self.serve_listed(driver);
            self.publish();
            self.shed(driver);
            self.turns += 1;
            let now = self.engine.now.since_start;
            if happened || received {
                wakefulness.on_event(now);
            } else {
                let idle_turns = wakefulness.on_idle_turn(now);
                self.housekeep();
                // A thread that blocks is here only because it waits for another thread, or is about to sleep.
                if self.poll == Poll::Block || idle_turns % YIELD_TURNS == 0 {
                    std::thread::yield_now();
                }
            }
            if self.turns.is_multiple_of(HOUSEKEEPING_TURNS) {
                self.housekeep();
            }
            self.on_time(driver);
            if self.engine.shared.is_stopping() && self.drain(driver) {
                return Ok(());
            }
        }
    }

    /// Runs the driver's part of a turn, asleep if there is nothing else to do.
    fn wait<D: IoDriver<S>>(&mut self, driver: &mut D, wakefulness: &Wakefulness) -> io::Result<bool> {
        let is_sending_last = self.stop_at.is_some() && !self.is_drained && !driver.is_sent();
        let is_busy = driver.is_busy()
            || is_sending_last
            || !self.listed.is_empty()
            || !self.congested.is_empty()
            || self.engine.memory.has_eased()
            || self.housekeeping.is_some()
            || !self.engine.mail.is_published();
        let stays_awake = self.poll == Poll::Spin || wakefulness.stays_awake(self.engine.now.since_start);
        if stays_awake || is_busy {
            return driver.turn(self, Duration::ZERO);
        }
        let (shared, me) = (self.engine.shared.clone(), self.engine.me);
        self.engine.memory.tell();
        shared.fall_asleep(me);
        // A stop that was already seen must not keep the thread awake.
        let is_new_stop = shared.is_stopping() && self.stop_at.is_none();
        let is_last = shared.has_failed() || shared.all_drained();
        self.engine.memory.turn();
        let may_sleep = self.engine.is_quiet() && !is_new_stop && !is_last && !self.engine.memory.has_eased();
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
        if self.engine.memory.has_waiting() {
            next = next.min(self.engine.memory.next_look);
        }
        if let Some(stop_at) = self.stop_at.filter(|_| !self.connections.is_empty()) {
            next = next.min(stop_at);
        }
        let now = self.clock.now().since_start;
        next.saturating_sub(now)
    }

    /// Reads the clock, for all work until it is read again.
    pub(crate) fn tick(&mut self) {
        self.engine.now = self.clock.now();
        self.engine.memory.turn();
    }

    /// Puts replies and connections that came from other threads into their places.
    fn deliver<D: IoDriver<S>>(&mut self, driver: &mut D) -> io::Result<()> {
        let mut arrived = std::mem::take(&mut self.engine.arrived);
        for parcel in arrived.drain(..) {
            let ticket = parcel.ticket;
            // The reply counts with its connection from now on.
            self.engine.memory.hold(-(parcel.bytes.capacity() as isize));
            let connection = self.connections.get_mut(ticket.connection as usize);
            let Some(connection) = connection.filter(|found| found.incarnation == ticket.incarnation) else {
                self.engine.buffers.give(parcel.bytes);
                continue;
            };
            if let Some(hole) = ticket.hole {
                connection.replies.note(parcel.bytes.len());
                connection.output.fill(hole, parcel.bytes, &mut self.engine.buffers);
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
        self.ease();
        if !self.congested.is_empty() && !self.engine.mail.is_congested() {
            for key in std::mem::take(&mut self.congested) {
                // The connection may have been closed, and its number given to another, since.
                if self.connections.contains(key as usize) {
                    self.list(key);
                }
            }
        }
        Ok(())
    }

    fn serve_listed<D: IoDriver<S>>(&mut self, driver: &mut D) {
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

    /// Ends a server: the requests that arrived are answered. True when the thread may end.
    fn drain<D: IoDriver<S>>(&mut self, driver: &mut D) -> bool {
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
        let is_late = now >= stop_at;
        if is_late {
            let keys: Vec<u32> = self.connections.iter().map(|(key, _)| key as u32).collect();
            keys.into_iter().for_each(|key| driver.close(self, key));
        }
        if self.connections.is_empty() && !self.is_drained && (is_late || driver.is_sent()) {
            self.is_drained = true;
            self.engine.shared.drain();
        }
        self.engine.shared.has_failed() || self.engine.shared.all_drained()
    }
}
