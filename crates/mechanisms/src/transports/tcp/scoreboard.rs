//! [`Scoreboard`]: the selectively acknowledged data, and the lost holes (RFC 6675, section 4).

use super::config::TcpConfig;
use super::ranges::Ranges;

/// The receiver's reports, and the repairs of the holes.
#[derive(Debug, Default)]
pub(super) struct Scoreboard {
    pub(super) sacked: Ranges,
    /// HighRxt: everything missing below it, and not below the ACK, has been sent again.
    pub(super) high_rxt: u64,
    /// RescueRxt: the ACK beyond which another rescue is allowed.
    pub(super) rescue: u64,
    /// Offsets below it that are not SACKed are lost.
    pub(super) lost_below: u64,
    /// Bytes estimated to be in the network.
    pub(super) pipe: u64,
}

impl Scoreboard {
    /// Everything not SACKed below the result is lost (RFC 6675, section 4, IsLost).
    pub(super) fn find_lost(&self, config: &TcpConfig) -> u64 {
        let threshold = u64::from(config.dup_ack_threshold);
        let (mut ranges, mut bytes) = (0, 0);
        for (start, end) in self.sacked.descending() {
            ranges += 1;
            bytes += end - start;
            if ranges >= threshold || bytes > (threshold - 1) * config.segment {
                return start;
            }
        }
        0
    }

    /// Computes the bytes in the network (RFC 6675, section 4, SetPipe).
    pub(super) fn set_pipe(&mut self, config: &TcpConfig, una: u64, max: u64) {
        self.lost_below = self.find_lost(config).max(una);
        let high_rxt = self.high_rxt.max(una);
        let holes =
            |from: u64, to: u64| to - from - (self.sacked.total_below(to) - self.sacked.total_below(from));
        self.pipe = holes(self.lost_below, max) + holes(una, high_rxt);
    }

    /// Returns the SACKed bytes below `offset`.
    pub(super) fn sacked_below(&self, offset: u64) -> u64 {
        if offset >= self.sacked.end() { self.sacked.total() } else { self.sacked.total_below(offset) }
    }

    /// The first hole at or above `from`: its start, and its end or `end`.
    pub(super) fn next_unsacked(&self, from: u64, end: u64) -> (u64, u64) {
        match self.sacked.hole(from) {
            Some(hole) => hole,
            None => (self.sacked.find(from).map_or(from, |range| range.1), end),
        }
    }

    /// `len` bytes up to `end` were sent again.
    pub(super) fn on_sent(&mut self, end: u64, len: u64) {
        self.high_rxt = self.high_rxt.max(end);
        self.pipe += len;
    }

    /// `len` new bytes were sent.
    #[inline]
    pub(super) fn on_sent_new(&mut self, len: u64) {
        self.pipe += len;
    }
}
