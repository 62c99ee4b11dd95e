//! [`MemoryBudget`]: the memory that documents, words and values take together, and its limit.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes taken and their limit, for all threads.
#[derive(Debug)]
pub struct MemoryBudget {
    taken: AtomicU64,
    limit: u64,
}

/// The error of a full budget: nothing has changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

impl MemoryBudget {
    /// Creates a budget of `limit` bytes; unlimited for None.
    pub fn new(limit: Option<u64>) -> MemoryBudget {
        MemoryBudget { taken: AtomicU64::new(0), limit: limit.unwrap_or(u64::MAX) }
    }

    /// Takes `now` bytes in place of the `before` that were taken. An exchange that takes no more always succeeds.
    ///
    /// # Errors
    /// If the budget has no room for them.
    pub fn exchange(&self, before: u64, now: u64) -> Result<(), Full> {
        if now <= before {
            self.give(before - now);
            return Ok(());
        }
        let more = now - before;
        let room = |taken: u64| taken.checked_add(more).filter(|&sum| sum <= self.limit);
        match self.taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room) {
            Ok(_) => Ok(()),
            Err(_) => Err(Full),
        }
    }

    /// Takes bytes without a check: the words of a document whose room is already taken.
    pub fn take(&self, bytes: u64) {
        self.taken.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns bytes to the budget.
    pub fn give(&self, bytes: u64) {
        if bytes > 0 {
            self.taken.fetch_sub(bytes, Ordering::Relaxed);
        }
    }

    /// Returns the bytes that are taken.
    pub fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// Returns the limit in bytes; None if unlimited.
    pub fn limit(&self) -> Option<u64> {
        (self.limit < u64::MAX).then_some(self.limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let budget = MemoryBudget::new(Some(100));
        assert_eq!(budget.exchange(0, 60), Ok(()));
        assert_eq!(budget.exchange(0, 41), Err(Full));
        assert_eq!((budget.taken(), budget.limit()), (60, Some(100)));
        assert_eq!(budget.exchange(60, 100), Ok(()));
        budget.take(7);
        assert_eq!(budget.exchange(100, 101), Err(Full));
        assert_eq!(budget.exchange(100, 90), Ok(()), "what shrinks may be, even beyond the limit");
        assert_eq!(budget.taken(), 97);
        assert_eq!(MemoryBudget::new(None).exchange(0, u64::MAX), Ok(()));
    }
}
