//! [`ReceiveSide`]: the bytes that have arrived, those that were granted, and the question for those that are missing.
//!
//! ```text
//! stream: ...... prefix ... gaps ... granted .......... end of the last message that is known
//!         arrived           in flight        left to grant
//! ```

use std::collections::BTreeMap;

use plimsoll_units::Time;

use super::config::HomaConfig;
use crate::tcp::{Flags, TcpSegment};
use crate::transports::nearest;

/// The bytes that have arrived at an end, and those that it has granted or asks for again.
#[derive(Debug, Default)]
pub(super) struct ReceiveSide {
    /// The end of what has arrived without a gap.
    prefix: u64,
    /// What has arrived beyond: start and end of each piece.
    pieces: BTreeMap<u64, u64>,
    /// The bytes of these pieces.
    beyond: u64,
    /// The end of the last message of which something is known.
    end: u64,
    /// The offset up to which the sender may send.
    granted: u64,
    /// When the sender was last heard, or asked again.
    heard: Time,
    /// The priority of a grant that is due.
    grant_due: Option<u8>,
    ack_due: bool,
    resend_due: bool,
    resends: u64,
}

impl ReceiveSide {
    /// Data arrived. Returns the bytes newly arrived in order.
    pub(super) fn on_data(&mut self, config: &HomaConfig, now: Time, segment: &TcpSegment) -> u64 {
        self.heard = now;
        let (start, end) = (segment.seq, segment.end());
        self.expect(config, nearest::<32>(segment.ack, segment.seq));
        // The sender may know of more than it was granted here: of what RESEND has asked for.
        self.granted = self.granted.max(end);
        let before = self.prefix;
        self.insert(start.max(before), end);
        if self.prefix == self.end && config.params.repair {
            self.ack_due = true;
        }
        self.prefix - before
    }

    /// A probe arrived: whether the message that ends at `end` is here.
    pub(super) fn on_probe(&mut self, config: &HomaConfig, now: Time, end: u64) {
        let is_unknown = self.end < end;
        self.expect(config, end);
        if self.prefix == self.end {
            self.ack_due = true;
        } else if is_unknown {
            self.heard = now;
            self.resend_due = self.lacks_granted();
        }
    }

    /// A message ends at `end`: its first bytes come unscheduled.
    fn expect(&mut self, config: &HomaConfig, end: u64) {
        if end > self.end {
            let start = self.end;
            self.granted = self.granted.max(end.min(start + config.unscheduled_bytes()));
            self.end = end;
        }
    }

    fn insert(&mut self, start: u64, end: u64) {
        if end <= start {
            return;
        }
        let (mut from, mut to) = (start, end);
        // All pieces that touch it become one.
        while let Some((&piece, &piece_end)) = self.pieces.range(..=to).next_back() {
            if piece_end < from {
                break;
            }
            (from, to) = (from.min(piece), to.max(piece_end));
            self.pieces.remove(&piece);
            self.beyond -= piece_end - piece;
        }
        if from <= self.prefix {
            self.prefix = self.prefix.max(to);
        } else {
            self.pieces.insert(from, to);
            self.beyond += to - from;
        }
    }

    // ---- grants ----

    /// Returns the bytes that are left to grant.
    pub(super) fn left_to_grant(&self) -> u64 {
        self.end.saturating_sub(self.granted)
    }

    /// Returns whether fewer bytes are in flight than a round trip holds, and some are left to grant.
    pub(super) fn may_grant(&self, config: &HomaConfig) -> bool {
        let in_flight = self.granted.saturating_sub(self.prefix + self.beyond);
        self.left_to_grant() > 0 && in_flight < config.unscheduled_bytes()
    }

    /// Grants the next packet in `slot`. Returns its bytes on the wire.
    pub(super) fn grant(&mut self, config: &HomaConfig, now: Time, slot: usize) -> u64 {
        if !self.lacks_granted() {
            // There was nothing to wait for: the sender is silent from now on.
            self.heard = now;
        }
        let left = self.left_to_grant();
        let is_boosted = config.params.tail_boost && config.is_tail(left);
        let priority =
            if is_boosted { config.unscheduled_priority(left) } else { config.scheduled_priority(slot) };
        let bytes = left.min(config.payload(true));
        self.granted += bytes;
        self.grant_due = Some(priority);
        config.wire_of(bytes, true)
    }

    // ---- repair ----

    fn lacks_granted(&self) -> bool {
        self.granted.min(self.end) > self.prefix + self.beyond
    }

    /// Returns when the sender is asked again; [`Time::MAX`] if never.
    pub(super) fn deadline(&self, config: &HomaConfig) -> Time {
        let asks = config.params.repair && self.lacks_granted();
        if asks { self.heard.saturating_add(config.params.resend_after) } else { Time::MAX }
    }

    pub(super) fn on_deadline(&mut self, config: &HomaConfig, now: Time) {
        if now >= self.deadline(config) {
            self.heard = now;
            self.resend_due = true;
        }
    }

    /// Removes the packet without data that is due.
    pub(super) fn take_control(&mut self) -> Option<TcpSegment> {
        if let Some(priority) = self.grant_due.take() {
            return Some(TcpSegment { seq: priority.into(), ack: self.granted, ..TcpSegment::default() });
        }
        if std::mem::take(&mut self.resend_due) && self.lacks_granted() {
            self.resends += 1;
            let granted = self.granted.min(self.end);
            let missing = self.pieces.first_key_value().map_or(granted, |(start, _)| (*start).min(granted));
            let flags = Flags::ACK.with(Flags::CWR);
            let (seq, ack) = (missing - self.prefix, self.prefix);
            return Some(TcpSegment { seq, ack, flags, ..TcpSegment::default() });
        }
        if std::mem::take(&mut self.ack_due) {
            return Some(TcpSegment { ack: self.prefix, flags: Flags::ACK, ..TcpSegment::default() });
        }
        None
    }

    pub(super) fn owes_control(&self) -> bool {
        self.grant_due.is_some() || self.ack_due || self.resend_due
    }

    // ---- read-outs ----

    pub(super) fn received(&self) -> u64 {
        self.prefix
    }

    /// Returns whether all messages of which something is known have arrived.
    pub(super) fn is_whole(&self) -> bool {
        self.prefix == self.end
    }

    pub(super) fn resends(&self) -> u64 {
        self.resends
    }
}
