//! [`HostPacer`]: the paper's pacer, a queue of its own in front of the NIC queue.
//!
//! Packets of associated flows line up in one FIFO that a token bucket empties; packets of other flows
//! bypass it, unless packets of their own flow are still in it, so that no flow is ever reordered. A
//! packet leaves when the bucket holds its cost (a packet larger than the bucket: when it is full).
//! Tokens come continuously, without lumps, and nothing leaves early:
//!
//! ```text
//! bits out in any window  <=  bucket + the integral of R over it  (+ the excess of a packet over the bucket)
//! ```
//!
//! The rate changes at ticks every T_r from the first packet on. A tick precedes a departure at the same instant.

use std::collections::VecDeque;

use plimsoll_units::{Rate, Span, Time};

use super::rate::{RateLaw, cost, ticks_until};
use super::{FlowAssociations, PacedCounts, PacerParams};

/// Action for a packet that the host hands over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission<T> {
    /// Its flow is not paced: it passes to the NIC queue at once.
    Bypass(T),
    /// It waits here; [`HostPacer::poll`] yields it, maybe at once.
    Queued,
}

/// The pacer of one host, holding packets of type `T`; the module's head describes it.
///
/// Flows are numbered by the caller. After every call that takes `now`, poll until `None`, then again at
/// [`next_due`](Self::next_due). A late poll keeps the bound on the output, but packets that should have left by then
/// still count as backlog.
#[derive(Clone, Debug)]
pub struct HostPacer<T> {
    queue: VecDeque<PacedPacket<T>>,
    bucket: ContinuousBucket,
    flows: FlowAssociations,
    counts: PacedCounts,
}

#[derive(Clone, Debug)]
struct PacedPacket<T> {
    flow: u64,
    bits: u64,
    item: T,
}

impl<T> HostPacer<T> {
    /// A pacer that has seen no packet. `params` must be valid.
    pub fn new(params: &PacerParams) -> HostPacer<T> {
        HostPacer {
            queue: VecDeque::new(),
            bucket: ContinuousBucket::new(params),
            flows: FlowAssociations::new(params),
            counts: PacedCounts::default(),
        }
    }

    /// An acknowledgement with ECE arrived for `flow`: one draw. `draw` yields a uniform 64-bit value.
    /// True if the flow is now paced for another timeout.
    pub fn on_ece(&mut self, now: Time, flow: u64, draw: impl FnOnce() -> u64) -> bool {
        self.flows.draw(now, flow, draw)
    }

    /// Handles a packet of `bytes` on the wire from the host.
    pub fn on_packet(&mut self, now: Time, flow: u64, bytes: u64, item: T) -> Admission<T> {
        self.bucket.start(now);
        self.bucket.advance(now);
        let bits = 8 * bytes;
        self.bucket.law.on_received(bits);
        if !self.flows.must_queue(now, flow) {
            self.counts.bypassed += 1;
            return Admission::Bypass(item);
        }
        self.counts.paced += 1;
        self.flows.on_queued(flow);
        self.bucket.backlog += bits;
        self.queue.push_back(PacedPacket { flow, bits, item });
        Admission::Queued
    }

    /// Returns the next packet that may pass to the NIC queue at `now`, if there is one.
    pub fn poll(&mut self, now: Time) -> Option<T> {
        let bits = self.queue.front()?.bits;
        self.bucket.advance(now);
        if !self.bucket.pay(bits) {
            return None;
        }
        let sent = self.queue.pop_front()?;
        self.flows.on_released(sent.flow);
        Some(sent.item)
    }

    /// Returns when to poll next: the head's departure or the rate tick that may change it, whichever is first. `None`
    /// while nothing waits.
    pub fn next_due(&self) -> Option<Time> {
        self.queue.front().map(|head| self.bucket.due(head.bits).min(self.bucket.next_tick))
    }

    /// Returns the pacing rate at `now`.
    pub fn rate(&self, now: Time) -> Rate {
        let mut bucket = self.bucket;
        bucket.advance(now);
        bucket.law.rate()
    }

    /// Returns the bytes that wait.
    pub fn backlog_bytes(&self) -> u64 {
        self.bucket.backlog / 8
    }

    /// Returns the number of packets that wait.
    pub fn backlog_packets(&self) -> usize {
        self.queue.len()
    }

    /// Returns how many packets were paced, and how many passed.
    pub fn counts(&self) -> PacedCounts {
        self.counts
    }

    /// Returns the table of associated flows, with the counts of each.
    pub fn flows(&self) -> &FlowAssociations {
        &self.flows
    }

    /// The same, to forget flows that have ended.
    pub fn flows_mut(&mut self) -> &mut FlowAssociations {
        &mut self.flows
    }
}

/// Rate and tokens: everything that moves with time. Tokens arrive continuously at a rate that ticks change, and are
/// caught up in closed form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct ContinuousBucket {
    law: RateLaw,
    interval: Span,
    depth: i128,
    /// The bucket held this many tokens at `filled_at`.
    tokens: i128,
    filled_at: Time,
    /// The next change of the rate; never, before the first packet.
    next_tick: Time,
    /// The number of bits that wait.
    backlog: u64,
}

impl ContinuousBucket {
    fn new(params: &PacerParams) -> ContinuousBucket {
        let depth = cost(params.bucket.bits());
        ContinuousBucket {
            law: RateLaw::new(params),
            interval: params.interval,
            depth,
            tokens: depth,
            filled_at: Time::ZERO,
            next_tick: Time::MAX,
            backlog: 0,
        }
    }

    /// Starts the grid of ticks, if this is the first packet.
    fn start(&mut self, now: Time) {
        if self.next_tick == Time::MAX {
            self.next_tick = now + self.interval;
            self.filled_at = now;
        }
    }

    /// Brings the state of the bucket up to `now`.
    fn advance(&mut self, now: Time) {
        while self.next_tick <= now {
            if self.backlog == 0 && self.law.is_settled() {
                // The rate cannot change any more, so one filling below does for all ticks.
                let ticks = ticks_until(self.next_tick, now, self.interval.as_ps());
                self.next_tick += self.interval * ticks;
                break;
            }
            self.tick();
        }
        self.fill(now);
    }

    fn tick(&mut self) {
        self.fill(self.next_tick);
        self.law.tick(self.backlog);
        self.next_tick += self.interval;
    }

    fn fill(&mut self, now: Time) {
        let earned = self.law.tokens_in(now.saturating_since(self.filled_at).as_ps());
        self.tokens = self.depth.min(self.tokens + earned);
        self.filled_at = self.filled_at.max(now);
    }

    /// Returns the tokens that a packet needs to leave.
    fn needed(&self, bits: u64) -> i128 {
        cost(bits).min(self.depth)
    }

    fn pay(&mut self, bits: u64) -> bool {
        let enough = self.tokens >= self.needed(bits);
        if enough {
            self.tokens -= cost(bits);
            self.backlog -= bits;
        }
        enough
    }

    fn due(&self, bits: u64) -> Time {
        let missing = self.needed(bits) - self.tokens;
        self.filled_at.saturating_add(Span::from_ps(self.law.time_for(missing)))
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;
