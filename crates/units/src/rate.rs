//! [`Rate`], and the one function that turns bytes and a rate into time.

use std::fmt;

use crate::{Bytes, Span};

/// A data rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Rate(u64);

impl Rate {
    /// The rate at which nothing is sent.
    pub const ZERO: Rate = Rate(0);

    /// Creates a rate of `bits` bits per second.
    pub const fn from_bps(bits: u64) -> Rate {
        Rate(bits)
    }
    /// Creates a rate of `megabits` million bits per second.
    pub const fn from_mbps(megabits: u64) -> Rate {
        Rate(megabits * 1_000_000)
    }
    /// Creates a rate of `gigabits` billion bits per second.
    pub const fn from_gbps(gigabits: u64) -> Rate {
        Rate(gigabits * 1_000_000_000)
    }

    /// Returns the rate in bits per second.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
    /// Returns the rate in megabits per second, for reports.
    pub fn as_mbps_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Returns the fraction `share` of this rate, rounded to the nearest bit per second.
    pub fn scaled(self, share: f64) -> Rate {
        Rate((self.0 as f64 * share).round() as u64)
    }

    /// Returns the time that one byte takes, as a multiplier for [`ByteTime::span`].
    ///
    /// # Panics
    /// Panics if the rate is zero; scenarios reject a zero rate before anything is built.
    pub const fn byte_time(self) -> ByteTime {
        assert!(self.0 > 0, "a rate of zero has no byte time");
        const SCALED_PS: u64 = 8_000_000_000_000 << FRACTION_BITS;
        ByteTime(SCALED_PS.div_ceil(self.0))
    }
}

/// Picoseconds per byte in fixed point with 20 fractional bits, rounded up.
///
/// Exact for every rate that divides 8 x 10^12 x 2^20, which covers 1, 10, 25, 40, 50, 100 and
/// 400 Gb/s; for others the error is below 2^-20 ps a byte: under a tenth of a picosecond for a
/// 64 KiB burst, so the rounded-up span is at most one picosecond too long.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ByteTime(u64);

const FRACTION_BITS: u32 = 20;

impl ByteTime {
    /// Returns the transmission time of `bytes` bytes, rounded up to a picosecond. No other function turns bytes and a
    /// rate into time.
    #[inline]
    pub const fn span(self, bytes: u64) -> Span {
        let scaled = bytes as u128 * self.0 as u128 + ((1 << FRACTION_BITS) - 1);
        Span::from_ps((scaled >> FRACTION_BITS) as u64)
    }
}

impl Bytes {
    /// Returns the transmission time of this many bytes at `rate`, rounded up to a picosecond.
    pub const fn time_at(self, rate: Rate) -> Span {
        rate.byte_time().span(self.get())
    }
}

/// Prints the exact rate in decimal units: `10Gbps`; `0.09Mbps` prints as `90Kbps`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            b if b >= 1_000_000_000_000 => (1_000_000_000_000, "Tbps"),
            b if b >= 1_000_000_000 => (1_000_000_000, "Gbps"),
            b if b >= 1_000_000 => (1_000_000, "Mbps"),
            b if b >= 1_000 => (1_000, "Kbps"),
            _ => (1, "bps"),
        };
        crate::decimal::write_decimal(f, self.0, unit)?;
        f.write_str(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn common_rates_are_exact() {
        assert_eq!(Bytes::new(1500).time_at(Rate::from_gbps(10)), Span::from_ns(1200));
        assert_eq!(Bytes::new(990).time_at(Rate::from_gbps(1)), Span::from_ps(7_920_000));
        assert_eq!(Bytes::new(1).time_at(Rate::from_gbps(400)), Span::from_ps(20));
        assert_eq!(Bytes::new(1).time_at(Rate::from_gbps(3)), Span::from_ps(2667));
    }

    proptest! {
        /// The fixed-point span is never shorter than the exact one, and at most 1 ps longer.
        #[test]
        fn span_rounds_up(bytes in 0u64..=65_536, rate in 1_000u64..=1_600_000_000_000) {
            let exact = (bytes as u128 * 8_000_000_000_000).div_ceil(rate as u128) as u64;
            let span = Bytes::new(bytes).time_at(Rate::from_bps(rate)).as_ps();
            prop_assert!(span == exact || span == exact + 1, "{span} for an exact {exact}");
        }

        #[test]
        fn span_is_monotone(a in 0u64..65_536, b in 0u64..65_536, rate in 1_000u64..=1_600_000_000_000) {
            let time = Rate::from_bps(rate).byte_time();
            prop_assert_eq!(a.cmp(&b).is_le(), time.span(a) <= time.span(b) || a > b && time.span(a) == time.span(b));
        }
    }
}
