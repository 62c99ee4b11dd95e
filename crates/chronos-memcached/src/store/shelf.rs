//! A partition's large values, in the order in which they came. Another is made room for at the oldest end, by the same
//! rule as in the pages: a value that was fetched twice since it came by is active, and spared once.

use super::item::ItemRef;

/// The large values of one partition.
#[derive(Debug)]
pub struct Shelf {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Slots whose values were taken for other partitions; the owner has yet to forget their items.
    taken: Vec<u32>,
    newest: u32,
    oldest: u32,
}

#[derive(Debug)]
struct Slot {
    /// Empty if it was taken, or if the slot is free.
    value: Box<[u8]>,
    /// Whose value it is; None in a free slot.
    item: Option<ItemRef>,
    /// When it came, or was spared: greater is later.
    stamp: u64,
    is_active: bool,
    newer: u32,
    older: u32,
}

/// What an attempt at the oldest value came to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attempt {
    /// There is none.
    Nothing,
    /// It was active, and is the newest instead.
    Spared,
    /// It was taken: so many bytes.
    Taken(u64),
}

/// No slot.
const NONE: u32 = u32::MAX;

impl Shelf {
    /// An empty one.
    pub fn new() -> Shelf {
        Shelf { slots: Vec::new(), free: Vec::new(), taken: Vec::new(), newest: NONE, oldest: NONE }
    }

    /// Puts the value of `item`, at least one byte, there as the newest, and says the number of its slot.
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

    /// Frees a slot, and says how many bytes that gives: none if the value was taken before.
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

    /// The value in a slot; empty if it was taken.
    pub fn value(&self, number: u32) -> &[u8] {
        &self.slots[number as usize].value
    }

    /// The value in a slot, to be changed in place.
    pub fn value_mut(&mut self, number: u32) -> &mut [u8] {
        &mut self.slots[number as usize].value
    }

    /// Notes that a value is wanted: it is spared once.
    pub fn mark_active(&mut self, number: u32) {
        self.slots[number as usize].is_active = true;
    }

    /// Whether a value would be spared, or would have been when it was taken.
    pub fn is_active(&self, number: u32) -> bool {
        self.slots[number as usize].is_active
    }

    /// The item of the oldest value, if there is one.
    pub fn oldest(&self) -> Option<ItemRef> {
        self.slots.get(self.oldest as usize)?.item
    }

    /// When the oldest value came.
    pub fn oldest_stamp(&self) -> Option<u64> {
        self.slots.get(self.oldest as usize).map(|slot| slot.stamp)
    }

    /// Makes the oldest value the newest, with the stamp `stamp`, if it is active; false if it is not, or there is none.
    pub fn spare_oldest(&mut self, stamp: u64) -> bool {
        let number = self.oldest;
        let Some(slot) = self.slots.get_mut(number as usize).filter(|slot| slot.is_active) else {
            return false;
        };
        (slot.is_active, slot.stamp) = (false, stamp);
        self.unlink(number);
        self.link(number);
        true
    }

    /// Takes the oldest value away, for the owner to find out, or spares it (if `may_spare`) with the stamp `stamp`.
    pub fn take_oldest(&mut self, may_spare: bool, stamp: u64) -> Attempt {
        if may_spare && self.spare_oldest(stamp) {
            return Attempt::Spared;
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

    /// An item whose value was taken, until there are no more.
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

    fn shelf(values: usize) -> Shelf {
        let mut shelf = Shelf::new();
        for number in 0..values {
            shelf.put(vec![0; number + 1].into_boxed_slice(), ItemRef(number as u32), number as u64);
        }
        shelf
    }

    #[test]
    fn the_oldest_goes_and_an_active_one_is_spared_once() {
        let mut shelf = shelf(4);
        shelf.mark_active(0);
        assert_eq!(shelf.take_oldest(true, 10), Attempt::Spared);
        assert_eq!(shelf.oldest_stamp(), Some(1));
        for bytes in [2, 3, 4, 1] {
            assert_eq!(shelf.take_oldest(true, 11), Attempt::Taken(bytes));
        }
        assert_eq!(shelf.take_oldest(true, 12), Attempt::Nothing);
        assert_eq!((shelf.oldest(), shelf.oldest_stamp()), (None, None));
    }

    #[test]
    fn the_owner_learns_what_was_taken_once() {
        let mut shelf = shelf(3);
        for _ in 0..3 {
            shelf.take_oldest(false, 10);
        }
        // One it finds by itself, and the slot has another value then.
        assert_eq!(shelf.remove(1), 0);
        assert_eq!(shelf.put(Box::new([7]), ItemRef(9), 11), 1);
        let mut told: Vec<u32> = std::iter::from_fn(|| shelf.next_taken()).map(|item| item.0).collect();
        told.sort_unstable();
        assert_eq!(told, [0, 2]);
        assert_eq!(shelf.value(1), [7]);
        assert_eq!(shelf.remove(1), 1);
    }

    #[test]
    fn values_leave_from_the_middle() {
        let mut shelf = shelf(5);
        for (number, bytes) in [(2, 3), (4, 5), (0, 1)] {
            assert_eq!(shelf.remove(number), bytes);
        }
        assert_eq!(shelf.take_oldest(true, 10), Attempt::Taken(2));
        assert_eq!(shelf.oldest(), Some(ItemRef(3)));
    }
}
