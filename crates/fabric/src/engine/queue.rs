//! [`EventQueue`]: what happens next.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_units::Time;

use super::Owner;

/// Events in the order of time, then owner.
#[derive(Debug, Default)]
pub struct EventQueue {
    heap: BinaryHeap<Reverse<(Time, Owner)>>,
}

impl EventQueue {
    /// Nothing to do.
    pub fn new() -> EventQueue {
        EventQueue::default()
    }

    /// `owner` acts at `at`, which is not before the event popped last.
    #[inline]
    pub fn push(&mut self, at: Time, owner: Owner) {
        self.heap.push(Reverse((at, owner)));
    }

    /// Takes the next event.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, Owner)> {
        self.heap.pop().map(|Reverse(event)| event)
    }
}
