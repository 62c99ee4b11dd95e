//! A partition's large values, in the order in which they were stored. The oldest is evicted first, by the same rule as
//! in the pages: a value that was fetched twice since it was stored or requeued is active, and gets a second chance.

use super::item::ItemRef;

/// The large values of one partition.
#[derive(Debug)]
pub struct LargeValues {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots whose values were evicted by other partitions; the owner has yet to remove their items.
    taken: Vec<u32>,
    newest: u32,
    oldest: u32,
}

#[derive(Debug)]
struct Slot {
    /// Empty if it was taken, or if the slot is free.
    value: Box<[u8]>,
    /// The item that has the value; None in a free slot.
    item: Option<ItemRef>,
    /// The order in which values were stored or requeued: greater is later.
    stamp: u64,
    is_active: bool,
    newer: u32,
    older: u32,
}

/// The result of an attempt to evict the oldest value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attempt {
    /// No value could be evicted.
    Nothing,
    /// The value was active, and was requeued as the newest.
    SecondChance,
    /// The value was evicted, and had this number of bytes.
    Taken(u64),
}

/// The end of the list of slots.
const NONE: u32 = u32::MAX;

impl LargeValues {
    /// Creates a collection without values.
    pub fn new() -> LargeValues {
        LargeValues { slots: Vec::new(), free: Vec::new(), taken: Vec::new(), newest: NONE, oldest: NONE }
    }

    /// Adds the value of `item`, at least one byte, as the newest, and returns the number of its slot.
    pub fn put(&mut self, value: Box<[u8]>, item: ItemRef, stamp: u64) -> u32 {
        debug_assert!(!value.is_empty(), "an empty value is no large one");
        let slot = Slot { value, item: Some(item), stamp, is_active: false, newer: NONE, older: NONE };
        let number = match self.free.pop() {
            Some(number) => {
                self.slots[number as usize] = slot;
                number
            }
            None => {
                self.slots.push(slot);
                (self.slots.len() - 1) as u32
            }
        };
        self.link(number);
        number
    }

    /// Frees a slot, and returns the number of bytes freed: none if the value was taken before.
    pub fn remove(&mut self, number: u32) -> u64 {
        let bytes = self.value(number).len() as u64;
        if bytes > 0 {
            self.unlink(number);
        }
        let slot = &mut self.slots[number as usize];
        (slot.value, slot.item) = (Box::default(), None);
        self.free.push(number);
        bytes
    }

    /// Returns the value in a slot; empty if it was taken.
    pub fn value(&self, number: u32) -> &[u8] {
        &self.slots[number as usize].value
    }

    /// Returns the value in a slot, to be changed in place.
    pub fn value_mut(&mut self, number: u32) -> &mut [u8] {
        &mut self.slots[number as usize].value
    }

    /// Marks a value as active, which gives it a second chance.
    pub fn mark_active(&mut self, number: u32) {
        self.slots[number as usize].is_active = true;
    }

    /// Reports whether a value would be spared, or would have been when it was taken.
    pub fn is_active(&self, number: u32) -> bool {
        self.slots[number as usize].is_active
    }

    /// Returns the item of the oldest value, if there is one.
    pub fn oldest(&self) -> Option<ItemRef> {
        self.slots.get(self.oldest as usize)?.item
    }

    /// Returns the stamp of the oldest value.
    pub fn oldest_stamp(&self) -> Option<u64> {
        self.slots.get(self.oldest as usize).map(|slot| slot.stamp)
    }

    /// Makes the oldest value the newest, with the stamp `stamp`, if it is active; false if it is not, or there is
    /// none.
    pub fn requeue_oldest(&mut self, stamp: u64) -> bool {
        let number = self.oldest;
        let Some(slot) = self.slots.get_mut(number as usize).filter(|slot| slot.is_active) else {
            return false;
        };
        (slot.is_active, slot.stamp) = (false, stamp);
        self.unlink(number);
        self.link(number);
        true
    }

    /// Takes the oldest value away, which the owner notices later, or spares it (if `may_requeue`) with the stamp
    /// `stamp`.
    pub fn take_oldest(&mut self, may_requeue: bool, stamp: u64) -> Attempt {
        if may_requeue && self.requeue_oldest(stamp) {
            return Attempt::SecondChance;
        }
        let number = self.oldest;
        if number == NONE {
            return Attempt::Nothing;
        }
        self.unlink(number);
        self.taken.push(number);
        let value = std::mem::take(&mut self.slots[number as usize].value);
        Attempt::Taken(value.len() as u64)
    }

    /// Returns an item whose value was taken, until there are no more.
    pub fn next_taken(&mut self) -> Option<ItemRef> {
        loop {
            let slot = &self.slots[self.taken.pop()? as usize];
            // The owner may have found it, and used the slot again.
            if slot.value.is_empty() && slot.item.is_some() {
                return slot.item;
            }
        }
    }

    fn link(&mut self, number: u32) {
        let slot = &mut self.slots[number as usize];
        (slot.newer, slot.older) = (NONE, self.newest);
        match self.slots.get_mut(self.newest as usize) {
            Some(before) => before.newer = number,
            None => self.oldest = number,
        }
        self.newest = number;
    }

    fn unlink(&mut self, number: u32) {
        let Slot { newer, older, .. } = self.slots[number as usize];
        match self.slots.get_mut(newer as usize) {
            Some(slot) => slot.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(slot) => slot.newer = newer,
            None => self.oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(count: usize) -> LargeValues {
        let mut values = LargeValues::new();
        for number in 0..count {
            values.put(vec![0; number + 1].into_boxed_slice(), ItemRef(number as u32), number as u64);
        }
        values
    }

    #[test]
    fn the_oldest_goes_and_an_active_one_is_spared_once() {
        let mut values = filled(4);
        values.mark_active(0);
        assert_eq!(values.take_oldest(true, 10), Attempt::SecondChance);
        assert_eq!(values.oldest_stamp(), Some(1));
        for bytes in [2, 3, 4, 1] {
            assert_eq!(values.take_oldest(true, 11), Attempt::Taken(bytes));
        }
        assert_eq!(values.take_oldest(true, 12), Attempt::Nothing);
        assert_eq!((values.oldest(), values.oldest_stamp()), (None, None));
    }

    #[test]
    fn the_owner_learns_what_was_taken_once() {
        let mut values = filled(3);
        for _ in 0..3 {
            values.take_oldest(false, 10);
        }
        // The owner finds one by itself, and the slot has another value then.
        assert_eq!(values.remove(1), 0);
        assert_eq!(values.put(Box::new([7]), ItemRef(9), 11), 1);
        let mut told: Vec<u32> = std::iter::from_fn(|| values.next_taken()).map(|item| item.0).collect();
        told.sort_unstable();
        assert_eq!(told, [0, 2]);
        assert_eq!(values.value(1), [7]);
        assert_eq!(values.remove(1), 1);
    }

    #[test]
    fn values_leave_from_the_middle() {
        let mut values = filled(5);
        for (number, bytes) in [(2, 3), (4, 5), (0, 1)] {
            assert_eq!(values.remove(number), bytes);
        }
        assert_eq!(values.take_oldest(true, 10), Attempt::Taken(2));
        assert_eq!(values.oldest(), Some(ItemRef(3)));
    }
}
