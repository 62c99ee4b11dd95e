//! [`Snapshots`]: the index as a hash table by read-copy-update, a baseline. Readers take no lock and may be on any
//! thread; a writer copies the bucket that it changes, and there is one writer at a time.
//!
//! As the dissertation's RCU baseline (section 6.2.5, after Triplett et al., USENIX ATC 2011), with two departures:
//! arc-swap's debts take the place of grace periods, and the number of buckets is fixed.

use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock};

use arc_swap::{ArcSwap, Guard};
use plimsoll_chronos::KeyHash;

use crate::budget::{Full, MemoryBudget};
use crate::catalogue::DocumentChange;
use crate::document::Term;
use crate::index::{Counts, IndexEntry, Posting, Postings};

/// Words and their postings, shared by all threads.
pub struct Snapshots {
    budget: Arc<MemoryBudget>,
    hash: KeyHash,
    /// A bucket is made with its first word: dropping one visits every thread that reads.
    buckets: Box<[OnceLock<ArcSwap<SnapshotBucket>>]>,
    writing: Mutex<()>,
}

/// The result of a reader; later changes do not affect it.
pub struct FoundDocuments {
    bucket: Guard<Arc<SnapshotBucket>>,
    index: usize,
}

type SnapshotBucket = Vec<Arc<IndexEntry>>;

/// 1 M words are 16 in a bucket.
const BUCKETS: usize = 1 << 16;

impl Snapshots {
    /// Creates a table without words, which will take memory of `budget`.
    pub fn new(hash: KeyHash, budget: Arc<MemoryBudget>) -> Snapshots {
        let buckets = std::iter::repeat_with(OnceLock::new).take(BUCKETS).collect();
        Snapshots { budget, hash, buckets, writing: Mutex::new(()) }
    }

    /// Returns the postings of a word.
    pub fn get(&self, term: Term<'_>) -> Option<FoundDocuments> {
        let bucket = self.bucket(term).get()?.load();
        let index = bucket.iter().position(|entry| *entry.word == *term.word)?;
        Some(FoundDocuments { bucket, index })
    }

    /// Changes a document in the catalogue, and its postings here, without another change in between.
    pub fn change<E>(&self, change: impl FnOnce() -> Result<DocumentChange, E>) -> Result<DocumentChange, E> {
        let _writing = self.lock();
        let change = change()?;
        for (word, _) in change.before.iter().flat_map(|before| before.terms.all()) {
            let (was, is) = self.update(Term::new(&self.hash, word), |postings| {
                let mut postings = postings?.clone();
                (!postings.remove(change.number)).then_some(postings)
            });
            if was && !is {
                self.budget.give(IndexEntry::bytes(word));
            }
        }
        if let Some(now) = &change.now {
            for (word, frequency) in now.terms.all() {
                let (was, _) = self.update(Term::new(&self.hash, word), |postings| {
                    let mut postings = postings.cloned().unwrap_or(Postings::Documents(Vec::new()));
                    postings.insert(Posting::new(now, frequency));
                    Some(postings)
                });
                if !was {
                    self.budget.take(IndexEntry::bytes(word));
                }
            }
        }
        Ok(change)
    }

    /// Sets the value of a word, in place of its earlier postings.
    ///
    /// # Errors
    /// If the budget has no memory for it; the earlier postings then stay.
    pub fn set(&self, term: Term<'_>, flags: u32, value: &[u8]) -> Result<(), Full> {
        let _writing = self.lock();
        let before = IndexEntry::bytes_with_value(term.word, self.get(term).as_deref());
        self.budget.exchange(before, IndexEntry::bytes(term.word) + value.len() as u64)?;
        self.update(term, |_| Some(Postings::Opaque { flags, value: value.into() }));
        Ok(())
    }

    /// Removes a word; false if it was not known.
    pub fn forget(&self, term: Term<'_>) -> bool {
        let _writing = self.lock();
        let Some(found) = self.get(term) else { return false };
        self.budget.give(IndexEntry::bytes_with_value(term.word, Some(&found)));
        self.update(term, |_| None);
        true
    }

    /// Counts, by visiting every word.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for bucket in self.buckets.iter().filter_map(OnceLock::get) {
            for entry in bucket.load().iter() {
                counts.add(&entry.postings);
            }
        }
        counts
    }

    /// Changes an entry, one writer at a time. Returns whether the word was known before, and is now.
    fn update(
        &self,
        term: Term<'_>,
        change: impl FnOnce(Option<&Postings>) -> Option<Postings>,
    ) -> (bool, bool) {
        let place = self.bucket(term).get_or_init(ArcSwap::default);
        let mut bucket = SnapshotBucket::clone(&place.load());
        let index = bucket.iter().position(|entry| *entry.word == *term.word);
        let now = change(index.map(|index| &bucket[index].postings));
        let now = now.map(|postings| Arc::new(IndexEntry { word: term.word.into(), postings }));
        let known = (index.is_some(), now.is_some());
        match (index, now) {
            (Some(index), Some(now)) => bucket[index] = now,
            (Some(index), None) => drop(bucket.swap_remove(index)),
            (None, Some(now)) => bucket.push(now),
            (None, None) => return known,
        }
        place.store(Arc::new(bucket));
        known
    }

    fn bucket(&self, term: Term<'_>) -> &OnceLock<ArcSwap<SnapshotBucket>> {
        &self.buckets[term.hash as usize % BUCKETS]
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, ()> {
        self.writing.lock().expect("nothing panics while it has the lock")
    }
}

impl Deref for FoundDocuments {
    type Target = Postings;

    fn deref(&self) -> &Postings {
        &self.bucket[self.index].postings
    }
}
