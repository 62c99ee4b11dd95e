//! `permutation`: a random permutation of hosts, none to itself.

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::draw::uniform_choice;
use crate::facts::NetworkFacts;
use crate::kind::{Context, Kind};
use crate::one_way::{OneWay, PendingFlow};
use crate::record::Supply;
use crate::source::Source;

/// A random permutation: every host sends to one other host and receives from one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Permutation {
    /// Bytes of each flow; without it the flows send until `run.duration`.
    #[serde(default)]
    pub size: Option<Bytes>,
    /// Each flow starts at a time uniform in zero to this.
    #[serde(default)]
    pub start_within: Span,
}

impl Kind for Permutation {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        check.some_bytes("size", self.size.unwrap_or(Bytes::new(1)));
        WorkloadDemand { ends: self.size.is_some(), ..WorkloadDemand::default() }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let hosts = context.facts.host_count();
        let mut stream = context.streams.stream(&format!("workload/{}/permutation", context.name));
        // Sattolo's shuffle makes one cycle, so no host sends to itself.
        let mut to: Vec<u32> = (0..hosts).collect();
        for last in (1..hosts as usize).rev() {
            to.swap(last, uniform_choice(&mut stream, last as u64) as usize);
        }
        let window = self.start_within.as_ps();
        let list = to
            .into_iter()
            .enumerate()
            .map(|(source, destination)| PendingFlow {
                start: Time::from_ps(uniform_choice(&mut stream, window.max(1))),
                source: HostId(source as u32),
                destination: HostId(destination),
                bytes: self.size.map(Bytes::get),
            })
            .collect();
        Ok(Box::new(OneWay::list(context.index, context.warmup, list)))
    }

    fn supply(&self) -> Supply {
        if self.size.is_some() { Supply::Fixed } else { Supply::Endless }
    }

    fn bounding_key(&self) -> &'static str {
        "size"
    }

    fn lasting_connections(&self, facts: &dyn NetworkFacts, _kept: bool) -> f64 {
        if self.size.is_some() { 0.0 } else { f64::from(facts.host_count()) }
    }
}
