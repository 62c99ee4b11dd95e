//! `stride`: a chain of hosts, in which each sends to the host some places after it.
//!
//! ```text
//! h0 ──> h1 ──> h2 ──> ... ──> h7 ──> h0      every host sends data and receives data, mixed with ACKs
//! ```
//!
//! BulletTrains (section 3) measures bursts with it; `pstride` and `hstride` change the destinations over time.

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Span, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::draw::uniform_choice;
use crate::facts::NetworkFacts;
use crate::hosts::HostSet;
use crate::kind::{Context, Kind, host_count};
use crate::one_way::{OneWay, PendingFlow};
use crate::record::Supply;
use crate::source::Source;

/// A chain of hosts: each sends one flow to the host `stride` places after it, the last ones to the first, so that
/// every host sends and receives, and the acknowledgements of one flow mix with the data of another (BulletTrains).
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Stride {
    /// The hosts of the chain, in its order; default: all.
    #[serde(default = "HostSet::all")]
    pub hosts: HostSet,
    /// The number of places from a host to its destination.
    #[serde(default = "StrideChain::default_stride")]
    pub stride: u32,
    /// Bytes of each flow; without it the flows send until `run.duration`.
    #[serde(default)]
    pub size: Option<Bytes>,
    /// The time at which the flows start.
    #[serde(default)]
    pub start: Span,
    /// Each flow starts later than `start` by a time drawn uniformly from zero to this.
    #[serde(default)]
    pub start_within: Span,
}

impl Kind for Stride {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        StrideChain::check(check, &self.hosts, self.stride);
        check.some_bytes("size", self.size.unwrap_or(Bytes::new(1)));
        WorkloadDemand { ends: self.size.is_some(), start: self.start, ..WorkloadDemand::default() }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let chain = StrideChain::new(context, &self.hosts, self.stride)?;
        let starts = context.streams.word(&format!("workload/{}/starts", context.name));
        let flow = |sender: usize| {
            let mut stream = Streams::keyed(starts, sender as u64);
            let late = uniform_choice(&mut stream, self.start_within.as_ps().max(1));
            PendingFlow {
                start: Time::ZERO + self.start + Span::from_ps(late),
                source: chain.hosts[sender],
                destination: chain.destination(sender, 0),
                bytes: self.size.map(Bytes::get),
            }
        };
        let list = (0..chain.hosts.len()).map(flow).collect();
        Ok(Box::new(OneWay::list(context.index, context.warmup, list)))
    }

    fn supply(&self) -> Supply {
        if self.size.is_some() { Supply::Fixed } else { Supply::Endless }
    }

    fn bounding_key(&self) -> &'static str {
        "size"
    }

    fn lasting_connections(&self, facts: &dyn NetworkFacts, _kept: bool) -> f64 {
        if self.size.is_some() { 0.0 } else { host_count(facts, &self.hosts, &[]) }
    }
}

/// The hosts of a chain and the distance from each to its destination.
#[derive(Clone, Debug)]
pub(crate) struct StrideChain {
    pub(crate) hosts: Vec<HostId>,
    stride: u32,
}

impl StrideChain {
    pub(crate) fn default_stride() -> u32 {
        1
    }

    /// Checks the keys `hosts` and `stride`.
    pub(crate) fn check(check: &mut WorkloadCheck<'_>, hosts: &HostSet, stride: u32) {
        let members = check.members("hosts", hosts, &[]).len();
        if members == 1 {
            check.error("hosts", "one host has no other to send to", "at least two hosts");
        } else if members > 1 && (stride == 0 || stride as usize >= members) {
            let problem = format!("stride {stride} in a chain of {members} hosts");
            check.error("stride", problem, format!("1 to {}", members - 1));
        }
    }

    pub(crate) fn new(
        context: &Context<'_>,
        hosts: &HostSet,
        stride: u32,
    ) -> Result<StrideChain, Unbuildable> {
        Ok(StrideChain { hosts: context.hosts(hosts, &[], "hosts")?, stride })
    }

    /// Returns the destination of a sender after `changes` changes; each change moves it one place further, past the
    /// sender itself.
    pub(crate) fn destination(&self, sender: usize, changes: u64) -> HostId {
        let hosts = self.hosts.len() as u64;
        let distance = 1 + (u64::from(self.stride) - 1 + changes % (hosts - 1)) % (hosts - 1);
        self.hosts[((sender as u64 + distance) % hosts) as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::testing::{errors, flows_of, parsed};

    #[test]
    fn every_host_sends_to_the_one_its_stride_after_it() {
        for (stride, hosts) in [(1, 8), (3, 8), (7, 8), (1, 2)] {
            let flows =
                flows_of(hosts, &parsed(&format!("kind = 'stride'\nstride = {stride}\nsize = '1MB'")), 1);
            let pairs: Vec<(u32, u32)> = flows.iter().map(|flow| (flow.source, flow.destination)).collect();
            let expected: Vec<(u32, u32)> = (0..hosts).map(|host| (host, (host + stride) % hosts)).collect();
            assert_eq!(pairs, expected);
            assert!(flows.iter().all(|flow| flow.bytes == 1_000_000 && flow.at == Time::ZERO));
        }
    }

    #[test]
    fn a_chain_of_some_hosts_keeps_their_order() {
        let flows = flows_of(8, &parsed("kind = 'stride'\nhosts = ['h5', 'h1', 'h3']\nsize = '1KB'"), 1);
        let pairs: BTreeSet<(u32, u32)> = flows.iter().map(|flow| (flow.source, flow.destination)).collect();
        assert_eq!(pairs, BTreeSet::from([(5, 1), (1, 3), (3, 5)]));
    }

    #[test]
    fn starts_are_drawn_from_the_seed() {
        let workload = parsed("kind = 'stride'\nsize = '1KB'\nstart = '1ms'\nstart_within = '100us'");
        let flows = flows_of(6, &workload, 1);
        let window = Time::from_ps(1_000_000_000)..Time::from_ps(1_100_000_000);
        assert!(flows.iter().all(|flow| window.contains(&flow.at)));
        assert_eq!(flows, flows_of(6, &workload, 1), "the same seed gives the same flows");
        assert_ne!(flows, flows_of(6, &workload, 2));
    }

    #[test]
    fn destinations_change_past_the_sender_itself() {
        let chain = StrideChain { hosts: (0..4).map(HostId).collect(), stride: 2 };
        let of_first: Vec<u32> = (0..5).map(|changes| chain.destination(0, changes).0).collect();
        assert_eq!(of_first, [2, 3, 1, 2, 3]);
        for changes in 0..10 {
            let receivers: BTreeSet<HostId> =
                (0..4).map(|sender| chain.destination(sender, changes)).collect();
            assert_eq!(receivers.len(), 4, "at each instant it is a permutation");
        }
    }

    #[test]
    fn impossible_chains_are_errors() {
        for (text, key) in [
            ("hosts = 'h1'", "hosts"),
            ("hosts = ['h1', 'h1']", "hosts"),
            ("stride = 0", "stride"),
            ("stride = 8", "stride"),
            ("size = '0B'", "size"),
        ] {
            assert_eq!(errors(8, &parsed(&format!("kind = 'stride'\n{text}"))), [key], "{text}");
        }
    }
}
