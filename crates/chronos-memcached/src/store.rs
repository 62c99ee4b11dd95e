//! One partition's items.
//!
//! ```text
//! KeyHash ──> index (tag, place) ──> arena: header, key, value ──> reply
//! ```
//!
//! Only the [`Budget`] is shared, and the large values while no request of this partition runs. `-m` limits item memory
//! (pages and large items), as memcached's does; the index is additional, 10 to 20 bytes an item.

mod arena;
mod budget;
mod class_report;
mod classes;
mod eviction;
mod index;
mod item;
mod large;
mod large_values;
mod shared_large_values;

use std::sync::Arc;

use crate::counters::ClassCounts;
use arena::Arena;
pub use arena::Layout;
pub use budget::ItemBudget;
pub use class_report::ClassReport;
pub use classes::ChunkClasses;
use index::Index;
pub use item::{HEADER_BYTES, Header, ItemRef, ItemState};
use zerocopy::IntoBytes;

/// The error of a store for which there is neither free memory nor an item that may be evicted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct NoMemory;

/// The metadata stored with a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    /// The flags that the client gave.
    pub flags: u32,
    /// Second of its expiry, 0 for never.
    pub expiry: u32,
    /// [`State`] bits beyond USED and LARGE.
    pub state: u8,
}

/// The result of a lookup.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lookup {
    /// The item exists, and is live.
    Hit(ItemRef),
    /// The store has no item with the key.
    Miss,
    /// The item existed, but had expired.
    Expired,
    /// The item existed, but was stored before a flush_all.
    Flushed,
}

/// The items of one partition.
#[derive(Debug)]
pub struct ItemStore {
    arena: Arena,
    index: Index,
    cas: u64,
    cas_step: u64,
    /// Items of this second and before are flushed, and so are those with lower cas values.
    oldest: u32,
    oldest_cas: u64,
    /// Items of this second and before will be flushed, once it is reached; 0 if there is none.
    to_come: u32,
    total_items: u64,
    sweep: Sweep,
    scratch: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sweep {
    page: usize,
    /// Items of the pages before.
    seen: usize,
    next_second: u32,
    /// Sweeps that have begun.
    starts: u64,
}

impl ItemStore {
    /// Creates an empty store. Cas values are `cas_first`, `cas_first + cas_step`, ... (a step of 0 turns them off), so
    /// that the values of different partitions differ.
    pub fn new(layout: Arc<Layout>, budget: Arc<ItemBudget>, cas_first: u64, cas_step: u64) -> ItemStore {
        ItemStore {
            arena: Arena::new(layout, budget),
            index: Index::new(),
            cas: cas_first.wrapping_sub(cas_step),
            cas_step,
            oldest: 0,
            oldest_cas: 0,
            to_come: 0,
            total_items: 0,
            sweep: Sweep::default(),
            scratch: Vec::new(),
        }
    }

    /// Returns the next cas value; 0 if they are off.
    pub fn next_cas(&mut self) -> u64 {
        self.cas = self.cas.wrapping_add(self.cas_step);
        if self.cas_step == 0 { 0 } else { self.cas }
    }

    /// Looks `key` up at `second`, and removes a dead item. After a large item, [`ItemStore::settle`] is due.
    #[inline]
    pub fn find(&mut self, hash: u64, key: &[u8], second: u32) -> Lookup {
        let Some(item) = self.peek(hash, key) else { return Lookup::Miss };
        let found = self.state_of(item, second);
        if !matches!(found, Lookup::Hit(_)) {
            self.remove(item);
        } else if self.arena.header(item).state & ItemState::LARGE != 0 && !self.arena.has_value(item) {
            self.lose(item, second);
            return Lookup::Miss;
        }
        found
    }

    /// Lets other partitions evict this partition's large values, which a request that has run no longer needs.
    #[inline]
    pub fn settle(&mut self) {
        self.arena.return_large_values();
    }

    /// Returns whether `item` is live at `second`, and if not, the reason.
    #[inline]
    pub fn state_of(&self, item: ItemRef, second: u32) -> Lookup {
        let header = self.arena.header(item);
        if self.flushed(header, second) {
            Lookup::Flushed
        } else if header.expiry.get() != 0 && header.expiry.get() <= second {
            Lookup::Expired
        } else {
            Lookup::Hit(item)
        }
    }

    /// Returns the item of `key`, dead or alive.
    #[inline]
    pub fn peek(&self, hash: u64, key: &[u8]) -> Option<ItemRef> {
        self.index.find(hash as u32, |item| self.arena.key(item) == key)
    }

