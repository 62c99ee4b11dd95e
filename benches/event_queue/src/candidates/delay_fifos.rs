//! One FIFO for each delay. Time only grows, so entries that were pushed with the same delay are in
//! order. The delays in use find one of 16 FIFOs by hash; what does not fit at the end of its FIFO
//! goes to a heap.

use std::collections::VecDeque;

use plimsoll_units::Time;

use super::EventQueue;
use super::quad_heap::QuadHeap;

const FIFOS: usize = 16;
const EMPTY: u128 = u128::MAX;

/// See the head of this file.
pub struct DelayFifos {
    now: u64,
    /// The first entry of each FIFO, and of the heap.
    firsts: [u128; FIFOS + 1],
    fifos: [VecDeque<u128>; FIFOS],
    heap: QuadHeap<u128>,
}

impl EventQueue for DelayFifos {
    fn new(_owners: u32) -> Self {
        DelayFifos {
            now: 0,
            firsts: [EMPTY; FIFOS + 1],
            fifos: std::array::from_fn(|_| VecDeque::new()),
            heap: EventQueue::new(0),
        }
    }
    #[inline]
    fn push(&mut self, at: Time, owner: u32) {
        let key = super::key(at, owner);
        let delay = at.as_ps() - self.now;
        let line = (delay.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 60) as usize;
        let fifo = &mut self.fifos[line];
        if self.firsts[line] == EMPTY {
            self.firsts[line] = key;
        } else if key > fifo.back().copied().unwrap_or(self.firsts[line]) {
            fifo.push_back(key);
        } else {
            self.heap.push_key(key);
            self.firsts[FIFOS] = self.firsts[FIFOS].min(key);
        }
    }
    #[inline]
    fn pop(&mut self) -> Option<(Time, u32)> {
        let mut line = 0;
        let mut first = self.firsts[0];
        for (index, &key) in self.firsts.iter().enumerate().skip(1) {
            if key < first {
                (line, first) = (index, key);
            }
        }
        if first == EMPTY {
            return None;
        }
        self.firsts[line] = if line < FIFOS {
            self.fifos[line].pop_front().unwrap_or(EMPTY)
        } else {
            self.heap.pop_key();
            self.heap.first().unwrap_or(EMPTY)
        };
        let (at, owner) = super::entry(first);
        self.now = at.as_ps();
        Some((at, owner))
    }
}
