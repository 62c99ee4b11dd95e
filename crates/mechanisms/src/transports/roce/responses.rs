//! [`ResponseSide`]: data that arrives, and the answers to it.

use std::collections::VecDeque;

use plimsoll_units::{Span, Time};

use super::config::RoceConfig;
use super::params::RoceRepair;
use crate::tcp::{EcnField, Flags, Ranges, SackBlocks, TcpSegment};

/// A packet without data that a receiver owes to the sender.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answer {
    /// A congestion notification packet.
    Notify,
    /// An acknowledgement of everything before `next`. It echoes the number of the packet that caused it, and a mark
    /// where there are no CNPs.
    Ack { next: u64, echo: u64, is_marked: bool },
    /// A NAK of the packet at `next`, which echoes the same; with selective repeat it names the packet that arrived
    /// instead.
    Nak { next: u64, arrived: SackBlocks, echo: u64, is_marked: bool },
}

/// The receiving half of a queue pair. With go-back-N it takes packets in order, and drops all others; with selective
/// repeat it keeps the others, for which there is room: a sender has no more outstanding than its cap.
#[derive(Debug, Default)]
pub(super) struct ResponseSide {
    /// The next offset expected in order: what is before it was handed over.
    next: u64,
    /// What was kept from beyond a gap.
    kept: Ranges,
    ack_due: bool,
    nak_due: bool,
    /// The packet that the next NAK of selective repeat names.
    arrived: SackBlocks,
    notify_due: bool,
    /// A NAK was sent for the gap at `next`: no further one until it has closed.
    nak_sent: bool,
    /// The number of the packet that causes the next acknowledgement or NAK.
    echo: u64,
    /// The next acknowledgement or NAK echoes a mark.
    is_marked: bool,
    /// When a mark last caused a CNP.
    notified: Option<Time>,
    /// When the CNPs leave that are being generated.
    generated: VecDeque<Time>,
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
            match config.params.repair {
                RoceRepair::GoBackN => self.nak_due |= !self.nak_sent,
                RoceRepair::Selective => {
                    self.kept.insert(segment.seq, segment.end());
                    self.arrived = [(segment.seq, segment.end())].into_iter().collect();
                    self.nak_due = true;
                }
            }
            self.nak_sent = true;
            return 0;
        }
        // A duplicate is acknowledged: the sender has missed an acknowledgement. So is what closes a gap.
        let is_new = segment.end() > self.next;
        self.ack_due |= !is_new || !self.kept.is_empty() || segment.flags.has(Flags::CWR);
        let before = self.next;
        self.next = self.next.max(segment.end());
        if let Some(end) = self.kept.take_first_if_reached(self.next) {
            self.next = self.next.max(end);
        }
        let new = self.next - before;
        self.nak_sent &= new == 0;
        self.nak_due &= self.nak_sent;
        new
    }

    /// The notification point (DCQCN, section 3.1): the first mark in `cnp_interval` is notified, at once or
    /// after the time that the NIC takes for it.
    fn on_mark(&mut self, config: &RoceConfig, now: Time) {
        let interval = config.params.notifies_every();
        if self.notified.is_none_or(|last| now.saturating_since(last) >= interval) {
            self.notified = Some(now);
            match config.params.cnp_generation_delay {
                Span::ZERO => self.notify_due = true,
                delay => self.generated.push_back(now + delay),
            }
        }
    }

    /// Returns when a CNP leaves that is being generated; [`Time::MAX`] if none is.
    pub(super) fn deadline(&self) -> Time {
        self.generated.front().copied().unwrap_or(Time::MAX)
    }

    /// Handles the deadline that has passed.
    pub(super) fn on_deadline(&mut self, now: Time) {
        while self.generated.pop_front_if(|at| *at <= now).is_some() {
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
            let arrived = std::mem::take(&mut self.arrived);
            let is_marked = std::mem::take(&mut self.is_marked);
            return Some(Answer::Nak { next: self.next, arrived, echo: self.echo, is_marked });
        }
        let is_due = std::mem::take(&mut self.ack_due);
        is_due.then(|| Answer::Ack {
            next: self.next,
            echo: self.echo,
            is_marked: std::mem::take(&mut self.is_marked),
        })
    }

    pub(super) fn owes_answer(&self) -> bool {
        self.notify_due || self.nak_due || self.ack_due
    }

    /// Returns the bytes handed to the application.
    pub(super) fn received(&self) -> u64 {
        self.next
    }
}
