//! [`Time`] is a point in time and [`Span`] a length of time, both in integer picoseconds.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Div, Mul, Sub, SubAssign};

/// A point in simulated time, in picoseconds since the start of the run; it covers 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Time(u64);

/// A length of time, in picoseconds; it covers 213 days.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug)]
pub struct Span(u64);

const PS_PER_NS: u64 = 1_000;
const PS_PER_US: u64 = 1_000_000;
const PS_PER_MS: u64 = 1_000_000_000;
const PS_PER_S: u64 = 1_000_000_000_000;

impl Time {
    /// The point in time at which the run starts.
    pub const ZERO: Time = Time(0);
    /// The latest point in time, which represents 'never'.
    pub const MAX: Time = Time(u64::MAX);

    /// Creates the point `ps` picoseconds after the start.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }

    /// Returns the picoseconds since the start.
    pub const fn as_ps(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the start, for reports only.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }

    /// Returns the time since `earlier`, or zero where `earlier` is later than `self`.
    pub const fn saturating_since(self, earlier: Time) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }

    /// Returns `self + span`, or [`Time::MAX`] where that would overflow.
    pub const fn saturating_add(self, span: Span) -> Time {
        Time(self.0.saturating_add(span.0))
    }
}

impl Span {
    /// The length of time zero.
    pub const ZERO: Span = Span(0);
    /// The longest length of time.
    pub const MAX: Span = Span(u64::MAX);

    /// Creates a span of `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Span {
        Span(ps)
    }
    /// Creates a span of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns * PS_PER_NS)
    }
    /// Creates a span of `us` microseconds.
    pub const fn from_us(us: u64) -> Span {
        Span(us * PS_PER_US)
    }
    /// Creates a span of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Span {
        Span(ms * PS_PER_MS)
    }
    /// Creates a span of `s` seconds.
    pub const fn from_secs(s: u64) -> Span {
        Span(s * PS_PER_S)
    }
    /// Creates the span nearest to `s` seconds, in whole picoseconds; negative numbers and NaN become zero. It is meant
    /// for lengths of time that are drawn at random.
    pub fn from_secs_f64(s: f64) -> Span {
        Span((s * PS_PER_S as f64).round() as u64)
    }

    /// Returns the number of whole picoseconds.
    pub const fn as_ps(self) -> u64 {
        self.0
    }
    /// Returns nanoseconds, for reports and for the few formulas that are stated in them.
    pub fn as_ns_f64(self) -> f64 {
        self.0 as f64 / PS_PER_NS as f64
    }
    /// Returns microseconds, for reports.
    pub fn as_us_f64(self) -> f64 {
        self.0 as f64 / PS_PER_US as f64
    }
    /// Returns milliseconds, for reports.
    pub fn as_ms_f64(self) -> f64 {
        self.0 as f64 / PS_PER_MS as f64
    }
    /// Returns seconds, for reports.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / PS_PER_S as f64
    }
    /// Returns `self - other`, or zero where `other` is longer.
    pub const fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
    /// Returns `self * factor`, or [`Span::MAX`] where that would overflow.
    pub const fn saturating_mul(self, factor: u64) -> Span {
        Span(self.0.saturating_mul(factor))
    }
    /// Returns whether the span is zero.
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
}

impl Add<Span> for Time {
    type Output = Time;
    fn add(self, span: Span) -> Time {
        Time(self.0 + span.0)
    }
}
impl AddAssign<Span> for Time {
    fn add_assign(&mut self, span: Span) {
        self.0 += span.0;
    }
}
impl Sub<Span> for Time {
    type Output = Time;
    fn sub(self, span: Span) -> Time {
        Time(self.0 - span.0)
    }
}
/// Returns the time from `earlier` to `self`; `earlier` must not be after `self`.
impl Sub<Time> for Time {
    type Output = Span;
    fn sub(self, earlier: Time) -> Span {
        Span(self.0 - earlier.0)
    }
}
impl Add for Span {
    type Output = Span;
    fn add(self, other: Span) -> Span {
        Span(self.0 + other.0)
    }
}
impl AddAssign for Span {
    fn add_assign(&mut self, other: Span) {
        self.0 += other.0;
    }
}
impl Sub for Span {
    type Output = Span;
    fn sub(self, other: Span) -> Span {
        Span(self.0 - other.0)
    }
}
impl SubAssign for Span {
    fn sub_assign(&mut self, other: Span) {
        self.0 -= other.0;
    }
}
impl Mul<u64> for Span {
    type Output = Span;
    fn mul(self, factor: u64) -> Span {
        Span(self.0 * factor)
    }
}
impl Div<u64> for Span {
    type Output = Span;
    fn div(self, divisor: u64) -> Span {
        Span(self.0 / divisor)
    }
}
impl Sum for Span {
    fn sum<I: Iterator<Item = Span>>(spans: I) -> Span {
        spans.fold(Span::ZERO, |total, span| total + span)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Span(self.0).fmt(f)
    }
}

/// Prints the exact span in the largest unit that it reaches: `1.5us`, `250ns`, `3s`.
impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0 => return f.write_str("0s"),
            ps if ps >= PS_PER_S => (PS_PER_S, "s"),
            ps if ps >= PS_PER_MS => (PS_PER_MS, "ms"),
            ps if ps >= PS_PER_US => (PS_PER_US, "us"),
            ps if ps >= PS_PER_NS => (PS_PER_NS, "ns"),
            _ => (1, "ps"),
        };
        crate::decimal::write_decimal(f, self.0, unit)?;
        f.write_str(name)
    }
}
