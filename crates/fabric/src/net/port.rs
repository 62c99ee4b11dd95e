//! Output ports: room, marking, and when a packet leaves.
//!
//! Two engines give the same result wherever both apply:
//! * [`Express`] serves first come first served at a fixed rate, so a packet's departure is known
//!   the moment it is admitted: one event per hop.
//! * [`General`] keeps the waiting packets and decides at each departure, at its time or later: per-flow fairness,
//!   marking at dequeue, a buffer shared with other ports, a transport that waits for room.

mod class_queues;
mod discipline;
mod express;
mod fair_queues;
mod general;
mod head_pacer;
mod marking;
mod rules;
mod scheduled;
mod sizes;
mod slot_queue;
mod stamper;
mod trimming;
mod waiting;

use std::sync::Arc;

use plimsoll_mechanisms::pfc::{Priorities, Signal};
use plimsoll_mechanisms::phantom_queue::PhantomQueue;
use plimsoll_units::Time;

pub use class_queues::{ClassQueues, ClassRates, ClassSignal};
pub use discipline::{Discipline, DisciplineFactory, PriorityQueues, QueueDiscipline, Queued, ServiceOrder};
pub(crate) use express::Admitted;
pub use express::Express;
pub use fair_queues::FairQueues;
pub use general::General;
pub use head_pacer::HeadPacer;
pub use marking::Marker;
pub use rules::{BufferLimit, PortRules};
pub use scheduled::ScheduledClasses;
pub use slot_queue::SlotQueue;
pub use stamper::Stamper;
pub use trimming::{Trimmer, TrimmingQueues};

use super::{Notes, Packet, PathClass, PortId, QueueMeter, Sink, Slot};

/// A port without mechanisms, as most are: the code of mechanisms is left out of its instance.
const PLAIN: u8 = 0;
/// A port whose only mechanism is flow control.
const ACCOUNTS: u8 = 1;
/// A port whose only mechanism is a shared buffer.
const SHARES: u8 = 2;
/// A port that trims, and whose only other mechanism may be a marker without memory.
const TRIMS: u8 = 3;
/// A port whose mechanisms are flow control, and a marker without memory or a stamper.
const LOSSLESS: u8 = 4;
/// A NIC for whose queue senders wait, and whose only other mechanism may be flow control.
const ROOM: u8 = 5;
/// A port that may have all mechanisms.
const ANY: u8 = 6;

/// A port's part in a buffer memory that all ports of its switch share. A packet takes its bytes when it is
/// admitted and gives them back when it starts to be sent, or when it has been sent if the limit counts the
/// packet in service.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedRoom {
    /// The number of the memory for [`Sink::pool`].
    pub pool: u32,
    /// The number of the port in the memory.
    pub port: usize,
}

/// The configuration of a port.
#[derive(Debug)]
pub struct PortConfig {
    /// The link, the buffer limit and the ECN threshold.
    pub rules: Arc<PortRules>,
    /// The mechanism that decides on arrivals in place of the threshold.
    pub marker: Option<Marker>,
    /// The shared memory in which a packet must also find room. Needs the general engine.
    pub shared: Option<SharedRoom>,
    /// HULL's phantom queue, consulted at the start of each transmission.
    pub phantom_queue: Option<PhantomQueue>,
    /// Watches the waiting bytes.
    pub meter: Option<QueueMeter>,
    /// Cuts packets that find no room. Needs the general engine.
    pub trimmer: Option<Trimmer>,
    /// Stamps packets at departure. Needs the general engine.
    pub stamper: Option<Stamper>,
    /// The order of service; any but first come, first served needs the general engine.
    pub discipline: Discipline,
    /// The pacer between queue and link.
    pub pacer: Option<HeadPacer>,
    /// Calls [`Sink::room`] when a packet has left the queue. Needs the general engine.
    pub announces_room: bool,
    /// Calls [`Sink::entered`] and [`Sink::left`], and may be paused. Needs the general engine.
    pub accounts: bool,
    /// Counts [`Port::drain_bytes`] by priority. Needs the general engine.
    pub counts_drain_bytes: bool,
    /// Needs the general engine: the link changes during the run, so that its transit time is added to packets when
    /// they are sent ([`Packet::add_transit`]).
    pub changes: bool,
    /// Uses the general engine even where express applies.
    pub general: bool,
    /// Decides departures late, where nothing can tell the difference. Needs a sink that implements [`Sink::waits`].
    pub settles: bool,
}

