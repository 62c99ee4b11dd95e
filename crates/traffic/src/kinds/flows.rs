//! `flows`: a fixed number of flows to one host.

use plimsoll_fabric::Unbuildable;
use plimsoll_units::{Bytes, Span, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::draw::uniform_choice;
use crate::facts::NetworkFacts;
use crate::hosts::{HostName, HostSet};
use crate::kind::{Context, Kind, host_count};
use crate::one_way::{OneWay, PendingFlow};
use crate::record::Supply;
use crate::source::Source;

/// A fixed number of flows that send from a start time on.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Flows {
    /// The hosts that send.
    pub from: HostSet,
    /// The host that receives.
    pub to: HostName,
    /// Bytes of each flow; without it the flows send until `run.duration`.
    #[serde(default)]
    pub size: Option<Bytes>,
    /// The time at which the first flow starts.
    #[serde(default)]
    pub start: Span,
    /// Time between the starts of one flow and the next.
    #[serde(default)]
    pub stagger: Span,
    /// Each flow starts later than `start` and `stagger` say by a time drawn uniformly from zero to
    /// this.
    #[serde(default)]
    pub start_within: Span,
}

impl Kind for Flows {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let to = check.host("to", &self.to);
        check.hosts("from", &self.from, to);
        check.some_bytes("size", self.size.unwrap_or(Bytes::new(1)));
        WorkloadDemand { ends: self.size.is_some(), start: self.start, ..WorkloadDemand::default() }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let to = context.host(&self.to, "to")?;
        let from = context.hosts(&self.from, &[to], "from")?;
        let starts = context.streams.word(&format!("workload/{}/starts", context.name));
        let late = |index: usize| {
            let mut stream = Streams::keyed(starts, index as u64);
            Span::from_ps(uniform_choice(&mut stream, self.start_within.as_ps().max(1)))
        };
        let list = from
            .into_iter()
            .enumerate()
            .map(|(index, source)| PendingFlow {
                start: Time::ZERO + self.start + self.stagger * index as u64 + late(index),
                source,
                destination: to,
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
        if self.size.is_some() { 0.0 } else { host_count(facts, &self.from, &[&self.to]) }
    }
}
