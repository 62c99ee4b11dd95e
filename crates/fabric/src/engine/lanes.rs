//! [`Lanes`]: the packets in flight, one first-in first-out lane per link.
//!
//! All lanes share one pool, in which each is a list:
//!
//! ```text
//! ends      by link:   first, last ─┐
//! notes     by slot:   the slot of the packet behind, when that arrives, and where this one goes next
//! packets   by slot:   one cache line each
//! free      a stack of slots: the place freed last is filled first
//! ```
//!
//! A packet that a switch passes on keeps its slot, in the cache: its number moves from one list to another, or waits
//! at a port. Memory follows the largest number of packets in flight at one time, not the sum of the largest of each
//! lane. The arrival time of the next packet is kept beside the link to it, so its own cache line is not touched to
//! schedule it.

use plimsoll_memory::{prefetch, prefetch_for_later};
use plimsoll_units::Time;

use super::{EventQueue, Owner, OwnerKind};
use crate::net::{Note, Notes, Packet, PortId, Slot};

/// Packets in flight to the far end of a link, in order of arrival, and packets that wait for it.
#[derive(Debug)]
pub struct Lanes {
    ends: Vec<LaneEnds>,
    notes: Notes,
    packets: Vec<CacheLine>,
    /// The free slots, the one freed last on top. A linked list of slots would be read one after another, from cache
    /// lines that have not been used since.
    free: Vec<u32>,
    held: usize,
}

/// First and last slot of a lane. The first is [`Note::LAST`] when it is empty.
#[derive(Clone, Copy, Debug)]
struct LaneEnds {
    first: u32,
    /// The slot, and [`WAITS`].
    last: u32,
}

/// The bit beside a lane's last slot that says that packets wait at its port, whose departures are decided when the
/// lane is empty.
const WAITS: u32 = 1 << 31;

/// The next hop of a packet from the far end of its link, once it has been looked up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FoundHop(u32);

impl FoundHop {
    /// The next hop of the packet has not been looked up.
    pub const NONE: FoundHop = FoundHop(u32::MAX);
    /// The packet reaches its host there.
    pub const HOST: FoundHop = FoundHop(u32::MAX - 1);

    /// Returns the hop by a port of the switch there.
    #[inline]
    pub const fn by(port: PortId) -> FoundHop {
        FoundHop(port.0)
    }

    /// Returns the port of a hop by one.
    #[inline]
    pub fn port(self) -> Option<PortId> {
        (self.0 < FoundHop::HOST.0).then_some(PortId(self.0))
    }
}

#[derive(Clone, Copy, Debug)]
#[repr(align(64))]
struct CacheLine(Packet);

impl Lanes {
    /// Builds empty lanes for `ports` links.
    pub fn new(ports: usize) -> Lanes {
        Lanes {
            ends: vec![LaneEnds { first: Note::LAST, last: 0 }; ports],
            notes: Notes::default(),
            packets: Vec::new(),
            free: Vec::new(),
            held: 0,
        }
    }

    /// Puts the packet in `slot` behind what `port` has sent before. The first packet of a lane becomes an event.
    #[inline(always)] // once a hop
    pub fn append(&mut self, port: PortId, arrives: Time, slot: Slot, events: &mut EventQueue) {
        let slot = slot.number();
        let ends = &mut self.ends[port.0 as usize];
        if ends.first == Note::LAST {
            ends.first = slot;
            events.push(arrives, Owner::new(OwnerKind::Link, port.0));
        } else {
            let last = self.notes.of(ends.last & !WAITS);
            (last.time, last.behind) = (arrives, slot);
        }
        ends.last = slot | ends.last & WAITS;
        let note = self.notes.of(slot);
        (note.behind, note.word) = (Note::LAST, FoundHop::NONE.0);
    }

    /// Takes the packet whose event was popped off its lane, and makes the next one an event. The packet keeps its slot
    /// until [`Lanes::append`] or [`Lanes::release`] takes it. Also returns whether the lane is empty now and packets
    /// wait at the port; the lane forgets that they do.
    #[inline]
    pub fn take_first(&mut self, port: PortId, events: &mut EventQueue) -> (Slot, FoundHop, bool) {
        let ends = &mut self.ends[port.0 as usize];
        let slot = ends.first;
        assert!(slot != Note::LAST, "a lane with an event has a packet");
        let Note { time, behind, word } = self.notes.get(slot);
        ends.first = behind;
        let mut waits = false;
        if behind != Note::LAST {
            events.push(time, Owner::new(OwnerKind::Link, port.0));
        } else {
            waits = ends.last & WAITS != 0;
            ends.last &= !WAITS;
        }
        (Slot::new(slot), FoundHop(word), waits)
    }

    /// Notes that packets wait at `port`, whose departures are decided when its lane is empty.
    #[inline]
    pub fn note_waiting(&mut self, port: PortId) {
        self.ends[port.0 as usize].last |= WAITS;
    }

    /// Returns the packet in a slot.
    #[inline]
    pub fn packet(&self, slot: Slot) -> &Packet {
        &self.packets[slot.number() as usize].0
    }

    /// Returns the packet in a slot.
    #[inline]
    pub fn packet_mut(&mut self, slot: Slot) -> &mut Packet {
        &mut self.packets[slot.number() as usize].0
    }

    /// Moves the packet in a slot to `packet`, and frees the slot.
    #[inline]
    pub fn release(&mut self, slot: Slot, packet: &mut Packet) {
        self.free.push(slot.number());
        self.held -= 1;
        *packet = *self.packet(slot);
    }

    /// Prefetches the slot that the packet behind `ahead` others will be put into.
    #[inline]
    pub fn prefetch_free(&self, ahead: usize) {
        let slot = self.free.len().checked_sub(ahead + 1).map(|place| self.free[place]);
        if let Some(packet) = slot.and_then(|slot| self.packets.get(slot as usize)) {
            prefetch(packet);
        }
    }

