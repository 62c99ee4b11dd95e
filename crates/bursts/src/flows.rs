//! [`ActiveFlows`]: the captured byte ranges of each TCP flow, with their bursts, within bounds of memory.
//!
//! A range that is captured again was sent again, whole or in part. The loss is attributed to the range's first burst,
//! unless the sender was wrong about the loss. Repeated segments that are neither data nor a duplicate ACK are
//! recognized by both directions: window updates, keep-alives and probes of a zero window (RFC 5681, section 2; RFC
//! 9293, 3.8).

use std::collections::VecDeque;

use hashbrown::HashMap;
use plimsoll_units::{Span, Time};

use crate::frame::{CapturedSegment, is_given};

/// A flow: the pair of hosts, and the ports.
pub(crate) type FlowKey = (u32, u16, u16);

/// Classification of a segment's payload.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum PayloadSeen {
    /// New bytes, or none at all.
    New,
    /// Its range, or a part of it, was in this earlier burst of the pair.
    Again(u64),
    /// Its range is older than all stored ones.
    Forgotten,
    /// Its range fills a hole: it was lost or reordered before it reached the place of the capture.
    Fills,
    /// The segment itself was captured before.
    Copy,
}

/// Classification of a segment's acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Acked {
    /// It is the first of its flow, older than the last one, or missing.
    Other,
    /// It acknowledges this many bytes more than the one before it.
    Advances(u32),
    /// It repeats the one before it, and its window, while data is outstanding.
    Duplicate,
    /// It repeats the one before it with another window.
    WindowUpdate,
    /// It repeats the one before it while nothing is outstanding, or is a keep-alive.
    KeepAlive,
}

/// A contiguous range of one burst.
#[derive(Clone, Copy, Debug)]
struct BurstRange {
    from: u32,
    to: u32,
    burst: u64,
}

/// A flow in one direction.
#[derive(Debug, Default)]
struct DirectedFlow {
    /// The number of the first byte after the SYN.
    first: Option<u32>,
    /// The byte after the last one that was sent, with or without payload, and the byte after the highest payload.
    next: Option<u32>,
    highest: Option<u32>,
    ack: Option<u32>,
    window: Option<u16>,
    ranges: VecDeque<BurstRange>,
    has_forgotten: bool,
    last: LastPackets<CapturedSegment>,
}

/// The last packets of a flow or pair, of which a mirror may produce a second copy.
#[derive(Clone, Debug)]
pub struct LastPackets<P> {
    last: [Option<(P, Time)>; COPIES],
    place: usize,
}

/// The flows that were active last, in two generations: when the younger is full, the older is forgotten.
#[derive(Debug, Default)]
pub(crate) struct ActiveFlows {
    young: HashMap<FlowKey, DirectedFlow>,
    old: HashMap<FlowKey, DirectedFlow>,
}

/// The most flows of a generation.
const FLOWS: usize = 16_384;
/// The most ranges that a flow remembers.
const RANGES: usize = 128;
/// The packets among which a copy is looked for.
const COPIES: usize = 4;
/// A mirror brings the second copy within this time. The identification of IPv4 repeats after 65,536 packets, which
/// take more; where a sender gives none, only equal packets within a time that is too short for a retransmission are
/// copies. A duplicate ACK differs from the one before it by its SACK option, which all common systems send.
const COPY_WITHIN: Span = Span::from_ms(1);
const COPY_WITHIN_UNIDENTIFIED: Span = Span::from_us(10);

/// State of the other direction of a connection.
#[derive(Clone, Copy, Default)]
struct Reverse {
    next: Option<u32>,
    ack: Option<u32>,
    window: Option<u16>,
}

impl ActiveFlows {
    /// Registers a segment of the pair's open burst. `reverse` returns the flow of the other direction, if there is
    /// one.
    pub(crate) fn on_segment(
        &mut self,
        key: FlowKey,
        reverse: impl FnOnce() -> Option<FlowKey>,
        segment: &CapturedSegment,
        time: Time,
        burst: u64,
    ) -> (PayloadSeen, Acked) {
        if self.young.len() >= FLOWS && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        let old = &mut self.old;
        let flow = self.young.entry(key).or_insert_with(|| old.remove(&key).unwrap_or_default());
        if segment.syn && flow.first != Some(segment.sequence) {
            *flow = DirectedFlow { first: Some(segment.sequence), ..DirectedFlow::default() };
        }
        // Over IPv4 without identification, duplicate ACKs without SACK, as of a simulation, do not differ from copies.
        let is_identified = is_given(segment.identification);
        let may_be_copy = is_identified || segment.payload > 0 || segment.identification.is_none();
        if may_be_copy && flow.last.is_copy(*segment, is_identified, time) {
            return (PayloadSeen::Copy, Acked::Other);
        }
        let other = match flow.needs_reverse(segment) {
            true => reverse().map(|key| self.reverse(key)).unwrap_or_default(),
            false => Reverse::default(),
        };
        let flow = self.young.get_mut(&key).expect("it has just been registered");
        let acked = flow.acknowledge(segment, other);
        let seen = if segment.payload > 0 { flow.receive(segment, other, burst) } else { PayloadSeen::New };
        flow.window = Some(segment.window);
        // The receiver need not take the byte of a probe, so it is not outstanding.
        let sent = if flow.is_probe(segment, other) { 0 } else { segment.payload + u32::from(segment.ends) };
        let end = segment.sequence.wrapping_add(sent);
        flow.next = flow.next.map_or(Some(end), |next| Some(if after(end, next) > 0 { end } else { next }));
        (seen, acked)
    }

