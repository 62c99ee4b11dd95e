//! [`TcpConfig`]: [`TransportParams`] checked and turned into integers.

use plimsoll_units::{Bytes, Rate, Span};

use super::congestion::{Limits, MakeController};
use super::params::{Connections, EcnMode, RttError, TransportParams, WindowUnit};
use super::segment::TcpSegment;
use crate::InvalidParam;
use crate::transports::Kind;
use crate::transports::describe::{Carrier, Feature};
use crate::transports::entropy::EntropyChoice;
use crate::transports::homa::HomaConfig;
use crate::transports::ndp::NdpConfig;
use crate::transports::roce::{RoceConfig, RoceController};
use crate::transports::uet::UetConfig;

/// The configuration of an endpoint: the parameters, and what resolving makes of some. Windows are in bytes.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each field is made of the key of TransportParams with the same name")]
pub struct TcpConfig {
    /// The parameters, which [`TransportParams::validate`] has accepted.
    pub params: TransportParams,
    pub segment: u64,
    /// Bytes of a segment with data beside its payload, options apart.
    pub header_bytes: u32,
    /// Bytes of a segment without data, options apart.
    pub ack_bytes: u32,
    pub initial_window: u64,
    pub max_window: u64,
    pub min_window: u64,
    pub min_ssthresh: u64,
    /// The first ssthresh in bytes; `u64::MAX` if slow start has no end.
    pub initial_ssthresh: u64,
    /// The duplicate ACKs that start a fast retransmit; `u32::MAX` if it is off.
    pub dup_ack_threshold: u32,
    /// The timeouts in a row from which on only one byte is sent per RTO; `u32::MAX` for never.
    pub probe_after: u32,
    pub ack_every: u32,
    pub ecn: bool,
    /// DCTCP's gain g in units of 2^-32.
    pub dctcp_gain: u64,
    /// DCTCP's first alpha in units of 2^-30.
    pub initial_alpha: u32,
    /// Makes the controller of each endpoint instead of `kind`, for experiments in code.
    pub custom: Option<MakeController>,
    /// What queue pairs share, for the kinds of RoCE.
    pub roce: RoceConfig,
    /// What packet delivery contexts share, for the kinds of Ultra Ethernet.
    pub uet: UetConfig,
    /// What connections of NDP share.
    pub ndp: NdpConfig,
    /// What messages share, for Homa.
    pub homa: HomaConfig,
}

impl TransportParams {
    /// Checks the ranges given at the keys and resolves them.
    pub fn resolve(&self) -> Result<TcpConfig, InvalidParam> {
        self.validate()?;
        let segment = self.segment.get();
        let window = |segments: u32| u64::from(segments) * segment;
        let or_never = |count: u32| if count == 0 { u32::MAX } else { count };
        let (header, ack) = match self.kind.describe().family.carrier {
            Carrier::Stack => (self.header, self.header),
            Carrier::Roce => (self.header + self.roce.telemetry_room, self.roce.ack_size),
            Carrier::Uet => (self.header, self.uet.control_size),
            Carrier::Ndp => (self.header, self.ndp.control_size),
            Carrier::Homa => (self.header, self.homa.control_size),
        };
        let uses_marks = self.kind.describe().needs_marks && self.ecn != EcnMode::Off;
        Ok(TcpConfig {
            segment,
            header_bytes: header.get() as u32,
            ack_bytes: ack.get() as u32,
            initial_window: window(self.initial_window),
            max_window: window(self.max_window),
            min_window: window(self.min_window),
            min_ssthresh: window(self.min_ssthresh),
            initial_ssthresh: self.initial_ssthresh.map_or(u64::MAX, window),
            dup_ack_threshold: or_never(self.dup_ack_threshold),
            probe_after: or_never(self.probe_after),
            ack_every: if self.kind.describe().delays_acks { self.ack_every } else { 1 },
            ecn: match self.ecn {
                EcnMode::Auto => self.kind.describe().needs_marks,
                EcnMode::On => true,
                EcnMode::Off => false,
            },
            dctcp_gain: self.dctcp.scaled_gain(),
            initial_alpha: self.dctcp.scaled_alpha(),
            custom: None,
            roce: RoceConfig {
                controller: match self.kind {
                    Kind::Hpcc => RoceController::Hpcc,
                    Kind::Timely => RoceController::Timely,
                    Kind::Powertcp => RoceController::PowerTcp,
                    Kind::ThetaPowertcp => RoceController::ThetaPowerTcp,
                    Kind::RoceDctcp => RoceController::Dctcp,
                    Kind::RoceSwift => RoceController::Swift,
                    _ => RoceController::Dcqcn,
                },
                uses_marks,
                payload: segment,
                header: header.get(),
                dctcp: self.dctcp,
                swift: self.swift,
                max_window: window(self.max_window),
                params: self.roce.clone(),
            },
            uet: UetConfig {
                has_window: self.kind != Kind::UetRccc,
                has_credit: self.kind != Kind::UetNscc,
                uses_marks,
                payload: segment,
                header: header.get(),
                params: self.uet.clone(),
            },
            ndp: NdpConfig { payload: segment, params: self.ndp.clone() },
            homa: HomaConfig::new(segment, header.get(), &self.homa),
            params: self.clone(),
        })
    }

