//! Whether an arriving packet finds room, and whether it is marked.

use plimsoll_mechanisms::ecn::Ecn;
use plimsoll_mechanisms::red::Red;
pub(super) use plimsoll_mechanisms::red::Verdict;
use plimsoll_units::Time;
use rand::Rng;
use rand_pcg::Pcg64;

use crate::net::Packet;

/// Most that a queue may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BufferLimit {
    /// Most packets.
    pub packets: u64,
    /// Most bytes.
    pub bytes: u64,
    /// Whether the packet in service counts.
    pub counts_in_service: bool,
}

impl BufferLimit {
    /// Always room.
    pub const UNLIMITED: BufferLimit =
        BufferLimit { packets: u64::MAX, bytes: u64::MAX, counts_in_service: false };
}

/// How a port marks.
#[derive(Debug)]
pub enum Marking {
    /// Not at all.
    Off,
    /// Above a threshold.
    Threshold(Ecn),
    /// Random early detection, with the stream it draws from.
    Red(Box<(Red, Pcg64)>),
}

/// The rule by which packets enter a queue.
#[derive(Debug)]
pub struct Admission {
    limit: BufferLimit,
    marking: Marking,
    marks_at_dequeue: bool,
    shared: Option<SharedRoom>,
}

/// A port's part in a buffer memory that all ports of its switch share.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SharedRoom {
    /// The memory, as [`Sink::pool`](crate::net::Sink::pool) knows it.
    pub pool: u32,
    /// The port, as the memory knows it.
    pub port: usize,
}

impl Admission {
    /// The rule of `limit` and `marking`; `marks_at_dequeue` says that `marking` looks at departures.
    pub fn new(limit: BufferLimit, marking: Marking, marks_at_dequeue: bool) -> Admission {
        Admission { limit, marking, marks_at_dequeue, shared: None }
    }

    /// The same rule, and a packet must also find room in a shared memory. It takes its bytes when it is
    /// admitted and gives them back when it starts to be sent, or when it has been sent if the limit
    /// counts the packet in service.
    pub fn sharing(self, shared: SharedRoom) -> Admission {
        Admission { shared: Some(shared), ..self }
    }

    /// Always room, never a mark.
    pub fn unlimited() -> Admission {
        Admission::new(BufferLimit::UNLIMITED, Marking::Off, false)
    }

    pub(super) fn marks_at_dequeue(&self) -> bool {
        self.marks_at_dequeue
    }

    pub(super) fn shared(&self) -> Option<SharedRoom> {
        self.shared
    }

    pub(super) fn counts_in_service(&self) -> bool {
        self.limit.counts_in_service
    }

    #[inline]
    pub(super) fn has_room(&self, packets: usize, bytes: u64, in_service: u64, size: u64) -> bool {
        let BufferLimit { packets: most, bytes: most_bytes, counts_in_service } = self.limit;
        if packets == 0 && in_service == 0 && !counts_in_service {
            // It will not wait, so no limit on what waits concerns it.
            return true;
        }
        let (mut packets, mut bytes) = (packets as u64, bytes);
        if counts_in_service && in_service > 0 {
            packets += 1;
            bytes += in_service;
        }
        packets < most && bytes.saturating_add(size) <= most_bytes
    }

    /// What happens to a packet that finds `packets` and `bytes` waiting, and room.
    #[inline]
    pub(super) fn on_enqueue(&mut self, now: Time, packets: usize, bytes: u64, packet: &Packet) -> Verdict {
        match &mut self.marking {
            Marking::Off => Verdict::Pass,
            Marking::Threshold(ecn) if ecn.on_enqueue(bytes, packets as u64) => Verdict::Mark,
            Marking::Threshold(_) => Verdict::Pass,
            Marking::Red(red) => {
                let (red, stream) = &mut **red;
                let ect = packet.ecn != crate::net::Ecn::NotEct;
                red.on_enqueue(now, bytes, u64::from(packet.size), ect, || stream.next_u64())
            }
        }
    }

    /// The queue drops a packet for lack of room; an averaging discipline still counts its arrival.
    #[cold]
    pub(super) fn on_overflow(&mut self, now: Time, bytes: u64, packet: &Packet) {
        if let Marking::Red(red) = &mut self.marking {
            red.0.on_enqueue(now, bytes, u64::from(packet.size), false, || 0);
            red.0.on_overflow();
        }
    }

    /// The queue and the link have been idle since `since`.
    #[inline]
    pub(super) fn on_idle(&mut self, since: Time) {
        if let Marking::Red(red) = &mut self.marking {
            red.0.on_idle(since);
        }
    }

    /// Whether a packet that leaves `packets` and `bytes` behind is marked.
    #[inline]
    pub(super) fn on_dequeue(&self, packets: usize, bytes: u64) -> bool {
        match &self.marking {
            Marking::Threshold(ecn) => ecn.on_dequeue(bytes, packets as u64),
            Marking::Off | Marking::Red(_) => false,
        }
    }
}
