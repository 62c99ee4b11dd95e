//! The files of the HPCC simulator (alibaba-edu/High-Precision-Congestion-Control, `simulation/mix`).
//!
//! ```text
//! topology                             flows
//! NODES SWITCHES LINKS                 COUNT
//! the switches' numbers                SOURCE DESTINATION PRIORITY PORT BYTES SECONDS
//! A B RATE DELAY ERROR-RATE            ...
//! ```
//!
//! An older form of the flows has no port. [`config`] reads the settings beside them, and [`scenario`] makes a scenario
//! of all three.
//!
//! As there, what follows the last line that the first one announces is not read.

use std::collections::BTreeSet;

use plimsoll_text::counted;

use super::{GraphText, Imported, Lines, NODES_MAX, flow_list, known_host};
use crate::error::ScenarioError;

mod config;
mod keys;
mod paths;
mod scenario;
mod words;

pub use config::HpccConfig;
pub use scenario::HpccScenario;
use words::{ns3_rate, ns3_time};

/// A topology as a graph file.
///
/// # Errors
/// At the first word that does not fit. A host with several links is one: Plimsoll's have one NIC.
pub fn hpcc_topology(name: &str, text: &str) -> Result<Imported, Box<ScenarioError>> {
    read_topology(name, text).map(|topology| topology.finish(name))
}

/// A topology as its file has it.
struct Topology {
    graph: GraphText,
    /// Links that lose packets by chance.
    lossy: u64,
}

impl Topology {
    fn finish(self, name: &str) -> Imported {
        let note = format!(
            "left out, since links here lose no packet by chance: the error rate of {}",
            counted(self.lossy, "link")
        );
        self.graph.finish(name, if self.lossy > 0 { vec![note] } else { Vec::new() })
    }
}

fn read_topology(name: &str, text: &str) -> Result<Topology, Box<ScenarioError>> {
    const HEAD: &str = "NODES SWITCHES LINKS";
    const LINK: &str = "A B RATE DELAY ERROR-RATE, such as `0 4 100Gbps 1000ns 0`";
    let mut lines = Lines::new(name, text);
    let head = lines.next().ok_or_else(|| lines.error("", "an empty file", HEAD))?;
    let &[nodes, switches, links] = head.as_slice() else {
        return Err(lines.error(lines.line, format!("{} words", head.len()), HEAD));
    };
    let word = nodes;
    let nodes: u32 = lines.number(word, "count of nodes")?;
    if nodes > NODES_MAX {
        return Err(lines.error(word, format!("{nodes} nodes"), format!("at most {NODES_MAX}")));
    }
    let switches: usize = lines.number(switches, "count of switches")?;
    let links: usize = lines.number(links, "count of links")?;
    let mut numbers = BTreeSet::new();
    while numbers.len() < switches {
        let Some(found) = lines.next() else {
            return Err(lines.error("", format!("{} of {switches} switches", numbers.len()), "all of them"));
        };
        for word in found {
            let switch: u32 = lines.number(word, "number of a switch")?;
            if switch >= nodes || !numbers.insert(switch) {
                let message = format!("switch {switch} of {nodes} nodes, or one named twice");
                return Err(lines.error(
                    word,
                    message,
                    format!("each once, 0 to {}", nodes.saturating_sub(1)),
                ));
            }
        }
    }
    let name_of = |node: u32| if numbers.contains(&node) { format!("s{node}") } else { format!("h{node}") };
    let mut graph = GraphText {
        hosts: (0..nodes).filter(|node| !numbers.contains(node)).map(name_of).collect(),
        switches: numbers.iter().map(|node| name_of(*node)).collect(),
        links: Vec::new(),
    };
    let mut lossy: u64 = 0;
    let mut linked = BTreeSet::new();
    for read in 0..links {
        let Some(words) = lines.next() else {
            return Err(lines.error("", format!("the file ends after {read} of {links} links"), LINK));
        };
        let &[a, b, rate, delay, ref rest @ ..] = words.as_slice() else {
            return Err(lines.error(lines.line, format!("{} words", words.len()), LINK));
        };
        let ends = [a, b].map(|word| (word, lines.number::<u32>(word, "number of a node")));
        let [mut from, mut to] = [0, 0];
        for ((word, node), end) in ends.into_iter().zip([&mut from, &mut to]) {
            *end = node?;
            if *end >= nodes {
                return Err(lines.error(
                    word,
                    format!("node {end} of {nodes}"),
                    format!("less than {nodes}"),
                ));
            }
            if !numbers.contains(end) && !linked.insert(*end) {
                let message = format!("host {end} has a second link");
                return Err(lines.error(word, message, "one link a host: Plimsoll's hosts have one NIC"));
            }
        }
        let rate = ns3_rate(rate).ok_or_else(|| {
            lines.error(rate, format!("`{rate}` is no rate"), "such as 100Gbps or 12.5GB/s")
        })?;
        let delay = ns3_time(delay)
            .ok_or_else(|| lines.error(delay, format!("`{delay}` is no time"), "such as 1000ns or 1e-06s"))?;
        let error_rate: f64 = rest.first().map_or(Ok(0.0), |word| lines.number(word, "error rate"))?;
        lossy += u64::from(error_rate > 0.0);
        graph.links.push((name_of(from), name_of(to), rate, delay));
    }
    Ok(Topology { graph, lossy })
}

