//! A bucketed wheel without adaptation: 4,096 vectors of 2^15 ps each (134 us in all), a vector is
//! sorted when it comes up, the far future is in a heap.

use plimsoll_units::Time;

use super::EventQueue;
use super::quad_heap::QuadHeap;

const SHIFT: u32 = 15;
const BUCKETS: u64 = 4096;

/// See the head of this file.
pub struct FixedCalendar {
    cursor: u64,
    /// The bucket being served, the first entry last.
    front: Vec<u128>,
    buckets: Vec<Vec<u128>>,
    full: [u64; BUCKETS as usize / 64],
    in_buckets: usize,
    far: QuadHeap<u128>,
}

#[inline]
fn bucket(key: u128) -> u64 {
    super::entry(key).0.as_ps() >> SHIFT
}

impl FixedCalendar {
    fn next_full(&self) -> u64 {
        if self.in_buckets == 0 {
            return u64::MAX;
        }
        let start = self.cursor + 1;
        let mut word = start % BUCKETS / 64;
        let mut bits = self.full[word as usize] & (u64::MAX << (start % 64));
        while bits == 0 {
            word = (word + 1) % (BUCKETS / 64);
            bits = self.full[word as usize];
        }
        let slot = word * 64 + u64::from(bits.trailing_zeros());
        start + slot.wrapping_sub(start) % BUCKETS
    }

    fn refill(&mut self) {
        let next = self.next_full().min(self.far.first().map_or(u64::MAX, bucket));
        if next == u64::MAX {
            return;
        }
        self.cursor = next;
        let slot = (next % BUCKETS) as usize;
        std::mem::swap(&mut self.front, &mut self.buckets[slot]);
        self.full[slot / 64] &= !(1 << (slot % 64));
        self.in_buckets -= self.front.len();
        while let Some(key) = self.far.first().filter(|&key| bucket(key) <= next) {
            self.far.pop_key();
            self.front.push(key);
        }
        self.front.sort_unstable_by(|a, b| b.cmp(a));
    }
}

impl EventQueue for FixedCalendar {
    fn new(_owners: u32) -> Self {
        FixedCalendar {
            cursor: 0,
            front: Vec::new(),
            buckets: vec![Vec::new(); BUCKETS as usize],
            full: [0; BUCKETS as usize / 64],
            in_buckets: 0,
            far: EventQueue::new(0),
        }
    }
    #[inline]
    fn push(&mut self, at: Time, owner: u32) {
        let key = super::key(at, owner);
        let bucket = bucket(key);
        if bucket <= self.cursor {
            let place = self.front.iter().rposition(|&other| other > key).map_or(0, |before| before + 1);
            self.front.insert(place, key);
        } else if bucket - self.cursor < BUCKETS {
            let slot = (bucket % BUCKETS) as usize;
            self.buckets[slot].push(key);
            self.full[slot / 64] |= 1 << (slot % 64);
            self.in_buckets += 1;
        } else {
            self.far.push_key(key);
        }
    }
    #[inline]
    fn pop(&mut self) -> Option<(Time, u32)> {
        if self.front.is_empty() {
            self.refill();
        }
        self.front.pop().map(super::entry)
    }
}
