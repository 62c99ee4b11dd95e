//! Two tiers: every leaf is connected to every spine.
//!
//! Ports after the NICs and the ports towards hosts: leaf up (leaf by leaf), then spine down.

use plimsoll_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Inside, Kind, Racks, TopologyCheck, TopologyCut, hosts, product, switches};
use super::link::{Choices, Link, LinkClass, Node, host_links};
use super::{HostNics, Network, Paths};
use crate::Unbuildable;

/// Leaves with hosts, each connected to every spine. Tier names: `leaf`, `spine`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeafSpine {
    /// Number of leaf switches.
    pub leaves: u32,
    /// Number of spine switches.
    pub spines: u32,
    /// Hosts on each leaf.
    pub hosts_per_leaf: u32,
    /// NICs of each host; default 1. With several, so many leaves in turn have the same hosts, each host with one NIC
    /// on each of them: the two switches of a dual-homed rack, or the rails of a training network. `paths.nics` says
    /// which NICs a connection takes.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub nics: u32,
    /// Rate of a host's link.
    pub rate: Rate,
    /// Rate of a leaf-spine link; default: `rate`.
    #[serde(default)]
    pub fabric_rate: Option<Rate>,
    /// One-way propagation of a host's link.
    pub delay: Span,
    /// One-way propagation of a leaf-spine link; default: `delay`.
    #[serde(default)]
    pub fabric_delay: Option<Span>,
}

fn one() -> u32 {
    1
}

/// A scenario without `nics` has the digest that it had before there was this key.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_one(nics: &u32) -> bool {
    *nics == 1
}

impl LeafSpine {
    pub(super) const TIERS: &[&str] = &["leaf", "spine"];

    fn fabric_rate(&self) -> Rate {
        self.fabric_rate.unwrap_or(self.rate)
    }

    fn fabric_delay(&self) -> Span {
        self.fabric_delay.unwrap_or(self.delay)
    }
}

impl Kind for LeafSpine {
    fn check(&self, check: &mut TopologyCheck) {
        check.at_least("leaves", self.leaves, 1);
        check.at_least("spines", self.spines, 1);
        check.at_least("hosts_per_leaf", self.hosts_per_leaf, if self.leaves == self.nics { 2 } else { 1 });
        check.at_least("nics", self.nics, 1);
        if self.nics > 1 && !self.leaves.is_multiple_of(self.nics) {
            let problem = format!("{} leaves are no multiple of {} NICs", self.leaves, self.nics);
            check.error("nics", problem, "a divisor of `leaves`");
        }
        check.rate("rate", self.rate);
        check.rate("fabric_rate", self.fabric_rate());
    }

    fn tiers(&self) -> &'static [&'static str] {
        LeafSpine::TIERS
    }

    fn hosts(&self) -> u64 {
        product([self.leaves, self.hosts_per_leaf]) / u64::from(self.nics.max(1))
    }

    fn nics(&self) -> HostNics {
        match self.nics {
            0 | 1 => HostNics::One,
            count => HostNics::Rails { count, each: self.hosts_per_leaf },
        }
    }

    fn links(&self) -> u64 {
        let of_hosts = product([self.leaves, self.hosts_per_leaf]);
        of_hosts.saturating_add(product([self.leaves, self.spines]))
    }

    fn switches(&self) -> Vec<u32> {
        vec![self.leaves, self.spines]
    }

    fn switch_ports(&self, tier: usize) -> u32 {
        if tier == 0 { self.hosts_per_leaf.saturating_add(self.spines) } else { self.leaves }
    }

    fn host_rate(&self, _host: u32) -> Rate {
        Rate::from_bps(self.rate.as_bps().saturating_mul(self.nics.into()))
    }

    fn link_classes(&self) -> Vec<(Rate, Span)> {
        vec![(self.rate, self.delay), (self.fabric_rate(), self.fabric_delay())]
    }

    fn cuts(&self) -> Vec<TopologyCut> {
        if self.leaves <= self.nics {
            return Vec::new();
        }
        let links = "the links from a leaf to the spines";
        let bits_per_second = self.fabric_rate().as_bps() as f64 * f64::from(self.spines * self.nics);
        vec![TopologyCut { links, inside: Inside::Groups(self.hosts_per_leaf), bits_per_second }]
    }

    fn racks(&self) -> Option<Racks> {
        (self.nics == 1).then_some(Racks { name: "leaves", count: self.leaves, hosts: self.hosts_per_leaf })
    }

    fn with_racks(&self, count: u32) -> Option<String> {
        Some(format!("topology.leaves={count}"))
    }

    fn neighbours(&self, node: Node) -> Vec<Node> {
        let LeafSpine { leaves, spines, hosts_per_leaf, .. } = *self;
        match node {
            Node::Host(host) => vec![Node::Switch(host.0 / hosts_per_leaf)],
            Node::Switch(leaf) if leaf < leaves => {
                let below = hosts(leaf * hosts_per_leaf..(leaf + 1) * hosts_per_leaf);
                switches(leaves..leaves + spines).chain(below).collect()
            }
            Node::Switch(_) => switches(0..leaves).collect(),
        }
    }

    fn network(&self) -> Result<Network, Unbuildable> {
        let host = LinkClass { rate: self.rate, propagation: self.delay };
        let fabric = LinkClass { rate: self.fabric_rate(), propagation: self.fabric_delay() };
        Ok(Network::leaf_spine(self.leaves, self.spines, self.hosts_per_leaf, host, fabric))
    }
}

impl Network {
    /// Returns `leaves` x `hosts_per_leaf` hosts (tiers `leaf`, `spine`), every leaf connected to every spine.
    pub fn leaf_spine(
        leaves: u32,
        spines: u32,
        hosts_per_leaf: u32,
        host: LinkClass,
        fabric: LinkClass,
    ) -> Network {
        let hops = NextHops { leaves, spines, hosts_per_leaf };
        let links = hops.links(host, fabric);
        let hosts = leaves * hosts_per_leaf;
        Network::new(hosts, leaves + spines, links, LeafSpine::TIERS, Paths::LeafSpine(hops))
    }
}

/// The next hops between leaves and spines.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextHops {
    leaves: u32,
    spines: u32,
    hosts_per_leaf: u32,
}

impl NextHops {
    fn links(&self, host: LinkClass, fabric: LinkClass) -> Vec<Link> {
        let NextHops { leaves, spines, hosts_per_leaf } = *self;
        let leaf = Node::Switch;
        let spine = |s| Node::Switch(leaves + s);
        let mut links: Vec<Link> =
            host_links(leaves * hosts_per_leaf, host, |h| h / hosts_per_leaf).collect();
        for l in 0..leaves {
            links.extend((0..spines).map(|s| fabric.link(leaf(l), spine(s), 0)));
        }
        for s in 0..spines {
            links.extend((0..leaves).map(|l| fabric.link(spine(s), leaf(l), 1)));
        }
        links
    }

    #[inline]
    pub(super) fn choices(&self, switch: u32, dst: u32) -> Choices {
        let NextHops { leaves, spines, hosts_per_leaf } = *self;
        let hosts = leaves * hosts_per_leaf;
        let dst_leaf = dst / hosts_per_leaf;
        if switch >= leaves {
            return Choices::one(2 * hosts + leaves * spines + (switch - leaves) * leaves + dst_leaf);
        }
        if switch == dst_leaf {
            return Choices::one(hosts + dst);
        }
        Choices { first: 2 * hosts + switch * spines, count: spines, tier: 0 }
    }
}
