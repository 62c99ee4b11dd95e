//! The host pacer (HULL, "Packet pacing"): spreads the bursts of flows that met congestion, and leaves
//! all others alone.
//!
//! Three parts, shared by both forms:
//!
//! * **association**: an ECE acknowledgement makes its flow paced with probability p_a; the flow falls
//!   back after T_i without another success;
//! * **rate law**, every T_r, with M_r bits received and Q bits held back:
//!   `R <- (1 - eta) R + eta M_r / T_r + beta Q`;
//! * **token bucket** that fills at R.
//!
//! and two places for them, which give different systems:
//!
//! | | [`HostPacer`], form `paper` | [`LinkPacer`], form `source` |
//! |---|---|---|
//! | sits | in front of the NIC queue | between the NIC queue and the link |
//! | holds | any number of packets, FIFO | one packet; all behind it wait in the NIC queue |
//! | others | bypass, unless their flow has packets queued | wait behind the held packet, then pass |
//! | draw | on every ECE acknowledgement | on the next data packet sent after one or more |
//! | M_r | all bits that the host hands over | the same, as they reach the head of the NIC queue |
//! | tokens | continuous | every `token_interval`, and the due time of a held packet ignores later ones |
//!
//! A third, [`EarliestDeparture`], is the paper's as an eBPF program can do it: a packet gets its departure when it
//! arrives. No simulation uses it.
//!
//! `source` follows the simulator of the HULL reproduction, which produced its published numbers.
//!
//! M_r counts bypassing packets too, in both forms: the paper says 'received from the host', and the reproduction's
//! code counts before it tests the association. The rate therefore follows all traffic of the host.
//!
//! # Time without events
//! The pacer keeps a time grid from its first packet on, yet an idle one needs no call: the next call
//! catches up. Ticks are then run one by one only until the rate stops changing, at `min_rate` or zero;
//! rounding down makes that certain within `43 / eta` ticks (344 at the default), and what lies beyond
//! is one multiplication. The result equals ticking one by one.

mod association;
mod earliest;
mod host;
mod link;
mod rate;

use plimsoll_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::mechanism::{Mechanism, Section, Table};

pub use association::{AssociationCounts, FlowAssociations, FlowState};
pub use earliest::{
    EarliestDeparture, EarliestDepartureConstants, EarliestDepartureState, KEEP_POWERS, PacedFlow,
};
pub use host::{Admission, HostPacer};
pub use link::{LinkPacer, Release};

/// A packet pacer in the host's NIC.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PacerParams {
    /// `paper`: a queue of its own in front of the NIC queue, bypassed by flows that are not paced.
    /// `source`: between the NIC queue and the link, where a held packet blocks all behind it, as in
    /// the reproduction's ns-2 code. Default `paper`.
    pub form: PacerForm,
    /// The token bucket: the bytes that may leave back to back, at least one packet. Default 3 KB (HULL).
    pub bucket: Bytes,
    /// The weight of the newest interval in the rate: 0.0001 to 1. Default 0.125 (HULL).
    #[schemars(range(min = 0.0001, max = 1.0))]
    pub eta: f64,
    /// How fast a backlog raises the rate, in bit/s per bit of backlog and interval: 0 to 10^9, and at
    /// least 1 unless there is a `min_rate`. Default 16 (HULL); at 10 Gb/s 3000 has been used.
    #[schemars(range(min = 0.0, max = 1e9))]
    pub beta: f64,
    /// The probability that congestion feedback makes a flow paced: 0 to 1. Default 0.125 (HULL).
    #[schemars(range(min = 0.0, max = 1.0))]
    pub association_probability: f64,
    /// How long a flow stays paced after its last successful draw (T_i). Default 10 ms (HULL).
    pub association_timeout: Span,
    /// The interval of the rate law (T_r), at least 1 us. Default 64 us; the reproduction's scripts set
    /// 32 us.
    pub interval: Span,
    /// How often tokens are added, at least 1 us; only for the form `source`. Default 16 us.
    pub token_interval: Span,
    /// The rate before the first interval, at most 1 Tb/s. Default 100 Mb/s (the reproduction's
    /// scripts).
    pub initial_rate: Rate,
    /// The rate never falls below this: 1 kb/s to 1 Tb/s. Default none, so that an idle host's rate decays
    /// to zero and recovers by `eta` and `beta`. The 10 Gb/s variant used 1 % of the link.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rate: Option<Rate>,
}

