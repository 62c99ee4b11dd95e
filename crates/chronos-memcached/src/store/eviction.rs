//! Eviction: a partition takes free chunks first, then dead items, then the least used items; and idle work.

use super::arena::Verdict;
use super::item::{Header, ItemRef, ItemState};
use super::{ItemStore, NoMemory, Sweep, is_expired, is_flushed};

/// The number of chunks that one call of [`Store::sweep`] examines.
const SWEEP_CHUNKS: usize = 128;
/// The number of items that sweeps examine in a second on average: the memory of expired items is free again after a
/// second in a small store, and after up to [`SWEEP_SECONDS_MAX`] in a large one.
const SWEEP_ITEMS_A_SECOND: usize = 1000;
/// The longest interval between sweeps in seconds.
const SWEEP_SECONDS_MAX: usize = 60;

impl ItemStore {
    /// Does a part of the idle work: frees memory that other partitions need, and, if `sweeps`, removes expired items,
    /// every second to once a minute. Returns true if there is more to do.
    pub fn housekeeping(&mut self, second: u32, sweeps: bool) -> bool {
        self.forget_taken(second);
        let has_more =
            (self.arena.budget.is_short() && self.give_back(second)) || (sweeps && self.sweep(second));
        self.arena.return_large_values();
        has_more
    }

    /// Gives some memory back; false if there is none to give.
    fn give_back(&mut self, second: u32) -> bool {
        let (budget, evict) = (&self.arena.budget, self.arena.layout.evict);
        let (is_over, has_many_pages) = (budget.taken() > budget.limit(), budget.has_many_pages());
        let keep = if has_many_pages { self.arena.pages_share() } else { self.arena.layout.pages_floor };
        if is_over && evict && !has_many_pages && self.arena.evict_large() {
            return true;
        }
        if self.arena.pages_held() <= keep {
            return false;
        }
        if self.arena.give_page_back() {
            return true;
        }
        let Some(page) = self.arena.page_to_empty().filter(|_| evict) else { return false };
        self.empty(page, second);
        self.arena.give_page_back()
    }

    /// Removes large items whose values were taken for other partitions.
    pub fn forget_taken(&mut self, second: u32) {
        while let Some(item) = self.arena.next_taken() {
            self.lose(item, second);
        }
    }

    fn sweep(&mut self, second: u32) -> bool {
        if second < self.sweep.next_second {
            return false;
        }
        self.sweep.starts += u64::from(self.sweep.page == 0);
        let mut looked_at = 0;
        while looked_at < SWEEP_CHUNKS && self.sweep.page < self.arena.pages.len() {
            let page = self.sweep.page;
            self.sweep.page += 1;
            let (chunks, size) = self.arena.chunks_of(page);
            for item in (0..chunks).map(|chunk| ItemRef::new(page, chunk * size)) {
                let header = *self.arena.header(item);
                if header.state & ItemState::USED == 0 {
                    continue;
                }
                looked_at += 1;
                self.count(item).looked_at += 1;
                if self.is_dead(&header, second) {
                    self.count(item).swept += 1;
                    self.count_expired(item, &header);
                    self.remove(item);
                }
            }
        }
        self.sweep.seen += looked_at;
        if self.sweep.page >= self.arena.pages.len() {
            let pause = (self.sweep.seen / SWEEP_ITEMS_A_SECOND).clamp(1, SWEEP_SECONDS_MAX);
            self.sweep = Sweep { page: 0, seen: 0, next_second: second + pause as u32, ..self.sweep };
            return false;
        }
        true
    }

    /// Creates a new place for `key` in the index and in memory; its old item is removed.
    pub(super) fn place(
        &mut self,
        hash: u64,
        key: &[u8],
        parts: [&[u8]; 2],
        small: Option<usize>,
        second: u32,
    ) -> Result<ItemRef, NoMemory> {
        let item = match small {
            Some(class) => self.allocate(class, second).ok_or(NoMemory)?,
            None => self.allocate_large(key, parts, second)?,
        };
        // Looked up again: the memory may have come from it.
        if let Some(old) = self.peek(hash, key) {
            self.note_replaced(old, second);
            self.remove(old);
        }
        self.index.insert(hash as u32, item);
        Ok(item)
    }

    fn allocate(&mut self, class: usize, second: u32) -> Option<ItemRef> {
        loop {
            if let Some(item) = self.arena.allocate(class) {
                return Some(item);
            }
            if !self.make_room(class, second) {
                return None;
            }
        }
    }

