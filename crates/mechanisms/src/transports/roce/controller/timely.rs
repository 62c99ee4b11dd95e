//! TIMELY (Mittal et al., SIGCOMM 2015): the rate follows the gradient of the round-trip time.
//!
//! ```text
//! once a window, on an ACK with round-trip time rtt:
//!   gradient = avg / min_rtt,    avg = (1 - gain) avg + gain (rtt - rtt before)
//!
//!   rtt < low          rate += increase, or hyper_increase after hyper_after increases in a row
//!   rtt > high         rate *= 1 - beta (1 - high / rtt)
//!   gradient <= 0      as below low
//!   otherwise          rate *= 1 - beta gradient
//!   form "patched", from low to high:  w = 2 gradient + 1/2, within 0 .. 1
//!                      rate = (1 - w) increase + rate (1 - patched_beta w (rtt - low) / low)
//! ```
//!
//! With the gradient alone, the queue is not in the equation of a fixed point: any shares of a link are one. The patch
//! of "ECN or Delay" (Zhu et al., CoNEXT 2016) adds the distance from `low`, and has one fixed point: equal rates, and
//! `rtt = low (1 + N increase / (patched_beta C))` for N flows on a link of rate C.
//!
//! # Beside the paper and the released codes
//! * The rules are those of HPCC's released simulator: one update a round trip, by per-packet acknowledgements, and
//!   the first one only keeps its round-trip time. Google's snippet also scales steps by the time since the last
//!   update, and never cuts by more than half at a time.
//! * The round-trip time has the serialisation of the packet, as in HPCC's; Google's snippet subtracts it.
//! * `gain` is the weight of the new sample. Google's snippet has 0.02, the simulators 0.875, which follows each
//!   sample.
//! * A lost packet does not change the rate: TIMELY is for lossless networks.

use plimsoll_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::round_trip::RoundTrip;
use crate::InvalidParam;
use crate::transports::describe::Description;
use crate::transports::roce::FAMILY;
use crate::transports::roce::rate_control::{RateController, RoceAck};

/// The description of TIMELY.
pub const TIMELY: Description = Description {
    name: "timely",
    family: &FAMILY,
    kernel_name: None,
    delays_acks: false,
    needs_marks: false,
    needs_stamps: false,
};

/// The rule of TIMELY between its two thresholds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TimelyForm {
    /// The paper's: the rate falls by the gradient, and rises where that is not positive.
    Gradient,
    /// That of "ECN or Delay" (CoNEXT 2016): the distance from `low` counts as well.
    Patched,
}

/// TIMELY's thresholds and steps. The defaults are those of HPCC's released code, for any rate of the NIC.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TimelyParams {
    /// The rule between `low` and `high`: `gradient`, or `patched`. Default `gradient`.
    pub form: TimelyForm,
    /// The weight of the new difference of round-trip times in their average: more than 0, at most 1. Older notes call
    /// the weight of the old average alpha, which is 1 less this. Google's code has 0.02. Default 0.875.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub gain: f64,
    /// The factor of decreases above `high` and by the gradient: more than 0, at most 1. Default 0.8.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub beta: f64,
    /// Form `patched`: the factor of decreases by the distance from `low`: more than 0, at most 1. Default 0.008.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub patched_beta: f64,
    /// The round-trip time below which the rate always rises: more than 0. It has to exceed that of an idle path.
    /// Default 50 us.
    pub low: Span,
    /// The round-trip time above which the rate always falls: at least `low`. Default 500 us.
    pub high: Span,
    /// The time by which the difference of two round-trip times is divided for the gradient; a constant, not a measured
    /// minimum: more than 0. Where it is far below the round-trip times, the rate overreacts. Default 20 us.
    pub min_rtt: Span,
    /// The step of increase: more than 0. Default absent: 10 Mb/s for each 10 Gb/s of the NIC.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub increase: Option<Rate>,
    /// The step after `hyper_after` increases in a row: more than 0. Default absent: five times `increase`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hyper_increase: Option<Rate>,
    /// The increases in a row after which steps are `hyper_increase`: any number. Default 5.
    pub hyper_after: u32,
    /// The lowest rate: more than 0. Default 100 Mb/s.
    pub min_rate: Rate,
}

impl Default for TimelyParams {
    fn default() -> TimelyParams {
        TimelyParams {
            form: TimelyForm::Gradient,
            gain: 0.875,
            beta: 0.8,
            patched_beta: 0.008,
            low: Span::from_us(50),
            high: Span::from_us(500),
            min_rtt: Span::from_us(20),
            increase: None,
            hyper_increase: None,
            hyper_after: 5,
            min_rate: Rate::from_mbps(100),
        }
    }
}