    /// Checks the ranges given at the keys.
    pub fn validate(&self) -> Result<(), InvalidParam> {
        use InvalidParam as Invalid;
        let (segment, header) = (self.segment.get(), self.header.get());
        Invalid::unless((1..=65_000).contains(&segment), "segment", self.segment, "1 B to 65000 B")?;
        Invalid::unless(header <= 500, "header", self.header, "at most 500 B")?;
        let priority = self.priority.unwrap_or_default();
        Invalid::unless(priority <= 7, "priority", priority, "0 to 7")?;
        let pools = self.connections == Connections::PerMessage && self.handshake;
        Invalid::unless(
            self.pool == 0 || pools,
            "pool",
            self.pool,
            "0, unless connections are `per-message` and have a handshake",
        )?;
        let (first, largest) = (self.initial_window, self.max_window);
        Invalid::unless(largest >= 1, "max_window", largest, "1 segment or more")?;
        let ok = (1..=largest).contains(&first);
        Invalid::unless(ok, "initial_window", first, "1 segment or more, at most `max_window`")?;
        let at_least_one = [
            ("min_window", self.min_window),
            ("min_ssthresh", self.min_ssthresh),
            ("initial_ssthresh", self.initial_ssthresh.unwrap_or(1)),
            ("ack_every", self.ack_every),
        ];
        for (key, segments) in at_least_one {
            Invalid::unless(segments >= 1, key, segments, "1 segment or more")?;
        }
        if let Some(rate) = self.pacing_rate {
            let ok = rate > Rate::ZERO && rate <= Rate::from_gbps(1_000);
            Invalid::unless(ok, "pacing_rate", rate, "more than 0 and at most 1Tbps")?;
        }
        Invalid::unless(!self.min_rto.is_zero(), "min_rto", self.min_rto, "more than 0")?;
        Invalid::unless(self.min_rto <= self.max_rto, "min_rto", self.min_rto, "at most `max_rto`")?;
        Invalid::unless(!self.initial_rto.is_zero(), "initial_rto", self.initial_rto, "more than 0")?;
        let tick = self.rto_granularity;
        let ok = self.rtt_error == RttError::Exact || !tick.is_zero();
        Invalid::unless(ok, "rto_granularity", tick, "more than 0 with `rtt_error = \"int16\"`")?;
        let ok = !self.ack_delay.is_zero() && self.ack_delay <= Span::from_ms(500);
        Invalid::unless(ok, "ack_delay", self.ack_delay, "more than 0 and at most 500ms")?;
        self.dctcp.validate()?;
        self.cubic.validate()?;
        if let Some(mptcp) = &self.mptcp {
            let ok = self.kind.describe().family.excludes(Feature::Subflows).is_none();
            Invalid::unless(
                ok,
                "kind",
                self.kind.name(),
                "a congestion controller of TCP for the subflows of MPTCP",
            )?;
            mptcp.validate()?;
        }
        self.swift.validate()?;
        self.roce.validate()?;
        self.uet.validate()?;
        self.ndp.validate()?;
        self.homa.validate()?;
        let largest = self.homa.unscheduled_header.max(self.homa.scheduled_header);
        let ok = self.kind != Kind::Homa || self.segment > largest;
        Invalid::unless(ok, "segment", self.segment, "more than Homa's headers")
    }
}

