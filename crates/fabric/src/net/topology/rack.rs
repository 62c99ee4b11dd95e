//! One switch with hosts.

use plimsoll_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Kind, TopologyCheck, hosts};
use super::link::{LinkClass, Node, host_links};
use super::{Network, Paths};
use crate::Unbuildable;

/// One switch; every host on a link of its own. Tier name: `tor`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Rack {
    /// Number of hosts, named `h0`, `h1`, ...; `client` is `h0`.
    pub hosts: u32,
    /// Rate of every link.
    pub rate: Rate,
    /// One-way propagation of every link.
    pub delay: Span,
}

impl Rack {
    pub(super) const TIERS: &[&str] = &["tor"];
}

impl Kind for Rack {
    fn check(&self, check: &mut TopologyCheck) {
        check.at_least("hosts", self.hosts, 2);
        check.rate("rate", self.rate);
    }

    fn tiers(&self) -> &'static [&'static str] {
        Rack::TIERS
    }

    fn hosts(&self) -> u64 {
        self.hosts.into()
    }

    fn links(&self) -> u64 {
        self.hosts.into()
    }

    fn switches(&self) -> Vec<u32> {
        vec![1]
    }

    fn switch_ports(&self, _tier: usize) -> u32 {
        self.hosts
    }

    fn host_rate(&self, _host: u32) -> Rate {
        self.rate
    }

    fn link_classes(&self) -> Vec<(Rate, Span)> {
        vec![(self.rate, self.delay)]
    }

    fn neighbours(&self, node: Node) -> Vec<Node> {
        match node {
            Node::Host(_) => vec![Node::Switch(0)],
            Node::Switch(_) => hosts(0..self.hosts).collect(),
        }
    }

    fn network(&self) -> Result<Network, Unbuildable> {
        Ok(Network::rack(self.hosts, LinkClass { rate: self.rate, propagation: self.delay }))
    }
}

impl Network {
    /// Returns one switch (tier `tor`) and its hosts.
    pub fn rack(hosts: u32, class: LinkClass) -> Network {
        let links = host_links(hosts, class, |_| 0).collect();
        Network::new(hosts, 1, links, Rack::TIERS, Paths::Rack)
    }
}
