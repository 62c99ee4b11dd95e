//! [`MessageStream`]: where the messages of a byte stream end, and how far each has come.
//!
//! ```text
//! sender:    write ──> outgoing ──sent to the last byte──> announced to the receiver
//! receiver:  expect ──> incoming ──received to the last byte──> the workload
//! ```

use std::collections::VecDeque;

use plimsoll_fabric::net::Packet;
use plimsoll_mechanisms::tcp::TcpSegment;
use plimsoll_traffic::{Arrival, ConnectionEnd as End};
use plimsoll_units::Time;

/// A message that an end writes into its byte stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outgoing {
    /// The stream offset just after its last byte.
    pub(super) end: u64,
    pub(super) bytes: u64,
    /// The workload's own number for it.
    pub(super) tag: u64,
    pub(super) created: Time,
    /// The time at which its last byte was first sent.
    pub(super) first_sent: Time,
}

impl Outgoing {
    /// Finds the packet that carries the message's last byte.
    pub(super) fn ends_in<'a>(&self, packets: &'a [Packet]) -> Option<&'a Packet> {
        packets.iter().find(|packet| {
            let before_end = (self.end as u32).wrapping_sub(packet.seq).wrapping_sub(1);
            before_end < u32::from(packet.len)
        })
    }
}

/// What the end `to` of a connection, which another logical process simulates, has to know.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Announcement {
    pub(super) connection: u32,
    pub(super) to: End,
    pub(super) what: Announced,
}

/// What an end of a connection announces to the other.
#[derive(Clone, Copy, Debug)]
pub(super) enum Announced {
    /// The last byte of this message is on its way.
    Message(Outgoing),
    /// This end rests, after so many segments.
    Rests(SegmentCounts),
    /// The end that hears of it rests, and so does this one, which is put away.
    PutAway,
}

/// The segments that an end has sent and received.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SegmentCounts {
    pub(super) sent: u64,
    pub(super) received: u64,
}

impl SegmentCounts {
    /// Returns the counts of the other end if no segment is under way, and none was lost.
    pub(super) fn seen_by_peer(self) -> SegmentCounts {
        SegmentCounts { sent: self.received, received: self.sent }
    }
}

/// The messages at an end of an open connection, of any transport.
pub(super) struct Stream<'a> {
    pub(super) workload: u16,
    /// The bytes of the stream that the other end has acknowledged.
    pub(super) acknowledged: u64,
    pub(super) own: &'a mut MessageStream,
    pub(super) peer: &'a mut MessageStream,
    /// The packets of the connection may take several paths at a time.
    pub(super) has_subflows: bool,
}

/// A delivered message that awaits its acknowledgement.
#[derive(Clone, Copy, Debug)]
struct UnacknowledgedMessage {
    /// The stream offset just after its last byte.
    end: u64,
    arrival: Arrival,
}

/// The messages that one end of a connection writes and receives.
#[derive(Debug, Default)]
pub(super) struct MessageStream {
    /// The messages delivered but not yet acknowledged, where the acknowledgement completes them.
    unacknowledged: VecDeque<UnacknowledgedMessage>,
    written: u64,
    /// The number of bytes of the stream that were sent at least once.
    sent: u64,
    /// The messages not yet sent to their last byte.
    outgoing: InOrder,
    /// The messages that the other end has sent to their last byte and that are not yet whole here.
    incoming: InOrder,
}

/// Messages in the order of the stream.
#[derive(Debug)]
struct InOrder {
    /// Where the first one ends, which every packet asks; the largest number if there is none, and zero if it is whole
    /// behind a gap.
    first_end: u64,
    messages: VecDeque<Outgoing>,
}

impl Default for InOrder {
    fn default() -> InOrder {
        InOrder { first_end: u64::MAX, messages: VecDeque::new() }
    }
}

impl InOrder {
    fn push(&mut self, message: Outgoing) {
        self.first_end = self.first_end.min(message.end);
        self.messages.push_back(message);
    }

    /// Returns whether the first message is within the first `bytes` of the stream.
    #[inline]
    fn has_within(&self, bytes: u64) -> bool {
        self.first_end <= bytes
    }

    /// Has the message with the byte at `offset` be the first, if the other bytes from its first to its last one are
    /// there, as `is_whole` says. Returns whether it is.
    fn advance(&mut self, offset: u64, is_whole: impl FnOnce(u64, u64) -> bool) -> bool {
        let place = self.messages.partition_point(|message| message.end <= offset);
        let found = self.messages.get(place).filter(|message| message.end - message.bytes <= offset);
        let Some(message) =
            found.filter(|message| is_whole(message.end - message.bytes, message.end)).copied()
        else {
            return false;
        };
        self.messages.remove(place);
        self.messages.push_front(message);
        self.first_end = 0;
        true
    }

    /// Removes the first message, if it is within the first `bytes` of the stream.
    fn take_within(&mut self, bytes: u64) -> Option<Outgoing> {
        if !self.has_within(bytes) {
            return None;
        }
        let message = self.messages.pop_front();
        self.first_end = self.messages.front().map_or(u64::MAX, |next| next.end);
        message
    }
}

impl MessageStream {
    /// Appends a message to the stream.
    pub(super) fn write(&mut self, bytes: u64, tag: u64, created: Time) {
        self.written += bytes;
        let end = self.written;
        self.outgoing.push(Outgoing { end, bytes, tag, created, first_sent: Time::MAX });
    }

