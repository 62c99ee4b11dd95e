//! [`Express`]: first come first served at a fixed rate, so a packet's departure is known at once.
//!
//! A packet that arrives when the link is booked until `busy_until` starts exactly then; it is handed to the sink with
//! its arrival time at the far end. The port keeps only the time at which the first waiting packet leaves the queue and
//! the sizes of the waiting packets, two bytes each: each leaves when the link has sent the one before, so the queue's
//! length at any later instant follows.

use std::collections::VecDeque;
use std::sync::Arc;

use plimsoll_mechanisms::phantom_queue::PhantomQueue;
use plimsoll_units::{Span, Time};

use super::marking::{Marker, Verdict};
use super::sizes::Sizes;
use super::{ANY, HeadPacer, PLAIN, PortConfig, PortRules};
use crate::net::{Packet, PortId, QueueMeter, Sink, Slot, WaitPlace};

/// A port whose departures are known at admission.
#[derive(Debug)]
pub struct Express {
    rules: Arc<PortRules>,
    /// The time at which the last admitted packet has left.
    busy_until: Time,
    /// The time at which the first packet that waits leaves the queue; [`Time::MAX`] if none waits.
    first_leaves: Time,
    /// The sizes of the packets that waited when last looked.
    waiting: Sizes,
    waiting_bytes: u32,
    in_service_bytes: u16,
    extras: Option<Box<ExpressExtras>>,
}

const _: () = assert!(size_of::<Express>() == 64, "an express port is one cache line");

/// The mechanisms that most ports do not have.
#[derive(Debug)]
struct ExpressExtras {
    marker: Option<Marker>,
    phantom_queue: Option<PhantomQueue>,
    pacer: Option<HeadPacer>,
    meter: Option<QueueMeter>,
    /// Packets that the phantom queue marked while they waited, as far as is known: the time of arrival, and the time
    /// at which they leave the queue.
    foreseen_marks: VecDeque<(Time, Time)>,
}

/// A packet that a port has admitted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Admitted {
    /// When it arrives at the far end of the link.
    pub(crate) arrives: Time,
    /// The port has marked it CE.
    pub(crate) marked: bool,
}

impl Express {
    pub(super) fn new(config: PortConfig) -> Express {
        let PortConfig { rules, marker, phantom_queue, pacer, meter, .. } = config;
        let plain = marker.is_none() && phantom_queue.is_none() && pacer.is_none() && meter.is_none();
        Express {
            rules,
            busy_until: Time::ZERO,
            first_leaves: Time::MAX,
            waiting: Sizes::default(),
            waiting_bytes: 0,
            in_service_bytes: 0,
            extras: (!plain).then(|| {
                Box::new(ExpressExtras {
                    marker,
                    phantom_queue,
                    pacer,
                    meter,
                    foreseen_marks: VecDeque::new(),
                })
            }),
        }
    }

    #[inline]
    pub(super) fn on_arrival(&mut self, id: PortId, now: Time, slot: Slot, sink: &mut impl Sink) {
        match self.admit(now, sink.packet_mut(slot)) {
            Some(Admitted { arrives, marked }) => {
                if marked {
                    sink.marked(id, slot);
                }
                sink.transmit(id, arrives, slot);
            }
            None => sink.dropped(now, id, slot),
        }
    }

    /// Admits a packet that is to leave by this port, and records marks and its waiting place in it. `None` if it finds
    /// no room; then it is to be dropped.
    #[inline(always)] // once a hop
    pub(crate) fn admit(&mut self, now: Time, packet: &mut Packet) -> Option<Admitted> {
        if self.extras.is_some() {
            return self.admit_out_of_line(now, packet);
        }
        self.start_due::<PLAIN>(now);
        if self.busy_until > now && self.waiting.is_full() {
            return self.admit_out_of_line(now, packet);
        }
        self.admit_due::<PLAIN>(now, packet)
    }

    #[inline(never)]
    fn admit_out_of_line(&mut self, now: Time, packet: &mut Packet) -> Option<Admitted> {
        self.start_due::<ANY>(now);
        self.admit_due::<ANY>(now, packet)
    }

    /// Admits a packet, after the packets that have left were removed from the queue.
    #[inline(always)]
    fn admit_due<const KIND: u8>(&mut self, now: Time, packet: &mut Packet) -> Option<Admitted> {
        let size = u64::from(packet.size);
        let waiting_bytes = u64::from(self.waiting_bytes);
        let has_room = self.has_room_now(now, size);
        let mut verdict = self.rules.on_enqueue(self.waiting.len(), waiting_bytes);
        let is_idle_since = (self.busy_until < now).then_some(self.busy_until);
        if let Some(ExpressExtras { marker: Some(marker), .. }) = self.extras::<KIND>() {
            if let Some(since) = is_idle_since {
                marker.on_idle(since);
            }
            if has_room {
                verdict = marker.on_enqueue(now, waiting_bytes, packet);
            } else {
                marker.on_overflow(now, waiting_bytes, packet);
            }
        }
        if !has_room || verdict == Verdict::Drop {
            self.note_drop::<KIND>(now);
            return None;
        }
        let mut marked = verdict == Verdict::Mark && packet.mark();
        // Out of the queue when the link is free; on the link at once, unless the pacer holds it.
        let leaves = now.max(self.busy_until);
        let mut start = leaves;
        if let Some(extras) = self.extras::<KIND>() {
            start = extras.release(now, leaves, packet);
            if let Some(phantom_queue) = &mut extras.phantom_queue
                && phantom_queue.on_transmit(start, size)
                && packet.mark()
            {
                marked = true;
                extras.foresee_mark(now, leaves);
            }
            if let Some(meter) = &mut extras.meter {
                meter.on_admitted(now, size, marked);
            }
        }
        if leaves > now {
            self.first_leaves = self.first_leaves.min(leaves);
            self.waiting.push(packet.size);
            let bytes = self.waiting_bytes.checked_add(u32::from(packet.size));
            self.waiting_bytes = bytes.expect("less than 4 GiB wait at one port");
            self.on_change::<KIND>(now);
        } else {
            self.in_service_bytes = packet.size;
        }
        self.busy_until = start + self.rules.byte_time.span(size);
        packet.add_wait(self.rules.wait, leaves - now);
        packet.add_wait(WaitPlace::Pacer, start - leaves);
        Some(Admitted { arrives: self.busy_until + self.rules.propagation, marked })
    }

