//! `incast`: many hosts send to one at the same instant, in rounds.

use plimsoll_fabric::Unbuildable;
use plimsoll_units::{Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{Directed, WorkloadCheck, WorkloadDemand};
use crate::facts::NetworkFacts;
use crate::hosts::{HostName, HostSet};
use crate::kind::{Context, ExpectedRecords, Kind, host_count};
use crate::one_way::{OneWay, PendingFlow};
use crate::record::Supply;
use crate::source::Source;

/// Many hosts send to one at the same instant, in rounds.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Incast {
    /// The receiving host; default `client`.
    #[serde(default)]
    pub to: HostName,
    /// The sending hosts; default: all others.
    #[serde(default)]
    pub from: HostSet,
    /// Bytes of each sender in a round.
    pub size: Bytes,
    /// Time from one round to the next.
    pub every: Span,
    /// The number of rounds, in each of which every sender sends `size`.
    #[serde(default = "Incast::default_rounds")]
    pub rounds: u64,
    /// The time at which the first round starts.
    #[serde(default)]
    pub start: Span,
}

impl Incast {
    fn default_rounds() -> u64 {
        1
    }
}

impl Kind for Incast {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let to = check.host("to", &self.to);
        let senders = check.hosts("from", &self.from, to);
        check.some_bytes("size", self.size);
        check.at_least_one("rounds", self.rounds, "no round at all");
        if self.every.is_zero() && self.rounds > 1 {
            check.error("every", "all rounds at once", "more than 0s");
        }
        // One round is a burst; rounds without an end to their sum are a load.
        let bits = senders.len() as f64 * self.size.get() as f64 * 8.0 / self.every.as_secs_f64();
        let directed = Directed::new(senders, to, (self.rounds > 1).then_some(bits));
        WorkloadDemand { ends: true, start: self.start, directed, ..WorkloadDemand::default() }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let to = context.host(&self.to, "to")?;
        let from = context.hosts(&self.from, &[to], "from")?;
        // No clock reaches all rounds of 1e18.
        let start_of = |round| (Time::ZERO + self.start).saturating_add(self.every.saturating_mul(round));
        let list = (0..self.rounds)
            .map(start_of)
            .take_while(|&start| start < context.until)
            .flat_map(|start| {
                let flow = move |&source| PendingFlow {
                    start,
                    source,
                    destination: to,
                    bytes: Some(self.size.get()),
                };
                from.iter().map(flow)
            })
            .collect();
        let source = OneWay::list(context.index, context.warmup, list);
        Ok(Box::new(source.sharing_connections(context.keeps_connections)))
    }

    fn supply(&self) -> Supply {
        Supply::Fixed
    }

    fn shared_link(&self) -> Option<&HostName> {
        Some(&self.to)
    }

    fn expected_records(&self, facts: &dyn NetworkFacts, has_duration: bool) -> Option<ExpectedRecords> {
        let senders = host_count(facts, &self.from, &[&self.to]);
        let per_second = senders / self.every.as_secs_f64().max(1e-12);
        let records = ExpectedRecords::new("rounds", self.start).limit(Some(senders * self.rounds as f64));
        // The last round may come late, and all are planned before the first.
        Some(if has_duration { records.per_second(per_second) } else { records })
    }
}
