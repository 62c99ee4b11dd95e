//! [`Config`]: [`TransportParams`] checked and turned into integers.

use plimsoll_units::{Bytes, Rate, Span};

use super::congestion::{Limits, MakeController};
use super::controller::swift::SwiftParams;
use super::params::{
    BackoffReset, Connections, CutBase, EceGrowth, EcnMode, FastRetransmitGuard, Growth, Kind, LossAfterEcn,
    Recovery, RttError, RttSampling, TransportParams, WindowUnit,
};
use super::segment::Segment;
use crate::InvalidParam;

/// The configuration of an endpoint, resolved. Windows are in bytes. [`TransportParams`] describes the fields.
#[derive(Clone, Debug)]
#[expect(missing_docs, reason = "each field is the key of TransportParams with the same name")]
pub struct Config {
    pub kind: Kind,
    pub recovery: Recovery,
    pub growth: Growth,
    pub connections: Connections,
    pub segment: u64,
    pub header_bytes: u32,
    pub count_options: bool,
    pub initial_window: u64,
    pub max_window: u64,
    pub min_window: u64,
    pub min_ssthresh: u64,
    /// `u64::MAX` if slow start has no end.
    pub initial_ssthresh: u64,
    pub window_unit: WindowUnit,
    pub cut_from: CutBase,
    pub app_limited_growth: bool,
    pub idle_restart: bool,
    pub restart_on_write: bool,
    pub pacing_rate: Option<Rate>,
    pub min_rto: Span,
    pub initial_rto: Span,
    pub max_rto: Span,
    pub rto_granularity: Span,
    pub rtt_sampling: RttSampling,
    pub rtt_error: RttError,
    pub backoff_reset: BackoffReset,
    pub syn_loss_rto: Span,
    /// `u32::MAX` if fast retransmit is off.
    pub dup_ack_threshold: u32,
    pub sacked_in_window: bool,
    /// `u32::MAX` if there are no probes.
    pub probe_after: u32,
    pub fast_retransmit_guard: FastRetransmitGuard,
    pub limited_transmit: bool,
    pub loss_after_ecn: LossAfterEcn,
    pub ack_every: u32,
    pub ack_delay: Span,
    pub nagle: bool,
    pub handshake: bool,
    pub ecn: bool,
    pub ecn_on_acks: bool,
    pub echo_marked_acks: bool,
    pub ece_growth: EceGrowth,
    /// DCTCP's gain g in units of 2^-32.
    pub dctcp_gain: u64,
    /// DCTCP's first alpha in units of 2^-30.
    pub initial_alpha: u32,
    pub cubic_c: f64,
    pub cubic_beta: f64,
    pub fast_convergence: bool,
    pub swift: SwiftParams,
    /// Makes the controller of each endpoint instead of `kind`, for experiments in code.
    pub custom: Option<MakeController>,
}

