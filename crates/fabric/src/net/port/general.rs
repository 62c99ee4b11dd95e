//! [`General`]: explicit departures, for whatever cannot be known at admission.

use std::sync::Arc;

use plimsoll_mechanisms::paths::adaptive::DrainBytes;
use plimsoll_mechanisms::pfc::{PauseState, Priorities, Signal};
use plimsoll_mechanisms::phantom_queue::PhantomQueue;
use plimsoll_prefetch::prefetch_for_later;
use plimsoll_units::Time;

use super::class_queues::{ClassQueues, ClassSignal};
use super::discipline::{Discipline, Queued};
use super::marking::{RedMarker, Verdict, WredMarker};
use super::{HeadPacer, PortConfig, PortRules, SharedRoom};
use crate::net::{Packet, PathClass, PortId, QueueMeter, Sink, Wait};

/// A port that decides at each departure. What every packet needs is here, in the port's cache line, and the rest
/// elsewhere: an idle port is passed without looking at that.
#[derive(Debug)]
pub struct General {
    rules: Arc<PortRules>,
    /// The time at which the packet in service has left and the link is free.
    busy_until: Time,
    waiting_bytes: u64,
    /// The waiting bytes by priority, where paths are chosen by them.
    drain_bytes: Option<Box<DrainBytes>>,
    rest: Box<Rest>,
    /// The number of packets in the discipline.
    waiting: u32,
    in_service_bytes: u16,
    /// The largest packet that joins an empty queue only to leave it.
    passes_up_to: u16,
    /// The priorities that may not be begun, paused by the far end or held by the night.
    stopped: PauseState,
    /// The port has asked to be called when the link is free.
    asked_for_end: bool,
    /// The end of a transmission changes something even where nothing waits, or somebody may see that it came.
    ends_matter: bool,
    /// The rules and the discipline alone decide on a packet, and nobody is told of it.
    is_plain: bool,
}

/// What a port needs for a packet that waits, or that mechanisms look at.
#[derive(Debug)]
struct Rest {
    discipline: Discipline,
    red: Option<Box<RedMarker>>,
    wred: Option<Box<WredMarker>>,
    shared: Option<SharedRoom>,
    /// What the packet in service still takes of the shared buffer.
    shared_in_service: u64,
    phantom_queue: Option<PhantomQueue>,
    pacer: Option<Box<HeadPacer>>,
    announces_room: bool,
    /// The port reports what enters and leaves its queue.
    accounts: bool,
    /// The link changes, so that each packet is given the time that the link took.
    changes: bool,
    /// The priorities that the far end has paused.
    pause: PauseState,
    /// The priorities that the night holds.
    night: Priorities,
    /// When the port has last asked to be called because nothing may be sent before.
    asked: Time,
    /// Packets that the discipline has just dropped; empty in between.
    victims: Vec<Packet>,
    meter: Option<Box<QueueMeter>>,
}

/// How a packet has left the queue.
#[derive(Clone, Copy)]
struct Left {
    /// The time since which it waited.
    since: Time,
    /// The discipline decided that it is marked.
    mark: bool,
    /// The pacer decided that it draws.
    draws: bool,
}

