//! Reno's growth (RFC 5681, section 3.1), which DCTCP shares (RFC 8257, section 3.3).
//!
//! ```text
//! slow start             cwnd += min(acked, SMSS)      count: cwnd += SMSS
//! congestion avoidance   cwnd += SMSS^2 / cwnd         count: cwnd += SMSS every cwnd/SMSS ACKs
//!
//! acked:   slow start    cwnd += acked, up to ssthresh      congestion avoidance   cwnd += SMSS acked / cwnd
//! ```
//! `count` is ns-2's windowOption 0; `acked` is RFC 3465 without its limit, as Linux has it. On a loss Reno halves the
//! window ([`super::Controller`]).

use crate::transports::describe::Description;
use crate::transports::tcp::FAMILY;
use crate::transports::tcp::congestion::Window;
use crate::transports::tcp::params::Growth;

/// The properties of `transport.kind = "tcp"`, Reno, that other code depends on (RFC 5681).
pub const RENO: Description = Description {
    name: "tcp",
    family: &FAMILY,
    kernel_name: Some("reno"),
    delays_acks: true,
    needs_marks: false,
    needs_stamps: false,
};

/// Opens the window for an ACK of `acked` new bytes.
#[inline]
pub(super) fn grow(growth: Growth, segment: u64, window: &mut Window, acked: u64) {
    match (window.in_slow_start(), growth) {
        (true, Growth::Fraction) => window.cwnd += acked.min(segment),
        (true, Growth::Count) => window.cwnd += segment,
        (true, Growth::Acked) => window.cwnd = window.cwnd.saturating_add(acked).min(window.ssthresh),
        // RFC 5681, equation 3: at least one byte.
        (false, Growth::Fraction) => window.cwnd += (segment * segment / window.cwnd).max(1),
        (false, Growth::Acked) => window.cwnd += (segment * acked / window.cwnd).max(1),
        (false, Growth::Count) => {
            window.count += 1;
            if window.count * segment >= window.cwnd {
                window.cwnd += segment;
                window.count = 0;
            }
        }
    }
}
