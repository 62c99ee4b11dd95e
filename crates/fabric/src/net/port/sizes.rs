//! [`Sizes`]: a first-in first-out queue of packet sizes, in 24 bytes and two more a packet.

use plimsoll_memory::prefetch_for_later;

/// Sizes of waiting packets, in bytes. A `VecDeque` would do the same in 32 bytes, and a port would no longer
/// be one cache line.
#[derive(Debug, Default)]
pub(super) struct Sizes {
    /// The sizes in a ring; its length is a power of two, or zero.
    slots: Box<[u16]>,
    first: u32,
    len: u32,
}

impl Sizes {
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether another size needs more memory.
    #[inline]
    pub(super) fn is_full(&self) -> bool {
        self.len() == self.slots.len()
    }

    #[inline]
    pub(super) fn push(&mut self, size: u16) {
        if self.is_full() {
            self.grow();
        }
        let slot = self.slot(self.len);
        self.slots[slot] = size;
        self.len += 1;
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<u16> {
        if self.is_empty() {
            return None;
        }
        let size = self.slots[self.slot(0)];
        self.first = self.first.wrapping_add(1);
        self.len -= 1;
        Some(size)
    }

    /// Prefetches the size that [`Sizes::pop`] returns next, and the place where [`Sizes::push`] puts another.
    #[inline]
    pub(super) fn prefetch(&self) {
        if let (Some(first), Some(free)) = (self.slots.get(self.slot(0)), self.slots.get(self.slot(self.len)))
        {
            prefetch_for_later(first);
            prefetch_for_later(free);
        }
    }

    /// Returns the slot of the size behind `ahead` others.
    #[inline]
    fn slot(&self, ahead: u32) -> usize {
        self.first.wrapping_add(ahead) as usize & self.slots.len().wrapping_sub(1)
    }

    #[cold]
    fn grow(&mut self) {
        let mut slots = vec![0; (2 * self.slots.len()).max(SLOTS_MIN)].into_boxed_slice();
        for (ahead, slot) in (0..self.len).zip(&mut slots) {
            *slot = self.slots[self.slot(ahead)];
        }
        self.slots = slots;
        self.first = 0;
    }
}

const SLOTS_MIN: usize = 8;

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn sizes_come_out_as_they_went_in(steps in prop::collection::vec((any::<bool>(), any::<u16>()), 0..400)) {
            let (mut sizes, mut model) = (Sizes::default(), VecDeque::new());
            for (push, size) in steps {
                if push {
                    sizes.push(size);
                    model.push_back(size);
                } else {
                    prop_assert_eq!(sizes.pop(), model.pop_front());
                }
                prop_assert_eq!(sizes.len(), model.len());
            }
        }
    }
}
