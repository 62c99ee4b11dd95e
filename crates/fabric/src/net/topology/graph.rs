//! Any graph: shortest paths by hop count, from a breadth-first search towards every host's switch.

use std::collections::VecDeque;

use plimsoll_units::{Rate, Span};

use super::link::{Choices, Link, Node};
use super::{File, Network, Paths};
use crate::net::HostId;

/// An end of a link in a graph.
pub type GraphNode = Node;

/// A link of a graph, both directions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct GraphLink {
    /// The node at one end of the link.
    pub a: GraphNode,
    /// The node at the other end of the link.
    pub b: GraphNode,
    /// Bits per second, in each direction.
    pub rate: Rate,
    /// The propagation delay of each direction.
    pub propagation: Span,
}

/// Two hosts without a path between them, or a host without exactly one link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unreachable {
    /// The host that cannot be reached, or has no single link.
    pub host: HostId,
    /// The switch from which no way leads to it, if it has a link at all.
    pub from_switch: Option<u32>,
}

/// Next hops of every switch towards every switch that has hosts.
#[derive(Clone, Debug)]
pub(super) struct NextHops {
    /// From here on `ports` has the ports towards the hosts.
    towards_hosts: u32,
    /// The switch of each host.
    switch_of: Vec<u32>,
    /// `choices[from * switches + to]`: where in `ports` the equal-cost ports are.
    choices: Vec<(u32, u32)>,
    ports: Vec<u32>,
    switches: u32,
}

impl Network {
    /// Returns any graph (tier `switch`) with shortest paths by hop count. Each host has exactly one link.
    ///
    /// # Errors
    /// If some host cannot be reached from another.
    pub fn graph(hosts: u32, switches: u32, links: &[GraphLink]) -> Result<Network, Unreachable> {
        let (hops, links) = NextHops::new(hosts, switches, links)?;
        Ok(Network::new(hosts, switches, links, File::TIERS, Paths::Graph(hops)))
    }
}

impl NextHops {
    fn new(
        hosts: u32,
        switches: u32,
        graph_links: &[GraphLink],
    ) -> Result<(NextHops, Vec<Link>), Unreachable> {
        let (switch_of, mut links) = host_ports(hosts, graph_links)?;
        let mut neighbours: Vec<Vec<(u32, u32)>> = vec![Vec::new(); switches as usize];
        for link in graph_links {
            let (Node::Switch(a), Node::Switch(b)) = (link.a, link.b) else { continue };
            for (from, to) in [(a, b), (b, a)] {
                neighbours[from as usize].push((to, links.len() as u32));
                links.push(Link {
                    from: Node::Switch(from),
                    to: Node::Switch(to),
                    rate: link.rate,
                    propagation: link.propagation,
                    tier: 0,
                });
            }
        }
        let mut choices = vec![(0, 0); (switches * switches) as usize];
        let mut ports = Vec::new();
        for to in 0..switches {
            let Some(host) = switch_of.iter().position(|&s| s == to) else { continue };
            let distance = distances_to(to, &neighbours);
            for from in (0..switches).filter(|&from| from != to) {
                if distance[from as usize] == u32::MAX {
                    if switch_of.contains(&from) {
                        return Err(Unreachable { host: HostId(host as u32), from_switch: Some(from) });
                    }
                    continue;
                }
                let start = ports.len() as u32;
                let closer = |&&(next, _): &&(u32, u32)| distance[next as usize] < distance[from as usize];
                ports.extend(neighbours[from as usize].iter().filter(closer).map(|&(_, port)| port));
                choices[(from * switches + to) as usize] = (start, ports.len() as u32 - start);
            }
        }
        let towards_hosts = ports.len() as u32;
        ports.extend(hosts..2 * hosts);
        Ok((NextHops { towards_hosts, switch_of, choices, ports, switches }, links))
    }

    /// Returns the choices at `switch` for packets to `dst`, as places of [`NextHops::port`].
    #[inline]
    pub(super) fn choices(&self, switch: u32, dst: u32) -> Choices {
        let to = self.switch_of[dst as usize];
        if to == switch {
            return Choices::one(self.towards_hosts + dst);
        }
        let (first, count) = self.choices[(switch * self.switches + to) as usize];
        Choices { first, count, tier: 0 }
    }

    /// Returns the port at a place that [`NextHops::choices`] gave.
    #[inline]
    pub(super) fn port(&self, place: u32) -> u32 {
        self.ports[place as usize]
    }
}

/// Returns the switch of every host, and the links of ports `0..2 * hosts`.
fn host_ports(hosts: u32, graph_links: &[GraphLink]) -> Result<(Vec<u32>, Vec<Link>), Unreachable> {
    let mut of_host: Vec<Option<(u32, Rate, Span)>> = vec![None; hosts as usize];
    for link in graph_links {
        let (Node::Host(host), Node::Switch(switch)) =
            (if matches!(link.a, Node::Host(_)) { (link.a, link.b) } else { (link.b, link.a) })
        else {
            continue;
        };
        let slot = &mut of_host[host.0 as usize];
        if slot.is_some() {
            return Err(Unreachable { host, from_switch: None });
        }
        *slot = Some((switch, link.rate, link.propagation));
    }
    let mut switch_of = Vec::new();
    let (mut up, mut down) = (Vec::new(), Vec::new());
    for (host, slot) in of_host.into_iter().enumerate() {
        let host = HostId(host as u32);
        let (switch, rate, propagation) = slot.ok_or(Unreachable { host, from_switch: None })?;
        switch_of.push(switch);
        let (host, switch) = (Node::Host(host), Node::Switch(switch));
        up.push(Link { from: host, to: switch, rate, propagation, tier: 0 });
        down.push(Link { from: switch, to: host, rate, propagation, tier: 0 });
    }
    up.extend(down);
    Ok((switch_of, up))
}

fn distances_to(target: u32, neighbours: &[Vec<(u32, u32)>]) -> Vec<u32> {
    let mut distance = vec![u32::MAX; neighbours.len()];
    distance[target as usize] = 0;
    let mut frontier = VecDeque::from([target]);
    while let Some(switch) = frontier.pop_front() {
        for &(next, _) in &neighbours[switch as usize] {
            if distance[next as usize] == u32::MAX {
                distance[next as usize] = distance[switch as usize] + 1;
                frontier.push_back(next);
            }
        }
    }
    distance
}
