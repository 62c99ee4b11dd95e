//! Two switches with hosts on both sides of one link.
//!
//! Ports after the NICs and the ports towards hosts: the left switch's to the right one, and the one back.

use plimsoll_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Inside, Kind, TopologyCheck, TopologyCut, hosts, switches};
use super::link::{Choices, Link, LinkClass, Node, host_links};
use super::{Network, Paths};
use crate::Unbuildable;

/// Two switches with hosts on both sides of one link. Tier name: `dumbbell`; the hosts of the
/// left side come first.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dumbbell {
    /// Hosts on the left side.
    pub left: u32,
    /// Hosts on the right side.
    pub right: u32,
    /// Rate of a host's link.
    pub rate: Rate,
    /// One-way propagation of a host's link.
    pub delay: Span,
    /// Rate of the link between the switches.
    pub bottleneck_rate: Rate,
    /// One-way propagation of the link between the switches; default: `delay`.
    #[serde(default)]
    pub bottleneck_delay: Option<Span>,
}

impl Dumbbell {
    pub(super) const TIERS: &[&str] = &["dumbbell"];

    fn bottleneck_delay(&self) -> Span {
        self.bottleneck_delay.unwrap_or(self.delay)
    }
}

impl Kind for Dumbbell {
    fn check(&self, check: &mut TopologyCheck) {
        check.at_least("left", self.left, 1);
        check.at_least("right", self.right, 1);
        check.rate("rate", self.rate);
        check.rate("bottleneck_rate", self.bottleneck_rate);
    }

    fn tiers(&self) -> &'static [&'static str] {
        Dumbbell::TIERS
    }

    fn hosts(&self) -> u64 {
        u64::from(self.left) + u64::from(self.right)
    }

    fn links(&self) -> u64 {
        self.hosts() + 1
    }

    fn switches(&self) -> Vec<u32> {
        vec![2]
    }

    fn switch_ports(&self, _tier: usize) -> u32 {
        self.left.max(self.right).saturating_add(1)
    }

    fn tier_ports(&self, _tier: usize) -> u64 {
        self.hosts() + 2
    }

    fn host_rate(&self, _host: u32) -> Rate {
        self.rate
    }

    fn link_classes(&self) -> Vec<(Rate, Span)> {
        vec![(self.rate, self.delay), (self.bottleneck_rate, self.bottleneck_delay())]
    }

    fn cuts(&self) -> Vec<TopologyCut> {
        let links = "the link between the switches";
        let bits_per_second = self.bottleneck_rate.as_bps() as f64;
        vec![TopologyCut { links, inside: Inside::Hosts((0..self.left).collect()), bits_per_second }]
    }

    fn neighbours(&self, node: Node) -> Vec<Node> {
        let Dumbbell { left, right, .. } = *self;
        match node {
            Node::Host(host) => vec![Node::Switch(u32::from(host.0 >= left))],
            Node::Switch(0) => switches(1..2).chain(hosts(0..left)).collect(),
            Node::Switch(_) => switches(0..1).chain(hosts(left..left + right)).collect(),
        }
    }

    fn network(&self) -> Result<Network, Unbuildable> {
        let host = LinkClass { rate: self.rate, propagation: self.delay };
        let bottleneck = LinkClass { rate: self.bottleneck_rate, propagation: self.bottleneck_delay() };
        Ok(Network::dumbbell(self.left, self.right, host, bottleneck))
    }
}

impl Network {
    /// Returns two switches (tier `dumbbell`); hosts `0..left` are on one, the others on the other.
    pub fn dumbbell(left: u32, right: u32, host: LinkClass, bottleneck: LinkClass) -> Network {
        let hosts = left + right;
        let mut links: Vec<Link> = host_links(hosts, host, |h| u32::from(h >= left)).collect();
        links.push(bottleneck.link(Node::Switch(0), Node::Switch(1), 0));
        links.push(bottleneck.link(Node::Switch(1), Node::Switch(0), 0));
        Network::new(hosts, 2, links, Dumbbell::TIERS, Paths::Dumbbell(NextHops { hosts, left }))
    }
}

/// The next hops between two switches.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextHops {
    hosts: u32,
    left: u32,
}

impl NextHops {
    #[inline]
    pub(super) fn choices(&self, switch: u32, dst: u32) -> Choices {
        let side = u32::from(dst >= self.left);
        Choices::one(if side == switch { self.hosts + dst } else { 2 * self.hosts + switch })
    }
}
