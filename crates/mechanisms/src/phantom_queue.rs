//! The phantom queue (HULL, "Phantom queues"): a counter beside a link that behaves like a queue drained at
//! a share `drain` of the link's rate, and that marks packets long before a real queue forms.
//!
//! ```text
//! on each packet:  length <- max(0, length - elapsed x drain x link) + bytes
//!                  CE     if length > threshold
//! ```
//!
//! The comparison follows the addition, so a packet larger than the threshold always marks. The caller decides where
//! the counter is; HULL counts a packet when its transmission starts.
//!
//! # Arithmetic, for a bit-exact version in C
//! The length is kept as the *time it takes to drain*, because decay is then a subtraction without
//! any rounding. All of it is `u64`:
//!
//! | name | unit | value |
//! |---|---|---|
//! | `byte_cost` | 2^-16 ps | `(8 x 10^12 x 2^16 + d/2) / d`, `d = round(drain x link)` in bit/s; at most `2^40 - 1` |
//! | `level` | 2^-16 ps | time until empty; saturates at `2^64 - 1` |
//! | `threshold` | 2^-16 ps | `min(threshold_bytes, 2^24 - 1) x byte_cost` |
//! | `last` | ps | latest time seen |
//!
//! ```text
//! elapsed = now > last ? now - last : 0;   last = max(last, now)
//! level   = elapsed > level >> 16 ? 0 : level - (elapsed << 16)
//! level   = saturating(level + min(bytes, 2^24 - 1) x byte_cost)
//! mark    = level > threshold
//! ```
//!
//! The time quantum is a picosecond; a kernel that counts nanoseconds takes `elapsed = 1000 x ns`, with
//! the nanoseconds cut to `2^48 - 1` first. The cap on `byte_cost` means that a drain below 0.48 Mb/s
//! acts as 0.48 Mb/s, and no product can overflow. Rounding `byte_cost` is wrong by less than one part
//! in 10^6 up to 400 Gb/s.

use plimsoll_units::{Bytes, Rate, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::mechanism::{Marking, Mechanism, Section, Table};

/// A phantom queue on a port: marks packets as if the link were slower than it is, so that senders
/// stop before a real queue forms.
///
/// Replaces the port's own ECN threshold. Marks only packets that can carry a mark (ECT).
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PhantomQueueParams {
    /// The share of the link's rate at which the phantom queue drains: more than 0, at most 1. The rest is the
    /// bandwidth given up for latency. Default 0.95 (HULL; its static-flow experiments were reproduced with 0.9).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub drain: f64,
    /// The phantom length above which a packet is marked: at most 16 MB. Default 1 KB (HULL), which
    /// at 950 B segments marks the second of two back-to-back packets.
    pub threshold: Bytes,
}

impl Default for PhantomQueueParams {
    fn default() -> PhantomQueueParams {
        PhantomQueueParams { drain: 0.95, threshold: Bytes::new(1_000) }
    }
}

impl Mechanism for PhantomQueueParams {
    const TABLE: Table =
        Table::replaced_whole(Section::Port, "phantom_queue", "the port marks by its own queue, if at all");

    /// It marks by its own length, which is independent of buffer limits.
    fn marking(&self) -> Option<Marking> {
        Some(Marking { marks: true, ..Marking::default() })
    }

    fn validate(&self) -> Result<(), InvalidParam> {
        let drain_ok = self.drain > 0.0 && self.drain <= 1.0;
        InvalidParam::unless(drain_ok, "drain", self.drain, "more than 0 and at most 1")?;
        InvalidParam::unless(
            self.threshold.get() <= 16_000_000,
            "threshold",
            self.threshold,
            "a size of at most 16 MB",
        )
    }
}

/// The phantom queue of one link: a counter of bytes that drains below the link's rate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PhantomQueue {
    /// Time one byte takes at the drain rate, in 2^-16 ps.
    byte_cost: u64,
    /// Level above which a packet is marked, in 2^-16 ps.
    threshold: u64,
    /// Time until the phantom queue is empty, as of `last`, in 2^-16 ps.
    level: u64,
    last: Time,
}

impl PhantomQueue {
    /// An empty phantom queue beside a link of rate `link`.
    ///
    /// # Panics
    /// If the link's rate is zero, or so low that the drain rounds to zero.
    pub fn new(params: &PhantomQueueParams, link: Rate) -> PhantomQueue {
        let drain = u128::from(link.scaled(params.drain).as_bps());
        assert!(drain > 0, "a phantom queue needs a link that moves");
        let exact = ((8_000_000_000_000u128 << FRACTION_BITS) + drain / 2) / drain;
        let byte_cost = exact.min(BYTE_COST_MAX) as u64;
        let threshold = params.threshold.get().min(BYTES_MAX) * byte_cost;
        PhantomQueue { byte_cost, threshold, level: 0, last: Time::ZERO }
    }

    /// Counts a packet of `bytes` bytes on the wire at `now`; true if it must be marked. `now` never
    /// decreases from call to call; a smaller one counts as no time passed.
    #[inline]
    pub fn on_transmit(&mut self, now: Time, bytes: u64) -> bool {
        self.level = self.level_at(now).saturating_add(bytes.min(BYTES_MAX) * self.byte_cost);
        self.last = self.last.max(now);
        self.level > self.threshold
    }