/// An output port: its queues, and the transmission on its link.
#[derive(Debug)]
#[repr(align(64))]
pub struct Port(Engine);

#[derive(Debug)]
enum Engine {
    /// The departure is known at admission.
    Express(Express),
    /// Each departure is decided when it is due.
    General(General),
}

const _: () = assert!(size_of::<Port>() == 64, "a port is one cache line");

impl Port {
    /// Builds the port on the simplest engine that supports `config`.
    pub fn new(config: PortConfig) -> Port {
        let express = config.discipline.is_fifo()
            && !config.announces_room
            && !config.accounts
            && !config.counts_drain_bytes
            && !config.changes
            && !config.rules.ecn.is_some_and(|ecn| ecn.marks_at_dequeue())
            && config.shared.is_none()
            && config.trimmer.is_none()
            && config.stamper.is_none()
            && !config.marker.as_ref().is_some_and(Marker::counts_waiting)
            && !config.general;
        if express {
            Port(Engine::Express(Express::new(config)))
        } else {
            Port(Engine::General(General::new(config)))
        }
    }

    /// Returns whether departures are known at admission.
    pub fn is_express(&self) -> bool {
        matches!(self.0, Engine::Express(_))
    }

    /// The packet in `slot` is to leave by this port, which is number `id`. It may be marked.
    #[inline]
    pub fn on_arrival(&mut self, id: PortId, now: Time, slot: Slot, sink: &mut impl Sink) {
        match &mut self.0 {
            Engine::Express(port) => port.on_arrival(id, now, slot, sink),
            Engine::General(port) => port.on_arrival(id, now, slot, sink),
        }
    }

    /// Returns the engine of a port whose departures are known at admission.
    #[inline]
    pub(crate) fn as_express(&mut self) -> Option<&mut Express> {
        match &mut self.0 {
            Engine::Express(port) => Some(port),
            Engine::General(_) => None,
        }
    }

    /// Sends a packet that an idle port with explicit departures need not look at any closer. Returns when it arrives
    /// at the far end.
    #[inline]
    pub(crate) fn pass(&mut self, now: Time, packet: &Packet) -> Option<Time> {
        match &mut self.0 {
            Engine::Express(_) => None,
            Engine::General(port) => port.pass(now, packet),
        }
    }

    /// Prefetches the memory behind the port that an arrival will use. Returns whether packets wait whose departures
    /// are not known.
    #[inline]
    pub fn prefetch_queue(&self) -> bool {
        match &self.0 {
            Engine::Express(port) => {
                port.prefetch_queue();
                false
            }
            Engine::General(port) => port.prefetch_queue(),
        }
    }

    /// Prefetches the memory that a departure will use behind the memory of [`prefetch_queue`](Self::prefetch_queue).
    /// Returns the packet that leaves next, where that is at hand. An express port has none.
    #[inline]
    pub fn first_to_leave(&self) -> Option<Slot> {
        match &self.0 {
            Engine::Express(_) => None,
            Engine::General(port) => port.first_to_leave(),
        }
    }

    /// Handles the call requested by [`Sink::call_at`].
    pub fn on_due(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        match &mut self.0 {
            Engine::Express(_) => unreachable!("an express port asks for no call"),
            Engine::General(port) => port.on_due(id, now, sink),
        }
    }

    /// Carries out the departures that are due at `now`, each at its own time, if the port decides them late.
    #[inline]
    pub fn settle(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        if let Engine::General(port) = &mut self.0 {
            port.settle(id, now, sink);
        }
    }