impl General {
    pub(super) fn new(config: PortConfig) -> General {
        // What joins and leaves the queue is counted beyond its bytes, so that each packet has to do both.
        let counts_waiting = config.wred.is_some() || config.shared.is_some();
        let ends_matter =
            config.announces_room || config.shared.is_some() || !config.discipline.is_idle_when_empty();
        let is_plain = !counts_waiting
            && !ends_matter
            && !config.accounts
            && !config.changes
            && config.red.is_none()
            && config.phantom_queue.is_none()
            && config.pacer.is_none()
            && config.meter.is_none();
        let passes_up_to = if counts_waiting { 0 } else { config.discipline.passes_up_to() };
        let rest = Rest {
            discipline: config.discipline,
            red: config.red.map(Box::new),
            wred: config.wred.map(Box::new),
            shared: config.shared,
            shared_in_service: 0,
            phantom_queue: config.phantom_queue,
            pacer: config.pacer.map(Box::new),
            announces_room: config.announces_room,
            accounts: config.accounts,
            changes: config.changes,
            pause: PauseState::default(),
            night: Priorities::default(),
            asked: Time::ZERO,
            victims: Vec::new(),
            meter: config.meter.map(Box::new),
        };
        General {
            rules: config.rules,
            busy_until: Time::ZERO,
            waiting_bytes: 0,
            drain_bytes: config.counts_drain_bytes.then(Box::default),
            rest: Box::new(rest),
            waiting: 0,
            in_service_bytes: 0,
            passes_up_to,
            stopped: PauseState::default(),
            asked_for_end: false,
            ends_matter,
            is_plain,
        }
    }

    /// Sends a packet that finds the link free and the port as if it had nothing to do. It stays where it is, and the
    /// time is returned at which it arrives at the far end. `None` if it has to go by [`on_arrival`](Self::on_arrival).
    #[inline]
    pub(super) fn pass(&mut self, now: Time, packet: &Packet) -> Option<Time> {
        let size = u64::from(packet.size);
        let passes = self.is_plain
            && self.passes(now, packet)
            && self.has_room_now(now, size)
            && self.rules.on_enqueue(0, 0) == Verdict::Pass
            && !self.rules.on_dequeue(0, 0);
        passes.then(|| {
            self.in_service_bytes = packet.size;
            self.busy_until = now + self.rules.byte_time.span(size);
            self.asked_for_end = false;
            self.busy_until + self.rules.propagation
        })
    }

    #[inline]
    pub(super) fn prefetch_queue(&self) {
        prefetch_for_later(&*self.rest);
    }

    #[inline]
    pub(super) fn prefetch_departure(&self) {
        self.rest.discipline.prefetch();
    }

    pub(super) fn on_arrival(&mut self, id: PortId, now: Time, packet: &mut Packet, sink: &mut impl Sink) {
        // A departure that is due at this very instant comes first, whatever order the two events
        // have: what arrives now sees the queue without it.
        self.start_due(id, now, sink);
        let size = u64::from(packet.size);
        if let Some(red) = &mut self.rest.red
            && self.busy_until < now
            && self.waiting == 0
        {
            red.on_idle(self.busy_until);
        }
        if !self.class_has_room(now, packet.dst.0, packet.path_class(), size) || !self.take_shared(size, sink)
        {
            if let Some(red) = &mut self.rest.red {
                red.on_overflow(now, self.waiting_bytes, packet);
            } else if let Some(wred) = &mut self.rest.wred {
                wred.on_overflow(now, packet);
            }
            return self.drop_packet(id, now, packet, sink);
        }
        let verdict = match (&mut self.rest.red, &mut self.rest.wred) {
            (Some(red), _) => red.on_enqueue(now, self.waiting_bytes, packet),
            (_, Some(wred)) => wred.on_enqueue(now, packet),
            _ => self.rules.on_enqueue(self.waiting as usize, self.waiting_bytes),
        };
        if verdict == Verdict::Drop {
            self.give_back_shared(size, sink);
            return self.drop_packet(id, now, packet, sink);
        }
        let marked = verdict == Verdict::Mark && packet.mark();
        if marked {
            sink.marked(id, packet);
        }
        if let Some(meter) = &mut self.rest.meter {
            meter.on_admitted(now, size, marked);
        }
        let draws = self.rest.pacer.as_mut().is_some_and(|pacer| pacer.on_enqueue(packet));
        if self.passes(now, packet) {
            if self.rest.accounts {
                sink.entered(id, packet);
                sink.left(id, packet);
            }
            self.transmit(id, now, packet, Left { since: now, mark: false, draws }, sink);
        } else {
            self.push(id, Queued { packet: *packet, since: now, mark: false, draws }, sink);
            self.start_due(id, now, sink);
            self.call_when_free(id, now, sink);
        }
        if let Some(meter) = &mut self.rest.meter {
            meter.on_change(now, self.waiting_bytes);
        }
    }

