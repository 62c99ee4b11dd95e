//! [`TransportParams`]: the `[transport]` table of a scenario.

use std::collections::BTreeMap;

use plimsoll_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::controller::{CubicParams, DctcpParams, SwiftParams};
use crate::transports::describe::Family;
use crate::transports::homa::HomaParams;
use crate::transports::mptcp::MptcpParams;
use crate::transports::ndp::NdpParams;
use crate::transports::roce::RoceParams;
use crate::transports::uet::UetParams;
use crate::transports::{Kind, mptcp};

/// The transport that carries every message. The defaults follow the RFCs; a study that ran on ns-2
/// sets the keys where ns-2 does otherwise. Windows are counted in segments of `segment` bytes.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TransportParams {
    /// The congestion controller: `tcp` (RFC 5681), `cubic` (RFC 9438), `dctcp` (RFC 8257) or `swift` (SIGCOMM 2020);
    /// or `datagram`: no TCP but packets that leave at `pacing_rate`, or at the rate of the NIC, and are neither
    /// acknowledged nor repaired, so that a message is lost with any of its packets. Of the other keys, `segment`,
    /// `header` (28 B for UDP), `connections` and `priority` apply to datagrams. `dcqcn`, `hpcc`, `timely`, `powertcp`,
    /// `theta-powertcp`, `roce-dctcp` and `roce-swift` are controllers of RoCE, whose keys are in `roce`; `uet-nscc`,
    /// `uet-rccc` and `uet` are Ultra Ethernet, whose keys are in `uet`; `ndp` and `homa` have their keys in `ndp` and
    /// `homa`. Default `tcp`.
    pub kind: Kind,
    /// How losses are repaired: `reno` (RFC 5681: one loss a window), `newreno` (RFC 6582) or `sack`
    /// (RFC 2018 and 6675). Default `sack`.
    pub recovery: Recovery,
    /// How the window opens, for `tcp` and `dctcp`: `fraction` adds `segment^2 / cwnd` bytes an ACK in congestion
    /// avoidance and at most the acknowledged bytes in slow start (RFC 5681, equations 2 and 3); `count` adds one
    /// segment after every `cwnd` ACKs and one an ACK in slow start (ns-2, windowOption 0); `acked` adds all that the
    /// ACK covers in slow start, and as many `segment / cwnd` of it in congestion avoidance, so that delayed ACKs slow
    /// nothing down (RFC 3465 without its limit; Linux). Default `fraction`.
    pub growth: Growth,
    /// Whether connections are `long-lived`, one for each pair of hosts and workload, or made anew
    /// `per-message`. Default `long-lived`.
    pub connections: Connections,
    /// The 802.1p priority of the packets of workloads that have none in `host.priority`: 0 to 7. Default absent: as
    /// `host` says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<u8>,

    /// Payload of a full segment (SMSS): 1 to 65000 B. Default 1460 B.
    pub segment: Bytes,
    /// Bytes of IP and TCP header on every segment: at most 500 B. Default 40 B; 52 B with timestamps.
    pub header: Bytes,
    /// Whether SACK options take room on the wire: 2 + 8 bytes for each block (RFC 2018, section 3).
    /// Default false.
    pub count_options: bool,

    /// Initial window in segments: 1 or more, at most `max_window` (RFC 6928). Default 10.
    pub initial_window: u32,
    /// Largest window in segments: 1 or more. It caps the outstanding data, as the advertised window does. Default
    /// 65536.
    pub max_window: u32,
    /// Floor of cwnd after a cut for a mark, in segments: 1 or more. 1 is RFC 8257's (section 3.3), where a window of
    /// one segment waits for a delayed ACK (`ack_every`), which starves a flow among many; Linux has 2
    /// (dctcp_ssthresh in net/ipv4/tcp_dctcp.c). Default 2.
    pub min_window: u32,
    /// Floor of ssthresh after any cut, in segments: 1 or more (RFC 5681, equation 4). Default 2.
    pub min_ssthresh: u32,
    /// Initial ssthresh in segments: 1 or more; slow start has no end if absent (RFC 5681, section
    /// 3.1). Default absent.
    pub initial_ssthresh: Option<u32>,
    /// `bytes`: windows are exact. `segments`: the limit of the outstanding data, and ssthresh after a cut, are rounded
    /// down to whole segments, as where windows are counted in packets (ns-2). Default `bytes`.
    pub window_unit: WindowUnit,
    /// The value that a loss cuts: the `flight` (RFC 5681, equation 4) or the `window`, the smaller of cwnd and
    /// `max_window` (ns-2; Linux). With `window`, every timeout cuts ssthresh again; with `flight` only the first of a
    /// series (RFC 5681, section 3.1). Default `flight`.
    pub cut_from: CutBase,
    /// Whether the window also grows while the application, not the window, limits the sender. RFC 7661 and Linux:
    /// false; ns-2: true. Default false.
    pub app_limited_growth: bool,
    /// Whether cwnd falls back to the initial window after an idle time longer than the RTO (RFC 5681,
    /// section 4.1). Default true.
    pub idle_restart: bool,
    /// Whether cwnd is set to the initial window whenever the application writes, so that every message
    /// begins with it, also on a connection that is in use; ssthresh stays. RFC 5681, section 4.1: false;
    /// the ns-2 runs of the HULL, pFabric and QJump authors: true. Default false.
    pub restart_on_write: bool,
    /// The rate at which a connection sends at most, headers included: segments leave one by one, each not before it
    /// has had its time at this rate since the one before (Linux's `SO_MAX_PACING_RATE`; with MPTCP, each subflow).
    /// More than 0, at most 1 Tb/s. Default absent: a sender is not paced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_rate: Option<Rate>,

    /// Smallest RTO (RFC 6298, section 2.4). Default 1 s; data centers use 5 to 200 ms.
    pub min_rto: Span,
    /// RTO before the first measurement (RFC 6298, section 2.1). Default 1 s.
    pub initial_rto: Span,
    /// Largest RTO, also after backing off (RFC 6298, section 2.5). Equal to `min_rto` and `initial_rto` for
    /// a constant RTO without backoff (pFabric: 45 us). Default 60 s.
    pub max_rto: Span,
    /// Clock granularity G: RTO = SRTT + max(G, 4 RTTVAR) (RFC 6298, section 2.3). Default 1 ms.
    pub rto_granularity: Span,
    /// The segments that are timed: `every-ack` (as with timestamps, RFC 7323) or `one-per-window` (RFC 6298, section
    /// 3; ns-2). Retransmitted data is never timed (Karn). Default `every-ack`.
    pub rtt_sampling: RttSampling,
    /// Arithmetic of the estimator's error term: `exact`, or `int16`, which wraps it at 2^15 units of
    /// `rto_granularity` as the 16-bit variable of ns-2 does. Default `exact`.
    pub rtt_error: RttError,
    /// The event that ends exponential backoff: a new RTT `sample` (RFC 6298, section 5.7) or any `ack` of new data
    /// (ns-2, Linux). Default `sample`.
    pub backoff_reset: BackoffReset,
    /// RTO with which data starts if the SYN had to be sent again (RFC 6298, section 5.7). Default 3 s.
    pub syn_loss_rto: Span,

    /// Duplicate ACKs that mean a loss; 0 turns fast retransmit off, so that only timeouts repair
    /// (DeTail, pFabric). RFC 5681, section 3.2. Default 3.
    pub dup_ack_threshold: u32,
    /// Whether data that was selectively acknowledged takes room in the window after a timeout, which then
    /// reaches from the first byte missing to the last sent. RFC 6675, section 4 (pipe): false; ns-2
    /// FullTcp: true. For `sack`. Default false.
    pub sacked_in_window: bool,
    /// Consecutive timeouts, with nothing received in between, from which on only one byte is sent per
    /// RTO, until anything arrives; 0 for never. RFC 6298: never; pFabric's MinTCP: 5. Default 0.
    pub probe_after: u32,
    /// When a further loss may start a fast retransmit: `recover` once the ACK has passed the data outstanding at the
    /// last one or at the last timeout (RFC 6582, section 3.2); `after-timeout` the same, but only a timeout blocks,
    /// and blocked duplicate ACKs still inflate the window (ns-2 FullTcp); `off` always. For `reno` and `newreno`.
    /// Default `recover`.
    pub fast_retransmit_guard: FastRetransmitGuard,
    /// Whether the first two duplicate ACKs each release a new segment (RFC 3042). Default true.
    pub limited_transmit: bool,
    /// The effect of a loss if the last cut was for a mark: `cut` as for any loss; `keep-ssthresh` leaves ssthresh: a
    /// timeout sets cwnd to one segment, a fast retransmit within the window of that cut halves cwnd (ns-2; in the
    /// spirit of RFC 3168, section 6.1.2). Default `cut`.
    pub loss_after_ecn: LossAfterEcn,

    /// Segments per ACK in order: 1 or more (RFC 5681, section 4.2: at most 2). With `swift` every segment has its
    /// ACK. Default 2.
    pub ack_every: u32,
    /// Longest time that an ACK waits for further segments: more than 0, at most 500 ms (RFC 9293,
    /// section 3.8.6.3). Default 40 ms.
    pub ack_delay: Span,
    /// Whether a segment that is not full waits while data is outstanding (RFC 9293, section 3.7.4).
    /// Default false, as data-center services set TCP_NODELAY.
    pub nagle: bool,
    /// Whether connections open with SYN, SYN-ACK, ACK, sent on the first write. If false both ends
    /// start established. Default true.
    pub handshake: bool,
    /// With connections `per-message`: how many of each pair of hosts are open before the first message. A message
    /// that finds none idle opens one more, with its handshake, and that stays open too; window and RTT
    /// begin anew with every message. Default 0: every message opens its own, as `handshake` says.
    pub pool: u32,

    /// ECN: `on`, `off`, or `auto`, which is on for `dctcp` only. With `tcp` and `cubic` it works as in
    /// RFC 3168, section 6.1. Default `auto`.
    pub ecn: EcnMode,
    /// Whether pure ACKs, SYNs and retransmissions can be marked too, against RFC 3168, section 6.1
    /// (RFC 8311 allows it in experiments; ns-2's and ns-3's DCTCP do it). Default false.
    pub ecn_on_acks: bool,
    /// Whether a mark on a pure ACK is echoed as one on data is (ns-2's DCTCP). Default false.
    pub echo_marked_acks: bool,
    /// Whether ACKs with ECE open the window: `never`, or `after-first`, all but the first of a run of
    /// them (ns-2). Default `never` (RFC 3168, section 6.1.2).
    pub ece_growth: EceGrowth,

    /// DCTCP's estimator of the share of marked bytes.
    pub dctcp: DctcpParams,
    /// The curve and the cut of CUBIC.
    pub cubic: CubicParams,
    /// Swift's target delay, and how its window follows it.
    #[serde(skip_serializing_if = "SwiftParams::is_default")]
    pub swift: SwiftParams,
    /// Queue pairs of RoCE, and their controllers.
    #[serde(skip_serializing_if = "RoceParams::is_default")]
    pub roce: RoceParams,
    /// Packet delivery contexts, for the kinds of Ultra Ethernet.
    #[serde(skip_serializing_if = "UetParams::is_default")]
    pub uet: UetParams,
    /// NDP, for the kind `ndp`.
    #[serde(skip_serializing_if = "NdpParams::is_default")]
    pub ndp: NdpParams,
    /// Homa, for the kind `homa`.
    #[serde(skip_serializing_if = "HomaParams::is_default")]
    pub homa: HomaParams,
    /// The congestion controllers of single workloads, by the workload's name, where it is not `kind`:
    /// `workload.background = "cubic"`. All other keys are for all workloads. Default none.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub workload: BTreeMap<String, Kind>,
    /// MPTCP: connections of several subflows. Default absent: plain TCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mptcp: Option<MptcpParams>,
}

