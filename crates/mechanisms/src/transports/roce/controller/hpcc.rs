//! HPCC (Li et al., SIGCOMM 2019): the window follows the load of the most loaded link, which telemetry tells exactly.
//!
//! ```text
//! each link    u' = min(queue, queue before) / (B T) + (sent - sent before) / (B dt)
//! each ACK     u  = u' of the link where it is largest,  tau = min(dt of that link, T)
//!              U  = (1 - tau / T) U + tau / T u
//!              W  = Wc eta / U + W_AI    if U >= eta or stage >= max_stage,    else Wc + W_AI
//! each RTT     Wc = W;  stage = 0, or one more
//! rate         W / T
//! ```
//!
//! Every acknowledgement computes the window from the reference window Wc, which moves once a round trip: so the flow
//! reacts to each ACK, and not twice to one queue. W is at most the bandwidth-delay product, with which a flow starts.
//!
//! # Beside the paper and the released code
//! * Windows are the paper's. The released simulator computes rates, by `R = Rc eta / U + R_AI`, and takes the window
//!   from them; it has one reference for all links (`MULTI_RATE` off), as here.
//! * `increase` is the rate by which W_AI = increase x T raises the window, as the released code's `RATE_AI`.
//! * A stamp no later than the one before it, or of another number of links, is stored and not used: two paths are not
//!   comparable. Links that changed at equal numbers are not noticed.

use plimsoll_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::links::{averaged, bytes_in, most_loaded};
use crate::InvalidParam;
use crate::telemetry::Stamps;
use crate::transports::describe::Description;
use crate::transports::roce::FAMILY;
use crate::transports::roce::rate_control::{RateController, RoceAck};

/// The description of HPCC.
pub const HPCC: Description = Description {
    name: "hpcc",
    family: &FAMILY,
    kernel_name: None,
    delays_acks: false,
    needs_marks: false,
    needs_stamps: true,
};

/// HPCC's target and steps.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct HpccParams {
    /// The target load eta of a link: more than 0, at most 2. Default 0.95.
    #[schemars(range(min = 0.0, max = 2.0))]
    pub eta: f64,
    /// Round trips of additive increase before a multiplicative one: any number. The paper's text has 5, and its
    /// simulations 0. Default 0.
    pub max_stage: u32,
    /// The additive increase as a rate, W_AI / T: more than 0. Default 50 Mb/s (the paper's 80 B at T = 13 us).
    pub increase: Rate,
    /// The lowest rate: more than 0. Default 1 Gb/s.
    pub min_rate: Rate,
    /// The acknowledgements that move the window: HPCC's own rule, or one of the two that its Fig. 13 compares with
    /// it. Default `reference`.
    #[serde(skip_serializing_if = "HpccReaction::is_reference")]
    pub reaction: HpccReaction,
}

/// The acknowledgements by which HPCC moves its window.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HpccReaction {
    /// All of them, from a reference window that moves once a round trip.
    #[default]
    Reference,
    /// One in a round trip moves it, and all others pass.
    PerRtt,
    /// All of them, each from the window that the one before has set, so that one queue is reacted to many times.
    PerAck,
}

impl HpccReaction {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_reference(&self) -> bool {
        *self == HpccReaction::Reference
    }
}

impl Default for HpccParams {
    fn default() -> HpccParams {
        HpccParams {
            eta: 0.95,
            max_stage: 0,
            increase: Rate::from_mbps(50),
            min_rate: Rate::from_gbps(1),
            reaction: HpccReaction::Reference,
        }
    }
}

impl HpccParams {
    /// Checks the ranges given at the keys.
    ///
    /// # Errors
    /// Names the first key, within `[transport]`, whose value is outside its range.
    pub fn validate(&self) -> Result<(), InvalidParam> {
        use InvalidParam as Invalid;
        let eta = self.eta;
        Invalid::unless(eta > 0.0 && eta <= 2.0, "roce.hpcc.eta", eta, "more than 0 and at most 2")?;
        for (key, rate) in [("roce.hpcc.increase", self.increase), ("roce.hpcc.min_rate", self.min_rate)] {
            Invalid::unless(rate > Rate::ZERO, key, rate, "more than 0")?;
        }
        Ok(())
    }
}

