//! 4-ary heaps, with two forms of key: one 128-bit integer, or a pair compared field by field.

use plimsoll_units::Time;

use super::EventQueue;

/// What a heap sorts by.
pub trait Key: Copy + Ord {
    /// Of an entry.
    fn of(at: Time, owner: u32) -> Self;
    /// Back to the entry.
    fn entry(self) -> (Time, u32);
}

impl Key for u128 {
    #[inline]
    fn of(at: Time, owner: u32) -> u128 {
        super::key(at, owner)
    }
    #[inline]
    fn entry(self) -> (Time, u32) {
        super::entry(self)
    }
}

impl Key for (u64, u32) {
    #[inline]
    fn of(at: Time, owner: u32) -> (u64, u32) {
        (at.as_ps(), owner)
    }
    #[inline]
    fn entry(self) -> (Time, u32) {
        (Time::from_ps(self.0), self.1)
    }
}

/// A 4-ary min-heap in a vector.
pub struct QuadHeap<K>(Vec<K>);

impl<K: Key> QuadHeap<K> {
    /// Puts `key` where the first entry was and lets it sink.
    #[inline]
    fn sink(&mut self, key: K) {
        let keys = &mut self.0[..];
        let mut hole = 0;
        loop {
            let child = hole * 4 + 1;
            let least = if let Some(four) = keys.get(child..child + 4) {
                let left = if four[1] < four[0] { 1 } else { 0 };
                let right = if four[3] < four[2] { 3 } else { 2 };
                child + if four[right] < four[left] { right } else { left }
            } else if let Some(least) = (child..keys.len()).min_by_key(|&index| keys[index]) {
                least
            } else {
                break;
            };
            if key <= keys[least] {
                break;
            }
            keys[hole] = keys[least];
            hole = least;
        }
        keys[hole] = key;
    }

    /// The first key.
    #[inline]
    pub fn first(&self) -> Option<K> {
        self.0.first().copied()
    }
    /// Adds a key.
    #[inline]
    pub fn push_key(&mut self, key: K) {
        let mut hole = self.0.len();
        self.0.push(key);
        while hole > 0 {
            let parent = (hole - 1) / 4;
            if self.0[parent] <= key {
                break;
            }
            self.0[hole] = self.0[parent];
            hole = parent;
        }
        self.0[hole] = key;
    }
    /// Takes the first key.
    #[inline]
    pub fn pop_key(&mut self) -> Option<K> {
        let last = self.0.pop()?;
        let Some(&first) = self.0.first() else { return Some(last) };
        self.sink(last);
        Some(first)
    }
}

impl<K: Key> EventQueue for QuadHeap<K> {
    fn new(_owners: u32) -> Self {
        QuadHeap(Vec::new())
    }
    #[inline]
    fn push(&mut self, at: Time, owner: u32) {
        self.push_key(K::of(at, owner));
    }
    #[inline]
    fn pop(&mut self) -> Option<(Time, u32)> {
        self.pop_key().map(K::entry)
    }
    #[inline]
    fn pop_and_push_next(&mut self, next: impl FnOnce(Time, u32) -> Option<Time>) -> Option<(Time, u32)> {
        let (at, owner) = self.first()?.entry();
        match next(at, owner) {
            Some(next) => self.sink(K::of(next, owner)),
            None => {
                self.pop_key();
            }
        }
        Some((at, owner))
    }
}
