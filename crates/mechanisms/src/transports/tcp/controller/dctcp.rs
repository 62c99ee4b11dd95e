//! DCTCP (RFC 8257, section 3.3): the window is cut in proportion to the share of marked bytes.
//!
//! ```text
//! once a window:  M = marked bytes / acknowledged bytes      alpha <- (1 - g) alpha + g M
//! on ECE:         cwnd <- cwnd x (1 - alpha / 2)             at most once a window
//! on loss:        as Reno (section 3.5)
//! ```
//!
//! # Arithmetic, for a bit-exact version in C
//! All of it is `u64`; alpha and M count 2^-30, g counts 2^-32:
//!
//! ```text
//! M      = (marked << 30) / acked                  marked, acked < 2^34
//! alpha  = alpha - ((alpha x g) >> 32) + ((M x g) >> 32)
//! window = base - ((base x alpha) >> 31)           base < 2^33
//! ```

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::InvalidParam;
use crate::transports::describe::Description;
use crate::transports::tcp::FAMILY;
use crate::transports::tcp::congestion::{Ack, Cause, Cut};

/// The properties of `transport.kind = "dctcp"` that other code depends on (RFC 8257).
pub const DCTCP: Description = Description {
    name: "dctcp",
    family: &FAMILY,
    kernel_name: Some("dctcp"),
    delays_acks: true,
    needs_marks: true,
    needs_stamps: false,
};

/// The parameters of DCTCP (RFC 8257), in `[transport.dctcp]`.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DctcpParams {
    /// Gain g of the estimator: more than 0, at most 1 (RFC 8257, section 4.2). Default 0.0625.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub gain: f64,
    /// Initial alpha: 0 to 1 (RFC 8257, section 3.3: 1; ns-2: 0). Default 1.
    #[schemars(range(min = 0.0, max = 1.0))]
    pub initial_alpha: f64,
}

impl Default for DctcpParams {
    fn default() -> DctcpParams {
        DctcpParams { gain: 0.0625, initial_alpha: 1.0 }
    }
}

impl DctcpParams {
    /// Returns the gain g in units of 2^-32.
    pub(crate) fn scaled_gain(&self) -> u64 {
        (self.gain * (1u64 << GAIN_SHIFT) as f64).round() as u64
    }

    /// Returns the first alpha in units of 2^-30.
    pub(crate) fn scaled_alpha(&self) -> u32 {
        (self.initial_alpha * f64::from(ONE)).round() as u32
    }

    /// Checks the ranges given at the keys.
    ///
    /// # Errors
    /// Names the first key, within `[transport]`, whose value is outside its range.
    pub fn validate(&self) -> Result<(), InvalidParam> {
        let DctcpParams { gain, initial_alpha: alpha } = *self;
        InvalidParam::unless(gain > 0.0 && gain <= 1.0, "dctcp.gain", gain, "more than 0 and at most 1")?;
        InvalidParam::unless((0.0..=1.0).contains(&alpha), "dctcp.initial_alpha", alpha, "0 to 1")
    }
}

/// The estimator of the share of marked bytes.
#[derive(Clone, Debug)]
pub struct DctcpEstimator {
    /// The smoothed share of marked bytes in units of 2^-30.
    alpha: u32,
    bytes_acked: u64,
    bytes_marked: u64,
    /// DCTCP.WindowEnd: the ACK beyond which alpha is next updated.
    window_end: u64,
}

impl DctcpEstimator {
    /// Creates an estimator that begins at `alpha` in units of 2^-30.
    pub(crate) fn new(alpha: u32) -> DctcpEstimator {
        DctcpEstimator { alpha, bytes_acked: 0, bytes_marked: 0, window_end: 0 }
    }

    /// Alpha as a number from 0 to 1.
    pub fn alpha(&self) -> f64 {
        f64::from(self.alpha) / f64::from(ONE)
    }

    /// Counts an ACK, and updates alpha once a window (RFC 8257, section 3.3, steps 1 to 8). `gain` counts 2^-32.
    #[inline]
    pub(crate) fn on_ack(&mut self, gain: u64, ack: &Ack) {
        self.bytes_acked += ack.acked;
        if ack.ece {
            self.bytes_marked += ack.acked;
        }
        if ack.ack > self.window_end {
            self.alpha = updated_alpha(self.alpha, self.bytes_marked, self.bytes_acked, gain);
            self.window_end = ack.nxt.max(ack.ack);
            self.bytes_acked = 0;
            self.bytes_marked = 0;
        }
    }

    pub(super) fn cut(&mut self, cut: &Cut) -> u64 {
        match cut.cause {
            Cause::Ecn => reduced_window(cut.base, self.alpha),
            Cause::Loss => cut.base / 2,
            Cause::Timeout => {
                // The next data sent starts a new observation window.
                self.window_end = cut.una;
                cut.base / 2
            }
        }
    }
}

/// Alpha after a window in which `marked` of `acked` units were marked. Alpha counts 2^-30 and is at most 2^30,
/// `gain` counts 2^-32 and is at most 2^32; `marked` and `acked` are less than 2^34.
#[inline]
pub fn updated_alpha(alpha: u32, marked: u64, acked: u64, gain: u64) -> u32 {
    updated(alpha, (marked << SHIFT) / acked.max(1), gain)
}

/// Returns the window to which a mark cuts `base`, less than 2^33, at `alpha` in 2^-30.
#[inline]
pub fn reduced_window(base: u64, alpha: u32) -> u64 {
    base - ((base * u64::from(alpha)) >> (SHIFT + 1))
}

#[inline]
fn updated(alpha: u32, marked_share: u64, gain: u64) -> u32 {
    let alpha = u64::from(alpha);
    (alpha - ((alpha * gain) >> GAIN_SHIFT) + ((marked_share * gain) >> GAIN_SHIFT)) as u32
}

const SHIFT: u32 = 30;
const GAIN_SHIFT: u32 = 32;
const ONE: u32 = 1 << SHIFT;

#[cfg(test)]
mod tests {
    use super::*;

    const SIXTEENTH: u64 = 1 << (GAIN_SHIFT - 4);

    #[test]
    fn alpha_by_hand() {
        // 1 -> 15/16 with no marks; 0 -> 1/16 with all marked; 1/2 stays at half marked.
        assert_eq!(updated(ONE, 0, SIXTEENTH), ONE / 16 * 15);
        assert_eq!(updated(0, u64::from(ONE), SIXTEENTH), ONE / 16);
        assert_eq!(updated(ONE / 2, u64::from(ONE / 2), SIXTEENTH), ONE / 2);
        // A gain of 1 forgets the past.
        assert_eq!(updated(ONE, 7, 1 << GAIN_SHIFT), 7);
    }

    #[test]
    fn alpha_stays_within_0_and_1() {
        for gain in [1, SIXTEENTH, SIXTEENTH * 5 + 3, 1 << GAIN_SHIFT] {
            let mut alpha = ONE;
            for round in 0..2_000u64 {
                let share = if round % 3 == 0 { u64::from(ONE) } else { round * 77_777 % u64::from(ONE) };
                alpha = updated(alpha, share, gain);
                assert!(alpha <= ONE, "gain {gain}, round {round}: {alpha}");
            }
        }
    }
}