    pub(super) fn on_due(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        self.start_due(id, now, sink);
    }

    /// The far end pauses or resumes priorities.
    pub(super) fn on_signal(&mut self, id: PortId, now: Time, signal: Signal, sink: &mut impl Sink) {
        self.rest.pause.on_signal(signal);
        self.stopped = self.rest.pause.and(self.rest.night);
        self.start_due(id, now, sink);
    }

    /// A night begins or ends: it holds `paused`.
    pub(super) fn set_night(&mut self, id: PortId, now: Time, paused: Priorities, sink: &mut impl Sink) {
        // What was due before the night has begun by now.
        self.start_due(id, now, sink);
        self.rest.night = paused;
        self.stopped = self.rest.pause.and(self.rest.night);
        self.start_due(id, now, sink);
    }

    /// The controller of circuits tells the host's queues something.
    pub(super) fn on_class_signal(
        &mut self,
        id: PortId,
        now: Time,
        signal: ClassSignal<'_>,
        sink: &mut impl Sink,
    ) {
        if let Discipline::Classes(queues) = &mut self.rest.discipline {
            queues.on_signal(now, signal);
        }
        self.start_due(id, now, sink);
    }

    pub(super) fn class_queues(&self) -> Option<&ClassQueues> {
        match &self.rest.discipline {
            Discipline::Classes(queues) => Some(queues),
            _ => None,
        }
    }

    /// Returns whether a packet of `size` bytes would find room in its class; in the queue, where there are none.
    pub(super) fn class_has_room(&self, now: Time, destination: u32, class: PathClass, size: u64) -> bool {
        match &self.rest.discipline {
            Discipline::Classes(queues) => {
                let (packets, bytes) = queues.waiting(destination, class);
                self.rules.limit.has_room(packets, bytes, 0, size)
            }
            _ => self.has_room_now(now, size),
        }
    }

    /// Returns whether a packet of `size` bytes would find room in each class; in the queue, where there are none.
    pub(super) fn classes_have_room(&self, now: Time, size: u64) -> bool {
        match &self.rest.discipline {
            Discipline::Classes(queues) => {
                let limit = &self.rules.limit;
                queues.all_waiting().all(|(packets, bytes)| limit.has_room(packets, bytes, 0, size))
            }
            _ => self.has_room_now(now, size),
        }
    }

    pub(super) fn rules(&self) -> &Arc<PortRules> {
        &self.rules
    }

    pub(super) fn set_rules(&mut self, rules: Arc<PortRules>) {
        self.rules = rules;
    }

    /// Drops all packets that wait.
    pub(super) fn flush(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        let victims = &mut self.rest.victims;
        while let Some(first) = self.rest.discipline.pop_any(now, |victim| victims.push(victim.packet)) {
            victims.push(first.packet);
        }
        self.on_discipline_changed(id, now, sink);
        if let Some(meter) = &mut self.rest.meter {
            meter.on_change(now, self.waiting_bytes);
        }
    }

    /// Returns the bytes that leave before a packet of `priority` that came now; all waiting bytes where they are not
    /// counted by priority.
    pub(super) fn drain_bytes(&self, priority: u8) -> u64 {
        self.drain_bytes.as_ref().map_or(self.waiting_bytes, |drain| drain.of(priority))
    }

    /// Returns when the packet in service has left.
    pub(super) fn busy_until(&self) -> Time {
        self.busy_until
    }

    /// Returns whether packets wait while the far end has paused a priority.
    pub(super) fn is_blocked(&self) -> bool {
        self.waiting > 0 && !self.rest.pause.paused().is_empty()
    }