    /// The phantom length at `now`, rounded down to a whole byte.
    pub fn length_bytes(&self, now: Time) -> u64 {
        self.level_at(now) / self.byte_cost
    }

    /// Time that one byte takes at the drain rate, in 2^-16 ps.
    pub fn byte_cost(&self) -> u64 {
        self.byte_cost
    }

    /// Level above which a packet is marked, in 2^-16 ps.
    pub fn threshold(&self) -> u64 {
        self.threshold
    }

    /// Returns the state that must agree with the C version: the level in 2^-16 ps, and the latest time seen.
    pub fn state(&self) -> (u64, Time) {
        (self.level, self.last)
    }

    fn level_at(&self, now: Time) -> u64 {
        let elapsed = now.saturating_since(self.last).as_ps();
        if elapsed > self.level >> FRACTION_BITS { 0 } else { self.level - (elapsed << FRACTION_BITS) }
    }
}

const FRACTION_BITS: u32 = 16;
/// 2^40 - 1: with packets below 2^24 bytes, no product exceeds 64 bits.
const BYTE_COST_MAX: u128 = (1 << 40) - 1;
const BYTES_MAX: u64 = (1 << 24) - 1;

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_units::Span;
    use proptest::prelude::*;

    fn gigabit(drain: f64) -> PhantomQueue {
        PhantomQueue::new(&PhantomQueueParams { drain, ..Default::default() }, Rate::from_gbps(1))
    }

    const WIRE_990: Span = Span::from_ns(7_920);

    #[test]
    fn the_second_of_two_back_to_back_packets_is_marked() {
        let mut queue = gigabit(0.95);
        assert!(!queue.on_transmit(Time::ZERO, 990));
        let second = Time::ZERO + WIRE_990;
        assert!(queue.on_transmit(second, 990)); // 990 - 940.5 + 990 = 1039.5
        assert_eq!(queue.length_bytes(second), 1_039);
    }

    #[test]
    fn the_comparison_is_strict_and_after_the_addition() {
        assert!(!gigabit(0.95).on_transmit(Time::ZERO, 1_000));
        assert!(gigabit(0.95).on_transmit(Time::ZERO, 1_001));
    }

    #[test]
    fn a_link_below_the_drain_rate_is_never_marked() {
        let mut queue = gigabit(0.9);
        for packet in 0..10_000 {
            let now = Time::ZERO + Span::from_ns(8_800) * packet; // 990 B at 900 Mb/s
            assert!(!queue.on_transmit(now, 990), "packet {packet}");
        }
    }

    #[test]
    fn it_empties_and_stays_empty() {
        let mut queue = gigabit(0.95);
        queue.on_transmit(Time::ZERO, 950);
        assert_eq!(queue.length_bytes(Time::from_ps(7_999_999)), 0); // below one byte
        assert_eq!(queue.length_bytes(Time::from_ps(7_000_000)), 118); // 950 - 831.25 = 118.75
        assert_eq!(queue.length_bytes(Time::MAX), 0);
    }

    /// The vectors that a version in C must reproduce: (ps, bytes) -> (level, mark).
    #[test]
    fn fixed_vectors() {
        let mut queue = gigabit(0.95);
        assert_eq!(queue.byte_cost, 551_882_105);
        for (now, bytes, level, mark) in [
            (0, 990, 546_363_283_950, false),
            (7_920_000, 990, 573_681_447_900, true),
            (7_920_000, 40, 595_756_732_100, true),
            (17_000_000, 64, 36_010_306_820, false),
            (1_000_000_000, 1_500, 827_823_157_500, true),
        ] {
            let marked = queue.on_transmit(Time::from_ps(now), bytes);
            assert_eq!((queue.level, marked), (level, mark), "at {now} ps");
        }
    }

    #[test]
    fn extremes_saturate() {
        let slow = Rate::from_bps(1);
        let mut queue = PhantomQueue::new(&PhantomQueueParams { drain: 1.0, ..Default::default() }, slow);
        for _ in 0..3 {
            assert!(queue.on_transmit(Time::ZERO, u64::MAX));
        }
        assert_eq!(queue.level, u64::MAX);
    }

    #[test]
    fn ranges() {
        let allowed = |drain| PhantomQueueParams { drain, ..Default::default() }.validate().is_ok();
        assert!(allowed(0.95) && allowed(1.0));
        assert!(!allowed(0.0) && !allowed(1.01) && !allowed(-1.0) && !allowed(f64::NAN));
    }

    proptest! {
        /// Against the formula in floating point: off by the rounding down to a byte, and 10^-6.
        #[test]
        fn follows_the_formula(
            drain in 0.5f64..=1.0,
            packets in prop::collection::vec((0u64..20_000_000, 40u64..9_000), 1..200),
        ) {
            let mut queue = gigabit(drain);
            let (mut now, mut length) = (0u64, 0f64);
            for (gap, bytes) in packets {
                now += gap;
                length = (length - gap as f64 * drain / 8_000.0).max(0.0) + bytes as f64;
                let marked = queue.on_transmit(Time::from_ps(now), bytes);
                let measured = queue.length_bytes(Time::from_ps(now)) as f64;
                prop_assert!((measured - length).abs() <= 1.0 + 1e-6 * length, "{measured} for {length}");
                if (length - 1_000.0).abs() > 0.01 {
                    prop_assert_eq!(marked, length > 1_000.0);
                }
            }
        }
    }
}
