//! Groups of routers: each router is connected to all of its group, and each group to all others (Kim et al., ISCA
//! 2008).
//!
//! ```text
//! global link k of a group, k = c (groups - 1) + o, is at router k / global_links, and leads o + 1 groups further on;
//! there it is link k' with o' = groups - 2 - o and the same c
//! ```
//!
//! Paths are minimal: a local link to a router with a global link to the other group, the global link, and a local
//! link, each of them only where it is needed. Two global links that would be fewer hops are no path.
//!
//! Ports after the NICs and the ports towards hosts, router by router: local, then global.

use plimsoll_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Inside, Kind, TopologyCheck, TopologyCut, hosts, product};
use super::link::{Choices, Link, LinkClass, Node, host_links};
use super::{Network, Paths};
use crate::Unbuildable;

/// Groups of routers with hosts: all routers of a group are connected, and all groups. Tier name: `router`. Paths are
/// minimal, so they cross one global link.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Dragonfly {
    /// Number of groups of routers.
    pub groups: u32,
    /// Routers of each group.
    pub routers: u32,
    /// Hosts on each router.
    pub hosts_per_router: u32,
    /// Links of each router to other groups; those of a group are shared equally by the other groups.
    pub global_links: u32,
    /// Rate of a host's link.
    pub rate: Rate,
    /// Rate of a link in a group; default: `rate`.
    #[serde(default)]
    pub local_rate: Option<Rate>,
    /// Rate of a link between groups; default: `rate`.
    #[serde(default)]
    pub global_rate: Option<Rate>,
    /// One-way propagation of a host's link.
    pub delay: Span,
    /// One-way propagation of a link in a group; default: `delay`.
    #[serde(default)]
    pub local_delay: Option<Span>,
    /// One-way propagation of a link between groups; default: `delay`.
    #[serde(default)]
    pub global_delay: Option<Span>,
}

impl Dragonfly {
    pub(super) const TIERS: &[&str] = &["router"];

    fn local(&self) -> LinkClass {
        let (rate, propagation) = (self.local_rate, self.local_delay);
        LinkClass { rate: rate.unwrap_or(self.rate), propagation: propagation.unwrap_or(self.delay) }
    }

    fn global(&self) -> LinkClass {
        let (rate, propagation) = (self.global_rate, self.global_delay);
        LinkClass { rate: rate.unwrap_or(self.rate), propagation: propagation.unwrap_or(self.delay) }
    }

    /// Returns the links of a router to other routers: first its group's in their order, then the global ones.
    fn far_routers(&self, router: u32) -> impl Iterator<Item = (u32, LinkClass)> {
        let Dragonfly { groups, routers, global_links, .. } = *self;
        let (group, place) = (router / routers, router % routers);
        let local =
            (0..routers).filter(move |other| *other != place).map(move |other| group * routers + other);
        let global = (place * global_links..(place + 1) * global_links).map(move |link| {
            let (turn, offset) = (link / (groups - 1), link % (groups - 1));
            let there = turn * (groups - 1) + groups - 2 - offset;
            (group + offset + 1) % groups * routers + there / global_links
        });
        let (of_group, between) = (self.local(), self.global());
        local.map(move |far| (far, of_group)).chain(global.map(move |far| (far, between)))
    }
}

impl Kind for Dragonfly {
    fn check(&self, check: &mut TopologyCheck) {
        check.at_least("groups", self.groups, 2);
        check.at_least("routers", self.routers, 1);
        check.at_least("hosts_per_router", self.hosts_per_router, 1);
        check.at_least("global_links", self.global_links, 1);
        check.rate("rate", self.rate);
        check.rate("local_rate", self.local().rate);
        check.rate("global_rate", self.global().rate);
        let (links, others) = (product([self.routers, self.global_links]), self.groups.saturating_sub(1));
        if links > 0 && others > 0 && links % u64::from(others) != 0 {
            let problem = format!("{links} global links of a group to {others} others");
            check.error(
                "global_links",
                problem,
                "as many to each: `groups` - 1 divides `routers` x `global_links`",
            );
        }
    }