impl TransportParams {
    /// Returns the families that connections may be of.
    pub fn families(&self) -> impl Iterator<Item = &'static Family> {
        self.kinds().map(|kind| kind.describe().family).chain(self.mptcp.as_ref().map(|_| &mptcp::FAMILY))
    }

    /// Returns whether `header` has room for the timestamps option (RFC 7323).
    pub fn has_timestamps(&self) -> bool {
        self.header.get() >= TIMESTAMPS_HEADER
    }

    /// Returns the value of a key that a Linux host has for all of its connections, as far as the kernel distinguishes
    /// it; `None` where the transport has none.
    pub fn host_value(&self, key: &str) -> Option<u32> {
        match key {
            "recovery" => Some((self.recovery == Recovery::Sack).into()),
            "dup_ack_threshold" => Some(self.dup_ack_threshold),
            "header" => Some(self.has_timestamps().into()),
            "mptcp.subflows" => self.mptcp.as_ref().map(|mptcp| mptcp.subflows),
            _ => None,
        }
    }

    /// Returns the congestion controllers that some workload may have.
    pub fn kinds(&self) -> impl Iterator<Item = Kind> {
        std::iter::once(self.kind).chain(self.workload.values().copied())
    }
}

/// Bytes of the headers of IPv4 and TCP, with the timestamps option.
const TIMESTAMPS_HEADER: u64 = 52;