impl TimelyParams {
    /// Checks the ranges given at the keys.
    ///
    /// # Errors
    /// Names the first key, within `[transport]`, whose value is outside its range.
    pub fn validate(&self) -> Result<(), InvalidParam> {
        use InvalidParam as Invalid;
        for (key, share) in [
            ("roce.timely.gain", self.gain),
            ("roce.timely.beta", self.beta),
            ("roce.timely.patched_beta", self.patched_beta),
        ] {
            Invalid::unless(share > 0.0 && share <= 1.0, key, share, "more than 0 and at most 1")?;
        }
        Invalid::unless(!self.low.is_zero(), "roce.timely.low", self.low, "more than 0")?;
        Invalid::unless(self.high >= self.low, "roce.timely.high", self.high, "at least `low`")?;
        Invalid::unless(!self.min_rtt.is_zero(), "roce.timely.min_rtt", self.min_rtt, "more than 0")?;
        for (key, rate) in [
            ("roce.timely.increase", self.increase),
            ("roce.timely.hyper_increase", self.hyper_increase),
            ("roce.timely.min_rate", Some(self.min_rate)),
        ] {
            let rate = rate.unwrap_or(self.min_rate);
            Invalid::unless(rate > Rate::ZERO, key, rate, "more than 0")?;
        }
        Ok(())
    }
}

/// The state of one flow.
#[derive(Debug)]
pub struct Timely {
    params: TimelyParams,
    line: Rate,
    increase: Rate,
    hyper_increase: Rate,
    rate: Rate,
    /// The round-trip time at the last update; `None` before the first acknowledgement.
    last_rtt: Option<Span>,
    /// The average difference of two round-trip times, in ps.
    difference: f64,
    /// Increases in a row, which make steps larger.
    stage: u32,
    round_trip: RoundTrip,
}

impl Timely {
    /// Makes the controller of a flow at a NIC of rate `line`, at which it starts.
    pub fn new(params: TimelyParams, line: Rate) -> Timely {
        let increase = params.increase.unwrap_or(line.scaled(1e-3));
        let hyper_increase = params.hyper_increase.unwrap_or(increase.scaled(5.0));
        Timely {
            params,
            line,
            increase,
            hyper_increase,
            rate: line,
            last_rtt: None,
            difference: 0.0,
            stage: 0,
            round_trip: RoundTrip::default(),
        }
    }

    /// Returns the rate after one more increase.
    fn increased(&mut self) -> f64 {
        let step = if self.stage < self.params.hyper_after { self.increase } else { self.hyper_increase };
        self.stage = self.stage.saturating_add(1);
        bps(self.rate) + bps(step)
    }

    /// Returns the rate after a decrease by `share` of it.
    fn decreased(&mut self, share: f64) -> f64 {
        self.stage = 0;
        bps(self.rate) * (1.0 - share).max(0.0)
    }

    /// Returns the rate of the form `patched` between the thresholds.
    fn patched(&mut self, gradient: f64, rtt: Span) -> f64 {
        let (weight, low) = ((2.0 * gradient + 0.5).clamp(0.0, 1.0), ps(self.params.low));
        let above = (ps(rtt) - low) / low;
        (1.0 - weight) * bps(self.increase) + self.decreased(self.params.patched_beta * weight * above)
    }
}

impl RateController for Timely {
    fn on_ack(&mut self, ack: &RoceAck) {
        let Some(rtt) = ack.rtt else { return };
        if !self.round_trip.has_passed(ack) {
            return;
        }
        self.round_trip.begin(ack.now);
        let Some(last) = self.last_rtt.replace(rtt) else { return };
        let TimelyParams { form, gain, beta, low, high, .. } = self.params;
        self.difference += gain * (ps(rtt) - ps(last) - self.difference);
        let gradient = self.difference / ps(self.params.min_rtt);
        let rate = match form {
            _ if rtt < low => self.increased(),
            _ if rtt > high => self.decreased(beta * (1.0 - ps(high) / ps(rtt))),
            TimelyForm::Patched => self.patched(gradient, rtt),
            TimelyForm::Gradient if gradient <= 0.0 => self.increased(),
            TimelyForm::Gradient => self.decreased(beta * gradient),
        };
        self.rate = Rate::from_bps(rate.round() as u64).max(self.params.min_rate).min(self.line);
    }

    fn rate(&self) -> Rate {
        self.rate
    }
}

fn ps(span: Span) -> f64 {
    span.as_ps() as f64
}

fn bps(rate: Rate) -> f64 {
    rate.as_bps() as f64
}

#[cfg(test)]
mod tests {
    use plimsoll_units::Time;

    use super::*;

    const LINE: Rate = Rate::from_gbps(10);

    /// A flow at 5 Gb/s whose last round-trip time was `last` us, and which updates with the next acknowledgement.
    fn flow(params: TimelyParams, last: u64) -> Timely {
        let mut flow = Timely::new(params, LINE);
        flow.rate = Rate::from_gbps(5);
        hear(&mut flow, 1, last);
        flow
    }

    /// An acknowledgement in second `second`, with a round-trip time of `us`.
    fn hear(flow: &mut Timely, second: u64, us: u64) -> f64 {
        hear_at(flow, Time::ZERO + Span::from_secs(second), Some(Span::from_us(us)))
    }

