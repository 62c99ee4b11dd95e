//! Large items of a partition: a head in a page, with the number of the value's slot on the shelf.
//!
//! Whoever looks at the value of a large item has lent the shelf ([`Arena::has_value`]), and it goes back when the request
//! has run: until then other partitions find room elsewhere.

use super::arena::Arena;
use super::item::{HEADER_BYTES, ItemRef};
use super::shelf::Shelf;

impl Arena {
    /// True if the large item `item` has its value still, which is here until the shelf goes back.
    pub fn has_value(&mut self, item: ItemRef) -> bool {
        let number = self.slot(item);
        !self.shelf().value(number).is_empty()
    }

    /// Makes `item`, whose chunk has its key already, the head of the value `parts`; false if the budget has no more.
    pub fn put_value(&mut self, item: ItemRef, key_bytes: usize, parts: [&[u8]; 2]) -> bool {
        let bytes = (parts[0].len() + parts[1].len()) as u64;
        if !self.budget.take_large(bytes) {
            return false;
        }
        self.budget.shelves.add_bytes(&self.place, bytes);
        let stamp = self.budget.shelves.stamp();
        let number = self.shelf().put(parts.concat().into_boxed_slice(), item, stamp);
        self.chunk_mut(item)[HEADER_BYTES + key_bytes..][..size_of::<u32>()]
            .copy_from_slice(&number.to_le_bytes());
        true
    }

    /// Frees the value of the large item `item`.
    pub(super) fn free_value(&mut self, item: ItemRef) {
        let number = self.slot(item);
        let bytes = self.shelf().remove(number);
        self.budget.shelves.subtract_bytes(&self.place, bytes);
        self.budget.give(bytes);
    }

    /// Notes that the large item `item` is wanted.
    pub fn mark_active(&mut self, item: ItemRef) {
        let number = self.slot(item);
        self.shelf().mark_active(number);
    }

    /// Whether the large item `item` was wanted lately.
    pub fn is_active(&mut self, item: ItemRef) -> bool {
        let number = self.slot(item);
        self.shelf().is_active(number)
    }

    /// The large item of this partition that is wanted least, if there is one.
    pub fn oldest_large(&mut self) -> Option<ItemRef> {
        let stamp = self.budget.shelves.stamp();
        // Each is spared once at most.
        while self.shelf().spare_oldest(stamp) {}
        self.shelf().oldest()
    }

    /// A large item of this partition whose value went to others, until there are no more.
    pub fn next_taken(&mut self) -> Option<ItemRef> {
        self.shelf().next_taken()
    }

    /// Evicts the least wanted large value of all partitions; false if there is none.
    pub fn evict_large(&mut self) -> bool {
        self.return_shelf();
        self.budget.evict_large()
    }

    /// Gives the shelf back, if it is lent.
    #[inline]
    pub fn return_shelf(&mut self) {
        if let Some(shelf) = self.shelf.take() {
            self.place.take_back(shelf);
        }
    }

    fn shelf(&mut self) -> &mut Shelf {
        self.shelf.get_or_insert_with(|| self.place.lend())
    }

    fn slot(&self, item: ItemRef) -> u32 {
        let (page, offset) = (&self.pages[item.page()].bytes, item.offset() + HEADER_BYTES);
        large_number(&page[offset + self.key(item).len()..])
    }
}

/// The number of its slot, from what stands behind a large item's key.
pub(super) fn large_number(rest: &[u8]) -> u32 {
    let (number, _) =
        rest.split_first_chunk::<4>().expect("a large item's chunk has the number of its value");
    u32::from_le_bytes(*number)
}