/// A list of flows. The priority becomes the class `pg3`; the port is left out. `hosts` are the hosts of the topology,
/// where one is imported with them.
///
/// # Errors
/// At the first word that does not fit, such as a host that the topology has not.
pub fn hpcc_flows(
    name: &str,
    text: &str,
    hosts: Option<&BTreeSet<u32>>,
) -> Result<Imported, Box<ScenarioError>> {
    const FLOW: &str = "SOURCE DESTINATION PRIORITY [PORT] BYTES SECONDS, such as `0 5 3 100 20000 2.000001`, with or \
                        without PORT in every line";
    let mut lines = Lines::new(name, text);
    let head = lines.next().ok_or_else(|| lines.error("", "an empty file", "the number of flows"))?;
    let &[count] = head.as_slice() else {
        return Err(lines.error(lines.line, format!("{} words", head.len()), "the number of flows"));
    };
    let count: usize = lines.number(count, "count of flows")?;
    let mut flows = Vec::new();
    let mut columns = None;
    while flows.len() < count {
        let Some(words) = lines.next() else {
            return Err(lines.error(
                "",
                format!("the file ends after {} of {count} flows", flows.len()),
                FLOW,
            ));
        };
        let (source, destination, priority, bytes, seconds) = match *words.as_slice() {
            [source, destination, priority, _, bytes, seconds] => {
                (source, destination, priority, bytes, seconds)
            }
            [source, destination, priority, bytes, seconds] => {
                (source, destination, priority, bytes, seconds)
            }
            _ => return Err(lines.error(lines.line, format!("{} words", words.len()), FLOW)),
        };
        if *columns.get_or_insert(words.len()) != words.len() {
            return Err(lines.error(
                lines.line,
                format!("{} words after lines of others", words.len()),
                FLOW,
            ));
        }
        let size: u64 = lines.number(bytes, "count of bytes")?;
        let start = ns3_time(seconds).ok_or_else(|| {
            lines.error(seconds, format!("`{seconds}` is no time"), "seconds from 0, such as 2.0001")
        })?;
        let from: u32 = lines.number(source, "number of a host")?;
        let to: u32 = lines.number(destination, "number of a host")?;
        known_host(&lines, source, from, hosts)?;
        known_host(&lines, destination, to, hosts)?;
        if from == to {
            return Err(lines.error(destination, "a flow from a host to itself", "another host"));
        }
        if size == 0 {
            return Err(lines.error(bytes, "a flow without bytes", "at least 1"));
        }
        let priority: u32 = lines.number(priority, "priority")?;
        flows.push((start.as_ps(), from, to, size, format!("pg{priority}")));
    }
    let mut notes = Vec::new();
    let more = std::iter::from_fn(|| lines.next()).filter(|words| Some(words.len()) == columns).count();
    if more > 0 {
        notes.push(format!("flows that the first line announces: {count}; not read that follow: {more}"));
    }
    Ok(flow_list(&flows, notes))
}
