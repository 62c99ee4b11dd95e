//! Pages cut into chunks, a clock hand for each size class, and the large values beside them.
//!
//! ```text
//! allocate(class): free chunk of an open page ─> empty page ─> page from the budget ─> evict under the hand
//!                                                              ─> a page of the class that has the most
//! large item:      head in a page of heads, value outside the pages (`large.rs`)
//! ```
//!
//! Eviction is a clock instead of memcached's three linked lists, with the same rule: an item that was fetched twice
//! since the hand passed is active, and gets a second chance. It needs no pointers, and a fetch touches no other item.

use std::sync::Arc;

use plimsoll_chronos::PagePool;
use plimsoll_memory::prefetch;
use zerocopy::FromBytes;

use crate::counters::ClassCounts;

use super::budget::ItemBudget;
use super::classes::ChunkClasses;
use super::item::{Header, ItemRef, ItemState};
use super::large::large_number;
use super::large_values::LargeValues;
use super::shared_large_values::SharedEntry;

/// Chunks that one eviction examines before it takes an active item.
const HAND_STEPS_MAX: usize = 256;
/// Pages among which the least wanted is emptied.
const PAGES_COMPARED: usize = 4;
/// The end of a free list.
const NO_CHUNK: u16 = u16::MAX;

/// The layout of a partition's memory.
#[derive(Debug)]
pub struct Layout {
    /// The size classes of the partition's chunks.
    pub classes: ChunkClasses,
    /// Bytes of a page, a power of two up to 64 KiB.
    pub page_bytes: usize,
    /// The pool from which pages are taken.
    pub pool: Arc<PagePool>,
    /// Pages that a partition never gives back.
    pub pages_floor: usize,
    /// True if items may be evicted, false with `-M`.
    pub evict: bool,
}

/// One partition's memory.
#[derive(Debug)]
pub struct Arena {
    pub(super) layout: Arc<Layout>,
    pub(super) budget: Arc<ItemBudget>,
    pub(super) pages: Vec<Page>,
    pub(super) classes: Vec<SizeClass>,
    /// Pages with memory and without a class.
    free_pages: Vec<u32>,
    /// Pages that moved from one class to another.
    pub(super) moved: u64,
    /// Pages whose memory was given back.
    gone: Vec<u32>,
    /// The large values, while this partition uses them.
    pub(super) large_values: Option<Box<LargeValues>>,
    /// The partition's entry among the large values of all partitions.
    pub(super) place: Arc<SharedEntry>,
}

#[derive(Debug)]
pub(super) struct Page {
    pub bytes: plimsoll_chronos::Page,
    pub class: u8,
    pub used: u16,
    /// The first chunk that was never used; all later ones are unused too.
    fresh: u16,
    free: u16,
}

#[derive(Clone, Debug, Default)]
pub(super) struct SizeClass {
    pub pages: Vec<u32>,
    /// Pages with a free chunk.
    open: Vec<u32>,
    hand: Hand,
    /// Bytes of its items: headers, keys and values.
    pub requested: u64,
    /// Seconds since the last evicted item had been stored or become active.
    pub evicted_age: u32,
    pub counts: ClassCounts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Hand {
    page: usize,
    chunk: usize,
}

/// The decision on an item under the hand, made by the caller, which knows the expired items.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Expired or flushed: its chunk can be freed without loss.
    Dead,
    /// The item cannot be evicted now.
    Keep,
    /// The item can be evicted.
    Evict,
}

impl Arena {
    /// Creates an arena that owns its floor of the budget. The caller has checked that the budget has it.
    pub fn new(layout: Arc<Layout>, budget: Arc<ItemBudget>) -> Arena {
        let floor = (layout.pages_floor * layout.page_bytes) as u64;
        assert!(budget.take_large(floor), "-m has room for the floor of every partition");
        let classes = vec![SizeClass::default(); layout.classes.count()];
        Arena {
            place: budget.large_values.add(),
            large_values: None,
            layout,
            budget,
            pages: Vec::new(),
            classes,
            free_pages: Vec::new(),
            moved: 0,
            gone: Vec::new(),
        }
    }