    /// Prefetches the index entries of `hash`.
    #[inline]
    pub fn prefetch_index(&self, hash: u64) {
        self.index.prefetch(hash as u32);
    }

    /// Prefetches the item of `hash`, by its tag.
    #[inline]
    pub fn prefetch_item(&self, hash: u64) {
        if let Some(item) = self.index.guess(hash as u32) {
            self.arena.prefetch(item);
        }
    }

    /// Returns the header, the key and the value of `item`.
    #[inline]
    pub fn item(&self, item: ItemRef) -> (&Header, &[u8], &[u8]) {
        self.arena.item(item)
    }

    /// Returns the header of `item`.
    pub fn header(&self, item: ItemRef) -> &Header {
        self.arena.header(item)
    }

    /// Returns the header of `item`, to be changed.
    pub fn header_mut(&mut self, item: ItemRef) -> &mut Header {
        self.arena.header_mut(item)
    }

    /// Returns the value of `item`, to be changed in place.
    pub fn value_mut(&mut self, item: ItemRef) -> &mut [u8] {
        self.arena.value_mut(item)
    }

    /// Returns the number of `item`'s class, and the bytes of all its memory.
    pub fn footprint(&self, item: ItemRef) -> (usize, usize) {
        (self.arena.class(item), self.arena.footprint(item))
    }

    /// Notes that `item` was fetched: the second time makes it active.
    #[inline]
    pub fn fetched(&mut self, item: ItemRef, second: u32) {
        let header = self.arena.header_mut(item);
        if header.state & ItemState::ACTIVE == 0 {
            if header.state & ItemState::FETCHED == 0 {
                header.state |= ItemState::FETCHED;
            } else if header.state & ItemState::LARGE == 0 {
                header.state |= ItemState::ACTIVE;
                header.time.set(second);
            } else {
                header.time.set(second);
                self.arena.mark_active(item);
            }
        }
    }

    /// Stores `key` with the value `parts`, one after the other, in place of its present item.
    pub fn put(
        &mut self,
        hash: u64,
        key: &[u8],
        parts: [&[u8]; 2],
        meta: Meta,
        second: u32,
    ) -> Result<ItemRef, NoMemory> {
        let old = self.peek(hash, key);
        let value_bytes = parts[0].len() + parts[1].len();
        let small = self.arena.layout.classes.class_of(HEADER_BYTES + key.len() + value_bytes);
        let heads = self.arena.layout.classes.heads();
        let item = match (old, small) {
            (Some(old), Some(class))
                if self.arena.class(old) == class && self.arena.header(old).state & ItemState::LARGE == 0 =>
            {
                let header = self.arena.header(old);
                let (bytes, is_dead) = (item_bytes(header), self.is_dead(header, second));
                if is_dead {
                    self.note_replaced(old, second);
                }
                self.arena.classes[class].requested -= bytes;
                old
            }
            _ => match self.place(hash, key, parts, small, second) {
                Ok(item) => item,
                Err(NoMemory) => {
                    self.arena.classes[small.unwrap_or(heads)].counts.out_of_memory += 1;
                    return Err(NoMemory);
                }
            },
        };
        let cas = self.next_cas();
        let large = if small.is_some() { 0 } else { ItemState::LARGE };
        let header = Header {
            cas: cas.into(),
            expiry: meta.expiry.into(),
            time: second.into(),
            flags: meta.flags.into(),
            value_bytes: (value_bytes as u32).into(),
            tag: (hash as u32).into(),
            key_bytes: key.len() as u8,
            state: ItemState::USED | large | meta.state,
            padding: [0; 2],
        };
        let class = &mut self.arena.classes[small.unwrap_or(heads)];
        class.requested += item_bytes(&header);
        class.counts.cmd_set += 1;
        self.total_items += 1;
        *self.arena.header_mut(item) = header;
        let (key_place, value_place) = self.arena.chunk_mut(item)[HEADER_BYTES..].split_at_mut(key.len());
        key_place.copy_from_slice(key);
        if small.is_some() {
            value_place[..parts[0].len()].copy_from_slice(parts[0]);
            value_place[parts[0].len()..value_bytes].copy_from_slice(parts[1]);
        }
        Ok(item)
    }

