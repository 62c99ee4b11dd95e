//! [`Discipline`]: the order in which waiting packets are served, and the packets that a full queue drops.

use std::fmt;
use std::sync::Arc;

use plimsoll_mechanisms::PortMechanisms;
use plimsoll_mechanisms::pfabric::{PfabricParams, PfabricQueue};
use plimsoll_mechanisms::pfc::{PauseState, Priorities};
use plimsoll_memory::prefetch_for_later;
use plimsoll_units::Time;

use super::BufferLimit;
use super::class_queues::{ClassQueues, DepartingPacket};
use super::fair_queues::FairQueues;
use super::marking::Verdict;
use super::scheduled::ScheduledClasses;
use super::slot_queue::SlotQueue;
use super::trimming::TrimmingQueues;
use super::waiting::{Leaving, Waiting};
use crate::net::topology::Link;
use crate::net::{Flags, Notes, Packet, Sink, Slot, WaitPlace};

/// The order in which a queue is served where no mechanism and no discipline from outside decides it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ServiceOrder {
    /// First come, first served.
    #[default]
    Fifo,
    /// Eight strict priorities (802.1p): the highest that has a packet is served first.
    Priorities,
    /// One queue per flow is served by deficit round robin.
    FairPerFlow,
}

/// The order in which waiting packets are served.
#[derive(Debug)]
pub enum Discipline {
    /// Serves packets in the order of their arrival.
    Fifo(SlotQueue),
    /// One queue per flow, deficit round robin (Shreedhar and Varghese, SIGCOMM 1995).
    FairPerFlow(Box<FairQueues>),
    /// One queue for each of the eight 802.1p priorities; the highest that has a packet is served first.
    Priorities(PriorityQueues),
    /// A queue for each destination, of which a circuit or the packet switch serves some.
    Classes(Box<ClassQueues>),
    /// Queues by class of priorities, with a scheduler.
    Scheduled(Box<ScheduledClasses>),
    /// Data, and the headers of trimmed packets.
    Trimming(TrimmingQueues),
    /// pFabric: by rank, with a limit of its own.
    Pfabric(Box<PfabricQueue<Waiting>>),
    /// A discipline from outside.
    Custom(Box<dyn QueueDiscipline>),
}

/// A queue discipline from outside.
pub trait QueueDiscipline: fmt::Debug + Send {
    /// Adds a packet. `dropped` receives every packet that is dropped for it, which may be the packet itself.
    fn push(&mut self, queued: Queued, dropped: &mut dyn FnMut(Queued));

    /// Removes the packet that is sent next, one whose priority `pause` lets through. `dropped` receives packets that
    /// are no longer worth sending.
    fn pop(&mut self, now: Time, pause: PauseState, dropped: &mut dyn FnMut(Queued)) -> Option<Queued>;

    /// Returns the number of packets that wait. A run whose disciplines have lost any fails at its end.
    fn len(&self) -> usize;

    /// Returns whether no packet waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Makes the queue discipline of each port that a scenario gives it to: a closure, which may hold parameters.
#[derive(Clone)]
pub struct DisciplineFactory(Arc<MakeForLink>);

/// Makes a discipline for the port that sends on a link.
type MakeForLink = dyn Fn(&Link) -> Box<dyn QueueDiscipline> + Send + Sync;

impl DisciplineFactory {
    /// Returns a factory that calls `make` for each port with the link that the port sends on.
    pub fn new(
        make: impl Fn(&Link) -> Box<dyn QueueDiscipline> + Send + Sync + 'static,
    ) -> DisciplineFactory {
        DisciplineFactory(Arc::new(make))
    }
}

impl fmt::Debug for DisciplineFactory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DisciplineFactory")
    }
}

/// A packet and its arrival time, for a discipline from outside, which returns each one once: to be sent, or dropped.
#[derive(Debug)]
pub struct Queued {
    /// The packet that waits.
    pub packet: Packet,
    /// The time since which it waits.
    pub since: Time,
    /// Whether the packet is marked (ECN) when it is sent.
    pub mark: bool,
    slot: Slot,
    draws: bool,
}

/// A queue for each 802.1p priority, of which the highest that is not empty and not paused is served.
#[derive(Clone, Debug, Default)]
pub struct PriorityQueues {
    /// The priorities of which packets wait.
    waiting: Priorities,
    queues: [SlotQueue; 8],
}

