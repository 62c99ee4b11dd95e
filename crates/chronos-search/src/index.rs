//! [`Partition`]: the words of one partition, each with its postings.

use std::sync::Arc;

use hashbrown::hash_table::{Entry as Slot, HashTable};
use plimsoll_chronos::{KeyHash, PartitionId};

use crate::budget::{Full, MemoryBudget};
use crate::document::{Document, Term};

/// One occurrence of a word in a document. Posting lists are sorted by number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Posting {
    /// The document's number.
    pub number: u32,
    /// The document's version.
    pub generation: u32,
    /// The number of times that the document has the word.
    pub frequency: u32,
    /// The number of words of the document.
    pub words: u32,
}

/// The postings of a word.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Postings {
    /// The documents that have the word.
    Documents(Vec<Posting>),
    /// The value that a client has set for it.
    Opaque {
        /// The flags that the client gave.
        flags: u32,
        /// The value that the client gave.
        value: Box<[u8]>,
    },
}

/// A word and its postings.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexEntry {
    /// The word that is indexed.
    pub word: Box<[u8]>,
    /// The postings or the value of the word.
    pub postings: Postings,
}

/// The words whose hashes are one partition's.
pub struct Partition {
    budget: Arc<MemoryBudget>,
    id: PartitionId,
    hash: KeyHash,
    entries: HashTable<IndexEntry>,
    /// The version of each document whose words are in the postings; only documents that have words here.
    documents: hashbrown::HashMap<u32, Arc<Document>>,
}

/// The counts of a partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    /// The number of words with postings.
    pub words: u64,
    /// Pairs of a word and a document.
    pub postings: u64,
    /// Bytes that clients have set.
    pub opaque_bytes: u64,
}

impl Posting {
    /// Creates the posting of `document` for a word with this frequency.
    pub fn new(document: &Document, frequency: u32) -> Posting {
        let (number, generation) = (document.number, document.generation);
        Posting { number, generation, frequency, words: document.terms.words() }
    }
}

impl IndexEntry {
    /// Returns the bytes of memory that a word takes, without its postings.
    pub fn bytes(word: &[u8]) -> u64 {
        // A growing table is between one half and seven eighths full.
        (size_of::<IndexEntry>() * 3 / 2 + word.len()) as u64
    }

    /// Returns the bytes that a word and its value take, if there is one.
    pub fn bytes_with_value(word: &[u8], postings: Option<&Postings>) -> u64 {
        postings.map_or(0, |postings| IndexEntry::bytes(word) + postings.value_bytes())
    }
}

impl Postings {
    /// Returns the bytes of a value that a client has set.
    pub fn value_bytes(&self) -> u64 {
        match self {
            Postings::Documents(_) => 0,
            Postings::Opaque { value, .. } => value.len() as u64,
        }
    }

    /// Returns the documents; none for a value that a client has set.
    pub fn documents(&self) -> &[Posting] {
        match self {
            Postings::Documents(postings) => postings,
            Postings::Opaque { .. } => &[],
        }
    }

    /// Puts a posting in its place, instead of an older one of the same document.
    pub fn insert(&mut self, posting: Posting) {
        if let Postings::Opaque { .. } = self {
            *self = Postings::Documents(Vec::new());
        }
        let Postings::Documents(postings) = self else { unreachable!("made so above") };
        match postings.binary_search_by_key(&posting.number, |other| other.number) {
            Ok(index) => postings[index] = posting,
            Err(index) => postings.insert(index, posting),
        }
    }

    /// Takes a document's posting away; true if none is left.
    pub fn remove(&mut self, number: u32) -> bool {
        let Postings::Documents(postings) = self else { return false };
        if let Ok(index) = postings.binary_search_by_key(&number, |posting| posting.number) {
            postings.remove(index);
        }
        postings.is_empty()
    }
}

impl Counts {
    /// Counts one more word.
    pub fn add(&mut self, postings: &Postings) {
        self.words += 1;
        self.postings += postings.documents().len() as u64;
        self.opaque_bytes += postings.value_bytes();
    }
}