/// The state of one flow. Windows are in bytes.
#[derive(Debug)]
pub struct Hpcc {
    params: HpccParams,
    line: Rate,
    base_rtt: Span,
    /// The window with which a flow starts, and its largest.
    largest: f64,
    window: f64,
    reference: f64,
    /// The estimate U of the load of the most loaded link.
    load: f64,
    stage: u32,
    /// The reference moves with the first acknowledgement of something beyond.
    update_at: u64,
    last: Stamps,
}

impl Hpcc {
    /// Makes the controller of a flow at a NIC of rate `line`, with an idle round trip of `base_rtt`.
    pub fn new(params: HpccParams, line: Rate, base_rtt: Span) -> Hpcc {
        let largest = bytes_in(line, base_rtt);
        Hpcc {
            params,
            line,
            base_rtt,
            largest,
            window: largest,
            reference: largest,
            load: 1.0,
            stage: 0,
            update_at: 0,
            last: Stamps::default(),
        }
    }
}

impl RateController for Hpcc {
    fn on_ack(&mut self, ack: &RoceAck) {
        let Some(stamps) = ack.stamps else { return };
        if self.last.is_empty() {
            // The first acknowledgement is only kept, and begins the first round trip.
            self.update_at = ack.nxt;
        }
        let base_rtt = self.base_rtt;
        let measured = most_loaded([stamps, &self.last], |new, old, time| {
            let queue = new.queue_bytes.min(old.queue_bytes) as f64;
            let sent = new.sent_bytes.saturating_sub(old.sent_bytes) as f64;
            queue / bytes_in(new.rate, base_rtt) + sent / bytes_in(new.rate, time)
        });
        self.last = *stamps;
        let Some((load, time)) = measured else { return };
        let params = &self.params;
        self.load = averaged(self.load, load, time, base_rtt);
        let added = bytes_in(params.increase, self.base_rtt);
        let is_loaded = self.load >= params.eta || self.stage >= params.max_stage;
        let window = if is_loaded { self.reference * params.eta / self.load } else { self.reference } + added;
        let least = bytes_in(params.min_rate, self.base_rtt);
        let is_new_round = ack.ack > self.update_at;
        if is_new_round || params.reaction != HpccReaction::PerRtt {
            self.window = window.max(least).min(self.largest);
        }
        if is_new_round || params.reaction == HpccReaction::PerAck {
            self.reference = self.window;
            self.stage = if is_loaded { 0 } else { self.stage + 1 };
            self.update_at = ack.nxt;
        }
    }

    fn rate(&self) -> Rate {
        self.line.scaled(self.window / self.largest)
    }

    fn window(&self) -> Option<u64> {
        Some(self.window as u64)
    }
}

#[cfg(test)]
mod tests {
    use plimsoll_units::Time;

    use super::*;
    use crate::telemetry::{IntParams, Stamp};

    const LINE: Rate = Rate::from_gbps(100);
    const RTT: Span = Span::from_us(8);
    /// The bytes that the line sends in a round trip.
    const BDP: f64 = 100_000.0;

    fn flow(max_stage: u32) -> Hpcc {
        let params = HpccParams { max_stage, increase: Rate::from_mbps(100), ..HpccParams::default() };
        Hpcc::new(params, LINE, RTT)
    }

    /// The stamps of links of 100 Gb/s, each with its queue and the bytes that it has sent by `ns`.
    fn stamps(ns: u64, links: &[(u64, u64)]) -> Stamps {
        let mut stamps = Stamps::default();
        for (queue_bytes, sent_bytes) in links.iter().copied() {
            let at = Time::ZERO + Span::from_ns(ns);
            let stamp = Stamp { queue_bytes, sent_bytes, at, rate: LINE, waited: Span::ZERO };
            stamps.push(stamp, &IntParams::default());
        }
        stamps
    }