impl Discipline {
    /// Returns the discipline of a port: the one of a mechanism that is on, else `order`. Under per-flow fairness a
    /// flow may send `quantum` bytes in its turn. `limit` is the port's own.
    pub fn of(
        order: ServiceOrder,
        mechanisms: &PortMechanisms,
        quantum: u64,
        limit: BufferLimit,
    ) -> Discipline {
        if let Some(params) = &mechanisms.pfabric {
            return Discipline::pfabric(params);
        }
        if let Some(params) = &mechanisms.classes {
            return Discipline::Scheduled(Box::new(ScheduledClasses::new(
                params,
                mechanisms.trim.as_ref(),
                quantum,
                limit,
            )));
        }
        if let Some(params) = &mechanisms.trim {
            return Discipline::Trimming(TrimmingQueues::new(params, limit));
        }
        match order {
            ServiceOrder::Fifo => Discipline::fifo(),
            ServiceOrder::Priorities => Discipline::priorities(),
            ServiceOrder::FairPerFlow => Discipline::fair_per_flow(quantum),
        }
    }

    /// Returns the discipline that a factory from outside makes for the port that sends on `link`.
    pub fn custom(factory: &DisciplineFactory, link: &Link) -> Discipline {
        Discipline::Custom((factory.0)(link))
    }

    /// Serves packets in the order of their arrival.
    pub fn fifo() -> Discipline {
        Discipline::Fifo(SlotQueue::default())
    }

    /// Serves flows in turn, `quantum` bytes each, at least one full-size packet.
    pub fn fair_per_flow(quantum: u64) -> Discipline {
        Discipline::FairPerFlow(Box::new(FairQueues::new(quantum)))
    }

    /// Serves strict priorities.
    pub fn priorities() -> Discipline {
        Discipline::Priorities(PriorityQueues::default())
    }

    /// Builds pFabric's queue. The port's own limit should then be none.
    pub fn pfabric(params: &PfabricParams) -> Discipline {
        Discipline::Pfabric(Box::new(PfabricQueue::new(params)))
    }

    /// Returns whether the order of service is the order of arrival.
    pub fn is_fifo(&self) -> bool {
        matches!(self, Discipline::Fifo(_))
    }

    /// Returns whether nothing is to be done while no packet waits. A discipline from outside may rely on being called,
    /// and queues by destination have rates.
    pub(super) fn is_idle_when_empty(&self) -> bool {
        !matches!(self, Discipline::Classes(_) | Discipline::Custom(_))
    }

    /// Returns the size of the largest packet that could join an empty queue and leave at once with no trace but
    /// [`on_passing`](Self::on_passing)'s, 0 if none could.
    pub(super) fn passes_up_to(&self) -> u16 {
        match self {
            Discipline::Fifo(_)
            | Discipline::FairPerFlow(_)
            | Discipline::Priorities(_)
            | Discipline::Trimming(_) => u16::MAX,
            Discipline::Pfabric(queue) => u16::try_from(queue.largest()).unwrap_or(u16::MAX),
            Discipline::Scheduled(_) | Discipline::Classes(_) | Discipline::Custom(_) => 0,
        }
    }

    /// `packet` joins the empty queue and leaves at once, without [`push`](Self::push) and [`pop`](Self::pop).
    pub(super) fn on_passing(&mut self, packet: &Packet) {
        if let Discipline::Trimming(queues) = self {
            queues.on_passing(packet);
        }
    }

    /// Returns whether packets may wait while the link is free and nothing is paused, so that a departure depends on
    /// more than the packets before it.
    pub(super) fn holds_back(&self) -> bool {
        match self {
            Discipline::Scheduled(queues) => queues.has_rates(),
            Discipline::Classes(_) | Discipline::Custom(_) => true,
            _ => false,
        }
    }

    /// Returns whether the discipline itself decides on arriving packets.
    pub(super) fn has_limits(&self) -> bool {
        matches!(self, Discipline::Scheduled(_) | Discipline::Trimming(_))
    }

    /// Returns whether the port's limit concerns some of the discipline's queues, and not the whole: the discipline
    /// then applies it.
    pub(super) fn divides_limit(&self) -> bool {
        match self {
            Discipline::Trimming(_) => true,
            Discipline::Scheduled(queues) => queues.has_header_queue(),
            _ => false,
        }
    }

    /// Returns whether `packet` waits in the queue of headers of a port that trims.
    pub(super) fn is_in_header_queue(&self, packet: &Packet) -> bool {
        match self {
            Discipline::Trimming(_) => packet.is_header(),
            Discipline::Scheduled(queues) => queues.is_header(packet.priority),
            _ => false,
        }
    }

