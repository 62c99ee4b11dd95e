//! [`SendTimes`]: when packets were sent, for the round-trip times that controllers see.
//!
//! ```text
//! data (number 7) ──> receiver ── ACK (echo 7) ──> the packet with number 7 was sent at t:  rtt = now - t
//! ```
//!
//! Each transmission has a number of its own, which its acknowledgement echoes, as the timestamps of HPCC's released
//! code do: so the sample is that of the packet that caused the acknowledgement, also where the same bytes were sent
//! twice. The time is that at which the NIC takes the packet from the queue pair. On an idle path the sample is exactly
//! the base round-trip time; behind a packet of another queue pair it has the rest of that packet's time on the link.

use crate::transports::nearest;
use std::collections::VecDeque;

use plimsoll_units::{Span, Time};

/// The times of the packets sent since the last one whose echo has come.
#[derive(Debug, Default)]
pub(super) struct SendTimes {
    /// The number of the first packet in `times`. The wire carries its lower 32 bits.
    first: u64,
    times: VecDeque<Time>,
}

impl SendTimes {
    /// Records a packet sent at `now`, and returns its number.
    pub(super) fn record(&mut self, now: Time) -> u64 {
        let number = self.count();
        self.times.push_back(now);
        number
    }

    /// Returns how many packets have been recorded.
    pub(super) fn count(&self) -> u64 {
        self.first + self.times.len() as u64
    }

    /// Returns the number of the packet whose number came back, of which the wire has the lower 32 bits.
    pub(super) fn number(&self, echo: u64) -> u64 {
        nearest::<32>(echo, self.first)
    }

    /// Returns how far the echoed number is beyond the first one in `times`, modulo 2^32.
    fn distance(&self, echo: u64) -> u32 {
        (echo as u32).wrapping_sub(self.first as u32)
    }

    /// Returns the round-trip time of the packet whose number came back at `now`; `None` if an echo of a later packet
    /// has come before.
    pub(super) fn sample(&mut self, now: Time, echo: u64) -> Option<Span> {
        let place = self.distance(echo) as usize;
        let sent = *self.times.get(place)?;
        self.forget(place + 1);
        Some(now.saturating_since(sent))
    }

    /// A timeout has passed. Forgets the packets that no queue can hold any more.
    pub(super) fn on_timeout(&mut self, now: Time) {
        self.forget(self.times.partition_point(|sent| now.saturating_since(*sent) > REMEMBERED));
    }

    fn forget(&mut self, count: usize) {
        self.times.drain(..count);
        self.first += count as u64;
    }
}

/// A packet is forgotten after this time without an echo. It exceeds what the largest buffers hold, and so bounds the
/// memory of an outage, and not what a controller sees.
const REMEMBERED: Span = Span::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::ZERO + Span::from_us(us)
    }

    #[test]
    fn a_sample_is_of_the_transmission_that_was_echoed() {
        let mut times = SendTimes { first: u64::from(u32::MAX), ..SendTimes::default() };
        let numbers: Vec<u64> = [1, 2, 3, 5].into_iter().map(|us| times.record(at(us))).collect();
        assert_eq!(numbers, [0, 1, 2, 3].map(|place| u64::from(u32::MAX) + place));
        // The wire has the lower 32 bits.
        assert_eq!([u64::from(u32::MAX) - 1, 1].map(|echo| times.number(echo)), [numbers[0] - 1, numbers[2]]);
        assert_eq!(times.sample(at(12), 0), Some(Span::from_us(10)));
        assert_eq!(times.sample(at(13), 0), None, "echoed twice");
        assert_eq!(times.sample(at(13), u64::from(u32::MAX)), None, "overtaken by a later one");
        assert_eq!(times.sample(at(15), 7), None, "never sent");
        assert_eq!(times.sample(at(15), 2), Some(Span::from_us(10)));
        assert_eq!((times.record(at(20)) as u32, times.count()), (3, numbers[0] + 5));
    }

    #[test]
    fn what_is_never_echoed_is_forgotten() {
        let mut times = SendTimes::default();
        (0..10).for_each(|us| _ = times.record(at(us)));
        times.on_timeout(at(1_000_007));
        assert_eq!((times.times.len(), times.sample(at(1_000_020), 6)), (3, None));
        assert_eq!(times.sample(at(1_000_020), 9), Some(Span::from_us(1_000_011)));
    }
}
