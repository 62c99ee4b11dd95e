//! [`SlotQueue`]: packets that wait, first come, first served.

use plimsoll_units::Time;

use super::waiting::Waiting;
use crate::net::{Note, Notes, Packet, Sink, Slot};

/// A list of the slots of packets that wait, in eight bytes: the rest is in the notes of the packets.
#[derive(Clone, Copy, Debug)]
pub struct SlotQueue {
    /// The slot of the oldest packet; [`Note::LAST`] if none waits.
    first: u32,
    /// The slot of the newest packet.
    last: u32,
}

impl Default for SlotQueue {
    fn default() -> SlotQueue {
        SlotQueue { first: Note::LAST, last: Note::LAST }
    }
}

impl SlotQueue {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.first == Note::LAST
    }

    /// Returns the slot of the oldest packet.
    #[inline]
    pub(super) fn first(&self) -> Option<Slot> {
        (!self.is_empty()).then_some(Slot::new(self.first))
    }

    /// Returns the oldest packet.
    #[inline]
    pub(super) fn front(&self, notes: &Notes) -> Option<Waiting> {
        (!self.is_empty()).then(|| unpacked(self.first, notes.get(self.first)))
    }

    /// Returns the slots of all packets, the oldest first.
    pub(super) fn slots(&self, notes: &Notes) -> Vec<Slot> {
        let behind = |slot: &Slot| {
            let behind = notes.get(slot.number()).behind;
            (behind != Note::LAST).then_some(Slot::new(behind))
        };
        std::iter::successors(self.first(), behind).collect()
    }

    #[inline]
    pub(super) fn push(&mut self, waiting: Waiting, notes: &mut Notes) {
        let slot = waiting.slot.number();
        *notes.of(slot) = packed(waiting);
        if self.is_empty() {
            self.first = slot;
        } else {
            notes.of(self.last).behind = slot;
        }
        self.last = slot;
    }

    /// Removes the oldest packet, if it `may` go.
    #[inline]
    pub(super) fn pop_if(&mut self, notes: &Notes, may: impl FnOnce(&Waiting) -> bool) -> Option<Waiting> {
        if self.is_empty() {
            return None;
        }
        let note = notes.get(self.first);
        let waiting = unpacked(self.first, note);
        may(&waiting).then(|| {
            self.first = note.behind;
            waiting
        })
    }

    /// Removes the newest packet, if it `may` go. It takes a step for each packet.
    pub(super) fn take_newest(
        &mut self,
        sink: &mut impl Sink,
        may: impl Fn(&Packet) -> bool,
    ) -> Option<Waiting> {
        if self.is_empty() || !may(sink.packet(Slot::new(self.last))) {
            return None;
        }
        let notes = sink.notes_mut();
        let newest = unpacked(self.last, notes.get(self.last));
        if self.first == self.last {
            self.first = Note::LAST;
            return Some(newest);
        }
        let mut before = self.first;
        while notes.get(before).behind != self.last {
            before = notes.get(before).behind;
        }
        notes.of(before).behind = Note::LAST;
        self.last = before;
        Some(newest)
    }
}

#[inline]
fn packed(waiting: Waiting) -> Note {
    let Waiting { since, size, priority, draws, .. } = waiting;
    let word = u32::from(size) | u32::from(priority) << 16 | u32::from(draws) << 24;
    Note { time: since, behind: Note::LAST, word }
}

#[inline]
fn unpacked(slot: u32, note: Note) -> Waiting {
    let since: Time = note.time;
    Waiting {
        since,
        slot: Slot::new(slot),
        size: note.word as u16,
        priority: (note.word >> 16) as u8,
        draws: note.word >> 24 == 1,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::super::shared_tests::switch;
    use super::*;
    use crate::net::HostId;
    use proptest::prelude::*;

    proptest! {
        /// Beside a ring, two queues that share a table of notes.
        #[test]
        fn slots_wait_in_order(steps in prop::collection::vec((0..2usize, 0..3u8, 0..9_000u16), 0..200)) {
            let mut sink = switch(1.0, 1);
            let mut queues = [SlotQueue::default(); 2];
            let mut rings = [VecDeque::<Waiting>::new(), VecDeque::new()];
            let plain = |waiting: Waiting| {
                let Waiting { since, slot, size, priority, draws } = waiting;
                (since, slot, size, priority, draws)
            };
            for (queue, action, size) in steps {
                let mut packet = Packet::new(HostId(0), HostId(1), 0, size);
                packet.priority = (size % 8) as u8;
                let slot = sink.hold(packet);
                let (slots, ring) = (&mut queues[queue], &mut rings[queue]);
                match action {
                    0 => {
                        let since = Time::from_ps(u64::from(size) << 40);
                        let waiting = Waiting::new(slot, &packet, since, size % 3 == 0);
                        slots.push(waiting, sink.notes_mut());
                        ring.push_back(waiting);
                    }
                    1 => {
                        let popped = slots.pop_if(sink.notes(), |first| first.size > 1_000).map(plain);
                        prop_assert_eq!(popped, ring.pop_front_if(|first| first.size > 1_000).map(plain));
                    }
                    _ => {
                        let taken = slots.take_newest(&mut sink, |last| last.size > 1_000).map(plain);
                        prop_assert_eq!(taken, ring.pop_back_if(|last| last.size > 1_000).map(plain));
                    }
                }
                prop_assert_eq!(slots.front(sink.notes()).map(plain), ring.front().copied().map(plain));
                let slots: Vec<Slot> = slots.slots(sink.notes());
                prop_assert_eq!(slots, ring.iter().map(|waiting| waiting.slot).collect::<Vec<_>>());
            }
        }
    }
}