impl TcpConfig {
    /// Returns the configuration of connections that are open from the beginning.
    pub fn established(&self) -> TcpConfig {
        let params = TransportParams { handshake: false, ..self.params.clone() };
        TcpConfig { params, ..self.clone() }
    }

    /// Returns whether the configuration is one of the datagram family, which shares sizes and pace with TCP.
    pub fn is_datagram(&self) -> bool {
        self.custom.is_none() && !self.params.kind.describe().family.acknowledges
    }

    /// Bytes of `segment` on the wire: header, counted options, payload.
    #[inline]
    pub fn wire_bytes(&self, segment: &TcpSegment) -> u32 {
        let blocks = segment.sack.as_slice().len() as u32;
        let options = if self.params.count_options && blocks > 0 { 2 + 8 * blocks } else { 0 };
        let header = match segment.len {
            0 if segment.is_read_request() => self.read_request_bytes(),
            0 => self.ack_bytes,
            _ => self.header_bytes,
        };
        header + options + segment.len
    }

    /// Returns whether packets of a connection take several paths at a time.
    pub fn spreads(&self) -> bool {
        let choice = match self.carrier() {
            Carrier::Uet => self.uet.params.paths.choice,
            Carrier::Ndp => self.ndp.params.paths.choice,
            Carrier::Stack | Carrier::Roce | Carrier::Homa => EntropyChoice::Flow,
        };
        choice != EntropyChoice::Flow
    }

    /// Returns the bytes beside the payload of a segment that the ideal completion time counts: those without room for
    /// telemetry.
    pub fn ideal_header(&self) -> u64 {
        self.params.header.get()
    }

    /// Returns the bytes of the shortest packet on the wire, as the ideal completion time counts them.
    pub fn shortest_frame(&self) -> u64 {
        if self.carrier() == Carrier::Homa { self.homa.params.shortest_frame.get() } else { 0 }
    }

    /// Returns whether the ideal completion time has the first packet of a message lead, as Homa's authors have it, and
    /// not the last one follow.
    pub fn ideal_leads(&self) -> bool {
        self.carrier() == Carrier::Homa
    }

    /// Returns the limits in the configuration, for controllers that are called through their trait.
    pub(super) fn limits(&self) -> Limits {
        Limits { segment: self.segment, max_window: self.max_window, initial_window: self.initial_window }
    }

    /// Returns the payload of a full segment, in bytes.
    pub fn segment_bytes(&self) -> Bytes {
        Bytes::new(self.segment)
    }

    /// `window` rounded down to the unit in which windows are counted.
    #[inline]
    pub(super) fn whole(&self, window: u64) -> u64 {
        match self.params.window_unit {
            WindowUnit::Bytes => window,
            WindowUnit::Segments => window - window % self.segment,
        }
    }

    /// Returns how many segments a received one represents: more than one only after receive offload.
    #[inline]
    pub(super) fn segments_in(&self, len: u32) -> u32 {
        if u64::from(len) <= self.segment { 1 } else { u64::from(len).div_ceil(self.segment) as u32 }
    }
}