    /// Returns the packet that `port` delivers next.
    #[inline]
    pub fn first(&self, port: PortId) -> Option<&Packet> {
        self.packets.get(self.ends[port.0 as usize].first as usize).map(|line| &line.0)
    }

    /// Returns the slot of the packet that `port` delivers next, which it has.
    #[inline]
    pub fn first_slot(&self, port: PortId) -> Slot {
        Slot::new(self.ends[port.0 as usize].first)
    }

    /// Prefetches the packet that `port` delivers with the next event.
    #[inline]
    pub fn prefetch_first(&self, port: PortId) {
        if let Some((packet, note)) = self.first_lines(port) {
            prefetch(packet);
            prefetch(note);
        }
    }

    /// Prefetches the packet that `port` delivers next, after many other events.
    #[inline]
    pub fn prefetch_first_for_later(&self, port: PortId) {
        if let Some((packet, note)) = self.first_lines(port) {
            prefetch_for_later(packet);
            prefetch_for_later(note);
        }
    }

    /// Prefetches the first and the last slot of the lane of `port`, which [`Lanes::prefetch_last_for_later`] reads.
    #[inline]
    pub fn prefetch_ends_for_later(&self, port: PortId) {
        if let Some(ends) = self.ends.get(port.0 as usize) {
            prefetch_for_later(ends);
        }
    }

    #[inline]
    fn first_lines(&self, port: PortId) -> Option<(&CacheLine, &Note)> {
        let slot = self.ends[port.0 as usize].first;
        self.packets.get(slot as usize).zip(self.notes.find(slot))
    }

    /// Prefetches the memory that [`Lanes::append`] to `port` will write to, after many other events.
    #[inline]
    pub fn prefetch_last_for_later(&self, port: PortId) {
        self.notes.prefetch_for_later(Slot::new(self.ends[port.0 as usize].last & !WAITS));
    }

    /// Keeps the next hop found for the packet that `port` delivers next.
    #[inline]
    pub fn set_found(&mut self, port: PortId, found: FoundHop) {
        let first = self.ends[port.0 as usize].first;
        if first != Note::LAST {
            self.notes.of(first).word = found.0;
        }
    }

    /// Prefetches the packet in a slot, which leaves a queue after many other events, and its note.
    #[inline]
    pub fn prefetch_leaving(&self, slot: Slot) {
        self.notes.prefetch_for_later(slot);
        if let Some(packet) = self.packets.get(slot.number() as usize) {
            prefetch_for_later(packet);
        }
    }

    /// Returns the notes of the slots.
    #[inline]
    pub fn notes(&self) -> &Notes {
        &self.notes
    }

    /// Returns the notes of the slots, for the queues of ports to write to.
    #[inline]
    pub fn notes_mut(&mut self) -> &mut Notes {
        &mut self.notes
    }

    /// Returns the number of packets on all links and in all ports.
    pub fn held(&self) -> usize {
        self.held
    }

    /// Puts `packet` into a slot, for [`Lanes::append`] or [`Lanes::release`].
    #[inline]
    pub fn hold(&mut self, packet: Packet) -> Slot {
        self.held += 1;
        let Some(slot) = self.free.pop() else { return self.grow(packet) };
        self.packets[slot as usize] = CacheLine(packet);
        Slot::new(slot)
    }

    #[cold]
    fn grow(&mut self, packet: Packet) -> Slot {
        let slot = self.packets.len() as u32;
        assert!(slot < WAITS, "fewer than 2^31 packets are in the network");
        self.packets.push(CacheLine(packet));
        self.notes.add();
        Slot::new(slot)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;
    use crate::net::HostId;
    use proptest::prelude::*;

    fn push(lanes: &mut Lanes, port: PortId, ps: u64, flow: u32, events: &mut EventQueue) {
        let slot = lanes.hold(Packet::new(HostId(0), HostId(1), flow, 40));
        lanes.append(port, Time::from_ps(ps), slot, events);
    }

    /// Returns the flow of the packet that `port` delivers.
    fn pop(lanes: &mut Lanes, port: PortId) -> u32 {
        let mut arrived = Packet::default();
        let (slot, ..) = lanes.take_first(port, &mut EventQueue::new());
        lanes.release(slot, &mut arrived);
        arrived.flow
    }

    proptest! {
        /// Against one queue per link.
        #[test]
        fn lanes_are_queues(steps in prop::collection::vec((0..4u32, any::<bool>()), 0..200)) {
            let mut lanes = Lanes::new(4);
            let mut model = vec![VecDeque::new(); 4];
            let mut events = EventQueue::new();
            for (step, (port, pushes)) in steps.into_iter().enumerate() {
                if pushes {
                    push(&mut lanes, PortId(port), step as u64, step as u32, &mut events);
                    model[port as usize].push_back(step as u32);
                } else if let Some(flow) = model[port as usize].pop_front() {
                    prop_assert_eq!(pop(&mut lanes, PortId(port)), flow);
                }
            }
            prop_assert_eq!(lanes.held(), model.iter().map(VecDeque::len).sum::<usize>());
        }
    }

    #[test]
    fn a_freed_place_is_filled_first() {
        let mut lanes = Lanes::new(2);
        let mut events = EventQueue::new();
        for flow in 0..3 {
            push(&mut lanes, PortId(0), 1, flow, &mut events);
        }
        assert_eq!(pop(&mut lanes, PortId(0)), 0);
        push(&mut lanes, PortId(1), 2, 3, &mut events);
        assert_eq!(lanes.packets.len(), 3);
        assert_eq!(pop(&mut lanes, PortId(1)), 3);
    }
}
