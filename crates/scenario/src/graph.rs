//! Reads a [`Graph`], any topology, from a TOML file.
//!
//! ```toml
//! hosts = ["a", "b"]
//! switches = ["s"]
//! [[link]]
//! from = "a"
//! to = "s"
//! rate = "10Gbps"
//! delay = "1us"
//! ```
//!
//! Links are full duplex. A host has a NIC for each of its links.

use std::collections::BTreeMap;

use plimsoll_fabric::net::topology::file::{Graph, GraphLink};
use plimsoll_units::{Rate, Span};
use serde::Deserialize;

use crate::de;
use crate::error::{Report, did_you_mean};
use crate::files::foreign_start;
use crate::node::{self, ValueNode};
use crate::source::{ScenarioTexts, SourceLayer};

/// The keys of [`InFile`].
const GRAPH_KEYS: &[&str] = &["hosts", "switches", "link"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InFile {
    hosts: Vec<String>,
    switches: Vec<String>,
    link: Vec<LinkInFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LinkInFile {
    from: String,
    to: String,
    rate: Rate,
    delay: Span,
}

/// Reads the text of the graph file `name`; the error lists its problems.
pub(crate) fn parse(name: &str, text: &str) -> Result<Graph, Vec<Report>> {
    if let Some(line) = foreign_start(text, GRAPH_KEYS) {
        let message = "this is no graph: it begins with none of its keys";
        return Err(vec![Report::without_excerpt(name, line, message).allowed(GRAPH_KEYS.join(", "))]);
    }
    let mut sources = ScenarioTexts::default();
    let source = sources.add(name, text);
    let (tree, mut reports) = node::parse(&sources, source, text, &SourceLayer::File(0));
    if !reports.is_empty() {
        return Err(reports);
    }
    let file: InFile = de::deserialize(&sources, &tree)?;
    let graph = Reader { sources: &sources, tree: &tree, reports: &mut reports }.graph(file);
    if reports.is_empty() { Ok(graph) } else { Err(reports) }
}

/// A run keeps the next hops from every switch to every other: 800 MB for this number.
const SWITCHES_MAX: usize = 10_000;

struct Reader<'a> {
    sources: &'a ScenarioTexts,
    tree: &'a ValueNode,
    reports: &'a mut Vec<Report>,
}

impl Reader<'_> {
    fn report(&self, path: &[&str], message: String) -> Report {
        Report::at(self.sources, &self.tree.nearest_at(path).origin, node::dotted(path), message)
    }

    fn graph(&mut self, file: InFile) -> Graph {
        let InFile { hosts, switches, link } = file;
        let names: Vec<&str> = hosts.iter().chain(&switches).map(String::as_str).collect();
        let mut known: BTreeMap<&str, usize> = BTreeMap::new();
        for (index, name) in names.iter().enumerate() {
            if known.insert(name, index).is_some() {
                let (list, place) =
                    if index < hosts.len() { ("hosts", index) } else { ("switches", index - hosts.len()) };
                let report = self.report(&[list, &place.to_string()], format!("\"{name}\" is named twice"));
                self.reports.push(report.allowed("a name of its own for every host and switch"));
            }
        }
        if hosts.len() < 2 {
            let report = self.report(&["hosts"], format!("{} hosts cannot talk", hosts.len()));
            self.reports.push(report.allowed("two or more"));
        }
        let mut links = Vec::with_capacity(link.len());
        for (index, link) in link.iter().enumerate() {
            let ends = [("from", &link.from), ("to", &link.to)].map(|(key, name)| {
                let found = known.get(name.as_str()).copied();
                if found.is_none() {
                    let report = self
                        .report(&["link", &index.to_string(), key], format!("there is no node \"{name}\""));
                    self.reports.push(
                        report
                            .allowed("a name from hosts or switches")
                            .maybe_help(did_you_mean(name, names.iter().copied())),
                    );
                }
                found
            });
            if link.rate == Rate::ZERO {
                let report = self.report(
                    &["link", &index.to_string(), "rate"],
                    "a link of rate 0 carries nothing".to_owned(),
                );
                self.reports.push(report.allowed("more than 0bps"));
            }
            if let [Some(from), Some(to)] = ends {
                if from.max(to) < hosts.len() && from != to {
                    let message = format!("\"{}\" and \"{}\" are both hosts", link.from, link.to);
                    let report = self.report(&["link", &index.to_string()], message);
                    self.reports.push(report.allowed("a link with a switch at one end or both"));
                }
                if from == to {
                    let report = self.report(
                        &["link", &index.to_string()],
                        format!("\"{}\" is linked to itself", link.to),
                    );
                    self.reports.push(report);
                }
                links.push(GraphLink {
                    from: from as u32,
                    to: to as u32,
                    rate: link.rate,
                    delay: link.delay,
                });
            }
        }
        if switches.len() > SWITCHES_MAX {
            let report = self.report(&["switches"], format!("{} switches", switches.len()));
            self.reports.push(report.allowed(format!("at most {SWITCHES_MAX} in a graph file")));
        }
        if self.reports.is_empty() {
            self.shape(&hosts, names.len(), &links);
        }
        Graph { hosts, switches, links }
    }

    /// Every host has a link, and every host reaches every other.
    fn shape(&mut self, hosts: &[String], nodes: usize, links: &[GraphLink]) {
        let mut neighbours = vec![Vec::new(); nodes];
        for link in links {
            neighbours[link.from as usize].push(link.to as usize);
            neighbours[link.to as usize].push(link.from as usize);
        }
        for (host, name) in hosts.iter().enumerate() {
            let count = neighbours[host].len();
            if count == 0 {
                let report =
                    self.report(&["hosts", &host.to_string()], format!("host \"{name}\" has no link"));
                self.reports.push(report.allowed("one or more, each to a switch"));
            }
        }
        let mut reached = vec![false; nodes];
        let mut open: Vec<usize> = neighbours[0].first().copied().into_iter().collect();
        while let Some(node) = open.pop() {
            // Packets do not pass through hosts.
            if node >= hosts.len() && !std::mem::replace(&mut reached[node], true) {
                open.extend(&neighbours[node]);
            }
        }
        let is_apart = |host: &usize| neighbours[*host].iter().any(|switch| !reached[*switch]);
        if let Some(host) = (0..hosts.len()).find(is_apart) {
            let by = if neighbours[host].len() > 1 { " by each of its links" } else { "" };
            let message = format!("host \"{}\" is unreachable from \"{}\"{by}", hosts[host], hosts[0]);
            let report = self.report(&["hosts", &host.to_string()], message);
            self.reports.push(report.allowed("a graph in which every host reaches every other"));
        }
    }
}
