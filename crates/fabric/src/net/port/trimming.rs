//! [`TrimmingQueues`]: a queue of data and one of headers; and [`Trimmer`], which selects the packets to cut.

use plimsoll_mechanisms::Depth;
use plimsoll_mechanisms::pfc::PauseState;
use plimsoll_mechanisms::trim::{HeaderService, TrimParams, Victim};
use rand::Rng;
use rand_pcg::Pcg64;

use super::marking::Verdict;
use super::rules::BufferLimit;
use super::slot_queue::SlotQueue;
use super::waiting::Waiting;
use crate::net::{Notes, Packet, Sink, Slot};

/// Decides which packets a port cuts, and which it sends back.
#[derive(Debug)]
pub struct Trimmer {
    header: u16,
    priority: u8,
    bounce: bool,
    /// The port leads to a host.
    is_last: bool,
    /// The fair coin between the arriving packet and the last one that waits.
    coin: Option<Pcg64>,
}

impl Trimmer {
    /// Makes the trimmer of `params`, which must be valid, at a port that leads to a host if `is_last`. `stream`
    /// returns the random stream of its coin.
    pub fn new(params: &TrimParams, is_last: bool, stream: impl FnOnce() -> Pcg64) -> Trimmer {
        Trimmer {
            header: params.header.get() as u16,
            priority: params.priority,
            bounce: params.bounce,
            is_last,
            coin: (params.victim == Victim::CoinTail).then(stream),
        }
    }

    /// Returns whether `packet` has a payload that can be cut off.
    pub(super) fn may_trim(&self, packet: &Packet) -> bool {
        packet.len > 0 && packet.size > self.header && !packet.is_trimmed()
    }

    /// Returns whether the last packet that waits is cut in place of the arriving one.
    pub(super) fn draws_tail(&mut self) -> bool {
        self.coin.as_mut().is_some_and(|coin| coin.next_u64() >> 63 == 1)
    }

    pub(super) fn trim(&self, packet: &mut Packet) {
        packet.trim(self.header, self.priority, self.is_last);
    }

    /// Returns whether `packet`, which finds no room, is sent back to its sender.
    pub(super) fn may_bounce(&self, packet: &Packet) -> bool {
        self.bounce && packet.is_trimmed() && !packet.is_bounced()
    }
}

/// A queue of data, and a queue of headers, in which packets without data wait as well.
#[derive(Debug)]
pub struct TrimmingQueues {
    data: LimitedQueue,
    headers: LimitedQueue,
    service: HeaderService,
    /// The packets of the header queue sent since the last data packet, while data waited.
    in_a_row: u32,
    /// The packet in service was a header.
    sends_header: bool,
}

#[derive(Debug)]
struct LimitedQueue {
    waiting: SlotQueue,
    packets: usize,
    bytes: u64,
    limit: BufferLimit,
}

impl TrimmingQueues {
    /// Makes the empty queues of `params`, which must be valid, at a port whose data have `limit`.
    pub(super) fn new(params: &TrimParams, limit: BufferLimit) -> TrimmingQueues {
        let twice = limit.twice();
        let of_headers = match params.queue {
            None => twice,
            Some(Depth::Bytes(bytes)) => BufferLimit { packets: u64::MAX, bytes: bytes.get(), ..twice },
            Some(Depth::Packets(packets)) => BufferLimit { packets, bytes: u64::MAX, ..twice },
        };
        TrimmingQueues {
            data: LimitedQueue::new(limit),
            headers: LimitedQueue::new(of_headers),
            service: params.service,
            in_a_row: 0,
            sends_header: false,
        }
    }

    /// Returns the size of a packet that finds room in either queue of an idle port, as all smaller ones do.
    pub(super) fn room_when_idle(&self) -> u16 {
        self.data.limit.room_when_idle().min(self.headers.limit.room_when_idle())
    }

    /// Decides on `packet`, while `in_service` bytes are being sent.
    #[inline]
    pub(super) fn on_arrival(&self, packet: &Packet, in_service: u64) -> Verdict {
        let is_header = packet.is_header();
        let queue = if is_header { &self.headers } else { &self.data };
        let LimitedQueue { packets, bytes, limit, .. } = queue;
        let of_queue = limit.counted(in_service, is_header == self.sends_header);
        if limit.has_room(*packets, *bytes, of_queue, u64::from(packet.size)) {
            Verdict::Pass
        } else {
            Verdict::Drop
        }
    }

    #[inline]
    pub(super) fn push(&mut self, waiting: Waiting, is_header: bool, notes: &mut Notes) {
        let queue = if is_header { &mut self.headers } else { &mut self.data };
        queue.bytes += u64::from(waiting.size);
        queue.packets += 1;
        queue.waiting.push(waiting, notes);
    }

    /// Returns the bytes of waiting data.
    pub(super) fn data_bytes(&self) -> u64 {
        self.data.bytes
    }

    /// `packet` is sent without having waited, as both queues are empty.
    pub(super) fn on_passing(&mut self, packet: &Packet) {
        self.sends_header = packet.is_header();
    }

    /// Returns the slot of a packet that may be sent next.
    pub(super) fn first(&self) -> Option<Slot> {
        self.headers.waiting.first().or_else(|| self.data.waiting.first())
    }

    /// Removes the packet that is sent next, among the priorities that `pause` lets through.
    #[inline]
    pub(super) fn pop(&mut self, pause: PauseState, notes: &Notes) -> Option<Waiting> {
        let nothing_paused = pause.paused().is_empty();
        let may_send = |LimitedQueue { waiting, .. }: &LimitedQueue| {
            let may = |first: Waiting| pause.may(first.priority);
            if nothing_paused { !waiting.is_empty() } else { waiting.front(notes).is_some_and(may) }
        };
        self.sends_header = match (may_send(&self.headers), may_send(&self.data)) {
            (true, true) => self.service.is_header(&mut self.in_a_row),
            (is_header, _) => is_header,
        };
        let queue = if self.sends_header { &mut self.headers } else { &mut self.data };
        let first = queue.waiting.pop_if(notes, |first| pause.may(first.priority))?;
        queue.packets -= 1;
        queue.bytes -= u64::from(first.size);
        Some(first)
    }

    /// Removes the last packet of the data, if `may_trim`.
    pub(super) fn take_tail(
        &mut self,
        sink: &mut impl Sink,
        may_trim: impl Fn(&Packet) -> bool,
    ) -> Option<Waiting> {
        let last = self.data.waiting.take_newest(sink, may_trim)?;
        self.data.packets -= 1;
        self.data.bytes -= u64::from(last.size);
        Some(last)
    }
}

impl LimitedQueue {
    fn new(limit: BufferLimit) -> LimitedQueue {
        LimitedQueue { waiting: SlotQueue::default(), packets: 0, bytes: 0, limit }
    }
}
