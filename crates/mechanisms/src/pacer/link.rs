//! [`LinkPacer`]: the pacer between the NIC queue and the link, as the HULL reproduction built it in
//! ns-2.
//!
//! It takes the packet at the head of the NIC queue and passes it on, or holds it; while it holds one the NIC queue is
//! stopped, so everything behind waits, associated or not. Its code differs from a textbook pacer in these points:
//!
//! * tokens come in lumps every `token_interval`, on a grid that starts at the first packet;
//! * a held packet is due at `now + (cost - tokens) / R`, recomputed at each rate tick only, where the
//!   tokens earned since the last lump do not count: it leaves a little late, and tokens may then be
//!   below zero;
//! * the first packet triggers a rate tick of its own, so the first rate is `(1 - eta) initial_rate`;
//! * a rate tick comes before a token tick at the same instant, and both before a departure.
//!
//! Departure: a packet larger than the bucket leaves when the bucket is full, and never would in ns-2.

use plimsoll_units::{Rate, Span, Time};

use super::rate::{RateLaw, cost, ticks_until};
use super::{FlowAssociations, PacedCounts, PacerParams};

/// When the packet at the head of the NIC queue may start on the link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Release {
    /// The packet leaves at once.
    Now,
    /// At this time, later than now. Final: later events do not change it, because no other packet enters the pacer
    /// meanwhile.
    At(Time),
}

/// The pacer of one host link; the module's head describes it.
///
/// Flows are numbered by the caller; both directions of a connection share a number. One round:
///
/// 1. [`on_ece`](Self::on_ece) on each ECE acknowledgement that arrives;
/// 2. [`on_data_sent`](Self::on_data_sent) as the transport hands a data packet to the NIC queue; its
///    answer travels with the packet;
/// 3. [`on_head`](Self::on_head), once, when the packet is the head of the NIC queue and the link is
///    free. Its answer is final, so the port schedules one departure and needs no ticks.
#[derive(Clone, Debug)]
pub struct LinkPacer {
    bucket: Option<GridBucket>,
    idle_bucket: GridBucket,
    flows: FlowAssociations,
    counts: PacedCounts,
}

impl LinkPacer {
    /// A pacer that has seen no packet. `params` must be valid.
    pub fn new(params: &PacerParams) -> LinkPacer {
        LinkPacer {
            bucket: None,
            idle_bucket: GridBucket::new(params),
            flows: FlowAssociations::new(params),
            counts: PacedCounts::default(),
        }
    }

    /// An acknowledgement with ECE arrived for `flow`: its next data packet will draw.
    pub fn on_ece(&mut self, flow: u64) {
        self.flows.note_feedback(flow);
    }

    /// A data packet of `flow` enters the NIC queue. True if it must draw when it reaches the head.
    pub fn on_data_sent(&mut self, flow: u64) -> bool {
        self.flows.take_feedback(flow)
    }

    /// Handles a packet of `bytes` on the wire that reaches the head of the NIC queue with the link free. `draws` is
    /// the result of [`on_data_sent`](Self::on_data_sent) for it; false for pure acknowledgements, which are still
    /// paced if their flow is associated. `draw` yields a uniform 64-bit value.
    ///
    /// # Panics
    /// If an earlier packet is still held: the link is not free then.
    pub fn on_head(
        &mut self,
        now: Time,
        flow: u64,
        bytes: u64,
        draws: bool,
        draw: impl FnOnce() -> u64,
    ) -> Release {
        let bucket = self.bucket.get_or_insert_with(|| self.idle_bucket.started(now));
        bucket.advance(now);
        assert!(bucket.held.is_none(), "the pacer was asked for a second packet while it holds one");
        bucket.law.on_received(8 * bytes);
        if draws {
            self.flows.draw(now, flow, draw);
        }
        if !self.flows.is_associated(now, flow) {
            self.counts.bypassed += 1;
            return Release::Now;
        }
        self.counts.paced += 1;
        bucket.take(now, 8 * bytes)
    }

    /// Returns the pacing rate at `now`.
    pub fn rate(&self, now: Time) -> Rate {
        self.at(now).law.rate()
    }