    fn tiers(&self) -> &'static [&'static str] {
        Dragonfly::TIERS
    }

    fn hosts(&self) -> u64 {
        product([self.groups, self.routers, self.hosts_per_router])
    }

    fn links(&self) -> u64 {
        let routers = product([self.groups, self.routers]);
        let of_each = u64::from(self.routers.saturating_sub(1)) + u64::from(self.global_links);
        self.hosts().saturating_add(routers.saturating_mul(of_each) / 2)
    }

    fn switches(&self) -> Vec<u32> {
        vec![self.groups.saturating_mul(self.routers)]
    }

    fn switch_ports(&self, _tier: usize) -> u32 {
        self.hosts_per_router.saturating_add(self.routers - 1).saturating_add(self.global_links)
    }

    fn host_rate(&self, _host: u32) -> Rate {
        self.rate
    }

    fn link_classes(&self) -> Vec<(Rate, Span)> {
        let classes = [LinkClass { rate: self.rate, propagation: self.delay }, self.local(), self.global()];
        classes.map(|class| (class.rate, class.propagation)).to_vec()
    }

    fn cuts(&self) -> Vec<TopologyCut> {
        let links = "the links from a group to the others";
        let inside = Inside::Groups(self.routers * self.hosts_per_router);
        let count = f64::from(self.routers) * f64::from(self.global_links);
        vec![TopologyCut { links, inside, bits_per_second: self.global().rate.as_bps() as f64 * count }]
    }

    fn neighbours(&self, node: Node) -> Vec<Node> {
        let each = self.hosts_per_router;
        match node {
            Node::Host(host) => vec![Node::Switch(host.0 / each)],
            Node::Switch(router) => {
                let routers = self.far_routers(router).map(|(far, _)| Node::Switch(far));
                routers.chain(hosts(router * each..(router + 1) * each)).collect()
            }
        }
    }

    fn network(&self) -> Result<Network, Unbuildable> {
        let (routers, each) = (self.groups * self.routers, self.hosts_per_router);
        let host = LinkClass { rate: self.rate, propagation: self.delay };
        let mut links: Vec<Link> = host_links(routers * each, host, |h| h / each).collect();
        for router in 0..routers {
            let far = self.far_routers(router);
            links.extend(far.map(|(far, class)| class.link(Node::Switch(router), Node::Switch(far), 0)));
        }
        let hops = Paths::Dragonfly(NextHops::new(self));
        Ok(Network::new(routers * each, routers, links, Dragonfly::TIERS, hops))
    }
}

/// The next hops between routers.
#[derive(Clone, Debug)]
pub(super) struct NextHops {
    hosts: u32,
    hosts_per_router: u32,
    groups: u32,
    routers: u32,
    global_links: u32,
    /// By router and other group (how many groups further on, less one): where in `ports` its ports are.
    choices: Vec<(u32, u32)>,
    ports: Vec<u32>,
}

impl NextHops {
    fn new(topology: &Dragonfly) -> NextHops {
        let Dragonfly { groups, routers, hosts_per_router, global_links, .. } = *topology;
        let hosts = groups * routers * hosts_per_router;
        let mut hops = NextHops {
            hosts,
            hosts_per_router,
            groups,
            routers,
            global_links,
            choices: Vec::new(),
            ports: Vec::new(),
        };
        let turns = routers * global_links / (groups - 1);
        for router in 0..groups * routers {
            for offset in 0..groups - 1 {
                let links = (0..turns).map(|turn| turn * (groups - 1) + offset);
                let (own, others): (Vec<u32>, Vec<u32>) =
                    links.partition(|link| link / global_links == router % routers);
                let start = hops.ports.len() as u32;
                let to_router = |link: &u32| hops.local_port(router, link / global_links);
                let ports: Vec<u32> = match own.is_empty() {
                    true => others.iter().map(to_router).collect(),
                    false => own.iter().map(|link| hops.global_port(router, link % global_links)).collect(),
                };
                hops.ports.extend(ports);
                hops.choices.push((start, hops.ports.len() as u32 - start));
            }
        }
        hops
    }

    fn first_port(&self, router: u32) -> u32 {
        2 * self.hosts + router * (self.routers - 1 + self.global_links)
    }

    /// Returns the port to another router of the group, by its place there.
    fn local_port(&self, router: u32, place: u32) -> u32 {
        self.first_port(router) + place - u32::from(place > router % self.routers)
    }

    fn global_port(&self, router: u32, number: u32) -> u32 {
        self.first_port(router) + self.routers - 1 + number
    }

    /// Returns the choices at `switch` for packets to `dst`, as places of [`NextHops::port`].
    #[inline]
    pub(super) fn choices(&self, switch: u32, dst: u32) -> Choices {
        let to = dst / self.hosts_per_router;
        let only = |port: u32| Choices::one(self.ports.len() as u32 + port);
        if to == switch {
            return only(self.hosts + dst);
        }
        let [from_group, to_group] = [switch, to].map(|router| router / self.routers);
        if from_group == to_group {
            return only(self.local_port(switch, to % self.routers));
        }
        let offset = (to_group + self.groups - from_group - 1) % self.groups;
        let (first, count) = self.choices[(switch * (self.groups - 1) + offset) as usize];
        Choices { first, count, tier: 0 }
    }

    /// Returns the port at a place that [`NextHops::choices`] gave.
    #[inline]
    pub(super) fn port(&self, place: u32) -> u32 {
        let place = place as usize;
        self.ports.get(place).copied().unwrap_or_else(|| (place - self.ports.len()) as u32)
    }
}