    /// Returns the bytes of waiting data, of `all` that wait.
    pub(super) fn data_bytes(&self, all: u64) -> u64 {
        match self {
            Discipline::Trimming(queues) => queues.data_bytes(),
            _ => all,
        }
    }

    /// Decides on `packet` by the length of its queue, and by the packet of `in_service` bytes that is being sent.
    pub(super) fn on_arrival(&self, packet: &Packet, in_service: u64) -> Verdict {
        match self {
            Discipline::Scheduled(queues) => {
                queues.on_arrival(packet.priority, u64::from(packet.size), in_service)
            }
            Discipline::Trimming(queues) => queues.on_arrival(packet, in_service),
            _ => Verdict::Pass,
        }
    }

    /// Removes the packet that would be sent last among the data, of the class of `priority` where there are classes,
    /// to be trimmed: if `may_trim`.
    pub(super) fn take_tail(
        &mut self,
        now: Time,
        priority: u8,
        sink: &mut impl Sink,
        may_trim: impl Fn(&Packet) -> bool,
    ) -> Option<Waiting> {
        match self {
            Discipline::Trimming(queues) => queues.take_tail(sink, may_trim),
            Discipline::Scheduled(queues) => queues.take_tail(now, priority, sink, may_trim),
            _ => None,
        }
    }

    /// Adds the packet that `waiting` describes; `dropped` receives the packets that are dropped for it.
    #[inline]
    pub(super) fn push(&mut self, waiting: Waiting, sink: &mut impl Sink, mut dropped: impl FnMut(Slot)) {
        let slot = waiting.slot;
        match self {
            Discipline::Fifo(queue) => queue.push(waiting, sink.notes_mut()),
            Discipline::Priorities(queues) => queues.push(waiting, sink.notes_mut()),
            Discipline::FairPerFlow(queues) => queues.push(waiting, directed_flow(sink.packet(slot))),
            Discipline::Classes(queues) => queues.push(waiting, sink.packet_mut(slot)),
            Discipline::Scheduled(queues) => {
                let flow = directed_flow(sink.packet(slot));
                queues.push(waiting, flow, sink.notes_mut());
            }
            Discipline::Trimming(queues) => {
                let is_header = sink.packet(slot).is_header();
                queues.push(waiting, is_header, sink.notes_mut());
            }
            Discipline::Pfabric(queue) => {
                let packet = sink.packet(slot);
                let (rank, flow, size) = (packet.rank, directed_flow(packet), packet.size);
                queue.push(u64::from(rank), flow, u64::from(size), waiting, |victim| dropped(victim.slot));
            }
            Discipline::Custom(queue) => {
                queue.push(waiting.queued(sink.packet(slot)), &mut |victim| dropped(victim.slot));
            }
        }
    }

    /// Removes the packet that is sent next, among the priorities that `pause` lets through. In a queue without
    /// priorities the first one blocks the others.
    pub(super) fn pop(
        &mut self,
        now: Time,
        pause: PauseState,
        sink: &mut impl Sink,
        mut dropped: impl FnMut(Slot),
    ) -> Option<Leaving> {
        let waiting = match self {
            Discipline::Fifo(queue) => queue.pop_if(sink.notes(), |waiting| pause.may(waiting.priority)),
            Discipline::FairPerFlow(queues) => queues.pop(pause),
            Discipline::Priorities(queues) => queues.pop(pause, sink.notes()),
            Discipline::Classes(queues) => {
                queues.pop(now).map(|DepartingPacket { waiting, by, plane, held }| {
                    let packet = sink.packet_mut(waiting.slot);
                    packet.set_path_class(by);
                    packet.set_circuit_plane(plane);
                    packet.add_wait(WaitPlace::CIRCUIT, held);
                    waiting
                })
            }
            Discipline::Scheduled(queues) => return queues.pop(now, pause, sink.notes()),
            Discipline::Trimming(queues) => queues.pop(pause, sink.notes()),
            Discipline::Pfabric(queue) => queue.pop_if(|waiting| pause.may(waiting.priority)),
            Discipline::Custom(queue) => {
                let Queued { packet, since, mark, slot, draws } =
                    queue.pop(now, pause, &mut |victim| dropped(victim.slot))?;
                let waiting = Waiting::new(slot, &packet, since, draws);
                *sink.packet_mut(slot) = packet;
                return Some(Leaving { waiting, mark });
            }
        };
        waiting.map(Leaving::unmarked)
    }

