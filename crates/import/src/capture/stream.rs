//! [`ByteStream`]: the bytes of one direction of a conversation, by sequence numbers, and where they were seen.

use plimsoll_bursts::CapturedSegment;
use plimsoll_units::Time;

/// One direction of a conversation. Places count payload bytes from the first that was seen.
#[derive(Debug, Default)]
pub(super) struct ByteStream {
    /// The interface on which the direction was first seen. Packets on others are copies.
    near: Option<u32>,
    /// The sequence number of the byte after all that were seen.
    sequence: Option<u32>,
    /// The number of bytes that were seen.
    pub(super) place: u64,
    /// The number of bytes that the other side has acknowledged.
    pub(super) acknowledged: Option<u64>,
    /// Ranges that were skipped: lost or reordered before the place of the capture.
    holes: Vec<(u64, u64)>,
    /// When the last new byte, or the SYN, was first seen.
    seen: Option<Time>,
    /// The bytes that were seen at a further interface, and when the last of them.
    far: Option<(u64, Time)>,
    /// The last bytes were sent again, so that an acknowledgement of them is of either time.
    is_ambiguous: bool,
}

/// The payload of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Payload {
    /// The packet was seen before, at another interface.
    Copy,
    /// The packet has no payload, or that of a keep-alive.
    None,
    /// The number of new bytes, including the bytes of a hole.
    New(u64),
    /// The bytes were seen before.
    Again,
    /// The bytes fill a hole.
    Fills,
}

/// The acknowledgement of a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Acknowledged {
    /// Everything that was seen is acknowledged.
    pub(super) all: bool,
    /// The time since the last byte arrived, if it is acknowledged for the first time and was sent once.
    pub(super) since: Option<Time>,
}

/// The most holes that a direction remembers.
const HOLES: usize = 32;

impl ByteStream {
    /// Takes a segment of this direction.
    pub(super) fn on_segment(&mut self, segment: &CapturedSegment, interface: u32, time: Time) -> Payload {
        let is_far = *self.near.get_or_insert(interface) != interface;
        let (start, end) = self.range(segment);
        if end > self.place as i64 {
            return self.extend(segment, start.max(0) as u64, end as u64, time);
        }
        if is_far {
            self.copy(end.max(0) as u64, time);
            return Payload::Copy;
        }
        if segment.syn {
            self.is_ambiguous |= self.seen.replace(time).is_some();
        }
        // A keep-alive repeats a byte that has been acknowledged (RFC 9293, section 3.8.4).
        let is_keep_alive = segment.payload == 1 && self.acknowledged.is_some_and(|to| end <= to as i64);
        if segment.payload == 0 || is_keep_alive {
            return Payload::None;
        }
        self.is_ambiguous = true;
        let fills = |hole: &(u64, u64)| start < hole.1 as i64 && end > hole.0 as i64;
        match self.holes.iter().position(fills) {
            Some(place) => {
                let (from, to) = self.holes.swap_remove(place);
                let rest = [(from, start.max(0) as u64), (end as u64, to)];
                self.holes.extend(rest.into_iter().filter(|(from, to)| from < to));
                Payload::Fills
            }
            None => Payload::Again,
        }
    }

    /// Returns the places of a segment's bytes; they are negative before the first byte that was seen.
    fn range(&mut self, segment: &CapturedSegment) -> (i64, i64) {
        let sequence = *self.sequence.get_or_insert(segment.sequence);
        let start = self.place as i64 + i64::from(segment.sequence.wrapping_sub(sequence) as i32);
        (start, start + i64::from(segment.payload))
    }

    /// Takes a segment that has been captured before, at another place.
    pub(super) fn on_copy(&mut self, segment: &CapturedSegment, time: Time) {
        let (_, end) = self.range(segment);
        self.copy(end.max(0) as u64, time);
    }

    /// Takes new bytes from `start` to `end`.
    fn extend(&mut self, segment: &CapturedSegment, start: u64, end: u64, time: Time) -> Payload {
        if start > self.place && self.holes.len() < HOLES {
            self.holes.push((self.place, start));
        }
        let new = end - self.place;
        self.place = end;
        self.sequence = Some(segment.sequence.wrapping_add(segment.payload));
        self.seen = Some(time);
        self.is_ambiguous = false;
        Payload::New(new)
    }

    /// Takes a datagram of this direction, whose bytes are new unless a further interface repeats them.
    pub(super) fn on_datagram(&mut self, bytes: u32, interface: u32, time: Time, is_copy: bool) -> Payload {
        let is_far = *self.near.get_or_insert(interface) != interface;
        if is_far || is_copy {
            self.copy(self.place, time);
            return Payload::Copy;
        }
        self.place += u64::from(bytes);
        self.seen = Some(time);
        Payload::New(u64::from(bytes))
    }

    fn copy(&mut self, to: u64, time: Time) {
        if self.far.is_none_or(|(far, _)| to >= far) {
            self.far = Some((to, time));
        }
    }

    /// Takes an acknowledgement by the other side.
    pub(super) fn on_ack(&mut self, ack: u32) -> Acknowledged {
        let sequence = *self.sequence.get_or_insert(ack);
        let ahead = i64::from(ack.wrapping_sub(sequence) as i32);
        // A FIN counts as a byte.
        let to = (self.place as i64 + ahead).clamp(0, self.place as i64) as u64;
        let all = to == self.place;
        let is_first = self.acknowledged.is_none_or(|before| before < to);
        self.acknowledged = self.acknowledged.max(Some(to));
        let since = if all && is_first && !self.is_ambiguous { self.arrival() } else { None };
        Acknowledged { all, since }
    }

    /// Returns when the last byte was seen for the last time, which is nearest to its receiver.
    pub(super) fn arrival(&self) -> Option<Time> {
        let far = self.far.filter(|(to, _)| *to == self.place).map(|(_, time)| time);
        far.or(self.seen)
    }

    /// Returns whether packets pass a second interface on their way.
    pub(super) fn has_copies(&self) -> bool {
        self.far.is_some()
    }

    /// Returns whether a segment that opens a connection is of another one than this.
    pub(super) fn is_of_another(&self, segment: &CapturedSegment) -> bool {
        let Some(sequence) = self.sequence else { return false };
        let ahead = segment.sequence.wrapping_sub(sequence) as i32;
        let is_reopened = segment.syn && i64::from(ahead) + self.place as i64 != 0;
        is_reopened || ahead.unsigned_abs() > FAR_AWAY
    }
}

/// The largest window is 1 GiB (RFC 7323, section 2.3).
const FAR_AWAY: u32 = 1 << 30;
