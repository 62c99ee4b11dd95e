//! Effects of a NIC's offloads on the timing of packets, which are why HULL needs pacing in hardware:
//!
//! * **segmentation offload**: the host hands over a large piece and the NIC sends its segments back to
//!   back, so [`SegmentationOffload::sendable`] makes a sender wait for a piece worth handing over;
//! * **interrupt coalescing**: received packets reach the host in batches, [`Coalescer`];
//! * **receive offload**: of a batch, the in-order segments of a flow become one, and hence one acknowledgement,
//!   [`Merger`]. The NIC may do that (LRO), or the kernel (GRO), which differ in the work of a processor
//!   ([`crate::processor`]).
//!
//! A piece is worth handing over when it has `segmentation` bytes, or a third of the window, or all data that there is,
//! or when nothing is in flight whose acknowledgement could be awaited. The third is the rule of Linux
//! (`tcp_tso_win_divisor = 3`), without its clock-based exceptions.

use std::collections::VecDeque;

use plimsoll_units::{Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::mechanism::{Mechanism, Section, Table};

/// The host's NIC with offloads. Without this table packets leave and arrive one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NicBurstParams {
    /// The largest piece that leaves back to back; 0 B turns segmentation offload off. At most 1 MB.
    /// Default 64 KB (a common limit of hardware).
    pub segmentation: Bytes,
    /// How long the first packet of a batch waits for others; 0 s turns coalescing off, and receive
    /// offload with it. At most 1 s. Default 30 us (an assumption; drivers use 1 to 250 us).
    pub coalesce_time: Span,
    /// The batch that is handed over without waiting any longer: at least 1 packet. Default 32 (an
    /// assumption).
    pub coalesce_packets: u32,
    /// The largest piece that in-order segments of a flow are merged into; 0 B turns receive offload
    /// off. At most 1 MB. Default 64 KB (the limit of Linux's GRO). With `host.processor` this is GRO: the kernel
    /// merges, after each frame has had its cost.
    pub receive_offload: Bytes,
    /// The largest frame that the NIC itself merges in-order segments of a flow into, before the host sees them
    /// (LRO): at most 1 MB. Default 0 B: the NIC does not merge.
    #[serde(skip_serializing_if = "is_zero")]
    pub lro: Bytes,
    /// Limit of a connection's bytes between TCP and the link; TCP resumes sending when fewer are there (Linux's
    /// `tcp_limit_output_bytes`). Default 0 B: no limit.
    #[serde(skip_serializing_if = "is_zero")]
    pub output_limit: Bytes,
    /// The most segments that TCP sends on an acknowledgement or another event (MaxBurst). Segments that the window
    /// permits beyond that wait for the next event. Default 0: no limit.
    #[serde(skip_serializing_if = "is_none")]
    pub max_burst: u32,
    /// How many transmit queues the NIC has, 1 to 1024. Connections are divided among them, and they send in turn,
    /// piece by piece. Default 1 (multiqueue off).
    #[serde(skip_serializing_if = "is_one")]
    pub queues: u32,
    /// How many bytes the application hands over with a call: at most 1 GB. Default 0 B: a message with one call,
    /// or, with `host.processor`, 64 KB.
    #[serde(skip_serializing_if = "is_zero")]
    pub send_size: Bytes,
    /// How many bytes a socket holds that are not acknowledged; the application waits when a call would exceed it,
    /// unless the socket is empty. At most 1 GB. Default 0 B: no limit, or, with `send_size` or `host.processor`,
    /// 4 MB (Linux's `tcp_wmem`).
    #[serde(skip_serializing_if = "is_zero")]
    pub socket_buffer: Bytes,
}

/// For serde, which hands over a reference.
fn is_zero(bytes: &Bytes) -> bool {
    *bytes == Bytes::ZERO
}

/// For serde, which hands over a reference.
fn is_none(count: &u32) -> bool {
    *count == 0
}

/// For serde, which hands over a reference.
fn is_one(count: &u32) -> bool {
    *count == 1
}

impl Default for NicBurstParams {
    fn default() -> NicBurstParams {
        NicBurstParams {
            segmentation: Bytes::new(64_000),
            coalesce_time: Span::from_us(30),
            coalesce_packets: 32,
            receive_offload: Bytes::new(64_000),
            lro: Bytes::ZERO,
            output_limit: Bytes::ZERO,
            max_burst: 0,
            queues: 1,
            send_size: Bytes::ZERO,
            socket_buffer: Bytes::ZERO,
        }
    }
}

impl NicBurstParams {
    /// Returns the parameters of a host without offloads.
    pub fn off() -> NicBurstParams {
        NicBurstParams {
            segmentation: Bytes::ZERO,
            coalesce_time: Span::ZERO,
            receive_offload: Bytes::ZERO,
            ..NicBurstParams::default()
        }
    }

