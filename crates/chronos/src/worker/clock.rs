//! Work that is due by the clock: the balancer, idle connections, sessions' deadlines, and the service's own work.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::{IoDriver, Worker};
use crate::connection::{Connection, ConnectionOrigin};
use crate::memory;
use crate::{Now, Service};

/// The time at which the server started.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    start: Instant,
    unix_start: Duration,
}

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
    /// Does the work that is due.
    pub(super) fn on_time<D: IoDriver<S>>(&mut self, driver: &mut D) {
        let now = self.engine.now.since_start;
        if let Some(balancer) = self.balancer.as_mut().filter(|_| self.stop_at.is_none()) {
            balancer.on_turn(now, &self.engine.shared, &self.engine.stats);
        }
        if now < self.next_second {
            return;
        }
        self.next_second = now + Duration::from_secs(1);
        self.housekeeping.get_or_insert(0);
        if self.engine.me == 0 && self.engine.memory.has_shrunk() {
            memory::give_back();
        }
        if S::TICKS {
            let keys: Vec<u32> = self.connections.iter().map(|(key, _)| key as u32).collect();
            keys.into_iter().for_each(|key| self.tick_session(driver, key));
        }
        if let Some(idle) = self.engine.limits.idle {
            let has_idled = |connection: &Connection<S>| now.saturating_sub(connection.active_at) >= idle;
            let idle: Vec<u32> = self
                .connections
                .iter()
                .filter(|(_, connection)| {
                    has_idled(connection) && matches!(connection.link, ConnectionOrigin::Stream(_))
                })
                .map(|(key, _)| key as u32)
                .collect();
            idle.into_iter().for_each(|key| self.on_idle(driver, key));
        }
    }

    /// Polls the service's deadlines of a connection. One that the service ends has a second for its last bytes.
    fn tick_session<D: IoDriver<S>>(&mut self, driver: &mut D, key: u32) {
        let connection = &mut self.connections[key as usize];
        // While the server has no memory to read from a client, the client misses no deadline.
        if matches!(connection.link, ConnectionOrigin::Datagram { .. }) || connection.holding.is_waiting {
            return;
        }
        let mut reply = self.engine.buffers.take();
        let is_kept = self.engine.service.tick(&mut connection.session, self.engine.now, &mut reply);
        if !is_kept && connection.is_closing {
            driver.close(self, key);
        } else {
            if !is_kept {
                connection.is_closing = true;
                self.engine.counters().timed_out.add(1);
            } else if !connection.is_closing && !reply.is_empty() {
                connection.output.prepare(&mut self.engine.buffers);
                connection.output.tail().extend_from_slice(&reply);
            }
            if !is_kept || !reply.is_empty() {
                self.list(key);
            }
        }
        self.engine.buffers.give(reply);
    }

    /// Handles a connection that has been silent for too long: it may fetch its replies as long as it does fetch some.
    fn on_idle<D: IoDriver<S>>(&mut self, driver: &mut D, key: u32) {
        let now = self.engine.now.since_start;
        let connection = &mut self.connections[key as usize];
        connection.active_at = now;
        let unsent = connection.reply_bytes();
        match connection.unsent_when_idle.replace(unsent) {
            None => {
                connection.is_closing = true;
                self.engine.counters().timed_out.add(1);
                self.list(key);
            }
            Some(before) if before == unsent => driver.close(self, key),
            Some(_) => {}
        }
    }

    /// Does a little of the service's own work, on the next partition that is here.
    pub(super) fn housekeep(&mut self) {
        let Some(partition) = self.housekeeping else { return };
        if partition >= self.engine.stats.partitions_len() {
            self.housekeeping = None;
            return;
        }
        let (service, now) = (&self.engine.service, self.engine.now);
        let state = self.engine.partitions.here(partition);
        let has_more = state.is_some_and(|state| service.housekeeping(state, now));
        if !has_more {
            self.housekeeping = Some(partition + 1);
        }
    }
}
