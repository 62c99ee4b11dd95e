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
//! * The form `window` is the paper's. The released simulator computes rates, the form `rate`: `R = Rc eta / U + R_AI`
//!   in whole b/s, and `W = B T R / B` with the bandwidth-delay product that the queues are compared with as well. As
//!   `W = R T` throughout, the two forms differ by rounding, and by nothing else.
//! * `references = "per-link"` is `MULTI_RATE` of the released code, which is off in the paper's runs: each link has an
//!   estimate U, a reference and a stage of its own, and the lowest of the values that they give applies.
//! * `increase` is the rate by which W_AI = increase x T raises the window, as the released code's `RATE_AI`.
//! * A stamp no later than the one before it, or of another number of links, is stored and not used: two paths are not
//!   comparable. Links that changed at equal numbers are not noticed.
//! * A round trip has passed once a packet is acknowledged that was sent after the reference moved. The released code
//!   compares stream offsets for that, which go-back-N sends again for a long time.
//! * Quantised stamps wrap. After a pause in which they may have, the stamps are stored and not used.

use plimsoll_units::{Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::links::{LinkLoads, averaged, bytes_in};
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
    #[serde(skip_serializing_if = "is_first")]
    pub reaction: HpccReaction,
    /// What is computed: `window`, as in the paper, or `rate`, in whole b/s, as in the released code. Default `window`.
    #[serde(skip_serializing_if = "is_first")]
    pub form: HpccForm,
    /// The reference values: `one`, for the most loaded link, or `per-link`, one for each link, of which the lowest
    /// result applies (`MULTI_RATE` of the released code). Default `one`.
    #[serde(skip_serializing_if = "is_first")]
    pub references: HpccReferences,
}

/// Returns whether a choice has its default, so that a scenario need not write it.
fn is_first<C: Default + PartialEq>(choice: &C) -> bool {
    *choice == C::default()
}

/// The quantity that HPCC computes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HpccForm {
    /// The window in bytes, from which the rate follows.
    #[default]
    Window,
    /// The rate in whole b/s, from which the window follows.
    Rate,
}

/// The reference values of HPCC.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HpccReferences {
    /// One reference, moved by the load of the most loaded link.
    #[default]
    One,
    /// A reference for each link, moved by its own load.
    PerLink,
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

