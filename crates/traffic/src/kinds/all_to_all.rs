//! `all-to-all`: Poisson flows between random pairs of hosts.

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

/// Poisson flows between random pairs, sizes from a distribution.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AllToAll {
    /// The size of a flow, or its distribution.
    pub size: SizeDistribution,
    /// Bytes that each host sends per second: a rate, or a share of a host's link.
    pub load: Load,
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
        let bits = check.load("load", self.load, Some(check.facts().host_rate(0)));
        WorkloadDemand {
            ends: self.count.is_some(),
            start: self.start,
            between_all: bits,
            ..WorkloadDemand::default()
        }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let hosts = context.facts.host_count();
        let size = self.size.sampler();
        let mut poisson = Poisson {
            hosts,
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
        cdf_inputs([self.size.table()])
    }

    fn expected_records(&self, facts: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        let per_second = self.offered_bps(facts)? / 8.0 / self.size.sampler().mean();
        Some(ExpectedRecords::new("load", self.start).per_second(per_second).limit(number(self.count)))
    }
}

/// Poisson arrivals of flows between pairs of hosts, which are drawn uniformly.
#[derive(Clone, Debug)]
struct Poisson {
    hosts: u32,
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
        let source = uniform_choice(&mut stream, u64::from(self.hosts)) as u32;
        let other = uniform_choice(&mut stream, u64::from(self.hosts) - 1) as u32;
        let flow = PendingFlow {
            start: self.next,
            source: HostId(source),
            destination: HostId(other + u32::from(other >= source)),
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
