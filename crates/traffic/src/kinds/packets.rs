//! `packets`: raw packets without a transport, for queueing theory.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::quantity::Load;
use plimsoll_units::{Bytes, Span, Stream, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::check::{Directed, PACKET_MAX, WorkloadCheck, WorkloadDemand};
use crate::distribution::{Sampler, SizeDistribution, exponential};
use crate::draw::{stretched, uniform_choice};
use crate::facts::NetworkFacts;
use crate::hosts::{HostName, HostSet};
use crate::kind::{Context, Input, Kind, LoadKey, cdf_inputs, host_count};
use crate::record::{MessageRecord, Supply};
use crate::source::{Actions, Arrival, Datagram, Source, SourceReach};

/// Raw packets without a transport, for queueing theory.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Packets {
    /// The hosts that send.
    pub from: HostSet,
    /// The host that receives.
    pub to: HostName,
    /// The size of a packet on the wire, header included.
    pub size: SizeDistribution,
    /// Bytes per second of each sender: a rate, or a share of its link.
    pub load: Load,
    /// Time between packets: exponential (Poisson) or constant.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Send for this long, then not for `pause`, and again: all senders at the same times, from time zero on.
    /// Without it they always send.
    #[serde(default)]
    pub burst: Option<Span>,
    /// The time between the end of a burst and the next; needs `burst`.
    #[serde(default)]
    pub pause: Span,
    /// Stop after this many packets of each sender.
    #[serde(default)]
    pub count: Option<u64>,
    /// Each sender starts at a time drawn uniformly from zero to this; only without `burst`.
    #[serde(default, skip_serializing_if = "at_once")]
    pub start_within: Span,
}

impl Kind for Packets {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let to = check.host("to", &self.to);
        let senders = check.hosts("from", &self.from, to);
        check.distribution("size", &mut self.size);
        check.raw_packet("size", &self.size);
        let share = self.share_of_bursts(check);
        let bits = check.load("load", self.load, Some(check.facts().host_rate(0)));
        let bits = bits * senders.len() as f64 * share;
        let directed = Directed::new(senders, to, Some(bits));
        WorkloadDemand {
            ends: self.count.is_some(),
            start: Span::ZERO,
            directed,
            ..WorkloadDemand::default()
        }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        Ok(Box::new(RawPackets::new(self, context)?))
    }

    fn supply(&self) -> Supply {
        Supply::counted(self.count)
    }

    fn load(&self) -> Option<LoadKey> {
        Some(LoadKey::Load(self.load))
    }

    fn uses_transport(&self) -> bool {
        false
    }

    fn largest_packet(&self, _header: Bytes) -> Bytes {
        // Draws of a distribution without a bound are cut.
        let largest = self.size.largest().map(|largest| Bytes::new(largest.ceil() as u64));
        largest.unwrap_or(PACKET_MAX).min(PACKET_MAX)
    }

    fn sizes_are_of_frames(&self) -> bool {
        true
    }

    fn shared_link(&self) -> Option<&HostName> {
        Some(&self.to)
    }

    fn offered_bps(&self, facts: &dyn NetworkFacts) -> Option<f64> {
        let senders = host_count(facts, &self.from, &[&self.to]);
        // Bursts offer their load for a part of the time only.
        self.burst.is_none().then(|| self.load.bits_per_second(facts.host_rate(0)) * senders)
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        cdf_inputs([self.size.table()])
    }
}

impl Packets {
    /// Checks the bursts and returns the share of the time in which packets are sent.
    fn share_of_bursts(&self, check: &mut WorkloadCheck<'_>) -> f64 {
        match self.burst {
            None if !self.pause.is_zero() => {
                check.error("pause", "a pause between no bursts", "only with `burst`");
                1.0
            }
            None => 1.0,
            Some(Span::ZERO) => {
                check.error("burst", "a burst of no length", "more than 0s");
                1.0
            }
            Some(_) if !self.start_within.is_zero() => {
                check.error(
                    "start_within",
                    "bursts are at the same times for all senders",
                    "only without `burst`",
                );
                1.0
            }
            Some(burst) => burst.as_secs_f64() / (burst + self.pause).as_secs_f64(),
        }
    }
}

/// A scenario without `start_within` has the digest that it had before there was this key.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn at_once(start_within: &Span) -> bool {
    start_within.is_zero()
}

/// The source: senders of single packets.
#[derive(Debug)]
struct RawPackets {
    workload: u16,
    to: HostId,
    size: Sampler<Bytes>,
    /// The mean seconds between two packets of one sender.
    mean_gap: f64,
    /// True if gaps are equal rather than exponential.
    constant_gaps: bool,
    /// The lengths of a burst and of the pause after it.
    bursts: Option<(Span, Span)>,
    count: Option<u64>,
    until: Time,
    warmup: Time,
    senders: Vec<Sender>,
    /// The time at which each sender sends next.
    due: BinaryHeap<Reverse<(Time, usize)>>,
    in_flight: u64,
}

#[derive(Debug)]
struct Sender {
    host: HostId,
    stream: Stream,
    sent: u64,
}

