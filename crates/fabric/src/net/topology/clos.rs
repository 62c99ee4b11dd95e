//! Three tiers of switches: pods of edge and aggregation switches, and cores above them. The k-ary fat-tree is
//! the one in which every switch has as many links up as down.
//!
//! ```text
//! cores          aggregation switch a of every pod is connected to cores a*C .. a*C + C
//! aggregations   every one of a pod is connected to every edge switch of the pod
//! edges          each has H hosts
//! ```
//!
//! Ports in this order: NICs, edge down, edge up, aggregation down, aggregation up, core down.

use plimsoll_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arithmetic::Divisor;
use super::kind::{Inside, Kind, Racks, TopologyCheck, TopologyCut, hosts, product, switches};
use super::link::{Choices, Link, LinkClass, Node, host_links};
use super::{Network, Paths};
use crate::Unbuildable;

/// Three tiers of switches in pods, with more or fewer links upwards than down: `edge`, `aggregation`, `core`. Each
/// aggregation switch has cores of its own, which connect it with the aggregation switches of the same number in other
/// pods.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Clos {
    /// Number of pods.
    pub pods: u32,
    /// Edge switches of a pod, each connected to every aggregation switch of its pod.
    pub edges: u32,
    /// Aggregation switches of a pod.
    pub aggregations: u32,
    /// Cores that each aggregation switch is connected to.
    pub cores: u32,
    /// Hosts of an edge switch.
    pub hosts_per_edge: u32,
    /// Rate of a host's link.
    pub rate: Rate,
    /// Rate of a link between switches; default: `rate`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fabric_rate: Option<Rate>,
    /// One-way propagation of every link.
    pub delay: Span,
}

impl Clos {
    pub(super) const TIERS: &[&str] = &["edge", "aggregation", "core"];

    fn shape(&self) -> ClosShape {
        let Clos { pods, edges, aggregations, cores, hosts_per_edge, .. } = *self;
        ClosShape { pods, edges, aggregations, cores, hosts_per_edge }
    }

    fn fabric_rate(&self) -> Rate {
        self.fabric_rate.unwrap_or(self.rate)
    }
}

impl Kind for Clos {
    fn check(&self, check: &mut TopologyCheck) {
        let least = if self.edges == 1 && self.hosts_per_edge == 1 { 2 } else { 1 };
        check.at_least("pods", self.pods, least);
        check.at_least("edges", self.edges, 1);
        check.at_least("aggregations", self.aggregations, 1);
        check.at_least("cores", self.cores, 1);
        check.at_least("hosts_per_edge", self.hosts_per_edge, 1);
        check.rate("rate", self.rate);
        check.rate("fabric_rate", self.fabric_rate());
    }

    fn tiers(&self) -> &'static [&'static str] {
        Clos::TIERS
    }

    fn hosts(&self) -> u64 {
        self.shape().hosts()
    }

    fn links(&self) -> u64 {
        self.shape().link_count()
    }

    fn switches(&self) -> Vec<u32> {
        self.shape().switches().to_vec()
    }

    fn switch_ports(&self, tier: usize) -> u32 {
        self.shape().switch_ports(tier)
    }

    fn host_rate(&self, _host: u32) -> Rate {
        self.rate
    }

    fn link_classes(&self) -> Vec<(Rate, Span)> {
        vec![(self.rate, self.delay), (self.fabric_rate(), self.delay)]
    }

    fn cuts(&self) -> Vec<TopologyCut> {
        let up = self.fabric_rate().as_bps() as f64 * f64::from(self.aggregations);
        let links = "the links from an edge switch to its pod";
        let edge = TopologyCut { links, inside: Inside::Groups(self.hosts_per_edge), bits_per_second: up };
        let links = "the links from a pod to the cores";
        let inside = Inside::Groups(self.hosts_per_edge.saturating_mul(self.edges));
        let pod = TopologyCut { links, inside, bits_per_second: up * f64::from(self.cores) };
        [edge].into_iter().chain((self.pods > 1).then_some(pod)).collect()
    }

    fn racks(&self) -> Option<Racks> {
        Some(Racks { name: "pods", count: self.pods, hosts: self.edges * self.hosts_per_edge })
    }

    fn with_racks(&self, count: u32) -> Option<String> {
        Some(format!("topology.pods={count}"))
    }

    fn neighbours(&self, node: Node) -> Vec<Node> {
        self.shape().neighbours(node)
    }

    fn network(&self) -> Result<Network, Unbuildable> {
        let class = |rate| LinkClass { rate, propagation: self.delay };
        let fabric = class(self.fabric_rate());
        Ok(Network::clos(self.shape(), class(self.rate), fabric, fabric))
    }
}

impl Network {
    /// Returns three tiers of switches (`edge`, `aggregation`, `core`), their links by tier.
    pub fn clos(shape: ClosShape, host: LinkClass, fabric: LinkClass, core: LinkClass) -> Network {
        let hops = NextHops::new(shape);
        let links = hops.links(host, fabric, core);
        let switches = shape.switches().iter().sum();
        Network::new(hops.hosts, switches, links, Clos::TIERS, Paths::Clos(hops))
    }
}

/// The numbers of pods, switches and hosts of a Clos network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClosShape {
    /// The number of pods in the network.
    pub pods: u32,
    /// The number of edge switches in a pod.
    pub edges: u32,
    /// Aggregation switches of a pod.
    pub aggregations: u32,
    /// Cores that each aggregation switch is connected to.
    pub cores: u32,
    /// The number of hosts of an edge switch.
    pub hosts_per_edge: u32,
}

impl ClosShape {
    /// Returns the number of hosts.
    pub(super) fn hosts(&self) -> u64 {
        product([self.pods, self.edges, self.hosts_per_edge])
    }

