//! Copies of a get that are sent when its value takes long: hedges, and retries of copies that were given up.

use std::cmp::Reverse;

use plimsoll_units::Time;

use super::{Generator, Operation};
use crate::protocol::RequestKind;
use crate::setup::Shape;

/// A copy that is sent unless the value arrives before. Copies are ordered by that time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) struct LateCopy {
    at: Time,
    operation: usize,
    /// The client and the number of the operation; another operation may have its place by then.
    client: usize,
    number: u64,
    /// When the operation was due, on which its keys depend.
    due: Time,
}

impl Generator {
    /// Sends a get of several copies to all their servers, or to the first, and the others later.
    pub(super) fn send_copies(&mut self, operation: usize, due: Time) {
        match self.setup.later {
            None => {
                let count = self.copies();
                (0..count).for_each(|copy| self.send_copy(operation, copy, due, due));
            }
            Some(later) => {
                self.send_copy(operation, 0, due, due);
                self.expect(operation, due + later.after, due);
            }
        }
    }

    /// Returns when the next copy may be sent.
    pub(super) fn next_copy(&self) -> Time {
        self.late.peek().map_or(Time::MAX, |Reverse(copy)| copy.at)
    }

    /// Sends the copies that are due at `now`.
    pub(super) fn send_late_copies(&mut self, now: Time) {
        while self.next_copy() <= now {
            let Some(Reverse(LateCopy { at, operation, client, number, due })) = self.late.pop() else {
                break;
            };
            let is_waited_for =
                |state: &&Operation| (state.client, state.number, state.counted) == (client, number, false);
            let Some(state) = self.operations.get(operation).filter(is_waited_for) else { continue };
            let copy = state.copies;
            self.send_copy(operation, copy, at, due);
            if let Some(later) = self.setup.later.filter(|_| copy + 1 < self.copies()) {
                self.expect(operation, at + later.after, due);
            }
        }
    }

    fn copies(&self) -> u32 {
        if let Shape::Replicas(copies) = self.setup.shape { copies } else { 1 }
    }

    fn expect(&mut self, operation: usize, at: Time, due: Time) {
        if self.copies() > 1 {
            let Operation { client, number, .. } = self.operations[operation];
            self.late.push(Reverse(LateCopy { at, operation, client, number, due }));
        }
    }

    /// Sends copy `copy`, from 0, of an operation that was due at `due`; the copy is due at `at`.
    fn send_copy(&mut self, operation: usize, copy: u32, at: Time, due: Time) {
        let Operation { client, number, .. } = self.operations[operation];
        let keys = self.setup.keys(RequestKind::Get, self.clients[client].id, number, 0, due);
        let server = self.setup.homes(keys[0]).nth(copy as usize);
        let server = server.expect("a get has at most as many copies as its key has homes");
        self.operations[operation].copies = copy + 1;
        self.send(operation, server, RequestKind::Get, keys, 0, at);
    }

    /// Returns whether the client has given up the copy with that place, from 1, of an operation.
    pub(super) fn is_given_up(&self, operation: usize, copy: u32) -> bool {
        self.setup.later.is_some_and(|later| later.gives_up) && copy < self.operations[operation].copies
    }
}