impl Partition {
    /// Creates a partition without words, of an index with this hash; its words will take memory of `budget`.
    pub fn new(id: PartitionId, hash: KeyHash, budget: Arc<MemoryBudget>) -> Partition {
        Partition { budget, id, hash, entries: HashTable::new(), documents: hashbrown::HashMap::new() }
    }

    /// Returns the postings of a word.
    pub fn get(&self, term: Term<'_>) -> Option<&Postings> {
        self.entries.find(term.hash, |entry| *entry.word == *term.word).map(|entry| &entry.postings)
    }

    /// Returns the version of a document whose words are in the postings.
    pub fn document(&self, number: u32) -> Option<&Document> {
        self.documents.get(&number).map(|document| &**document)
    }

    /// Makes the postings match this version of the document with this number; none if it is gone.
    pub fn apply(&mut self, number: u32, now: Option<Arc<Document>>) {
        let before = self.documents.get(&number);
        if before.map(|document| document.generation) == now.as_ref().map(|document| document.generation) {
            return;
        }
        if let Some(before) = self.documents.remove(&number) {
            for (word, _) in before.terms.of_partition(self.id) {
                self.remove_posting(Term::new(&self.hash, word), number);
            }
        }
        let Some(now) = now.filter(|now| now.terms.of_partition(self.id).next().is_some()) else { return };
        for (word, frequency) in now.terms.of_partition(self.id) {
            let (entry, is_new) = self.entry(Term::new(&self.hash, word));
            entry.postings.insert(Posting::new(&now, frequency));
            if is_new {
                self.budget.take(IndexEntry::bytes(word));
            }
        }
        self.documents.insert(number, now);
    }

    /// Sets the value of a word, in place of its earlier postings.
    ///
    /// # Errors
    /// If the budget has no memory for it; the earlier postings then stay.
    pub fn set(&mut self, term: Term<'_>, flags: u32, value: &[u8]) -> Result<(), Full> {
        let before = IndexEntry::bytes_with_value(term.word, self.get(term));
        self.budget.exchange(before, IndexEntry::bytes(term.word) + value.len() as u64)?;
        let postings = &mut self.entry(term).0.postings;
        match postings {
            // Most values are as long as the one before.
            Postings::Opaque { flags: before, value: place } if place.len() == value.len() => {
                *before = flags;
                place.copy_from_slice(value);
            }
            _ => *postings = Postings::Opaque { flags, value: value.into() },
        }
        Ok(())
    }

    /// Removes a word; false if it was not known.
    pub fn forget(&mut self, term: Term<'_>) -> bool {
        let found = self.entries.find_entry(term.hash, |entry| *entry.word == *term.word);
        let Ok((entry, _)) = found.map(|found| found.remove()) else { return false };
        self.budget.give(IndexEntry::bytes_with_value(term.word, Some(&entry.postings)));
        true
    }

    /// Counts, by visiting every word.
    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for entry in &self.entries {
            counts.add(&entry.postings);
        }
        counts
    }

    /// Returns a word's entry, and whether it is new: then its memory is to be counted.
    fn entry(&mut self, term: Term<'_>) -> (&mut IndexEntry, bool) {
        let hash = self.hash;
        let slot =
            self.entries.entry(term.hash, |entry| *entry.word == *term.word, |entry| hash.hash(&entry.word));
        match slot {
            Slot::Occupied(slot) => (slot.into_mut(), false),
            Slot::Vacant(slot) => {
                let entry = IndexEntry { word: term.word.into(), postings: Postings::Documents(Vec::new()) };
                (slot.insert(entry).into_mut(), true)
            }
        }
    }

    fn remove_posting(&mut self, term: Term<'_>, number: u32) {
        if let Ok(mut entry) = self.entries.find_entry(term.hash, |entry| *entry.word == *term.word)
            && entry.get_mut().postings.remove(number)
        {
            entry.remove();
            self.budget.give(IndexEntry::bytes(term.word));
        }
    }
}
