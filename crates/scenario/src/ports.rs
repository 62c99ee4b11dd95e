//! Resolves `port.*` in the tree, so that errors and `show` keep the places: every tier of the
//! topology gets a complete table, and a phantom queue turns off the marking below it.

use plimsoll_mechanisms::TABLES;

use crate::error::{Report, did_you_mean};
use crate::model::Topology;
use crate::node::{Value, ValueNode, merge};
use crate::source::{ScenarioTexts, ValueOrigin};

/// Lays `port.<tier>` over `port.switch` for every tier.
pub(crate) fn resolve(sources: &ScenarioTexts, root: &mut ValueNode, reports: &mut Vec<Report>) {
    let Some(kind) = root.at(&["topology", "kind"]) else { return };
    // Without a known kind, that is the error, and no tier name can be judged.
    let packet = root.at(&["topology", "packet", "kind"]);
    let packet_kind = packet.and_then(|packet| packet.as_str());
    let tiers = kind.as_str().and_then(|kind| Topology::tiers_of(kind, packet_kind));
    let Some(tiers) = tiers else { return };
    let ranks = [Some(kind), packet].into_iter().flatten().map(|kind| kind.origin.layer.rank());
    let topology_rank = ranks.max().unwrap_or_default();
    let is_hybrid = kind.as_str() == Some("hybrid");
    let Some(table) = root.as_table_mut() else { return };
    let ports = table.entry("port".to_owned()).or_insert_with(ValueNode::empty_table);
    let Some(ports) = ports.as_table_mut() else { return };
    let unknown: Vec<String> = ports
        .keys()
        .filter(|name| !["host", "switch"].contains(&name.as_str()) && !tiers.contains(&name.as_str()))
        .cloned()
        .collect();
    for name in unknown {
        let Some(node) = ports.shift_remove(&name) else { continue };
        if node.origin.layer.rank() < topology_rank && Topology::is_tier(&name) {
            // A variant took another topology, where the base's settings of its own tiers do not apply.
            continue;
        }
        let allowed: Vec<&str> = ["host", "switch"].iter().chain(tiers).copied().collect();
        let report = Report::at(sources, &node.key, format!("port.{name}"), format!("unknown tier `{name}`"));
        reports.push(
            report.allowed(allowed.join(", ")).maybe_help(did_you_mean(&name, allowed.iter().copied())),
        );
    }
    let host = ports.entry("host".to_owned()).or_insert_with(ValueNode::empty_table);
    order_of_hosts(host, is_hybrid);
    let switch = ports.entry("switch".to_owned()).or_insert_with(ValueNode::empty_table).clone();
    let mut own_keys: Vec<(&str, String)> = Vec::new();
    for tier in tiers.iter().copied().filter(|tier| *tier != "switch") {
        let own = ports.shift_remove(tier);
        let mut complete = switch.clone();
        if let Some(own) = own {
            if let Some(table) = own.as_table() {
                own_keys.extend(table.keys().map(|key| (tier, key.clone())));
            }
            merge(&mut complete, own, &mut vec!["port".to_owned(), tier.to_owned()]);
        }
        ports.insert(tier.to_owned(), complete);
    }
    for name in ["host"].iter().chain(tiers).copied() {
        if let Some(port) = ports.get_mut(name) {
            let table_of = |key: &str| {
                let own = name == "host" || own_keys.iter().any(|(tier, own)| *tier == name && own == key);
                if own { name } else { "switch" }
            };
            marking(sources, table_of, port, reports);
        }
    }
    if let Some(port) = ports.get_mut("switch") {
        // Its tiers have been judged; here only the same outcome.
        marking(sources, |_| "switch", port, &mut Vec::new());
    }
}

/// Sets the order of the hosts' NICs where the scenario sets none: a queue for each flow, as Linux's hosts have (the
/// qdiscs fq and fq_codel; tcp_small_queue_check in net/ipv4/tcp_output.c keeps a flow from filling its own). What
/// decides the order by itself, or needs it to be that of arrival, leaves the queue a FIFO.
fn order_of_hosts(host: &mut ValueNode, is_hybrid: bool) {
    let Some(table) = host.as_table_mut() else { return };
    let decides = ["pfabric", "classes", "discipline"].iter().any(|key| table.get(*key).is_some_and(is_on));
    let is_express = table.get("engine").is_some_and(|node| node.as_str() == Some("express"));
    if !(table.contains_key("order") || decides || is_express || is_hybrid) {
        let order = Value::String("fair-per-flow".to_owned());
        let node = ValueNode { value: order, origin: ValueOrigin::start(), key: ValueOrigin::start() };
        table.insert("order".to_owned(), node);
    }
}

/// One port marks in one way. A phantom queue silently turns off marking that comes from a less
/// specific layer; whatever else meets is a contradiction, and the error says what to turn off.
/// `table_of` says in which table of `port` a key of this port was written.
fn marking<'a>(
    sources: &ScenarioTexts,
    table_of: impl Fn(&str) -> &'a str,
    port: &mut ValueNode,
    reports: &mut Vec<Report>,
) {
    let Some(table) = port.as_table_mut() else { return };
    if let Some(phantom) = table.get("phantom_queue").filter(|node| is_on(node)).cloned() {
        for marker in markers() {
            let Some(node) = table.get_mut(marker).filter(|node| is_on(node)) else { continue };
            if phantom.origin.layer.rank() > node.origin.layer.rank() {
                node.value = Value::String("off".to_owned());
                node.origin = phantom.origin.clone();
                continue;
            }
            let message = "a port with a phantom queue does not mark on its own queue";
            let (name, other) = (table_of(marker), table_of("phantom_queue"));
            let report = Report::at(sources, &node.key, format!("port.{name}.{marker}"), message);
            let place = sources.place(&phantom.key);
            reports.push(report.allowed(one_of_the_markers()).help(format!(
                "turn one off: `port.{name}.{marker} = \"off\"`, or `port.{other}.phantom_queue = \"off\"` \
                 (set in {}, line {})",
                place.file, place.line
            )));
        }
        return;
    }
    let mut on = markers().filter_map(|name| Some((name, table.get(name).filter(|node| is_on(node))?)));
    if let (Some(first), Some(second)) = (on.next(), on.next()) {
        let (name, node) =
            if second.1.origin.layer.rank() >= first.1.origin.layer.rank() { second } else { first };
        let message = format!("{} and {} would both mark the same queue", first.0, second.0);
        let report = Report::at(sources, &node.key, format!("port.{}.{name}", table_of(name)), message);
        reports.push(report.allowed(one_of_the_markers()).help(format!(
            "turn one off: `port.{}.{} = \"off\"` or `port.{}.{} = \"off\"`",
            table_of(first.0),
            first.0,
            table_of(second.0),
            second.0
        )));
    }
}

/// Returns the keys of what marks by a port's own queue.
fn markers() -> impl Iterator<Item = &'static str> {
    TABLES.iter().filter(|table| table.marks_queue).map(|table| table.key)
}

/// Returns all keys of what marks, for a message.
pub(crate) fn one_of_the_markers() -> String {
    let own: Vec<&str> = markers().collect();
    let (last, first) = own.split_last().unwrap_or((&"", &[]));
    format!("one of phantom_queue, {} and {last}", first.join(", "))
}

fn is_on(node: &ValueNode) -> bool {
    node.as_table().is_some()
}
