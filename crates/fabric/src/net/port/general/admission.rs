//! Which packets a general port admits: room in its queue and in a shared buffer, marks, and trimming.

use plimsoll_units::Time;

use super::{General, GeneralExtras};
use crate::net::port::discipline::Discipline;
use crate::net::port::marking::Verdict;
use crate::net::port::waiting::Waiting;
use crate::net::port::{ANY, SharedRoom};
use crate::net::{Packet, PathClass, PortId, Sink, Slot};

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
        let has_room = has_room && self.take_shared(slot, sink);
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

    /// Decides on the packet in `slot` where the port trims, and does nothing else before packets leave.
    #[inline]
    pub(super) fn admit_or_trim(
        &mut self,
        id: PortId,
        now: Time,
        slot: Slot,
        sink: &mut impl Sink,
    ) -> Verdict {
        let in_service = self.in_service(now);
        let packet = sink.packet(slot);
        let in_queue = match &self.rest.discipline {
            Discipline::Trimming(queues) => queues.on_arrival(packet, in_service),
            discipline => discipline.on_arrival(packet, in_service),
        };
        if in_queue == Verdict::Drop {
            return if self.makes_room(id, now, slot, sink) { Verdict::Pass } else { Verdict::Drop };
        }
        match &mut self.rest.extras.marker {
            Some(marker) => marker.on_enqueue(now, self.waiting_bytes, packet),
            None => self.rules.on_enqueue(self.waiting as usize, self.waiting_bytes),
        }
    }

    /// Decides on a packet that finds room where only flow control and a marker decide on arriving packets.
    #[inline]
    pub(super) fn mark_or_discard(&mut self, now: Time, packet: &Packet) -> Verdict {
        match &mut self.rest.extras.marker {
            _ if self.discarded.has(packet.priority) => Verdict::Drop,
            Some(marker) => marker.on_enqueue(now, self.waiting_bytes, packet),
            None => self.rules.on_enqueue(self.waiting as usize, self.waiting_bytes),
        }
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
            let &Packet { priority, size, .. } = sink.packet(slot);
            // Only a packet that is as large leaves room for the arriving one.
            let gives_way = |last: &Packet| trimmer.may_trim(last) && last.size >= size;
            self.rest.discipline.take_tail(now, priority, sink, gives_way)
        } else {
            None
        };
        let Some(tail) = tail else { return self.joins_trimmed(id, now, slot, sink) };
        self.waiting -= 1;
        self.on_left::<ANY>(id, tail.slot, tail.size, tail.priority, sink);
        self.give_back_shared(u64::from(tail.size), sink);
        sink.trims(id, tail.slot);
        if let Some(trimmer) = &self.rest.extras.trimmer {
            trimmer.trim(sink.packet_mut(tail.slot));
        }
        // The arriving packet takes the place of the trimmed one, unless the threshold of a shared buffer has fallen.
        let joins = self.take_shared(slot, sink);
        if self.has_room_for_header(now, tail.slot, sink) {
            let header = Waiting::new(tail.slot, sink.packet(tail.slot), tail.since, tail.draws);
            self.push::<ANY>(id, header, sink);
        } else {
            self.drop_or_bounce(id, now, tail.slot, sink);
        }
        joins || self.joins_trimmed(id, now, slot, sink)
    }

    /// Trims the packet in `slot`. Returns whether it joins the queue.
    fn joins_trimmed(&mut self, id: PortId, now: Time, slot: Slot, sink: &mut impl Sink) -> bool {
        sink.trims(id, slot);
        if let Some(trimmer) = &self.rest.extras.trimmer {
            trimmer.trim(sink.packet_mut(slot));
        }
        self.has_room_for_header(now, slot, sink)
    }

    /// Returns whether the trimmed packet in `slot` finds room, which it then has in a shared buffer.
    fn has_room_for_header(&mut self, now: Time, slot: Slot, sink: &mut impl Sink) -> bool {
        let packet = sink.packet(slot);
        let size = u64::from(packet.size);
        self.rest.discipline.on_arrival(packet, self.in_service(now)) != Verdict::Drop
            && self.class_has_room(now, 0, PathClass::Either, size)
            && self.take_shared(slot, sink)
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

    /// Takes the bytes of the packet in `slot` of the shared buffer, where there is one. Returns false if it has no
    /// room. The header queue has a limit of its own in place of the buffer's threshold, which data may have reached.
    #[inline]
    pub(super) fn take_shared(&mut self, slot: Slot, sink: &mut impl Sink) -> bool {
        let Some(SharedRoom { pool, port }) = self.rest.extras.shared else { return true };
        let packet = sink.packet(slot);
        let (size, is_header) = (u64::from(packet.size), self.rest.discipline.is_in_header_queue(packet));
        let pool = sink.pool(pool);
        if is_header { pool.admit_above_threshold(port, size) } else { pool.admit(port, size) }
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
