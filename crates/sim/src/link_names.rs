//! [`LinkNames`]: every link as the scenario names its ends, for the links of an outcome and the places of waiting.

use plimsoll_fabric::LinkReading;
use plimsoll_fabric::net::{Network, Node};
use plimsoll_results::link_map::link_names;
use plimsoll_results::outcome::{BlockedTier, LinkTotals, PathWait};
use plimsoll_scenario::model::Topology;
use plimsoll_traffic::record::{PathWaitRecord, WaitedAt};
use plimsoll_units::Span;

/// The names of every link, by number.
#[derive(Debug)]
pub(crate) struct LinkNames(Vec<NamedLink>);

/// A link's ends as the scenario names them, and the tiers that it connects.
#[derive(Clone, Debug)]
struct NamedLink {
    from: String,
    to: String,
    tier: String,
}

impl LinkNames {
    pub(crate) fn new(topology: &Topology, network: &Network) -> LinkNames {
        let mut tier_of_switch = vec![0; network.switches() as usize];
        for link in network.links() {
            if let Node::Switch(switch) = link.from {
                tier_of_switch[switch as usize] = link.tier;
            }
        }
        let name = |node| topology.node_name(node);
        let tier = |node| match node {
            Node::Host(_) => "host",
            Node::Switch(switch) => network.tiers()[usize::from(tier_of_switch[switch as usize])],
        };
        let links = network.links().iter().map(|link| NamedLink {
            from: name(link.from),
            to: name(link.to),
            tier: format!("{} -> {}", tier(link.from), tier(link.to)),
        });
        LinkNames(links.collect())
    }

    /// Adds up by tier how long links had packets waiting for a pause; only tiers with such links.
    pub(crate) fn blocked(&self, readings: &[LinkReading]) -> Vec<BlockedTier> {
        let mut tiers: Vec<(&str, Span)> = Vec::new();
        for (NamedLink { tier, .. }, reading) in self.0.iter().zip(readings) {
            match tiers.iter_mut().find(|(known, _)| known == tier) {
                _ if reading.blocked.is_zero() => {}
                Some((_, blocked)) => *blocked += reading.blocked,
                None => tiers.push((tier, reading.blocked)),
            }
        }
        let named = |(tier, blocked): (&str, Span)| BlockedTier {
            tier: tier.to_owned(),
            blocked_ns: blocked.as_ps() / 1_000,
        };
        tiers.into_iter().map(named).collect()
    }

    /// Names the places where messages waited; `tiers` are the names of switch tiers.
    pub(crate) fn path_waits(&self, waits: &[PathWaitRecord], tiers: &[&str]) -> Vec<PathWait> {
        if waits.is_empty() {
            return Vec::new();
        }
        let links = link_names(self.0.iter().map(|link| (link.from.as_str(), link.to.as_str())));
        let link = |number: u32| &links[number as usize];
        let named = |wait: &PathWaitRecord| PathWait {
            workload: wait.workload,
            index: wait.index,
            at: match wait.at {
                WaitedAt::Link(number) => link(number).clone(),
                WaitedAt::Links(one, other) => format!("{} or {}", link(one), link(other)),
                WaitedAt::Tier(tier) => {
                    format!("{} switches", tiers.get(usize::from(tier)).unwrap_or(&"other"))
                }
                WaitedAt::Server(server) => format!("inside server {server}"),
            },
            waited: wait.waited,
        };
        waits.iter().map(named).collect()
    }

    /// Names the readings of every link.
    pub(crate) fn totals(self, readings: Vec<LinkReading>) -> Vec<LinkTotals> {
        let total = |(NamedLink { from, to, tier }, reading): (NamedLink, LinkReading)| LinkTotals {
            from,
            to,
            tier,
            rate: reading.rate,
            observed: reading.observed,
            packets: reading.carried.packets,
            bytes: reading.carried.bytes,
            drops: reading.carried.drops,
            pauses: reading.pauses.pauses,
            paused: reading.pauses.paused,
        };
        self.0.into_iter().zip(readings).map(total).collect()
    }
}
