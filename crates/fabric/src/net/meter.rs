//! [`QueueMeter`]: a queue's length as a function of time, exactly.
//!
//! The length is piecewise constant, so its time average over an interval and the time spent at
//! each length are sums, not samples. Every change is reported to the meter in order of time; it does
//! not matter whether that is when the change happens or later.

use plimsoll_units::{Span, Time};

/// Watches the bytes that wait in one queue.
#[derive(Clone, Debug)]
pub struct QueueMeter {
    every: Span,
    bin_bytes: u64,
    bytes: u64,
    changed: Time,
    interval_start: Time,
    interval_area: u128,
    interval_max: u64,
    reading: MeterReading,
}

/// The reading of a [`QueueMeter`].
#[derive(Clone, PartialEq, Debug, Default)]
pub struct MeterReading {
    /// The start of the first interval.
    pub from: Time,
    /// The time average of the waiting bytes in each whole interval.
    pub mean_bytes: Vec<f64>,
    /// The most bytes that waited in each interval.
    pub max_bytes: Vec<u64>,
    /// Picoseconds spent at each number of waiting bytes: bin 0 is the empty queue, bin `i` holds more
    /// than `i - 1` and at most `i` widths of a bin, and the last bin is open.
    pub time_at: Vec<u64>,
    /// The number of packets that found no room.
    pub drops: u64,
    /// The number of packets marked.
    pub marks: u64,
    /// The number of packets admitted.
    pub packets: u64,
    /// The number of bytes admitted.
    pub bytes: u64,
}

/// Bins of [`MeterReading::time_at`]; longer queues count in the last.
const BINS: usize = 4096;

impl QueueMeter {
    /// Watches from `from` on, in intervals of `every`, with a histogram of `bin_bytes` wide bins.
    pub fn new(from: Time, every: Span, bin_bytes: u64) -> QueueMeter {
        QueueMeter {
            every,
            bin_bytes,
            bytes: 0,
            changed: from,
            interval_start: from,
            interval_area: 0,
            interval_max: 0,
            reading: MeterReading { from, ..MeterReading::default() },
        }
    }

    /// From `now` on `bytes` bytes wait.
    pub fn on_change(&mut self, now: Time, bytes: u64) {
        self.advance(now);
        self.bytes = bytes;
        // Before the watch begins only the length at its beginning matters.
        let watching = now > self.interval_start;
        self.interval_max = if watching { self.interval_max.max(bytes) } else { bytes };
    }

    /// A packet of `size` bytes was admitted, and perhaps marked.
    pub fn on_admitted(&mut self, now: Time, size: u64, marked: bool) {
        if now >= self.reading.from {
            self.reading.packets += 1;
            self.reading.bytes += size;
            self.reading.marks += u64::from(marked);
        }
    }

    /// A packet that was admitted at `since` was marked later, as it left.
    pub fn on_marked(&mut self, since: Time) {
        self.reading.marks += u64::from(since >= self.reading.from);
    }

    /// A packet that was admitted, and marked, at `since` has not left by the end: its mark does not count.
    pub fn on_unmarked(&mut self, since: Time) {
        self.reading.marks -= u64::from(since >= self.reading.from);
    }

    /// A packet found no room.
    pub fn on_dropped(&mut self, now: Time) {
        self.reading.drops += u64::from(now >= self.reading.from);
    }

    /// Returns the reading up to `end`, whole intervals only.
    pub fn read(mut self, end: Time) -> MeterReading {
        self.advance(end);
        self.reading
    }

    fn advance(&mut self, now: Time) {
        while now >= self.interval_start + self.every {
            let end = self.interval_start + self.every;
            self.accumulate(end);
            self.reading.mean_bytes.push(self.interval_area as f64 / self.every.as_ps() as f64);
            self.reading.max_bytes.push(self.interval_max);
            self.interval_start = end;
            self.interval_area = 0;
            self.interval_max = self.bytes;
        }
        self.accumulate(now);
    }

    fn accumulate(&mut self, now: Time) {
        let span = now.saturating_since(self.changed);
        if span.is_zero() {
            return;
        }
        self.interval_area += u128::from(self.bytes) * u128::from(span.as_ps());
        let bin = (self.bytes.div_ceil(self.bin_bytes) as usize).min(BINS - 1);
        if bin >= self.reading.time_at.len() {
            self.reading.time_at.resize(bin + 1, 0);
        }
        self.reading.time_at[bin] += span.as_ps();
        self.changed = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_time_averages_over_whole_intervals() {
        let at = |us| Time::ZERO + Span::from_us(us);
        let mut meter = QueueMeter::new(at(10), Span::from_us(10), 1000);
        meter.on_change(at(5), 4000); // before the watch begins, still there when it does
        meter.on_change(at(15), 0);
        meter.on_change(at(28), 1000);
        meter.on_change(at(29), 2500);
        let reading = meter.read(at(45));
        assert_eq!(reading.mean_bytes, [2000.0, (1000.0 + 2500.0) / 10.0, 2500.0]);
        assert_eq!(reading.max_bytes, [4000, 2500, 2500]);
        let us = Span::from_us(1).as_ps();
        assert_eq!(reading.time_at, [13 * us, us, 0, 16 * us, 5 * us]);
    }
}
