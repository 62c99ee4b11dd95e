//! [`Wheel`]: a ring of buckets, each with the entries of a stretch of time, in the order of their arrival.
//!
//! ```text
//! buckets   by slot: the chunk that is filled, and how far ──┐
//! chunks    [ behind | keys ................ ]  <────────────┘
//!               └──> the chunk that was filled before; a free chunk: the next free one
//! ```
//!
//! A bucket far ahead has few entries, one whose time has come some sixty. Chunks are handed on, the one freed last
//! first, so that a long queue takes little more memory than its entries, all in one block.

use super::key::Key;

/// A ring of unsorted buckets: the ones that follow the cursor.
#[derive(Clone, Debug)]
pub(super) struct Wheel {
    /// The buckets; their number is a power of two.
    buckets: Vec<WheelBucket>,
    /// One bit for each bucket: whether it has entries.
    filled: Vec<u64>,
    chunks: Vec<WheelChunk>,
    /// The chunk freed last; [`NONE`] if all are in use.
    free: u32,
    /// The number of entries in all buckets.
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct WheelBucket {
    /// The chunk that is filled; [`NONE`] if the bucket is empty.
    chunk: u32,
    /// The number of its keys; [`CHUNK_KEYS`] in an empty bucket, so that it has no room either.
    used: u32,
}

const EMPTY: WheelBucket = WheelBucket { chunk: NONE, used: CHUNK_KEYS as u32 };

#[derive(Clone, Debug)]
#[repr(align(64))]
struct WheelChunk {
    behind: u32,
    keys: [Key; CHUNK_KEYS],
}

/// The keys in a chunk, which is four cache lines.
const CHUNK_KEYS: usize = 31;
const _: () = assert!(size_of::<WheelChunk>() == 8 * (CHUNK_KEYS + 1), "a chunk is whole cache lines");

/// The number that means no chunk.
const NONE: u32 = u32::MAX;
/// Buckets in a word of the bitmap.
const WORD: u64 = u64::BITS as u64;

impl Wheel {
    /// Returns a wheel of `buckets` empty buckets, a power of two.
    pub(super) fn new(buckets: u64) -> Wheel {
        Wheel {
            buckets: vec![EMPTY; buckets as usize],
            filled: vec![0; (buckets / WORD) as usize],
            chunks: Vec::new(),
            free: NONE,
            len: 0,
        }
    }

    /// Returns the number of entries.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of buckets.
    #[inline]
    pub(super) fn buckets(&self) -> u64 {
        self.buckets.len() as u64
    }

    #[inline]
    fn slot(&self, bucket: u64) -> usize {
        bucket as usize & (self.buckets.len() - 1)
    }

    /// Adds an entry to a bucket.
    #[inline]
    pub(super) fn insert(&mut self, bucket: u64, key: Key) {
        let slot = self.slot(bucket);
        self.len += 1;
        let bucket = &mut self.buckets[slot];
        if bucket.used as usize == CHUNK_KEYS {
            return self.insert_in_new_chunk(slot, key);
        }
        self.chunks[bucket.chunk as usize].keys[bucket.used as usize] = key;
        bucket.used += 1;
    }

    /// Adds an entry to a bucket whose chunk is full, or that has none.
    #[inline(never)] // so that `insert` calls nothing that returns to it, and saves no registers
    fn insert_in_new_chunk(&mut self, slot: usize, key: Key) {
        let chunk = match self.free {
            NONE => {
                self.chunks.push(WheelChunk { behind: NONE, keys: [Key::default(); CHUNK_KEYS] });
                self.chunks.len() as u32 - 1
            }
            free => {
                self.free = self.chunks[free as usize].behind;
                free
            }
        };
        let bucket = &mut self.buckets[slot];
        let WheelChunk { behind, keys } = &mut self.chunks[chunk as usize];
        (*behind, keys[0]) = (bucket.chunk, key);
        *bucket = WheelBucket { chunk, used: 1 };
        self.filled[slot / WORD as usize] |= 1 << (slot % WORD as usize);
    }

    /// Moves the entries of a bucket behind the ones in `keys`, the last added first.
    #[inline]
    pub(super) fn take(&mut self, bucket: u64, keys: &mut Vec<Key>) {
        let slot = self.slot(bucket);
        self.filled[slot / WORD as usize] &= !(1 << (slot % WORD as usize));
        let WheelBucket { mut chunk, used } = std::mem::replace(&mut self.buckets[slot], EMPTY);
        let (before, mut used) = (keys.len(), used as usize);
        while chunk != NONE {
            let WheelChunk { behind, keys: in_chunk } = &mut self.chunks[chunk as usize];
            keys.extend(in_chunk[..used].iter().rev());
            let next = std::mem::replace(behind, self.free);
            self.free = chunk;
            (chunk, used) = (next, CHUNK_KEYS);
        }
        self.len -= keys.len() - before;
    }

    /// Returns the entries of a bucket.
    #[inline]
    pub(super) fn keys(&self, bucket: u64) -> impl Iterator<Item = Key> {
        let WheelBucket { chunk, used } = self.buckets[self.slot(bucket)];
        let mut used = used as usize;
        let chunks = std::iter::successors(self.chunks.get(chunk as usize), |chunk| {
            self.chunks.get(chunk.behind as usize)
        });
        chunks.flat_map(move |chunk| {
            let in_chunk = std::mem::replace(&mut used, CHUNK_KEYS);
            chunk.keys[..in_chunk].iter().copied()
        })
    }

    /// Returns the first bucket after `cursor` that has entries. The cursor's own bucket has none.
    #[inline]
    pub(super) fn next_filled(&self, cursor: u64) -> Option<u64> {
        if self.len == 0 {
            return None;
        }
        let start = self.slot(cursor + 1);
        let mut word = start / WORD as usize;
        let mut bits = self.filled[word] & (u64::MAX << (start % WORD as usize));
        // At most once round, back to the bits of the first word that are below the start.
        while bits == 0 {
            word = (word + 1) & (self.filled.len() - 1);
            bits = self.filled[word];
        }
        let slot = word as u64 * WORD + u64::from(bits.trailing_zeros());
        Some(cursor + 1 + (slot.wrapping_sub(start as u64) & (self.buckets() - 1)))
    }
}
