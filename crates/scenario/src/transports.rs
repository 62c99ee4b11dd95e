//! `[transports.NAME]`: transports beside `[transport]`, each laid over it, and the workloads that name one of them.
//!
//! ```toml
//! [transport]
//! kind = "tcp"
//! [transports.bulk]                # `transport` gives all other keys
//! kind = "cubic"
//! [workload.backup]
//! transport = "bulk"
//! ```

use indexmap::IndexMap;
use serde_json::{Map, Value as Json};

use crate::error::{Report, did_you_mean};
use crate::keys::{TRANSPORTS, WORKLOAD};
use crate::node::{ValueNode, dotted, merge};
use crate::source::ScenarioTexts;

/// Returns the names of the tables of `transports`.
pub(crate) fn names(tree: &ValueNode) -> Vec<String> {
    let tables = tree.get(TRANSPORTS).and_then(ValueNode::as_table);
    tables.map_or_else(Vec::new, |tables| tables.keys().cloned().collect())
}

/// Lays each table of `transports` over `transport`.
pub(crate) fn resolve(tree: &mut ValueNode) {
    let mut base = tree.get("transport").cloned().unwrap_or_else(ValueNode::empty_table);
    base.remove(&[WORKLOAD]);
    let Some(tables) = tree.as_table_mut().and_then(|table| table.get_mut(TRANSPORTS)?.as_table_mut()) else {
        return;
    };
    for own in tables.values_mut().filter(|own| own.as_table().is_some()) {
        let complete = ValueNode { key: own.key.clone(), origin: own.origin.clone(), ..base.clone() };
        let own_keys = std::mem::replace(own, complete);
        merge(own, own_keys, &mut vec!["transport".to_owned()]);
    }
}

/// Takes the key `transport` out of the workloads' tables, and returns the transport's name for each that has one.
pub(crate) fn take(
    sources: &ScenarioTexts,
    tree: &mut ValueNode,
    reports: &mut Vec<Report>,
) -> IndexMap<String, String> {
    let known = names(tree);
    let mut taken = IndexMap::new();
    let Some(workloads) = tree.as_table_mut().and_then(|table| table.get_mut("workload")?.as_table_mut())
    else {
        return taken;
    };
    for (workload, table) in workloads {
        let Some(node) = table.remove(&["transport"]) else { continue };
        match node.as_str() {
            Some(name) if known.iter().any(|known| known == name) => {
                taken.insert(workload.clone(), name.to_owned());
            }
            name => {
                let key = dotted(&["workload", workload, "transport"]);
                let message = match name {
                    Some(name) => format!("there is no table `transports.{name}`"),
                    None => format!("{} does not fit", node.literal()),
                };
                let names = known.iter().map(String::as_str);
                let allowed =
                    if known.is_empty() { "none: the file has none".to_owned() } else { known.join(", ") };
                let nearest = name.and_then(|name| did_you_mean(name, names));
                let report = Report::at(sources, &node.origin, key, message).allowed(allowed);
                reports.push(report.maybe_help(nearest));
            }
        }
    }
    taken
}

/// Puts the names of transports back into the workloads of a written model.
pub(crate) fn write_into(carried_by: &IndexMap<String, String>, model: &mut Map<String, Json>) {
    let Some(Json::Object(workloads)) = model.get_mut("workload") else { return };
    for (workload, name) in carried_by {
        if let Some(Json::Object(table)) = workloads.get_mut(workload) {
            table.insert("transport".to_owned(), Json::String(name.clone()));
        }
    }
}
