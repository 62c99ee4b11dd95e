//! `all-to-all`: Poisson flows between random pairs of hosts, all alike or by weights of hosts.
//!
//! ```text
//! host,send,receive
//! h0,2Gbps,500Mbps
//! ```
//!
//! With weights s and r, host i is the sender of a flow with the probability `s_i / sum s`, and host j its receiver
//! with `r_j / (sum r - r_i)`.

use std::sync::Arc;

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::quantity::Load;
use plimsoll_units::{Bytes, Rate, Span, Stream, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{InvalidWorkload, WorkloadCheck, WorkloadDemand};
use crate::distribution::{Sampler, SizeDistribution, exponential};
use crate::draw::{stretched, uniform_choice};
use crate::facts::NetworkFacts;
use crate::kind::{Context, ExpectedRecords, Input, Kind, LoadKey, cdf_inputs, number};
use crate::listed;
use crate::one_way::{FlowSequence, OneWay, PendingFlow};
use crate::record::Supply;
use crate::source::Source;

/// Poisson flows between random pairs, sizes from a distribution.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AllToAll {
    /// The size of a flow, or its distribution.
    pub size: SizeDistribution,
    /// Bytes that each host sends per second, on average over all hosts: a rate, or a share of a host's link.
    pub load: Load,
    /// CSV with the columns host, send and receive (rates with unit, of which only the ratios count), relative to the
    /// scenario: weights of hosts as senders and receivers, 0 for hosts that it lacks. Default: all hosts are alike.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weights: Option<String>,
    /// The rows of the file, read when the scenario is checked.
    #[serde(skip)]
    pub weighted: Arc<Vec<HostWeights>>,
    /// The number of flows, after which the workload stops. Default: no limit but `run.duration`.
    #[serde(default)]
    pub count: Option<u64>,
    /// The time from which on flows may start.
    #[serde(default)]
    pub start: Span,
}

/// The weights of a host as a sender and as a receiver of flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostWeights {
    /// The number of the host.
    pub host: u32,
    /// The weight of the host as a sender.
    pub send: Rate,
    /// The weight of the host as a receiver.
    pub receive: Rate,
}

impl Kind for AllToAll {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        check.distribution("size", &mut self.size);
        if let Some(file) = &self.weights
            && let Some(text) = check.flow_list("weights", file)
        {
            match parse(file, &text, check.facts()) {
                Ok(weights) => match problem(&weights, check.facts()) {
                    Some(problem) => {
                        check.error("weights", problem, "hosts each once, with a receiver for each sender")
                    }
                    None => self.weighted = Arc::new(weights),
                },
                Err(mut errors) => check.errors.append(&mut errors),
            }
        }
        let bits = check.load("load", self.load, Some(check.facts().host_rate(0)));
        WorkloadDemand {
            ends: self.count.is_some(),
            start: self.start,
            between_all: if self.weights.is_none() { bits } else { 0.0 },
            ..WorkloadDemand::default()
        }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let hosts = context.facts.host_count();
        let size = self.size.sampler();
        let mut poisson = Poisson {
            hosts,
            weights: Weights::new(&self.weighted),
            mean_gap: context.mean_gap(self.load, HostId(0), size.mean()) / f64::from(hosts),
            size,
            count: self.count,
            until: context.until,
            draws: context.streams.word(&format!("workload/{}/draws", context.name)),
            gaps: context.streams.stream(&format!("workload/{}/gaps", context.name)),
            next: Time::ZERO + self.start,
            drawn: 0,
        };
        poisson.draw_gap();
        let source = OneWay::sequence(context.index, context.warmup, Box::new(poisson));
        Ok(Box::new(source.sharing_connections(context.keeps_connections)))
    }

    fn supply(&self) -> Supply {
        Supply::counted(self.count)
    }

    fn load(&self) -> Option<LoadKey> {
        Some(LoadKey::Load(self.load))
    }

    fn offered_bps(&self, facts: &dyn NetworkFacts) -> Option<f64> {
        Some(self.load.bits_per_second(facts.host_rate(0)) * f64::from(facts.host_count()))
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        let weights = (!self.weighted.is_empty()).then_some(Input::Weights(&self.weighted));
        cdf_inputs([self.size.table()]).into_iter().chain(weights).collect()
    }

    fn expected_records(&self, facts: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        let per_second = self.offered_bps(facts)? / 8.0 / self.size.sampler().mean();
        Some(ExpectedRecords::new("load", self.start).per_second(per_second).limit(number(self.count)))
    }
}

const HEADER: &str = "host,send,receive";

/// Parses a file of weights; host names are the network's.
fn parse(name: &str, text: &str, facts: &dyn NetworkFacts) -> Result<Vec<HostWeights>, Vec<InvalidWorkload>> {
    listed::parse(name, text, HEADER, facts, |row| {
        row.cells::<3>()?;
        Ok(HostWeights { host: row.host(0)?, send: row.quantity(1)?, receive: row.quantity(2)? })
    })
}