impl Default for HpccParams {
    fn default() -> HpccParams {
        HpccParams {
            eta: 0.95,
            max_stage: 0,
            increase: Rate::from_mbps(50),
            min_rate: Rate::from_gbps(1),
            reaction: HpccReaction::Reference,
            form: HpccForm::Window,
            references: HpccReferences::One,
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

/// The state of one flow. Windows are in bytes and rates in b/s; `level` stands for the one that the form computes.
#[derive(Debug)]
pub struct Hpcc {
    params: HpccParams,
    line: Rate,
    base_rtt: Span,
    /// The bandwidth-delay product: the window with which a flow starts, and its largest.
    largest: f64,
    level: f64,
    limits: LevelLimits,
    /// The reference of the most loaded link.
    one: Reference,
    /// The references of all links, where each has its own; empty otherwise.
    per_link: Vec<Reference>,
    /// The reference moves with the first acknowledgement of a packet from this number on.
    update_at: u64,
    last: Stamps,
    last_at: Time,
}

/// The reference of the most loaded link, or of one link.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Reference {
    level: f64,
    /// The estimate U of the load.
    load: f64,
    stage: u32,
}

/// The bounds of a level, and its additive increase.
#[derive(Clone, Copy, Debug)]
struct LevelLimits {
    least: f64,
    most: f64,
    added: f64,
    /// Levels are whole numbers.
    is_whole: bool,
}

impl Reference {
    /// Takes a load that was measured for `time`. Returns the level that follows, and the stage after it.
    fn on_load(
        &mut self,
        params: &HpccParams,
        limits: &LevelLimits,
        (load, time): (f64, Span),
        base_rtt: Span,
    ) -> (f64, u32) {
        self.load = averaged(self.load, load, time, base_rtt);
        let is_loaded = self.load >= params.eta || self.stage >= params.max_stage;
        let level = if is_loaded { self.level * params.eta / self.load } else { self.level } + limits.added;
        let level = if limits.is_whole { level.floor() } else { level };
        (level.max(limits.least).min(limits.most), if is_loaded { 0 } else { self.stage + 1 })
    }
}

impl Hpcc {
    /// Makes the controller of a flow at a NIC of rate `line`, with an idle round trip of `base_rtt`.
    pub fn new(params: HpccParams, line: Rate, base_rtt: Span) -> Hpcc {
        let largest = bytes_in(line, base_rtt);
        let of_rate = |rate: Rate| match params.form {
            HpccForm::Window => bytes_in(rate, base_rtt),
            HpccForm::Rate => rate.as_bps() as f64,
        };
        let limits = LevelLimits {
            least: of_rate(params.min_rate),
            most: of_rate(line),
            added: of_rate(params.increase),
            is_whole: params.form == HpccForm::Rate,
        };
        let level = limits.most;
        Hpcc {
            params,
            line,
            base_rtt,
            largest,
            level,
            limits,
            one: Reference { level, load: 1.0, stage: 0 },
            per_link: Vec::new(),
            update_at: 0,
            last: Stamps::default(),
            last_at: Time::ZERO,
        }
    }

    /// Returns the loads of the links since the last acknowledgement, and stores the new stamps.
    fn loads(&mut self, now: Time, stamps: &Stamps) -> Option<LinkLoads> {
        let last_at = std::mem::replace(&mut self.last_at, now);
        // Half of the time, as the stamps may be further apart than the acknowledgements that return them.
        let is_clear = now.saturating_since(last_at) < stamps.unambiguous() / 2;
        let base_rtt = self.base_rtt;
        let loads = LinkLoads::between([stamps, &self.last], |new, old, sent, time| {
            let queue = new.queue_bytes.min(old.queue_bytes) as f64;
            queue / bytes_in(new.rate, base_rtt) + sent as f64 / bytes_in(new.rate, time)
        });
        self.last = *stamps;
        loads.filter(|_| is_clear)
    }

    /// Takes the load of each link. Returns the lowest of the levels that follow.
    fn on_link_loads(&mut self, loads: &[(f64, Span)], moves_reference: bool) -> f64 {
        if self.per_link.len() != loads.len() {
            self.per_link = vec![Reference { level: self.level, load: 1.0, stage: 0 }; loads.len()];
        }
        let mut lowest = self.limits.most;
        for (reference, load) in self.per_link.iter_mut().zip(loads) {
            let (level, stage) = reference.on_load(&self.params, &self.limits, *load, self.base_rtt);
            if moves_reference {
                (reference.level, reference.stage) = (level, stage);
            }
            lowest = lowest.min(level);
        }
        lowest
    }
}

impl RateController for Hpcc {
    fn on_ack(&mut self, ack: &RoceAck) {
        let Some(stamps) = ack.stamps else { return };
        if self.last.is_empty() {
            // The first acknowledgement is only kept, and begins the first round trip.
            self.update_at = ack.sent;
        }
        let Some(loads) = self.loads(ack.now, stamps) else { return };
        let is_new_round = ack.echo >= self.update_at;
        let reaction = self.params.reaction;
        let moves_level = is_new_round || reaction != HpccReaction::PerRtt;
        let moves_reference = is_new_round || reaction == HpccReaction::PerAck;
        let level = match self.params.references {
            HpccReferences::PerLink => self.on_link_loads(loads.as_slice(), moves_reference),
            HpccReferences::One => {
                let (level, stage) =
                    self.one.on_load(&self.params, &self.limits, loads.most(), self.base_rtt);
                if moves_reference {
                    (self.one.level, self.one.stage) = (level, stage);
                }
                level
            }
        };
        if moves_level {
            self.level = level;
        }
        if moves_reference {
            self.update_at = ack.sent;
        }
    }

    fn rate(&self) -> Rate {
        match self.params.form {
            HpccForm::Window => self.line.scaled(self.level / self.largest),
            HpccForm::Rate => Rate::from_bps(self.level as u64),
        }
    }

    fn window(&self) -> Option<u64> {
        Some(match self.params.form {
            HpccForm::Window => self.level as u64,
            HpccForm::Rate => (self.largest * self.level / self.limits.most) as u64,
        })
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
        // A byte counts as a packet: the acknowledgement of `ack` of them is of the last one.
        flow.on_ack(&RoceAck { echo: ack - 1, sent: nxt, stamps: Some(stamps), ..RoceAck::at(Time::ZERO) });
    }

    fn near(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-6 * expected, "{value}, not {expected}");
    }

    #[test]
    fn a_flow_starts_with_the_bandwidth_delay_product_and_the_first_stamps_are_only_kept() {
        let mut flow = flow(0);
        assert_eq!((flow.window(), flow.rate()), (Some(100_000), LINE));
        ack(&mut flow, (1_000, 100_000), &stamps(1_000, &[(0, 0)]));
        assert_eq!((flow.window(), flow.one.load), (Some(100_000), 1.0));
    }

    #[test]
    fn the_most_loaded_link_sets_the_window() {
        let mut flow = flow(0);
        ack(&mut flow, (1_000, 100_000), &stamps(0, &[(50_000, 0), (0, 0)]));
        // 2 us later, a quarter of T: the first link has sent at its full rate with a queue of 30 KB or more, the
        // second at half of it.
        ack(&mut flow, (2_000, 101_000), &stamps(2_000, &[(30_000, 25_000), (0, 12_500)]));
        let load = 1.0 + 0.25 * (1.3 - 1.0);
        near(flow.one.load, load);
        // W = Wc eta / U + W_AI, and W_AI = 100 Mb/s x 8 us = 100 B.
        let window = BDP * 0.95 / load + 100.0;
        near(flow.level, window);
        // The reference moves with an ACK beyond what was sent when the first one came, and so on.
        near(flow.one.level, BDP);
        ack(&mut flow, (100_001, 190_000), &stamps(4_000, &[(30_000, 50_000), (0, 25_000)]));
        near(flow.level, BDP * 0.95 / flow.one.load + 100.0);
        let reference = flow.level;
        near(flow.one.level, reference);
        ack(&mut flow, (190_000, 250_000), &stamps(6_000, &[(0, 75_000), (0, 37_500)]));
        near(flow.level, reference * 0.95 / flow.one.load + 100.0);
        near(flow.one.level, reference);
    }

    #[test]
    fn below_the_target_stages_of_additive_increase_come_first() {
        let mut flow = flow(2);
        flow.level = 40_000.0;
        flow.one = Reference { level: 40_000.0, load: 0.4, stage: 0 };
        ack(&mut flow, (1, 1), &stamps(0, &[(0, 0)]));
        let mut seen = Vec::new();
        for round in 1..=4 {
            // A load of 0.4 for a whole round trip each.
            let stamps = stamps(8_000 * round, &[(0, 40_000 * round)]);
            ack(&mut flow, (10 * round, 10 * round + 5), &stamps);
            near(flow.one.load, 0.4);
            seen.push(flow.level.round());
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
            flow.one.load = 2.0;
            ack(&mut flow, (1, 1), &stamps(0, &[(100_000, 0)]));
            let acks = [1u64, 2, 3].map(|at| {
                ack(&mut flow, (at * 1_000, 100_000), &stamps(8_000 * at, &[(100_000, 100_000 * at)]));
                flow.level.round()
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
            sent += flow.level;
            acked += 1;
        }
        let load = flow.level / BDP;
        assert!((0.94..0.96).contains(&load), "{load}");
    }

    #[test]
    fn stamps_that_are_not_comparable_leave_the_window() {
        let mut flow = flow(0);
        ack(&mut flow, (1, 2), &stamps(1_000, &[(0, 0)]));
        for other in [stamps(1_000, &[(90_000, 90_000)]), stamps(2_000, &[(90_000, 90_000), (0, 0)])] {
            ack(&mut flow, (2, 3), &other);
            assert_eq!((flow.window(), flow.one.load), (Some(100_000), 1.0));
        }
        flow.on_ack(&RoceAck { echo: 2, sent: 4, ..RoceAck::at(Time::ZERO) });
        assert_eq!(flow.window(), Some(100_000));
    }

    #[test]
    fn the_form_by_rates_differs_by_rounding_alone() {
        let [mut by_window, mut by_rate] = [HpccForm::Window, HpccForm::Rate].map(|form| {
            let mut flow = flow(2);
            flow.params.form = form;
            Hpcc::new(flow.params, LINE, RTT)
        });
        let (mut sent, mut lowest) = (0, LINE);
        for at in 0..200u64 {
            // Loads between 0.6 and 1.6, a quarter of a round trip each.
            sent += 15_000 + at * 7_919 % 20_000;
            let stamps = stamps(2_000 * at, &[(at * 104_729 % 30_000, sent)]);
            for flow in [&mut by_window, &mut by_rate] {
                ack(flow, (1 + at, 5 + at), &stamps);
            }
            near(by_rate.rate().as_bps() as f64, by_window.level / BDP * 100e9);
            assert!(by_rate.window().unwrap().abs_diff(by_window.window().unwrap()) <= 1, "{at}");
            lowest = lowest.min(by_rate.rate());
        }
        assert!(lowest < Rate::from_gbps(50), "{lowest}");
        // U = 1 + 0.25 (1.3 - 1): R = 100 Gb/s x 0.95 / 1.075 + 100 Mb/s, in whole b/s.
        let mut first = Hpcc::new(HpccParams { max_stage: 0, ..by_rate.params }, LINE, RTT);
        ack(&mut first, (1_000, 100_000), &stamps(0, &[(50_000, 0)]));
        ack(&mut first, (2_000, 101_000), &stamps(2_000, &[(30_000, 25_000)]));
        assert_eq!((first.rate(), first.window()), (Rate::from_bps(88_472_093_023), Some(88_472)));
    }

    #[test]
    fn with_a_reference_for_each_link_the_lowest_applies() {
        let windows = |references| {
            let mut flow = flow(0);
            flow.params.references = references;
            ack(&mut flow, (1, 1), &stamps(0, &[(100_000, 0), (0, 0)]));
            // Loads of 2 and 0.5 for a whole round trip, and then of 0.95 and 1.9.
            let rounds = [[(100_000, 100_000), (90_000, 50_000)], [(0, 195_000), (90_000, 150_000)]];
            [1u64, 2].map(|round| {
                let stamps = stamps(8_000 * round, &rounds[round as usize - 1]);
                ack(&mut flow, (10 * round, 10 * round + 5), &stamps);
                flow.level.round()
            })
        };
        // 0.95 / 2 of the bandwidth-delay product, and then 0.95 / 0.95 of that, or half of all.
        assert_eq!(windows(HpccReferences::PerLink), [47_600.0, 47_700.0]);
        assert_eq!(windows(HpccReferences::One), [47_600.0, 23_900.0]);
    }

    #[test]
    fn quantised_stamps_are_read_across_a_wrap_and_not_across_a_pause() {
        let params = IntParams { nic_rate: Some(LINE), ..IntParams::default() };
        let mut flow = flow(0);
        let mut hear = |us: u64, sent_bytes: u64| {
            let now = Time::ZERO + Span::from_us(us);
            let stamp = Stamp { queue_bytes: 32_000, sent_bytes, at: now, rate: LINE, waited: Span::ZERO };
            let mut stamps = Stamps::default();
            stamps.push(params.written(stamp), &params);
            flow.on_ack(&RoceAck { sent: 100, stamps: Some(&stamps), ..RoceAck::at(now) });
            flow.one.load
        };
        // The fields wrap at 16,777.216 us, and at 2^20 units of 512 B.
        let wraps = 512 << 20;
        hear(16_776, wraps - 5_120);
        let load = 1.0 + 0.25 * (25_600.0 / 25_000.0 + 0.32 - 1.0);
        near(hear(16_778, wraps + 20_480), load);
        near(hear(16_778 + 8_389, wraps + 40_960), load);
        assert!(hear(16_778 + 8_391, wraps + 66_560) > load);
    }
}
