//! Keys of `[transport]` that have moved into the tables of their controllers: the former keys are still read, and the
//! digests of runs are computed over them, so that kept results stay valid.

use serde_json::{Map, Value as Json};

use crate::error::Report;
use crate::node::ValueNode;
use crate::source::ScenarioTexts;

/// The former key, the table that has it now, and the key within that table.
const MOVED: [(&str, &str, &str); 5] = [
    ("dctcp_gain", "dctcp", "gain"),
    ("initial_alpha", "dctcp", "initial_alpha"),
    ("cubic_c", "cubic", "c"),
    ("cubic_beta", "cubic", "beta"),
    ("fast_convergence", "cubic", "fast_convergence"),
];

/// Moves the former keys of the table at `section` to their present places, and returns a warning for each. Where a
/// file has both, the key of the higher layer counts.
pub(crate) fn resolve(sources: &ScenarioTexts, tree: &mut ValueNode, section: &[&str]) -> Vec<Report> {
    let mut warnings = Vec::new();
    let Some(transport) = section.iter().try_fold(tree, |node, key| node.as_table_mut()?.get_mut(*key))
    else {
        return warnings;
    };
    for (former, table, key) in MOVED {
        let Some(node) = transport.remove(&[former]) else { continue };
        let name = section.join(".");
        let message = format!("`{name}.{former}` is called `{name}.{table}.{key}` now");
        let report = Report::at(sources, &node.key, format!("{name}.{former}"), message);
        warnings.push(report.help(format!("write `{key} = {}` in `[{name}.{table}]`", node.literal())));
        let Some(entries) = transport.as_table_mut() else { continue };
        let empty =
            || ValueNode { key: node.key.clone(), origin: node.key.clone(), ..ValueNode::empty_table() };
        let Some(inner) = entries.entry(table.to_owned()).or_insert_with(empty).as_table_mut() else {
            continue;
        };
        let rank = |node: &ValueNode| node.origin.layer.rank();
        if inner.get(key).is_none_or(|present| rank(present) < rank(&node)) {
            inner.insert(key.to_owned(), node);
        }
    }
    warnings
}

/// Returns the path under which digests have the key at `path`.
pub(crate) fn former(path: &[String]) -> Vec<String> {
    match path {
        [section, table, key] if section == "transport" => match moved(table, key) {
            Some(former) => vec![section.clone(), former.to_owned()],
            None => path.to_vec(),
        },
        _ => path.to_vec(),
    }
}

/// Puts the keys of a written model's transport where they were before they moved, in their former order.
pub(crate) fn restore(model: &mut Map<String, Json>) {
    let Some(Json::Object(transport)) = model.get_mut("transport") else { return };
    for (key, value) in std::mem::take(transport) {
        match value {
            Json::Object(inner) if MOVED.iter().any(|(_, table, _)| *table == key) => {
                for (inner_key, value) in inner {
                    let former = moved(&key, &inner_key).unwrap_or(&inner_key).to_owned();
                    transport.insert(former, value);
                }
            }
            value => {
                transport.insert(key, value);
            }
        }
    }
}

/// Returns the former name of a key that has moved into `table`.
fn moved(table: &str, key: &str) -> Option<&'static str> {
    MOVED.iter().find(|entry| (entry.1, entry.2) == (table, key)).map(|entry| entry.0)
}