    /// Removes any packet, to be dropped, even if its priority is paused.
    pub(super) fn pop_any(
        &mut self,
        now: Time,
        sink: &mut impl Sink,
        dropped: impl FnMut(Slot),
    ) -> Option<Slot> {
        match self {
            Discipline::Classes(queues) => return queues.pop_any(),
            Discipline::Scheduled(queues) => {
                return queues.pop_any(now, sink.notes()).map(|waiting| waiting.slot);
            }
            _ => {}
        }
        self.pop(now, PauseState::default(), sink, dropped).map(|leaving| leaving.waiting.slot)
    }

    /// Returns when a packet may be sent that may not be sent at `now`, if that time is known.
    #[inline]
    pub(super) fn next_due(&self, now: Time) -> Option<Time> {
        match self {
            Discipline::Classes(queues) => queues.next_due(now),
            Discipline::Scheduled(queues) => queues.next_due(now),
            _ => None,
        }
    }

    /// Returns whether a packet waits in the queue of `priority`; whether any waits, where priorities share a queue.
    /// Some packet waits.
    pub(super) fn holds(&self, priority: u8) -> bool {
        match self {
            Discipline::Priorities(queues) => queues.waiting.has(priority & 7),
            Discipline::Scheduled(queues) => queues.holds(priority),
            _ => true,
        }
    }

    /// Returns the waiting packets in lines. A packet that may not be sent holds up the packets behind it in its line,
    /// and none of them is ever dropped. Disciplines that may drop waiting packets have no lines.
    pub(super) fn lines(&self, notes: &Notes) -> Vec<Vec<Slot>> {
        match self {
            Discipline::Fifo(queue) => vec![queue.slots(notes)],
            Discipline::Priorities(queues) => queues.queues.iter().map(|queue| queue.slots(notes)).collect(),
            Discipline::FairPerFlow(queues) => queues.lines().collect(),
            Discipline::Scheduled(queues) => queues.lines(notes),
            Discipline::Classes(_)
            | Discipline::Trimming(_)
            | Discipline::Pfabric(_)
            | Discipline::Custom(_) => Vec::new(),
        }
    }

    /// Prefetches the memory behind the discipline that a departure will use.
    pub(super) fn prefetch(&self) {
        match self {
            Discipline::Pfabric(queue) => prefetch_for_later(&**queue),
            Discipline::Scheduled(queues) => prefetch_for_later(&**queues),
            _ => {}
        }
    }

    /// Returns the slot of the packet that is sent next, where that is known without a search.
    #[inline]
    pub(super) fn first_at_hand(&self) -> Option<Slot> {
        match self {
            Discipline::Fifo(queue) => queue.first(),
            Discipline::Priorities(queues) => queues.first(),
            Discipline::Trimming(queues) => queues.first(),
            _ => None,
        }
    }

    /// Returns whether the discipline may drop packets that wait, which it then reports.
    pub(super) fn drops_waiting(&self) -> bool {
        matches!(self, Discipline::Pfabric(_) | Discipline::Custom(_))
    }

    /// Returns how many of the `given` packets that should wait a discipline from outside has lost.
    pub(super) fn lost_of(&self, given: usize) -> usize {
        match self {
            Discipline::Custom(queue) => given.saturating_sub(queue.len()),
            _ => 0,
        }
    }
}

/// Returns a connection's direction as one number.
fn directed_flow(packet: &Packet) -> u64 {
    u64::from(packet.flow) << 1 | u64::from(packet.flags.has(Flags::FROM_SERVER))
}

impl PriorityQueues {
    #[inline]
    fn push(&mut self, waiting: Waiting, notes: &mut Notes) {
        let priority = waiting.priority & 7;
        self.queues[usize::from(priority)].push(waiting, notes);
        self.waiting = self.waiting.with(priority);
    }

    /// Returns the slot of the packet that is sent next if nothing is paused.
    fn first(&self) -> Option<Slot> {
        self.waiting.highest().and_then(|priority| self.queues[usize::from(priority)].first())
    }

    #[inline]
    fn pop(&mut self, pause: PauseState, notes: &Notes) -> Option<Waiting> {
        let priority = self.waiting.without(pause.paused()).highest()?;
        let queue = &mut self.queues[usize::from(priority)];
        let waiting = queue.pop_if(notes, |_| true)?;
        if queue.is_empty() {
            self.waiting = self.waiting.without(Priorities::one(priority));
        }
        Some(waiting)
    }
}

impl Waiting {
    /// Returns the packet and its arrival time, for a discipline from outside.
    fn queued(self, packet: &Packet) -> Queued {
        let Waiting { since, slot, draws, .. } = self;
        Queued { packet: *packet, since, mark: false, slot, draws }
    }
}