    /// Stores the present value of `key` with `more` put after it, or before it.
    pub fn extend(
        &mut self,
        hash: u64,
        item: ItemRef,
        more: &[u8],
        after: bool,
        second: u32,
    ) -> Result<ItemRef, NoMemory> {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let (header, key, value) = self.arena.item(item);
        let meta = Meta { flags: header.flags.get(), expiry: header.expiry.get(), state: 0 };
        scratch.extend_from_slice(key);
        let key_bytes = key.len();
        scratch.extend_from_slice(value);
        let (key, value) = scratch.split_at(key_bytes);
        let parts = if after { [value, more] } else { [more, value] };
        let stored = self.put(hash, key, parts, meta, second);
        // The buffer does not keep the size of one large item forever.
        self.scratch = if scratch.capacity() > self.arena.layout.page_bytes { Vec::new() } else { scratch };
        stored
    }

    /// Removes `item`, and frees its memory.
    pub fn remove(&mut self, item: ItemRef) {
        let header = *self.arena.header(item);
        let class = self.arena.class(item);
        self.arena.classes[class].requested -= item_bytes(&header);
        self.index.remove(header.tag.get(), item);
        self.arena.free(item);
    }

    /// Flushes the items stored before the second `at`; if `at` is in the future, the items that will have been stored
    /// by then.
    ///
    /// memcached has one date for both, so that there a delayed flush brings back items that an earlier one flushed and
    /// no client has asked for since.
    pub fn flush(&mut self, at: u32, second: u32) {
        if self.to_come != 0 && self.to_come <= second {
            self.oldest = self.oldest.max(self.to_come);
        }
        // Cas values distinguish items of the same second; without them all of its items are flushed.
        let oldest = if self.cas_step == 0 { at } else { at - 1 };
        self.to_come = 0;
        if oldest == 0 {
            // A date before the start flushes nothing, as with memcached.
            self.next_cas();
            return;
        }
        if oldest > second {
            self.to_come = oldest;
            return;
        }
        self.oldest = self.oldest.max(oldest);
        if self.cas_step != 0 {
            self.oldest_cas = self.next_cas();
        }
    }

    fn is_dead(&self, header: &Header, second: u32) -> bool {
        self.flushed(header, second) || is_expired(header, second)
    }

    fn flushed(&self, header: &Header, second: u32) -> bool {
        is_flushed(header, self.oldest_now(second), self.oldest_cas)
    }

    fn oldest_now(&self, second: u32) -> u32 {
        if self.to_come <= second { self.oldest.max(self.to_come) } else { self.oldest }
    }
}

fn is_flushed(header: &Header, oldest: u32, oldest_cas: u64) -> bool {
    let cas = header.cas.get();
    header.time.get() <= oldest || (cas != 0 && cas < oldest_cas)
}

fn is_expired(header: &Header, second: u32) -> bool {
    header.expiry.get() != 0 && header.expiry.get() <= second
}

/// Returns the bytes of an item: its header, its key and its value.
pub fn item_bytes(header: &Header) -> u64 {
    (HEADER_BYTES + usize::from(header.key_bytes)) as u64 + u64::from(header.value_bytes.get())
}

/// The sizes of the store, for `stats`.
impl ItemStore {
    /// Returns the number of items, including dead ones that were not looked up since.
    pub fn count_items(&self) -> u64 {
        self.index.count() as u64
    }

    /// Returns the number of items that were ever stored.
    pub fn total_items(&self) -> u64 {
        self.total_items
    }

    /// Returns the bytes of headers, keys and values.
    pub fn bytes(&self) -> u64 {
        self.arena.classes.iter().map(|class| class.requested).sum()
    }

    /// Returns the bytes of item memory that this partition has.
    pub fn bytes_held(&self) -> u64 {
        self.arena.bytes_held()
    }

    /// Returns the bytes of the index.
    pub fn index_bytes(&self) -> u64 {
        self.index.bytes() as u64
    }

    /// Returns the number of size classes, including the class of large values' heads.
    pub fn class_count(&self) -> usize {
        self.arena.classes.len()
    }

    /// Returns the size class of `item`, from 0.
    pub fn class(&self, item: ItemRef) -> usize {
        self.arena.class(item)
    }

    /// Returns the counts of a class, by its number.
    pub fn count_class(&mut self, class: usize) -> &mut ClassCounts {
        &mut self.arena.classes[class].counts
    }

    /// Returns the counts of the class of `item`.
    #[inline]
    pub fn count(&mut self, item: ItemRef) -> &mut ClassCounts {
        let class = self.arena.class(item);
        self.count_class(class)
    }

    /// Counts a value of `value_bytes` that a client asked to store and that is not stored, in the class for its size.
    pub fn count_set(&mut self, key_bytes: usize, value_bytes: usize) {
        let classes = &self.arena.layout.classes;
        let class = classes.class_of(HEADER_BYTES + key_bytes + value_bytes).unwrap_or(classes.heads());
        self.arena.classes[class].counts.cmd_set += 1;
    }