    /// Returns the header of `item`.
    #[inline]
    pub fn header(&self, item: ItemRef) -> &Header {
        let bytes = &self.pages[item.page()].bytes[item.offset()..];
        Header::ref_from_prefix(bytes).expect("a chunk holds a header").0
    }

    /// Returns the header of `item`, to be changed.
    #[inline]
    pub fn header_mut(&mut self, item: ItemRef) -> &mut Header {
        let bytes = &mut self.pages[item.page()].bytes[item.offset()..];
        Header::mut_from_prefix(bytes).expect("a chunk holds a header").0
    }

    /// Returns the key of `item`.
    #[inline]
    pub fn key(&self, item: ItemRef) -> &[u8] {
        let bytes = &self.pages[item.page()].bytes[item.offset()..];
        let (header, rest) = Header::ref_from_prefix(bytes).expect("a chunk holds a header");
        &rest[..usize::from(header.key_bytes)]
    }

    /// Returns the header of `item`, its key, and its value. A large one's values are checked out
    /// ([`Arena::has_value`]).
    #[inline]
    pub fn item(&self, item: ItemRef) -> (&Header, &[u8], &[u8]) {
        let bytes = &self.pages[item.page()].bytes[item.offset()..];
        let (header, rest) = Header::ref_from_prefix(bytes).expect("a chunk holds a header");
        let (key, rest) = rest.split_at(usize::from(header.key_bytes));
        if header.state & ItemState::LARGE == 0 {
            (header, key, &rest[..header.value_bytes.get() as usize])
        } else {
            (
                header,
                key,
                self.large_values
                    .as_ref()
                    .expect("a large item is looked for first")
                    .value(large_number(rest)),
            )
        }
    }

    /// Prefetches all lines of `item`'s chunk at once. Memory answers many accesses in the time of one; header, key and
    /// value, each fetched only after the one before, would take three times as long.
    #[inline]
    pub fn prefetch(&self, item: ItemRef) {
        /// Lines beyond this number are fetched by the processor itself, once it sees that they are read in sequence.
        const BYTES_MAX: usize = 20 * 64;
        let page = &self.pages[item.page()];
        let size = self.layout.classes.size(usize::from(page.class)).min(BYTES_MAX);
        prefetch(&page.bytes[item.offset()..][..size]);
    }

    /// Returns the value of `item`, to be changed in place.
    pub fn value_mut(&mut self, item: ItemRef) -> &mut [u8] {
        let bytes = &mut self.pages[item.page()].bytes[item.offset()..];
        let (header, rest) = Header::mut_from_prefix(bytes).expect("a chunk holds a header");
        let rest = &mut rest[usize::from(header.key_bytes)..];
        if header.state & ItemState::LARGE == 0 {
            &mut rest[..header.value_bytes.get() as usize]
        } else {
            let number = large_number(rest);
            self.large_values.as_mut().expect("a large item is looked for first").value_mut(number)
        }
    }

    /// Returns all of `item`'s chunk.
    pub fn chunk_mut(&mut self, item: ItemRef) -> &mut [u8] {
        let page = &mut self.pages[item.page()];
        let size = self.layout.classes.size(usize::from(page.class));
        &mut page.bytes[item.offset()..][..size]
    }

    /// Returns the bytes of the chunk of `item`, and of the allocation beside it.
    pub fn footprint(&self, item: ItemRef) -> usize {
        let header = self.header(item);
        let beside = if header.state & ItemState::LARGE == 0 { 0 } else { header.value_bytes.get() as usize };
        self.layout.classes.size(self.class(item)) + beside
    }

    /// Returns the class of `item`'s chunk.
    pub fn class(&self, item: ItemRef) -> usize {
        usize::from(self.pages[item.page()].class)
    }