/// The place of the pacer, and the packets that it holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PacerForm {
    /// A queue in front of the NIC queue: [`HostPacer`].
    Paper,
    /// One packet between the NIC queue and the link: [`LinkPacer`].
    Source,
}

impl Default for PacerParams {
    fn default() -> PacerParams {
        PacerParams {
            form: PacerForm::Paper,
            bucket: Bytes::new(3_000),
            eta: 0.125,
            beta: 16.0,
            association_probability: 0.125,
            association_timeout: Span::from_ms(10),
            interval: Span::from_us(64),
            token_interval: Span::from_us(16),
            initial_rate: Rate::from_mbps(100),
            min_rate: None,
        }
    }
}

impl Mechanism for PacerParams {
    const TABLE: Table = Table::replaced_whole(Section::Host, "pacer", "no flow is paced").holds_packets();

    fn validate(&self) -> Result<(), InvalidParam> {
        let bucket_ok = (1..=1_000_000_000).contains(&self.bucket.get());
        InvalidParam::unless(bucket_ok, "bucket", self.bucket, "1B to 1GB")?;
        let eta_ok = (0.0001..=1.0).contains(&self.eta);
        InvalidParam::unless(eta_ok, "eta", self.eta, "0.0001 to 1")?;
        let beta_ok = (0.0..=1e9).contains(&self.beta) && (self.beta >= 1.0 || self.min_rate.is_some());
        InvalidParam::unless(beta_ok, "beta", self.beta, "1 to 10^9, or from 0 with a `min_rate`")?;
        let probability_ok = (0.0..=1.0).contains(&self.association_probability);
        let probability = self.association_probability;
        InvalidParam::unless(probability_ok, "association_probability", probability, "0 to 1")?;
        let intervals = Span::from_us(1)..=Span::from_secs(1);
        let (interval, token_interval) = (self.interval, self.token_interval);
        InvalidParam::unless(intervals.contains(&interval), "interval", interval, "1us to 1s")?;
        let token_ok = intervals.contains(&token_interval);
        InvalidParam::unless(token_ok, "token_interval", token_interval, "1us to 1s")?;
        let fastest = Rate::from_gbps(1_000);
        let initial_ok = self.initial_rate <= fastest;
        InvalidParam::unless(initial_ok, "initial_rate", self.initial_rate, "at most 1Tbps")?;
        let min_rate = self.min_rate.unwrap_or(fastest);
        let min_ok = (Rate::from_bps(1_000)..=fastest).contains(&min_rate);
        InvalidParam::unless(min_ok, "min_rate", min_rate, "1Kbps to 1Tbps")
    }
}

/// The numbers of packets that a pacer delayed and that bypassed it.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct PacedCounts {
    /// Packets of associated flows, and packets that had to queue behind them: they drew tokens.
    pub paced: u64,
    /// Packets that passed without drawing tokens.
    pub bypassed: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_table_is_the_default() {
        assert_eq!(toml::from_str::<PacerParams>("").unwrap(), PacerParams::default());
        let params: PacerParams = toml::from_str("form = 'source'\ninterval = '32us'").unwrap();
        assert_eq!((params.form, params.interval), (PacerForm::Source, Span::from_us(32)));
        assert!(toml::from_str::<PacerParams>("gamma = 1").is_err());
    }

    #[test]
    fn ranges() {
        let default = PacerParams::default;
        default().validate().unwrap();
        PacerParams { beta: 0.0, min_rate: Some(Rate::from_mbps(1)), ..default() }.validate().unwrap();
        for (key, params) in [
            ("bucket", PacerParams { bucket: Bytes::ZERO, ..default() }),
            ("eta", PacerParams { eta: 0.0, ..default() }),
            ("eta", PacerParams { eta: f64::NAN, ..default() }),
            ("beta", PacerParams { beta: 0.0, ..default() }),
            ("association_probability", PacerParams { association_probability: 1.5, ..default() }),
            ("interval", PacerParams { interval: Span::ZERO, ..default() }),
            ("token_interval", PacerParams { token_interval: Span::from_secs(2), ..default() }),
            ("initial_rate", PacerParams { initial_rate: Rate::from_gbps(2_000), ..default() }),
            ("min_rate", PacerParams { min_rate: Some(Rate::from_bps(1)), ..default() }),
        ] {
            assert_eq!(params.validate().unwrap_err().key, key);
        }
    }
}