    /// Returns whether the host needs more than the timing of its NIC: limits on TCP's sending, transmit queues, or
    /// calls of the application.
    pub fn has_stack(&self) -> bool {
        let limits = [self.output_limit, self.send_size, self.socket_buffer];
        self.queues > 1 || self.max_burst > 0 || limits.iter().any(|limit| *limit > Bytes::ZERO)
    }
}

impl Mechanism for NicBurstParams {
    const TABLE: Table =
        Table::replaced_whole(Section::Host, "bursts", "the NIC sends and receives packet by packet")
            .holds_packets();

    fn validate(&self) -> Result<(), InvalidParam> {
        let megabyte = Bytes::new(1_000_000);
        let (segmentation, receive) = (self.segmentation, self.receive_offload);
        InvalidParam::unless(segmentation <= megabyte, "segmentation", segmentation, "at most 1MB")?;
        InvalidParam::unless(receive <= megabyte, "receive_offload", receive, "at most 1MB")?;
        InvalidParam::unless(self.lro <= megabyte, "lro", self.lro, "at most 1MB")?;
        let queues_ok = (1..=1_024).contains(&self.queues);
        InvalidParam::unless(queues_ok, "queues", self.queues, "1 to 1024")?;
        let gigabyte = Bytes::new(1_000_000_000);
        InvalidParam::unless(self.send_size <= gigabyte, "send_size", self.send_size, "at most 1GB")?;
        InvalidParam::unless(
            self.socket_buffer <= gigabyte,
            "socket_buffer",
            self.socket_buffer,
            "at most 1GB",
        )?;
        let time_ok = self.coalesce_time <= Span::from_secs(1);
        InvalidParam::unless(time_ok, "coalesce_time", self.coalesce_time, "at most 1s")?;
        let packets = self.coalesce_packets;
        InvalidParam::unless(packets > 0, "coalesce_packets", packets, "at least 1")
    }
}

/// Segmentation offload at the sender: a rule without state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SegmentationOffload {
    piece: u64,
}

impl SegmentationOffload {
    /// Makes the rule that `params` describe.
    pub fn new(params: &NicBurstParams) -> SegmentationOffload {
        SegmentationOffload { piece: params.segmentation.get() }
    }

    /// Returns how many of `allowed` bytes to send now: all or none. Window and data permit `allowed` bytes, `window`
    /// is the whole window, `in_flight` the unacknowledged bytes. `more_data` means that the application has handed
    /// over more than the window permits. Bytes beyond a [`piece`](Self::piece_bytes) form another one, which takes a
    /// call of its own.
    pub fn sendable(&self, allowed: u64, window: u64, in_flight: u64, more_data: bool) -> u64 {
        let worth = self.piece.min(window / WINDOW_DIVISOR);
        if allowed >= worth || in_flight == 0 || !more_data { allowed } else { 0 }
    }

    /// Returns the size of the largest piece, in bytes.
    pub fn piece_bytes(&self) -> u64 {
        self.piece
    }
}

/// Interrupt coalescing at the receiver: holds packets of type `T` back until the first of them has
/// waited long enough or there are enough of them.
#[derive(Clone, Debug)]
pub struct Coalescer<T> {
    batch: VecDeque<T>,
    time: Span,
    packets: usize,
    /// When the batch is handed over; only meaningful while there is one.
    due: Time,
}

impl<T> Coalescer<T> {
    /// Makes a coalescer with an empty batch.
    pub fn new(params: &NicBurstParams) -> Coalescer<T> {
        Coalescer {
            batch: VecDeque::new(),
            time: params.coalesce_time,
            packets: params.coalesce_packets as usize,
            due: Time::MAX,
        }
    }

    /// A packet arrives from the link. Ask [`next_due`](Self::next_due) afterwards: it may be now.
    pub fn on_packet(&mut self, now: Time, packet: T) {
        if self.batch.is_empty() {
            self.due = now.saturating_add(self.time);
        }
        self.batch.push_back(packet);
        if self.batch.len() >= self.packets {
            self.due = self.due.min(now);
        }
    }

    /// Returns when the host is interrupted; `None` while nothing waits.
    pub fn next_due(&self) -> Option<Time> {
        (!self.batch.is_empty()).then_some(self.due)
    }

    /// Returns how many packets wait.
    pub fn len(&self) -> usize {
        self.batch.len()
    }

    /// Returns whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Removes the first packets, at most `most`, at `now`, whether they are due or not. If others remain, a new
    /// batch begins with them.
    pub fn take(&mut self, now: Time, most: usize) -> impl Iterator<Item = T> + '_ {
        let count = most.min(self.batch.len());
        self.due = if self.batch.len() - count >= self.packets { now } else { now.saturating_add(self.time) };
        self.batch.drain(..count)
    }

    /// Returns the batch, in order of arrival, if it is due at `now`; else nothing.
    pub fn poll(&mut self, now: Time) -> impl Iterator<Item = T> + '_ {
        let count = if self.due <= now { self.batch.len() } else { 0 };
        self.batch.drain(..count)
    }
}