impl TransportParams {
    /// Checks the ranges given at the keys and resolves them.
    pub fn resolve(&self) -> Result<Config, InvalidParam> {
        self.validate()?;
        let segment = self.segment.get();
        let window = |segments: u32| u64::from(segments) * segment;
        Ok(Config {
            kind: self.kind,
            recovery: self.recovery,
            growth: self.growth,
            connections: self.connections,
            segment,
            header_bytes: self.header.get() as u32,
            count_options: self.count_options,
            initial_window: window(self.initial_window),
            max_window: window(self.max_window),
            min_window: window(self.min_window),
            min_ssthresh: window(self.min_ssthresh),
            initial_ssthresh: self.initial_ssthresh.map_or(u64::MAX, window),
            window_unit: self.window_unit,
            cut_from: self.cut_from,
            app_limited_growth: self.app_limited_growth,
            idle_restart: self.idle_restart,
            restart_on_write: self.restart_on_write,
            pacing_rate: self.pacing_rate,
            min_rto: self.min_rto,
            initial_rto: self.initial_rto,
            max_rto: self.max_rto,
            rto_granularity: self.rto_granularity,
            rtt_sampling: self.rtt_sampling,
            rtt_error: self.rtt_error,
            backoff_reset: self.backoff_reset,
            syn_loss_rto: self.syn_loss_rto,
            dup_ack_threshold: if self.dup_ack_threshold == 0 { u32::MAX } else { self.dup_ack_threshold },
            sacked_in_window: self.sacked_in_window,
            probe_after: if self.probe_after == 0 { u32::MAX } else { self.probe_after },
            fast_retransmit_guard: self.fast_retransmit_guard,
            limited_transmit: self.limited_transmit,
            loss_after_ecn: self.loss_after_ecn,
            ack_every: if self.kind.delays_acks() { self.ack_every } else { 1 },
            ack_delay: self.ack_delay,
            nagle: self.nagle,
            handshake: self.handshake,
            ecn: match self.ecn {
                EcnMode::Auto => self.kind == Kind::Dctcp,
                EcnMode::On => true,
                EcnMode::Off => false,
            },
            ecn_on_acks: self.ecn_on_acks,
            echo_marked_acks: self.echo_marked_acks,
            ece_growth: self.ece_growth,
            dctcp_gain: (self.dctcp_gain * TWO_POW_32).round() as u64,
            initial_alpha: (self.initial_alpha * TWO_POW_30).round() as u32,
            cubic_c: self.cubic_c,
            cubic_beta: self.cubic_beta,
            fast_convergence: self.fast_convergence,
            swift: self.swift,
            custom: None,
        })
    }

    /// Checks the ranges given at the keys.
    pub fn validate(&self) -> Result<(), InvalidParam> {
        use InvalidParam as Invalid;
        let (segment, header) = (self.segment.get(), self.header.get());
        Invalid::unless((1..=65_000).contains(&segment), "segment", self.segment, "1 B to 65000 B")?;
        Invalid::unless(header <= 500, "header", self.header, "at most 500 B")?;
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
        let gain = self.dctcp_gain;
        Invalid::unless(gain > 0.0 && gain <= 1.0, "dctcp_gain", gain, "more than 0 and at most 1")?;
        let alpha = self.initial_alpha;
        Invalid::unless((0.0..=1.0).contains(&alpha), "initial_alpha", alpha, "0 to 1")?;
        let ok = self.cubic_c > 0.0 && self.cubic_c.is_finite();
        Invalid::unless(ok, "cubic_c", self.cubic_c, "more than 0")?;
        let beta = self.cubic_beta;
        Invalid::unless(beta > 0.0 && beta < 1.0, "cubic_beta", beta, "more than 0 and less than 1")?;
        if let Some(mptcp) = &self.mptcp {
            mptcp.validate()?;
        }
        self.swift.validate()
    }
}

impl Config {
    /// Bytes of `segment` on the wire: header, counted options, payload.
    #[inline]
    pub fn wire_bytes(&self, segment: &Segment) -> u32 {
        let blocks = segment.sack.as_slice().len() as u32;
        let options = if self.count_options && blocks > 0 { 2 + 8 * blocks } else { 0 };
        self.header_bytes + options + segment.len
    }

    /// Returns the limits in the configuration, for controllers that are called through their trait.
    pub(super) fn limits(&self) -> Limits {
        Limits { segment: self.segment, max_window: self.max_window, initial_window: self.initial_window }
    }

    /// The payload of a full segment.
    pub fn segment_bytes(&self) -> Bytes {
        Bytes::new(self.segment)
    }

    /// `window` rounded down to the unit in which windows are counted.
    #[inline]
    pub(super) fn whole(&self, window: u64) -> u64 {
        match self.window_unit {
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

const TWO_POW_30: f64 = (1u64 << 30) as f64;
const TWO_POW_32: f64 = (1u64 << 32) as f64;
