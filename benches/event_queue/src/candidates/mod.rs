//! The queues that were tried, one a file, behind one trait.

use plimsoll_units::Time;

pub mod binary_heap;
pub mod delay_fifos;
pub mod fixed_calendar;
pub mod hierarchical_wheel;
pub mod linked_wheel;
pub mod quad_heap;
pub mod radix_heap;
pub mod winner_tree;

use crate::chosen;

/// Pops in the order of `(time, owner)`; at most one entry an owner; a push is never before the
/// last pop.
pub trait EventQueue {
    /// An empty queue for owners below `owners`. Most ignore the number.
    fn new(owners: u32) -> Self;
    /// Adds an entry.
    fn push(&mut self, at: Time, owner: u32);
    /// Takes the first entry.
    fn pop(&mut self) -> Option<(Time, u32)>;
    /// Pops, unless the queue is empty, and pushes `(next(owner), owner)` if that is a time. A
    /// structure that can overwrite its first entry in place does so.
    fn pop_and_push_next(&mut self, next: impl FnOnce(Time, u32) -> Option<Time>) -> Option<(Time, u32)> {
        let (at, owner) = self.pop()?;
        if let Some(next) = next(at, owner) {
            self.push(next, owner);
        }
        Some((at, owner))
    }
}

impl EventQueue for chosen::Calendar {
    fn new(_owners: u32) -> Self {
        chosen::Calendar::new()
    }
    #[inline]
    fn push(&mut self, at: Time, owner: u32) {
        self.push(at, owner);
    }
    #[inline]
    fn pop(&mut self) -> Option<(Time, u32)> {
        self.pop_until(Time::MAX)
    }
}

/// `(time, owner)` as one integer of the same order.
#[inline]
pub(crate) fn key(at: Time, owner: u32) -> u128 {
    u128::from(at.as_ps()) << u32::BITS | u128::from(owner)
}

/// The inverse of [`key`].
#[inline]
pub(crate) fn entry(key: u128) -> (Time, u32) {
    (Time::from_ps((key >> u32::BITS) as u64), key as u32)
}

impl EventQueue for linked_wheel::EventQueue {
    fn new(_owners: u32) -> Self {
        linked_wheel::EventQueue::new()
    }
    #[inline]
    fn push(&mut self, at: Time, owner: u32) {
        self.push(at, owner);
    }
    #[inline]
    fn pop(&mut self) -> Option<(Time, u32)> {
        self.pop()
    }
}
