//! `hstride`: a chain of hosts that open many flows to each destination, which slowly changes.
//!
//! ```text
//! h0: flow, flow, flow, flow ──> h1, then flow, flow, flow, flow ──> h2, ...      each host in its own time
//! ```

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::quantity::Load;
use plimsoll_units::{Bytes, Span, Stream, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::distribution::{Sampler, SizeDistribution, exponential};
use crate::draw::stretched;
use crate::facts::NetworkFacts;
use crate::hosts::HostSet;
use crate::kind::{Context, ExpectedRecords, Input, Kind, LoadKey, cdf_inputs, host_count, number};
use crate::kinds::stride::StrideChain;
use crate::one_way::{FlowSequence, OneWay, PendingFlow};
use crate::record::Supply;
use crate::source::Source;

/// A chain of hosts as of `stride`, in which each host opens many flows to its destination, each on a connection of
/// its own, and then turns to the host one place further: destinations change slowly, flow by flow (BulletTrains).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hstride {
    /// The hosts of the chain, in its order; default: all.
    #[serde(default = "HostSet::all")]
    pub hosts: HostSet,
    /// The number of places from a host to its first destination.
    #[serde(default = "StrideChain::default_stride")]
    pub stride: u32,
    /// The number of flows that a host opens to a destination before it turns to the next.
    #[serde(default = "Hstride::default_flows")]
    pub flows: u64,
    /// The size of a flow, or its distribution.
    pub size: SizeDistribution,
    /// Bytes that each host sends per second: a rate, or a share of its link.
    pub load: Load,
    /// Time between flows of a host: exponential (Poisson) or constant.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// Stop after this many flows of each host.
    #[serde(default)]
    pub count: Option<u64>,
    /// The time from which on flows may start.
    #[serde(default)]
    pub start: Span,
}

impl Hstride {
    fn default_flows() -> u64 {
        16
    }
}

impl Kind for Hstride {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        StrideChain::check(check, &self.hosts, self.stride);
        check.at_least_one("flows", self.flows, "no flow to any destination");
        check.distribution("size", &mut self.size);
        check.load("load", self.load, Some(check.facts().host_rate(0)));
        WorkloadDemand { ends: self.count.is_some(), start: self.start, ..WorkloadDemand::default() }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let chain = StrideChain::new(context, &self.hosts, self.stride)?;
        let size = self.size.sampler();
        let sender = |host: &HostId| Sender {
            mean_gap: context.mean_gap(self.load, *host, size.mean()),
            gaps: context.streams.stream(&format!("workload/{}/sender/{}/gaps", context.name, host.0)),
            sent: 0,
        };
        let mut senders = Senders {
            draws: context.streams.word(&format!("workload/{}/draws", context.name)),
            senders: chain.hosts.iter().map(sender).collect(),
            due: BinaryHeap::new(),
            constant_gaps: self.arrivals == Arrivals::Constant,
            flows: self.flows,
            count: self.count.unwrap_or(u64::MAX),
            until: context.until,
            size,
            chain,
        };
        for sender in 0..senders.senders.len() {
            senders.schedule(sender, Time::ZERO + self.start);
        }
        Ok(Box::new(OneWay::sequence(context.index, context.warmup, Box::new(senders))))
    }

    fn supply(&self) -> Supply {
        Supply::counted(self.count)
    }

    fn load(&self) -> Option<LoadKey> {
        Some(LoadKey::Load(self.load))
    }

    fn offered_bps(&self, facts: &dyn NetworkFacts) -> Option<f64> {
        Some(self.load.bits_per_second(facts.host_rate(0)) * host_count(facts, &self.hosts, &[]))
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        cdf_inputs([self.size.table()])
    }

    fn expected_records(&self, facts: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        let hosts = host_count(facts, &self.hosts, &[]);
        let per_second = self.offered_bps(facts)? / 8.0 / self.size.sampler().mean();
        let limit = number(self.count).map(|count| count * hosts);
        Some(ExpectedRecords::new("load", self.start).per_second(per_second).limit(limit))
    }
}

/// The flows of all senders.
#[derive(Clone, Debug)]
struct Senders {
    chain: StrideChain,
    senders: Vec<Sender>,
    /// The time at which each sender opens its next flow.
    due: BinaryHeap<Reverse<(Time, usize)>>,
    size: Sampler<Bytes>,
    constant_gaps: bool,
    /// The number of flows to a destination.
    flows: u64,
    /// The number of flows of each sender.
    count: u64,
    until: Time,
    /// The family of the keyed streams for sizes.
    draws: u64,
}

