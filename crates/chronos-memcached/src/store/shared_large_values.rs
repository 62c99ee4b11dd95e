//! The large values of all partitions: memory for a large value is taken from the oldest one, of any partition.
//!
//! ```text
//! owner:          find ─> check out its values ─> read, store, remove ─> check in before the thread does anything else
//! any partition:  needs memory ─> of the values that are checked in, the oldest ─> evict it
//! ```
//!
//! A value is evicted with its lock held, and the owner finds an empty slot at its next access. Where all values are
//! checked out, a thread that needs memory waits for the next owner to check in, which evicts one of its own for it: an
//! owner that has lost its processor keeps its values for long, and a busy one checks them out again at once. No thread
//! waits while it has values checked out, which rules out deadlocks.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use super::large_values::{Attempt, LargeValues};

/// The large values of all partitions.
#[derive(Debug, Default)]
pub struct SharedLargeValues {
    places: RwLock<Vec<Arc<SharedEntry>>>,
    /// The partition at which the next search begins.
    next: AtomicUsize,
    stamp: AtomicU64,
    bytes: AtomicU64,
    /// Whether evictions are awaited, for owners that check in.
    is_awaited: AtomicBool,
    evictions: Mutex<Evictions>,
    evicted: Condvar,
}

/// Evictions that owners do when they check in, for threads that found all values checked out.
#[derive(Debug, Default)]
struct Evictions {
    /// Number of evictions ever asked for.
    asked: u64,
    /// Number of these that were done, or given up.
    done: u64,
}

/// One partition's entry, which has the partition's large values while they are checked in.
#[derive(Debug)]
pub struct SharedEntry {
    /// None while they are checked out.
    values: Mutex<Option<Box<LargeValues>>>,
    /// The stamp of the oldest value; NOTHING if there is none, or they are checked out.
    oldest: AtomicU64,
    /// The bytes of the partition's large values.
    bytes: AtomicU64,
}

/// The time of a partition without large values.
const NOTHING: u64 = u64::MAX;
/// SharedLargeValues with a value that one search compares.
const COMPARED: usize = 32;
/// The largest number of active values that are requeued for one that is evicted.
const SECOND_CHANCES_MAX: usize = 128;
/// The number of searches that may find all values checked out before the thread waits: a request takes microseconds.
const SEARCHES_MAX: usize = 100;
/// The longest wait for an owner to check in: far longer than any thread is without a processor.
const PATIENCE: Duration = Duration::from_secs(2);

impl SharedLargeValues {
    /// Adds the entry of another partition.
    pub fn add(&self) -> Arc<SharedEntry> {
        let place = Arc::new(SharedEntry {
            values: Mutex::new(Some(Box::new(LargeValues::new()))),
            oldest: AtomicU64::new(NOTHING),
            bytes: AtomicU64::new(0),
        });
        self.places.write().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&place));
        place
    }

    /// Returns the number of partitions.
    pub fn count(&self) -> usize {
        self.places.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns the bytes of all large values.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns a stamp that is greater than all before.
    pub fn stamp(&self) -> u64 {
        self.stamp.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a value that was added to `place`.
    pub fn add_bytes(&self, place: &SharedEntry, bytes: u64) {
        place.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a value that was removed from `place`.
    pub fn subtract_bytes(&self, place: &SharedEntry, bytes: u64) {
        place.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Takes the least wanted value away, and returns the number of bytes freed; 0 if its owner has given them to the
    /// budget, None without any value. The caller has no values checked out.
    pub fn evict(&self) -> Option<u64> {
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let (mut second_chances, mut searches) = (0, 0);
        loop {
            let Some(place) = self.with_oldest(&places) else {
                if self.bytes() == 0 {
                    return None;
                }
                if searches == SEARCHES_MAX {
                    return self.await_eviction().then_some(0);
                }
                searches += 1;
                std::thread::yield_now();
                continue;
            };
            let mut guard = place.lock();
            // The values were checked out since they were found.
            let Some(values) = guard.as_deref_mut() else { continue };
            let attempt = values.take_oldest(second_chances < SECOND_CHANCES_MAX, self.stamp());
            place.note(values);
            match attempt {
                Attempt::Nothing => {}
                Attempt::SecondChance => second_chances += 1,
                Attempt::Taken(bytes) => {
                    self.subtract_bytes(place, bytes);
                    return Some(bytes);
                }
            }
        }
    }

    /// Waits until an owner has evicted one of its values; false if none does for too long.
    fn await_eviction(&self) -> bool {
        let mut evictions = self.evictions();
        let ticket = evictions.asked;
        evictions.asked += 1;
        self.is_awaited.store(true, Ordering::Relaxed);
        let waits = |evictions: &mut Evictions| evictions.done <= ticket;
        let (mut evictions, timeout) = self
            .evicted
            .wait_timeout_while(evictions, PATIENCE, waits)
            .unwrap_or_else(PoisonError::into_inner);
        evictions.done += u64::from(timeout.timed_out());
        !timeout.timed_out()
    }

    /// Checks a partition's values in again. Where evictions are awaited, evicts the partition's oldest first, and
    /// calls `give` with its bytes.
    pub fn check_in(&self, place: &SharedEntry, mut values: Box<LargeValues>, give: impl FnOnce(u64)) {
        if self.is_awaited.load(Ordering::Relaxed) {
            self.evict_for_others(place, &mut values, give);
        }
        place.check_in(values);
    }

    #[cold]
    fn evict_for_others(&self, place: &SharedEntry, values: &mut LargeValues, give: impl FnOnce(u64)) {
        let mut evictions = self.evictions();
        if evictions.done < evictions.asked
            && let Attempt::Taken(bytes) = values.take_oldest(false, self.stamp())
        {
            self.subtract_bytes(place, bytes);
            give(bytes);
            evictions.done += 1;
            self.evicted.notify_all();
        }
        self.is_awaited.store(evictions.done < evictions.asked, Ordering::Relaxed);
    }

    fn evictions(&self) -> MutexGuard<'_, Evictions> {
        self.evictions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_oldest<'a>(&self, places: &'a [Arc<SharedEntry>]) -> Option<&'a SharedEntry> {
        let start = self.next.fetch_add(COMPARED, Ordering::Relaxed) % places.len().max(1);
        let (before, after) = places.split_at(start);
        after
            .iter()
            .chain(before)
            .map(|place| (place.oldest.load(Ordering::Relaxed), place))
            .filter(|&(oldest, _)| oldest != NOTHING)
            .take(COMPARED)
            .min_by_key(|&(oldest, _)| oldest)
            .map(|(_, place)| &**place)
    }
}

impl SharedEntry {
    /// Returns the bytes of the partition's large values.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Checks the values out for their owner.
    pub fn check_out(&self) -> Box<LargeValues> {
        let mut place = self.lock();
        // With the lock held, as in `note`: a stamp is noted only while the values are checked in.
        self.oldest.store(NOTHING, Ordering::Relaxed);
        place.take().expect("the owner checks its values out once")
    }

    fn check_in(&self, values: Box<LargeValues>) {
        let mut place = self.lock();
        self.note(&values);
        *place = Some(values);
    }

    fn note(&self, values: &LargeValues) {
        self.oldest.store(values.oldest_stamp().unwrap_or(NOTHING), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<LargeValues>>> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
