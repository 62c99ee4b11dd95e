//! [`General`]: ports whose departures are not known at admission.
//!
//! A departure depends on the packets that came before it, and on nothing else at most ports. Such a port *settles*: it
//! decides departures late, each at its own time, before the next arrival or when the last packet on its link reaches
//! the far end, and needs no event. The ports of a shared buffer settle, too: they hold too much in the meantime, and
//! all of them handle due departures before a packet is refused. Where something else reads or stops the port, or waits
//! for it (flow control, a sender that waits for room, adaptive paths, another logical process), each departure is an
//! event.

mod admission;

use std::mem::offset_of;
use std::sync::Arc;

use plimsoll_mechanisms::paths::adaptive::DrainBytes;
use plimsoll_mechanisms::pfc::{PauseState, Priorities, Signal};
use plimsoll_mechanisms::phantom_queue::PhantomQueue;
use plimsoll_memory::prefetch_for_later;
use plimsoll_units::Time;

use super::class_queues::{ClassQueues, ClassSignal};
use super::discipline::Discipline;
use super::marking::{Marker, Verdict};
use super::waiting::{Leaving, Waiting};
use super::{
    ACCOUNTS, ANY, HeadPacer, LOSSLESS, PLAIN, PortConfig, PortRules, ROOM, SHARES, SharedRoom, Stamper,
    TRIMS, Trimmer,
};
use crate::net::{Notes, Packet, PathClass, PortId, QueueMeter, Sink, Slot, WaitPlace};

/// A port that decides at each departure. Fields read for every packet come first, in the port's cache line, and the
/// others are elsewhere: the test for an idle port does not read them.
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
    /// The priorities whose packets are dropped in place of being sent: a watchdog has found a storm of pauses.
    discarded: Priorities,
    /// The port has requested a call when the link is free.
    asked_for_end: bool,
    /// The end of a transmission has an effect even if no packet waits, or may be observed.
    ends_matter: bool,
    /// The mechanisms that the port has: [`PLAIN`], [`ACCOUNTS`], [`SHARES`], [`TRIMS`], [`LOSSLESS`],
    /// [`ROOM`] or [`ANY`].
    kind: u8,
    /// The discipline decides on arriving packets.
    limits_itself: bool,
    /// The discipline may drop packets that wait.
    drops_waiting: bool,
    /// Departures are decided late: before the next arrival, or when the link's last packet has reached the far end.
    settles: bool,
}

/// The fields needed for a packet that waits, then the ones of the port's mechanisms.
#[derive(Debug)]
#[repr(C, align(64))]
struct Rest {
    discipline: Discipline,
    /// Packets that the discipline has just dropped; empty in between.
    victims: Vec<Slot>,
    extras: GeneralExtras,
}

const _: () = assert!(offset_of!(Rest, victims) <= 128, "the discipline is in two lines");

/// Fields that a plain port does not need: everything beside the rules and the discipline that examines a packet or
/// stops it.
#[derive(Debug)]
struct GeneralExtras {
    marker: Option<Box<Marker>>,
    shared: Option<SharedRoom>,
    trimmer: Option<Box<Trimmer>>,
    stamper: Option<Box<Stamper>>,
    /// The bytes of the shared buffer that the packet in service still holds.
    shared_in_service: u64,
    phantom_queue: Option<PhantomQueue>,
    pacer: Option<Box<HeadPacer>>,
    announces_room: bool,
    /// The port reports each packet that enters and leaves its queue.
    accounts: bool,
    /// The link changes, so that each packet is given the time that the link took.
    changes: bool,
    /// The priorities that the far end has paused.
    pause: PauseState,
    /// The priorities that the night holds.
    night: Priorities,
    /// The last time at which the port requested a call because nothing may be sent before.
    asked: Time,
    meter: Option<Box<QueueMeter>>,
}

