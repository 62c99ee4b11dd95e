//! Connections that wait for memory, and the closing of connections that hold it.

use std::cmp::Reverse;
use std::time::Duration;

use super::{IoDriver, Worker};
use crate::Service;
use crate::connection::{Connection, ConnectionOrigin};
use crate::memory::{FULL_PATIENCE, LOOK_EVERY, LOOK_EVERY_FULL, MemoryLevel, PATIENCE};

impl<S: Service> Worker<S> {
    /// Lets connections that waited for memory resume, if there is some.
    pub(super) fn ease(&mut self) {
        if self.engine.memory.has_eased() {
            self.release();
        }
    }

    fn release(&mut self) {
        let now = self.engine.now.since_start;
        for key in self.engine.memory.take_waiting() {
            // The connection may have been closed, and its number given to another, since.
            let Some(connection) = self.connections.get_mut(key as usize) else { continue };
            if connection.holding.is_waiting {
                connection.holding.release(now);
                // If it held up others, that was not its own doing.
                if connection.reply_bytes() == 0 {
                    connection.holding.restart(connection.moved(), now);
                }
                self.list(key);
            }
        }
    }

    /// Closes connections that have stalled, if others wait for the memory that they hold. If none has stalled and
    /// nothing moves, waiting connections resume while memory is scarce; when it is full, the oldest requests of all
    /// threads are closed.
    pub(super) fn shed<D: IoDriver<S>>(&mut self, driver: &mut D) {
        let now = self.engine.now.since_start;
        if self.engine.memory.is_free() {
            self.engine.memory.stuck_since = None;
            return;
        }
        if now < self.engine.memory.next_look {
            return;
        }
        let is_full = self.engine.memory.level() == MemoryLevel::Full;
        self.engine.memory.next_look = now + if is_full { LOOK_EVERY_FULL } else { LOOK_EVERY };
        self.engine.memory.grant(false);
        if !self.engine.memory.is_stuck() {
            self.engine.memory.stuck_since = None;
            return;
        }
        // Threads whose connections hold the memory may sleep. Where it is full, requests of other threads wait too.
        if is_full || self.engine.memory.has_waiting() {
            self.engine.memory.wake_others();
        }
        let excess = self.engine.memory.excess();
        let mut stalled = self
            .above_share(|connection| connection.waits_for_client() && connection.holding.has_stalled(now));
        stalled.sort_by_cached_key(|&key| Reverse(self.connections[key as usize].holding.weight(now)));
        if self.close_some(driver, excess, &stalled) {
            self.engine.memory.stuck_since = None;
            return;
        }
        let since = *self.engine.memory.stuck_since.get_or_insert(now);
        if is_full {
            self.close_oldest(driver, excess, since);
        } else if now.saturating_sub(since) >= PATIENCE {
            self.engine.memory.stuck_since = None;
            self.engine.memory.grant(true);
            self.release();
        }
    }

    /// While memory is full and nothing has moved since `stuck_since`, closes requests until `bytes` are free, the
    /// oldest first, as long as no other thread has an older one.
    fn close_oldest<D: IoDriver<S>>(&mut self, driver: &mut D, bytes: usize, stuck_since: Duration) {
        let (now, me) = (self.engine.now.since_start, self.engine.me);
        let stuck = now.saturating_sub(stuck_since);
        let is_over = stuck >= PATIENCE;
        let began = |key: &u32| self.connections[*key as usize].holding.request_since();
        let mut found = self.above_share(|_| true);
        found.sort_by_key(|key| (began(key), self.connections[*key as usize].incarnation));
        self.engine.memory.tell_oldest(me, found.first().map(began), now);
        let latest = self.engine.memory.may_close_since(me, stuck_since, now);
        found.truncate(found.partition_point(|key| began(key) <= latest));
        // Replies may still be fetched, which makes room. Requests of which the rest is not read make none.
        if !is_over {
            let has_replies = |connection: &Connection<S>| connection.reply_bytes() > 0;
            let replies = self.connections.iter().filter(|(_, connection)| has_replies(connection));
            let may_be_fetched: usize = replies.map(|(_, connection)| connection.holding.held()).sum();
            let first = found.iter().position(|key| has_replies(&self.connections[*key as usize]));
            found.truncate(if may_be_fetched >= bytes { 0 } else { first.unwrap_or(found.len()) });
        }
        // If memory is still full then, another look closes the request that is the oldest at that time.
        if stuck >= FULL_PATIENCE
            && self.close_some(driver, bytes, &found)
            && self.engine.memory.level() != MemoryLevel::Full
        {
            self.engine.memory.stuck_since = None;
        }
    }

    /// Returns the streams that hold more than their share, and that `may_close` allows to close.
    fn above_share(&self, may_close: impl Fn(&Connection<S>) -> bool) -> Vec<u32> {
        let share = self.engine.memory.share();
        let is_one = |connection: &Connection<S>| {
            let is_stream = matches!(connection.link, ConnectionOrigin::Stream(_));
            is_stream && connection.holding.held() > share && may_close(connection)
        };
        let found = self.connections.iter().filter(|(_, connection)| is_one(connection));
        found.map(|(key, _)| key as u32).collect()
    }

    /// Closes the first of `connections` until `bytes` are free; true if there were any.
    fn close_some<D: IoDriver<S>>(&mut self, driver: &mut D, bytes: usize, connections: &[u32]) -> bool {
        let mut freed = 0;
        let mut closed = 0;
        for &key in connections {
            if freed >= bytes {
                break;
            }
            freed += self.connections[key as usize].holding.held();
            closed += 1;
            driver.close(self, key);
        }
        self.engine.counters().shed.add(closed);
        self.engine.memory.tell();
        closed > 0
    }
}
