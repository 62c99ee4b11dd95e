//! [`FoundGraph`]: hosts, switches and the links between them, as a graph file has them.

use std::fmt::Write as _;

use plimsoll_units::{Rate, Span};

/// A network whose links are listed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FoundGraph {
    /// The hosts, in the order of the export.
    pub hosts: Vec<GraphHost>,
    /// The names of the switches.
    pub switches: Vec<String>,
    /// The links, which are full duplex.
    pub links: Vec<FoundLink>,
}

/// A host of a graph, as the export describes it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct GraphHost {
    /// The name in the export.
    pub name: String,
    /// The addresses in the export.
    pub addresses: Vec<String>,
}

/// A link of a graph. Its ends are numbers of nodes: the hosts first, then the switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs, reason = "the names say it")]
pub struct FoundLink {
    pub from: usize,
    pub to: usize,
    pub rate: Rate,
    pub delay: Span,
}

impl FoundGraph {
    /// Returns the name of a node in the graph file: that of the export, or `h0` and `s0` and so on.
    pub fn node_name(&self, node: usize, keep_names: bool) -> String {
        match node.checked_sub(self.hosts.len()) {
            None if keep_names => self.hosts[node].name.clone(),
            None => format!("h{node}"),
            Some(switch) if keep_names => self.switches[switch].clone(),
            Some(switch) => format!("s{switch}"),
        }
    }

    /// Returns the text of a graph file.
    pub fn text(&self, keep_names: bool) -> String {
        let name = |node| toml::Value::String(self.node_name(node, keep_names)).to_string();
        let names = |range: std::ops::Range<usize>| range.map(name).collect::<Vec<_>>().join(", ");
        let hosts = self.hosts.len();
        let mut text = format!("hosts = [{}]\n", names(0..hosts));
        let _ = writeln!(text, "switches = [{}]", names(hosts..hosts + self.switches.len()));
        for FoundLink { from, to, rate, delay } in &self.links {
            let (from, to) = (name(*from), name(*to));
            let _ = write!(
                text,
                "\n[[link]]\nfrom = {from}\nto = {to}\nrate = \"{rate}\"\ndelay = \"{delay}\"\n"
            );
        }
        text
    }
}