    fn hear_at(flow: &mut Timely, now: Time, rtt: Option<Span>) -> f64 {
        flow.on_ack(&RoceAck { rtt, ..RoceAck::at(now) });
        flow.rate.as_mbps_f64()
    }

    #[track_caller]
    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-5, "{value}, not {expected}");
    }

    #[test]
    fn the_first_acknowledgement_only_keeps_its_round_trip_time_and_a_window_updates_once() {
        let mut flow = Timely::new(TimelyParams::default(), LINE);
        near(hear(&mut flow, 1, 1_000), 10_000.0);
        near(hear(&mut flow, 2, 1_000), 6_000.0);
        // One of a packet that was sent before the update, and one without a sample.
        let now = Time::ZERO + Span::from_secs(2);
        hear_at(&mut flow, now + Span::from_us(899), Some(Span::from_us(900)));
        hear_at(&mut flow, now + Span::from_us(2_000), None);
        near(flow.rate.as_mbps_f64(), 6_000.0);
        // One of a packet that was sent at the update.
        near(hear_at(&mut flow, now + Span::from_us(1_000), Some(Span::from_us(1_000))), 3_600.0);
    }

    #[test]
    fn below_low_the_rate_rises_and_after_five_times_by_five_steps() {
        // The gradient is positive: it does not count.
        let mut flow = flow(TimelyParams::default(), 10);
        let seen: Vec<f64> = (2..9).map(|window| hear(&mut flow, window, 10 + window)).collect();
        assert_eq!(seen, [5_010.0, 5_020.0, 5_030.0, 5_040.0, 5_050.0, 5_100.0, 5_150.0]);
    }

    #[test]
    fn above_high_the_rate_falls_by_the_distance() {
        let mut flow = flow(TimelyParams::default(), 1_000);
        flow.stage = 9;
        // The gradient is negative: it does not count. 0.8 (1 - 500 / 800) = 0.3.
        near(hear(&mut flow, 2, 800), 3_500.0);
        assert_eq!(flow.stage, 0);
    }

    #[test]
    fn between_them_the_gradient_decides() {
        // 0.875 (104 - 100) / 20 = 0.175: the rate falls by 0.8 x 0.175.
        let mut one = flow(TimelyParams::default(), 100);
        near(hear(&mut one, 2, 104), 5_000.0 * (1.0 - 0.14));
        // The average is 3.5 us; then 0.125 x 3.5 - 0.875 x 10 < 0.
        near(hear(&mut one, 3, 94), 4_300.0 + 10.0);
        assert_eq!(one.stage, 1);
        // A gradient above 1 / beta leaves the lowest rate.
        let mut steep = flow(TimelyParams::default(), 100);
        near(hear(&mut steep, 2, 200), 100.0);
        let mut flat = flow(TimelyParams::default(), 100);
        near(hear(&mut flat, 2, 100), 5_010.0);
    }

    #[test]
    fn the_patched_form_weighs_gradient_and_distance() {
        let params = TimelyParams { form: TimelyForm::Patched, ..TimelyParams::default() };
        // No gradient: half of the step, half of 0.008 (100 - 50) / 50.
        let mut flat = flow(params.clone(), 100);
        near(hear(&mut flat, 2, 100), 5.0 + 5_000.0 * (1.0 - 0.004));
        // 0.875 x 8 / 20 = 0.35: all of the decrease, and no increase. (108 - 50) / 50 = 1.16.
        let mut rising = flow(params.clone(), 100);
        near(hear(&mut rising, 2, 108), 5_000.0 * (1.0 - 0.008 * 1.16));
        let mut falling = flow(params.clone(), 108);
        near(hear(&mut falling, 2, 100), 5_010.0);
        // Outside of the thresholds it is as before.
        near(hear(&mut falling, 3, 1_000), 5_010.0 * 0.6);
        near(hear(&mut falling, 4, 20), 3_006.0 + 10.0);
    }

    #[test]
    fn the_rate_stays_within_its_limits() {
        let mut flow = Timely::new(TimelyParams::default(), LINE);
        hear(&mut flow, 1, 20);
        near(hear(&mut flow, 2, 20), 10_000.0);
        (3..40).for_each(|window| _ = hear(&mut flow, window, 5_000));
        near(flow.rate.as_mbps_f64(), 100.0);
    }

    #[test]
    fn steps_scale_with_the_nic_unless_they_are_given() {
        let fast = Timely::new(TimelyParams::default(), Rate::from_gbps(100));
        let steps = [fast.increase, fast.hyper_increase].map(Rate::as_mbps_f64);
        assert_eq!(steps, [100.0, 500.0]);
        let params = TimelyParams { increase: Some(Rate::from_mbps(7)), ..TimelyParams::default() };
        let given = Timely::new(params, Rate::from_gbps(100));
        assert_eq!([given.increase, given.hyper_increase].map(Rate::as_mbps_f64), [7.0, 35.0]);
    }
}
