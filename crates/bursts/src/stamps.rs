//! [`Stamps`]: the precision of a capture's timestamps, measured in the capture itself.
//!
//! Two properties bound their precision. Their *granularity* is the largest step that divides all differences: a file
//! may declare nanoseconds and hold microseconds. And frames of one source and destination cannot *overlap* on a wire:
//! where many do, the stamps were taken later than the frames passed, or before they were segmented, or the rate is
//! wrong. The *floor* is the larger of the two.

use plimsoll_units::{Span, Time};

/// Measurements of timestamps.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stamps {
    declared: Span,
    /// The last timestamp of each interface.
    last: Vec<Option<Time>>,
    /// The greatest common divisor of all differences that are not zero.
    divisor: u64,
    least: Option<Span>,
    /// Some of the differences, each once: too few of them show a regular sender, not a coarse clock.
    kinds: Vec<u64>,
    pub(crate) zero: u64,
    pub(crate) backwards: u64,
}

/// This many different differences distinguish the steps of a clock from a sender's.
const KINDS: usize = 16;

impl Stamps {
    pub(crate) fn declare(&mut self, tick: Span) {
        self.declared = self.declared.max(tick);
    }

    #[inline]
    pub(crate) fn on_stamp(&mut self, interface: u32, time: Time) {
        let index = interface as usize;
        if index >= self.last.len() {
            self.last.resize(index + 1, None);
        }
        let Some(last) = self.last[index].replace(time) else { return };
        if time < last {
            self.backwards += 1;
        }
        let difference = if time < last { last - time } else { time - last };
        let ps = difference.as_ps();
        if ps == 0 {
            self.zero += 1;
            return;
        }
        if self.least.is_none_or(|least| difference < least) {
            self.least = Some(difference);
        }
        // A smaller divisor than the declared step would change nothing, and a division is slow.
        let is_open = self.divisor == 0 || self.divisor > self.declared.as_ps();
        if is_open && (self.divisor == 0 || !ps.is_multiple_of(self.divisor)) {
            self.divisor = divisor(self.divisor, ps);
        }
        if self.kinds.len() < KINDS && !self.kinds.contains(&ps) {
            self.kinds.push(ps);
        }
    }

    /// Returns the smallest difference that is not zero.
    pub(crate) fn least(&self) -> Option<Span> {
        self.least
    }

    /// Returns the resolution that the captures declare.
    pub(crate) fn declared(&self) -> Span {
        self.declared
    }

    /// Returns the step of the timestamps.
    pub(crate) fn granularity(&self) -> Span {
        if self.kinds.len() < KINDS { self.declared } else { self.declared.max(Span::from_ps(self.divisor)) }
    }
}

/// Returns the greatest common divisor, by Euclid's algorithm.
fn divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