    fn allocate_large(&mut self, key: &[u8], parts: [&[u8]; 2], second: u32) -> Result<ItemRef, NoMemory> {
        self.forget_taken(second);
        let item = self.allocate(self.arena.layout.classes.heads(), second).ok_or(NoMemory)?;
        // With state 0, these bytes are not taken for an item while room is made.
        self.arena.header_mut(item).state = 0;
        while !self.arena.put_value(item, key.len(), parts) {
            if !self.make_room_for_large(second) {
                self.arena.free(item);
                return Err(NoMemory);
            }
        }
        Ok(item)
    }

    /// Gives memory back for a large value; false if nothing may be evicted.
    fn make_room_for_large(&mut self, second: u32) -> bool {
        if self.arena.give_page_back() {
            return true;
        }
        if !self.arena.layout.evict {
            return false;
        }
        let held = self.arena.pages_held();
        let has_share = held > self.arena.pages_share() && self.arena.budget.has_many_pages();
        if !has_share && self.arena.evict_large() {
            return true;
        }
        match self.arena.page_to_empty() {
            Some(page) if held > self.arena.layout.pages_floor => {
                self.empty(page, second);
                true
            }
            _ => self.arena.evict_large(),
        }
    }

    /// Frees a chunk of `class`, or a page for it; false if nothing may be evicted.
    fn make_room(&mut self, class: usize, second: u32) -> bool {
        if class == self.arena.layout.classes.heads() {
            return self.make_room_for_head(second);
        }
        let (oldest, evict) = (self.oldest_now(second), self.arena.layout.evict);
        let oldest_cas = self.oldest_cas;
        let judge = |header: &Header| {
            if is_flushed(header, oldest, oldest_cas) || is_expired(header, second) {
                Verdict::Dead
            } else if evict {
                Verdict::Evict
            } else {
                Verdict::Keep
            }
        };
        if let Some(item) = self.arena.victim(class, judge) {
            self.lose(item, second);
            return true;
        }
        evict && self.empty_one(second)
    }

    /// Frees the head of a large item, or a page for it; false if nothing may be evicted.
    fn make_room_for_head(&mut self, second: u32) -> bool {
        if !self.arena.layout.evict {
            return false;
        }
        match self.arena.oldest_large() {
            Some(item) => {
                self.lose(item, second);
                true
            }
            None => self.empty_one(second),
        }
    }

    /// Empties a page of small items, or if there is none, frees the head of a large one; false if there is nothing.
    fn empty_one(&mut self, second: u32) -> bool {
        if let Some(page) = self.arena.page_to_empty() {
            self.empty(page, second);
            return true;
        }
        let Some(item) = self.arena.oldest_large() else { return false };
        self.lose(item, second);
        true
    }

    fn empty(&mut self, page: usize, second: u32) {
        for item in self.arena.items_of(page) {
            self.lose(item, second);
        }
    }

    pub(super) fn lose(&mut self, item: ItemRef, second: u32) {
        let header = *self.arena.header(item);
        if self.is_dead(&header, second) {
            self.count(item).reclaimed += 1;
            self.count_expired(item, &header);
        } else {
            let is_large = header.state & ItemState::LARGE != 0;
            let is_active =
                if is_large { self.arena.is_active(item) } else { header.state & ItemState::ACTIVE != 0 };
            let class = self.arena.class(item);
            let class = &mut self.arena.classes[class];
            class.evicted_age = second.saturating_sub(header.time.get());
            class.counts.evicted += 1;
            class.counts.evicted_nonzero += u64::from(header.expiry.get() != 0);
            class.counts.evicted_unfetched += u64::from(header.state & ItemState::FETCHED == 0);
            class.counts.evicted_active += u64::from(is_active);
        }
        self.remove(item);
    }

    /// Counts an item whose key is stored again, if it was dead: its memory is reclaimed.
    #[cold]
    pub(super) fn note_replaced(&mut self, item: ItemRef, second: u32) {
        let header = *self.arena.header(item);
        if !self.is_dead(&header, second) {
            return;
        }
        let is_flushed = self.flushed(&header, second);
        let counts = self.count(item);
        counts.reclaimed += 1;
        counts.replaced_flushed += u64::from(is_flushed);
        counts.replaced_expired += u64::from(!is_flushed);
        self.count_expired(item, &header);
    }

    fn count_expired(&mut self, item: ItemRef, header: &Header) {
        self.count(item).expired_unfetched += u64::from(header.state & ItemState::FETCHED == 0);
    }
}
