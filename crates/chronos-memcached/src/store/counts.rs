//! What a size class is asked, holds and loses, for `stats items` and `stats slabs`. All numbers, so that partitions
//! add up.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// Counts of one class since the start, or since `stats reset`.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ClassCounts {
    /// Keys fetched that were there.
    pub get_hits: u64,
    /// Values that clients wanted stored.
    pub cmd_set: u64,
    /// The number of keys that were deleted.
    pub delete_hits: u64,
    /// The number of values that were incremented.
    pub incr_hits: u64,
    /// The number of values that were decremented.
    pub decr_hits: u64,
    /// cas whose value was right.
    pub cas_hits: u64,
    /// cas whose value was wrong.
    pub cas_badval: u64,
    /// The number of keys that were touched.
    pub touch_hits: u64,
    /// Items evicted to make room.
    pub evicted: u64,
    /// Evicted items that had an expiry time.
    pub evicted_nonzero: u64,
    /// Evicted items that were never fetched.
    pub evicted_unfetched: u64,
    /// Evicted items that were active.
    pub evicted_active: u64,
    /// Expired items that were never fetched.
    pub expired_unfetched: u64,
    /// Expired and flushed items whose memory a store took.
    pub reclaimed: u64,
    /// Of these, expired ones whose own key was stored again: memcached finds them as a get does.
    pub replaced_expired: u64,
    /// Of these, flushed ones whose own key was stored again.
    pub replaced_flushed: u64,
    /// Expired and flushed items that the sweep removed.
    pub swept: u64,
    /// Items that the sweep looked at.
    pub looked_at: u64,
    /// Stores that found no memory.
    pub out_of_memory: u64,
}

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
