//! [`Messages`]: where the messages of a byte stream end, and how far each has come.
//!
//! ```text
//! sender:    write ──> outgoing ──sent to the last byte──> announced to the receiver
//! receiver:  expect ──> incoming ──received to the last byte──> the workload
//! ```

use std::collections::VecDeque;

use plimsoll_fabric::net::Packet;
use plimsoll_mechanisms::tcp::Segment;
use plimsoll_memory::prefetch_for_later;
use plimsoll_traffic::Arrival;
use plimsoll_units::Time;

/// A message in a byte stream.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outgoing {
    /// The stream offset just after its last byte.
    pub(crate) end: u64,
    pub(crate) bytes: u64,
    /// The workload's own number for it.
    pub(crate) tag: u64,
    pub(crate) created: Time,
    /// The time at which its last byte was first sent.
    pub(crate) first_sent: Time,
}

impl Outgoing {
    /// Finds the packet that carries the message's last byte.
    pub(crate) fn ends_in<'a>(&self, packets: &'a [Packet]) -> Option<&'a Packet> {
        packets.iter().find(|packet| {
            let before_end = (self.end as u32).wrapping_sub(packet.seq).wrapping_sub(1);
            before_end < u32::from(packet.len)
        })
    }
}

/// A delivered message that awaits its acknowledgement.
#[derive(Clone, Copy, Debug)]
struct Delivered {
    /// The stream offset just after its last byte.
    end: u64,
    arrival: Arrival,
}

/// The messages that one end of a connection writes and receives.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    /// The messages delivered but not yet acknowledged, where the acknowledgement completes them.
    unacknowledged: VecDeque<Delivered>,
    written: u64,
    /// The number of bytes of the stream that were sent at least once.
    sent: u64,
    /// The messages not yet sent to their last byte.
    outgoing: VecDeque<Outgoing>,
    /// The messages that the other end has sent to their last byte and that are not yet whole here.
    incoming: VecDeque<Outgoing>,
}

impl Messages {
    /// Appends a message to the stream.
    pub(crate) fn write(&mut self, bytes: u64, tag: u64, created: Time) {
        self.written += bytes;
        let end = self.written;
        self.outgoing.push_back(Outgoing { end, bytes, tag, created, first_sent: Time::MAX });
    }

    /// Returns how many bytes of `segment` are sent for the first time. A retransmission may have some: a short last
    /// segment sent again with what was written since.
    #[inline]
    pub(crate) fn on_sent(&mut self, segment: &Segment) -> u64 {
        let end = segment.seq + u64::from(segment.len);
        if segment.len == 0 || end <= self.sent {
            return 0;
        }
        end - std::mem::replace(&mut self.sent, end)
    }

    /// The next `bytes` of the stream have been sent.
    pub(crate) fn on_bytes_sent(&mut self, bytes: u64) {
        self.sent += bytes;
    }

    /// Returns whether the next message has been sent to its last byte.
    #[inline]
    pub(crate) fn has_sent_message(&self) -> bool {
        self.outgoing.front().is_some_and(|message| message.end <= self.sent)
    }

    /// Removes the next message whose last byte was sent, at `now`: the other end may expect it.
    #[inline]
    pub(crate) fn take_sent(&mut self, now: Time) -> Option<Outgoing> {
        let message = self.outgoing.pop_front_if(|message| message.end <= self.sent)?;
        Some(Outgoing { first_sent: now, ..message })
    }

    /// The other end has sent `message` to its last byte, which no packet can have brought yet.
    #[inline]
    pub(crate) fn expect(&mut self, message: Outgoing) {
        self.incoming.push_back(message);
    }

    /// Returns whether the first `received` bytes hold the next message whole.
    #[inline]
    pub(crate) fn has_whole(&self, received: u64) -> bool {
        self.incoming.front().is_some_and(|message| message.end <= received)
    }

    /// Removes the next message, if the first `received` bytes hold it whole.
    pub(crate) fn take_received(&mut self, received: u64) -> Option<Outgoing> {
        self.incoming.pop_front_if(|message| message.end <= received)
    }

    /// Keeps `arrival` of `message` until its sender has the acknowledgement.
    pub(crate) fn await_acknowledgement(&mut self, message: &Outgoing, arrival: Arrival) {
        self.unacknowledged.push_back(Delivered { end: message.end, arrival });
    }

    /// Removes the next message of which the first `acknowledged` bytes hold all.
    #[inline]
    pub(crate) fn take_acknowledged(&mut self, acknowledged: u64) -> Option<Arrival> {
        let delivered = self.unacknowledged.pop_front_if(|delivered| delivered.end <= acknowledged)?;
        Some(delivered.arrival)
    }

    /// Returns whether no message is on its way to be sent or to be received.
    pub(crate) fn is_empty(&self) -> bool {
        self.outgoing.is_empty() && self.incoming.is_empty()
    }

    /// Asks memory for the messages that an arrival looks at.
    #[inline]
    pub(crate) fn prefetch(&self) {
        for message in [self.incoming.front(), self.outgoing.front()].into_iter().flatten() {
            prefetch_for_later(&message.end);
        }
    }
}