    /// Returns a free chunk of `class`, if there is one without evicting.
    pub fn allocate(&mut self, class: usize) -> Option<ItemRef> {
        if self.classes[class].open.is_empty() {
            let page = self.empty_page()?;
            self.assign(page, class);
        }
        let size = self.layout.classes.size(class);
        let number = *self.classes[class].open.last().expect("a page was opened");
        let page = &mut self.pages[number as usize];
        let chunk = if page.free == NO_CHUNK {
            page.fresh += 1;
            page.fresh - 1
        } else {
            let chunk = page.free;
            let header = Header::ref_from_prefix(&page.bytes[usize::from(chunk) * size..]).expect("a chunk");
            page.free = header.0.tag.get() as u16;
            chunk
        };
        page.used += 1;
        if page.free == NO_CHUNK && (usize::from(page.fresh) + 1) * size > page.bytes.len() {
            self.classes[class].open.pop();
        }
        Some(ItemRef::new(number as usize, usize::from(chunk) * size))
    }

    /// Frees the chunk of `item`, and its large value if it has one.
    pub fn free(&mut self, item: ItemRef) {
        if self.header(item).state & ItemState::LARGE != 0 {
            self.free_value(item);
        }
        let number = item.page();
        let page = &mut self.pages[number];
        let class = usize::from(page.class);
        let size = self.layout.classes.size(class);
        let was_full = page.free == NO_CHUNK && (usize::from(page.fresh) + 1) * size > page.bytes.len();
        let next = page.free;
        page.free = (item.offset() / size) as u16;
        page.used -= 1;
        let emptied = page.used == 0;
        let header = self.header_mut(item);
        header.state = 0;
        header.tag.set(u32::from(next));
        if was_full {
            self.classes[class].open.push(number as u32);
        }
        if emptied {
            self.detach(number);
            self.free_pages.push(number as u32);
        }
    }

    /// Moves the hand of `class` to the next item that `judge` allows to evict.
    pub fn victim(&mut self, class: usize, judge: impl Fn(&Header) -> Verdict) -> Option<ItemRef> {
        let size = self.layout.classes.size(class);
        for step in 0..2 * HAND_STEPS_MAX {
            let SizeClass { pages, hand, .. } = &mut self.classes[class];
            if pages.is_empty() {
                return None;
            }
            if hand.page >= pages.len() {
                *hand = Hand::default();
            }
            let number = pages[hand.page] as usize;
            let page = &mut self.pages[number];
            if hand.chunk >= usize::from(page.fresh) {
                *hand = Hand { page: hand.page + 1, chunk: 0 };
                continue;
            }
            let offset = hand.chunk * size;
            hand.chunk += 1;
            let header = Header::mut_from_prefix(&mut page.bytes[offset..]).expect("a chunk").0;
            if header.state & ItemState::USED == 0 {
                continue;
            }
            match judge(header) {
                Verdict::Evict if header.state & ItemState::ACTIVE != 0 && step < HAND_STEPS_MAX => {
                    header.state &= !ItemState::ACTIVE;
                }
                Verdict::Dead | Verdict::Evict => return Some(ItemRef::new(number, offset)),
                Verdict::Keep => {}
            }
        }
        None
    }

    /// Returns the time of the next item of `class` under the hand in its page, if there is one.
    pub fn next_time(&self, class: usize) -> Option<u32> {
        let SizeClass { pages, hand, .. } = &self.classes[class];
        let number = *pages.get(hand.page).or(pages.first())? as usize;
        let first = if hand.page < pages.len() { hand.chunk * self.layout.classes.size(class) } else { 0 };
        let next = self.items_of(number).into_iter().find(|item| item.offset() >= first)?;
        Some(self.header(next).time.get())
    }

    /// Returns the number of chunks of `page` that have been used, and their bytes; 0 if none is used now.
    pub fn chunks_of(&self, page: usize) -> (usize, usize) {
        let Page { bytes, class, fresh, used, .. } = &self.pages[page];
        let is_empty = *used == 0 || bytes.is_empty();
        (if is_empty { 0 } else { usize::from(*fresh) }, self.layout.classes.size(usize::from(*class)))
    }

