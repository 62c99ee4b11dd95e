//! [`ResponseSide`]: data that arrives, and the answers to it.

use plimsoll_units::Time;

use super::config::RoceConfig;
use crate::tcp::{EcnField, Flags, TcpSegment};

/// A packet without data that a receiver owes to the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// A congestion notification packet.
    Notify,
    /// An acknowledgement of everything before `next`, or a NAK that asks for the packets from there on.
    /// It echoes the number of the packet that caused it, and a mark where there are no CNPs.
    Ack { next: u64, is_nak: bool, echo: u64, is_marked: bool },
}

/// The receiving half of a queue pair: it takes packets in order, and drops all others.
#[derive(Debug, Default)]
pub(super) struct ResponseSide {
    /// The next offset expected in order: what is before it was handed over.
    next: u64,
    ack_due: bool,
    nak_due: bool,
    notify_due: bool,
    /// A NAK was sent for the gap at `next`: no further one until it has closed.
    nak_sent: bool,
    /// The number of the packet that causes the next acknowledgement or NAK.
    echo: u64,
    /// The next acknowledgement or NAK echoes a mark.
    is_marked: bool,
    /// When the last CNP was due.
    notified: Option<Time>,
}

impl ResponseSide {
    /// A data packet arrived. Returns the bytes newly in order.
    pub(super) fn on_data(&mut self, config: &RoceConfig, now: Time, segment: &TcpSegment) -> u64 {
        if segment.ecn == EcnField::Ce && config.uses_marks {
            match config.echoes_marks() {
                true => self.is_marked = true,
                false => self.on_mark(config, now),
            }
        }
        if !self.ack_due && !self.nak_due {
            self.echo = segment.ack;
        }
        if segment.seq > self.next {
            self.nak_due |= !self.nak_sent;
            self.nak_sent = true;
            return 0;
        }
        let new = segment.end().saturating_sub(self.next);
        // A duplicate is acknowledged: the sender has missed an acknowledgement.
        self.ack_due |= new == 0 || segment.flags.has(Flags::CWR);
        self.next += new;
        self.nak_sent &= new == 0;
        self.nak_due &= self.nak_sent;
        new
    }

    /// The notification point (DCQCN, section 3.1): the first mark in `cnp_interval` is notified at once.
    fn on_mark(&mut self, config: &RoceConfig, now: Time) {
        let interval = config.params.notifies_every();
        if self.notified.is_none_or(|last| now.saturating_since(last) >= interval) {
            self.notified = Some(now);
            self.notify_due = true;
        }
    }

    /// Removes the next answer that is due.
    pub(super) fn take_answer(&mut self) -> Option<Answer> {
        if std::mem::take(&mut self.notify_due) {
            return Some(Answer::Notify);
        }
        if std::mem::take(&mut self.nak_due) {
            self.ack_due = false;
            return Some(self.acknowledgement(true));
        }
        std::mem::take(&mut self.ack_due).then(|| self.acknowledgement(false))
    }

    fn acknowledgement(&mut self, is_nak: bool) -> Answer {
        let is_marked = std::mem::take(&mut self.is_marked);
        Answer::Ack { next: self.next, is_nak, echo: self.echo, is_marked }
    }

    pub(super) fn owes_answer(&self) -> bool {
        self.notify_due || self.nak_due || self.ack_due
    }

    /// Returns the bytes handed to the application.
    pub(super) fn received(&self) -> u64 {
        self.next
    }
}
