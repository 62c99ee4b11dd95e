//! `pstride`: a chain of hosts that change their destinations in unison.
//!
//! ```text
//! period 0: h0 ──> h1, h1 ──> h2, ...     period 1: h0 ──> h2, h1 ──> h3, ...     and so on
//! ```

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::quantity::Load;
use plimsoll_units::{Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::facts::NetworkFacts;
use crate::hosts::HostSet;
use crate::kind::{Context, ExpectedRecords, Kind, LoadKey, host_count, number};
use crate::kinds::stride::StrideChain;
use crate::one_way::{FlowSequence, OneWay, PendingFlow};
use crate::record::Supply;
use crate::source::Source;

/// A chain of hosts as of `stride`, in which all change their destination in unison: in each period every host sends
/// one flow, in the next period to the host one place further (BulletTrains).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Pstride {
    /// The hosts of the chain, in its order; default: all.
    #[serde(default = "HostSet::all")]
    pub hosts: HostSet,
    /// The number of places from a host to its first destination.
    #[serde(default = "StrideChain::default_stride")]
    pub stride: u32,
    /// The length of a period, after which all hosts change their destination.
    pub period: Span,
    /// Bytes that each host sends per second: a rate, or a share of its link. A flow has the bytes of the load in a
    /// period.
    pub load: Load,
    /// The number of periods, after which the workload stops. Default: no limit but `run.duration`.
    #[serde(default)]
    pub periods: Option<u64>,
    /// The time at which the first period starts.
    #[serde(default)]
    pub start: Span,
}

impl Kind for Pstride {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        StrideChain::check(check, &self.hosts, self.stride);
        if self.period.is_zero() {
            check.error("period", "a period of no length", "more than 0s");
        }
        check.load("load", self.load, Some(check.facts().host_rate(0)));
        check.at_least_one("periods", self.periods.unwrap_or(1), "no period at all");
        WorkloadDemand { ends: self.periods.is_some(), start: self.start, ..WorkloadDemand::default() }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let chain = StrideChain::new(context, &self.hosts, self.stride)?;
        let bytes = |host: &HostId| {
            let bits = self.load.bits_per_second(context.facts.host_rate(host.0));
            (bits / 8.0 * self.period.as_secs_f64()).round().max(1.0) as u64
        };
        let periods = Periods {
            bytes: chain.hosts.iter().map(bytes).collect(),
            chain,
            start: Time::ZERO + self.start,
            period: self.period,
            periods: self.periods.unwrap_or(u64::MAX),
            until: context.until,
            sent: 0,
        };
        let source = OneWay::sequence(context.index, context.warmup, Box::new(periods));
        Ok(Box::new(source.sharing_connections(context.keeps_connections)))
    }

    fn supply(&self) -> Supply {
        Supply::counted(self.periods)
    }

    fn bounding_key(&self) -> &'static str {
        "periods"
    }

    fn load(&self) -> Option<LoadKey> {
        Some(LoadKey::Load(self.load))
    }

    fn offered_bps(&self, facts: &dyn NetworkFacts) -> Option<f64> {
        Some(self.load.bits_per_second(facts.host_rate(0)) * host_count(facts, &self.hosts, &[]))
    }

    fn expected_records(&self, facts: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        let hosts = host_count(facts, &self.hosts, &[]);
        let per_second = hosts / self.period.as_secs_f64().max(1e-12);
        let limit = number(self.periods).map(|periods| periods * hosts);
        Some(ExpectedRecords::new("period", self.start).per_second(per_second).limit(limit))
    }
}

/// The flows of all periods.
#[derive(Clone, Debug)]
struct Periods {
    chain: StrideChain,
    /// The bytes of a flow, by sender.
    bytes: Vec<u64>,
    start: Time,
    period: Span,
    /// The number of periods.
    periods: u64,
    until: Time,
    /// The number of flows that have been sent.
    sent: u64,
}

impl FlowSequence for Periods {
    fn next(&self) -> Time {
        let period = self.sent / self.chain.hosts.len() as u64;
        let start = self.start.saturating_add(self.period.saturating_mul(period));
        if period < self.periods && start < self.until { start } else { Time::MAX }
    }

    fn pop(&mut self) -> PendingFlow {
        let senders = self.chain.hosts.len() as u64;
        let (period, sender) = (self.sent / senders, (self.sent % senders) as usize);
        let flow = PendingFlow {
            start: self.next(),
            source: self.chain.hosts[sender],
            destination: self.chain.destination(sender, period),
            bytes: Some(self.bytes[sender]),
        };
        self.sent += 1;
        flow
    }

    fn copy(&self) -> Box<dyn FlowSequence> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::testing::{errors, flows_of, parsed};

    const TEXT: &str = "kind = 'pstride'\nperiod = '1ms'\nload = 0.5\nperiods = 9";

    #[test]
    fn all_hosts_change_in_unison_and_each_period_is_a_permutation() {
        let flows = flows_of(8, &parsed(TEXT), 1);
        assert_eq!(flows.len(), 9 * 8);
        for (period, flows) in flows.chunks(8).enumerate() {
            let at = Time::ZERO + Span::from_ms(period as u64);
            // After seven periods every host has sent to every other.
            let distance = 1 + period as u32 % 7;
            assert!(
                flows.iter().all(|flow| flow.at == at && flow.destination == (flow.source + distance) % 8)
            );
            let receivers: BTreeSet<u32> = flows.iter().map(|flow| flow.destination).collect();
            assert_eq!(receivers.len(), 8);
        }
    }

    #[test]
    fn flows_offer_the_load() {
        // Half of 1 Gb/s for 1 ms are 62,500 B.
        assert!(flows_of(8, &parsed(TEXT), 1).iter().all(|flow| flow.bytes == 62_500));
        assert_eq!(flows_of(8, &parsed(TEXT), 1), flows_of(8, &parsed(TEXT), 2), "nothing is drawn");
    }

    #[test]
    fn impossible_periods_are_errors() {
        for (from, to, key) in [
            ("'1ms'", "'0s'", "period"),
            ("periods = 9", "periods = 0", "periods"),
            ("0.5", "0.0", "load"),
            ("periods = 9", "stride = 8", "stride"),
        ] {
            assert_eq!(errors(8, &parsed(&TEXT.replace(from, to))), [key], "{to}");
        }
    }
}