    /// From now on every departure is an event. No packet waits yet.
    pub fn decide_in_time(&mut self) {
        if let Engine::General(port) = &mut self.0 {
            port.decide_in_time();
        }
    }

    /// The far end pauses or resumes priorities. The far end of an express port never does.
    pub fn on_signal(&mut self, id: PortId, now: Time, signal: Signal, sink: &mut impl Sink) {
        match &mut self.0 {
            Engine::Express(_) => unreachable!("an express port is never paused"),
            Engine::General(port) => port.on_signal(id, now, signal, sink),
        }
    }

    /// The packets of `priorities` are dropped in place of being sent, from now on.
    pub fn set_discarded(&mut self, id: PortId, now: Time, priorities: Priorities, sink: &mut impl Sink) {
        match &mut self.0 {
            Engine::Express(_) => unreachable!("an express port is never paused"),
            Engine::General(port) => port.set_discarded(id, now, priorities, sink),
        }
    }

    /// Passes a signal of the circuits' controller to a host's queues. Only a port with [`Discipline::Classes`] reacts.
    pub fn on_class_signal(&mut self, id: PortId, now: Time, signal: ClassSignal<'_>, sink: &mut impl Sink) {
        match &mut self.0 {
            Engine::Express(_) => unreachable!("an express port has one queue"),
            Engine::General(port) => port.on_class_signal(id, now, signal, sink),
        }
    }

    /// Returns the queues by destination of a host in a hybrid network.
    pub fn class_queues(&self) -> Option<&ClassQueues> {
        match &self.0 {
            Engine::Express(_) => None,
            Engine::General(port) => port.class_queues(),
        }
    }

    /// Returns whether a packet of `size` bytes to `destination` would find room in its class; in the queue, where
    /// there are no classes.
    pub fn class_has_room(&mut self, now: Time, destination: u32, class: PathClass, size: u64) -> bool {
        match &mut self.0 {
            Engine::Express(port) => port.has_room(now, size),
            Engine::General(port) => port.class_has_room(now, destination, class, size),
        }
    }

    /// Returns whether a packet of `size` bytes would find room in each class; in the queue, where there are no
    /// classes.
    pub fn classes_have_room(&mut self, now: Time, size: u64) -> bool {
        match &mut self.0 {
            Engine::Express(port) => port.has_room(now, size),
            Engine::General(port) => port.classes_have_room(now, size),
        }
    }

    /// Holds exactly the priorities in `paused` until the next call: a night begins or ends. Priorities that the far
    /// end pauses stay paused.
    pub fn set_night(&mut self, id: PortId, now: Time, paused: Priorities, sink: &mut impl Sink) {
        match &mut self.0 {
            Engine::Express(_) => unreachable!("an express port has no nights"),
            Engine::General(port) => port.set_night(id, now, paused, sink),
        }
    }

    /// Returns the port's rules.
    pub fn rules(&self) -> &Arc<PortRules> {
        match &self.0 {
            Engine::Express(port) => port.rules(),
            Engine::General(port) => port.rules(),
        }
    }

    /// Changes the rules of the link from now on. The packet in service ends as it began, and waiting packets are not
    /// dropped. An express port's link never changes.
    pub fn set_rules(&mut self, rules: Arc<PortRules>) {
        match &mut self.0 {
            Engine::Express(_) => unreachable!("an express port's link does not change"),
            Engine::General(port) => port.set_rules(rules),
        }
    }

    /// Drops all packets that wait. The packet in service is on the link already.
    pub fn flush(&mut self, id: PortId, now: Time, sink: &mut impl Sink) {
        match &mut self.0 {
            Engine::Express(_) => unreachable!("an express port does not know what waits"),
            Engine::General(port) => port.flush(id, now, sink),
        }
    }

    /// Returns the bytes that leave before a packet of `priority` that arrives now.
    pub fn drain_bytes(&self, priority: u8) -> u64 {
        match &self.0 {
            Engine::Express(_) => unreachable!("an express port does not count by priority"),
            Engine::General(port) => port.drain_bytes(priority),
        }
    }