    fn reverse(&self, key: FlowKey) -> Reverse {
        let flow = self.young.get(&key).or_else(|| self.old.get(&key));
        flow.map_or(Reverse::default(), |flow| Reverse {
            next: flow.next,
            ack: flow.ack,
            window: flow.window,
        })
    }
}

impl<P> Default for LastPackets<P> {
    fn default() -> LastPackets<P> {
        LastPackets { last: [const { None }; COPIES], place: 0 }
    }
}

impl<P: Copy + PartialEq> LastPackets<P> {
    /// Returns whether the packet was captured before, and remembers it.
    pub fn is_copy(&mut self, packet: P, is_identified: bool, time: Time) -> bool {
        let within = if is_identified { COPY_WITHIN } else { COPY_WITHIN_UNIDENTIFIED };
        let is_near = |at: Time| time.saturating_since(at).max(at.saturating_since(time)) <= within;
        if self.last.iter().flatten().any(|(before, at)| *before == packet && is_near(*at)) {
            return true;
        }
        self.last[self.place] = Some((packet, time));
        self.place = (self.place + 1) % COPIES;
        false
    }
}

impl DirectedFlow {
    /// Returns whether the classification of a segment depends on the other direction.
    fn needs_reverse(&self, segment: &CapturedSegment) -> bool {
        segment.payload == 1 || segment.is_pure_ack() && segment.ack == self.ack
    }

    fn acknowledge(&mut self, segment: &CapturedSegment, reverse: Reverse) -> Acked {
        let Some(ack) = segment.ack else { return Acked::Other };
        let Some(before) = self.ack.replace(ack) else { return Acked::Other };
        if let Ok(advance @ 1..) = u32::try_from(after(ack, before)) {
            return Acked::Advances(advance);
        }
        self.ack = Some(before);
        if ack != before {
            return Acked::Other;
        }
        // A keep-alive repeats the byte before the next one; a segment behind that is out of order.
        let is_keep_alive = self.next.is_some_and(|next| after(next, segment.sequence) == 1);
        let is_outstanding = reverse.next.is_none_or(|next| after(next, ack) > 0);
        if is_keep_alive {
            Acked::KeepAlive
        } else if self.window != Some(segment.window) {
            Acked::WindowUpdate
        } else if is_outstanding {
            Acked::Duplicate
        } else {
            Acked::KeepAlive
        }
    }

    /// Returns whether a segment probes a zero window by the next byte (RFC 9293, section 3.8.6.1).
    fn is_probe(&self, segment: &CapturedSegment, reverse: Reverse) -> bool {
        segment.payload == 1 && self.highest == Some(segment.sequence) && reverse.window == Some(0)
    }

    fn receive(&mut self, segment: &CapturedSegment, reverse: Reverse, burst: u64) -> PayloadSeen {
        let (from, to) = (segment.sequence, segment.sequence.wrapping_add(segment.payload));
        let Some(highest) = self.highest else {
            self.highest = Some(to);
            self.remember(from, to, burst);
            return PayloadSeen::New;
        };
        if segment.payload == 1 {
            // A keep-alive repeats a byte that has been acknowledged (RFC 9293, section 3.8.4).
            let is_acknowledged = reverse.ack.is_none_or(|ack| after(ack, highest) >= 0);
            if after(highest, from) == 1 && is_acknowledged || self.is_probe(segment, reverse) {
                return PayloadSeen::New;
            }
        }
        if after(to, highest) > 0 {
            self.highest = Some(to);
            // Bytes beyond the highest one are new; the segment may begin before it.
            let again =
                if after(highest, from) > 0 { self.sent_before(from, burst) } else { PayloadSeen::New };
            self.remember(if again == PayloadSeen::Copy { highest } else { from }, to, burst);
            return if again == PayloadSeen::Copy { PayloadSeen::New } else { again };
        }
        let seen = self.sent_before(from, burst);
        if seen != PayloadSeen::Copy {
            self.remember(from, to, burst);
        }
        seen
    }

    /// Returns where the byte was sent before that a segment begins with.
    fn sent_before(&self, from: u32, burst: u64) -> PayloadSeen {
        let holds = |range: &&BurstRange| after(from, range.from) >= 0 && after(range.to, from) > 0;
        match self.ranges.iter().rev().find(holds) {
            Some(range) if range.burst == burst => PayloadSeen::Copy,
            Some(range) => PayloadSeen::Again(range.burst),
            None if self.has_forgotten
                && self.ranges.front().is_some_and(|oldest| after(oldest.from, from) > 0) =>
            {
                PayloadSeen::Forgotten
            }
            None => PayloadSeen::Fills,
        }
    }

    fn remember(&mut self, from: u32, to: u32, burst: u64) {
        match self.ranges.back_mut() {
            Some(last) if last.burst == burst && last.to == from => last.to = to,
            _ => {
                if self.ranges.len() == RANGES {
                    self.ranges.pop_front();
                    self.has_forgotten = true;
                }
                self.ranges.push_back(BurstRange { from, to, burst });
            }
        }
    }
}

/// Returns how far `this` is after `that` in TCP's circle of sequence numbers.
fn after(this: u32, that: u32) -> i32 {
    this.wrapping_sub(that) as i32
}
