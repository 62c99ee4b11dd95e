//! [`Catalogue`]: the documents, by number without a lock, by name under one.
//!
//! ```text
//! put, delete ──> names (a lock) ──> number, generation ──> slot ──┐
//!                                                                  ├──> Arc<Document>
//! partitions, results ─────────────────────────────> number ───────┘  by arc-swap, in segments that double
//! ```
//!
//! Only changes of documents take the lock. It orders them: a document's versions have generations, and every partition
//! ends with the last, in whatever order it receives the changes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use arc_swap::ArcSwapOption;
use hashbrown::HashMap;

use crate::budget::{Full, MemoryBudget};
use crate::document::{About, Document, Terms};
use crate::rank::Collection;

/// The table of all documents.
pub struct Catalogue {
    budget: Arc<MemoryBudget>,
    names: Mutex<DocumentNames>,
    segments: [OnceLock<Box<[ArcSwapOption<Document>]>>; SEGMENTS],
    documents: AtomicU64,
    words: AtomicU64,
}

/// A document's old and new version.
#[derive(Clone, Debug)]
pub struct DocumentChange {
    /// The number of the document.
    pub number: u32,
    /// The version before; none if the document did not exist.
    pub before: Option<Arc<Document>>,
    /// The version now; none if it was deleted.
    pub now: Option<Arc<Document>>,
}

#[derive(Default)]
struct DocumentNames {
    numbers: HashMap<Box<str>, u32>,
    free: Vec<u32>,
    next: u32,
    generation: u32,
}

/// Slots of the first segment; each further one has twice as many.
const FIRST_SEGMENT: u32 = 1024;
/// As many as 32-bit numbers can need.
const SEGMENTS: usize = 23;

impl Catalogue {
    /// Creates a catalogue without documents, whose documents will take memory of `budget`.
    pub fn new(budget: Arc<MemoryBudget>) -> Catalogue {
        Catalogue {
            budget,
            names: Mutex::default(),
            segments: Default::default(),
            documents: AtomicU64::new(0),
            words: AtomicU64::new(0),
        }
    }

    /// Adds a document, or replaces the one of its name.
    ///
    /// # Errors
    /// If the budget has no memory for it; the document before then stays.
    pub fn put(&self, about: About, terms: Terms) -> Result<DocumentChange, Full> {
        let mut names = self.lock();
        let known = names.numbers.get(&about.id).copied();
        let before = known.and_then(|number| self.get(number)).map_or(0, |before| before.bytes());
        let mut document = Document { number: 0, generation: 0, about, terms };
        self.budget.exchange(before, document.bytes())?;
        document.number = known.unwrap_or_else(|| names.add(document.about.id.clone()));
        names.generation = names.generation.wrapping_add(1);
        document.generation = names.generation;
        Ok(self.exchange(document.number, Some(Arc::new(document))))
    }

    /// Deletes a document; none if no document has that name.
    pub fn delete(&self, id: &str) -> Option<DocumentChange> {
        let mut names = self.lock();
        let number = names.numbers.remove(id)?;
        names.free.push(number);
        let change = self.exchange(number, None);
        self.budget.give(change.before.as_ref().map_or(0, |before| before.bytes()));
        Some(change)
    }

    /// Returns the document that has this number now.
    pub fn get(&self, number: u32) -> Option<Arc<Document>> {
        let (segment, index) = place(number);
        self.segments[segment].get()?[index].load_full()
    }

    /// Returns all documents, without an order.
    pub fn all(&self) -> Vec<Arc<Document>> {
        let numbers: Vec<u32> = self.lock().numbers.values().copied().collect();
        numbers.into_iter().filter_map(|number| self.get(number)).collect()
    }

    /// Returns the number of documents, and their total length.
    pub fn collection(&self) -> Collection {
        Collection {
            documents: self.documents.load(Ordering::Relaxed),
            words: self.words.load(Ordering::Relaxed),
        }
    }

