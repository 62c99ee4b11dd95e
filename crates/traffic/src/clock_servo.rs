//! [`ClockServo`]: a clock that follows another by the offsets that two-way timestamps give.
//!
//! ```text
//! forward, backward ──> path delay, filtered ──> offset = forward - delay, mean of two ──> PI ──> the clock's rate
//! ```
//!
//! The order is the same as in ptpd's and in linuxptp's servo. Times are integers in picoseconds and rates are
//! picoseconds a second, so a run gives the same offsets on every machine.

use plimsoll_units::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::WorkloadCheck;

/// The servo that steers a client's clock, and the error of the clock without it. The defaults are ptpd's (`servo:kp`,
/// `servo:ki`, `servo:delayfilter_stiffness`), which linuxptp has for timestamps of software as well.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ClockServoParams {
    /// The share of an offset that one interval takes back.
    pub proportional: f64,
    /// The share of an offset by which the correction of each later interval grows.
    pub integral: f64,
    /// The number of exchanges over which the path's delay is averaged, exponentially.
    pub delay_exchanges: u32,
    /// How fast the free clock runs ahead, in parts per million; negative if it is slow.
    pub drift: f64,
    /// The largest correction of the rate, in parts per million; Linux allows 500 (`adjtimex`).
    pub most: f64,
}

impl Default for ClockServoParams {
    fn default() -> ClockServoParams {
        ClockServoParams { proportional: 0.1, integral: 0.001, delay_exchanges: 64, drift: 0.0, most: 500.0 }
    }
}

impl ClockServoParams {
    /// Reports gains that cannot settle and rates that no clock has.
    pub(crate) fn check(&self, check: &mut WorkloadCheck<'_>) {
        for (key, gain) in [("servo.proportional", self.proportional), ("servo.integral", self.integral)] {
            if !(0.0..=1.0).contains(&gain) {
                check.error(key, format!("{gain} of an offset"), "0 to 1");
            }
        }
        check.one_to_many("servo.delay_exchanges", self.delay_exchanges.into(), "exchanges");
        if !(-FASTEST..=FASTEST).contains(&self.drift) {
            check.error(
                "servo.drift",
                format!("{} parts per million", self.drift),
                format!("-{FASTEST} to {FASTEST}"),
            );
        }
        if !(0.0..=FASTEST).contains(&self.most) {
            check.error("servo.most", format!("{} parts per million", self.most), format!("0 to {FASTEST}"));
        }
    }
}

/// A rate in parts per million that no oscillator and no correction reaches.
const FASTEST: f64 = 100_000.0;

const MILLION: f64 = 1e6;
const PS_PER_SECOND: i128 = 1_000_000_000_000;

/// A client's clock: its lead over the server's, and its correction.
#[derive(Debug)]
pub(crate) struct ClockServo {
    /// The gains are in millionths of an offset.
    proportional: i128,
    integral: i128,
    delay_exchanges: u64,
    /// Rates, in picoseconds a second.
    drift: i128,
    most: i128,
    correction: i128,
    /// The integral part of the correction.
    held: i128,
    /// The clock's lead at `read`, in picoseconds.
    ahead: i128,
    read: Time,
    /// The filtered delay of one way, in picoseconds; none before the first exchange.
    delay: Option<i128>,
    /// The exchanges that it averages so far.
    averaged: u64,
    /// The offset that the last exchange gave.
    last: Option<i128>,
}

impl ClockServo {
    pub(crate) fn new(params: ClockServoParams) -> ClockServo {
        let scaled = |value: f64| (value * MILLION).round() as i128;
        ClockServo {
            proportional: scaled(params.proportional),
            integral: scaled(params.integral),
            delay_exchanges: u64::from(params.delay_exchanges),
            drift: scaled(params.drift),
            most: scaled(params.most),
            correction: 0,
            held: 0,
            ahead: 0,
            read: Time::ZERO,
            delay: None,
            averaged: 0,
            last: None,
        }
    }

    /// Returns by how many picoseconds the clock is ahead of the server's.
    pub(crate) fn ahead(&mut self, now: Time) -> i128 {
        let rate = self.drift - self.correction;
        self.ahead += rate * i128::from((now - self.read).as_ps()) / PS_PER_SECOND;
        self.read = now;
        self.ahead
    }

    /// Steers by an exchange: `forward` is the time of the way to the client by the two clocks, `one_way` half of both
    /// ways.
    pub(crate) fn steer(&mut self, now: Time, forward: i128, one_way: i128, interval: Span) {
        self.ahead(now);
        self.averaged = (self.averaged + 1).min(self.delay_exchanges);
        let before = self.delay.unwrap_or(one_way);
        let delay = before + (one_way - before) / i128::from(self.averaged.max(1));
        self.delay = Some(delay);
        let offset = forward - delay;
        let mean = (offset + self.last.unwrap_or(offset)) / 2;
        self.last = Some(offset);
        // An offset over an interval is a rate; gains are in millionths.
        let of = |gain: i128| {
            mean * gain * (PS_PER_SECOND / MILLION as i128) / i128::from(interval.as_ps().max(1))
        };
        self.held = (self.held + of(self.integral)).clamp(-self.most, self.most);
        self.correction = (of(self.proportional) + self.held).clamp(-self.most, self.most);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL: Span = Span::from_secs(1);
    const DELAY: i128 = 5_000_000;

    /// Runs `exchanges` in which the way to the client takes `extra` more than the way back, and returns the largest
    /// of the last ten errors, in picoseconds.
    fn error(servo: &mut ClockServo, from: u64, exchanges: u64, extra: i128) -> i128 {
        let mut errors = Vec::new();
        for exchange in from..from + exchanges {
            let now = Time::ZERO + INTERVAL * exchange;
            let ahead = servo.ahead(now);
            errors.push(ahead.abs());
            servo.steer(now, DELAY + extra + ahead, DELAY + extra / 2, INTERVAL);
        }
        errors.into_iter().rev().take(10).max().expect("there are some")
    }

    #[test]
    fn a_drift_is_found_and_held() {
        let mut servo =
            ClockServo::new(ClockServoParams { drift: 20.0, integral: 0.003, ..ClockServoParams::default() });
        assert!(error(&mut servo, 1, 60, 0) > 10_000_000, "the integral takes its time");
        let settled = error(&mut servo, 61, 1000, 0);
        assert!(settled < 10_000, "{settled} ps");
        assert!((servo.correction - servo.drift).abs() < 1_000, "{} ps/s", servo.correction);
    }

    #[test]
    fn without_a_servo_s_gains_the_clock_runs_free() {
        let free =
            ClockServoParams { proportional: 0.0, integral: 0.0, drift: -2.0, ..ClockServoParams::default() };
        let mut servo = ClockServo::new(free);
        error(&mut servo, 1, 10, 0);
        assert_eq!(servo.ahead(Time::ZERO + INTERVAL * 10), -20_000_000);
    }

    #[test]
    fn a_lasting_queue_on_one_way_moves_the_clock_by_half_of_it() {
        let mut servo = ClockServo::new(ClockServoParams::default());
        error(&mut servo, 1, 100, 0);
        let queue = 300_000_000;
        let moved = error(&mut servo, 101, 2000, queue);
        assert!((moved - queue / 2).abs() < queue / 100, "{moved} ps");
    }

    #[test]
    fn a_correction_is_bounded() {
        let mut servo = ClockServo::new(ClockServoParams { most: 1.0, ..ClockServoParams::default() });
        servo.steer(Time::ZERO + INTERVAL, DELAY + 1_000_000_000_000, DELAY, INTERVAL);
        assert_eq!(servo.correction, 1_000_000);
    }
}
