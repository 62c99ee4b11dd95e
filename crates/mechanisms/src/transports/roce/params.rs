//! [`RoceParams`]: the `transport.roce` table of a scenario.

use plimsoll_units::{Bytes, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::controller::{DcqcnForm, DcqcnParams, HpccParams, PowerTcpParams, RoceDctcpParams, TimelyParams};
use crate::InvalidParam;

/// Queue pairs of RoCEv2, for the kinds of transport that are controllers of RoCE: `dcqcn`, `hpcc`, `timely`,
/// `powertcp`, `theta-powertcp`, `roce-dctcp` and `roce-swift`. Of the other keys of `[transport]`, `segment` (the
/// MTU's payload), `header`, `connections` and `priority` apply; `dctcp` for `roce-dctcp`, and `swift` and
/// `max_window` for `roce-swift`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RoceParams {
    /// What a queue pair may have outstanding: `off`, as much as its rate lets it send; `bdp`, the bytes that its
    /// rate sends in `base_rtt` (as DCQCN+win, TIMELY+win and DCTCP of HPCC's paper, section 5.1). HPCC, PowerTCP and
    /// Swift have windows of their own. Default `off`.
    pub window: RoceWindow,
    /// The base round-trip time T, of windows, HPCC and PowerTCP: more than 0. Default absent: that of an idle path
    /// between the two hosts, with a full packet and its acknowledgement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base_rtt: Option<Span>,
    /// Packets for each acknowledgement: 1 or more. The last packet of a message always has its own. Default 1.
    pub ack_every: u32,
    /// Bytes of an acknowledgement on the wire, without telemetry: 1 to 256 B. Default 60 B, as in HPCC's released
    /// code.
    pub ack_size: Bytes,
    /// The time after which everything outstanding is sent again if no acknowledgement of new data has come: more than
    /// 0. Default 4 ms.
    pub timeout: Span,
    /// The least time between two congestion notification packets (CNPs) for a queue pair; 0 for one a marked packet.
    /// `host.cnp_priority` is their priority. Default absent: 50 us with `dcqcn.form = "paper"` (section 3.1), and 4 us
    /// as in NVIDIA's NICs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cnp_interval: Option<Span>,
    /// DCQCN's rules and timers.
    pub dcqcn: DcqcnParams,
    /// HPCC's target and steps.
    pub hpcc: HpccParams,
    /// TIMELY's thresholds and steps.
    #[serde(skip_serializing_if = "is_default")]
    pub timely: TimelyParams,
    /// PowerTCP's target and steps, for `powertcp` and `theta-powertcp`.
    #[serde(skip_serializing_if = "is_default")]
    pub powertcp: PowerTcpParams,
    /// The steps of `roce-dctcp`.
    #[serde(skip_serializing_if = "is_default")]
    pub dctcp: RoceDctcpParams,
}

impl Default for RoceParams {
    fn default() -> RoceParams {
        RoceParams {
            window: RoceWindow::Off,
            base_rtt: None,
            ack_every: 1,
            ack_size: Bytes::new(60),
            timeout: Span::from_ms(4),
            cnp_interval: None,
            dcqcn: DcqcnParams::default(),
            hpcc: HpccParams::default(),
            timely: TimelyParams::default(),
            powertcp: PowerTcpParams::default(),
            dctcp: RoceDctcpParams::default(),
        }
    }
}

/// Returns whether a controller's keys all have their defaults, so that a scenario of another one need not write them.
fn is_default<P: Default + PartialEq>(params: &P) -> bool {
    *params == P::default()
}

/// The limit of a queue pair's outstanding bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoceWindow {
    /// A queue pair is limited by its rate alone.
    Off,
    /// A queue pair has at most the bytes outstanding that its rate sends in a base round trip.
    Bdp,
}

impl RoceParams {
    /// Returns whether every key has its default, so that a scenario need not write the table.
    pub fn is_default(&self) -> bool {
        *self == RoceParams::default()
    }

    /// Returns the least time between two CNPs for a queue pair.
    pub fn notifies_every(&self) -> Span {
        self.cnp_interval.unwrap_or(match self.dcqcn.form {
            DcqcnForm::Paper => Span::from_us(50),
            DcqcnForm::Nic => Span::from_us(4),
        })
    }

    /// Checks the ranges given at the keys.
    ///
    /// # Errors
    /// Names the first key, within `[transport]`, whose value is outside its range.
    pub fn validate(&self) -> Result<(), InvalidParam> {
        use InvalidParam as Invalid;
        if let Some(rtt) = self.base_rtt {
            Invalid::unless(!rtt.is_zero(), "roce.base_rtt", rtt, "more than 0")?;
        }
        Invalid::unless(self.ack_every >= 1, "roce.ack_every", self.ack_every, "1 or more")?;
        let ok = (1..=256).contains(&self.ack_size.get());
        Invalid::unless(ok, "roce.ack_size", self.ack_size, "1 B to 256 B")?;
        Invalid::unless(!self.timeout.is_zero(), "roce.timeout", self.timeout, "more than 0")?;
        self.dcqcn.validate()?;
        self.hpcc.validate()?;
        self.timely.validate()?;
        self.powertcp.validate()?;
        self.dctcp.validate()
    }
}
