//! [`ScheduledClasses`]: the queues of a port by class, which a scheduler serves.

use plimsoll_mechanisms::Depth;
use plimsoll_mechanisms::classes::{ClassMap, ClassParams, ClassScheduler, ClassesParams, OrderInClass};
use plimsoll_mechanisms::ecn::Ecn;
use plimsoll_mechanisms::pfc::PauseState;
use plimsoll_mechanisms::trim::TrimParams;
use plimsoll_units::Time;

use super::fair_queues::FairQueues;
use super::marking::Verdict;
use super::rules::BufferLimit;
use super::slot_queue::SlotQueue;
use super::waiting::{Leaving, Waiting};
use crate::net::{Notes, Packet, Sink, Slot};

/// The queues of a port by class. The state machine of the schedule is [`ClassScheduler`]; here are the packets.
#[derive(Debug)]
pub struct ScheduledClasses {
    scheduler: ClassScheduler,
    of_priority: [u8; 8],
    queues: Vec<ClassQueue>,
    /// The header queue, at a port that trims.
    headers: Option<HeaderClass>,
}

/// The class in which the headers of trimmed packets wait. It has a limit of its own, and the port's limit concerns the
/// other classes together.
#[derive(Debug)]
struct HeaderClass {
    class: usize,
    of_others: BufferLimit,
    /// The packet in service is of this class.
    is_sending: bool,
}

#[derive(Debug)]
struct ClassQueue {
    order: InClass,
    packets: u64,
    bytes: u64,
    limit: BufferLimit,
    ecn: Option<Ecn>,
}

/// The packets of a class, in the order of their service.
#[derive(Debug)]
enum InClass {
    Fifo(SlotQueue),
    FairPerFlow(FairQueues),
}

impl ScheduledClasses {
    /// Makes the empty queues of `params`, which must be valid, at a port with `limit` that trims by `trim`. A full
    /// packet has `full_packet` bytes.
    pub(super) fn new(
        params: &ClassesParams,
        trim: Option<&TrimParams>,
        full_packet: u64,
        limit: BufferLimit,
    ) -> ScheduledClasses {
        let map = ClassMap::of(params);
        let mut queues: Vec<_> =
            map.classes.iter().map(|class| ClassQueue::new(class, full_packet)).collect();
        let headers = trim.map(|trim| {
            let class = usize::from(map.of_priority[usize::from(trim.priority & 7)]);
            if map.classes[class].buffer.is_none() {
                queues[class].limit = limit.twice();
            }
            HeaderClass { class, of_others: limit, is_sending: false }
        });
        ScheduledClasses {
            scheduler: ClassScheduler::new(&map, params.scheduler, full_packet),
            of_priority: map.of_priority,
            queues,
            headers,
        }
    }

    /// Returns whether packets may wait while the link is free and nothing is paused.
    pub(super) fn has_rates(&self) -> bool {
        self.scheduler.has_rates()
    }

    fn class_of(&self, priority: u8) -> usize {
        usize::from(self.of_priority[usize::from(priority & 7)])
    }

    /// Returns whether a packet waits in the class of `priority`.
    pub(super) fn holds(&self, priority: u8) -> bool {
        self.queues[self.class_of(priority)].packets > 0
    }

    /// Returns whether a class is the header queue, so that the port's limit concerns only the others.
    pub(super) fn has_header_queue(&self) -> bool {
        self.headers.is_some()
    }

    /// Returns whether packets of `priority` wait in the header queue.
    pub(super) fn is_header(&self, priority: u8) -> bool {
        self.headers.as_ref().is_some_and(|headers| headers.class == self.class_of(priority))
    }

    /// Decides on a packet of `priority` and `bytes` by the limit and the threshold of its class, and beside a header
    /// queue by the limit of the other classes, while `in_service` bytes are being sent.
    pub(super) fn on_arrival(&self, priority: u8, bytes: u64, in_service: u64) -> Verdict {
        let class = self.class_of(priority);
        let ClassQueue { packets, bytes: waiting, limit, ecn, .. } = &self.queues[class];
        let in_class = limit.counted(in_service, self.headers.as_ref().is_some_and(|of| of.is_sending));
        match ecn {
            _ if !limit.has_room(*packets as usize, *waiting, in_class, bytes) => Verdict::Drop,
            _ if !self.others_have_room(class, bytes, in_service) => Verdict::Drop,
            Some(ecn) if ecn.on_enqueue(*waiting, *packets) => Verdict::Mark,
            _ => Verdict::Pass,
        }
    }

    /// Returns whether a packet of `bytes` and `class` has room beside all that waits outside the header queue. Without
    /// such a queue the port decides.
    fn others_have_room(&self, class: usize, bytes: u64, in_service: u64) -> bool {
        let Some(headers) = self.headers.as_ref().filter(|headers| headers.class != class) else {
            return true;
        };
        let others = self.queues.iter().enumerate().filter(|(other, _)| *other != headers.class);
        let (packets, waiting) =
            others.fold((0, 0), |(packets, bytes), (_, of)| (packets + of.packets, bytes + of.bytes));
        let in_service = headers.of_others.counted(in_service, !headers.is_sending);
        headers.of_others.has_room(packets as usize, waiting, in_service, bytes)
    }