    /// Returns the items of `page`.
    pub fn items_of(&self, page: usize) -> Vec<ItemRef> {
        let (chunks, size) = self.chunks_of(page);
        (0..chunks)
            .map(|chunk| ItemRef::new(page, chunk * size))
            .filter(|&item| self.header(item).state & ItemState::USED != 0)
            .collect()
    }

    /// Returns the page to be emptied for another class: in the class with the most pages, the page with the fewest
    /// active items among the next under the hand. None if all pages have heads of large items.
    pub fn page_to_empty(&self) -> Option<usize> {
        let small = &self.classes[..self.layout.classes.heads()];
        let SizeClass { pages, hand, .. } = small.iter().max_by_key(|class| class.pages.len())?;
        (1..=pages.len().min(PAGES_COMPARED))
            .map(|ahead| pages[(hand.page + ahead) % pages.len()] as usize)
            .min_by_key(|&page| self.active_items(page))
    }

    fn active_items(&self, page: usize) -> usize {
        let is_active = |&item: &ItemRef| self.header(item).state & ItemState::ACTIVE != 0;
        self.items_of(page).into_iter().filter(is_active).count()
    }

    /// Returns the number of pages that a partition keeps when others need memory.
    pub fn pages_share(&self) -> usize {
        ((self.budget.share() / self.layout.page_bytes as u64) as usize).max(self.layout.pages_floor)
    }

    /// Gives one empty page back, if there is one and the floor stays.
    pub fn give_page_back(&mut self) -> bool {
        if self.pages_held() <= self.layout.pages_floor {
            return false;
        }
        let Some(number) = self.free_pages.pop() else { return false };
        std::mem::take(&mut self.pages[number as usize].bytes).release();
        self.gone.push(number);
        self.budget.give(self.layout.page_bytes as u64);
        true
    }

    /// Returns the number of pages with memory.
    pub fn pages_held(&self) -> usize {
        self.pages.len() - self.gone.len()
    }

    /// Returns the bytes of pages and of large items, as they are in the budget beyond the floor.
    pub fn bytes_held(&self) -> u64 {
        (self.pages_held() * self.layout.page_bytes) as u64 + self.place.bytes()
    }

    fn empty_page(&mut self) -> Option<usize> {
        if let Some(number) = self.free_pages.pop() {
            return Some(number as usize);
        }
        if self.pages_held() == ItemRef::PAGES_MAX {
            return None;
        }
        let is_floor = self.pages_held() < self.layout.pages_floor;
        while !is_floor && !self.budget.take_page(self.layout.page_bytes as u64) {
            if !self.layout.evict || !self.budget.has_many_large() || !self.evict_large() {
                return None;
            }
        }
        let bytes = self.layout.pool.take();
        match self.gone.pop() {
            Some(number) => {
                self.pages[number as usize].bytes = bytes;
                Some(number as usize)
            }
            None => {
                self.pages.push(Page { bytes, class: 0, used: 0, fresh: 0, free: NO_CHUNK });
                self.budget.note_pages(self.pages.len());
                Some(self.pages.len() - 1)
            }
        }
    }

    fn assign(&mut self, number: usize, class: usize) {
        let page = &mut self.pages[number];
        self.moved += u64::from(page.fresh > 0 && usize::from(page.class) != class);
        (page.class, page.used, page.fresh, page.free) = (class as u8, 0, 0, NO_CHUNK);
        self.classes[class].pages.push(number as u32);
        self.classes[class].open.push(number as u32);
    }

    fn detach(&mut self, number: usize) {
        let class = &mut self.classes[usize::from(self.pages[number].class)];
        class.pages.retain(|&page| page as usize != number);
        class.open.retain(|&page| page as usize != number);
    }
}