/// A received segment, as receive offload sees it; also the result of merging segments.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ReceivedSegment {
    /// The number of the segment's flow; only segments of one flow are merged.
    pub flow: u64,
    /// The sequence number of the first payload byte.
    pub seq: u64,
    /// Payload bytes; none in a pure acknowledgement, which is never merged.
    pub bytes: u64,
    /// Whether it arrived with CE. Segments that differ are not merged, so that marks stay exact.
    pub ce: bool,
    /// The rest of the header that must be equal in merged segments: in TCP the acknowledgement number and the flags,
    /// as one number.
    pub header: u64,
    /// Number of segments on the wire that it consists of: 1 as received.
    pub segments: u32,
}

/// Receive offload at the receiver: merges the in-order segments of each flow in a batch into pieces. A piece takes the
/// place of its first segment. A segment that cannot join its flow's latest piece (a hole, another CE or header, no
/// room) starts a new one.
#[derive(Clone, Debug)]
pub struct Merger {
    largest: u64,
    pieces: Vec<ReceivedSegment>,
}

impl Merger {
    /// Makes a merger of pieces of at most `largest` payload bytes; 0 B merges nothing.
    pub fn new(largest: Bytes) -> Merger {
        Merger { largest: largest.get(), pieces: Vec::new() }
    }

    /// Forgets the pieces: a new batch begins.
    pub fn begin(&mut self) {
        self.pieces.clear();
    }

    /// Adds the next segment of the batch, and returns the place of its piece in [`pieces`](Self::pieces).
    pub fn add(&mut self, segment: ReceivedSegment) -> usize {
        // Where nothing can join a piece, no piece of its flow is searched for.
        let may_join = self.largest > 0 && segment.bytes > 0;
        let latest =
            may_join.then(|| self.pieces.iter().rposition(|piece| piece.flow == segment.flow)).flatten();
        match latest.filter(|place| joins(&self.pieces[*place], &segment, self.largest)) {
            Some(place) => {
                self.pieces[place].bytes += segment.bytes;
                self.pieces[place].segments += segment.segments;
                place
            }
            None => {
                self.pieces.push(segment);
                self.pieces.len() - 1
            }
        }
    }

    /// Returns the pieces of the batch so far.
    pub fn pieces(&self) -> &[ReceivedSegment] {
        &self.pieces
    }
}

/// Returns whether a segment with payload continues a piece.
fn joins(piece: &ReceivedSegment, segment: &ReceivedSegment, largest: u64) -> bool {
    piece.bytes > 0
        && piece.ce == segment.ce
        && piece.header == segment.header
        && piece.seq + piece.bytes == segment.seq
        && piece.bytes + segment.bytes <= largest
}

/// A third of the window is worth sending, so that at least three pieces keep acknowledgements coming.
const WINDOW_DIVISOR: u64 = 3;

#[cfg(test)]
mod tests {
    use super::*;

    fn at_us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn a_sender_waits_for_a_piece_worth_sending() {
        let offload = SegmentationOffload::new(&NicBurstParams::default());
        for (allowed, window, in_flight, more_data, sent) in [
            (1_460, 300_000, 298_540, true, 0),       // wait for more
            (64_000, 300_000, 236_000, true, 64_000), // a whole piece
            (10_000, 30_000, 20_000, true, 10_000),   // a third of a small window
            (1_460, 300_000, 0, true, 1_460),         // nothing would wake it
            (1_460, 300_000, 100_000, false, 1_460),  // the end of the data
        ] {
            assert_eq!(offload.sendable(allowed, window, in_flight, more_data), sent);
        }
        let off = NicBurstParams { segmentation: Bytes::ZERO, ..Default::default() };
        assert_eq!(SegmentationOffload::new(&off).sendable(1, 300_000, 299_999, true), 1);
    }

    #[test]
    fn a_batch_waits_for_time_from_its_first_packet() {
        let mut nic = Coalescer::new(&NicBurstParams::default());
        assert_eq!(nic.next_due(), None);
        nic.on_packet(at_us(5), 'a');
        nic.on_packet(at_us(20), 'b');
        assert_eq!(nic.next_due(), Some(at_us(35)));
        assert_eq!(nic.poll(at_us(34)).count(), 0);
        assert_eq!(nic.poll(at_us(35)).collect::<String>(), "ab");
        assert_eq!(nic.next_due(), None);
        nic.on_packet(at_us(40), 'c');
        assert_eq!(nic.next_due(), Some(at_us(70)));
    }