    /// Returns the number of links, including the links of the hosts.
    pub(super) fn link_count(&self) -> u64 {
        let in_pods = product([self.pods, self.edges, self.aggregations]);
        let to_cores = product([self.pods, self.aggregations, self.cores]);
        self.hosts().saturating_add(in_pods).saturating_add(to_cores)
    }

    /// Returns the numbers of edge switches, aggregation switches and cores.
    pub(super) fn switches(&self) -> [u32; 3] {
        let ClosShape { pods, edges, aggregations, cores, .. } = *self;
        [pods * edges, pods * aggregations, aggregations * cores]
    }

    /// Returns the number of ports of a switch of tier number `tier`.
    pub(super) fn switch_ports(&self, tier: usize) -> u32 {
        match tier {
            0 => self.hosts_per_edge.saturating_add(self.aggregations),
            1 => self.edges.saturating_add(self.cores),
            _ => self.pods,
        }
    }

    /// Returns the nodes that a node has a link to.
    pub(super) fn neighbours(&self, node: Node) -> Vec<Node> {
        let ClosShape { pods, edges, aggregations, cores, hosts_per_edge } = *self;
        let [all_edges, all_aggregations, _] = self.switches();
        let some = |first: u32, count: u32| switches(first..first + count);
        match node {
            Node::Host(host) => vec![Node::Switch(host.0 / hosts_per_edge)],
            Node::Switch(edge) if edge < all_edges => {
                let up = some(all_edges + edge / edges * aggregations, aggregations);
                up.chain(hosts(edge * hosts_per_edge..(edge + 1) * hosts_per_edge)).collect()
            }
            Node::Switch(switch) if switch < all_edges + all_aggregations => {
                let aggregation = switch - all_edges;
                let up = all_edges + all_aggregations + aggregation % aggregations * cores;
                some(aggregation / aggregations * edges, edges).chain(some(up, cores)).collect()
            }
            Node::Switch(switch) => {
                let core = switch - all_edges - all_aggregations;
                (0..pods).map(|pod| Node::Switch(all_edges + pod * aggregations + core / cores)).collect()
            }
        }
    }
}

/// The next hops between the three tiers.
#[derive(Clone, Copy, Debug)]
pub(super) struct NextHops {
    shape: ClosShape,
    hosts: u32,
    /// Edge switches of all pods together.
    edges: u32,
    aggregations: u32,
    /// The first ports of three classes.
    aggregation_down: u32,
    aggregation_up: u32,
    core_down: u32,
    by_hosts: Divisor,
    by_edges: Divisor,
    by_aggregations: Divisor,
}

impl NextHops {
    fn new(shape: ClosShape) -> NextHops {
        let [edges, aggregations, _] = shape.switches();
        let hosts = edges * shape.hosts_per_edge;
        let aggregation_down = 2 * hosts + edges * shape.aggregations;
        let aggregation_up = aggregation_down + aggregations * shape.edges;
        NextHops {
            shape,
            hosts,
            edges,
            aggregations,
            aggregation_down,
            aggregation_up,
            core_down: aggregation_up + aggregations * shape.cores,
            by_hosts: Divisor::new(shape.hosts_per_edge),
            by_edges: Divisor::new(shape.edges),
            by_aggregations: Divisor::new(shape.aggregations),
        }
    }

    fn links(&self, host: LinkClass, fabric: LinkClass, core_link: LinkClass) -> Vec<Link> {
        let NextHops { shape, edges, aggregations, .. } = *self;
        let edge = Node::Switch;
        let aggregation = |a| Node::Switch(edges + a);
        let core = |c| Node::Switch(edges + aggregations + c);
        let pairs = |outer: u32, inner: u32| (0..outer).flat_map(move |o| (0..inner).map(move |i| (o, i)));
        let mut links: Vec<Link> = host_links(self.hosts, host, |h| h / shape.hosts_per_edge).collect();
        links
            .extend(pairs(edges, shape.aggregations).map(|(e, a)| {
                fabric.link(edge(e), aggregation(e / shape.edges * shape.aggregations + a), 0)
            }));
        links
            .extend(pairs(aggregations, shape.edges).map(|(a, e)| {
                fabric.link(aggregation(a), edge(a / shape.aggregations * shape.edges + e), 1)
            }));
        links.extend(
            pairs(aggregations, shape.cores).map(|(a, c)| {
                core_link.link(aggregation(a), core(a % shape.aggregations * shape.cores + c), 1)
            }),
        );
        links.extend(pairs(shape.aggregations * shape.cores, shape.pods).map(|(c, pod)| {
            core_link.link(core(c), aggregation(pod * shape.aggregations + c / shape.cores), 2)
        }));
        links
    }

    #[inline]
    pub(super) fn choices(&self, switch: u32, dst: u32) -> Choices {
        let NextHops { shape, hosts, edges, aggregations, by_hosts, by_edges, by_aggregations, .. } = *self;
        let dst_edge = by_hosts.divide(dst);
        if switch < edges {
            if switch == dst_edge {
                return Choices::one(hosts + dst);
            }
            let first = 2 * hosts + switch * shape.aggregations;
            return Choices { first, count: shape.aggregations, tier: 0 };
        }
        let dst_pod = by_edges.divide(dst_edge);
        if switch < edges + aggregations {
            let aggregation = switch - edges;
            if by_aggregations.divide(aggregation) == dst_pod {
                let edge_of_pod = dst_edge - dst_pod * shape.edges;
                return Choices::one(self.aggregation_down + aggregation * shape.edges + edge_of_pod);
            }
            let first = self.aggregation_up + aggregation * shape.cores;
            return Choices { first, count: shape.cores, tier: 1 };
        }
        Choices::one(self.core_down + (switch - edges - aggregations) * shape.pods + dst_pod)
    }
}
