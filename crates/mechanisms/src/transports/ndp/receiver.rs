//! [`ReceiveSide`]: packets that arrive in any order, and for each an answer at once and a pull.
//!
//! ```text
//! data ───> ArrivedPackets ──> ACK  ─┐
//! header ────────────────────> NACK ─┴─ one pull more to come: within the answer if the host's pacer is free,
//!                                       otherwise a PULL in its turn; none once the receiver has all
//! ```

use std::collections::VecDeque;

use super::wire::Answer;
use crate::tcp::{Flags, TcpSegment};
use crate::transports::arrived_packets::ArrivedPackets;
use crate::transports::nearest;

/// The receiving half of a connection.
#[derive(Debug, Default)]
pub(super) struct ReceiveSide {
    packets: ArrivedPackets,
    answers: VecDeque<Answer>,
    /// The pulls that are still to be given, and those given from the beginning on.
    owed: u64,
    pulled: u32,
    /// The highest number of a packet behind which nothing was written when it was sent.
    last: Option<u64>,
    /// The highest number of a packet that has arrived, whole or trimmed.
    highest: Option<u64>,
    /// The end is in the list of its host's pacer.
    is_listed: bool,
    /// A pull is to leave in a packet of its own.
    pull_due: bool,
}

impl ReceiveSide {
    /// A data packet arrived, whole or trimmed. Returns the bytes newly in order.
    pub(super) fn on_data(&mut self, segment: &TcpSegment) -> u64 {
        let number = nearest::<32>(segment.ack, self.packets.next());
        self.highest = self.highest.max(Some(number));
        let is_known = self.packets.has(number);
        // The header of a packet that has come whole before, too, is no loss.
        let is_nack = segment.flags.has(Flags::TRIMMED) && !is_known;
        let takes = !is_known && !is_nack;
        if takes && segment.flags.has(Flags::CWR) {
            self.last = self.last.max(Some(number));
        }
        let news = if takes { self.packets.take(number, segment.len) } else { 0 };
        self.owed += 1;
        self.answers.push_back(Answer {
            is_nack,
            number: number as u32,
            entropy: segment.entropy,
            pulled: None,
            was_repeated: segment.flags.has(Flags::RETRANSMISSION),
        });
        news
    }

    /// Returns whether all that was sent has arrived: up to a last packet, and nothing of a later one, behind which more
    /// was written.
    fn is_complete(&self) -> bool {
        self.last.is_some_and(|last| self.packets.next() > last) && self.highest == self.last
    }

    /// Returns whether the answer that leaves next may hold a pull.
    pub(super) fn may_pull_in_answer(&self) -> bool {
        self.owed > 0 && self.answers.back().is_some_and(|answer| answer.pulled.is_none())
    }

    /// Has the latest answer hold a pull.
    pub(super) fn pull_in_answer(&mut self) {
        let pulled = self.give();
        if let Some(answer) = self.answers.back_mut() {
            answer.pulled = Some(pulled);
        }
    }

    fn give(&mut self) -> u32 {
        self.owed -= 1;
        self.pulled = self.pulled.wrapping_add(1);
        self.pulled
    }

    /// Returns whether the end joins the list of its host's pacer; it counts as in it from now on.
    pub(super) fn enlists(&mut self) -> bool {
        if self.is_complete() {
            self.owed = 0;
        }
        let joins = self.owed > 0 && !self.is_listed;
        self.is_listed |= joins;
        joins
    }

    /// Returns whether the end leaves the list of its host's pacer, as its sender has nothing more to send.
    pub(super) fn withdraws(&mut self) -> bool {
        self.is_complete() && std::mem::take(&mut self.is_listed)
    }

    /// The turn of this end has come. Returns whether it gives a pull, which leaves with the next segments.
    pub(super) fn grant(&mut self) -> bool {
        self.is_listed = false;
        self.pull_due = self.owed > 0;
        if self.pull_due {
            self.give();
        }
        self.pull_due
    }

    /// Removes the answer or the pull that is due.
    pub(super) fn take_answer(&mut self) -> Option<TcpSegment> {
        let next = self.packets.next();
        if let Some(answer) = self.answers.pop_front() {
            return Some(answer.segment(next, self.packets.offset()));
        }
        std::mem::take(&mut self.pull_due).then(|| TcpSegment {
            seq: self.pulled.into(),
            ack: next,
            ..TcpSegment::default()
        })
    }

    pub(super) fn owes_answer(&self) -> bool {
        !self.answers.is_empty() || self.pull_due
    }

    /// Returns the bytes handed to the application.
    pub(super) fn received(&self) -> u64 {
        self.packets.offset()
    }
}
