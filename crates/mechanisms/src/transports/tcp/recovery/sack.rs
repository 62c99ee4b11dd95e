//! Recovery with selective acknowledgements (RFC 6675).
//!
//! ```text
//! lost(S)   3 ranges, or more than 2 SMSS bytes, SACKed above S      (3: dup_ack_threshold)
//! pipe      bytes not SACKed that are not lost, and retransmitted bytes
//! send      while pipe + SMSS <= cwnd: lost and not sent again, else new data, else other holes
//! ```

use plimsoll_units::Time;

use crate::transports::tcp::config::TcpConfig;
use crate::transports::tcp::segment::TcpSegment;
use crate::transports::tcp::sender::{RecoveryPhase, SentChunk, TcpSender};

impl TcpSender {
    /// Adds the SACK option to the scoreboard. Returns the bytes newly reported.
    #[inline]
    pub(in crate::transports::tcp) fn on_sack(&mut self, config: &TcpConfig, segment: &TcpSegment) -> u64 {
        let known = self.scoreboard.as_ref().is_some_and(|scoreboard| !scoreboard.sacked.is_empty());
        if segment.sack.is_empty() && !known && self.phase == RecoveryPhase::Open {
            return 0;
        }
        self.update_scoreboard(config, segment)
    }

    #[cold]
    fn update_scoreboard(&mut self, config: &TcpConfig, segment: &TcpSegment) -> u64 {
        let max = self.max;
        let scoreboard = self.scoreboard.get_or_insert_default();
        scoreboard.sacked.remove_below(segment.ack);
        let blocks = segment.sack.as_slice().iter().filter(|(_, end)| *end <= max);
        let new = blocks.map(|&(start, end)| scoreboard.sacked.insert(start.max(segment.ack), end)).sum();
        if self.phase == RecoveryPhase::Recovery {
            scoreboard.set_pipe(config, segment.ack, max);
        }
        new
    }

    /// Starts recovery when a loss is found (RFC 6675, section 5, steps 1 to 4).
    pub(super) fn on_duplicate_ack_sack(&mut self, config: &TcpConfig, now: Time) {
        let (una, max) = (self.una, self.max);
        let Some(scoreboard) = &mut self.scoreboard else { return };
        let enough = self.dup_acks >= config.dup_ack_threshold || scoreboard.find_lost(config) > una;
        // Section 5.1: not again for data that a timeout or the last recovery is repairing.
        let beyond = self.recover.is_none_or(|recover| una > recover);
        if self.phase == RecoveryPhase::Recovery || !enough || !beyond {
            return;
        }
        scoreboard.rescue = 0;
        scoreboard.set_pipe(config, una, max);
        if self.enter_recovery(config, now) {
            self.set_cwnd_in_recovery(config, self.window.ssthresh);
        }
    }

    /// Ends recovery when everything is acknowledged (RFC 6675, section 5, steps A and B).
    pub(super) fn on_ack_in_recovery_sack(&mut self, _config: &TcpConfig) -> (bool, bool) {
        if self.recover.is_none_or(|recover| self.una >= recover) {
            self.phase = RecoveryPhase::Open;
        }
        (false, true)
    }

    /// Returns the next segment to send during recovery (RFC 6675, section 5, step C, and section 4, NextSeg).
    #[cold]
    pub(in crate::transports::tcp) fn next_with_sack(
        &mut self,
        config: &TcpConfig,
        now: Time,
    ) -> Option<SentChunk> {
        let scoreboard = self.scoreboard.as_ref()?;
        let cwnd = self.window.cwnd.min(config.max_window).max(config.segment);
        if scoreboard.pipe + config.segment > cwnd || !self.may_leave(config, now, config.segment) {
            return None;
        }
        let scoreboard = self.scoreboard.as_ref()?;
        let from = scoreboard.high_rxt.max(self.una);
        let hole = scoreboard.sacked.hole(from);
        // Rule 1: lost.
        if let Some((start, end)) = hole.filter(|hole| hole.0 < scoreboard.lost_below) {
            return Some(self.send(config, now, start, (end - start).min(config.segment)));
        }
        // Rule 2: new data.
        let new = (self.written - self.nxt).min(config.segment);
        if new > 0 {
            return Some(self.send(config, now, self.nxt, new));
        }
        // Rule 3: missing, but not yet lost.
        if let Some((start, end)) = hole {
            return Some(self.send(config, now, start, (end - start).min(config.segment)));
        }
        self.rescue(config, now)
    }

    /// Rule 4: once a recovery, the last segment that is missing, in case the tail was lost too.
    fn rescue(&mut self, config: &TcpConfig, now: Time) -> Option<SentChunk> {
        let scoreboard = self.scoreboard.as_mut()?;
        if self.una < scoreboard.rescue
            || scoreboard.high_rxt >= self.max
            || scoreboard.sacked.end() >= self.max
        {
            return None;
        }
        let start = scoreboard.sacked.end().max(self.max.saturating_sub(config.segment)).max(self.una);
        scoreboard.rescue = self.recover.unwrap_or(self.max) + 1;
        let high_rxt = scoreboard.high_rxt;
        let chunk = self.send(config, now, start, self.max - start);
        if let Some(scoreboard) = &mut self.scoreboard {
            scoreboard.high_rxt = high_rxt;
        }
        Some(chunk)
    }
}
