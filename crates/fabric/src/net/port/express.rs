//! [`Express`]: first come first served at a fixed rate, so a packet's departure is known at once.
//!
//! A packet that arrives when the link is booked until `busy_until` starts exactly then; it is
//! handed to the sink with its arrival time at the far end, and all that stays here is the ring of
//! times at which packets leave the queue, from which the queue's length at any later instant follows.

use std::collections::VecDeque;

use plimsoll_mechanisms::phantom_queue::PhantomQueue;
use plimsoll_units::Time;

use super::admission::Verdict;
use super::{Admission, HeadPacer, PortConfig, PortLink};
use crate::net::{Packet, QueueMeter, Sink, Wait};

/// A port whose departures are known at admission.
#[derive(Debug)]
pub struct Express {
    link: PortLink,
    /// When the last admitted packet has left.
    busy_until: Time,
    /// When it leaves the queue, and its size: every admitted packet that waited when last looked.
    waiting: VecDeque<(Time, u32)>,
    waiting_bytes: u64,
    in_service_bytes: u64,
    admission: Admission,
    phantom_queue: Option<PhantomQueue>,
    pacer: Option<Box<HeadPacer>>,
    meter: Option<Box<QueueMeter>>,
}

impl Express {
    pub(super) fn new(config: PortConfig) -> Express {
        Express {
            link: config.link,
            busy_until: Time::ZERO,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            in_service_bytes: 0,
            admission: config.admission,
            phantom_queue: config.phantom_queue,
            pacer: config.pacer,
            meter: config.meter.map(Box::new),
        }
    }

    #[inline]
    pub(super) fn on_arrival(&mut self, now: Time, mut packet: Packet, sink: &mut impl Sink) {
        self.start_due(now);
        let size = u64::from(packet.size);
        if self.busy_until < now {
            self.admission.on_idle(self.busy_until);
        }
        if !self.has_room_now(now, size) {
            self.admission.on_overflow(now, self.waiting_bytes, &packet);
            return self.drop_packet(now, &packet, sink);
        }
        let mut marked = false;
        match self.admission.on_enqueue(now, self.waiting.len(), self.waiting_bytes, &packet) {
            Verdict::Pass => {}
            Verdict::Mark => marked = packet.mark(),
            Verdict::Drop => return self.drop_packet(now, &packet, sink),
        }
        // Out of the queue when the link is free; on the link at once, unless the pacer holds it.
        let leaves = now.max(self.busy_until);
        let start = match &mut self.pacer {
            None => leaves,
            Some(pacer) => {
                let draws = pacer.on_enqueue(&packet);
                pacer.release(leaves, &packet, draws)
            }
        };
        if let Some(phantom_queue) = &mut self.phantom_queue
            && phantom_queue.on_transmit(start, size)
        {
            marked |= packet.mark();
        }
        if marked {
            sink.marked(self.link.id, &packet);
        }
        if let Some(meter) = &mut self.meter {
            meter.on_admitted(now, size, marked);
        }
        if leaves > now {
            packet.add_wait(self.link.wait, leaves - now);
            self.waiting.push_back((leaves, u32::from(packet.size)));
            self.waiting_bytes += size;
            if let Some(meter) = &mut self.meter {
                meter.on_change(now, self.waiting_bytes);
            }
        } else {
            self.in_service_bytes = size;
        }
        packet.add_wait(Wait::Pacer, start - leaves);
        self.busy_until = start + self.link.byte_time.span(size);
        sink.transmit(self.link.id, self.busy_until + self.link.propagation, packet);
    }

    pub(super) fn pacer(&mut self) -> Option<&mut HeadPacer> {
        self.pacer.as_deref_mut()
    }

    pub(super) fn has_room(&mut self, now: Time, size: u64) -> bool {
        self.start_due(now);
        self.has_room_now(now, size)
    }

    pub(super) fn take_meter(&mut self, end: Time) -> Option<QueueMeter> {
        self.start_due(end);
        self.meter.take().map(|meter| *meter)
    }

    #[inline]
    fn has_room_now(&self, now: Time, size: u64) -> bool {
        let in_service = if self.busy_until > now { self.in_service_bytes } else { 0 };
        self.admission.has_room(self.waiting.len(), self.waiting_bytes, in_service, size)
    }

    /// Takes what has started by `now` out of the queue. Idempotent; a later call sees the same.
    #[inline]
    fn start_due(&mut self, now: Time) {
        while let Some(&(start, size)) = self.waiting.front()
            && start <= now
        {
            self.waiting.pop_front();
            self.waiting_bytes -= u64::from(size);
            self.in_service_bytes = u64::from(size);
            if let Some(meter) = &mut self.meter {
                meter.on_change(start, self.waiting_bytes);
            }
        }
    }

    #[cold]
    fn drop_packet(&mut self, now: Time, packet: &Packet, sink: &mut impl Sink) {
        if let Some(meter) = &mut self.meter {
            meter.on_dropped(now);
        }
        sink.dropped(now, self.link.id, packet);
    }
}
