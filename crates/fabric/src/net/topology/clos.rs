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

use super::arithmetic::Divisor;
use super::link::{Choices, Link, LinkClass, Node, host_links};

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

#[derive(Clone, Copy, Debug)]
pub(super) struct Clos {
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

impl ClosShape {
    /// Returns the k-ary fat-tree of Al-Fares et al. (SIGCOMM 2008).
    pub fn fat_tree(k: u32) -> ClosShape {
        assert!(k >= 2 && k.is_multiple_of(2), "a fat-tree's k is even and at least 2, not {k}");
        let half = k / 2;
        ClosShape { pods: k, edges: half, aggregations: half, cores: half, hosts_per_edge: half }
    }
}

impl Clos {
    pub(super) fn new(shape: ClosShape) -> Clos {
        let edges = shape.pods * shape.edges;
        let aggregations = shape.pods * shape.aggregations;
        let hosts = edges * shape.hosts_per_edge;
        let aggregation_down = 2 * hosts + edges * shape.aggregations;
        let aggregation_up = aggregation_down + aggregations * shape.edges;
        Clos {
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

    pub(super) fn hosts(&self) -> u32 {
        self.hosts
    }

    pub(super) fn switches(&self) -> u32 {
        self.edges + self.aggregations + self.shape.aggregations * self.shape.cores
    }

    pub(super) fn links(&self, host: LinkClass, fabric: LinkClass, core_link: LinkClass) -> Vec<Link> {
        let Clos { shape, edges, aggregations, .. } = *self;
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
        let Clos { shape, hosts, edges, aggregations, by_hosts, by_edges, by_aggregations, .. } = *self;
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
