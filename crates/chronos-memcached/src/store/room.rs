//! How a partition finds room: free chunks, then what is dead, then what is wanted least; and what it does when idle.

use super::arena::Verdict;
use super::item::{HEADER_BYTES, Header, ItemRef, State};
use super::{NoMemory, Store, Sweep, is_expired, is_flushed};

/// Chunks that one call of [`Store::sweep`] looks at.
const SWEEP_CHUNKS: usize = 128;
/// Seconds between sweeps.
const SWEEP_SECONDS: u32 = 60;

impl Store {
    /// A bit of what waits for idle moments: memory that another partition wants, and expired items once a minute.
    /// True if there is more.
    pub fn housekeeping(&mut self, second: u32) -> bool {
        if self.arena.budget.wanted() && self.arena.pages_held() > self.arena.layout.pages_floor {
            if !self.arena.give_page_back()
                && let Some(page) = self.arena.page_to_empty()
            {
                self.empty(page, second);
                self.arena.give_page_back();
            }
            return true;
        }
        self.sweep(second)
    }

    fn sweep(&mut self, second: u32) -> bool {
        if second < self.sweep.next_second {
            return false;
        }
        let mut looked_at = 0;
        while looked_at < SWEEP_CHUNKS && self.sweep.page < self.arena.pages.len() {
            let items = self.arena.items_of(self.sweep.page);
            self.sweep.page += 1;
            looked_at += items.len();
            for item in items {
                let header = *self.arena.header(item);
                if self.is_dead(&header, second) {
                    self.losses.swept += 1;
                    self.count_expired(&header);
                    self.remove(item);
                }
            }
        }
        self.losses.looked_at += looked_at as u64;
        if self.sweep.page >= self.arena.pages.len() {
            self.sweep = Sweep { page: 0, next_second: second + SWEEP_SECONDS };
            return false;
        }
        true
    }

    /// A new place for `key` in the index and in memory; what it had is gone.
    pub(super) fn place(
        &mut self,
        hash: u64,
        key: &[u8],
        parts: [&[u8]; 2],
        small: Option<usize>,
        second: u32,
    ) -> Result<ItemRef, NoMemory> {
        let head = HEADER_BYTES + key.len() + size_of::<u32>();
        let class = small.or_else(|| self.arena.layout.classes.class_of(head)).expect("keys are short");
        let large = match small {
            Some(_) => None,
            None => Some(self.allocate_large(parts, second)?),
        };
        let Some(item) = self.allocate(class, second) else {
            if let Some(number) = large {
                self.arena.free_large(number);
            }
            return Err(NoMemory);
        };
        // Looked for again: the memory may have come from it.
        if let Some(old) = self.peek(hash, key) {
            self.remove(old);
        }
        self.index.insert(hash as u32, item);
        if let Some(number) = large {
            self.arena.chunk_mut(item)[HEADER_BYTES + key.len()..][..4]
                .copy_from_slice(&number.to_le_bytes());
        }
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

    fn allocate_large(&mut self, parts: [&[u8]; 2], second: u32) -> Result<u32, NoMemory> {
        loop {
            if let Some(number) = self.arena.allocate_large(parts) {
                return Ok(number);
            }
            if self.arena.give_page_back() {
                continue;
            }
            // Other large items of this partition first: their heads are in some class, and the hand finds them there.
            let floor = self.arena.pages_held() <= self.arena.layout.pages_floor;
            let page = if self.arena.layout.evict { self.arena.page_to_empty() } else { None };
            let Some(page) = page.filter(|_| !floor || self.arena.large_bytes() > 0) else {
                return Err(NoMemory);
            };
            self.empty(page, second);
        }
    }

    /// Frees a chunk of `class`, or a page for it; false if nothing may be evicted.
    fn make_room(&mut self, class: usize, second: u32) -> bool {
        let (oldest, evict) = (self.oldest_now(second), self.arena.layout.evict);
        let oldest_cas = self.oldest_cas;
        let judge = |header: &Header| {
            if is_flushed(header, oldest, oldest_cas) || is_expired(header, second) {
                Verdict::Dead
            } else if evict {
                Verdict::Evict
            } else {
                Verdict::Spare
            }
        };
        if let Some(item) = self.arena.victim(class, judge) {
            self.lose(item, second);
            return true;
        }
        match self.arena.page_to_empty() {
            Some(page) if evict => {
                self.empty(page, second);
                true
            }
            _ => false,
        }
    }

    fn empty(&mut self, page: usize, second: u32) {
        for item in self.arena.items_of(page) {
            self.lose(item, second);
        }
    }

    fn lose(&mut self, item: ItemRef, second: u32) {
        let header = *self.arena.header(item);
        if self.is_dead(&header, second) {
            self.losses.reclaimed += 1;
            self.count_expired(&header);
        } else {
            self.losses.evicted += 1;
            self.losses.evicted_unfetched += u64::from(header.state & State::FETCHED == 0);
            self.losses.evicted_active += u64::from(header.state & State::ACTIVE != 0);
            let class = self.arena.class(item);
            self.arena.classes[class].evictions += 1;
        }
        self.remove(item);
    }

    fn count_expired(&mut self, header: &Header) {
        self.losses.expired_unfetched += u64::from(header.state & State::FETCHED == 0);
    }
}