    /// Returns the bytes held at `now`: the size of one packet, or zero.
    pub fn backlog_bytes(&self, now: Time) -> u64 {
        self.at(now).backlog() / 8
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

    fn at(&self, now: Time) -> GridBucket {
        let mut bucket = self.bucket.unwrap_or(self.idle_bucket);
        if self.bucket.is_some() {
            bucket.advance(now);
        }
        bucket
    }
}

/// Rate, tokens and the packet held: everything that moves with time. Tokens arrive on a grid of their own, as in the
/// study's source, so that the bucket of the host's pacer cannot take its place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct GridBucket {
    law: RateLaw,
    interval: Span,
    token_interval: Span,
    depth: i128,
    tokens: i128,
    next_rate: Time,
    next_token: Time,
    held: Option<Held>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Held {
    bits: u64,
    due: Time,
}

/// The next event in a bucket.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    Nothing,
    Tick,
    Departure(Time),
}

impl GridBucket {
    fn new(params: &PacerParams) -> GridBucket {
        let depth = cost(params.bucket.bits());
        GridBucket {
            law: RateLaw::new(params),
            interval: params.interval,
            token_interval: params.token_interval,
            depth,
            tokens: depth,
            next_rate: Time::MAX,
            next_token: Time::MAX,
            held: None,
        }
    }

    /// The same at its first packet: one rate tick, and both time grids start.
    fn started(mut self, now: Time) -> GridBucket {
        self.law.tick(0);
        self.next_rate = now + self.interval;
        self.next_token = now + self.token_interval;
        self
    }

    fn backlog(&self) -> u64 {
        self.held.map_or(0, |held| held.bits)
    }

    /// Pays for a packet of `bits`, or holds it. The bucket is up to date and empty-handed.
    fn take(&mut self, now: Time, bits: u64) -> Release {
        if self.tokens >= self.needed(bits) {
            self.tokens -= cost(bits);
            return Release::Now;
        }
        self.held = Some(Held { bits, due: self.due(now, bits) });
        Release::At(self.departure())
    }

    /// Returns the tokens that a packet needs: its cost, or a full bucket if it is larger than that.
    fn needed(&self, bits: u64) -> i128 {
        cost(bits).min(self.depth)
    }

    fn due(&self, now: Time, bits: u64) -> Time {
        now.saturating_add(Span::from_ps(self.law.time_for(self.needed(bits) - self.tokens)))
    }

    /// Returns when the held packet will leave: the future is computed on a copy. It ends because a held packet raises
    /// the rate at every tick, or the rate has a floor.
    fn departure(mut self) -> Time {
        loop {
            if let Step::Departure(time) = self.step(Time::MAX) {
                return time;
            }
        }
    }

    /// Brings the state of the bucket up to `now`.
    fn advance(&mut self, now: Time) {
        loop {
            if self.held.is_none() && self.law.is_settled() {
                return self.skip(now);
            }
            if self.step(now) == Step::Nothing {
                return;
            }
        }
    }

    /// The first thing to happen, if it does so by `limit`: ticks before a departure at the same time,
    /// the rate's before the tokens'.
    fn step(&mut self, limit: Time) -> Step {
        let tick = self.next_rate.min(self.next_token);
        if let Some(held) = self.held.filter(|held| held.due < tick) {
            if held.due > limit {
                return Step::Nothing;
            }
            self.tokens -= cost(held.bits);
            self.held = None;
            return Step::Departure(held.due);
        }
        if tick > limit {
            return Step::Nothing;
        }
        if tick == self.next_rate {
            self.law.tick(self.backlog());
            self.next_rate += self.interval;
            if let Some(bits) = self.held.map(|held| held.bits) {
                self.held = Some(Held { bits, due: self.due(tick, bits) });
            }
        } else {
            self.tokens = self.depth.min(self.tokens + self.law.tokens_in(self.token_interval.as_ps()));
            self.next_token += self.token_interval;
        }
        Step::Tick
    }

    /// All ticks up to `now` at once, where only tokens can still change.
    fn skip(&mut self, now: Time) {
        let rate_ticks = ticks_until(self.next_rate, now, self.interval.as_ps());
        self.next_rate += self.interval * rate_ticks;
        let lumps = ticks_until(self.next_token, now, self.token_interval.as_ps());
        self.next_token += self.token_interval * lumps;
        let earned = self.law.tokens_in(self.token_interval.as_ps()).saturating_mul(i128::from(lumps));
        self.tokens = self.depth.min(self.tokens.saturating_add(earned));
    }
}

#[cfg(test)]
#[path = "link_tests.rs"]
mod tests;