    /// Runs under the lock, so that the counts match the slots.
    fn exchange(&self, number: u32, now: Option<Arc<Document>>) -> DocumentChange {
        let (segment, index) = place(number);
        let slots = self.segments[segment].get_or_init(|| {
            let slots = (FIRST_SEGMENT as usize) << segment;
            std::iter::repeat_with(ArcSwapOption::empty).take(slots).collect()
        });
        let before = slots[index].swap(now.clone());
        let count = |document: &Option<Arc<Document>>| {
            document.as_ref().map_or((0, 0), |document| (1, u64::from(document.terms.words())))
        };
        let ((documents, words), (gone, gone_words)) = (count(&now), count(&before));
        self.documents.fetch_add(documents, Ordering::Relaxed);
        self.documents.fetch_sub(gone, Ordering::Relaxed);
        self.words.fetch_add(words, Ordering::Relaxed);
        self.words.fetch_sub(gone_words, Ordering::Relaxed);
        DocumentChange { number, before, now }
    }

    fn lock(&self) -> MutexGuard<'_, DocumentNames> {
        self.names.lock().expect("nothing panics while it has the lock")
    }
}

impl DocumentNames {
    fn add(&mut self, id: Box<str>) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            let number = self.next;
            self.next = number.checked_add(1).expect("memory ends before 2^32 documents");
            number
        });
        self.numbers.insert(id, number);
        number
    }
}

/// Returns a number's segment, and its index there.
fn place(number: u32) -> (usize, usize) {
    let shifted = u64::from(number) + u64::from(FIRST_SEGMENT);
    let segment = (shifted / u64::from(FIRST_SEGMENT)).ilog2();
    (segment as usize, (shifted - (u64::from(FIRST_SEGMENT) << segment)) as usize)
}

#[cfg(test)]
mod tests {
    use plimsoll_chronos::KeyHash;

    use super::*;

    fn put(catalogue: &Catalogue, id: &str, text: &str) -> DocumentChange {
        let about = About { id: id.into(), ..About::default() };
        catalogue.put(about, Terms::of(text, &KeyHash::new(7), 4)).expect("there is room")
    }

    #[test]
    fn places_are_dense_and_fit() {
        let mut expected = (0, 0);
        for number in 0..10_000 {
            assert_eq!(place(number), expected);
            let full = expected.1 + 1 == (FIRST_SEGMENT as usize) << expected.0;
            expected = if full { (expected.0 + 1, 0) } else { (expected.0, expected.1 + 1) };
        }
        assert!(place(u32::MAX).0 < SEGMENTS);
    }

    #[test]
    fn documents_come_are_replaced_and_go() {
        let budget = Arc::new(MemoryBudget::new(None));
        let catalogue = Catalogue::new(budget.clone());
        let first = put(&catalogue, "a", "one two");
        assert!(first.before.is_none());
        let second = put(&catalogue, "a", "three");
        assert_eq!((second.number, second.before), (first.number, first.now));
        put(&catalogue, "b", "four five");
        assert_eq!(catalogue.collection(), Collection { documents: 2, words: 3 });
        assert!(catalogue.delete("c").is_none());
        let gone = catalogue.delete("a").unwrap();
        assert_eq!((gone.before, gone.now), (second.now, None));
        assert!(catalogue.get(gone.number).is_none());
        assert_eq!(catalogue.collection(), Collection { documents: 1, words: 2 });
        let other = put(&catalogue, "c", "six");
        assert_eq!(other.number, gone.number, "numbers are used again");
        assert_eq!(catalogue.all().len(), 2);
        let taken: u64 = catalogue.all().iter().map(|document| document.bytes()).sum();
        assert_eq!(budget.taken(), taken);
    }

    #[test]
    fn what_has_no_room_changes_nothing() {
        let catalogue = Catalogue::new(Arc::new(MemoryBudget::new(Some(1000))));
        let about = |id: &str| About { id: id.into(), ..About::default() };
        let terms = |text: &str| Terms::of(text, &KeyHash::new(7), 4);
        let first = catalogue.put(about("a"), terms("one two")).unwrap();
        let long: String = (0..100).map(|number| format!("word{number} ")).collect();
        for id in ["a", "b"] {
            assert_eq!(catalogue.put(about(id), terms(&long)).unwrap_err(), Full);
        }
        assert_eq!(catalogue.all(), [first.now.unwrap()]);
        let added = (0..100).map(|number| catalogue.put(about(&number.to_string()), terms("one")));
        assert!((1..10).contains(&added.take_while(Result::is_ok).count()));
        assert!(catalogue.budget.taken() <= 1000);
    }
}
