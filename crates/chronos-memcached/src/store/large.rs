//! Large items of a partition: a head in a page, with the number of the value's slot on the values.
//!
//! Access to the value of a large item checks the partition's values out ([`Arena::has_value`]); they are checked in
//! when the request has run. Until then other partitions evict elsewhere.

use super::arena::Arena;
use super::item::{HEADER_BYTES, ItemRef};
use super::large_values::LargeValues;

impl Arena {
    /// Reports whether the large item `item` still has its value, which stays until the values are checked in.
    pub fn has_value(&mut self, item: ItemRef) -> bool {
        let number = self.slot(item);
        !self.large_values().value(number).is_empty()
    }

    /// Makes `item`, whose chunk has its key already, the head of the value `parts`; false if the budget has no more.
    pub fn put_value(&mut self, item: ItemRef, key_bytes: usize, parts: [&[u8]; 2]) -> bool {
        let bytes = (parts[0].len() + parts[1].len()) as u64;
        if !self.budget.take_large(bytes) {
            return false;
        }
        self.budget.large_values.add_bytes(&self.place, bytes);
        let stamp = self.budget.large_values.stamp();
        let number = self.large_values().put(parts.concat().into_boxed_slice(), item, stamp);
        self.chunk_mut(item)[HEADER_BYTES + key_bytes..][..size_of::<u32>()]
            .copy_from_slice(&number.to_le_bytes());
        true
    }

    /// Frees the value of the large item `item`.
    pub(super) fn free_value(&mut self, item: ItemRef) {
        let number = self.slot(item);
        let bytes = self.large_values().remove(number);
        self.budget.large_values.subtract_bytes(&self.place, bytes);
        self.budget.give(bytes);
    }

    /// Notes that the large item `item` was fetched.
    pub fn mark_active(&mut self, item: ItemRef) {
        let number = self.slot(item);
        self.large_values().mark_active(number);
    }

    /// Reports whether the large item `item` was fetched lately.
    pub fn is_active(&mut self, item: ItemRef) -> bool {
        let number = self.slot(item);
        self.large_values().is_active(number)
    }

    /// Returns the least wanted large item of this partition, if there is one.
    pub fn oldest_large(&mut self) -> Option<ItemRef> {
        let stamp = self.budget.large_values.stamp();
        // Each is requeued once at most.
        while self.large_values().requeue_oldest(stamp) {}
        self.large_values().oldest()
    }

    /// Returns a large item of this partition whose value was taken for others, until there are no more.
    pub fn next_taken(&mut self) -> Option<ItemRef> {
        self.large_values().next_taken()
    }

    /// Evicts the least wanted large value of all partitions; false if there is none.
    pub fn evict_large(&mut self) -> bool {
        self.return_large_values();
        self.budget.evict_large()
    }

    /// Checks the values in, if they are checked out.
    #[inline]
    pub fn return_large_values(&mut self) {
        if let Some(values) = self.large_values.take() {
            self.budget.check_in(&self.place, values);
        }
    }

    fn large_values(&mut self) -> &mut LargeValues {
        self.large_values.get_or_insert_with(|| self.place.check_out())
    }

    fn slot(&self, item: ItemRef) -> u32 {
        let (page, offset) = (&self.pages[item.page()].bytes, item.offset() + HEADER_BYTES);
        large_number(&page[offset + self.key(item).len()..])
    }
}

/// Returns the number of its slot, from the bytes behind a large item's key.
pub(super) fn large_number(rest: &[u8]) -> u32 {
    let (number, _) =
        rest.split_first_chunk::<4>().expect("a large item's chunk has the number of its value");
    u32::from_le_bytes(*number)
}