    /// Returns how many bytes of `segment` are sent for the first time. A retransmission may have some: a short last
    /// segment sent again with data that was written since.
    #[inline]
    pub(super) fn on_sent(&mut self, segment: &TcpSegment) -> u64 {
        let end = segment.seq + u64::from(segment.len);
        if segment.len == 0 || end <= self.sent {
            return 0;
        }
        end - std::mem::replace(&mut self.sent, end)
    }

    /// The next `bytes` of the stream have been sent.
    pub(super) fn on_bytes_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// Returns whether the next message has been sent to its last byte.
    #[inline]
    pub(super) fn has_sent_message(&self) -> bool {
        self.outgoing.has_within(self.sent)
    }

    /// Removes the next message whose last byte was sent, at `now`: the other end may expect it.
    #[inline]
    pub(super) fn take_sent(&mut self, now: Time) -> Option<Outgoing> {
        let message = self.outgoing.take_within(self.sent)?;
        Some(Outgoing { first_sent: now, ..message })
    }

    /// The other end has sent `message` to its last byte, which no packet can have brought yet.
    #[inline]
    pub(super) fn expect(&mut self, message: Outgoing) {
        self.incoming.push(message);
    }

    /// Returns whether the first `received` bytes hold the next message whole.
    #[inline]
    pub(super) fn has_whole(&self, received: u64) -> bool {
        self.incoming.has_within(received)
    }

    /// Has the message with the byte at `offset` be the next, if `is_whole` says so of its first byte and its end,
    /// though bytes before it are missing. Returns whether it is.
    pub(super) fn advance_whole(&mut self, offset: u64, is_whole: impl FnOnce(u64, u64) -> bool) -> bool {
        self.incoming.advance(offset, is_whole)
    }

    /// Removes the next message, if the first `received` bytes hold it whole.
    pub(super) fn take_received(&mut self, received: u64) -> Option<Outgoing> {
        self.incoming.take_within(received)
    }

    /// Keeps `arrival` of `message` until its sender has the acknowledgement.
    /// Messages are acknowledged in their order.
    pub(super) fn await_acknowledgement(&mut self, message: &Outgoing, arrival: Arrival) {
        let place = self.unacknowledged.partition_point(|other| other.end <= message.end);
        self.unacknowledged.insert(place, UnacknowledgedMessage { end: message.end, arrival });
    }

    /// Returns whether the first `acknowledged` bytes hold the next message whole.
    pub(super) fn has_acknowledged(&self, acknowledged: u64) -> bool {
        self.unacknowledged.front().is_some_and(|delivered| delivered.end <= acknowledged)
    }

    /// Removes the next message of which the first `acknowledged` bytes hold all.
    #[inline]
    pub(super) fn take_acknowledged(&mut self, acknowledged: u64) -> Option<Arrival> {
        let delivered = self.unacknowledged.pop_front_if(|delivered| delivered.end <= acknowledged)?;
        Some(delivered.arrival)
    }

    /// Returns the offsets at which the messages begin that are not whole at the other end, whose stream is `peer`.
    pub(super) fn unfinished_starts<'a>(&'a self, peer: &'a MessageStream) -> impl Iterator<Item = u64> + 'a {
        let incoming = peer.incoming.messages.iter();
        incoming.chain(&self.outgoing.messages).map(|message| message.end - message.bytes)
    }

    /// Returns whether no message is on its way to be sent or to be received.
    pub(super) fn is_empty(&self) -> bool {
        self.outgoing.messages.is_empty() && self.incoming.messages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_come_out_whole_and_in_their_order() {
        let (mut client, mut server) = (MessageStream::default(), MessageStream::default());
        for (tag, bytes) in [(7, 100), (8, 0), (9, 50)] {
            client.write(bytes, tag, Time::ZERO);
        }
        let mut seen = Vec::new();
        for sent in [99, 1, 49, 1] {
            client.on_bytes_sent(sent);
            assert_eq!(client.has_sent_message(), [100, 150].contains(&client.sent));
            while let Some(message) = client.take_sent(Time::ZERO) {
                server.expect(message);
            }
            assert_eq!(server.has_whole(client.sent), [100, 150].contains(&client.sent));
            seen.extend(std::iter::from_fn(|| server.take_received(client.sent)).map(|message| message.tag));
        }
        assert_eq!(seen, [7, 8, 9]);
        assert!(client.is_empty() && server.is_empty() && !client.has_sent_message());
    }

    #[test]
    fn a_message_that_is_whole_behind_a_gap_is_the_next() {
        let (mut client, mut server) = (MessageStream::default(), MessageStream::default());
        [100, 50, 70].iter().zip(0..).for_each(|(bytes, tag)| client.write(*bytes, tag, Time::ZERO));
        client.on_bytes_sent(220);
        std::iter::from_fn(|| client.take_sent(Time::ZERO)).for_each(|message| server.expect(message));
        let mut asked = Vec::new();
        for (offset, is_whole) in [(149, false), (120, true)] {
            let is_next = server.advance_whole(offset, |start, end| {
                asked.push((start, end));
                is_whole
            });
            assert_eq!((is_next, server.has_whole(0)), (is_whole, is_whole));
        }
        assert_eq!(asked, [(100, 150), (100, 150)]);
        let tag = |message: Option<Outgoing>| message.map(|message| message.tag);
        assert_eq!((tag(server.take_received(0)), tag(server.take_received(99))), (Some(1), None));
        // It was delivered: the gap closes for the others alone, and a packet of it again completes nothing.
        assert!(!server.advance_whole(120, |_, _| true));
        assert_eq!((tag(server.take_received(220)), tag(server.take_received(220))), (Some(0), Some(2)));
    }
}
