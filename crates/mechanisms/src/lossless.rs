//! The packet memory of a switch with lossless priorities, accounted by ingress as switches on sale do it.
//!
//! ```text
//!  memory of the switch
//!  ├─ reserve, of each ingress link and priority ────────────────────────────┐
//!  ├─ shared: all links and priorities, each up to its threshold             │ a packet takes the first that has
//!  │          T = alpha x (shared - used), or a fixed `threshold`            │ room, and gives back in reverse
//!  └─ headroom, of each ingress link and lossless priority: what arrives ────┘
//!               after the pause has been decided
//!
//!  pause    headroom is in use, or the shared bytes of the link and priority have reached T
//!  resume   no headroom is in use, and the shared bytes are 0 or `resume_offset` below T
//!  drop     lossless: headroom is full              lossy: above T, or above the egress queue's own threshold
//! ```
//!
//! # Threshold
//! With `n` links and priorities that all fill their part, each gets `alpha x shared / (1 + n alpha)`: one alone with
//! alpha 1/8 gets a ninth. DCQCN (Zhu et al., SIGCOMM 2015, section 4) writes T as `beta x (shared - used) / 8`, with
//! beta 8: `alpha = beta / 8`. Its fixed threshold is the share of each of `n` links and 8 priorities,
//! `shared / (8 n)`. [`BufferPlan`] computes both, and the largest ECN threshold that marks before any pause.
//!
//! # Headroom
//! A packet that crosses the threshold is in the headroom as a whole; then come the bytes that [`pfc`](crate::pfc)
//! derives. The pause frame takes its time on the link that it is sent on:
//!
//! ```text
//! headroom = MTU + (MTU + pause) R / R_back + R (2 d + response) + MTU
//! ```
//!
//! Departures: a pause is decided when a packet arrives, and a resume whenever memory is given back anywhere in the
//! switch, as a chip compares continuously; the HPCC simulator resumes only when a packet of the same ingress leaves. A
//! pause lasts until the resume, unless [`pause_time`] is limited and it is not refreshed, or the watchdog of the port
//! stops to obey it.

mod buffers;
mod pause_time;
mod plan;
mod watchdog;

use std::collections::BTreeMap;

use plimsoll_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::by_priority::by_priority;
use crate::mechanism::{EngineNeed, Mechanism, Section, Table};
use crate::pfc::Priorities;

pub use buffers::{BufferPeaks, IngressBuffers, Refusal, fuller};
pub use pause_time::{PauseExpiry, RefreshTimer, pause_time, quanta_min};
pub use plan::{BufferPlan, HeadroomTerms, LosslessError};
pub use watchdog::{PauseWatchdog, StormAction, WatchdogParams};

/// The memory of a switch with lossless priorities, accounted by ingress link and priority. Pause frames take their 84
/// B of time from the data in their direction.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LosslessParams {
    /// The packet memory of the switch: more than all of `reserve` and `headroom`. Default 32 MB, as in the HPCC
    /// simulations (100 Gb/s).
    pub memory: Bytes,
    /// The lossless priorities: one such as `"3"`, a range such as `"3..4"` with the last one included, or several of
    /// these with commas between them. Packets of other priorities are dropped where they find no room. Default all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priorities: Option<String>,
    /// The memory that each ingress link has for itself, for each priority in use. Default 4 KB (HPCC).
    pub reserve: Bytes,
    /// The share of the free shared memory that one ingress link and priority may use: more than 0, at most 1024.
    /// Default 1/8 (HPCC, and DCQCN's beta = 8 with 8 priorities).
    #[schemars(range(min = 0.0, max = 1024.0))]
    pub alpha: f64,
    /// A fixed threshold in place of `alpha`: the shared bytes of one ingress link and priority, more than 0. Default
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<Bytes>,
    /// The memory kept for what arrives after a pause is decided, for each ingress link and lossless priority in use.
    /// Default what the link needs, 3 MTU + the pause frame + the bytes of a round trip and `response`. Less is an
    /// error, unless `may_drop` is set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headroom: Option<Bytes>,
    /// A `headroom` that is smaller than the link needs is a warning, and lossless packets may be dropped. Default
    /// false.
    pub may_drop: bool,
    /// The share of the free shared memory that one egress queue may use for one lossy priority: more than 0, at most
    /// 1024. Default 1 (HPCC).
    #[schemars(range(min = 0.0, max = 1024.0))]
    pub egress_alpha: f64,
    /// The sender may resume when the shared bytes of its link and priority are this far below the threshold. Default
    /// 3 KB (HPCC).
    pub resume_offset: Bytes,
    /// How long a sender takes to obey a pause that has arrived, at most 1 ms; it ends the packet that it is sending in
    /// any case. Default 0 s.
    pub response: Span,
    /// The length of a pause, in units of 512 bit times of the link: 1 to 65535. The switch refreshes a pause when half
    /// of it is left, by a frame that takes its time on the link. Default none: a pause lasts until the resume.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub quanta: Option<u16>,
    /// Ports of the switch that stay paused stop to obey their pauses. Default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watchdog: Option<WatchdogParams>,
}

