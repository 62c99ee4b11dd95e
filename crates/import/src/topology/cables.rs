//! [`Cables`]: nodes and cables as exports have them, and the graph that they are.

use std::collections::BTreeMap;

use plimsoll_text::counted;
use plimsoll_units::Rate;

use super::graph::{FoundGraph, FoundLink, GraphHost};
use super::spec::{DELAY, Spec};
use crate::found::{Note, Remark};
use crate::invalid::Invalid;

/// What an export says about the kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub(super) enum NodeKind {
    /// The export does not say it.
    #[default]
    Unknown,
    /// The node forwards packets.
    Switch,
    /// The node sends and receives packets.
    Host,
}

#[derive(Clone, Default, Debug)]
struct CableNode {
    name: String,
    kind: NodeKind,
    addresses: Vec<String>,
}

/// The nodes and cables of an export.
#[derive(Clone, Debug)]
pub(super) struct Cables {
    /// The place that errors name.
    place: String,
    nodes: Vec<CableNode>,
    numbers: BTreeMap<String, usize>,
    cables: Vec<(usize, usize, Option<Rate>)>,
    pub(super) notes: Vec<Note>,
}

impl Cables {
    pub(super) fn new(place: impl Into<String>) -> Cables {
        let (nodes, numbers) = (Vec::new(), BTreeMap::new());
        Cables { place: place.into(), nodes, numbers, cables: Vec::new(), notes: Vec::new() }
    }

    /// Returns the number of a node, which is added if it is new.
    pub(super) fn node(&mut self, name: &str) -> usize {
        *self.numbers.entry(name.to_owned()).or_insert_with(|| {
            self.nodes.push(CableNode { name: name.to_owned(), ..CableNode::default() });
            self.nodes.len() - 1
        })
    }

    pub(super) fn set_kind(&mut self, node: usize, kind: NodeKind) {
        self.nodes[node].kind = self.nodes[node].kind.max(kind);
    }

    pub(super) fn add_address(&mut self, node: usize, address: &str) {
        let address = address.split('/').next().unwrap_or(address).to_owned();
        if !address.is_empty() && !self.nodes[node].addresses.contains(&address) {
            self.nodes[node].addresses.push(address);
        }
    }

    pub(super) fn connect(&mut self, from: usize, to: usize, rate: Option<Rate>) {
        self.cables.push((from, to, rate));
    }

    pub(super) fn ignored(&mut self, text: String) {
        self.notes.push(Note { remark: Remark::Ignored, text });
    }

    /// Returns the graph: a node that the export calls a host, or whose name fits the spec's pattern, is a host; where
    /// neither says it, a node with one cable is.
    pub(super) fn graph(mut self, spec: &Spec<'_>) -> Result<(FoundGraph, Vec<Note>), Invalid> {
        let mut degrees = vec![0u32; self.nodes.len()];
        for (from, to, _) in &self.cables {
            degrees[*from] += 1;
            degrees[*to] += 1;
        }
        let mut by_degree = 0;
        let is_host: Vec<bool> = (self.nodes.iter().zip(&degrees))
            .map(|(node, degree)| match (spec.hosts, node.kind) {
                (Some(pattern), _) => fits(&node.name, pattern),
                (None, NodeKind::Host) => true,
                (None, NodeKind::Switch) => false,
                (None, NodeKind::Unknown) => {
                    by_degree += u64::from(*degree == 1);
                    *degree == 1
                }
            })
            .collect();
        let mut notes = std::mem::take(&mut self.notes);
        let mut note = |remark, text| notes.push(Note { remark, text });
        if by_degree > 0 {
            let text = format!(
                "{} with one cable are the hosts of the topology; hosts=PATTERN in --topology names others",
                counted(by_degree, "node")
            );
            note(Remark::Assumed, text);
        }
        let alone = degrees.iter().filter(|degree| **degree == 0).count() as u64;
        let between_hosts = |(from, to, _): &&(usize, usize, Option<Rate>)| is_host[*from] && is_host[*to];
        let direct = self.cables.iter().filter(between_hosts).count() as u64;
        for (count, what) in
            [(alone, "node of the topology without a cable"), (direct, "cable between two hosts")]
        {
            if count > 0 {
                note(Remark::Ignored, counted(count, what));
            }
        }
        // Hosts come first, in the order of the export.
        let linked = |node: &usize| degrees[*node] > 0;
        let hosts: Vec<usize> = (0..self.nodes.len()).filter(|node| is_host[*node]).filter(linked).collect();
        let switches: Vec<usize> =
            (0..self.nodes.len()).filter(|node| !is_host[*node]).filter(linked).collect();
        if hosts.len() < 2 || switches.is_empty() {
            let problem =
                format!("{} and {}", counted(hosts.len() as u64, "host"), switches_in_words(switches.len()));
            let allowed = "two hosts or more, and a switch; hosts=PATTERN in --topology names the hosts";
            return Err(Invalid::new(self.place, problem, allowed));
        }
        let mut numbers = vec![0; self.nodes.len()];
        for (number, node) in hosts.iter().chain(&switches).enumerate() {
            numbers[*node] = number;
        }
        let rates = [spec.rates.first(), spec.rates.get(1).or(spec.rates.first())];
        let mut links = Vec::new();
        for (from, to, known) in &self.cables {
            if is_host[*from] && is_host[*to] || from == to {
                continue;
            }
            let is_uplink = !is_host[*from] && !is_host[*to];
            let Some(rate) = known.or(rates[usize::from(is_uplink)].copied()) else {
                let problem = format!(
                    "the cable from {} to {} has no rate",
                    self.nodes[*from].name, self.nodes[*to].name
                );
                let allowed = "the rates of hosts and of uplinks in --topology, such as lldp:FOLDER,25G,100G";
                return Err(Invalid::new(self.place, problem, allowed));
            };
            let delay = spec.delay.unwrap_or(DELAY);
            links.push(FoundLink { from: numbers[*from], to: numbers[*to], rate, delay });
        }
        notes.extend(spec.delay_note());
        let host = |node: &usize| {
            let CableNode { name, addresses, .. } = self.nodes[*node].clone();
            GraphHost { name, addresses }
        };
        let hosts = hosts.iter().map(host).collect();
        let switches = switches.iter().map(|node| self.nodes[*node].name.clone()).collect();
        Ok((FoundGraph { hosts, switches, links }, notes))
    }
}

fn switches_in_words(count: usize) -> String {
    format!("{count} switch{}", if count == 1 { "" } else { "es" })
}

/// Returns whether a name fits a pattern, in which `*` matches any characters.
fn fits(name: &str, pattern: &str) -> bool {
    match pattern.split_once('*') {
        None => name == pattern,
        Some((start, rest)) => name.strip_prefix(start).is_some_and(|end| {
            let ends = end.char_indices().map(|(at, _)| &end[at..]).chain([""]);
            ends.into_iter().any(|end| fits(end, rest))
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_have_stars() {
        for (name, pattern, expected) in [
            ("server-1", "server*", true),
            ("server-1", "*-1", true),
            ("server-1", "s*r-*", true),
            ("leaf-1", "server*", false),
            ("leaf-1", "leaf-1", true),
            ("leaf-10", "leaf-1", false),
        ] {
            assert_eq!(fits(name, pattern), expected, "{name} {pattern}");
        }
    }
}
