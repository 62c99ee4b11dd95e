//! A topology becomes a network.

use plimsoll_fabric::net::topology::{ClosShape, GraphLink, LinkClass};
use plimsoll_fabric::net::{HostId, Network, Node, PortId};
use plimsoll_scenario::model::Topology;

use crate::{Unbuildable, error};

/// The topology's shape as the fabric knows it.
///
/// # Errors
/// If a graph was not read, or a host of it cannot be reached.
pub fn network(topology: &Topology) -> Result<Network, Unbuildable> {
    let class = |rate, propagation| LinkClass { rate, propagation };
    Ok(match *topology {
        Topology::Rack { hosts, rate, delay } => Network::rack(hosts, class(rate, delay)),
        Topology::LeafSpine { leaves, spines, hosts_per_leaf, rate, fabric_rate, delay, fabric_delay } => {
            let fabric = class(fabric_rate.unwrap_or(rate), fabric_delay.unwrap_or(delay));
            Network::leaf_spine(leaves, spines, hosts_per_leaf, class(rate, delay), fabric)
        }
        Topology::FatTree { k, rate, delay } => Network::fat_tree(k, class(rate, delay)),
        Topology::Clos { pods, edges, aggregations, cores, hosts_per_edge, rate, delay } => {
            let shape = ClosShape { pods, edges, aggregations, cores, hosts_per_edge };
            Network::clos(shape, class(rate, delay), class(rate, delay), class(rate, delay))
        }
        Topology::Dumbbell { left, right, rate, delay, bottleneck_rate, bottleneck_delay } => {
            let bottleneck = class(bottleneck_rate, bottleneck_delay.unwrap_or(delay));
            Network::dumbbell(left, right, class(rate, delay), bottleneck)
        }
        Topology::File { ref graph, .. } => {
            let graph = graph.as_ref().ok_or_else(|| error("topology.path", "the graph was not read"))?;
            let hosts = graph.hosts.len() as u32;
            let node = |number: u32| {
                if number < hosts { Node::Host(HostId(number)) } else { Node::Switch(number - hosts) }
            };
            let links: Vec<GraphLink> = graph
                .links
                .iter()
                .map(|link| GraphLink {
                    a: node(link.from),
                    b: node(link.to),
                    rate: link.rate,
                    propagation: link.delay,
                })
                .collect();
            Network::graph(hosts, graph.switches.len() as u32, &links).map_err(|unreachable| {
                let name = &graph.hosts[unreachable.host.0 as usize];
                error("topology.path", format!("host {name} cannot be reached"))
            })?
        }
    })
}

/// A port in words, by the ends of its link: `switch 0 -> h3`.
pub fn port_name(network: &Network, port: PortId) -> String {
    let link = network.link(port);
    let node = |node: Node| match node {
        Node::Host(host) => format!("h{}", host.0),
        Node::Switch(switch) => format!("switch {switch}"),
    };
    format!("{} -> {}", node(link.from), node(link.to))
}
