//! Reno (RFC 5681, section 3.2).
//!
//! The third duplicate ACK halves the window and sends the first segment again; each further one
//! inflates cwnd by a segment, since a segment has left the network; the first ACK of new data, whether
//! it repairs everything or not, ends it with cwnd = ssthresh. Several losses in one window are left to
//! more fast retransmits (if `fast_retransmit_guard` allows) or to the timer.

use plimsoll_units::Time;

use crate::transports::tcp::config::TcpConfig;
use crate::transports::tcp::params::FastRetransmitGuard;
use crate::transports::tcp::sender::{RecoveryPhase, TcpSender};

impl TcpSender {
    /// A duplicate ACK with Reno or NewReno: starts recovery, or inflates the window.
    pub(super) fn on_duplicate_ack_reno(&mut self, config: &TcpConfig, now: Time) {
        if self.phase == RecoveryPhase::Recovery {
            // Step 4.
            self.set_cwnd_in_recovery(config, self.window.cwnd + config.segment);
        } else if self.dup_acks == config.dup_ack_threshold {
            if self.may_fast_retransmit(config) {
                // Steps 2 and 3.
                if self.enter_recovery(config, now) {
                    let left = u64::from(config.dup_ack_threshold) * config.segment;
                    self.set_cwnd_in_recovery(config, self.window.ssthresh + left);
                }
            } else if config.params.fast_retransmit_guard == FastRetransmitGuard::AfterTimeout {
                // Nothing is sent, but further duplicate ACKs inflate the window.
                self.phase = RecoveryPhase::Recovery;
            }
        }
    }

    /// Ends recovery (step 6). The ACK then opens the window as any other.
    pub(super) fn on_ack_in_recovery_reno(&mut self, config: &TcpConfig) -> (bool, bool) {
        self.set_cwnd_in_recovery(config, self.window.cwnd.min(self.window.ssthresh));
        self.leave_loss_when_repaired();
        (true, true)
    }
}
