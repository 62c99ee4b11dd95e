//! Graphs as GraphML: nodes and edges with attributes, as drawing programs and libraries of graphs write them.
//!
//! | attribute | of | meaning |
//! |---|---|---|
//! | `label`, `name`, or the label that yEd draws | node | its name; otherwise its `id` |
//! | `type`, `role`, `kind` | node | a host if it has host or server in it; a switch: switch, router, leaf, spine |
//! | `ip`, `address` | node | an address |
//! | `rate`, `bandwidth`, `speed`, `capacity` | edge | its rate with a unit, such as 25G |
//! | `LinkSpeedRaw` | edge | its rate in bits per second, as the Internet Topology Zoo has it |

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use plimsoll_units::Rate;

use super::cables::{Cables, NodeKind};
use super::export::text_of;
use super::spec::rate;
use super::xml::{XmlEvent, events};
use crate::invalid::Invalid;

/// A node or an edge, while its element is open.
#[derive(Default)]
struct Element {
    /// The `id` attribute of a node; empty for an edge.
    id: String,
    /// The `source` and `target` of an edge; none of a node.
    ends: Option<(String, String)>,
    /// The values by the names of their attributes, in lower case.
    values: BTreeMap<String, String>,
}

/// Reads a graph. Directions of edges have no meaning, and a second edge between two nodes is a second cable.
pub(super) fn read(path: &Path) -> Result<Cables, Invalid> {
    let place = path.display().to_string();
    let text = text_of(path)?;
    let events = events(&text).map_err(|at| {
        let line = 1 + text[..at].matches('\n').count();
        Invalid::new(format!("{place}:{line}"), "no XML", "a graph in GraphML")
    })?;
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    let mut open: Option<Element> = None;
    let mut value_of: Option<String> = None;
    for event in events {
        match event {
            XmlEvent::Start("key", attributes) => {
                let (id, name) = (get(&attributes, "id"), get(&attributes, "attr.name"));
                names.insert(id, name.to_lowercase());
            }
            XmlEvent::Start("node", attributes) => {
                open = Some(Element { id: get(&attributes, "id"), ..Element::default() });
            }
            XmlEvent::Start("edge", attributes) => {
                let ends = (get(&attributes, "source"), get(&attributes, "target"));
                open = Some(Element { ends: Some(ends), ..Element::default() });
            }
            XmlEvent::Start("data", attributes) => value_of = names.get(&get(&attributes, "key")).cloned(),
            XmlEvent::Start("NodeLabel", _) => value_of = Some("label".to_owned()),
            XmlEvent::Text(text) => {
                if let (Some(name), Some(element)) = (&value_of, &mut open) {
                    element.values.entry(name.clone()).or_insert(text);
                }
            }
            XmlEvent::End("data" | "NodeLabel") => value_of = None,
            XmlEvent::End("node") => nodes.extend(open.take()),
            XmlEvent::End("edge") => edges.extend(open.take()),
            XmlEvent::Start(..) | XmlEvent::End(_) => {}
        }
    }
    let mut cables = Cables::new(&place);
    let mut numbers = BTreeMap::new();
    let mut labels = BTreeSet::new();
    for node in &nodes {
        let value = |names: &[&str]| names.iter().find_map(|name| node.values.get(*name));
        // A second node of one label has its id as its name.
        let label = value(&["label", "name"]).filter(|label| labels.insert(label.as_str()));
        let number = cables.node(label.unwrap_or(&node.id));
        if numbers.insert(node.id.clone(), number).is_some() {
            return Err(Invalid::new(place, format!("two nodes with the id \"{}\"", node.id), "one each"));
        }
        cables
            .set_kind(number, value(&["type", "role", "kind"]).map_or(NodeKind::Unknown, |text| kind(text)));
        value(&["ip", "address"]).into_iter().for_each(|address| cables.add_address(number, address));
    }
    for Element { ends, values, .. } in &edges {
        let (source, target) = ends.clone().unwrap_or_default();
        let (Some(from), Some(to)) = (numbers.get(&source), numbers.get(&target)) else {
            let problem = format!("an edge from \"{source}\" to \"{target}\"");
            return Err(Invalid::new(place, problem, "the ids of two nodes"));
        };
        let named = ["rate", "bandwidth", "speed", "capacity"].iter().find_map(|name| values.get(*name));
        let raw = values.get("linkspeedraw").and_then(|text| text.parse::<f64>().ok());
        let raw = raw.filter(|bps| *bps >= 1.0).map(|bps| Rate::from_bps(bps as u64));
        cables.connect(*from, *to, named.and_then(|text| rate(text)).or(raw));
    }
    Ok(cables)
}

fn get(attributes: &[(&str, String)], name: &str) -> String {
    attributes.iter().find(|(key, _)| *key == name).map(|(_, value)| value.clone()).unwrap_or_default()
}

fn kind(text: &str) -> NodeKind {
    let text = text.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| text.contains(word));
    if has(&["host", "server"]) {
        NodeKind::Host
    } else if has(&["switch", "router", "leaf", "spine"]) {
        NodeKind::Switch
    } else {
        NodeKind::Unknown
    }
}