    #[test]
    fn a_full_batch_does_not_wait() {
        let mut nic = Coalescer::new(&NicBurstParams { coalesce_packets: 2, ..Default::default() });
        nic.on_packet(at_us(5), 'a');
        nic.on_packet(at_us(6), 'b');
        assert_eq!(nic.next_due(), Some(at_us(6)));
        assert_eq!(nic.poll(at_us(6)).collect::<String>(), "ab");
    }

    #[test]
    fn what_is_taken_early_leaves_a_new_batch() {
        let mut nic = Coalescer::new(&NicBurstParams { coalesce_packets: 3, ..Default::default() });
        "abcde".chars().for_each(|packet| nic.on_packet(at_us(5), packet));
        assert_eq!(nic.take(at_us(6), 1).collect::<String>(), "a");
        assert_eq!((nic.len(), nic.next_due()), (4, Some(at_us(6))));
        assert_eq!(nic.take(at_us(7), 2).collect::<String>(), "bc");
        assert_eq!(nic.next_due(), Some(at_us(37)));
        assert_eq!(nic.take(at_us(8), 9).collect::<String>(), "de");
        assert!(nic.is_empty() && nic.next_due().is_none());
    }

    #[test]
    fn without_coalescing_every_packet_is_due_at_once() {
        let mut nic = Coalescer::new(&NicBurstParams { coalesce_time: Span::ZERO, ..Default::default() });
        nic.on_packet(at_us(5), 'a');
        assert_eq!(nic.next_due(), Some(at_us(5)));
    }

    fn merge(batch: impl IntoIterator<Item = ReceivedSegment>, largest: Bytes) -> Vec<ReceivedSegment> {
        let mut merger = Merger::new(largest);
        for segment in batch {
            merger.add(segment);
        }
        merger.pieces().to_vec()
    }

    #[test]
    fn segments_learn_the_place_of_their_piece() {
        let segment =
            |flow, seq| ReceivedSegment { flow, seq, bytes: 1_000, ce: false, header: 7, segments: 1 };
        let mut merger = Merger::new(Bytes::new(2_500));
        let batch = [segment(1, 0), segment(2, 0), segment(1, 1_000), segment(1, 2_000), segment(2, 1_000)];
        assert_eq!(batch.map(|segment| merger.add(segment)), [0, 1, 0, 2, 1]);
        merger.begin();
        assert_eq!(merger.add(segment(1, 3_000)), 0);
    }

    #[test]
    fn in_order_segments_of_a_flow_become_one() {
        let segment = |flow, seq, ce| ReceivedSegment { flow, seq, bytes: 1_000, ce, header: 7, segments: 1 };
        let batch = [
            segment(1, 0, false),
            segment(2, 5_000, false),
            segment(1, 1_000, false),
            segment(1, 2_000, true), // another mark
            segment(1, 4_000, true), // a hole
            segment(1, 5_000, true),
            segment(1, 6_000, true), // no room
        ];
        let pieces = merge(batch, Bytes::new(2_500));
        let seen: Vec<_> = pieces.iter().map(|p| (p.flow, p.seq, p.bytes, p.segments)).collect();
        assert_eq!(
            seen,
            [
                (1, 0, 2_000, 2),
                (2, 5_000, 1_000, 1),
                (1, 2_000, 1_000, 1),
                (1, 4_000, 2_000, 2),
                (1, 6_000, 1_000, 1)
            ]
        );
        assert_eq!(merge(batch, Bytes::ZERO), batch);
        let other_ack = [batch[0], ReceivedSegment { header: 8, seq: 1_000, ..batch[0] }];
        assert_eq!(merge(other_ack, Bytes::new(64_000)), other_ack);
    }

    #[test]
    fn pure_acknowledgements_stay_apart() {
        let ack = ReceivedSegment { flow: 1, seq: 0, bytes: 0, ce: false, header: 0, segments: 1 };
        assert_eq!(merge([ack, ack], Bytes::new(64_000)), [ack, ack]);
    }

    #[test]
    fn ranges() {
        let default = NicBurstParams::default;
        default().validate().unwrap();
        for (key, params) in [
            ("segmentation", NicBurstParams { segmentation: Bytes::new(2_000_000), ..default() }),
            ("coalesce_time", NicBurstParams { coalesce_time: Span::from_secs(2), ..default() }),
            ("coalesce_packets", NicBurstParams { coalesce_packets: 0, ..default() }),
            ("lro", NicBurstParams { lro: Bytes::new(2_000_000), ..default() }),
            ("queues", NicBurstParams { queues: 0, ..default() }),
            ("send_size", NicBurstParams { send_size: Bytes::new(2_000_000_000), ..default() }),
        ] {
            assert_eq!(params.validate().unwrap_err().key, key);
        }
    }
}