    /// Returns the mechanisms that most ports do not have; not called for a plain port.
    #[inline(always)]
    fn extras<const KIND: u8>(&mut self) -> Option<&mut ExpressExtras> {
        if KIND == PLAIN { None } else { self.extras.as_deref_mut() }
    }

    pub(super) fn rules(&self) -> &Arc<PortRules> {
        &self.rules
    }

    pub(super) fn busy_until(&self) -> Time {
        self.busy_until
    }

    pub(super) fn pacer(&mut self) -> Option<&mut HeadPacer> {
        self.extras.as_mut()?.pacer.as_mut()
    }

    pub(super) fn has_room(&mut self, now: Time, size: u64) -> bool {
        self.start_due::<ANY>(now);
        self.has_room_now(now, size)
    }

    pub(super) fn take_meter(&mut self, end: Time) -> Option<QueueMeter> {
        self.start_due::<ANY>(end);
        let extras = self.extras.as_mut()?;
        let mut meter = extras.meter.take()?;
        extras.marks_after(end).for_each(|since| meter.on_unmarked(since));
        Some(meter)
    }

    pub(super) fn marks_after(&self, end: Time) -> u64 {
        self.extras.as_ref().map_or(0, |extras| extras.marks_after(end).count() as u64)
    }

    #[inline]
    pub(super) fn prefetch_queue(&self) {
        self.waiting.prefetch();
    }

    #[inline]
    fn has_room_now(&self, now: Time, size: u64) -> bool {
        let in_service = if self.busy_until > now { u64::from(self.in_service_bytes) } else { 0 };
        self.rules.limit.has_room(self.waiting.len(), u64::from(self.waiting_bytes), in_service, size)
    }

    /// Removes the packets that have left by `now` from the queue. The call is idempotent.
    #[inline(always)]
    fn start_due<const KIND: u8>(&mut self, now: Time) {
        while self.first_leaves <= now
            && let Some(size) = self.waiting.pop()
        {
            let leaves = self.first_leaves;
            self.in_service_bytes = size;
            self.waiting_bytes -= u32::from(size);
            let held = match self.extras::<KIND>() {
                Some(ExpressExtras { pacer: Some(pacer), .. }) => pacer.take_hold(),
                _ => Span::ZERO,
            };
            self.first_leaves = if self.waiting.is_empty() {
                Time::MAX
            } else {
                leaves + held + self.rules.byte_time.span(u64::from(size))
            };
            self.on_change::<KIND>(leaves);
        }
    }

    /// Notes that the number of waiting bytes changes at `now`.
    #[inline]
    fn on_change<const KIND: u8>(&mut self, now: Time) {
        let waiting_bytes = u64::from(self.waiting_bytes);
        if let Some(ExpressExtras { meter: Some(meter), .. }) = self.extras::<KIND>() {
            meter.on_change(now, waiting_bytes);
        }
    }

    #[cold]
    fn note_drop<const KIND: u8>(&mut self, now: Time) {
        if let Some(ExpressExtras { meter: Some(meter), .. }) = self.extras::<KIND>() {
            meter.on_dropped(now);
        }
    }
}

impl ExpressExtras {
    /// Returns when a packet starts to be sent that is admitted at `now` and leaves the queue at `leaves`.
    #[inline]
    fn release(&mut self, now: Time, leaves: Time, packet: &Packet) -> Time {
        let Some(pacer) = &mut self.pacer else { return leaves };
        let draws = pacer.on_enqueue(packet);
        pacer.foresee(now, leaves, packet, draws)
    }
    /// Notes that a packet that arrived at `now` and leaves the queue at `leaves` has its mark already.
    #[inline]
    fn foresee_mark(&mut self, now: Time, leaves: Time) {
        if leaves > now {
            while self.foreseen_marks.pop_front_if(|(_, left)| *left <= now).is_some() {}
            self.foreseen_marks.push_back((now, leaves));
        }
    }

    /// Returns the arrival times of packets that have their mark already and have not left the queue by `end`.
    fn marks_after(&self, end: Time) -> impl Iterator<Item = Time> + '_ {
        self.foreseen_marks.iter().filter(move |(_, leaves)| *leaves > end).map(|(since, _)| *since)
    }
}
