//! [`ReceiveSide`]: packets that arrive in any order, and the answers to them.
//!
//! ```text
//! data ──────> in order? ahead (a bit for each packet beyond the gap) ──> ACK: every 16 KB, or at once
//! header ────> its payload was trimmed ─────────────────────────────────> NACK
//! target ────> Grants <── the host's PullPacer ─────────────────────────> PULL
//! ```

use std::collections::VecDeque;

use super::config::UetConfig;
use super::credit_line::Grants;
use super::wire::{Feedback, label_of};
use crate::tcp::{EcnField, Flags, TcpSegment};
use crate::transports::arrived_packets::ArrivedPackets;
use crate::transports::nearest;

/// The receiving half of a packet delivery context.
#[derive(Debug, Default)]
pub(super) struct ReceiveSide {
    packets: ArrivedPackets,
    /// The bytes on the wire that have arrived.
    arrived: u64,
    /// Those since the last acknowledgement.
    unacked: u64,
    /// The packet that came last was new, and is behind a gap.
    took_ahead: bool,
    /// A packet that asked for an answer arrived beyond a gap, whose closing is to be reported, too.
    tells_closing: bool,
    /// A packet that asked for an answer was trimmed: its NACK overtakes the packets before it, each of which is
    /// acknowledged, up to the next that asks.
    acknowledges_all: bool,
    answers: VecDeque<Answer>,
    pub(super) grants: Grants,
}

/// A packet that a receiver owes to the sender.
#[derive(Clone, Copy, Debug)]
struct Answer {
    flags: Flags,
    feedback: Feedback,
}

impl ReceiveSide {
    /// A data packet arrived, whole or trimmed. Returns the bytes newly in order.
    pub(super) fn on_data(&mut self, config: &UetConfig, segment: &TcpSegment) -> u64 {
        let (number, target) = label_of(segment);
        self.grants.on_target(target);
        let size = u64::from(segment.len) + config.header;
        let number = nearest::<16>(number.into(), self.packets.next());
        self.took_ahead = false;
        if segment.flags.has(Flags::TRIMMED) {
            self.grants.on_trimmed(&config.params.rccc, size);
            self.acknowledges_all |= segment.flags.has(Flags::CWR);
            // The flag that no data packet has says where it was trimmed.
            let at_last_hop = segment.flags.has(Flags::ECE);
            return self.owe(segment, Flags::ACK.with(Flags::CWR), number, at_last_hop);
        }
        let is_first = self.arrived == 0;
        self.arrived += size;
        self.unacked += size;
        let is_marked = segment.ecn == EcnField::Ce;
        let asks = segment.flags.has(Flags::CWR);
        let is_duplicate = self.packets.has(number);
        let news = if is_duplicate { 0 } else { self.packets.take(number, segment.len) };
        self.took_ahead = !is_duplicate && news == 0;
        let has_gap = self.packets.waiting() > 0;
        let closes = !is_duplicate && !has_gap;
        self.tells_closing |= asks && has_gap;
        let tells = closes && self.tells_closing || self.acknowledges_all;
        let at_once = is_first || asks || is_marked || is_duplicate || tells;
        self.acknowledges_all &= !asks;
        self.tells_closing &= !closes;
        if at_once || self.unacked >= config.params.ack_after.get() {
            self.unacked = 0;
            self.owe(segment, Flags::ACK.with_if(is_marked, Flags::ECE), number, false);
        }
        news
    }

    /// A request arrived: data wait for credit.
    pub(super) fn on_request(&mut self, segment: &TcpSegment) {
        self.grants.on_target(label_of(segment).1);
    }

    /// A probe arrived: it is answered at once, from the first packet that is missing.
    pub(super) fn on_probe(&mut self, segment: &TcpSegment) {
        let (number, target) = label_of(segment);
        self.grants.on_target(target);
        let feedback = self.feedback(segment, number, self.packets.next());
        self.answers
            .push_back(Answer { flags: Flags::ACK, feedback: Feedback { is_of_probe: true, ..feedback } });
    }

    /// Owes the answer to a packet. Returns 0, the bytes that an answer brings.
    fn owe(&mut self, cause: &TcpSegment, flags: Flags, number: u64, at_last_hop: bool) -> u64 {
        // The published simulator begins at the packet itself after a mark or a request for an answer; then packets
        // between a gap and it are known to have arrived only by a timeout.
        let base = number.saturating_sub(SACK_BITS - 1).max(self.packets.next());
        let flags = flags.with(cause.flags.and(Flags::RETRANSMISSION));
        let feedback = self.feedback(cause, number as u16, base);
        self.answers.push_back(Answer { flags, feedback: Feedback { at_last_hop, ..feedback } });
        0
    }

    /// Returns the answer to packet `number`, with a map of the packets from `base` on.
    fn feedback(&self, cause: &TcpSegment, number: u16, base: u64) -> Feedback {
        Feedback {
            number,
            entropy: cause.entropy,
            base: base as u16,
            map: self.packets.map_from(base),
            arrived: self.arrived as u32,
            ahead: self.packets.waiting(),
            ..Feedback::default()
        }
    }

    /// Removes the next answer that is due.
    pub(super) fn take_answer(&mut self) -> Option<TcpSegment> {
        let Answer { flags, feedback } = self.answers.pop_front()?;
        let (seq, ack) = (self.packets.next(), self.packets.offset());
        Some(TcpSegment { seq, ack, flags, sack: feedback.blocks(), ..TcpSegment::default() })
    }

    pub(super) fn owes_answer(&self) -> bool {
        !self.answers.is_empty()
    }

    /// Returns whether the packet that came last was new, and is behind a gap.
    pub(super) fn took_ahead(&self) -> bool {
        self.took_ahead
    }

    /// Returns whether all packets of the message have arrived that has the bytes from `start` to `end` of the stream,
    /// those of `segment` included. All of its packets but the last are full.
    pub(super) fn has_whole(&self, config: &UetConfig, segment: &TcpSegment, start: u64, end: u64) -> bool {
        let number = nearest::<16>(label_of(segment).0.into(), self.packets.next());
        let first = number - (segment.seq - start) / config.payload;
        let last = number + (end - segment.seq).div_ceil(config.payload) - 1;
        self.packets.has_all(first, number, last)
    }

    /// Returns the bytes that are there in order.
    pub(super) fn received(&self) -> u64 {
        self.packets.offset()
    }
}

/// The packets that an acknowledgement's map covers.
const SACK_BITS: u64 = 64;