    /// Returns the port's part in a shared buffer, if it has one.
    #[inline]
    pub(crate) fn shared_room(&self) -> Option<SharedRoom> {
        match &self.0 {
            Engine::Express(_) => None,
            Engine::General(port) => port.shared_room(),
        }
    }

    /// Returns when the link is free.
    pub fn busy_until(&self) -> Time {
        match &self.0 {
            Engine::Express(port) => port.busy_until(),
            Engine::General(port) => port.busy_until(),
        }
    }

    /// Sends a frame of `bytes` that the port itself has made, such as a pause, at once behind the packet in service.
    /// Returns whether the port is to be called when the link is free again.
    pub fn send_frame(&mut self, now: Time, bytes: u64) -> bool {
        match &mut self.0 {
            Engine::Express(_) => unreachable!("a port that pauses others decides at each departure"),
            Engine::General(port) => port.send_frame(now, bytes),
        }
    }

    /// Returns the waiting packets in lines, each the first first. A packet that may not be sent holds up the packets
    /// behind it in its line, and none of them is ever dropped. Empty at a port that may drop waiting packets.
    pub fn lines(&self, notes: &Notes) -> Vec<Vec<Slot>> {
        match &self.0 {
            Engine::Express(_) => Vec::new(),
            Engine::General(port) => port.lines(notes),
        }
    }

    /// Returns whether packets wait here while the far end has paused all of `priorities`.
    pub fn holds_all(&self, priorities: Priorities) -> bool {
        match &self.0 {
            Engine::Express(_) => false,
            Engine::General(port) => port.holds_all(priorities),
        }
    }

    /// Returns whether a packet of `size` bytes would find room.
    pub fn has_room(&mut self, now: Time, size: u64) -> bool {
        match &mut self.0 {
            Engine::Express(port) => port.has_room(now, size),
            Engine::General(port) => port.has_room(now, size),
        }
    }

    /// Returns the pacer behind the queue, where there is one.
    pub fn head_pacer(&mut self) -> Option<&mut HeadPacer> {
        match &mut self.0 {
            Engine::Express(port) => port.pacer(),
            Engine::General(port) => port.pacer(),
        }
    }

    /// Returns the number of packets that wait and have not been handed to the sink.
    pub fn held(&self) -> usize {
        match &self.0 {
            Engine::Express(_) => 0,
            Engine::General(port) => port.held(),
        }
    }

    /// Returns whether a packet waits in the queue that a packet of `priority` would join.
    pub fn holds(&self, priority: u8) -> bool {
        match &self.0 {
            Engine::Express(_) => false,
            Engine::General(port) => port.holds(priority),
        }
    }

    /// Returns whether a packet waits.
    pub fn holds_any(&self) -> bool {
        match &self.0 {
            Engine::Express(_) => false,
            Engine::General(port) => port.held() > 0,
        }
    }

    /// Returns the number of packets that a discipline from outside was given, and has neither sent, nor dropped, nor
    /// still waiting.
    pub fn forgotten(&self) -> usize {
        match &self.0 {
            Engine::Express(_) => 0,
            Engine::General(port) => port.forgotten(),
        }
    }

    /// Returns the number of marks already reported of packets that have not left the queue by `end`: an express port
    /// foresees the actions of its phantom queue.
    pub fn marks_after(&self, end: Time) -> u64 {
        match &self.0 {
            Engine::Express(port) => port.marks_after(end),
            Engine::General(_) => 0,
        }
    }

    /// Stops watching, and returns the observations up to `end`.
    pub fn take_meter(&mut self, end: Time) -> Option<super::MeterReading> {
        let meter = match &mut self.0 {
            Engine::Express(port) => port.take_meter(end),
            Engine::General(port) => port.take_meter(),
        };
        meter.map(|meter| meter.read(end))
    }
}

#[cfg(test)]
mod general_tests;
#[cfg(test)]
mod shared_tests;
