//! `all-to-all`: Poisson flows between random pairs of hosts.

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::quantity::Load;
use plimsoll_units::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Check, Demand};
use crate::distribution::SizeDistribution;
use crate::facts::NetworkFacts;
use crate::kind::{Context, ExpectedRecords, Input, Kind, LoadKey, cdf_inputs, number};
use crate::one_way::{OneWay, Poisson};
use crate::record::Supply;
use crate::source::Source;

/// Poisson flows between random pairs, sizes from a distribution.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AllToAll {
    /// Size of a flow.
    pub size: SizeDistribution,
    /// Bytes that each host sends per second: a rate, or a share of a host's link.
    pub load: Load,
    /// Stop after this many flows.
    #[serde(default)]
    pub count: Option<u64>,
    /// When the first flow may come.
    #[serde(default)]
    pub start: Span,
}

impl Kind for AllToAll {
    fn check(&mut self, check: &mut Check<'_>) -> Demand {
        check.distribution("size", &mut self.size);
        let bits = check.load("load", self.load, Some(check.facts().host_rate(0)));
        check.oversubscription("load", bits);
        Demand { ends: self.count.is_some(), start: self.start, towards: None }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let hosts = context.facts.host_count();
        let size = self.size.sampler();
        let mean_gap = context.mean_gap(self.load, HostId(0), size.mean()) / f64::from(hosts);
        let start = Time::ZERO + self.start;
        let mut poisson = Poisson::new(context.streams, context.name, hosts, size, mean_gap, start);
        poisson.count = self.count;
        poisson.until = context.until;
        let source = OneWay::poisson(context.index, context.warmup, poisson);
        Ok(Box::new(source.sharing_connections(context.keeps_connections)))
    }

    fn supply(&self) -> Supply {
        Supply::counted(self.count)
    }

    fn load(&self) -> Option<LoadKey> {
        Some(LoadKey::Load(self.load))
    }

    fn inputs(&self) -> Vec<Input<'_>> {
        cdf_inputs([self.size.table()])
    }

    fn expected_records(&self, facts: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        let bits = self.load.bits_per_second(facts.host_rate(0)) * f64::from(facts.host_count());
        let per_second = bits / 8.0 / self.size.sampler().mean();
        Some(ExpectedRecords::new("load", self.start).per_second(per_second).limit(number(self.count)))
    }
}
