//! `all-to-all`: Poisson flows between random pairs of hosts, all alike or by weights of hosts.

use std::sync::Arc;

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::quantity::Load;
use plimsoll_units::{Bytes, Span, Stream, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::distribution::{Sampler, SizeDistribution, exponential};
use crate::draw::{stretched, uniform_choice};
use crate::facts::NetworkFacts;
use crate::kind::{Context, ExpectedRecords, Input, Kind, LoadKey, cdf_inputs, number};
use crate::one_way::{FlowSequence, OneWay, PendingFlow};
use crate::record::Supply;
use crate::source::Source;
use crate::weights::{self, HostWeights, Weights};

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

impl Kind for AllToAll {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        check.distribution("size", &mut self.size);
        if let Some(file) = &self.weights
            && let Some(text) = check.flow_list("weights", file)
        {
            match weights::parse(file, &text, check.facts()) {
                Ok(weights) => match weights::problem(&weights, check.facts()) {
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