    /// Returns whether packets wait and all of `priorities` are paused.
    pub(super) fn holds_all(&self, priorities: Priorities) -> bool {
        self.is_blocked() && self.rest.pause.paused().has_all(priorities)
    }

    pub(super) fn has_room(&self, now: Time, size: u64) -> bool {
        self.has_room_now(now, size)
    }

    pub(super) fn pacer(&mut self) -> Option<&mut HeadPacer> {
        self.rest.pacer.as_deref_mut()
    }

    pub(super) fn held(&self) -> usize {
        self.waiting as usize
    }

    pub(super) fn take_meter(&mut self) -> Option<QueueMeter> {
        self.rest.meter.take().map(|meter| *meter)
    }

    fn has_room_now(&self, now: Time, size: u64) -> bool {
        let in_service = if self.busy_until > now { u64::from(self.in_service_bytes) } else { 0 };
        self.rules.limit.has_room(self.waiting as usize, self.waiting_bytes, in_service, size)
    }

    /// Starts the next transmission if the link is free.
    fn start_due(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        if self.busy_until > now || (self.waiting == 0 && !self.ends_matter) {
            return;
        }
        let mut queued = Queued::default();
        let has_next = self.pop(id, now, &mut queued, sink);
        if self.rest.shared.is_some() {
            self.on_departure(if has_next { u64::from(queued.packet.size) } else { 0 }, sink);
        }
        if !has_next {
            if let Some(due) = self.rest.discipline.next_due(now).filter(|due| *due != self.rest.asked) {
                self.rest.asked = due;
                sink.call_at(id, due);
            }
            // Where the limit counts the packet in service, its end makes room too.
            if self.rest.announces_room && std::mem::take(&mut self.in_service_bytes) > 0 {
                sink.room(id);
            }
            return;
        }
        self.on_left(id, &queued.packet, sink);
        if let Some(meter) = &mut self.rest.meter {
            meter.on_change(now, self.waiting_bytes);
        }
        let Queued { packet, since, mark, draws } = &mut queued;
        self.transmit(id, now, packet, Left { since: *since, mark: *mark, draws: *draws }, sink);
    }

    /// Returns whether `packet`, which has been admitted, is sent at once: it need not join the queue to leave it.
    #[inline]
    fn passes(&self, now: Time, packet: &Packet) -> bool {
        self.busy_until <= now
            && self.waiting == 0
            && packet.size <= self.passes_up_to
            && self.stopped.may(packet.priority)
    }

    /// Asks for a call when the packet in service has left, if that makes a difference.
    #[inline]
    fn call_when_free(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        let matters = self.waiting > 0 || self.ends_matter;
        if matters && self.busy_until > now && !self.asked_for_end {
            self.asked_for_end = true;
            sink.call_at(id, self.busy_until);
        }
    }

    /// Begins to send a packet that has left the queue.
    fn transmit(&mut self, id: PortId, now: Time, packet: &mut Packet, left: Left, sink: &mut impl Sink) {
        let Left { since, mark, draws } = left;
        let size = u64::from(packet.size);
        let start = match &mut self.rest.pacer {
            None => now,
            Some(pacer) => pacer.release(now, packet, draws),
        };
        let marks = mark || self.rules.on_dequeue(self.waiting as usize, self.waiting_bytes);
        let mut marked = marks && packet.mark();
        if let Some(phantom_queue) = &mut self.rest.phantom_queue
            && phantom_queue.on_transmit(start, size)
        {
            marked |= packet.mark();
        }
        if marked {
            if let Some(meter) = &mut self.rest.meter {
                meter.on_marked(since);
            }
            sink.marked(id, packet);
        }
        self.in_service_bytes = packet.size;
        self.busy_until = start + self.rules.byte_time.span(size);
        self.asked_for_end = false;
        if let Some(wred) = &mut self.rest.wred {
            wred.on_transmit(packet, self.busy_until);
        }
        let sent = sink.transmit(id, self.busy_until + self.rules.propagation, *packet);
        sent.add_wait(self.rules.wait, now - since);
        sent.add_wait(Wait::Pacer, start - now);
        if self.rest.changes {
            sent.add_transit(self.busy_until - start + self.rules.propagation);
        }
        self.call_when_free(id, now, sink);
        if self.rest.announces_room {
            sink.room(id);
        }
    }