/// Calls a method in its instance for the kind of the port.
macro_rules! of_kind {
    ($self:ident, $method:ident($($argument:expr),*)) => {
        match $self.kind {
            PLAIN => $self.$method::<PLAIN>($($argument),*),
            ACCOUNTS => $self.$method::<ACCOUNTS>($($argument),*),
            SHARES => $self.$method::<SHARES>($($argument),*),
            TRIMS => $self.$method::<TRIMS>($($argument),*),
            LOSSLESS => $self.$method::<LOSSLESS>($($argument),*),
            ROOM => $self.$method::<ROOM>($($argument),*),
            _ => $self.$method::<ANY>($($argument),*),
        }
    };
}

impl General {
    pub(super) fn new(config: PortConfig) -> General {
        // Packets that join and leave the queue are counted beyond their bytes, so that each packet has to do both.
        let has_memory = config.marker.as_ref().is_some_and(|marker| !marker.has_no_memory());
        let counts_waiting = has_memory && config.marker.as_ref().is_some_and(Marker::counts_waiting);
        let limits_itself = config.discipline.has_limits();
        let ends_matter = config.announces_room || !config.discipline.is_idle_when_empty();
        let has_more = !config.discipline.is_idle_when_empty()
            || config.discipline.holds_back()
            || config.changes
            || has_memory
            || config.phantom_queue.is_some()
            || config.pacer.is_some()
            || config.meter.is_some();
        let has = (config.announces_room, config.accounts, config.shared.is_some(), config.marker.is_some());
        let kind = match has {
            _ if has_more => ANY,
            (false, true, false, marks) if !limits_itself && (marks || config.stamper.is_some()) => LOSSLESS,
            _ if config.stamper.is_some() => ANY,
            (false, false, false, _) if matches!(config.discipline, Discipline::Trimming(_)) => TRIMS,
            (false, false, false, false) => PLAIN,
            (false, true, false, false) => ACCOUNTS,
            (false, false, true, false) => SHARES,
            (true, _, false, false) if !limits_itself => ROOM,
            _ => ANY,
        };
        // What else reads or stops this port, or waits for it, would see the packets that should have left.
        let settles = config.settles
            && !ends_matter
            && !config.discipline.holds_back()
            && !config.accounts
            && !config.changes
            && !config.counts_drain_bytes
            && config.pacer.is_none();
        let ends_matter = ends_matter || config.shared.is_some() && !settles;
        let passes_up_to = if counts_waiting { 0 } else { config.discipline.passes_up_to() };
        let marks_when_idle = config.rules.on_enqueue(0, 0) != Verdict::Pass || config.rules.on_dequeue(0, 0);
        // What an idle port of these kinds may refuse or mark does not pass, as nothing else is asked.
        let passes_up_to = match (kind, &config.discipline) {
            (PLAIN | TRIMS, _) if marks_when_idle => 0,
            (TRIMS, Discipline::Trimming(queues)) => queues.room_when_idle().min(passes_up_to),
            (PLAIN, _) => config.rules.limit.room_when_idle().min(passes_up_to),
            _ => passes_up_to,
        };
        let extras = GeneralExtras {
            marker: config.marker.map(Box::new),
            shared: config.shared,
            trimmer: config.trimmer.map(Box::new),
            stamper: config.stamper.map(Box::new),
            shared_in_service: 0,
            phantom_queue: config.phantom_queue,
            pacer: config.pacer.map(Box::new),
            announces_room: config.announces_room,
            accounts: config.accounts,
            changes: config.changes,
            pause: PauseState::default(),
            night: Priorities::default(),
            asked: Time::ZERO,
            meter: config.meter.map(Box::new),
        };
        let drops_waiting = config.discipline.drops_waiting();
        let rest = Rest { discipline: config.discipline, victims: Vec::new(), extras };
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
            discarded: Priorities::default(),
            asked_for_end: false,
            ends_matter,
            kind,
            drops_waiting,
            limits_itself,
            settles,
        }
    }

    /// Sends a packet at once if the link is free and the port has no other work. Returns when it arrives at the far
    /// end; `None` if it must take [`on_arrival`](Self::on_arrival).
    #[inline]
    pub(super) fn pass(&mut self, now: Time, packet: &Packet) -> Option<Time> {
        let passes = matches!(self.kind, PLAIN | TRIMS) && self.passes(now, packet.size, packet.priority);
        passes.then(|| {
            self.in_service_bytes = packet.size;
            self.busy_until = now + self.rules.byte_time.span(u64::from(packet.size));
            if self.kind == TRIMS {
                self.rest.discipline.on_passing(packet);
            }
            self.asked_for_end = false;
            self.busy_until + self.rules.propagation
        })
    }

    #[inline]
    pub(super) fn prefetch_queue(&self) -> bool {
        prefetch_for_later(&*self.rest);
        self.waiting > 0
    }

    #[inline]
    pub(super) fn first_to_leave(&self) -> Option<Slot> {
        self.rest.discipline.prefetch();
        if let Some(marker) = &self.rest.extras.marker {
            prefetch_for_later(&**marker);
        }
        self.rest.discipline.first_at_hand()
    }

    pub(super) fn on_arrival(&mut self, id: PortId, now: Time, slot: Slot, sink: &mut impl Sink) {
        of_kind!(self, arrive(id, now, slot, sink));
    }

    pub(super) fn on_due(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        of_kind!(self, start_due(id, now, sink));
    }

    /// Carries out the departures that are due at `now`, each at its own time, if they are decided late.
    pub(super) fn settle(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        if !self.settles {
            return;
        }
        of_kind!(self, catch_up(id, now, sink));
        if self.waiting > 0 {
            sink.waits(id);
        }
    }

    /// Departures are decided in time from now on.
    pub(super) fn decide_in_time(&mut self) {
        assert!(self.waiting == 0, "packets wait whose departures nobody has asked for");
        self.settles = false;
        self.ends_matter |= self.rest.extras.shared.is_some();
    }

    /// Starts the transmissions that were due by `now`. Where packets wait, the next starts when the link is free.
    #[inline]
    fn catch_up<const KIND: u8>(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        while self.waiting > 0 && self.busy_until <= now {
            self.start_due::<KIND>(id, self.busy_until, sink);
        }
        if self.shares::<KIND>() && self.rest.extras.shared_in_service > 0 && self.busy_until <= now {
            self.on_departure(0, sink);
        }
    }

    fn arrive<const KIND: u8>(&mut self, id: PortId, now: Time, slot: Slot, sink: &mut impl Sink) {
        // A departure that is due at this very instant comes first, in either order of the two events: the arriving
        // packet sees the queue without it.
        if self.settles {
            self.catch_up::<KIND>(id, now, sink);
        } else {
            self.start_due::<KIND>(id, now, sink);
        }
        let verdict = self.admit::<KIND>(id, now, slot, sink);
        if verdict == Verdict::Drop {
            return self.drop_or_bounce(id, now, slot, sink);
        }
        let packet = sink.packet_mut(slot);
        let marked = verdict == Verdict::Mark && packet.mark();
        let mut waiting = Waiting::new(slot, packet, now, false);
        if let Some(extras) = self.extras::<KIND>() {
            waiting.draws = extras.pacer.as_mut().is_some_and(|pacer| pacer.on_enqueue(packet));
            if let Some(meter) = &mut extras.meter {
                meter.on_admitted(now, u64::from(waiting.size), marked);
            }
        }
        if marked {
            sink.marked(id, slot);
        }
        if self.passes(now, waiting.size, waiting.priority) {
            if self.accounts::<KIND>() {
                sink.passed(now, id, slot);
            }
            if self.shares::<KIND>() {
                self.on_departure(u64::from(waiting.size), sink);
            }
            if self.limits_itself {
                self.rest.discipline.on_passing(sink.packet(slot));
            }
            self.transmit::<KIND>(id, now, &Leaving::unmarked(waiting), sink);
        } else {
            self.push::<KIND>(id, waiting, sink);
            self.start_due::<KIND>(id, now, sink);
            self.call_when_free(id, now, sink);
        }
        self.note_change::<KIND>(now);
    }

    /// Decides on the packet in `slot`.
    #[inline]
    fn admit<const KIND: u8>(&mut self, id: PortId, now: Time, slot: Slot, sink: &mut impl Sink) -> Verdict {
        if KIND == TRIMS {
            return self.admit_or_trim(id, now, slot, sink);
        }
        if KIND == ANY || self.limits_itself {
            return self.admit_by_mechanisms::<KIND>(id, now, slot, sink);
        }
        let size = u64::from(sink.packet(slot).size);
        if !self.has_room_now(now, size) || self.shares::<KIND>() && !self.take_shared(slot, sink) {
            return Verdict::Drop;
        }
        if KIND == LOSSLESS {
            return self.mark_or_discard(now, sink.packet(slot));
        }
        self.rules.on_enqueue(self.waiting as usize, self.waiting_bytes)
    }

    /// The far end pauses or resumes priorities.
    pub(super) fn on_signal(&mut self, id: PortId, now: Time, signal: Signal, sink: &mut impl Sink) {
        self.rest.extras.pause.on_signal(signal);
        self.stopped = self.rest.extras.pause.and(self.rest.extras.night);
        self.start_due::<ANY>(id, now, sink);
    }

    /// Exactly the packets of `priorities` are dropped from now on, including the waiting ones: at once where the
    /// discipline can remove them, and otherwise when it is their turn.
    pub(super) fn set_discarded(
        &mut self,
        id: PortId,
        now: Time,
        priorities: Priorities,
        sink: &mut impl Sink,
    ) {
        if self.discarded != priorities {
            self.discarded = priorities;
            let others = Priorities::ALL.without(priorities);
            let sent = self.pop_allowed(id, now, PauseState::default().and(others), sink);
            assert!(sent.is_none(), "a discipline takes out no packet of a paused priority");
            self.note_change::<ANY>(now);
        }
    }

    /// A night begins or ends: it holds `paused`.
    pub(super) fn set_night(&mut self, id: PortId, now: Time, paused: Priorities, sink: &mut impl Sink) {
        // Transmissions that were due before the night have begun by now.
        self.start_due::<ANY>(id, now, sink);
        self.rest.extras.night = paused;
        self.stopped = self.rest.extras.pause.and(self.rest.extras.night);
        self.start_due::<ANY>(id, now, sink);
    }

    /// Passes a signal of the circuits' controller to the host's queues.
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
        self.start_due::<ANY>(id, now, sink);
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
            discipline => discipline.divides_limit() || self.has_room_now(now, size),
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

    pub(super) fn shared_room(&self) -> Option<SharedRoom> {
        self.rest.extras.shared
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
        while let Some(first) = self.rest.discipline.pop_any(now, sink, |victim| victims.push(victim)) {
            victims.push(first);
        }
        self.drop_all_victims(id, now, sink);
        self.note_change::<ANY>(now);
    }

    /// Returns the bytes that leave before a packet of `priority` that arrives now; all waiting bytes where they are
    /// not counted by priority.
    pub(super) fn drain_bytes(&self, priority: u8) -> u64 {
        self.drain_bytes.as_ref().map_or(self.waiting_bytes, |drain| drain.of(priority))
    }

    /// Returns when the packet in service has left.
    pub(super) fn busy_until(&self) -> Time {
        self.busy_until
    }

    /// Sends a frame of `bytes` behind the packet in service and before all that wait. Returns whether the port is to
    /// be called when the link is free again; a call requested before is too early.
    pub(super) fn send_frame(&mut self, now: Time, bytes: u64) -> bool {
        if self.busy_until <= now {
            self.in_service_bytes = 0;
        }
        self.busy_until = self.busy_until.max(now) + self.rules.byte_time.span(bytes);
        self.asked_for_end = self.waiting > 0 || self.ends_matter;
        self.asked_for_end
    }

    /// Returns the waiting packets in lines: see [`Discipline::lines`].
    pub(super) fn lines(&self, notes: &Notes) -> Vec<Vec<Slot>> {
        self.rest.discipline.lines(notes)
    }

    /// Returns whether packets wait and all of `priorities` are paused.
    pub(super) fn holds_all(&self, priorities: Priorities) -> bool {
        let paused = self.rest.extras.pause.paused();
        self.waiting > 0 && !paused.is_empty() && paused.has_all(priorities)
    }

    pub(super) fn has_room(&self, now: Time, size: u64) -> bool {
        self.has_room_now(now, size)
    }

    pub(super) fn pacer(&mut self) -> Option<&mut HeadPacer> {
        self.rest.extras.pacer.as_deref_mut()
    }

    pub(super) fn held(&self) -> usize {
        self.waiting as usize
    }

    pub(super) fn holds(&self, priority: u8) -> bool {
        self.waiting > 0 && self.rest.discipline.holds(priority)
    }

    /// Returns the number of packets that the discipline was given and has no more.
    pub(super) fn forgotten(&self) -> usize {
        self.rest.discipline.lost_of(self.waiting as usize)
    }

    pub(super) fn take_meter(&mut self) -> Option<QueueMeter> {
        self.rest.extras.meter.take().map(|meter| *meter)
    }

    fn has_room_now(&self, now: Time, size: u64) -> bool {
        self.rules.limit.has_room(self.waiting as usize, self.waiting_bytes, self.in_service(now), size)
    }

    /// Returns the bytes of the packet in service, 0 if there is none.
    fn in_service(&self, now: Time) -> u64 {
        if self.busy_until > now { u64::from(self.in_service_bytes) } else { 0 }
    }

    /// Returns the mechanisms beside flow control and a shared buffer; only a port of any kind has some.
    #[inline(always)]
    fn extras<const KIND: u8>(&mut self) -> Option<&mut GeneralExtras> {
        (KIND == ANY).then_some(&mut self.rest.extras)
    }

    /// Returns whether flow control counts the packets that enter and leave the queue.
    #[inline(always)]
    fn accounts<const KIND: u8>(&self) -> bool {
        matches!(KIND, ACCOUNTS | LOSSLESS) || matches!(KIND, ROOM | ANY) && self.rest.extras.accounts
    }

    /// Returns whether the port has a part in a shared buffer.
    #[inline(always)]
    fn shares<const KIND: u8>(&self) -> bool {
        KIND == SHARES || KIND == ANY && self.rest.extras.shared.is_some()
    }

    /// Notes that the number of waiting bytes changes at `now`.
    #[inline]
    fn note_change<const KIND: u8>(&mut self, now: Time) {
        let waiting_bytes = self.waiting_bytes;
        if let Some(GeneralExtras { meter: Some(meter), .. }) = self.extras::<KIND>() {
            meter.on_change(now, waiting_bytes);
        }
    }

    /// Starts the next transmission if the link is free.
    #[inline]
    fn start_due<const KIND: u8>(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        if self.busy_until <= now && (self.waiting > 0 || self.ends_matter) {
            self.start_next::<KIND>(id, now, sink);
        }
    }

    /// Starts the next transmission, as the link is free.
    #[inline(never)]
    fn start_next<const KIND: u8>(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        let is_idle = self.waiting == 0 && self.rest.discipline.is_idle_when_empty();
        let next = if is_idle { None } else { self.pop::<KIND>(id, now, sink) };
        if self.shares::<KIND>() {
            self.on_departure(next.as_ref().map_or(0, |next| u64::from(next.waiting.size)), sink);
        }
        let Some(next) = next else {
            if matches!(KIND, ROOM | ANY) {
                self.on_nothing_to_send(id, now, sink);
            }
            return;
        };
        let Waiting { slot, size, priority, .. } = next.waiting;
        self.on_left::<KIND>(id, slot, size, priority, sink);
        self.note_change::<KIND>(now);
        self.transmit::<KIND>(id, now, &next, sink);
    }

    /// The link is free, and nothing may be sent.
    fn on_nothing_to_send(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        if let Some(due) = self.rest.discipline.next_due(now).filter(|due| *due != self.rest.extras.asked) {
            self.rest.extras.asked = due;
            sink.call_at(id, due);
        }
        // Where the limit counts the packet in service, the end of its transmission makes room too.
        if self.rest.extras.announces_room && std::mem::take(&mut self.in_service_bytes) > 0 {
            sink.room(id);
        }
    }

    /// Returns whether a packet of `size` and `priority`, which has been admitted, is sent at once: it need not join
    /// the queue to leave it.
    #[inline]
    fn passes(&self, now: Time, size: u16, priority: u8) -> bool {
        self.busy_until <= now && self.waiting == 0 && size <= self.passes_up_to && self.stopped.may(priority)
    }

    /// Requests a call when the packet in service has left, if that has an effect.
    #[inline]
    fn call_when_free(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        let matters = (self.waiting > 0 || self.ends_matter) && !self.settles;
        if matters && self.busy_until > now && !self.asked_for_end {
            self.asked_for_end = true;
            sink.call_at(id, self.busy_until);
        }
    }

    /// Begins to send a packet that has left the queue.
    #[inline]
    fn transmit<const KIND: u8>(&mut self, id: PortId, now: Time, leaving: &Leaving, sink: &mut impl Sink) {
        let Leaving { waiting: Waiting { slot, since, mut size, draws, .. }, mark } = *leaving;
        if matches!(KIND, LOSSLESS | ANY) && self.rest.extras.stamper.is_some() {
            size = self.stamp(now, slot, since, sink);
        }
        let bytes = u64::from(size);
        let packet = sink.packet_mut(slot);
        let marks = mark || self.rules.on_dequeue(self.waiting as usize, self.waiting_bytes);
        let mut start = now;
        let mut marked = marks && packet.mark();
        if matches!(KIND, TRIMS | ANY) {
            let data_bytes = self.rest.discipline.data_bytes(self.waiting_bytes);
            if let Some(marker) = &mut self.rest.extras.marker {
                marked |= marker.on_dequeue(data_bytes) && packet.mark();
            }
        }
        if let Some(extras) = self.extras::<KIND>() {
            if let Some(pacer) = &mut extras.pacer {
                start = pacer.release(now, packet, draws);
            }
            if let Some(phantom_queue) = &mut extras.phantom_queue
                && phantom_queue.on_transmit(start, bytes)
            {
                marked |= packet.mark();
            }
            if let Some(meter) = &mut extras.meter
                && marked
            {
                meter.on_marked(since);
            }
        }
        self.in_service_bytes = size;
        self.busy_until = start + self.rules.byte_time.span(bytes);
        self.asked_for_end = false;
        let (busy_until, propagation) = (self.busy_until, self.rules.propagation);
        packet.add_wait(self.rules.wait, now - since);
        packet.add_wait(WaitPlace::Pacer, start - now);
        if let Some(extras) = self.extras::<KIND>() {
            if let Some(marker) = &mut extras.marker {
                marker.on_transmit(packet, busy_until);
            }
            if extras.changes {
                packet.add_transit(busy_until - start + propagation);
            }
        }
        if marked {
            sink.marked(id, slot);
        }
        sink.transmit(id, busy_until + propagation, slot);
        self.call_when_free(id, now, sink);
        if KIND == ROOM || KIND == ANY && self.rest.extras.announces_room {
            sink.room(id);
        }
    }

    /// Stamps the packet in `slot`, which waited from `since` on and is sent at `now`. Returns its size then.
    #[cold]
    fn stamp(&mut self, now: Time, slot: Slot, since: Time, sink: &mut impl Sink) -> u16 {
        if let Some(stamper) = &mut self.rest.extras.stamper {
            stamper.on_transmit(now, slot, now - since, self.waiting_bytes, self.rules.rate, sink);
        }
        sink.packet(slot).size
    }

    /// Adds a packet to the queue, which may drop others.
    #[inline]
    fn push<const KIND: u8>(&mut self, id: PortId, waiting: Waiting, sink: &mut impl Sink) {
        let Waiting { slot, since: now, size, priority, .. } = waiting;
        self.waiting_bytes += u64::from(size);
        if let Some(drain) = &mut self.drain_bytes {
            drain.on_enqueue(priority, u64::from(size));
        }
        if let Some(GeneralExtras { marker: Some(marker), .. }) = self.extras::<KIND>() {
            marker.on_entered(sink.packet(slot));
        }
        if self.accounts::<KIND>() {
            sink.entered(now, id, slot);
        }
        if self.settles && self.waiting == 0 {
            sink.waits(id);
        }
        self.waiting += 1;
        let victims = &mut self.rest.victims;
        self.rest.discipline.push(waiting, sink, |victim| victims.push(victim));
        self.drop_victims(id, now, sink);
    }

    /// Removes the packet that is sent next from the queue.
    #[inline]
    fn pop<const KIND: u8>(&mut self, id: PortId, now: Time, sink: &mut impl Sink) -> Option<Leaving> {
        if KIND == TRIMS
            && let Discipline::Trimming(queues) = &mut self.rest.discipline
        {
            let next = queues.pop(self.stopped, sink.notes());
            self.waiting -= u32::from(next.is_some());
            return next.map(Leaving::unmarked);
        }
        self.pop_allowed(id, now, self.stopped, sink)
    }

    /// Removes the packet that is sent next, of the priorities that are not `stopped`, and drops the ones before it
    /// that are discarded.
    #[inline]
    fn pop_allowed(
        &mut self,
        id: PortId,
        now: Time,
        stopped: PauseState,
        sink: &mut impl Sink,
    ) -> Option<Leaving> {
        loop {
            let victims = &mut self.rest.victims;
            let next = self.rest.discipline.pop(now, stopped, sink, |victim| victims.push(victim));
            self.waiting -= u32::from(next.is_some());
            self.drop_victims(id, now, sink);
            match next {
                Some(next) if self.discarded.has(next.waiting.priority) => self.discard(id, now, &next, sink),
                next => return next,
            }
        }
    }

    /// Drops a packet that has been taken out of the queue.
    #[cold]
    fn discard(&mut self, id: PortId, now: Time, leaving: &Leaving, sink: &mut impl Sink) {
        let Waiting { slot, size, priority, .. } = leaving.waiting;
        self.on_left::<ANY>(id, slot, size, priority, sink);
        self.give_back_shared(u64::from(size), sink);
        self.drop_packet(id, now, slot, sink);
    }

    /// Drops the packets that the discipline has dropped, if any.
    #[inline]
    fn drop_victims(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        if self.drops_waiting && !self.rest.victims.is_empty() {
            self.drop_all_victims(id, now, sink);
        }
    }

    #[cold]
    fn drop_all_victims(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        let mut victims = std::mem::take(&mut self.rest.victims);
        self.waiting -= victims.len() as u32;
        for victim in victims.drain(..) {
            let &Packet { size, priority, .. } = sink.packet(victim);
            self.on_left::<ANY>(id, victim, size, priority, sink);
            self.give_back_shared(u64::from(size), sink);
            self.drop_packet(id, now, victim, sink);
        }
        self.rest.victims = victims;
    }

    /// The packet in `slot`, of `size` and `priority`, has left the queue.
    #[inline]
    fn on_left<const KIND: u8>(
        &mut self,
        id: PortId,
        slot: Slot,
        size: u16,
        priority: u8,
        sink: &mut impl Sink,
    ) {
        self.waiting_bytes -= u64::from(size);
        if let Some(drain) = &mut self.drain_bytes {
            drain.on_dequeue(priority, u64::from(size));
        }
        if let Some(GeneralExtras { marker: Some(marker), .. }) = self.extras::<KIND>() {
            marker.on_left(sink.packet(slot));
        }
        if self.accounts::<KIND>() {
            sink.left(id, slot);
        }
    }
}
