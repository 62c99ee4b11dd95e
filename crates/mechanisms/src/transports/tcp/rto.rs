//! [`Rto`]: the retransmission timer's length (RFC 6298), and the timed data from which it is computed.
//!
//! ```text
//! first sample R:   SRTT = R                     RTTVAR = R / 2
//! later:            RTTVAR += (|SRTT - R| - RTTVAR) / 4     SRTT += (R - SRTT) / 8
//! RTO = min(max(SRTT + max(G, 4 RTTVAR), min_rto) x 2^backoff, max_rto)
//! ```

use std::collections::VecDeque;

use plimsoll_memory::prefetch_for_later;
use plimsoll_units::{Span, Time};

use super::config::TcpConfig;
use super::params::{BackoffReset, RttError, RttSampling};

/// The RTT estimator, the backoff, and the segments being timed.
#[derive(Debug)]
pub(super) struct Rto {
    /// The smoothed RTT; zero before the first sample.
    srtt: Span,
    rttvar: Span,
    /// The RTO without backoff.
    base: Span,
    backoff: u32,
    /// The timer's length: `base` backed off.
    current: Span,
    /// End of the timed segment and when it was sent, for one sample a window; an end of 0 means none.
    timed: (u64, Time),
    /// The same for every segment, for a sample with every ACK.
    log: VecDeque<(u64, Time)>,
}

impl Rto {
    pub(super) fn new(config: &TcpConfig) -> Rto {
        let base = config.params.initial_rto.min(config.params.max_rto);
        Rto {
            srtt: Span::ZERO,
            rttvar: Span::ZERO,
            base,
            backoff: 0,
            current: base,
            timed: (0, Time::ZERO),
            log: VecDeque::new(),
        }
    }

    /// Returns the smoothed RTT; zero before the first sample.
    pub(super) fn srtt(&self) -> Span {
        self.srtt
    }

    /// Returns the timer's length, backed off.
    #[inline]
    pub(super) fn current(&self) -> Span {
        self.current
    }

    /// Doubles the timer's length, up to `max_rto` (RFC 6298, section 5.5).
    pub(super) fn back_off(&mut self, config: &TcpConfig) {
        self.backoff = (self.backoff + 1).min(MAX_BACKOFF);
        self.current = self.base.saturating_mul(1 << self.backoff).min(config.params.max_rto);
    }

    /// Prefetches the segments that are timed.
    #[inline]
    pub(super) fn prefetch(&self) {
        let (front, behind) = self.log.as_slices();
        for end in [front.first(), behind.last().or(front.last())].into_iter().flatten() {
            prefetch_for_later(end);
        }
    }

    fn end_backoff(&mut self) {
        self.backoff = 0;
        self.current = self.base;
    }

    /// RFC 6298, section 5.7: the RTO to start with if the handshake needed a retransmission.
    pub(super) fn after_syn_loss(&mut self, config: &TcpConfig) {
        self.base = self.base.max(config.params.syn_loss_rto).min(config.params.max_rto);
        self.end_backoff();
    }

    /// New data up to `end` was sent.
    #[inline]
    pub(super) fn on_sent(&mut self, config: &TcpConfig, now: Time, end: u64) {
        match config.params.rtt_sampling {
            RttSampling::EveryAck => self.log.push_back((end, now)),
            RttSampling::OnePerWindow => {
                if self.timed.0 == 0 {
                    self.timed = (end, now);
                }
            }
        }
    }

    /// Handles a retransmission: the data being timed could be acknowledged by either copy (Karn's algorithm; RFC 6298,
    /// section 3). Data sent from now on is timed again.
    #[inline]
    pub(super) fn on_retransmitted(&mut self) {
        self.timed.0 = 0;
        self.log.clear();
    }

    /// New data up to `ack` was acknowledged. The sample taken, if any: with delayed ACKs, of the
    /// oldest segment covered (RFC 7323, section 4.3).
    #[inline]
    pub(super) fn on_ack(&mut self, config: &TcpConfig, now: Time, ack: u64) -> Option<Span> {
        if self.backoff > 0 && config.params.backoff_reset == BackoffReset::Ack {
            self.end_backoff();
        }
        let mut sent = None;
        match config.params.rtt_sampling {
            RttSampling::EveryAck => {
                while let Some(&(end, at)) = self.log.front() {
                    if end > ack {
                        break;
                    }
                    sent = sent.or(Some(at));
                    self.log.pop_front();
                }
            }
            RttSampling::OnePerWindow => {
                if self.timed.0 != 0 && self.timed.0 <= ack {
                    sent = Some(self.timed.1);
                    self.timed.0 = 0;
                }
            }
        }
        let sample = now.saturating_since(sent?);
        self.sample(config, sample);
        Some(sample)
    }

    /// Updates SRTT, RTTVAR and RTO with a sample (RFC 6298, sections 2.2 and 2.3).
    #[inline]
    pub(super) fn sample(&mut self, config: &TcpConfig, rtt: Span) {
        if self.srtt.is_zero() {
            self.srtt = rtt.max(Span::from_ps(1));
            self.rttvar = rtt / 2;
        } else {
            let error = wrapped(config, rtt.as_ps() as i64 - self.srtt.as_ps() as i64);
            let (var, srtt) = (self.rttvar.as_ps() as i64, self.srtt.as_ps() as i64);
            self.rttvar = Span::from_ps((var + (error.abs() - var) / 4).max(0) as u64);
            self.srtt = Span::from_ps((srtt + error / 8).max(1) as u64);
        }
        let margin = config.params.rto_granularity.max(self.rttvar * 4);
        self.base = (self.srtt + margin).max(config.params.min_rto).min(config.params.max_rto);
        self.end_backoff();
    }
}

/// `error` as the arithmetic in use holds it.
#[inline]
fn wrapped(config: &TcpConfig, error: i64) -> i64 {
    match config.params.rtt_error {
        RttError::Exact => error,
        RttError::Int16 => {
            let tick = config.params.rto_granularity.as_ps() as i64;
            i64::from((error / tick) as i16) * tick
        }
    }
}

/// The most doublings: beyond any `max_rto` that makes sense, and a shift that cannot overflow.
const MAX_BACKOFF: u32 = 20;
