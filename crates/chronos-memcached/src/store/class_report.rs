//! [`ClassReport`]: a size class as `stats items` and `stats slabs` report it.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::counters::ClassCounts;

/// A class of one partition: what it holds, and what it counted.
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
    /// Seconds since the item was stored or became active that the eviction hand comes to next.
    pub age: u64,
    /// The same of the item that was evicted last.
    pub evicted_age: u64,
    /// The counters of the class.
    pub counts: ClassCounts,
}
