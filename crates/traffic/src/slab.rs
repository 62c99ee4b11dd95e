//! [`Slab`]: values under small numbers that are reused.

/// A vector with holes.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    slots: Vec<Option<T>>,
    free: Vec<usize>,
}

impl<T> Default for Slab<T> {
    fn default() -> Slab<T> {
        Slab { slots: Vec::new(), free: Vec::new() }
    }
}

impl<T> Slab<T> {
    pub(crate) fn insert(&mut self, value: T) -> usize {
        if let Some(slot) = self.free.pop() {
            self.slots[slot] = Some(value);
            slot
        } else {
            self.slots.push(Some(value));
            self.slots.len() - 1
        }
    }

    pub(crate) fn get_mut(&mut self, slot: usize) -> &mut T {
        self.slots[slot].as_mut().expect("a slot is used between insert and remove")
    }

    pub(crate) fn remove(&mut self, slot: usize) -> T {
        self.free.push(slot);
        self.slots[slot].take().expect("a slot is used between insert and remove")
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.slots.len() == self.free.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.slots.iter().flatten()
    }
}
