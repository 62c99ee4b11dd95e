//! The receiver's reorder buffer: data that arrives out of order is held for a limited time, so that TCP sees it in
//! order and does not mistake reordering for a loss.
//!
//! ```text
//!            next                      a gap opens: held until it is filled, or for `timeout`
//! released ──>|<── missing ──>[ held ][ held ]
//!                                 └── no room, or the time is up: all is released, gap or not
//! ```
//!
//! Cost: TCP sees a gap that is a loss up to `timeout` later, and fast recovery begins later by as much. The cost is
//! not higher than that: when the time is up, TCP gets all held data, the duplicate acknowledgements follow, and data
//! behind the gap is not held any more. So the buffer waits once a gap, not once a packet.
//!
//! The buffer never loses, and never waits for data that came before: data that ends at or below `next` (a
//! retransmission that fills a gap already shown to TCP, or a repetition) passes at once.

use std::collections::VecDeque;

use plimsoll_units::{Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::mechanism::{Mechanism, Section, Table};

/// The receiver's reorder buffer, between the NIC and TCP: one for each direction of a connection. It hides
/// reordering from TCP, and delays the recovery from a loss by up to `timeout`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReorderBufferParams {
    /// How long the first data behind a gap waits for the missing data: more than 0, at most 1 s. Default 50 us (an
    /// assumption; longer than the paths differ, shorter than a retransmission takes).
    pub timeout: Span,
    /// The most payload held of a connection's direction: at least 1 B, at most 1 GB. Data that does not fit releases
    /// all that is held. Default 1 MB (an assumption).
    pub bytes: Bytes,
}

impl Default for ReorderBufferParams {
    fn default() -> ReorderBufferParams {
        ReorderBufferParams { timeout: Span::from_us(50), bytes: Bytes::new(1_000_000) }
    }
}

impl Mechanism for ReorderBufferParams {
    const TABLE: Table = Table::replaced_whole(
        Section::Host,
        "reorder_buffer",
        "TCP sees data in the order in which it arrives",
    )
    .holds_packets();

    fn validate(&self) -> Result<(), InvalidParam> {
        let timeout_ok = self.timeout > Span::ZERO && self.timeout <= Span::from_secs(1);
        InvalidParam::unless(timeout_ok, "timeout", self.timeout, "more than 0s, at most 1s")?;
        let bytes_ok = (1..=1_000_000_000).contains(&self.bytes.get());
        InvalidParam::unless(bytes_ok, "bytes", self.bytes, "at least 1B, at most 1GB")
    }
}

/// The reorder buffer of one direction of a connection, for data of type `T`.
#[derive(Clone, Debug)]
pub struct ReorderBuffer<T> {
    timeout: Span,
    room: u64,
    /// The end of the data that TCP has or was shown: data from here on is in order.
    next: u64,
    /// The held data, by sequence number; data of equal numbers in the order of arrival.
    held: VecDeque<Held<T>>,
    held_bytes: u64,
    /// When all held data is released; only meaningful while data is held.
    due: Time,
}

#[derive(Clone, Copy, Debug)]
struct Held<T> {
    seq: u64,
    bytes: u64,
    data: T,
}

impl<T> ReorderBuffer<T> {
    /// Makes an empty buffer at the beginning of a stream.
    pub fn new(params: &ReorderBufferParams) -> ReorderBuffer<T> {
        ReorderBuffer {
            timeout: params.timeout,
            room: params.bytes.get(),
            next: 0,
            held: VecDeque::new(),
            held_bytes: 0,
            due: Time::MAX,
        }
    }

    /// Handles the arrival of `bytes` bytes from stream offset `seq` on, which are released now or later; the data that
    /// they set free follows them. TCP has the stream whole up to `received`.
    pub fn on_data(
        &mut self,
        now: Time,
        received: u64,
        seq: u64,
        bytes: u64,
        data: T,
        released: &mut impl Extend<T>,
    ) {
        self.next = self.next.max(received);
        if seq <= self.next {
            self.next = self.next.max(seq + bytes);
            released.extend([data]);
            return self.release_in_order(now, released);
        }
        if self.held_bytes + bytes > self.room {
            self.hold(seq, bytes, data);
            return self.release_all(released);
        }
        if self.held.is_empty() {
            self.due = now.saturating_add(self.timeout);
        }
        self.hold(seq, bytes, data);
    }

    /// Releases all that is held, in the order of the stream, if its time is up.
    pub fn poll(&mut self, now: Time, released: &mut impl Extend<T>) {
        if self.next_due().is_some_and(|due| due <= now) {
            self.release_all(released);
        }
    }

    /// Returns when the held data must be released; `None` while nothing is held.
    pub fn next_due(&self) -> Option<Time> {
        (!self.held.is_empty()).then_some(self.due)
    }

    /// Returns whether nothing is held, and TCP, which has the stream whole up to `received`, misses nothing that it
    /// was shown: a new buffer would behave the same from here on.
    pub fn is_done_at(&self, received: u64) -> bool {
        self.held.is_empty() && self.next <= received
    }

    fn hold(&mut self, seq: u64, bytes: u64, data: T) {
        // Most data arrives in order, so its place is near the end.
        let place = self.held.iter().rposition(|held| held.seq <= seq).map_or(0, |before| before + 1);
        self.held.insert(place, Held { seq, bytes, data });
        self.held_bytes += bytes;
    }

