//! [`UetParams`]: the `transport.uet` table of a scenario.

use plimsoll_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::transports::entropy::EntropyParams;

/// Packet delivery contexts of Ultra Ethernet, for the kinds of transport `uet-nscc`, `uet-rccc` and `uet` (both). Of
/// the other keys of `[transport]`, `segment` (4086 B there), `header` (64 B), `connections` and `priority` apply.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct UetParams {
    /// The network's base round-trip time R, from which the constants of congestion control follow: more than 0.
    /// Default absent: the longest of an idle path with a full packet and its acknowledgement, over all hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_rtt: Option<Span>,
    /// The most that may be outstanding, and the credit with which a sender begins: more than 0. Default absent: 1.5
    /// times the bytes that the NIC sends in `base_rtt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_window: Option<Bytes>,
    /// Whether switches trim packets: then the target of the queueing delay is 0.75 R in place of R. Default true.
    pub trimming: bool,
    /// Bytes that arrive, headers included, before a receiver acknowledges unasked; 1 B for every packet. Default
    /// 16,384 B.
    pub ack_after: Bytes,
    /// Bytes of an acknowledgement, a negative one, a grant or a request on the wire: 1 to 256 B. Default 64 B.
    pub control_size: Bytes,
    /// The time without an answer after which a packet is sent again; doubled with each timeout in a row, up to 64
    /// times: more than 0. Default 100 us.
    pub min_rto: Span,
    /// Whether a sender takes packets for lost that many others have overtaken: for networks that do not trim. Default
    /// false.
    pub overtaken_is_lost: bool,
    /// Whether a sender that hears nothing for a while asks what has arrived (a probe), and takes for lost what it sent
    /// before and has not. Default false.
    pub probes: bool,
    /// Whether a message waits for those before it in its connection (ROD). Otherwise it is delivered as soon as it is
    /// whole (RUD). Default false.
    pub ordered: bool,
    /// How the packets of a connection choose their paths.
    pub paths: EntropyParams,
    /// The window of a sender (NSCC).
    pub nscc: NsccParams,
    /// The credit of receivers (RCCC).
    pub rccc: RcccParams,
}

impl Default for UetParams {
    fn default() -> UetParams {
        UetParams {
            base_rtt: None,
            max_window: None,
            trimming: true,
            ack_after: Bytes::new(16_384),
            control_size: Bytes::new(64),
            min_rto: Span::from_us(100),
            overtaken_is_lost: false,
            probes: false,
            ordered: false,
            paths: EntropyParams::default(),
            nscc: NsccParams::default(),
            rccc: RcccParams::default(),
        }
    }
}

/// The window of a sender: NSCC's targets and gains, which defaults derive from R and the rate of the NIC.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NsccParams {
    /// The queueing delay that is aimed at: more than 0. Default absent: 0.75 R where switches trim, otherwise R.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_delay: Option<Span>,
    /// Whether the window falls at once to what arrived in a round trip, if that was little. Default true.
    pub quick_adapt: bool,
    /// Whether the window grows by a share of what is acknowledged while no queue is seen. Default true.
    pub fast_increase: bool,
}

impl Default for NsccParams {
    fn default() -> NsccParams {
        NsccParams { target_delay: None, quick_adapt: true, fast_increase: true }
    }
}

/// The credit that receivers grant (RCCC): its unit, the size of a grant, and the share of the link.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RcccParams {
    /// The unit of credit: 1 B to 16,384 B. A sender asks for at most 10,000 of them ahead, so a window of more than
    /// 2.5 MB needs a larger one than the default. Default 256 B.
    pub quantum: Bytes,
    /// The units that a grant (PULL) has at most: 1 or more. Default 64.
    pub quanta: u32,
    /// The share of its NIC's rate that a receiver grants: more than 0, at most 1. Default 0.99.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub share: f64,
    /// By which factor the links towards hosts together are faster than those above them: 1 to 100. A receiver then
    /// grants less while links before its own trim or mark. Default absent: it always grants its whole share.
    #[schemars(range(min = 1.0, max = 100.0))]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub oversubscription: Option<f64>,
}

impl Default for RcccParams {
    fn default() -> RcccParams {
        RcccParams { quantum: Bytes::new(256), quanta: 64, share: 0.99, oversubscription: None }
    }
}

impl UetParams {
    /// The most quanta for which a sender asks ahead.
    pub const QUANTA_AHEAD: u64 = super::credit_line::QUANTA_AHEAD;

    /// Returns whether every key has its default, so that a scenario need not write the table.
    pub fn is_default(&self) -> bool {
        *self == UetParams::default()
    }

    /// Checks the ranges given at the keys.
    ///
    /// # Errors
    /// Names the first key, within `[transport]`, whose value is outside its range.
    pub fn validate(&self) -> Result<(), InvalidParam> {
        use InvalidParam as Invalid;
        if let Some(rtt) = self.base_rtt {
            Invalid::unless(!rtt.is_zero(), "uet.base_rtt", rtt, "more than 0")?;
        }
        if let Some(window) = self.max_window {
            Invalid::unless(window > Bytes::ZERO, "uet.max_window", window, "more than 0 B")?;
        }
        Invalid::unless(self.ack_after > Bytes::ZERO, "uet.ack_after", self.ack_after, "more than 0 B")?;
        let ok = (1..=256).contains(&self.control_size.get());
        Invalid::unless(ok, "uet.control_size", self.control_size, "1 B to 256 B")?;
        Invalid::unless(!self.min_rto.is_zero(), "uet.min_rto", self.min_rto, "more than 0")?;
        self.paths.validate("uet.paths.values")?;
        if let Some(target) = self.nscc.target_delay {
            Invalid::unless(!target.is_zero(), "uet.nscc.target_delay", target, "more than 0")?;
        }
        let RcccParams { quantum, quanta, share, oversubscription } = self.rccc;
        let ok = (1..=16_384).contains(&quantum.get());
        Invalid::unless(ok, "uet.rccc.quantum", quantum, "1 B to 16384 B")?;
        Invalid::unless(quanta >= 1, "uet.rccc.quanta", quanta, "1 or more")?;
        if let Some(ratio) = oversubscription {
            Invalid::unless((1.0..=100.0).contains(&ratio), "uet.rccc.oversubscription", ratio, "1 to 100")?;
        }
        Invalid::unless(share > 0.0 && share <= 1.0, "uet.rccc.share", share, "more than 0 and at most 1")
    }
}
