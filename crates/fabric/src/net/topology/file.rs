//! Any graph from a file; the scenario reads it.

use std::sync::Arc;

use plimsoll_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Inside, Kind, TopologyCheck, TopologyCut};
use super::link::Node;
use super::{GraphLink as LinkOfNodes, HostNics, Network};
use crate::Unbuildable;
use crate::net::HostId;

/// Any graph, from a TOML file beside the scenario: `hosts` and `switches` are lists of names, and
/// each `[[link]]` has `from`, `to`, `rate` and `delay`. A host has a NIC for each of its links, and `paths.nics` says
/// which NICs a connection takes. Tier name: `switch`.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct File {
    /// Path of the file, relative to the scenario.
    pub path: String,
    /// The contents of the file, read when the scenario is checked.
    #[serde(skip)]
    pub graph: Option<Arc<Graph>>,
}

/// A connected graph of hosts and switches.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Graph {
    /// Names of the hosts; nodes 0, 1, ....
    pub hosts: Vec<String>,
    /// Names of the switches; nodes that follow the hosts.
    pub switches: Vec<String>,
    /// Links between nodes.
    pub links: Vec<GraphLink>,
}

/// A full-duplex link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct GraphLink {
    /// One end: a host's number, or the number of hosts plus a switch's.
    pub from: u32,
    /// The other end.
    pub to: u32,
    /// Rate of each direction.
    pub rate: Rate,
    /// One-way propagation.
    pub delay: Span,
}

impl File {
    pub(super) const TIERS: &[&str] = &["switch"];
}

impl Kind for File {
    /// Checks nothing: the scenario checks the graph when it reads it.
    fn check(&self, _check: &mut TopologyCheck) {}

    fn tiers(&self) -> &'static [&'static str] {
        File::TIERS
    }

    fn hosts(&self) -> u64 {
        self.graph.as_ref().map_or(0, |graph| graph.hosts.len() as u64)
    }

    fn nics(&self) -> HostNics {
        let firsts = self.graph.as_ref().map_or_else(Vec::new, |graph| graph.first_nics());
        match firsts.iter().zip(0..).all(|(first, host)| *first == host) {
            true => HostNics::One,
            false => HostNics::Listed(firsts.into()),
        }
    }

    fn links(&self) -> u64 {
        self.graph.as_ref().map_or(0, |graph| graph.links.len() as u64)
    }

    fn switches(&self) -> Vec<u32> {
        vec![self.graph.as_ref().map_or(0, |graph| graph.switches.len() as u32)]
    }

    fn switch_ports(&self, _tier: usize) -> u32 {
        self.graph.as_ref().map_or(0, |graph| graph.switch_ports())
    }

    /// Counts the ends of all links but the NICs.
    fn tier_ports(&self, _tier: usize) -> u64 {
        let nics = self.graph.iter().flat_map(|graph| graph.first_nics()).next_back();
        (2 * self.links()).saturating_sub(nics.unwrap_or(0).into())
    }

    fn host_rate(&self, host: u32) -> Rate {
        self.graph.as_ref().map_or(Rate::ZERO, |graph| graph.host_rate(host))
    }

    fn link_classes(&self) -> Vec<(Rate, Span)> {
        let links = self.graph.iter().flat_map(|graph| &graph.links);
        links.map(|link| (link.rate, link.delay)).collect()
    }

    fn cuts(&self) -> Vec<TopologyCut> {
        let links = "the links from a switch with hosts to the others";
        // The hosts of a switch that have other NICs, too, reach others past its links.
        let graph = self.graph.iter().filter(|_| self.nics() == HostNics::One);
        let switches = graph.flat_map(|graph| graph.switches_with_hosts());
        switches
            .map(|(hosts, bits_per_second)| TopologyCut {
                links,
                inside: Inside::Hosts(hosts),
                bits_per_second,
            })
            .collect()
    }

    fn neighbours(&self, node: Node) -> Vec<Node> {
        let Some(graph) = &self.graph else { return Vec::new() };
        let links = graph.ends().into_iter();
        links.filter_map(|[a, b]| if a == node { Some(b) } else { (b == node).then_some(a) }).collect()
    }

    fn network(&self) -> Result<Network, Unbuildable> {
        let unread = || Unbuildable::new("topology.path", "the graph was not read");
        let graph = self.graph.as_ref().ok_or_else(unread)?;
        let links: Vec<LinkOfNodes> = graph
            .ends()
            .into_iter()
            .zip(&graph.links)
            .map(|([a, b], link)| LinkOfNodes { a, b, rate: link.rate, propagation: link.delay })
            .collect();
        let nics = graph.first_nics().last().copied().unwrap_or(0);
        Network::graph(nics, graph.switches.len() as u32, &links).map_err(|unreachable| {
            let host = self.nics().host_of(unreachable.host);
            let name = &graph.hosts[host.0 as usize];
            Unbuildable::new("topology.path", format!("host {name} cannot be reached"))
        })
    }

    fn host(&self, name: &str) -> Option<u32> {
        let graph = self.graph.as_ref()?;
        let named = graph.hosts.iter().position(|host| host == name).map(|index| index as u32);
        named.or_else(|| (name == "client" && !graph.hosts.is_empty()).then_some(0))
    }

    fn host_name(&self, host: u32) -> String {
        let name = self.graph.as_ref().and_then(|graph| graph.hosts.get(host as usize)).cloned();
        name.unwrap_or_else(|| format!("h{host}"))
    }

    fn switch(&self, name: &str) -> Option<u32> {
        let switches = &self.graph.as_ref()?.switches;
        switches.iter().position(|switch| switch == name).map(|index| index as u32)
    }

    fn switch_name(&self, switch: u32) -> String {
        let name = self.graph.as_ref().and_then(|graph| graph.switches.get(switch as usize)).cloned();
        name.unwrap_or_else(|| format!("switch{switch}"))
    }
}

