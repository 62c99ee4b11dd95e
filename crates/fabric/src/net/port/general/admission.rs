//! Which packets a general port admits: room in its queue and in a shared buffer, marks, and trimming.

use plimsoll_units::Time;

use super::{General, GeneralExtras};
use crate::net::port::marking::Verdict;
use crate::net::port::waiting::Waiting;
use crate::net::port::{ANY, SharedRoom};
use crate::net::{PathClass, PortId, Sink, Slot};

impl General {
    /// Decides on the packet in `slot` by all mechanisms of the port.
    pub(super) fn admit_by_mechanisms<const KIND: u8>(
        &mut self,
        id: PortId,
        now: Time,
        slot: Slot,
        sink: &mut impl Sink,
    ) -> Verdict {
        let packet = sink.packet(slot);
        if self.discarded.has(packet.priority) {
            return Verdict::Drop;
        }
        let (dst, class, size) = (packet.dst, packet.path_class(), u64::from(packet.size));
        let in_class = self.rest.discipline.on_arrival(packet, self.in_service(now));
        let has_room = in_class != Verdict::Drop && self.class_has_room(now, dst.0, class, size);
        let busy_until = self.busy_until;
        if busy_until < now
            && self.waiting == 0
            && let Some(GeneralExtras { marker: Some(marker), .. }) = self.extras::<KIND>()
        {
            marker.on_idle(busy_until);
        }
        let has_room = has_room && self.take_shared(size, sink);
        let packet = sink.packet(slot);
        let (packets, bytes) = (self.waiting as usize, self.waiting_bytes);
        let marker = self.extras::<KIND>().and_then(|extras| extras.marker.as_mut());
        let verdict = match (has_room, marker) {
            (true, Some(marker)) => marker.on_enqueue(now, bytes, packet),
            (true, None) => self.rules.on_enqueue(packets, bytes),
            (false, marker) => {
                if let Some(marker) = marker {
                    marker.on_overflow(now, bytes, packet);
                }
                return if self.makes_room(id, now, slot, sink) { Verdict::Pass } else { Verdict::Drop };
            }
        };
        match verdict {
            Verdict::Drop => self.give_back_shared(size, sink),
            Verdict::Pass => return in_class,
            Verdict::Mark => {}
        }
        verdict
    }

    /// Trims a packet, as the one in `slot` finds no room. Returns whether that packet joins the queue now, whole or
    /// trimmed.
    #[cold]
    fn makes_room(&mut self, id: PortId, now: Time, slot: Slot, sink: &mut impl Sink) -> bool {
        let Some(trimmer) = &mut self.rest.extras.trimmer else { return false };
        if !trimmer.may_trim(sink.packet(slot)) {
            return false;
        }
        let tail = if trimmer.draws_tail() {
            let priority = sink.packet(slot).priority;
            self.rest.discipline.take_tail(now, priority, sink, |last| trimmer.may_trim(last))
        } else {
            None
        };
        let Some(tail) = tail else {
            sink.trims(id, slot);
            trimmer.trim(sink.packet_mut(slot));
            return self.has_room_for_header(now, slot, sink);
        };
        self.waiting -= 1;
        self.on_left::<ANY>(id, tail.slot, tail.size, tail.priority, sink);
        self.give_back_shared(u64::from(tail.size), sink);
        sink.trims(id, tail.slot);
        if let Some(trimmer) = &self.rest.extras.trimmer {
            trimmer.trim(sink.packet_mut(tail.slot));
        }
        // The arriving packet takes the place of the trimmed one.
        let joins = self.take_shared(u64::from(sink.packet(slot).size), sink);
        if self.has_room_for_header(now, tail.slot, sink) {
            let header = Waiting::new(tail.slot, sink.packet(tail.slot), tail.since, tail.draws);
            self.push::<ANY>(id, header, sink);
        } else {
            self.drop_or_bounce(id, now, tail.slot, sink);
        }
        joins
    }

    /// Returns whether the trimmed packet in `slot` finds room, which it then has in a shared buffer.
    fn has_room_for_header(&mut self, now: Time, slot: Slot, sink: &mut impl Sink) -> bool {
        let packet = sink.packet(slot);
        let size = u64::from(packet.size);
        self.rest.discipline.on_arrival(packet, self.in_service(now)) != Verdict::Drop
            && self.class_has_room(now, 0, PathClass::Either, size)
            && self.take_shared(size, sink)
    }

    /// A packet that found no room is sent back, if it is trimmed and the port does that, or dropped.
    #[cold]
    pub(super) fn drop_or_bounce(&mut self, id: PortId, now: Time, slot: Slot, sink: &mut impl Sink) {
        let packet = sink.packet(slot);
        let bounces = self.rest.extras.trimmer.as_ref().is_some_and(|trimmer| trimmer.may_bounce(packet));
        if bounces {
            sink.packet_mut(slot).bounce();
            sink.bounced(id, slot);
        } else {
            self.drop_packet(id, now, slot, sink);
        }
    }

    /// Takes `size` bytes of the shared buffer, where there is one. Returns false if it has no room.
    #[inline]
    pub(super) fn take_shared(&mut self, size: u64, sink: &mut impl Sink) -> bool {
        self.rest.extras.shared.is_none_or(|SharedRoom { pool, port }| sink.pool(pool).admit(port, size))
    }

    /// The packet in service has been sent, and the next, of `size` bytes, leaves the queue; 0 if none does.
    #[inline]
    pub(super) fn on_departure(&mut self, size: u64, sink: &mut impl Sink) {
        let mut leaves = std::mem::take(&mut self.rest.extras.shared_in_service);
        if self.rules.limit.counts_in_service {
            self.rest.extras.shared_in_service = size;
        } else {
            leaves += size;
        }
        self.give_back_shared(leaves, sink);
    }

    #[inline]
    pub(super) fn give_back_shared(&mut self, size: u64, sink: &mut impl Sink) {
        if let Some(SharedRoom { pool, port }) = self.rest.extras.shared {
            sink.pool(pool).release(port, size);
        }
    }

    #[cold]
    pub(super) fn drop_packet(&mut self, id: PortId, now: Time, slot: Slot, sink: &mut impl Sink) {
        if let Some(meter) = &mut self.rest.extras.meter {
            meter.on_dropped(now);
        }
        sink.dropped(now, id, slot);
    }
}
