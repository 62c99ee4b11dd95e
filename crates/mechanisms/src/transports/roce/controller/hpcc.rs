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
//! * A digest (PINT) is U itself, as the most loaded port has averaged it, from the second acknowledgement on.

use plimsoll_units::{Rate, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::links::LinkLoads;
use crate::InvalidParam;
use crate::telemetry::{Stamps, averaged, bytes_in};
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

/// The windows or rates from which HPCC computes: one for all links, or one for each.
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
        if let Some(load) = stamps.load() {
            let last = std::mem::replace(&mut self.last, *stamps);
            return (!last.is_empty()).then(|| LinkLoads::one(load, self.base_rtt));
        }
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
mod tests;