impl Default for LosslessParams {
    fn default() -> LosslessParams {
        LosslessParams {
            memory: Bytes::new(32_000_000),
            priorities: None,
            reserve: Bytes::new(4_000),
            alpha: 0.125,
            threshold: None,
            headroom: None,
            may_drop: false,
            egress_alpha: 1.0,
            resume_offset: Bytes::new(3_000),
            response: Span::ZERO,
            quanta: None,
            watchdog: None,
        }
    }
}

impl Mechanism for LosslessParams {
    const TABLE: Table = Table::replaced_whole(
        Section::Port,
        "lossless",
        "the switch has no accounts by ingress, and pauses its neighbours only by `pfc`",
    )
    .needs(EngineNeed::GeneralEverywhere)
    .limits_queue();

    fn validate(&self) -> Result<(), InvalidParam> {
        InvalidParam::unless(self.memory > Bytes::ZERO, "memory", self.memory, "more than 0B")?;
        self.lossless()?;
        for (key, alpha) in [("alpha", self.alpha), ("egress_alpha", self.egress_alpha)] {
            let allowed = "more than 0 (at least 2^-16) and at most 1024";
            InvalidParam::unless(alpha * FIXED_ONE >= 1.0 && alpha <= 1024.0, key, alpha, allowed)?;
        }
        let threshold = self.threshold.unwrap_or(Bytes::new(1));
        InvalidParam::unless(threshold > Bytes::ZERO, "threshold", threshold, "more than 0B")?;
        InvalidParam::unless(self.quanta != Some(0), "quanta", 0, "1 to 65535")?;
        self.watchdog.map_or(Ok(()), |watchdog| watchdog.validate())?;
        InvalidParam::unless(self.response <= Span::from_ms(1), "response", self.response, "at most 1ms")
    }
}

impl LosslessParams {
    /// Returns the lossless priorities.
    ///
    /// # Errors
    /// A name in `priorities` that is neither a priority nor a range of them, or a priority that is named twice.
    pub fn lossless(&self) -> Result<Priorities, InvalidParam> {
        let Some(text) = &self.priorities else { return Ok(Priorities::ALL) };
        let allowed = "one of 0 to 7, a range such as `3..4`, or several with commas, each priority once";
        let mut names: BTreeMap<String, ()> = BTreeMap::new();
        for name in text.split(',').map(str::trim) {
            let is_first = names.insert(name.to_owned(), ()).is_none();
            InvalidParam::unless(is_first, "priorities", format!("`{name}`"), allowed)?;
        }
        let entries =
            by_priority(&names).map_err(|invalid| InvalidParam { key: "priorities", allowed, ..invalid })?;
        let named = (0..).zip(entries).filter(|(_, entry)| entry.is_some());
        Ok(named.fold(Priorities::default(), |set, (priority, _)| set.with(priority)))
    }
}

/// alpha is kept in units of 2^-16, to the nearest; products round down.
const ALPHA_BITS: u32 = 16;
const FIXED_ONE: f64 = 65_536.0;

/// Returns `alpha` in units of 2^-16.
fn fixed(alpha: f64) -> u64 {
    (alpha * FIXED_ONE).round() as u64
}

/// Returns `alpha`, in units of 2^-16, times `bytes`.
fn share(alpha: u64, bytes: u64) -> u64 {
    ((u128::from(bytes) * u128::from(alpha)) >> ALPHA_BITS).min(u128::from(u64::MAX)) as u64
}

#[cfg(test)]
mod tests;
