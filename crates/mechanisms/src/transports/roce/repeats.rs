//! [`Repeats`]: the packets that selective repeat sends again (IRN, Mittal et al., SIGCOMM 2018, section 3.1).
//!
//! ```text
//!           una        repeated_below          lost_below               nxt
//! stream:   |  lost: repeated | lost: to repeat | not known to be lost   |
//!                 ####             ####       ##                              # received: a NAK has named it
//! ```
//!
//! A packet is lost once a NAK has named a later one, without a threshold for reordering, and after a timeout all are
//! that no NAK has named. A lost packet is repeated once: if its repeat is lost as well, it waits for the timeout. In
//! the paper a recovery lasts until everything sent before it is acknowledged, and a loss after that begins another,
//! which repeats the first missing packet whether or not its repeat is under way; here it is not sent twice.

use crate::tcp::Ranges;

/// The losses of a queue pair that are known, and how far they are repaired.
#[derive(Debug, Default)]
pub(super) struct Repeats {
    /// What NAKs have named: the receiver has it, though something before it is missing.
    received: Ranges,
    /// Everything below it that was not received is lost.
    lost_below: u64,
    /// Everything lost below it was sent again.
    repeated_below: u64,
}

impl Repeats {
    /// Everything before `una` is acknowledged.
    pub(super) fn on_ack(&mut self, una: u64) {
        self.received.remove_below(una);
    }

    /// The packet at `una` is missing, and those in `arrived` have come.
    pub(super) fn on_nak(&mut self, una: u64, arrived: &[(u64, u64)]) {
        for &(start, end) in arrived {
            self.received.insert(start.max(una), end);
            self.lost_below = self.lost_below.max(start);
        }
    }

    /// Nothing was heard for a timeout: everything before `max` that was not received is lost.
    pub(super) fn on_timeout(&mut self, una: u64, max: u64) {
        self.lost_below = max;
        self.repeated_below = una;
    }

    /// Returns where the next packet that must be repeated begins.
    pub(super) fn next(&self, una: u64) -> Option<u64> {
        let from = self.repeated_below.max(una);
        if from >= self.lost_below {
            return None;
        }
        let missing = self.received.find(from).map_or(from, |range| range.1);
        (missing < self.lost_below).then_some(missing)
    }

    /// The packet that [`next`](Repeats::next) returned was sent; it ends at `end`.
    pub(super) fn on_sent(&mut self, end: u64) {
        self.repeated_below = end;
    }
}