    pub(super) fn push(&mut self, waiting: Waiting, flow: u64, notes: &mut Notes) {
        let class = self.class_of(waiting.priority);
        let queue = &mut self.queues[class];
        if queue.packets == 0 {
            self.scheduler.on_backlog(waiting.since, class);
        }
        queue.packets += 1;
        queue.bytes += u64::from(waiting.size);
        match &mut queue.order {
            InClass::Fifo(packets) => packets.push(waiting, notes),
            InClass::FairPerFlow(flows) => flows.push(waiting, flow),
        }
    }

    /// Removes the packet that is sent next, among the priorities that `pause` lets through. The first packet of a
    /// class blocks the others of it.
    pub(super) fn pop(&mut self, now: Time, pause: PauseState, notes: &Notes) -> Option<Leaving> {
        let queues = &mut self.queues;
        let class = self.scheduler.next(now, |class| {
            let first = queues[class].order.first(notes)?;
            pause.may(first.priority).then_some(u64::from(first.size))
        })?;
        if let Some(headers) = &mut self.headers {
            headers.is_sending = headers.class == class;
        }
        let queue = &mut self.queues[class];
        let waiting = queue.pop(pause, notes)?;
        self.scheduler.on_sent(now, class, u64::from(waiting.size), queue.packets == 0);
        let mark = queue.ecn.is_some_and(|ecn| ecn.on_dequeue(queue.bytes, queue.packets));
        Some(Leaving { waiting, mark })
    }

    /// Removes any packet, to be dropped. The schedule takes no account of it.
    pub(super) fn pop_any(&mut self, now: Time, notes: &Notes) -> Option<Waiting> {
        let class = self.queues.iter().position(|queue| queue.packets > 0)?;
        let queue = &mut self.queues[class];
        let waiting = queue.pop(PauseState::default(), notes)?;
        self.scheduler.on_sent(now, class, 0, queue.packets == 0);
        Some(waiting)
    }

    /// Removes the last packet of the class of `priority`, if the class is first come, first served, and `may_trim`.
    pub(super) fn take_tail(
        &mut self,
        now: Time,
        priority: u8,
        sink: &mut impl Sink,
        may_trim: impl Fn(&Packet) -> bool,
    ) -> Option<Waiting> {
        let class = self.class_of(priority);
        let queue = &mut self.queues[class];
        let InClass::Fifo(packets) = &mut queue.order else { return None };
        let last = packets.take_newest(sink, may_trim)?;
        queue.packets -= 1;
        queue.bytes -= u64::from(last.size);
        if queue.packets == 0 {
            self.scheduler.on_sent(now, class, 0, true);
        }
        Some(last)
    }

    /// Returns the first time after `now` at which the rate of a class lets it send.
    pub(super) fn next_due(&self, now: Time) -> Option<Time> {
        self.scheduler.next_due(now)
    }

    /// Returns the waiting packets of each class; of each flow, where a class serves flows in turn.
    pub(super) fn lines(&self, notes: &Notes) -> Vec<Vec<Slot>> {
        let lines = |queue: &ClassQueue| match &queue.order {
            InClass::Fifo(packets) => vec![packets.slots(notes)],
            InClass::FairPerFlow(flows) => flows.lines().collect(),
        };
        self.queues.iter().flat_map(lines).collect()
    }
}

impl ClassQueue {
    fn new(params: &ClassParams, full_packet: u64) -> ClassQueue {
        let mut limit = BufferLimit::UNLIMITED;
        match params.buffer {
            Some(Depth::Bytes(bytes)) => limit.bytes = bytes.get(),
            Some(Depth::Packets(packets)) => limit.packets = packets,
            None => {}
        }
        let order = match params.order {
            OrderInClass::Fifo => InClass::Fifo(SlotQueue::default()),
            OrderInClass::FairPerFlow => InClass::FairPerFlow(FairQueues::new(full_packet)),
        };
        ClassQueue { order, packets: 0, bytes: 0, limit, ecn: params.ecn.as_ref().map(Ecn::new) }
    }

    fn pop(&mut self, pause: PauseState, notes: &Notes) -> Option<Waiting> {
        let waiting = match &mut self.order {
            InClass::Fifo(packets) => packets.pop_if(notes, |_| true),
            InClass::FairPerFlow(flows) => flows.pop(pause),
        }?;
        self.packets -= 1;
        self.bytes -= u64::from(waiting.size);
        Some(waiting)
    }
}

impl InClass {
    /// Returns the packet that the class sends next.
    fn first(&mut self, notes: &Notes) -> Option<Waiting> {
        match self {
            InClass::Fifo(packets) => packets.front(notes),
            InClass::FairPerFlow(flows) => flows.first().copied(),
        }
    }
}
