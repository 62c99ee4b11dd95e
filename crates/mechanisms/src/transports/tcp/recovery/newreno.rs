//! NewReno (RFC 6582): as Reno, but fast recovery lasts until everything is acknowledged that was
//! outstanding when it began; each partial ACK sends the next missing segment.

use crate::transports::tcp::config::TcpConfig;
use crate::transports::tcp::sender::{RecoveryPhase, TcpSender};

impl TcpSender {
    /// Handles a full or a partial ACK (RFC 6582, section 3.2, step 3).
    pub(super) fn on_ack_in_recovery_newreno(&mut self, config: &TcpConfig, acked: u64) -> (bool, bool) {
        if self.recover.is_none_or(|recover| self.una >= recover) {
            // Full: at most one segment above the data still outstanding, to avoid a burst.
            let flight = self.nxt - self.una;
            let burst_free = flight.max(config.segment) + config.segment;
            self.set_cwnd_in_recovery(config, self.window.ssthresh.min(burst_free));
            self.phase = RecoveryPhase::Open;
            return (false, true);
        }
        // Partial: deflate by the data that left the network, and add one segment.
        self.resend = true;
        let back = if acked >= config.segment { config.segment } else { 0 };
        self.set_cwnd_in_recovery(config, self.window.cwnd.saturating_sub(acked) + back);
        // Only the first one restarts the timer (the impatient variant).
        let first = !self.partial_seen;
        self.partial_seen = true;
        (false, first)
    }
}