    /// Returns the counts of all classes together.
    pub fn counts(&self) -> ClassCounts {
        let mut sum = ClassCounts::default();
        self.arena.classes.iter().for_each(|class| crate::stats::add(&mut sum, class.counts.as_bytes()));
        sum
    }

    /// Sets the counts of all classes to zero.
    pub fn reset_counts(&mut self) {
        self.sweep.starts = 0;
        for class in &mut self.arena.classes {
            (class.counts, class.evicted_age) = (ClassCounts::default(), 0);
        }
    }

    /// Returns the number of pages that moved from one class to another.
    pub fn pages_moved(&self) -> u64 {
        self.arena.moved
    }

    /// Returns the number of sweeps that have begun, and whether one is under way or asked for.
    pub fn sweeps(&self, second: u32) -> (u64, bool) {
        (self.sweep.starts, self.sweep.page > 0 || self.sweep.next_second <= second)
    }

    /// Has the next sweep begin with the next idle moment.
    pub fn sweep_soon(&mut self) {
        if self.sweep.page == 0 {
            self.sweep.next_second = 0;
        }
    }

    /// Returns the classes in use, and those with counts.
    pub fn classes(&self, second: u32) -> impl Iterator<Item = ClassReport> + '_ {
        let is_known = |class: &arena::SizeClass| {
            !class.pages.is_empty() || !class.counts.as_bytes().iter().all(|&byte| byte == 0)
        };
        let classes = self.arena.classes.iter().enumerate().filter(move |(_, class)| is_known(class));
        classes.map(move |(number, class)| {
            let chunk_bytes = self.arena.layout.classes.size(number) as u64;
            let age = self.arena.next_time(number).map_or(0, |time| second.saturating_sub(time));
            ClassReport {
                number: number as u64,
                chunk_bytes,
                chunks_per_page: self.arena.layout.page_bytes as u64 / chunk_bytes,
                pages: class.pages.len() as u64,
                used: class.pages.iter().map(|&page| u64::from(self.arena.pages[page as usize].used)).sum(),
                requested: class.requested,
                age: age.into(),
                evicted_age: class.evicted_age.into(),
                counts: class.counts,
            }
        })
    }

    /// Calls `show` with the header, the key and the class of every live item of `page`.
    pub fn look_through(&self, page: usize, second: u32, mut show: impl FnMut(&Header, &[u8], usize)) {
        if page >= self.arena.pages.len() {
            return;
        }
        for item in self.arena.items_of(page) {
            let header = self.arena.header(item);
            if !self.is_dead(header, second) {
                show(header, self.arena.key(item), self.arena.class(item));
            }
        }
    }

    /// Calls `show` with the header, the key and the value of every live item, until it returns an error.
    pub fn for_each_live<E>(
        &mut self,
        second: u32,
        mut show: impl FnMut(&Header, &[u8], &[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        for item in (0..self.arena.pages.len()).flat_map(|page| self.arena.items_of(page)).collect::<Vec<_>>()
        {
            let header = self.arena.header(item);
            let is_large = header.state & ItemState::LARGE != 0;
            if !self.is_dead(header, second) && (!is_large || self.arena.has_value(item)) {
                let (header, key, value) = self.arena.item(item);
                show(header, key, value)?;
            }
        }
        self.settle();
        Ok(())
    }

    /// Returns the greatest cas value that was given, 0 if none was.
    pub fn last_cas(&self) -> u64 {
        // Before the first value it is one step before that, below 0.
        if self.cas > u64::MAX / 2 { 0 } else { self.cas }
    }

    /// Returns the second before which items will be flushed once it is reached; 0 if there is none.
    pub fn flush_to_come(&self, second: u32) -> u32 {
        if self.to_come > second { self.to_come } else { 0 }
    }

    /// Continues where another server has ended: later cas values are greater than `last_cas`, items are flushed at
    /// `to_come` (0 for never), and nothing is counted yet.
    pub fn resume(&mut self, last_cas: u64, to_come: u32) {
        let missing = last_cas.saturating_sub(self.last_cas());
        let steps = missing.div_ceil(self.cas_step.max(1));
        self.cas = self.cas.wrapping_add(steps.wrapping_mul(self.cas_step));
        self.to_come = to_come;
        self.reset_counts();
    }

    /// Returns the pages of `class`.
    pub fn pages_of(&self, class: usize) -> &[u32] {
        self.arena.classes.get(class).map_or(&[], |class| &class.pages)
    }
}

#[cfg(test)]
mod flow_tests;
#[cfg(test)]
mod tests;