    /// Releases the data that now continues the stream. A further gap has the full time again.
    fn release_in_order(&mut self, now: Time, released: &mut impl Extend<T>) {
        let before = self.held.len();
        while let Some(Held { seq, bytes, data }) = self.held.pop_front_if(|held| held.seq <= self.next) {
            self.next = self.next.max(seq + bytes);
            self.held_bytes -= bytes;
            released.extend([data]);
        }
        if self.held.len() < before {
            self.due = now.saturating_add(self.timeout);
        }
    }

    fn release_all(&mut self, released: &mut impl Extend<T>) {
        for Held { seq, bytes, data } in self.held.drain(..) {
            self.next = self.next.max(seq + bytes);
            released.extend([data]);
        }
        self.held_bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at_us(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    /// A buffer of 50 us and 4 kB, and the data that it has released.
    struct Receiver {
        buffer: ReorderBuffer<u64>,
        received: u64,
    }

    impl Receiver {
        fn new() -> Receiver {
            let params = ReorderBufferParams { bytes: Bytes::new(4_000), ..ReorderBufferParams::default() };
            Receiver { buffer: ReorderBuffer::new(&params), received: 0 }
        }

        /// Packet `number` of 1000 B arrives; TCP's stream is whole up to `received`.
        fn packet(&mut self, us: u64, number: u64) -> Vec<u64> {
            let mut released = Vec::new();
            let seq = number * 1_000;
            self.buffer.on_data(at_us(us), self.received, seq, 1_000, number, &mut released);
            self.see(&released);
            released
        }

        fn poll(&mut self, us: u64) -> Vec<u64> {
            let mut released = Vec::new();
            self.buffer.poll(at_us(us), &mut released);
            self.see(&released);
            released
        }

        fn see(&mut self, released: &[u64]) {
            for number in released {
                if number * 1_000 == self.received {
                    self.received += 1_000;
                }
            }
        }
    }

    #[test]
    fn what_is_in_order_passes() {
        let mut receiver = Receiver::new();
        for number in 0..5 {
            assert_eq!(receiver.packet(number, number), [number]);
            assert_eq!(receiver.buffer.next_due(), None);
        }
    }

    #[test]
    fn what_was_overtaken_brings_the_rest() {
        let mut receiver = Receiver::new();
        receiver.packet(0, 0);
        assert_eq!(receiver.packet(10, 3), [0u64; 0]);
        assert_eq!(receiver.packet(20, 2), [0u64; 0]);
        assert_eq!(receiver.buffer.next_due(), Some(at_us(60)));
        assert_eq!(receiver.packet(30, 1), [1, 2, 3]);
        assert_eq!(receiver.buffer.next_due(), None);
    }

    #[test]
    fn a_loss_is_shown_after_the_timeout_and_waited_for_once() {
        let mut receiver = Receiver::new();
        receiver.packet(0, 0);
        assert_eq!((receiver.packet(10, 2), receiver.packet(20, 3)), (Vec::new(), Vec::new()));
        assert_eq!(receiver.poll(59), [0u64; 0]);
        assert_eq!(receiver.poll(60), [2, 3]);
        // TCP still misses packet 1, and gets the following ones at once.
        assert_eq!(receiver.packet(61, 4), [4]);
        assert_eq!(receiver.packet(62, 1), [1]);
    }

    #[test]
    fn a_second_gap_has_the_full_time() {
        let mut receiver = Receiver::new();
        assert_eq!((receiver.packet(0, 1), receiver.packet(5, 3)), (Vec::new(), Vec::new()));
        assert_eq!(receiver.packet(40, 0), [0, 1]);
        assert_eq!(receiver.buffer.next_due(), Some(at_us(90)));
        assert_eq!(receiver.poll(90), [3]);
    }

    #[test]
    fn without_room_all_is_released() {
        let mut receiver = Receiver::new();
        for number in 1..5 {
            assert_eq!(receiver.packet(number, number), [0u64; 0]);
        }
        assert_eq!(receiver.packet(5, 6), [1, 2, 3, 4, 6]);
        assert_eq!(receiver.packet(6, 5), [5]);
    }

    #[test]
    fn repetitions_pass_and_are_never_lost() {
        let mut receiver = Receiver::new();
        receiver.packet(0, 0);
        assert_eq!(receiver.packet(1, 0), [0]);
        assert_eq!((receiver.packet(2, 2), receiver.packet(3, 2)), (Vec::new(), Vec::new()));
        assert_eq!(receiver.packet(4, 1), [1, 2, 2]);
    }

    #[test]
    fn what_tcp_got_by_another_way_counts() {
        let mut buffer = ReorderBuffer::new(&ReorderBufferParams::default());
        let mut released = Vec::new();
        buffer.on_data(at_us(0), 5_000, 5_000, 1_000, 'a', &mut released);
        assert_eq!(released, ['a']);
    }

    #[test]
    fn ranges() {
        let default = ReorderBufferParams::default;
        default().validate().unwrap();
        for (key, params) in [
            ("timeout", ReorderBufferParams { timeout: Span::ZERO, ..default() }),
            ("timeout", ReorderBufferParams { timeout: Span::from_secs(2), ..default() }),
            ("bytes", ReorderBufferParams { bytes: Bytes::ZERO, ..default() }),
            ("bytes", ReorderBufferParams { bytes: Bytes::new(1_000_000_001), ..default() }),
        ] {
            assert_eq!(params.validate().unwrap_err().key, key);
        }
    }
}
