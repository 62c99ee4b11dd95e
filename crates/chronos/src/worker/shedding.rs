//! Connections that wait for memory, and those that are closed since they hold it.

use std::cmp::Reverse;

use super::{IoDriver, Worker};
use crate::Service;
use crate::connection::{Connection, Link};
use crate::memory::{FULL_PATIENCE, LOOK_EVERY, LOOK_EVERY_FULL, Level, PATIENCE};

impl<S: Service> Worker<S> {
    /// Has those go on that waited for memory, if there is some.
    pub(super) fn ease(&mut self) {
        if self.engine.memory.has_eased() {
            self.release();
        }
    }

    fn release(&mut self) {
        let now = self.engine.now.since_start;
        for key in self.engine.memory.take_waiting() {
            // It may have been closed, and another have its number, since.
            let Some(connection) = self.connections.get_mut(key as usize) else { continue };
            if connection.holding.is_waiting {
                connection.holding.is_waiting = false;
                // If it held up anything, it was not by its own doing.
                if connection.reply_bytes() == 0 {
                    connection.holding.restart(connection.moved(), now);
                }
                self.list(key);
            }
        }
    }

    /// Closes connections that have stalled, if others wait for what they hold. If none has and nothing goes on, those
    /// that wait go on while memory is scarce; when it is full, those are closed that hold the most.
    pub(super) fn shed<D: IoDriver<S>>(&mut self, driver: &mut D) {
        let now = self.engine.now.since_start;
        if self.engine.memory.is_free() {
            self.engine.memory.stuck_since = None;
            return;
        }
        if now < self.engine.memory.next_look {
            return;
        }
        let is_full = self.engine.memory.level() == Level::Full;
        self.engine.memory.next_look = now + if is_full { LOOK_EVERY_FULL } else { LOOK_EVERY };
        self.engine.memory.grant(false);
        if !self.engine.memory.is_stuck() {
            self.engine.memory.stuck_since = None;
            return;
        }
        // Those that hold what is waited for may sleep. Where it is full, requests of other threads wait too.
        if is_full || self.engine.memory.has_waiting() {
            self.engine.memory.wake_others();
        }
        let excess = self.engine.memory.excess();
        let stalled = |connection: &Connection<S>| {
            connection.waits_for_client() && connection.holding.has_stalled(now, is_full)
        };
        if self.close_largest(driver, excess, stalled) {
            self.engine.memory.stuck_since = None;
            return;
        }
        let since = *self.engine.memory.stuck_since.get_or_insert(now);
        let stuck = now.saturating_sub(since);
        let is_over = stuck >= PATIENCE;
        if is_full && stuck >= FULL_PATIENCE {
            // Replies may still be fetched, which makes room. Requests of which the rest is not read make none.
            let may_be_fetched: usize = self
                .connections
                .iter()
                .filter(|(_, connection)| connection.reply_bytes() > 0)
                .map(|(_, connection)| connection.holding.held())
                .sum();
            let may_close = |connection: &Connection<S>| is_over || connection.reply_bytes() == 0;
            if may_be_fetched >= excess && !is_over {
                return;
            }
            if self.close_largest(driver, excess, may_close) {
                self.engine.memory.stuck_since = None;
            }
        } else if is_over {
            self.engine.memory.stuck_since = None;
            self.engine.memory.grant(true);
            self.release();
        }
    }

    /// Closes connections that hold more than their share, until `bytes` are free; true if there were any.
    fn close_largest<D: IoDriver<S>>(
        &mut self,
        driver: &mut D,
        bytes: usize,
        may_close: impl Fn(&Connection<S>) -> bool,
    ) -> bool {
        let (now, share) = (self.engine.now.since_start, self.engine.memory.share());
        let is_one = |connection: &Connection<S>| {
            let is_stream = matches!(connection.link, Link::Stream(_));
            is_stream && connection.holding.held() > share && may_close(connection)
        };
        let mut found: Vec<u32> = self
            .connections
            .iter()
            .filter(|(_, connection)| bytes > 0 && is_one(connection))
            .map(|(key, _)| key as u32)
            .collect();
        found.sort_by_cached_key(|&key| Reverse(self.connections[key as usize].holding.weight(now)));
        let mut freed = 0;
        let mut closed = 0;
        for key in found {
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
