//! [`Topology::place`]: the hosts of the user's files become hosts of the topology.

use std::collections::BTreeMap;

use plimsoll_text::counted;

use super::graph::FoundGraph;
use super::shape::{Topology, TopologyShape};
use crate::found::{ClassTraffic, HostRates, ImportFound, Note, Remark, TrafficClass};
use crate::invalid::Invalid;

/// The network of a scenario, with the hosts of an import.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Placed {
    /// The table `[topology]`, with its heading.
    pub table: String,
    /// The text of the graph file that the table names.
    pub graph: Option<String>,
    /// The names of the hosts in the scenario: hosts of the import by their numbers, then the others.
    pub hosts: Vec<String>,
    /// The assumptions, and the parts that were left out.
    pub notes: Vec<Note>,
}

/// The name of the graph file in the folder of the scenario.
pub const GRAPH_FILE: &str = "network.toml";

/// The most hosts that a note or an error names.
const NAMED: usize = 8;

impl Topology {
    /// Places the hosts that were found. In a generated network they take the hosts in order; in a graph they are
    /// matched by name or address, and the traffic of hosts that it lacks is left out of the result.
    ///
    /// # Errors
    /// Returns an error if the network has too few hosts, or none of the hosts that were found.
    pub fn place(self, found: ImportFound, keep_names: bool) -> Result<(ImportFound, Placed), Invalid> {
        let mut notes = self.notes;
        let mut note = |remark, text| notes.push(Note { remark, text });
        match self.shape {
            TopologyShape::Generated { table, hosts } => {
                let needed = found.hosts.len() as u64;
                if needed > u64::from(hosts) {
                    let problem = format!("{} for the {needed} of the files", counted(hosts.into(), "host"));
                    return Err(Invalid::new("--topology", problem, format!("at least {needed} hosts")));
                }
                note(
                    Remark::Assumed,
                    "the hosts of the files take those of the topology in the order of their first traffic: which of \
                     them share a switch is not known"
                        .to_owned(),
                );
                if keep_names {
                    note(
                        Remark::Ignored,
                        "names of hosts, which a generated topology does not have".to_owned(),
                    );
                }
                let hosts = (0..hosts).map(|host| format!("h{host}")).collect();
                Ok((found, Placed { table: format!("[topology]\n{table}"), graph: None, hosts, notes }))
            }
            TopologyShape::Listed(graph) => {
                let matched = matched(&found.hosts, &graph);
                let unmatched: Vec<&str> = (found.hosts.iter().zip(&matched))
                    .filter_map(|(name, host)| host.is_none().then_some(name.as_str()))
                    .collect();
                let listed = |names: &[&str]| {
                    let more = if names.len() > NAMED { ", ..." } else { "" };
                    format!("{}{more}", names[..names.len().min(NAMED)].join(", "))
                };
                if unmatched.len() == found.hosts.len() {
                    let names: Vec<&str> = graph.hosts.iter().map(|host| host.name.as_str()).collect();
                    let problem =
                        format!("it has none of the hosts of the files, such as {}", listed(&unmatched));
                    return Err(Invalid::new(
                        "--topology",
                        problem,
                        format!("hosts such as {}", listed(&names)),
                    ));
                }
                let text = format!(
                    "{} that the topology lacks, and their traffic: {}",
                    counted(unmatched.len() as u64, "host"),
                    listed(&unmatched)
                );
                if !unmatched.is_empty() {
                    note(Remark::Ignored, text);
                }
                let hosts = placed_names(&matched, &graph, keep_names);
                let found = only(found, &matched);
                let table = format!("[topology]\nkind = \"file\"\npath = \"{GRAPH_FILE}\"\n");
                Ok((found, Placed { table, graph: Some(graph.text(keep_names)), hosts, notes }))
            }
        }
    }
}

/// Finds the host of the graph for each host of the files: by an address, by its name, or by its name up to the first
/// dot, where only one host has it.
fn matched(hosts: &[String], graph: &FoundGraph) -> Vec<Option<usize>> {
    let short = |name: &str| {
        let is_address = name.parse::<std::net::IpAddr>().is_ok();
        if is_address { name.to_owned() } else { name.split('.').next().unwrap_or(name).to_lowercase() }
    };
    let mut exact: BTreeMap<&str, usize> = BTreeMap::new();
    let mut by_short: BTreeMap<String, Option<usize>> = BTreeMap::new();
    for (number, host) in graph.hosts.iter().enumerate() {
        for name in host.addresses.iter().chain([&host.name]) {
            exact.insert(name, number);
        }
        by_short.entry(short(&host.name)).and_modify(|known| *known = None).or_insert(Some(number));
    }
    let find = |name: &String| {
        exact.get(name.as_str()).copied().or_else(|| by_short.get(&short(name)).copied().flatten())
    };
    hosts.iter().map(find).collect()
}

/// Returns the names of all hosts: first the hosts that were found, in their order, then the rest of the graph.
fn placed_names(matched: &[Option<usize>], graph: &FoundGraph, keep_names: bool) -> Vec<String> {
    let mut rest: Vec<bool> = vec![true; graph.hosts.len()];
    let taken: Vec<usize> = matched.iter().flatten().copied().collect();
    taken.iter().for_each(|host| rest[*host] = false);
    let others = (0..graph.hosts.len()).filter(|host| rest[*host]);
    taken.iter().copied().chain(others).map(|host| graph.node_name(host, keep_names)).collect()
}

/// Returns the import without the traffic of hosts that have no match, the others numbered anew.
fn only(found: ImportFound, matched: &[Option<usize>]) -> ImportFound {
    let mut next = 0;
    let numbers: Vec<Option<u32>> = matched
        .iter()
        .map(|host| {
            host.map(|_| {
                next += 1;
                next - 1
            })
        })
        .collect();
    let number = |host: u32| numbers[host as usize];
    let class = |class: TrafficClass| {
        let traffic = match class.traffic {
            ClassTraffic::Flows(flows) => ClassTraffic::Flows(
                flows
                    .into_iter()
                    .filter_map(|mut flow| {
                        (flow.source, flow.destination) = (number(flow.source)?, number(flow.destination)?);
                        Some(flow)
                    })
                    .collect(),
            ),
            ClassTraffic::Exchanges(exchanges) => ClassTraffic::Exchanges(
                exchanges
                    .into_iter()
                    .filter_map(|mut exchange| {
                        (exchange.client, exchange.server) =
                            (number(exchange.client)?, number(exchange.server)?);
                        Some(exchange)
                    })
                    .collect(),
            ),
            ClassTraffic::Rates(rates) => ClassTraffic::Rates(
                rates
                    .into_iter()
                    .filter_map(|rates| Some(HostRates { host: number(rates.host)?, ..rates }))
                    .collect(),
            ),
        };
        TrafficClass { name: class.name, traffic }
    };
    let is_empty = |traffic: &ClassTraffic| match traffic {
        ClassTraffic::Flows(flows) => flows.is_empty(),
        ClassTraffic::Exchanges(exchanges) => exchanges.is_empty(),
        ClassTraffic::Rates(rates) => rates.is_empty(),
    };
    let kept = found.hosts.iter().zip(&numbers).filter_map(|(name, number)| number.map(|_| name.clone()));
    ImportFound {
        hosts: kept.collect(),
        classes: found.classes.into_iter().map(class).filter(|class| !is_empty(&class.traffic)).collect(),
        duration: found.duration,
        notes: found.notes,
    }
}