impl RawPackets {
    fn new(params: &Packets, context: &Context<'_>) -> Result<RawPackets, Unbuildable> {
        let to = context.host(&params.to, "to")?;
        let from = context.hosts(&params.from, &[to], "from")?;
        let size = params.size.sampler();
        let mean_gap = context.mean_gap(params.load, from[0], size.mean());
        let sender = |&host: &HostId| Sender {
            host,
            stream: context.streams.stream(&format!("workload/{}/sender/{}", context.name, host.0)),
            sent: 0,
        };
        let mut packets = RawPackets {
            workload: context.index,
            to,
            size,
            mean_gap,
            constant_gaps: params.arrivals == Arrivals::Constant,
            bursts: params.burst.map(|burst| (burst, params.pause)),
            count: params.count,
            until: context.until,
            warmup: context.warmup,
            senders: from.iter().map(sender).collect(),
            due: BinaryHeap::new(),
            in_flight: 0,
        };
        let starts = context.streams.word(&format!("workload/{}/starts", context.name));
        for sender in 0..packets.senders.len() {
            let mut stream = Streams::keyed(starts, sender as u64);
            let late = uniform_choice(&mut stream, params.start_within.as_ps().max(1));
            let first = packets.next(sender, Time::ZERO + Span::from_ps(late));
            packets.due.extend(first.map(|at| Reverse((at, sender))));
        }
        Ok(packets)
    }

    /// Returns when a sender that sent at `now` sends next; none if it has sent all.
    fn next(&mut self, sender: usize, now: Time) -> Option<Time> {
        let from = &mut self.senders[sender];
        if self.count.is_some_and(|count| from.sent >= count) {
            return None;
        }
        let factor = if self.constant_gaps { 1.0 } else { exponential(&mut from.stream) };
        let next = after(now, stretched(self.mean_gap, factor), self.bursts);
        (next < self.until).then_some(next)
    }
}

/// Returns the time `gap` after `now` by a clock that stops in the pauses between bursts; `now` is in a burst.
fn after(now: Time, gap: Span, bursts: Option<(Span, Span)>) -> Time {
    let Some((burst, pause)) = bursts else { return now + gap };
    let period = burst + pause;
    let into = Span::from_ps(now.as_ps() % period.as_ps());
    let awake = (into + gap).as_ps();
    let (whole, rest) = (awake / burst.as_ps(), awake % burst.as_ps());
    let first = Time::from_ps(now.as_ps() - into.as_ps());
    Time::from_ps(first.as_ps().saturating_add(whole.saturating_mul(period.as_ps())).saturating_add(rest))
}

impl Source for RawPackets {
    fn next_due(&self) -> Time {
        self.due.peek().map_or(Time::MAX, |Reverse((at, _))| *at)
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        while let Some(&Reverse((at, sender))) = self.due.peek()
            && at <= now
        {
            let from = &mut self.senders[sender];
            let size = self.size.sample(&mut from.stream).get().clamp(1, u64::from(u16::MAX)) as u16;
            let tag = u64::from(from.sent as u32) << 32;
            actions.datagrams.push(Datagram { from: from.host, to: self.to, size, tag });
            from.sent += 1;
            self.in_flight += 1;
            // The sender at the top of the heap is moved to its new place, which costs less than a removal and an
            // insertion.
            let next = self.next(sender, now);
            let Some(mut top) = self.due.peek_mut() else { return };
            match next {
                Some(next) => *top = Reverse((next, sender)),
                None => drop(PeekMut::pop(top)),
            }
        }
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        let Arrival { now, tag, from, bytes, split, ideal, .. } = arrival;
        self.in_flight = self.in_flight.saturating_sub(1);
        let created = now - split.total();
        if created >= self.warmup {
            actions.records.messages.push(MessageRecord {
                workload: self.workload,
                index: u64::from(from.0) << 32 | tag >> 32,
                query: None,
                source: from.0,
                destination: self.to.0,
                bytes,
                created,
                completed: Some(now),
                ideal,
                split,
            });
        }
    }

    fn on_lost(&mut self, _: Time) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    fn reach(&self) -> SourceReach {
        SourceReach::Network
    }

    fn is_finished(&self) -> bool {
        self.due.is_empty() && self.in_flight == 0
    }

    fn on_end(&mut self, _: &mut Actions) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gap_that_ends_beyond_a_burst_goes_on_in_the_next() {
        let ms = |ms: u64| Time::ZERO + Span::from_ms(ms);
        let after =
            |now, gap| after(ms(now), Span::from_ms(gap), Some((Span::from_ms(10), Span::from_ms(25))));
        assert_eq!(after(0, 9), ms(9));
        assert_eq!(after(0, 10), ms(35));
        assert_eq!(after(8, 5), ms(38));
        // 7 ms of this burst, all of the next two, and 2 ms of the fourth period.
        assert_eq!(after(38, 29), ms(142));
        assert_eq!(super::after(ms(8), Span::from_ms(5), None), ms(13));
    }
}
