//! An item as it lies in its chunk: a fixed header, the key, then the value (or, for a large item, the number of the
//! value's slot).
//!
//! ```text
//! | cas 8 | expiry 4 | time 4 | flags 4 | value bytes 4 | tag 4 | key bytes 1 | state 1 | 2 | key | value |
//! ```
//!
//! memcached's item has 48 bytes and another 8 for the cas; ours has no pointers, since an index of 4 bytes is enough.

use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The header before an item's key.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct Header {
    /// Grows with every change of the item.
    pub cas: U64,
    /// Second of its expiry, 0 for never.
    pub expiry: U32,
    /// Second at which it was stored, or was made active by a fetch.
    pub time: U32,
    /// The flags that the client gave.
    pub flags: U32,
    /// The length of the value in bytes.
    pub value_bytes: U32,
    /// The low half of the key's hash, by which the index finds it. In a free chunk, the number of the next one.
    pub tag: U32,
    /// Bytes of the key, 1 to 250.
    pub key_bytes: u8,
    /// [`ItemState`] bits; 0 in a free chunk.
    pub state: u8,
    /// Padding, which is always 0.
    pub padding: [u8; 2],
}

/// Bytes of a [`Header`].
pub const HEADER_BYTES: usize = size_of::<Header>();

/// Bits of `Header::state`, with memcached's meanings.
pub struct ItemState;

impl ItemState {
    /// The chunk has an item.
    pub const USED: u8 = 1;
    /// Fetched since it was stored.
    pub const FETCHED: u8 = 1 << 1;
    /// Fetched again since the eviction hand passed: the item is spared once. A large item has this on its values.
    pub const ACTIVE: u8 = 1 << 2;
    /// Marked out of date by a meta delete with I.
    pub const STALE: u8 = 1 << 3;
    /// A client was asked to bring a fresh value.
    pub const TOKEN_SENT: u8 = 1 << 4;
    /// The key arrived in base64, and is returned so.
    pub const KEY_BINARY: u8 = 1 << 5;
    /// The chunk has the slot number of the value instead of the value.
    pub const LARGE: u8 = 1 << 6;
}

/// The place of an item: its page in the upper bits, and its place there in units of [`GRAIN`] bytes in the lower.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ItemRef(pub u32);

/// Chunks start at multiples of this.
pub const GRAIN: usize = 8;
/// Bits for the place within a page, which is 64 KiB at most.
pub const PLACE_BITS: u32 = 13;

impl ItemRef {
    /// Pages of a partition that references reach: 32 GiB of the largest.
    pub const PAGES_MAX: usize = 1 << (u32::BITS - PLACE_BITS);

    /// Returns the item at byte `offset` of page `page`.
    pub fn new(page: usize, offset: usize) -> ItemRef {
        debug_assert!(page < ItemRef::PAGES_MAX, "no arena has so many");
        ItemRef(((page as u32) << PLACE_BITS) | (offset / GRAIN) as u32)
    }

    /// Returns the number of the page.
    pub fn page(self) -> usize {
        (self.0 >> PLACE_BITS) as usize
    }

    /// Returns the bytes from the page's start.
    pub fn offset(self) -> usize {
        (self.0 & ((1 << PLACE_BITS) - 1)) as usize * GRAIN
    }
}
