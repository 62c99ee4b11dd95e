//! [`ClassReport`]: a size class as `stats items` and `stats slabs` report it.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::counters::ClassCounts;

/// A class of one partition: its contents and its counters.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ClassReport {
    /// The number of the class, from 0.
    pub number: u64,
    /// The size of its chunks in bytes.
    pub chunk_bytes: u64,
    /// The number of chunks in a page.
    pub chunks_per_page: u64,
    /// The number of its pages.
    pub pages: u64,
    /// The number of chunks with an item.
    pub used: u64,
    /// Bytes of its items: headers, keys and values.
    pub requested: u64,
    /// Seconds since the next item under the eviction hand was stored or became active.
    pub age: u64,
    /// The same age of the item that was evicted last.
    pub evicted_age: u64,
    /// The counters of the class.
    pub counts: ClassCounts,
}
