//! [`Notes`]: sixteen bytes beside each packet's slot.
//!
//! A packet is on a link or waits at a port. Either is a list of slots, and the fields that a list needs of its packets
//! are in one table, so that the packets' own cache lines are not touched:
//!
//! ```text
//! on a link    when the packet behind arrives, its slot, and where this one goes next
//! in a queue   since when this one waits, the slot of the packet behind, and size and priority of this one
//! ```

use plimsoll_memory::prefetch_for_later;
use plimsoll_units::Time;

use super::Slot;

/// The notes of all slots, by number.
#[derive(Debug, Default)]
pub struct Notes(Vec<Note>);

/// The fields that a list of slots needs of one of its packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Note {
    /// On a link, when the packet behind arrives; in a queue, since when this packet waits.
    pub(crate) time: Time,
    /// The number of the slot of the packet behind; [`Note::LAST`] for the last.
    pub(crate) behind: u32,
    /// On a link, the next hop; in a queue, the fields by which it decides.
    pub(crate) word: u32,
}

impl Note {
    /// The number that means no slot.
    pub(crate) const LAST: u32 = u32::MAX;
}

const _: () = assert!(size_of::<Note>() == 16, "four fit into a cache line");

impl Notes {
    /// Adds the note of the next slot.
    pub fn add(&mut self) {
        self.0.push(Note { time: Time::ZERO, behind: Note::LAST, word: 0 });
    }

    #[inline]
    pub(crate) fn get(&self, slot: u32) -> Note {
        self.0[slot as usize]
    }

    #[inline]
    pub(crate) fn of(&mut self, slot: u32) -> &mut Note {
        &mut self.0[slot as usize]
    }

    /// Returns the note of a slot, if there is that slot.
    #[inline]
    pub(crate) fn find(&self, slot: u32) -> Option<&Note> {
        self.0.get(slot as usize)
    }

    /// Prefetches the note of a slot, which is used after many other events.
    #[inline]
    pub(crate) fn prefetch_for_later(&self, slot: Slot) {
        if let Some(note) = self.find(slot.number()) {
            prefetch_for_later(note);
        }
    }
}
