//! `-m`: bytes of item memory that all partitions have together.
//!
//! A partition asks when it takes a page or a large allocation and tells when it gives one back, so the shared counter
//! is touched once in dozens of stores. Every partition owns a few pages from the start (its floor), and a part of the
//! budget is kept for large items; when that is used up, partitions give pages back while they do their housekeeping.

use std::sync::atomic::{AtomicU64, Ordering};

/// The shared counter.
#[derive(Debug)]
pub struct Budget {
    limit: AtomicU64,
    taken: AtomicU64,
    /// Kept for large items.
    reserve: u64,
}

impl Budget {
    /// A budget of `limit` bytes, of which `reserve` are for large items only.
    pub fn new(limit: u64, reserve: u64) -> Budget {
        Budget { limit: AtomicU64::new(limit), taken: AtomicU64::new(0), reserve: reserve.min(limit / 4) }
    }

    /// Takes `bytes` for a page; false if there are none.
    pub fn take_page(&self, bytes: u64) -> bool {
        self.take(bytes, self.reserve)
    }

    /// Takes `bytes` for a large item; false if there are none.
    pub fn take_large(&self, bytes: u64) -> bool {
        self.take(bytes, 0)
    }

    fn take(&self, bytes: u64, keep: u64) -> bool {
        let limit = self.limit.load(Ordering::Relaxed).saturating_sub(keep);
        let add = |taken: u64| (taken + bytes <= limit).then_some(taken + bytes);
        self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok()
    }

    /// Gives `bytes` back.
    pub fn give(&self, bytes: u64) {
        let before = self.taken.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(before >= bytes);
    }

    /// True if partitions should give pages back: the reserve is in use, or the limit was lowered.
    pub fn wanted(&self) -> bool {
        self.taken() > self.limit().saturating_sub(self.reserve)
    }

    /// Bytes taken.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Bytes there are.
    pub fn limit(&self) -> u64 {
        self.limit.load(Ordering::Relaxed)
    }

    /// Changes the limit; what is above it is given back over time.
    pub fn set_limit(&self, limit: u64) {
        self.limit.store(limit, Ordering::Relaxed);
    }
}
