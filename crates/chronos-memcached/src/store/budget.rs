//! `-m`: bytes of item memory of all partitions together.
//!
//! A partition asks when it takes a page or a large value and reports when it gives one back, so the shared counter is
//! touched once in dozens of stores. The rules for memory:
//!
//! 1. Free memory goes to the first partition that asks; the last part of it (the reserve) only to large values.
//! 2. When none is free, a small item evicts one of its size in its partition, and a large value the oldest large value
//!    of all partitions ([`SharedLargeValues`]).
//! 3. Pages that hold more than half of `-m` give way to large values, but only the pages of a partition above its
//!    share of that half; large values that hold more than half give way to pages.
//! 4. Every partition always keeps the few pages with which it started (its floor).
//! 5. When the reserve is in use and pages hold more than half, or more is taken than the limit, partitions give memory
//!    back during their housekeeping.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use super::large_values::LargeValues;
use super::shared_large_values::{SharedEntry, SharedLargeValues};

/// The item memory that all partitions share.
#[derive(Debug)]
pub struct ItemBudget {
    limit: AtomicU64,
    taken: AtomicU64,
    /// Bytes kept for large values.
    reserve: u64,
    /// The largest number of pages that any partition has had; page numbers are below it.
    pages: AtomicUsize,
    /// The large values of all partitions.
    pub large_values: SharedLargeValues,
}

impl ItemBudget {
    /// Creates a budget of `limit` bytes, of which `reserve` (at most half) are for large values only.
    pub fn new(limit: u64, reserve: u64) -> ItemBudget {
        ItemBudget {
            limit: AtomicU64::new(limit),
            taken: AtomicU64::new(0),
            reserve: reserve.min(limit / 2),
            pages: AtomicUsize::new(0),
            large_values: SharedLargeValues::default(),
        }
    }

    /// Takes `bytes` for a page; false if there are none.
    pub fn take_page(&self, bytes: u64) -> bool {
        self.take(bytes, self.reserve)
    }

    /// Takes `bytes` for a large value, or for a floor; false if there are none.
    pub fn take_large(&self, bytes: u64) -> bool {
        self.take(bytes, 0)
    }

    fn take(&self, bytes: u64, keep: u64) -> bool {
        let limit = self.limit().saturating_sub(keep);
        let add = |taken: u64| (taken + bytes <= limit).then_some(taken + bytes);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    /// Returns `bytes` to the budget.
    pub fn give(&self, bytes: u64) {
        let before = self.taken.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes);
    }

    /// Evicts the least wanted large value of all partitions; false if there is none.
    pub fn evict_large(&self) -> bool {
        let evicted = self.large_values.evict();
        self.give(evicted.unwrap_or(0));
        evicted.is_some()
    }

    /// Checks a partition's large values in, for others to evict.
    pub fn check_in(&self, place: &SharedEntry, values: Box<LargeValues>) {
        self.large_values.check_in(place, values, |bytes| self.give(bytes));
    }

    /// Reports whether partitions should give memory back.
    pub fn is_short(&self) -> bool {
        let taken = self.taken();
        taken > self.limit() || (taken > self.limit().saturating_sub(self.reserve) && self.has_many_pages())
    }

    /// Reports whether pages hold more than half, and are to give way to large values.
    pub fn has_many_pages(&self) -> bool {
        self.taken().saturating_sub(self.large_values.bytes()) > self.limit() / 2
    }

    /// Reports whether large values hold more than half, and are to give way to pages.
    pub fn has_many_large(&self) -> bool {
        self.large_values.bytes() > self.limit() / 2
    }

    /// Returns the bytes of pages that a partition may keep although large values need them.
    pub fn share(&self) -> u64 {
        self.limit() / 2 / self.large_values.count().max(1) as u64
    }

    /// Notes that a partition has had `pages` pages.
    pub fn note_pages(&self, pages: usize) {
        self.pages.fetch_max(pages, Ordering::Relaxed);
    }

    /// Returns the most pages that a partition has had.
    pub fn pages_most(&self) -> usize {
        self.pages.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes taken.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Returns the number of bytes in all.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes the limit; memory above it is given back over time.
    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }
}
