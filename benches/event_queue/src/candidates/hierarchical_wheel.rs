//! A hierarchical timing wheel: 64 slots a level, each level 64 times coarser, the finest slot
//! 2^13 ps. An entry falls one level each time its slot comes up, and is sorted at the last.

use plimsoll_units::Time;

use super::EventQueue;
use super::quad_heap::QuadHeap;

const SHIFT: u32 = 13;
const LEVELS: usize = 9;

/// See the head of this file.
pub struct HierarchicalWheel {
    /// In finest slots.
    now: u64,
    front: QuadHeap<u128>,
    levels: [Level; LEVELS],
}

struct Level {
    full: u64,
    slots: [Vec<u128>; 64],
}

impl HierarchicalWheel {
    #[inline]
    fn insert(&mut self, key: u128) {
        let tick = super::entry(key).0.as_ps() >> SHIFT;
        if tick <= self.now {
            return self.front.push_key(key);
        }
        let level = ((tick ^ self.now).ilog2() / 6) as usize;
        let slot = (tick >> (6 * level)) as usize & 63;
        self.levels[level].slots[slot].push(key);
        self.levels[level].full |= 1 << slot;
    }

    fn refill(&mut self) {
        while self.front.first().is_none() {
            // The finest level with entries has the first slot: a level holds only what shares all
            // the higher digits with `now`.
            let Some(level) = (0..LEVELS).find(|&level| self.levels[level].full != 0) else { return };
            let slot = self.levels[level].full.trailing_zeros();
            self.levels[level].full &= self.levels[level].full - 1;
            let digits = 6 * level as u32;
            self.now = (self.now >> digits & !63 | u64::from(slot)) << digits;
            let mut keys = std::mem::take(&mut self.levels[level].slots[slot as usize]);
            for &key in &keys {
                self.insert(key);
            }
            keys.clear();
            self.levels[level].slots[slot as usize] = keys;
        }
    }
}

impl EventQueue for HierarchicalWheel {
    fn new(_owners: u32) -> Self {
        HierarchicalWheel {
            now: 0,
            front: EventQueue::new(0),
            levels: std::array::from_fn(|_| Level { full: 0, slots: std::array::from_fn(|_| Vec::new()) }),
        }
    }
    #[inline]
    fn push(&mut self, at: Time, owner: u32) {
        self.insert(super::key(at, owner));
    }
    #[inline]
    fn pop(&mut self) -> Option<(Time, u32)> {
        if self.front.first().is_none() {
            self.refill();
        }
        self.front.pop_key().map(super::entry)
    }
}
