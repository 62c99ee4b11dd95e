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
    /// What carries a message: `write`, a WRITE with immediate data, or a SEND whose receive was posted, by its sender;
    /// `read`, a READ by its receiver, which sends a request of `header` and 16 B first. Default `write`.
    #[serde(skip_serializing_if = "RoceOperation::is_write")]
    pub operation: RoceOperation,
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
    /// Bytes of an acknowledgement on the wire, without what ports have added to the data (`port.*.int`): 1 to 256 B.
    /// Default 60 B, as in HPCC's released code.
    pub ack_size: Bytes,
    /// Bytes that each data packet carries for telemetry from its NIC on, beside `header`: 0 to 256 B. They are not in
    /// the ideal completion time. HPCC's released code has 42 B, acknowledgements of 88 B, and ports that add nothing:
    /// `int = { header = "0B", hop = "0B" }`. Default 0 B: ports add what they write.
    pub telemetry_room: Bytes,
    /// What is sent again after a loss: `go-back-n`, everything from the first packet that is missing, or `selective`,
    /// the missing packets alone (IRN, Mittal et al., SIGCOMM 2018). Default `go-back-n`.
    pub repair: RoceRepair,
    /// The cap and the timeouts of selective repeat.
    pub selective: SelectiveParams,
    /// The time after which go-back-N sends everything outstanding again if no acknowledgement of new data has come:
    /// more than 0. Default 4 ms.
    pub timeout: Span,
    /// The least time between two congestion notification packets (CNPs) for a queue pair; 0 for one a marked packet.
    /// `host.cnp_priority` is their priority. Default absent: 50 us with `dcqcn.form = "paper"` (section 3.1), and 4 us
    /// as in NVIDIA's NICs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cnp_interval: Option<Span>,
    /// The time that a receiver's NIC takes to generate a CNP: it leaves so long after the marked packet has arrived.
    /// Default 0.
    pub cnp_generation_delay: Span,
    /// The time that a sender's NIC takes to react to a CNP: it acts on the rate so long after it has arrived. Default
    /// 0.
    pub cnp_delay: Span,
    /// The limits of a host's NIC.
    pub nic: NicParams,
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
            operation: RoceOperation::Write,
            window: RoceWindow::Off,
            base_rtt: None,
            ack_every: 1,
            ack_size: Bytes::new(60),
            telemetry_room: Bytes::ZERO,
            repair: RoceRepair::GoBackN,
            selective: SelectiveParams::default(),
            timeout: Span::from_ms(4),
            cnp_interval: None,
            cnp_generation_delay: Span::ZERO,
            cnp_delay: Span::ZERO,
            nic: NicParams::default(),
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

/// The operation that carries the messages of a transport.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoceOperation {
    /// The sender of a message posts it.
    Write,
    /// The receiver of a message asks for it.
    Read,
}

impl RoceOperation {
    #[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
    fn is_write(&self) -> bool {
        *self == RoceOperation::Write
    }
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

/// The rule by which a queue pair sends lost packets again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RoceRepair {
    /// A receiver drops what is not in order, and a sender goes back to the first packet that is missing.
    GoBackN,
    /// A receiver keeps what is not in order, and a sender repeats the packets that are missing.
    Selective,
}

/// Selective repeat as in IRN: at most `cap` bytes are outstanding, a NAK for each packet out of order names it, and a
/// missing packet is sent again once, and once more after each timeout.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct SelectiveParams {
    /// The bytes that a queue pair may have outstanding, beside its window: more than 0. Default absent: what its NIC
    /// sends in `base_rtt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap: Option<Bytes>,
    /// The number of outstanding packets up to which `timeout_low` applies. Default 3.
    pub few: u32,
    /// The time without an acknowledgement of new data after which missing packets are sent again while `few` or fewer
    /// are outstanding: more than 0, and longer than a round trip. Default 100 us.
    pub timeout_low: Span,
    /// The same time while more are outstanding: `timeout_low` or more. Default 320 us.
    pub timeout_high: Span,
}

impl Default for SelectiveParams {
    fn default() -> SelectiveParams {
        SelectiveParams {
            cap: None,
            few: 3,
            timeout_low: Span::from_us(100),
            timeout_high: Span::from_us(320),
        }
    }
}

impl SelectiveParams {
    fn validate(&self) -> Result<(), InvalidParam> {
        use InvalidParam as Invalid;
        if let Some(cap) = self.cap {
            Invalid::unless(cap > Bytes::ZERO, "roce.selective.cap", cap, "more than 0 B")?;
        }
        let (low, high) = (self.timeout_low, self.timeout_high);
        Invalid::unless(!low.is_zero(), "roce.selective.timeout_low", low, "more than 0")?;
        Invalid::unless(high >= low, "roce.selective.timeout_high", high, "`timeout_low` or more")
    }
}

/// What a NIC can do at a time.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct NicParams {
    /// The time from the posting of a message (the doorbell) until its first packet may leave: the NIC reads the work
    /// request and the data. Messages of a queue pair that wait are read meanwhile. Of a READ, the time until its
    /// request may leave. Default 0.
    pub message_start: Span,
    /// How many queue pairs a NIC sends from at a time: 1 or more. The others wait in line: one takes the place of
    /// another that has sent a message to its end or `turn` bytes, or has no data left. Default absent: all at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub active: Option<u32>,
    /// The payload after which a queue pair gives its place to one in line, and joins the end of the line: more than 0.
    /// Flows without an end need it with `active`. Default absent: a message to its end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn: Option<Bytes>,
    /// How many READs of a queue pair may be requested and not complete: 1 or more. Default 16, a common limit of NICs
    /// (`max_rd_atomic` of a queue pair).
    #[serde(skip_serializing_if = "is_default_reads")]
    pub outstanding_reads: u32,
}

impl Default for NicParams {
    fn default() -> NicParams {
        NicParams { message_start: Span::ZERO, active: None, turn: None, outstanding_reads: READS_DEFAULT }
    }
}

/// The default of `nic.outstanding_reads`.
const READS_DEFAULT: u32 = 16;

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_default_reads(reads: &u32) -> bool {
    *reads == READS_DEFAULT
}

impl NicParams {
    fn validate(&self) -> Result<(), InvalidParam> {
        let active = self.active.unwrap_or(1);
        InvalidParam::unless(active >= 1, "roce.nic.active", active, "1 or more")?;
        let turn = self.turn.unwrap_or(Bytes::new(1));
        InvalidParam::unless(turn > Bytes::ZERO, "roce.nic.turn", turn, "more than 0 B")?;
        let reads = self.outstanding_reads;
        InvalidParam::unless(reads >= 1, "roce.nic.outstanding_reads", reads, "1 or more")
    }
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
        let room = self.telemetry_room;
        Invalid::unless(room.get() <= 256, "roce.telemetry_room", room, "0 B to 256 B")?;
        Invalid::unless(!self.timeout.is_zero(), "roce.timeout", self.timeout, "more than 0")?;
        self.selective.validate()?;
        self.nic.validate()?;
        self.dcqcn.validate()?;
        self.hpcc.validate()?;
        self.timely.validate()?;
        self.powertcp.validate()?;
        self.dctcp.validate()
    }
}
