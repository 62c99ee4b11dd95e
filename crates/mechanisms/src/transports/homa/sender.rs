//! [`SendSide`]: the messages that are sent, packet by packet, as far as they are unscheduled or granted.

use std::collections::{BTreeMap, VecDeque};

use plimsoll_units::Time;

use super::config::HomaConfig;
use crate::tcp::{Counters, Flags, TcpSegment};

/// The packet of a message that leaves next, and the priority that it gets.
#[derive(Clone, Copy, Debug)]
struct NextPacket {
    offset: u64,
    len: u64,
    /// The end of its message.
    end: u64,
    priority: u8,
    is_scheduled: bool,
    repeats: bool,
}

/// The messages that an end sends, and how far each was granted, sent and acknowledged.
#[derive(Debug, Default)]
pub(super) struct SendSide {
    written: u64,
    /// The end of what was sent at least once, and of what is acknowledged.
    max: u64,
    una: u64,
    /// The ends of messages not yet acknowledged; without repair, of those not yet sent.
    ends: VecDeque<u64>,
    /// The start of the first message of which something is to be sent.
    start: u64,
    /// The offsets up to which packets were granted, each with its priority.
    grants: VecDeque<(u64, u8)>,
    /// The pieces that the receiver has asked for again: start and end.
    repeats: BTreeMap<u64, u64>,
    /// When something was last sent or heard.
    active: Time,
    probe_due: bool,
    /// Probes in a row without an answer.
    unanswered: u32,
    packets: u64,
    repeated: u64,
    timeouts: u64,
}

impl SendSide {
    pub(super) fn write(&mut self, now: Time, bytes: u64) {
        if bytes == 0 {
            return;
        }
        if self.max == self.written {
            self.start = self.written;
        }
        self.written += bytes;
        self.ends.push_back(self.written);
        self.active = now;
    }

    // ---- feedback ----

    /// The receiver has granted up to `offset`, at `priority`.
    pub(super) fn on_grant(&mut self, now: Time, offset: u64, priority: u8) {
        self.hears(now);
        let known = self.grants.back().map_or(0, |(offset, _)| *offset).max(self.max);
        if offset > known {
            self.grants.push_back((offset.min(self.written), priority));
        }
    }

    /// All up to `offset` has arrived. Returns the bytes newly acknowledged.
    pub(super) fn on_ack(&mut self, now: Time, offset: u64) -> u64 {
        self.hears(now);
        let before = self.una;
        self.una = self.una.max(offset.min(self.max));
        while self.ends.pop_front_if(|end| *end <= self.una).is_some() {}
        self.repeats.retain(|_, end| *end > offset);
        self.una - before
    }

    /// The receiver misses the `bytes` from `offset` on: what was sent of them is sent again, and the rest is granted.
    pub(super) fn on_resend(&mut self, now: Time, offset: u64, bytes: u64) {
        self.hears(now);
        let end = (offset + bytes).min(self.written);
        // A grant of the lowest priority, if one was lost.
        self.on_grant(now, end, 0);
        let (mut from, mut to) = (offset.max(self.una), end.min(self.max));
        if from >= to {
            return;
        }
        while let Some((&piece, &piece_end)) = self.repeats.range(..=to).next_back() {
            if piece_end < from {
                break;
            }
            (from, to) = (from.min(piece), to.max(piece_end));
            self.repeats.remove(&piece);
        }
        self.repeats.insert(from, to);
    }

    fn hears(&mut self, now: Time) {
        (self.active, self.unanswered, self.probe_due) = (now, 0, false);
    }

    // ---- sending ----