    /// Adds a packet to the queue, which may drop others.
    fn push(&mut self, id: PortId, queued: Queued, sink: &mut impl Sink) {
        let (now, packet) = (queued.since, &queued.packet);
        self.waiting_bytes += u64::from(packet.size);
        if let Some(drain) = &mut self.drain_bytes {
            drain.on_enqueue(packet.priority, u64::from(packet.size));
        }
        if let Some(wred) = &mut self.rest.wred {
            wred.on_entered(packet);
        }
        if self.rest.accounts {
            sink.entered(id, packet);
        }
        let victims = &mut self.rest.victims;
        self.rest.discipline.push(queued, |victim| victims.push(victim.packet));
        self.on_discipline_changed(id, now, sink);
    }

    /// Moves the packet that is sent next from the queue to `next`. Returns whether there is one.
    fn pop(&mut self, id: PortId, now: Time, next: &mut Queued, sink: &mut impl Sink) -> bool {
        let victims = &mut self.rest.victims;
        let has_next =
            self.rest.discipline.pop_into(now, self.stopped, next, |victim| victims.push(victim.packet));
        self.on_discipline_changed(id, now, sink);
        has_next
    }

    /// Counts what waits now, and drops what the discipline has dropped.
    #[inline]
    fn on_discipline_changed(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        self.waiting = self.rest.discipline.len() as u32;
        if !self.rest.victims.is_empty() {
            self.drop_victims(id, now, sink);
        }
    }

    #[cold]
    fn drop_victims(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        let mut victims = std::mem::take(&mut self.rest.victims);
        for victim in victims.drain(..) {
            self.on_left(id, &victim, sink);
            self.give_back_shared(u64::from(victim.size), sink);
            self.drop_packet(id, now, &victim, sink);
        }
        self.rest.victims = victims;
    }

    /// A packet has left the queue.
    fn on_left(&mut self, id: PortId, packet: &Packet, sink: &mut impl Sink) {
        self.waiting_bytes -= u64::from(packet.size);
        if let Some(drain) = &mut self.drain_bytes {
            drain.on_dequeue(packet.priority, u64::from(packet.size));
        }
        if let Some(wred) = &mut self.rest.wred {
            wred.on_left(packet);
        }
        if self.rest.accounts {
            sink.left(id, packet);
        }
    }

    /// Takes `size` bytes of the shared buffer, where there is one. Returns false if it has no room.
    fn take_shared(&mut self, size: u64, sink: &mut impl Sink) -> bool {
        self.rest.shared.is_none_or(|SharedRoom { pool, port }| sink.pool(pool).admit(port, size))
    }

    /// The packet in service has been sent, and the next, of `size` bytes, leaves the queue; 0 if none does.
    #[cold]
    fn on_departure(&mut self, size: u64, sink: &mut impl Sink) {
        let mut leaves = std::mem::take(&mut self.rest.shared_in_service);
        if self.rules.limit.counts_in_service {
            self.rest.shared_in_service = size;
        } else {
            leaves += size;
        }
        self.give_back_shared(leaves, sink);
    }

    fn give_back_shared(&mut self, size: u64, sink: &mut impl Sink) {
        if let Some(SharedRoom { pool, port }) = self.rest.shared {
            sink.pool(pool).release(port, size);
        }
    }

    #[cold]
    fn drop_packet(&mut self, id: PortId, now: Time, packet: &Packet, sink: &mut impl Sink) {
        if let Some(meter) = &mut self.rest.meter {
            meter.on_dropped(now);
        }
        sink.dropped(now, id, packet);
    }
}
