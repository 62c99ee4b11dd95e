//! Loss recovery: when duplicate ACKs mean a loss, and the effect of ACKs until it is repaired. One file a scheme; all
//! of them work on the [`Sender`]'s state.

mod newreno;
mod reno;
mod sack;

use plimsoll_units::Time;

use super::config::TcpConfig;
use super::congestion::Cause;
use super::params::{FastRetransmitGuard, Recovery};
use super::sender::{RecoveryPhase, TcpSender};

impl TcpSender {
    /// A duplicate ACK while data is outstanding.
    #[cold]
    pub(super) fn on_duplicate_ack(&mut self, config: &TcpConfig, now: Time) {
        self.dup_acks = self.dup_acks.saturating_add(1);
        match config.params.recovery {
            Recovery::Sack => self.on_duplicate_ack_sack(config, now),
            _ => self.on_duplicate_ack_reno(config, now),
        }
    }

    /// An ACK of new data during fast recovery: whether the window may open for it, and whether the
    /// retransmission timer starts anew.
    #[cold]
    pub(super) fn on_ack_in_recovery(&mut self, config: &TcpConfig, acked: u64) -> (bool, bool) {
        match config.params.recovery {
            Recovery::Reno => self.on_ack_in_recovery_reno(config),
            Recovery::NewReno => self.on_ack_in_recovery_newreno(config, acked),
            Recovery::Sack => self.on_ack_in_recovery_sack(config),
        }
    }

    /// Returns whether the duplicate ACKs may start a fast retransmit (RFC 6582, section 3.2, step 1).
    fn may_fast_retransmit(&self, config: &TcpConfig) -> bool {
        let beyond = self.recover.is_none_or(|recover| self.una > recover);
        match config.params.fast_retransmit_guard {
            FastRetransmitGuard::Recover => beyond,
            FastRetransmitGuard::AfterTimeout => beyond || self.last_cut != Some(Cause::Timeout),
            FastRetransmitGuard::Off => true,
        }
    }

    /// Enters fast recovery (RFC 5681, section 3.2): cut, and the first segment again. True if the
    /// cut lowered ssthresh.
    fn enter_recovery(&mut self, config: &TcpConfig, now: Time) -> bool {
        self.stats.fast_retransmits += 1;
        let lowered = self.cut_for_loss(config, now);
        self.phase = RecoveryPhase::Recovery;
        self.recover = Some(self.max);
        self.resend = true;
        self.partial_seen = false;
        self.restart_timer(now);
        lowered
    }
}
