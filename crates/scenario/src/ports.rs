//! Resolves `port.*` in the tree, so that errors and `show` keep the places: every tier of the
//! topology gets a complete table, and a phantom queue turns off the marking below it.

use crate::error::{Report, did_you_mean};
use crate::node::{Node, Value, merge};
use crate::source::Sources;
use crate::topology::Topology;

/// Lays `port.<tier>` over `port.switch` for every tier.
pub(crate) fn resolve(sources: &Sources, root: &mut Node, reports: &mut Vec<Report>) {
    let kind = root.at(&["topology", "kind"]).and_then(Node::as_str);
    // Without a known kind, that is the error, and no tier name can be judged.
    let Some(tiers) = kind.and_then(Topology::tiers_of) else { return };
    let Some(table) = root.as_table_mut() else { return };
    let ports = table.entry("port".to_owned()).or_insert_with(Node::empty_table);
    let Some(ports) = ports.as_table_mut() else { return };
    let unknown: Vec<String> = ports
        .keys()
        .filter(|name| !["host", "switch"].contains(&name.as_str()) && !tiers.contains(&name.as_str()))
        .cloned()
        .collect();
    for name in unknown {
        let Some(node) = ports.shift_remove(&name) else { continue };
        let allowed: Vec<&str> = ["host", "switch"].iter().chain(tiers).copied().collect();
        let report = Report::at(sources, &node.key, format!("port.{name}"), format!("unknown tier `{name}`"));
        reports.push(report.allowed(allowed.join(", ")).maybe_help(did_you_mean(&name, allowed.iter().copied())));
    }
    let switch = ports.entry("switch".to_owned()).or_insert_with(Node::empty_table).clone();
    let mut resolved = vec!["host"];
    for tier in tiers.iter().copied().filter(|tier| *tier != "switch") {
        let own = ports.shift_remove(tier);
        let mut complete = switch.clone();
        if let Some(own) = own {
            merge(&mut complete, own, &mut vec!["port".to_owned(), tier.to_owned()]);
        }
        ports.insert(tier.to_owned(), complete);
    }
    resolved.extend(tiers);
    for name in resolved {
        if let Some(port) = ports.get_mut(name) {
            marking(sources, name, port, reports);
        }
    }
    if let Some(port) = ports.get_mut("switch") {
        // Its tiers have been judged; here only the same outcome.
        marking(sources, "switch", port, &mut Vec::new());
    }
}

/// One port marks in one way. A phantom queue silently turns off marking that comes from a less
/// specific layer; whatever else meets is a contradiction, and the error says what to turn off.
fn marking(sources: &Sources, name: &str, port: &mut Node, reports: &mut Vec<Report>) {
    let Some(table) = port.as_table_mut() else { return };
    if let Some(phantom) = table.get("phantom_queue").filter(|node| is_on(node)).cloned() {
        for marker in ["ecn", "red"] {
            let Some(node) = table.get_mut(marker).filter(|node| is_on(node)) else { continue };
            if phantom.origin.layer.rank() > node.origin.layer.rank() {
                node.value = Value::String("off".to_owned());
                node.origin = phantom.origin.clone();
                continue;
            }
            let message = "a port with a phantom queue does not mark on its own queue";
            let report = Report::at(sources, &node.key, format!("port.{name}.{marker}"), message);
            let place = sources.place(&phantom.key);
            reports.push(report.allowed("one of phantom_queue, ecn and red").help(format!(
                "turn one off: `port.{name}.{marker} = \"off\"`, or `port.{name}.phantom_queue = \"off\"` \
                 (set in {}, line {})",
                place.file, place.line
            )));
        }
        return;
    }
    if let (Some(ecn), Some(red)) = (table.get("ecn").filter(|node| is_on(node)), table.get("red").filter(|node| is_on(node))) {
        let later = if red.origin.layer.rank() >= ecn.origin.layer.rank() { ("red", red) } else { ("ecn", ecn) };
        let report = Report::at(
            sources,
            &later.1.key,
            format!("port.{name}.{}", later.0),
            "ecn and red would both mark the same queue",
        );
        reports.push(report.allowed("one of phantom_queue, ecn and red").help(format!(
            "turn one off: `port.{name}.ecn = \"off\"` or `port.{name}.red = \"off\"`"
        )));
    }
}

fn is_on(node: &Node) -> bool {
    node.as_str() != Some("off")
}
