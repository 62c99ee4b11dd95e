//! An inverted index in memory on Chronos: memcached's protocol for posting lists, HTTP for ranked results.
//!
//! ```text
//!                          ┌─ partition 0: word ──> postings (document, frequency, length)
//! words ──> hash of word ──┼─ partition 1
//!                          └─ ...
//! documents ──> Catalogue: name, version, words; no text
//! ```
//!
//! After Chronos-WS (dissertation of R. Kapoor, sections 6.1.2 and 6.2.5): the index is partitioned by term, and a
//! partition belongs to one thread. Departures:
//! * Documents may be put and deleted, and queries of several words are answered here; in the paper a client joins
//!   posting lists, and sets posting lists. `Sets::Postings` is that mode.
//! * Names and lengths of documents are in one table that all threads read without a lock ([`Catalogue`]).
//! * The baselines are the reader/writer lock of the crate `plimsoll-chronos-locked`, and [`Snapshots`].

mod answer;
mod ascii;
mod budget;
mod catalogue;
mod document;
mod http;
mod index;
mod load;
mod parts;
pub mod program;
mod rank;
mod request;
mod service;
mod snapshots;
mod words;

pub use budget::{Full, MemoryBudget};
pub use catalogue::{Catalogue, DocumentChange};
pub use document::{About, Document, Term, Terms};
pub use index::{Counts, IndexEntry, Partition, Posting, Postings};
pub use load::{LoadError, Loaded, load};
pub use rank::{Collection, Mode, Ranking, rank};
pub use request::{Outcome, Query, Request, SuccessForm};
pub use service::{SearchService, SearchSettings, Session, Sets};
pub use snapshots::{FoundDocuments, Snapshots};
pub use words::{WORD_BYTES_MAX, words};

/// Bytes of the longest name of a document: memcached's longest key.
pub const ID_BYTES_MAX: usize = 250;

/// The error in a document's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum IdError {
    /// It is empty, or too long.
    #[error("a document's name has {0} bytes; 1 to {ID_BYTES_MAX} are allowed")]
    Length(usize),
    /// It has a character that a key of memcached's protocol cannot have.
    #[error("a document's name has {0:?}; spaces and control characters are not allowed")]
    Character(char),
}

/// Checks that this can be a document's name.
///
/// # Errors
/// If it is empty, too long, or has a space or a control character.
pub fn check_id(id: &str) -> Result<(), IdError> {
    if !(1..=ID_BYTES_MAX).contains(&id.len()) {
        return Err(IdError::Length(id.len()));
    }
    let wrong = id.chars().find(|character| character.is_control() || character.is_whitespace());
    wrong.map_or(Ok(()), |character| Err(IdError::Character(character)))
}
