//! DCTCP over RoCE, as in the runs of HPCC's paper: the rate is cut by the share of marked bytes.
//!
//! ```text
//! once a window   alpha <- (1 - g) alpha + g (marked bytes / acknowledged bytes)
//! marked ACK      R *= 1 - alpha / 2      unless a cut was made since the acknowledged packet was sent
//! once a window   R += increase           unless so
//! ```
//!
//! The estimator is that of `transport.kind = "dctcp"`, and so are its keys: `transport.dctcp`. A flow starts at line
//! rate; `roce.window = "bdp"` gives it the window of HPCC's runs. Acknowledgements carry the mark of the packet that
//! caused them, and there are no CNPs. With `roce.ack_every` above 1, a mark counts for all packets that its
//! acknowledgement covers.
//!
//! # Beside the released code
//! * HPCC's released simulator counts packets, and its first window only begins the count; RFC 8257's bytes are counted
//!   here.
//! * A loss does not change the rate, which RFC 8257 demands of TCP: go-back-N on lossless networks is what was run.

use plimsoll_units::Rate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::round_trip::RoundTrip;
use crate::InvalidParam;
use crate::tcp::controller::{DctcpEstimator, DctcpParams};
use crate::transports::describe::Description;
use crate::transports::roce::FAMILY;
use crate::transports::roce::rate_control::{RateController, RoceAck};

/// The description of DCTCP over RoCE.
pub const ROCE_DCTCP: Description = Description {
    name: "roce-dctcp",
    family: &FAMILY,
    kernel_name: None,
    delays_acks: false,
    needs_marks: true,
    needs_stamps: false,
};

/// The steps of DCTCP over RoCE. Its gain and its first alpha are those of `transport.dctcp`.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoceDctcpParams {
    /// The additive increase each round trip: more than 0. Default absent: the payload of one packet in a base
    /// round-trip time, which is the 615 Mb/s of HPCC's runs (1,000 B in 13 us).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub increase: Option<Rate>,
    /// The lowest rate: more than 0. Default absent: 1 % of the NIC's rate, as 1 Gb/s in HPCC's runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<Rate>,
}

impl RoceDctcpParams {
    /// Checks the ranges given at the keys.
    ///
    /// # Errors
    /// Names the first key, within `[transport]`, whose value is outside its range.
    pub fn validate(&self) -> Result<(), InvalidParam> {
        for (key, rate) in [("roce.dctcp.increase", self.increase), ("roce.dctcp.min_rate", self.min_rate)] {
            let Some(rate) = rate else { continue };
            InvalidParam::unless(rate > Rate::ZERO, key, rate, "more than 0")?;
        }
        Ok(())
    }
}

/// The state of one flow.
#[derive(Debug)]
pub struct RoceDctcp {
    line: Rate,
    increase: Rate,
    min_rate: Rate,
    /// DCTCP's gain g in units of 2^-32.
    gain: u64,
    estimator: DctcpEstimator,
    rate: Rate,
    /// The last window, which ends with a step of increase if it had no cut.
    window: RoundTrip,
    cut: RoundTrip,
}

impl RoceDctcp {
    /// Makes the controller of a flow at a NIC of rate `line`, whose increase is `increase` unless the key says which.
    pub fn new(params: &RoceDctcpParams, estimator: &DctcpParams, line: Rate, increase: Rate) -> RoceDctcp {
        RoceDctcp {
            line,
            increase: params.increase.unwrap_or(increase),
            min_rate: params.min_rate.unwrap_or(line.scaled(0.01)),
            gain: estimator.scaled_gain(),
            estimator: DctcpEstimator::new(estimator.scaled_alpha()),
            rate: line,
            window: RoundTrip::default(),
            cut: RoundTrip::default(),
        }
    }
}

impl RateController for RoceDctcp {
    fn on_ack(&mut self, ack: &RoceAck) {
        self.estimator.on_ack(self.gain, &ack.of_tcp(Default::default(), true));
        let ends_window = self.window.has_passed(ack);
        if ends_window {
            self.window.begin(ack.now);
        }
        if !self.cut.has_passed(ack) {
            return;
        }
        if ack.is_marked {
            self.rate = self.rate.scaled(1.0 - self.estimator.alpha() / 2.0).max(self.min_rate);
            self.cut.begin(ack.now);
        } else if ends_window {
            self.rate = Rate::from_bps(self.rate.as_bps() + self.increase.as_bps()).min(self.line);
        }
    }

    fn rate(&self) -> Rate {
        self.rate
    }

    fn alpha(&self) -> f64 {
        self.estimator.alpha()
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_units::{Span, Time};

    use super::*;

    const LINE: Rate = Rate::from_gbps(100);

    fn flow() -> RoceDctcp {
        let own = RoceDctcpParams { increase: Some(Rate::from_mbps(615)), ..RoceDctcpParams::default() };
        RoceDctcp::new(&own, &DctcpParams::default(), LINE, Rate::from_mbps(1))
    }

    /// An acknowledgement of 1,000 B up to `ack` KB in microsecond `ack`, while `nxt` KB are sent: a packet of 1 KB was
    /// sent each microsecond.
    fn hear(flow: &mut RoceDctcp, (ack, nxt): (u64, u64), is_marked: bool) -> f64 {
        let rtt = Some(Span::from_us(nxt - ack));
        let now = Time::ZERO + Span::from_us(ack + 100);
        let (echo, sent) = (ack - 1, nxt);
        flow.on_ack(&RoceAck { echo, sent, acked: 1_000, is_marked, rtt, ..RoceAck::at(now) });
        flow.rate.as_mbps_f64()
    }

    #[track_caller]
    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-4, "{value}, not {expected}");
    }

    #[test]
    fn the_share_of_marks_cuts_the_rate_once_a_window() {
        let mut flow = flow();
        // The first acknowledgement is a window by itself: alpha = 15/16.
        near(hear(&mut flow, (1, 11), false), 100_000.0);
        // A mark cuts at once, by the alpha there is, and no other one does of a packet sent before.
        let cut = 100_000.0 * (1.0 - 15.0 / 32.0);
        near(hear(&mut flow, (2, 12), true), cut);
        for ack in 3..=11 {
            near(hear(&mut flow, (ack, ack + 10), ack < 7), cut);
        }
        // The window from 1 to 12 KB ends: 5 of its 11 KB were marked. It had a cut, so that the rate does not rise.
        let alpha = 15.0 / 16.0 * 15.0 / 16.0 + 5.0 / 11.0 / 16.0;
        near(hear(&mut flow, (12, 22), false), cut);
        assert!((flow.alpha() - alpha).abs() < 1e-6, "{}", flow.alpha());
        // Without a mark in a whole window the rate rises by the step, once.
        for ack in 13..=20 {
            near(hear(&mut flow, (ack, ack + 10), false), cut);
        }
        near(hear(&mut flow, (21, 31), false), cut + 615.0);
        near(hear(&mut flow, (22, 32), false), cut + 615.0);
    }

    #[test]
    fn the_rate_stays_within_its_limits() {
        let mut flow = flow();
        (1..40).for_each(|window| _ = hear(&mut flow, (2 * window, 2 * window + 1), true));
        near(flow.rate.as_mbps_f64(), 1_000.0);
        (40..400).for_each(|window| _ = hear(&mut flow, (2 * window, 2 * window + 1), false));
        assert_eq!(flow.rate, LINE);
    }
}
