//! The shelves of all partitions: room for a large value is made where the oldest one lies, whosever it is.
//!
//! ```text
//! owner:  find ─> lend ─> read, store, remove ─> give back, before its thread does anything else
//! any:    room is wanted ─> of the shelves that are there, the one with the oldest value ─> take it
//! ```
//!
//! A value is taken with its lock held, and the owner finds an empty slot when it looks next. Nobody waits while it has a
//! shelf, so nobody waits for ever.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use super::shelf::{Attempt, Shelf};

/// All shelves.
#[derive(Debug, Default)]
pub struct Shelves {
    places: RwLock<Vec<Arc<Place>>>,
    /// Where the next search begins.
    next: AtomicUsize,
    stamp: AtomicU64,
    bytes: AtomicU64,
}

/// Where the shelf of a partition is while nobody uses it.
#[derive(Debug)]
pub struct Place {
    /// None while it is lent.
    shelf: Mutex<Option<Box<Shelf>>>,
    /// The stamp of its oldest value; NOTHING if it is empty or lent.
    oldest: AtomicU64,
    /// Bytes of its values.
    bytes: AtomicU64,
}

/// No value.
const NOTHING: u64 = u64::MAX;
/// Shelves with a value that one search compares.
const COMPARED: usize = 32;
/// Active values that are spared for one that goes.
const SPARED_MAX: usize = 128;
/// Searches that may find every shelf lent.
const SEARCHES_MAX: usize = 10_000;

impl Shelves {
    /// A place for one more partition's.
    pub fn add(&self) -> Arc<Place> {
        let place = Arc::new(Place {
            shelf: Mutex::new(Some(Box::new(Shelf::new()))),
            oldest: AtomicU64::new(NOTHING),
            bytes: AtomicU64::new(0),
        });
        self.places.write().unwrap_or_else(PoisonError::into_inner).push(Arc::clone(&place));
        place
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.places.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Bytes of all values.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// A stamp that is greater than all before.
    pub fn stamp(&self) -> u64 {
        self.stamp.fetch_add(1, Ordering::Relaxed)
    }

    /// Counts a value that `place` has more.
    pub fn add_bytes(&self, place: &Place, bytes: u64) {
        place.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts a value that `place` has no more.
    pub fn subtract_bytes(&self, place: &Place, bytes: u64) {
        place.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// Takes the least wanted value away, and says how many bytes that gives; None if there is none. The caller has no
    /// shelf.
    pub fn evict(&self) -> Option<u64> {
        let places = self.places.read().unwrap_or_else(PoisonError::into_inner);
        let (mut spared, mut searches) = (0, 0);
        while searches < SEARCHES_MAX {
            let Some(place) = self.with_oldest(&places) else {
                if self.bytes() == 0 {
                    return None;
                }
                // All are lent, for no longer than a request takes.
                searches += 1;
                std::thread::yield_now();
                continue;
            };
            let mut guard = place.lock();
            // Lent since it was found.
            let Some(shelf) = guard.as_deref_mut() else { continue };
            let attempt = shelf.take_oldest(spared < SPARED_MAX, self.stamp());
            place.note(shelf);
            match attempt {
                Attempt::Nothing => {}
                Attempt::Spared => spared += 1,
                Attempt::Taken(bytes) => {
                    self.subtract_bytes(place, bytes);
                    return Some(bytes);
                }
            }
        }
        None
    }

    fn with_oldest<'a>(&self, places: &'a [Arc<Place>]) -> Option<&'a Place> {
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

impl Place {
    /// Bytes of its values.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Hands the shelf to its owner.
    pub fn lend(&self) -> Box<Shelf> {
        let mut place = self.lock();
        // With the lock held, as in `note`: whoever notes a stamp has a shelf that is here.
        self.oldest.store(NOTHING, Ordering::Relaxed);
        place.take().expect("a shelf is lent to its one owner, once")
    }

    /// Takes the shelf back.
    pub fn take_back(&self, shelf: Box<Shelf>) {
        let mut place = self.lock();
        self.note(&shelf);
        *place = Some(shelf);
    }

    fn note(&self, shelf: &Shelf) {
        self.oldest.store(shelf.oldest_stamp().unwrap_or(NOTHING), Ordering::Relaxed);
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Shelf>>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
