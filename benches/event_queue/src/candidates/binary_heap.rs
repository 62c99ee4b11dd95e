//! The binary heap of the standard library: the yardstick.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use plimsoll_units::Time;

use super::EventQueue;

/// Entries in a [`BinaryHeap`], reversed.
pub struct StdHeap(BinaryHeap<Reverse<(Time, u32)>>);

impl EventQueue for StdHeap {
    fn new(_owners: u32) -> Self {
        StdHeap(BinaryHeap::new())
    }
    #[inline]
    fn push(&mut self, at: Time, owner: u32) {
        self.0.push(Reverse((at, owner)));
    }
    #[inline]
    fn pop(&mut self) -> Option<(Time, u32)> {
        self.0.pop().map(|Reverse(entry)| entry)
    }
    #[inline]
    fn pop_and_push_next(&mut self, next: impl FnOnce(Time, u32) -> Option<Time>) -> Option<(Time, u32)> {
        let mut first = self.0.peek_mut()?;
        let Reverse((at, owner)) = *first;
        match next(at, owner) {
            Some(next) => *first = Reverse((next, owner)),
            None => {
                PeekMut::pop(first);
            }
        }
        Some((at, owner))
    }
}