    /// Returns the packet that leaves next, if one may.
    fn next(&self, config: &HomaConfig) -> Option<NextPacket> {
        if let Some((&offset, &piece_end)) = self.repeats.first_key_value() {
            let end = self.end_of(offset);
            let len = config.payload(false).min(piece_end.min(end) - offset);
            let priority = config.unscheduled_priority(end - offset);
            return Some(NextPacket { offset, len, end, priority, is_scheduled: false, repeats: true });
        }
        if self.max == self.written {
            return None;
        }
        let (offset, end) = (self.max, self.end_of(self.max));
        let unscheduled = end.min(self.start + config.unscheduled_bytes());
        if offset < unscheduled {
            let len = config.payload(false).min(unscheduled - offset);
            let priority = config.unscheduled_priority(end - offset);
            return Some(NextPacket { offset, len, end, priority, is_scheduled: false, repeats: false });
        }
        let &(granted, priority) = self.grants.iter().find(|(granted, _)| *granted > offset)?;
        let len = config.payload(true).min(granted.min(end) - offset);
        Some(NextPacket { offset, len, end, priority, is_scheduled: true, repeats: false })
    }

    /// Returns the end of the message that has the byte at `offset`.
    fn end_of(&self, offset: u64) -> u64 {
        let place = self.ends.partition_point(|end| *end <= offset);
        self.ends.get(place).copied().unwrap_or(self.written)
    }

    /// Returns the bytes left of the message whose packet may leave, and the packet's priority.
    pub(super) fn ready(&self, config: &HomaConfig) -> Option<(u64, u8)> {
        self.next(config).map(|next| (next.end - next.offset, next.priority))
    }

    /// Returns the next data packet with its priority, if one may leave now.
    pub(super) fn next_packet(&mut self, config: &HomaConfig, now: Time) -> Option<(TcpSegment, u8)> {
        let NextPacket { offset, len, end, priority, is_scheduled, repeats } = self.next(config)?;
        if repeats {
            let piece_end = self.repeats.remove(&offset).expect("it is the first piece");
            if offset + len < piece_end {
                self.repeats.insert(offset + len, piece_end);
            }
            self.repeated += 1;
        } else {
            self.max = offset + len;
            while self.grants.pop_front_if(|(granted, _)| *granted <= self.max).is_some() {}
            if self.max == end {
                self.start = end;
            }
            if !config.params.repair {
                // What has left counts as arrived: nothing is lost.
                while let Some(end) = self.ends.pop_front_if(|end| *end <= self.max) {
                    self.una = end;
                }
            }
        }
        self.packets += 1;
        self.active = now;
        let flags = Flags::NONE.with_if(!is_scheduled, Flags::CWR).with_if(repeats, Flags::RETRANSMISSION);
        let segment = TcpSegment { seq: offset, len: len as u32, ack: end, flags, ..TcpSegment::default() };
        Some((segment, priority))
    }

    // ---- repair ----

    /// Returns when the receiver is asked whether all has arrived; [`Time::MAX`] if never.
    pub(super) fn deadline(&self, config: &HomaConfig) -> Time {
        if !config.params.repair || self.una == self.max || self.next(config).is_some() {
            return Time::MAX;
        }
        let wait = config.params.resend_after.saturating_mul(1 << self.unanswered.min(UNANSWERED_MAX));
        self.active.saturating_add(wait)
    }

    pub(super) fn on_deadline(&mut self, config: &HomaConfig, now: Time) {
        if now >= self.deadline(config) {
            (self.active, self.probe_due) = (now, true);
            self.unanswered += 1;
            self.timeouts += 1;
        }
    }

    /// Removes the probe that is due.
    pub(super) fn take_probe(&mut self) -> Option<TcpSegment> {
        let is_due = std::mem::take(&mut self.probe_due);
        is_due.then(|| TcpSegment { ack: self.end_of(self.una), flags: Flags::CWR, ..TcpSegment::default() })
    }

    pub(super) fn owes_probe(&self) -> bool {
        self.probe_due
    }

    // ---- read-outs ----

    pub(super) fn acknowledged(&self) -> u64 {
        self.una
    }

    pub(super) fn sent(&self) -> u64 {
        self.max
    }

    pub(super) fn written(&self) -> u64 {
        self.written
    }

    pub(super) fn counters(&self) -> Counters {
        Counters {
            data_segments: self.packets,
            retransmissions: self.repeated,
            timeouts: self.timeouts,
            ..Counters::default()
        }
    }
}

/// The probes in a row up to which the wait for the next doubles.
const UNANSWERED_MAX: u32 = 4;