    fn ack(flow: &mut Hpcc, (ack, nxt): (u64, u64), stamps: &Stamps) {
        flow.on_ack(&RoceAck { ack, nxt, stamps: Some(stamps), ..RoceAck::at(Time::ZERO) });
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6 * expected, "{value}, not {expected}");
    }

    #[test]
    fn a_flow_starts_with_the_bandwidth_delay_product_and_the_first_stamps_are_only_kept() {
        let mut flow = flow(0);
        assert_eq!((flow.window(), flow.rate()), (Some(100_000), LINE));
        ack(&mut flow, (1_000, 100_000), &stamps(1_000, &[(0, 0)]));
        assert_eq!((flow.window(), flow.load), (Some(100_000), 1.0));
    }

    #[test]
    fn the_most_loaded_link_sets_the_window() {
        let mut flow = flow(0);
        ack(&mut flow, (1_000, 100_000), &stamps(0, &[(50_000, 0), (0, 0)]));
        // 2 us later, a quarter of T: the first link has sent at its full rate with a queue of 30 KB or more, the
        // second at half of it.
        ack(&mut flow, (2_000, 101_000), &stamps(2_000, &[(30_000, 25_000), (0, 12_500)]));
        let load = 1.0 + 0.25 * (1.3 - 1.0);
        near(flow.load, load);
        // W = Wc eta / U + W_AI, and W_AI = 100 Mb/s x 8 us = 100 B.
        let window = BDP * 0.95 / load + 100.0;
        near(flow.window, window);
        // The reference moves with an ACK beyond what was sent when the first one came, and so on.
        near(flow.reference, BDP);
        ack(&mut flow, (100_001, 190_000), &stamps(4_000, &[(30_000, 50_000), (0, 25_000)]));
        near(flow.window, BDP * 0.95 / flow.load + 100.0);
        let reference = flow.window;
        near(flow.reference, reference);
        ack(&mut flow, (190_000, 250_000), &stamps(6_000, &[(0, 75_000), (0, 37_500)]));
        near(flow.window, reference * 0.95 / flow.load + 100.0);
        near(flow.reference, reference);
    }

    #[test]
    fn below_the_target_stages_of_additive_increase_come_first() {
        let mut flow = flow(2);
        (flow.window, flow.reference, flow.load) = (40_000.0, 40_000.0, 0.4);
        ack(&mut flow, (1, 1), &stamps(0, &[(0, 0)]));
        let mut seen = Vec::new();
        for round in 1..=4 {
            // A load of 0.4 for a whole round trip each.
            let stamps = stamps(8_000 * round, &[(0, 40_000 * round)]);
            ack(&mut flow, (10 * round, 10 * round + 5), &stamps);
            near(flow.load, 0.4);
            seen.push(flow.window.round());
        }
        let multiplied = 40_200.0 * 0.95 / 0.4 + 100.0;
        assert_eq!(seen, [40_100.0, 40_200.0, multiplied, multiplied + 100.0]);
    }

    #[test]
    fn other_reactions_move_the_window_once_a_round_trip_or_from_the_last_window() {
        // Three acknowledgements of one round trip, each of which sees a load of 2 for a whole base round trip.
        let windows = |reaction| {
            let mut flow = flow(0);
            flow.params.reaction = reaction;
            flow.load = 2.0;
            ack(&mut flow, (1, 1), &stamps(0, &[(100_000, 0)]));
            let acks = [1u64, 2, 3].map(|at| {
                ack(&mut flow, (at * 1_000, 100_000), &stamps(8_000 * at, &[(100_000, 100_000 * at)]));
                flow.window.round()
            });
            acks.to_vec()
        };
        let halved = |window: f64| (window * 0.95 / 2.0 + 100.0).round();
        let once = halved(BDP);
        assert_eq!(windows(HpccReaction::PerRtt), [once, once, once]);
        assert_eq!(windows(HpccReaction::PerAck), [once, halved(once), halved(halved(once))]);
        // The first one moves the reference too, so the others are computed from it.
        assert_eq!(windows(HpccReaction::Reference), [once, halved(once), halved(once)]);
    }

    #[test]
    fn a_paced_flow_alone_settles_at_the_target() {
        let mut flow = flow(0);
        let (mut sent, mut acked) = (0.0, 0);
        for round in 0..400u64 {
            ack(&mut flow, (acked + 1, acked + 1), &stamps(8_000 * round, &[(0, sent as u64)]));
            sent += flow.window;
            acked += 1;
        }
        let load = flow.window / BDP;
        assert!((0.94..0.96).contains(&load), "{load}");
    }

    #[test]
    fn stamps_that_are_not_comparable_leave_the_window() {
        let mut flow = flow(0);
        ack(&mut flow, (1, 2), &stamps(1_000, &[(0, 0)]));
        for other in [stamps(1_000, &[(90_000, 90_000)]), stamps(2_000, &[(90_000, 90_000), (0, 0)])] {
            ack(&mut flow, (2, 3), &other);
            assert_eq!((flow.window(), flow.load), (Some(100_000), 1.0));
        }
        flow.on_ack(&RoceAck { ack: 3, nxt: 4, ..RoceAck::at(Time::ZERO) });
        assert_eq!(flow.window(), Some(100_000));
    }
}
