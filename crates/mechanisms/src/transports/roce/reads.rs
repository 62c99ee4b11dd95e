//! [`ReadSide`]: the READs of a requester, each of which asks the other end for a message.
//!
//! ```text
//! requester ── READ request, number n ──> responder: the first n of its messages may be sent
//!     ^   │ none heard for a timeout: the last number again                        │
//!     │   └── the next request, while fewer than `nic.outstanding_reads` are open   │
//!     └────────────────────── data: whole, the READ is complete ───────────────────┘
//! ```
//!
//! READs of a queue pair are answered in the order in which they were posted, so a request carries only its number, and
//! a later one stands for those before it. A NIC's responder drops a request behind a lost one and sends a NAK; here
//! the later one makes up for the loss, and only what no later request makes up for waits for the timeout.

use std::collections::VecDeque;

use plimsoll_units::{Span, Time};

use super::config::RoceConfig;
use super::params::RoceRepair;
use crate::tcp::{Flags, TcpSegment};

/// A READ that was posted.
#[derive(Clone, Copy, Debug)]
struct Read {
    /// Where its data ends in the other end's stream.
    end: u64,
    /// When the NIC has it ready: its request leaves then at the earliest.
    ready: Time,
}

/// The READs that a queue pair has posted.
#[derive(Debug, Default)]
pub(super) struct ReadSide {
    /// The READs whose data has not arrived whole.
    open: VecDeque<Read>,
    /// The end of the data of all READs.
    end: u64,
    /// How many READs were posted.
    posted: u64,
    /// How many of them were requested.
    requested: u64,
    /// The last request is to be sent again.
    repeat_due: bool,
    /// The time from which on the timeout runs: the last new data, or the first request after it; `None` if no READ is
    /// outstanding.
    waits_since: Option<Time>,
    /// The timeouts that have passed, each of which repeats one request.
    timeouts: u64,
}

impl ReadSide {
    /// The application posts a READ of `bytes` bytes.
    pub(super) fn post(&mut self, config: &RoceConfig, now: Time, bytes: u64) {
        self.end += bytes;
        self.posted += 1;
        self.open.push_back(Read { end: self.end, ready: now + config.params.nic.message_start });
    }

    /// New data has arrived: the first `received` bytes of the stream are here.
    pub(super) fn on_data(&mut self, now: Time, received: u64) {
        while self.open.pop_front_if(|read| read.end <= received).is_some() {}
        self.waits_since = (self.outstanding() > 0).then_some(now);
    }

    /// Returns how many READs were requested and are not complete.
    fn outstanding(&self) -> u64 {
        self.requested - (self.posted - self.open.len() as u64)
    }

    /// Returns when the next READ may be requested; `None` if there is none, or as many as allowed are outstanding.
    fn next_ready(&self, config: &RoceConfig) -> Option<Time> {
        let outstanding = self.outstanding();
        let next = self.open.get(outstanding as usize)?;
        (outstanding < u64::from(config.params.nic.outstanding_reads)).then_some(next.ready)
    }

    fn timeout(&self, config: &RoceConfig) -> Time {
        self.waits_since.map_or(Time::MAX, |since| since + timeout_of(config))
    }

    /// Returns when [`on_deadline`](ReadSide::on_deadline) must be called: the timeout, or the time after `now` at
    /// which the next request may leave.
    pub(super) fn deadline(&self, config: &RoceConfig, now: Time) -> Time {
        let ready = self.next_ready(config).filter(|ready| *ready > now).unwrap_or(Time::MAX);
        self.timeout(config).min(ready)
    }

    pub(super) fn on_deadline(&mut self, config: &RoceConfig, now: Time) {
        if now >= self.timeout(config) {
            self.timeouts += 1;
            self.repeat_due = true;
            self.waits_since = Some(now);
        }
    }

    /// Returns whether a request may leave now.
    pub(super) fn has_request(&self, config: &RoceConfig, now: Time) -> bool {
        self.repeat_due || self.next_ready(config).is_some_and(|ready| ready <= now)
    }

    /// Returns the next request, if one may leave now.
    pub(super) fn next_request(&mut self, config: &RoceConfig, now: Time) -> Option<TcpSegment> {
        if !self.has_request(config, now) {
            return None;
        }
        let again = std::mem::take(&mut self.repeat_due);
        self.requested += u64::from(!again);
        self.waits_since = self.waits_since.or(Some(now));
        let flags = Flags::CWR.with_if(again, Flags::RETRANSMISSION);
        Some(TcpSegment { ack: self.requested, flags, ..TcpSegment::default() })
    }

    /// Returns whether every READ is complete.
    pub(super) fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    pub(super) fn timeouts(&self) -> u64 {
        self.timeouts
    }
}

/// Returns the time without new data after which a requester repeats its last request.
fn timeout_of(config: &RoceConfig) -> Span {
    match config.params.repair {
        RoceRepair::GoBackN => config.params.timeout,
        RoceRepair::Selective => config.params.selective.timeout_high,
    }
}
