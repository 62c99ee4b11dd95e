//! The topology of a lab: `topology-data.json`, which `containerlab deploy` writes into the lab's folder.

use std::path::Path;

use serde_json::Value;

use super::cables::{Cables, NodeKind};
use super::export::text_of;
use crate::invalid::Invalid;

/// Reads a lab. Nodes of the kind `linux` are hosts, all others switches.
pub(super) fn read(path: &Path) -> Result<Cables, Invalid> {
    let place = path.display().to_string();
    const ALLOWED: &str = "topology-data.json of a lab's folder";
    let root: Value = serde_json::from_str(&text_of(path)?)
        .map_err(|error| Invalid::new(&place, format!("no JSON: {error}"), ALLOWED))?;
    let (nodes, links) =
        (root.get("nodes").and_then(Value::as_object), root.get("links").and_then(Value::as_array));
    let (Some(nodes), Some(links)) = (nodes, links) else {
        return Err(Invalid::new(place, "no nodes and links", ALLOWED));
    };
    let mut cables = Cables::new(&place);
    let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or("").to_owned();
    for (name, described) in nodes {
        let node = cables.node(name);
        let is_host = text(described, "kind") == "linux";
        cables.set_kind(node, if is_host { NodeKind::Host } else { NodeKind::Switch });
        for key in ["mgmt-ipv4-address", "mgmt-ipv6-address"] {
            cables.add_address(node, &text(described, key));
        }
    }
    let mut outside = 0;
    for (number, link) in links.iter().enumerate() {
        // Older versions have the ends beside each other, newer ones below `endpoints`.
        let ends = link.get("endpoints").unwrap_or(link);
        let (Some(a), Some(z)) = (ends.get("a"), ends.get("z")) else {
            outside += 1;
            continue;
        };
        let mut numbers = [0; 2];
        for (end, place_of) in [a, z].into_iter().zip(&mut numbers) {
            let name = text(end, "node");
            if !nodes.contains_key(&name) {
                let problem = format!("link {number} leads to \"{name}\", which is no node");
                return Err(Invalid::new(place, problem, "the name of a node"));
            }
            *place_of = cables.node(&name);
            for key in ["ipv4", "ipv6"] {
                cables.add_address(*place_of, &text(end, key));
            }
        }
        cables.connect(numbers[0], numbers[1], None);
    }
    if outside > 0 {
        cables.ignored(plimsoll_text::counted(outside, "link with one end"));
    }
    Ok(cables)
}