#[derive(Clone, Debug)]
struct Sender {
    /// The mean seconds between two flows.
    mean_gap: f64,
    gaps: Stream,
    sent: u64,
}

impl Senders {
    fn schedule(&mut self, number: usize, after: Time) {
        let sender = &mut self.senders[number];
        let factor = if self.constant_gaps { 1.0 } else { exponential(&mut sender.gaps) };
        let next = after.saturating_add(stretched(sender.mean_gap, factor));
        if sender.sent < self.count && next < self.until {
            self.due.push(Reverse((next, number)));
        }
    }
}

impl FlowSequence for Senders {
    fn next(&self) -> Time {
        self.due.peek().map_or(Time::MAX, |Reverse((at, _))| *at)
    }

    fn pop(&mut self) -> PendingFlow {
        let Reverse((start, number)) = self.due.pop().expect("a flow is taken at its time");
        let sent = self.senders[number].sent;
        self.senders[number].sent += 1;
        let index = sent * self.chain.hosts.len() as u64 + number as u64;
        let flow = PendingFlow {
            start,
            source: self.chain.hosts[number],
            destination: self.chain.destination(number, sent / self.flows),
            bytes: Some(self.size.sample(&mut Streams::keyed(self.draws, index)).get().max(1)),
        };
        self.schedule(number, start);
        flow
    }

    fn copy(&self) -> Box<dyn FlowSequence> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{WrittenMessage, errors, flows_of, parsed};

    const TEXT: &str = "kind = 'hstride'\nflows = 4\nsize = { constant = '64KB' }\nload = 0.5\ncount = 40";

    #[test]
    fn a_host_opens_its_flows_to_one_destination_after_the_other() {
        let flows = flows_of(6, &parsed(TEXT), 1);
        assert_eq!(flows.len(), 6 * 40);
        for host in 0..6 {
            let of_host: Vec<&WrittenMessage> = flows.iter().filter(|flow| flow.source == host).collect();
            for (turn, flows) in of_host.chunks(4).enumerate() {
                let destination = (host + 1 + turn as u32 % 5) % 6;
                assert!(flows.iter().all(|flow| flow.destination == destination && flow.bytes == 64_000));
            }
        }
    }

    #[test]
    fn hosts_change_each_in_its_own_time() {
        let flows = flows_of(6, &parsed(TEXT), 1);
        let changes =
            (0..6).map(|host| flows.iter().filter(|flow| flow.source == host).nth(4).map(|flow| flow.at));
        let times: std::collections::BTreeSet<_> = changes.collect();
        assert_eq!(times.len(), 6);
    }

    #[test]
    fn flows_offer_the_load_with_every_seed() {
        let text = TEXT.replace("count = 40", "count = 2000");
        let flows = flows_of(6, &parsed(&text), 1);
        let end = flows.iter().map(|flow| flow.at).max().unwrap_or(Time::ZERO).as_secs_f64();
        let bits: f64 = flows.iter().map(|flow| flow.bytes as f64 * 8.0).sum();
        // Six links of 1 Gb/s at half their rate; the mean of 12,000 exponential gaps is within a few per cent.
        let load = bits / end / 6e9;
        assert!((0.47..0.53).contains(&load), "{load}");
        assert_eq!(flows, flows_of(6, &parsed(&text), 1), "the same seed gives the same flows");
        assert_ne!(flows, flows_of(6, &parsed(&text), 2));
    }

    #[test]
    fn constant_gaps_are_equal() {
        let flows = flows_of(2, &parsed(&format!("{TEXT}\narrivals = 'constant'")), 1);
        // 64 KB at 500 Mb/s take 1.024 ms.
        for (number, flows) in flows.chunks(2).enumerate() {
            let at = Time::ZERO + Span::from_us(1_024) * (number as u64 + 1);
            assert!(flows.iter().all(|flow| flow.at == at));
        }
    }

    #[test]
    fn impossible_flows_are_errors() {
        for (from, to, key) in [
            ("flows = 4", "flows = 0", "flows"),
            ("'64KB'", "'0B'", "size"),
            ("count = 40", "stride = 6", "stride"),
        ] {
            assert_eq!(errors(6, &parsed(&TEXT.replace(from, to))), [key], "{to}");
        }
    }
}