/// Returns why no pair of hosts can be drawn by these weights: a host is there twice, no host sends, or one has no
/// other host to send to.
fn problem(weights: &[HostWeights], facts: &dyn NetworkFacts) -> Option<String> {
    let mut hosts: Vec<u32> = weights.iter().map(|of| of.host).collect();
    hosts.sort_unstable();
    if let Some(twice) = hosts.windows(2).find(|pair| pair[0] == pair[1]) {
        return Some(format!("host {} is there twice", facts.host_name(twice[0])));
    }
    let sum = |weight: fn(&HostWeights) -> Rate| {
        weights.iter().try_fold(0u64, |sum, of| sum.checked_add(weight(of).as_bps()))
    };
    let (Some(sent), Some(received)) = (sum(|of| of.send), sum(|of| of.receive)) else {
        return Some("the sum of the rates is too large".to_owned());
    };
    if sent == 0 {
        return Some("no host sends".to_owned());
    }
    let mut senders = weights.iter().filter(|of| of.send > Rate::ZERO);
    let alone = senders.find(|of| of.receive.as_bps() == received)?;
    Some(format!("no other host receives what {} sends", facts.host_name(alone.host)))
}

/// The hosts with their weights, added up.
#[derive(Clone, Debug, Default)]
struct Weights {
    hosts: Vec<u32>,
    /// The sums of the weights up to each host, with its own.
    send: Vec<u64>,
    receive: Vec<u64>,
}

impl Weights {
    fn new(weights: &[HostWeights]) -> Weights {
        let sums = |weight: fn(&HostWeights) -> Rate| {
            let mut sum = 0u64;
            let add = |of: &HostWeights| {
                sum += weight(of).as_bps();
                sum
            };
            weights.iter().map(add).collect::<Vec<u64>>()
        };
        let hosts = weights.iter().map(|of| of.host).collect();
        Weights { hosts, send: sums(|of| of.send), receive: sums(|of| of.receive) }
    }

    /// Draws the sender and the receiver of a flow.
    fn draw(&self, stream: &mut Stream) -> Option<(u32, u32)> {
        let at = |sums: &[u64], place: u64| sums.partition_point(|sum| *sum <= place);
        let source = at(&self.send, uniform_choice(stream, *self.send.last()?));
        let before = source.checked_sub(1).map_or(0, |host| self.receive[host]);
        let own = self.receive[source] - before;
        let place = uniform_choice(stream, *self.receive.last()? - own);
        let destination = at(&self.receive, if place < before { place } else { place + own });
        Some((self.hosts[source], self.hosts[destination]))
    }
}

/// Poisson arrivals of flows between pairs of hosts, which are drawn uniformly or by weights.
#[derive(Clone, Debug)]
struct Poisson {
    hosts: u32,
    /// The weights of hosts; none where all are alike.
    weights: Weights,
    size: Sampler<Bytes>,
    /// The mean seconds between flows of the whole network.
    mean_gap: f64,
    count: Option<u64>,
    until: Time,
    /// The family of the keyed streams.
    draws: u64,
    gaps: Stream,
    next: Time,
    drawn: u64,
}

impl Poisson {
    fn draw_gap(&mut self) {
        self.next = self.next.saturating_add(stretched(self.mean_gap, exponential(&mut self.gaps)));
    }
}

impl FlowSequence for Poisson {
    fn next(&self) -> Time {
        let enough = self.count.is_some_and(|count| self.drawn >= count);
        if enough || self.next >= self.until { Time::MAX } else { self.next }
    }

    fn pop(&mut self) -> PendingFlow {
        let mut stream = Streams::keyed(self.draws, self.drawn);
        let (source, destination) = self.weights.draw(&mut stream).unwrap_or_else(|| {
            let source = uniform_choice(&mut stream, u64::from(self.hosts)) as u32;
            let other = uniform_choice(&mut stream, u64::from(self.hosts) - 1) as u32;
            (source, other + u32::from(other >= source))
        });
        let flow = PendingFlow {
            start: self.next,
            source: HostId(source),
            destination: HostId(destination),
            bytes: Some(self.size.sample(&mut stream).get().max(1)),
        };
        self.drawn += 1;
        self.draw_gap();
        flow
    }

    fn copy(&self) -> Box<dyn FlowSequence> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Of many draws, each pair has its share: of the sender, and of the receiver among the other hosts.
    #[test]
    fn pairs_are_drawn_by_weights() {
        let of = |host, send, receive| HostWeights {
            host,
            send: Rate::from_bps(send),
            receive: Rate::from_bps(receive),
        };
        let all = [of(3, 3_000_000, 1_000_000), of(5, 1_000_000, 2_000_000), of(6, 0, 1_000_000)];
        let weights = Weights::new(&all);
        const DRAWS: u32 = 40_000;
        let mut counts: BTreeMap<(u32, u32), u32> = BTreeMap::new();
        for number in 0..u64::from(DRAWS) {
            let pair = weights.draw(&mut Streams::keyed(7, number)).expect("there are weights");
            *counts.entry(pair).or_default() += 1;
        }
        let expected = [((3, 5), 0.5), ((3, 6), 0.25), ((5, 3), 0.125), ((5, 6), 0.125)];
        assert_eq!(counts.keys().copied().collect::<Vec<_>>(), expected.map(|(pair, _)| pair));
        for (pair, share) in expected {
            let drawn = f64::from(counts[&pair]) / f64::from(DRAWS);
            // Four standard deviations.
            assert!(
                (drawn - share).abs() < 4.0 * (share * (1.0 - share) / f64::from(DRAWS)).sqrt(),
                "{pair:?}: {drawn}"
            );
        }
        assert_eq!(Weights::default().draw(&mut Streams::keyed(7, 0)), None);
    }
}
