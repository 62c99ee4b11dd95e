//! [`LinkNames`]: every link as the scenario names its ends, for the links of an outcome.

use plimsoll_fabric::LinkReading;
use plimsoll_fabric::net::{Network, Node};
use plimsoll_results::outcome::LinkTotals;
use plimsoll_scenario::model::Topology;

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
