//! Two tiers: every leaf is connected to every spine.
//!
//! Ports after the NICs and the ports towards hosts: leaf up (leaf by leaf), then spine down.

use plimsoll_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Inside, Kind, Racks, TopologyCheck, TopologyCut, hosts, product};
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
    /// Whether each NIC of the hosts has a network of its own: the leaves and spines of one number of NICs are a plane,
    /// which no link connects with the others, and `spines` are divided among the planes. Default false: every leaf is
    /// connected to every spine.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub planes: bool,
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

    fn hops(&self) -> NextHops {
        let LeafSpine { leaves, spines, hosts_per_leaf, .. } = *self;
        NextHops { leaves, spines, hosts_per_leaf, planes: if self.planes { self.nics.max(1) } else { 1 } }
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
        if self.planes && (self.nics < 2 || !self.spines.is_multiple_of(self.nics)) {
            let problem = format!("{} spines in planes of {} NICs", self.spines, self.nics);
            check.error("planes", problem, "`nics` of 2 or more, which divide `spines`");
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
        of_hosts.saturating_add(product([self.leaves, self.hops().uplinks()]))
    }

    fn switches(&self) -> Vec<u32> {
        vec![self.leaves, self.spines]
    }

    fn switch_ports(&self, tier: usize) -> u32 {
        let hops = self.hops();
        if tier == 0 { self.hosts_per_leaf.saturating_add(hops.uplinks()) } else { hops.downlinks() }
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
        let links_of_all = self.hops().uplinks() * self.nics;
        let bits_per_second = self.fabric_rate().as_bps() as f64 * f64::from(links_of_all);
        vec![TopologyCut { links, inside: Inside::Groups(self.hosts_per_leaf), bits_per_second }]
    }

    fn racks(&self) -> Option<Racks> {
        (self.nics == 1).then_some(Racks { name: "leaves", count: self.leaves, hosts: self.hosts_per_leaf })
    }

    fn with_racks(&self, count: u32) -> Option<String> {
        Some(format!("topology.leaves={count}"))
    }

    fn neighbours(&self, node: Node) -> Vec<Node> {
        let (hops, each) = (self.hops(), self.hosts_per_leaf);
        match node {
            Node::Host(host) => vec![Node::Switch(host.0 / each)],
            Node::Switch(leaf) if leaf < self.leaves => {
                let spines = hops.spines_of(leaf).map(|spine| Node::Switch(self.leaves + spine));
                spines.chain(hosts(leaf * each..(leaf + 1) * each)).collect()
            }
            Node::Switch(spine) => hops.leaves_of(spine - self.leaves).map(Node::Switch).collect(),
        }
    }

    fn network(&self) -> Result<Network, Unbuildable> {
        let host = LinkClass { rate: self.rate, propagation: self.delay };
        let fabric = LinkClass { rate: self.fabric_rate(), propagation: self.fabric_delay() };
        Ok(self.hops().network(host, fabric))
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
        NextHops { leaves, spines, hosts_per_leaf, planes: 1 }.network(host, fabric)
    }
}

/// The next hops between leaves and spines.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextHops {
    leaves: u32,
    spines: u32,
    hosts_per_leaf: u32,
    /// Leaf `l` is in plane `l % planes`, and so many spines after each other are in one.
    planes: u32,
}

impl NextHops {
    fn network(self, host: LinkClass, fabric: LinkClass) -> Network {
        let hosts = self.leaves * self.hosts_per_leaf;
        let (switches, links) = (self.leaves + self.spines, self.links(host, fabric));
        Network::new(hosts, switches, links, LeafSpine::TIERS, Paths::LeafSpine(self))
    }

    /// Returns the number of a leaf's links to spines.
    fn uplinks(&self) -> u32 {
        self.spines / self.planes
    }

    /// Returns the number of a spine's links to leaves.
    fn downlinks(&self) -> u32 {
        self.leaves / self.planes
    }

    fn spines_of(&self, leaf: u32) -> impl Iterator<Item = u32> {
        let first = leaf % self.planes * self.uplinks();
        first..first + self.uplinks()
    }

    fn leaves_of(&self, spine: u32) -> impl Iterator<Item = u32> {
        (spine / self.uplinks()..self.leaves).step_by(self.planes as usize)
    }

    fn links(&self, host: LinkClass, fabric: LinkClass) -> Vec<Link> {
        let NextHops { leaves, spines, hosts_per_leaf, .. } = *self;
        let leaf = Node::Switch;
        let spine = |s| Node::Switch(leaves + s);
        let mut links: Vec<Link> =
            host_links(leaves * hosts_per_leaf, host, |h| h / hosts_per_leaf).collect();
        for l in 0..leaves {
            links.extend(self.spines_of(l).map(|s| fabric.link(leaf(l), spine(s), 0)));
        }
        for s in 0..spines {
            links.extend(self.leaves_of(s).map(|l| fabric.link(spine(s), leaf(l), 1)));
        }
        links
    }

    /// Returns the choices in a plane, which leads to each host: at another NIC of its than `dst` where that is in
    /// another plane.
    fn choices_in_plane(&self, switch: u32, dst: u32) -> Choices {
        let NextHops { leaves, hosts_per_leaf, planes, .. } = *self;
        let (hosts, uplinks) = (leaves * hosts_per_leaf, self.uplinks());
        let dst_leaf = dst / hosts_per_leaf;
        if switch >= leaves {
            let first = 2 * hosts + leaves * uplinks + (switch - leaves) * self.downlinks();
            return Choices::one(first + dst_leaf / planes);
        }
        let last = dst_leaf - dst_leaf % planes + switch % planes;
        if switch == last {
            return Choices::one(hosts + last * hosts_per_leaf + dst % hosts_per_leaf);
        }
        Choices { first: 2 * hosts + switch * uplinks, count: uplinks, tier: 0 }
    }

    #[inline]
    pub(super) fn choices(&self, switch: u32, dst: u32) -> Choices {
        let NextHops { leaves, spines, hosts_per_leaf, planes } = *self;
        if planes > 1 {
            return self.choices_in_plane(switch, dst);
        }
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
