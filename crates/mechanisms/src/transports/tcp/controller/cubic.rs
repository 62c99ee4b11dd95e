//! CUBIC (RFC 9438): the window is a cubic function of the time since the last cut.
//!
//! ```text
//! W_cubic(t) = C (t - K)^3 + W_max,   K = cbrt((W_max - cwnd_epoch) / C)        segments, seconds
//! each ACK:   target = W_cubic(t + RTT) within [cwnd, 1.5 cwnd],  cwnd += (target - cwnd) / cwnd
//! or, if W_cubic(t) is below it, the window that Reno would have (section 4.3)
//! ```
//!
//! Floating point, with `libm`'s cube root, so that every machine computes the same.

use plimsoll_units::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::transports::describe::Description;
use crate::transports::tcp::FAMILY;
use crate::transports::tcp::congestion::{Ack, Cause, Cut, Limits, Window};

/// The properties of `transport.kind = "cubic"` that other code depends on (RFC 9438).
pub const CUBIC: Description = Description {
    name: "cubic",
    family: &FAMILY,
    kernel_name: Some("cubic"),
    delays_acks: true,
    needs_marks: false,
    needs_stamps: false,
};

/// The parameters of CUBIC (RFC 9438), in `[transport.cubic]`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct CubicParams {
    /// The constant C, in segments / s^3: more than 0 (RFC 9438, section 5). Default 0.4.
    pub c: f64,
    /// Multiplicative decrease: more than 0, less than 1 (RFC 9438, section 4.6). Default 0.7.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub beta: f64,
    /// Fast convergence (RFC 9438, section 4.7). Default true.
    pub fast_convergence: bool,
}

impl Default for CubicParams {
    fn default() -> CubicParams {
        CubicParams { c: 0.4, beta: 0.7, fast_convergence: true }
    }
}

impl CubicParams {
    /// Checks the ranges given at the keys.
    ///
    /// # Errors
    /// Names the first key, within `[transport]`, whose value is outside its range.
    pub fn validate(&self) -> Result<(), InvalidParam> {
        let CubicParams { c, beta, .. } = *self;
        InvalidParam::unless(c > 0.0 && c.is_finite(), "cubic.c", c, "more than 0")?;
        InvalidParam::unless(beta > 0.0 && beta < 1.0, "cubic.beta", beta, "more than 0 and less than 1")
    }
}

/// The state of CUBIC; windows are in segments.
#[derive(Clone, Debug)]
pub struct Cubic {
    /// Window just before the last cut, lowered by fast convergence.
    w_max: f64,
    /// Seconds until W_cubic reaches `w_max`.
    k: f64,
    /// When congestion avoidance began; `Time::MAX` outside of it.
    epoch_start: Time,
    /// Reno's window since `epoch_start`.
    w_est: f64,
    /// Window just before the last cut.
    cwnd_prior: f64,
    /// Growth below a byte, not yet given to cwnd.
    carry: f64,
    /// True if congestion avoidance next begins at `w_max`: after a timeout, and after a slow start that ended without
    /// a loss.
    flat_start: bool,
}

impl Default for Cubic {
    fn default() -> Cubic {
        Cubic {
            w_max: 0.0,
            k: 0.0,
            epoch_start: Time::MAX,
            w_est: 0.0,
            cwnd_prior: 0.0,
            carry: 0.0,
            flat_start: true,
        }
    }
}

impl Cubic {
    /// W_cubic at `t` seconds into the epoch (RFC 9438, equation 1).
    fn w_cubic(&self, c: f64, t: f64) -> f64 {
        let x = t - self.k;
        c * (x * x * x) + self.w_max
    }

    /// Opens the window in congestion avoidance (RFC 9438, sections 4.2 to 4.5).
    pub(super) fn grow(&mut self, params: &CubicParams, segment: u64, window: &mut Window, ack: &Ack) {
        let segment = segment as f64;
        let cwnd = window.cwnd as f64 / segment;
        if self.epoch_start == Time::MAX {
            self.start_epoch(params.c, cwnd, ack.now);
        }
        let t = ack.now.saturating_since(self.epoch_start).as_secs_f64();
        let acked = ack.acked as f64 / segment;

        // Section 4.3: Reno's window. Equal shares need a smaller step until it has caught up.
        let beta = params.beta;
        let step = if self.w_est >= self.cwnd_prior { 1.0 } else { 3.0 * (1.0 - beta) / (1.0 + beta) };
        self.w_est += step * acked / cwnd;

        if self.w_cubic(params.c, t) < self.w_est {
            self.carry = 0.0;
            window.cwnd = window.cwnd.max((self.w_est * segment) as u64);
            return;
        }
        // Sections 4.4 and 4.5.
        let target = self.w_cubic(params.c, t + ack.srtt.as_secs_f64()).clamp(cwnd, 1.5 * cwnd);
        self.carry += (target - cwnd) / cwnd * acked * segment;
        let whole = self.carry as u64;
        self.carry -= whole as f64;
        window.cwnd += whole;
    }

    fn start_epoch(&mut self, c: f64, cwnd: f64, now: Time) {
        self.epoch_start = now;
        self.w_est = cwnd;
        self.carry = 0.0;
        if self.flat_start || self.w_max <= cwnd {
            // Sections 4.8 and 4.10: the plateau is here.
            self.k = 0.0;
            self.w_max = cwnd;
        } else {
            self.k = libm::cbrt((self.w_max - cwnd) / c);
        }
        self.flat_start = false;
    }

    /// Returns the window after a cut (RFC 9438, sections 4.6, 4.7 for fast convergence, 4.8 for a timeout).
    pub(super) fn cut(&mut self, params: &CubicParams, limits: &Limits, window: &Window, cut: &Cut) -> u64 {
        let cwnd = window.cwnd.min(limits.max_window) as f64 / limits.segment as f64;
        let beta = params.beta;
        self.cwnd_prior = cwnd;
        self.w_max =
            if params.fast_convergence && cwnd < self.w_max { cwnd * (1.0 + beta) / 2.0 } else { cwnd };
        self.epoch_start = Time::MAX;
        self.flat_start = cut.cause == Cause::Timeout;
        (cut.base as f64 * beta) as u64
    }

    /// Leaves idle time out of the epoch (RFC 9438, section 5.8).
    pub(super) fn on_restart(&mut self, idle: Span) {
        if self.epoch_start != Time::MAX {
            self.epoch_start = self.epoch_start.saturating_add(idle);
        }
    }
}