impl Default for TransportParams {
    fn default() -> TransportParams {
        TransportParams {
            kind: Kind::Tcp,
            recovery: Recovery::Sack,
            growth: Growth::Fraction,
            connections: Connections::LongLived,
            priority: None,
            segment: Bytes::new(1460),
            header: Bytes::new(40),
            count_options: false,
            initial_window: 10,
            max_window: 65_536,
            min_window: 2,
            min_ssthresh: 2,
            initial_ssthresh: None,
            window_unit: WindowUnit::Bytes,
            cut_from: CutBase::Flight,
            app_limited_growth: false,
            idle_restart: true,
            restart_on_write: false,
            pacing_rate: None,
            min_rto: Span::from_secs(1),
            initial_rto: Span::from_secs(1),
            max_rto: Span::from_secs(60),
            rto_granularity: Span::from_ms(1),
            rtt_sampling: RttSampling::EveryAck,
            rtt_error: RttError::Exact,
            backoff_reset: BackoffReset::Sample,
            syn_loss_rto: Span::from_secs(3),
            dup_ack_threshold: 3,
            sacked_in_window: false,
            probe_after: 0,
            fast_retransmit_guard: FastRetransmitGuard::Recover,
            limited_transmit: true,
            loss_after_ecn: LossAfterEcn::Cut,
            ack_every: 2,
            ack_delay: Span::from_ms(40),
            nagle: false,
            handshake: true,
            pool: 0,
            ecn: EcnMode::Auto,
            ecn_on_acks: false,
            echo_marked_acks: false,
            ece_growth: EceGrowth::Never,
            dctcp: DctcpParams::default(),
            cubic: CubicParams::default(),
            swift: SwiftParams::default(),
            roce: RoceParams::default(),
            uet: UetParams::default(),
            ndp: NdpParams::default(),
            homa: HomaParams::default(),
            workload: BTreeMap::new(),
            mptcp: None,
        }
    }
}

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $($(#[$variant_doc:meta])* $variant:ident,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Serialize, Deserialize, JsonSchema)]
        #[serde(rename_all = "kebab-case")]
        pub enum $name { $($(#[$variant_doc])* $variant,)+ }
    };
}

choice! {
    /// How losses are repaired.
    Recovery {
        /// Fast retransmit and fast recovery, ended by the first ACK of new data (RFC 5681, section 3.2).
        Reno,
        /// Fast recovery that lasts until the whole window is acknowledged (RFC 6582).
        #[serde(rename = "newreno")]
        NewReno,
        /// Selective acknowledgements (RFC 2018, RFC 6675).
        Sack,
    }
}
choice! {
    /// How the window opens.
    Growth {
        /// Each ACK adds a share of a segment, in bytes (RFC 5681).
        Fraction,
        /// Each ACK counts once, for any number of bytes (ns-2).
        Count,
        /// All bytes that an ACK covers count (Linux).
        Acked,
    }
}
choice! {
    /// How long a connection lives.
    Connections {
        /// A connection lasts for the whole run.
        LongLived,
        /// A connection lasts for one message, or one request and its response.
        PerMessage,
    }
}
choice! {
    /// The unit in which windows are counted.
    WindowUnit {
        /// Windows have any number of bytes.
        Bytes,
        /// Windows are rounded to whole segments.
        Segments,
    }
}
choice! {
    /// The value from which a cut for a loss starts.
    CutBase {
        /// The bytes outstanding.
        Flight,
        /// The congestion window.
        Window,
    }
}
choice! {
    /// The segments that are timed.
    RttSampling {
        /// Every segment that is not sent twice is timed.
        EveryAck,
        /// One segment is timed at a time.
        OnePerWindow,
    }
}
choice! {
    /// Arithmetic of the RTT estimator's error term.
    RttError {
        /// The error term does not overflow.
        Exact,
        /// The error term wraps at 16 bits.
        Int16,
    }
}
choice! {
    /// The event that ends exponential backoff.
    BackoffReset {
        /// A new RTT sample ends it.
        Sample,
        /// Any ACK of new data ends it.
        Ack,
    }
}
choice! {
    /// When a fast retransmit may follow another.
    FastRetransmitGuard {
        /// Once the ACK has passed the recovery point.
        Recover,
        /// As `Recover`, but only after a timeout.
        AfterTimeout,
        /// A fast retransmit may follow another at any time.
        Off,
    }
}
choice! {
    /// The effect of a loss on ssthresh after a cut for a mark.
    LossAfterEcn {
        /// The loss cuts ssthresh again.
        Cut,
        /// The loss leaves ssthresh as it is.
        KeepSsthresh,
    }
}
choice! {
    /// Whether ECN is used.
    EcnMode {
        /// DCTCP uses ECN, the other controllers do not.
        Auto,
        /// Every controller uses ECN.
        On,
        /// No controller uses ECN.
        Off,
    }
}
choice! {
    /// Whether ACKs with ECE open the window.
    EceGrowth {
        /// No ACK with ECE opens the window.
        Never,
        /// All ACKs with ECE but the first of a run open the window.
        AfterFirst,
    }
}
