//! The counters of commands, in a partition and in its size classes: the fields, and their names in `stats` and the
//! metrics.
//!
//! A counter is declared in this file alone. It is in up to three lists, since memcached's two reports and the metrics
//! have an order each.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The counters of one partition. All are sums, so that partitions merge by addition.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Counters {
    /// The number of keys that were fetched.
    pub get_commands: u64,
    /// The number of fetched keys that did not exist.
    pub get_misses: u64,
    /// The number of fetched keys that had expired.
    pub get_expired: u64,
    /// The number of fetched keys that were flushed.
    pub get_flushed: u64,
    /// Values stored, or refused because of the key.
    pub set_commands: u64,
    /// The number of keys that were touched.
    pub touch_commands: u64,
    /// The number of touched keys that existed.
    pub touch_hits: u64,
    /// The number of touched keys that did not exist.
    pub touch_misses: u64,
    /// The number of keys that were deleted.
    pub delete_hits: u64,
    /// Keys to delete that did not exist.
    pub delete_misses: u64,
    /// The number of values that were incremented.
    pub increment_hits: u64,
    /// Numbers to increment that did not exist.
    pub increment_misses: u64,
    /// The number of values that were decremented.
    pub decrement_hits: u64,
    /// Numbers to decrement that did not exist.
    pub decrement_misses: u64,
    /// cas whose value was right.
    pub cas_hits: u64,
    /// The number of cas commands without an item.
    pub cas_misses: u64,
    /// cas whose value was wrong.
    pub cas_wrong: u64,
    /// The number of `me` commands.
    pub meta_commands: u64,
    /// The number of flush_all commands.
    pub flush_commands: u64,
    /// Stores refused for lack of memory.
    pub no_memory: u64,
    /// The number of bytes of replies.
    pub bytes_written: u64,
}

impl Counters {
    /// Returns the lines of `stats` about commands, in memcached's order.
    pub fn lines(&self) -> [(&'static str, u64); 20] {
        [
            ("cmd_get", self.get_commands),
            ("cmd_set", self.set_commands),
            ("cmd_flush", self.flush_commands),
            ("cmd_touch", self.touch_commands),
            ("cmd_meta", self.meta_commands),
            ("get_hits", self.get_commands - self.get_misses),
            ("get_misses", self.get_misses),
            ("get_expired", self.get_expired),
            ("get_flushed", self.get_flushed),
            ("delete_misses", self.delete_misses),
            ("delete_hits", self.delete_hits),
            ("incr_misses", self.increment_misses),
            ("incr_hits", self.increment_hits),
            ("decr_misses", self.decrement_misses),
            ("decr_hits", self.decrement_hits),
            ("cas_misses", self.cas_misses),
            ("cas_hits", self.cas_hits),
            ("cas_badval", self.cas_wrong),
            ("touch_hits", self.touch_hits),
            ("touch_misses", self.touch_misses),
        ]
    }

    /// Returns the samples of the metrics about commands: command, result (empty where there is one only), count.
    pub fn samples(&self) -> [(&'static str, &'static str, u64); 16] {
        [
            ("get", "hit", self.get_commands.saturating_sub(self.get_misses)),
            ("get", "miss", self.get_misses),
            ("set", "", self.set_commands),
            ("touch", "hit", self.touch_hits),
            ("touch", "miss", self.touch_misses),
            ("delete", "hit", self.delete_hits),
            ("delete", "miss", self.delete_misses),
            ("incr", "hit", self.increment_hits),
            ("incr", "miss", self.increment_misses),
            ("decr", "hit", self.decrement_hits),
            ("decr", "miss", self.decrement_misses),
            ("cas", "hit", self.cas_hits),
            ("cas", "miss", self.cas_misses),
            ("cas", "badval", self.cas_wrong),
            ("flush", "", self.flush_commands),
            ("meta", "", self.meta_commands),
        ]
    }
}

/// Counts of one class since the start, or since `stats reset`.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct ClassCounts {
    /// Fetched keys that existed.
    pub get_hits: u64,
    /// Values that clients asked to store.
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
    /// Reclaimed expired items whose own key was stored again: memcached finds them as a get does.
    pub replaced_expired: u64,
    /// Reclaimed flushed items whose own key was stored again.
    pub replaced_flushed: u64,
    /// Expired and flushed items that the sweep removed.
    pub swept: u64,
    /// Items that the sweep examined.
    pub looked_at: u64,
    /// Stores that found no memory.
    pub out_of_memory: u64,
}

impl ClassCounts {
    /// Returns the lines of `stats slabs` about commands, in memcached's order.
    pub fn lines(&self) -> [(&'static str, u64); 8] {
        [
            ("get_hits", self.get_hits),
            ("cmd_set", self.cmd_set),
            ("delete_hits", self.delete_hits),
            ("incr_hits", self.incr_hits),
            ("decr_hits", self.decr_hits),
            ("cas_hits", self.cas_hits),
            ("cas_badval", self.cas_badval),
            ("touch_hits", self.touch_hits),
        ]
    }
}