impl Graph {
    /// Returns the first NIC of every host, and at the end the number of all NICs: one for each link of a host.
    fn first_nics(&self) -> Vec<u32> {
        let mut firsts = vec![0; self.hosts.len() + 1];
        for end in self.links.iter().flat_map(|link| [link.from, link.to]) {
            if let Some(count) = firsts[1..].get_mut(end as usize) {
                *count += 1;
            }
        }
        (1..firsts.len()).for_each(|host| firsts[host] += firsts[host - 1]);
        firsts
    }

    /// Returns the ends of every link: NICs, which are numbered host by host in the order of their links, and switches.
    fn ends(&self) -> Vec<[Node; 2]> {
        let (mut next, hosts) = (self.first_nics(), self.hosts.len() as u32);
        let mut node = |number: u32| match number.checked_sub(hosts) {
            Some(switch) => Node::Switch(switch),
            None => {
                next[number as usize] += 1;
                Node::Host(HostId(next[number as usize] - 1))
            }
        };
        self.links.iter().map(|link| [node(link.from), node(link.to)]).collect()
    }

    /// Returns the rate of the links of a host together.
    fn host_rate(&self, host: u32) -> Rate {
        let links = self.links.iter().filter(|link| link.from == host || link.to == host);
        Rate::from_bps(links.map(|link| link.rate.as_bps()).sum())
    }

    /// Returns the most links that a switch has.
    fn switch_ports(&self) -> u32 {
        let mut ports = vec![0; self.switches.len()];
        for end in self.links.iter().flat_map(|link| [link.from, link.to]) {
            if let Some(count) =
                (end as usize).checked_sub(self.hosts.len()).and_then(|switch| ports.get_mut(switch))
            {
                *count += 1;
            }
        }
        ports.into_iter().max().unwrap_or(0)
    }

    /// Returns for each switch that has hosts, and is not the only one, these hosts, and the bits per second of its
    /// links to other switches.
    fn switches_with_hosts(&self) -> Vec<(Vec<u32>, f64)> {
        let hosts = self.hosts.len();
        let mut switches = vec![(Vec::new(), 0.0); self.switches.len()];
        for link in &self.links {
            let ends = [(link.from, link.to), (link.to, link.from)];
            for (end, other) in ends.map(|(end, other)| (end as usize, other as usize)) {
                let Some(switch) = end.checked_sub(hosts).and_then(|switch| switches.get_mut(switch)) else {
                    continue;
                };
                match other < hosts {
                    true => switch.0.push(other as u32),
                    false => switch.1 += link.rate.as_bps() as f64,
                }
            }
        }
        switches.retain(|(below, up)| !below.is_empty() && *up > 0.0);
        switches.iter_mut().for_each(|(below, _)| below.sort_unstable());
        switches
    }
}
