//! A monotone radix heap over the time: bucket `b` holds the times whose highest bit that differs
//! from the last popped time is bit `b - 1`. Entries of the last popped time itself are kept in a
//! small heap by owner, since a push at that time may have any owner.

use plimsoll_units::Time;

use super::EventQueue;
use super::quad_heap::QuadHeap;

/// See the head of this file.
pub struct RadixHeap {
    last: u64,
    now: QuadHeap<u128>,
    buckets: [Vec<u128>; 64],
    /// Which of the buckets have entries.
    full: u64,
}

impl EventQueue for RadixHeap {
    fn new(_owners: u32) -> Self {
        RadixHeap { last: 0, now: EventQueue::new(0), buckets: std::array::from_fn(|_| Vec::new()), full: 0 }
    }
    #[inline]
    fn push(&mut self, at: Time, owner: u32) {
        let key = super::key(at, owner);
        match (at.as_ps() ^ self.last).checked_ilog2() {
            None => self.now.push_key(key),
            Some(bit) => {
                self.buckets[bit as usize].push(key);
                self.full |= 1 << bit;
            }
        }
    }
    #[inline]
    fn pop(&mut self) -> Option<(Time, u32)> {
        if self.now.first().is_none() && self.full != 0 {
            let bit = self.full.trailing_zeros() as usize;
            let mut keys = std::mem::take(&mut self.buckets[bit]);
            self.full &= self.full - 1;
            self.last = keys.iter().min().map_or(self.last, |&first| super::entry(first).0.as_ps());
            for &key in &keys {
                let (at, owner) = super::entry(key);
                self.push(at, owner);
            }
            keys.clear();
            self.buckets[bit] = keys;
        }
        self.now.pop_key().map(super::entry)
    }
}
