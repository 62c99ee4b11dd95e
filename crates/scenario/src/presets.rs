//! Presets: files with the settings of a scheme, which the key `preset` lays below the keys of its own layer.
//!
//! ```toml
//! preset = "hull"                          # transport, ports, host and paths
//! port.switch.phantom_queue.drain = 0.9    # a key beside it counts instead
//! [variant.DCTCP]
//! preset = "dctcp"                         # in the place of the file's
//! [transports.bulk]
//! preset = "linux"                         # the transport is this one's; ports, host and paths are everybody's
//! ```
//!
//! A value of a preset may depend on the rate of the hosts' links: `{ "1Gbps" = "20 packets", "10Gbps" = "65 packets"
//! }` is linear in `topology.rate` between the rates that are given, in proportion above, and constant below.

use std::collections::BTreeMap;

use plimsoll_units::Rate;

use crate::error::{Report, did_you_mean};
use crate::keys::{PRESET, TRANSPORTS};
use crate::node::{self, Table, Value, ValueNode, dotted, replaces_whole};
use crate::source::{ScenarioTexts, ValueOrigin};
use crate::transports;

/// The files of `presets/`, by name.
const ALL: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/presets.rs"));

/// Returns the names and the texts of the presets.
pub fn presets() -> impl Iterator<Item = (&'static str, &'static str)> {
    ALL.iter().copied()
}

/// Returns whether the key at `path` names a preset.
pub(crate) fn is_key(path: &[String]) -> bool {
    match path {
        [key] => key == PRESET,
        [section, _, key] => section == TRANSPORTS && key == PRESET,
        _ => false,
    }
}

/// The presets that a scenario has named.
#[derive(Debug, Default)]
pub(crate) struct Presets {
    /// The names by the number of their text.
    names: BTreeMap<usize, &'static str>,
}

impl Presets {
    /// Takes the keys `preset` out of `tree`, and lays the presets below the values of the same layer.
    pub(crate) fn resolve(&mut self, sources: &mut ScenarioTexts, tree: &mut ValueNode) -> Vec<Report> {
        let mut reports = Vec::new();
        let transports = transports::names(tree);
        for transport in std::iter::once(None).chain(transports.iter().map(Some)) {
            let path = match transport {
                None => vec![PRESET],
                Some(name) => vec![TRANSPORTS, name, PRESET],
            };
            let Some(key) = tree.remove(&path) else { continue };
            match self.open(sources, &key, &path) {
                Err(report) => reports.push(*report),
                Ok(mut preset) => {
                    if let Some(name) = transport {
                        let own = preset.remove(&["transport"]);
                        own.into_iter().for_each(|own| put(&mut preset, TRANSPORTS, put_in(name, own)));
                    }
                    let conflicts = self.lay(tree, preset, &mut Vec::new());
                    reports
                        .extend(conflicts.into_iter().map(|conflict| self.report(sources, &key, conflict)));
                }
            }
        }
        reports
    }

    /// Parses the preset that `key` names, as a part of its layer.
    fn open(
        &mut self,
        sources: &mut ScenarioTexts,
        key: &ValueNode,
        path: &[&str],
    ) -> Result<ValueNode, Box<Report>> {
        let names = || ALL.iter().map(|(name, _)| *name);
        let found = ALL.iter().find(|(name, _)| key.as_str() == Some(name));
        let Some((name, text)) = found else {
            let message = match key.as_str() {
                Some(name) => format!("there is no preset `{name}`"),
                None => format!("{} does not fit", key.literal()),
            };
            let report = Report::at(sources, &key.origin, dotted(path), message);
            let nearest = key.as_str().and_then(|name| did_you_mean(name, names()));
            return Err(report.allowed(names().collect::<Vec<_>>().join(", ")).maybe_help(nearest).into());
        };
        let known = self.names.iter().find(|(_, known)| *known == name).map(|(source, _)| *source);
        let source = known.unwrap_or_else(|| sources.add(format!("preset {name}"), *text));
        self.names.insert(source, name);
        let (mut tree, _) = node::parse(sources, source, text, &key.origin.layer);
        tree.origin.layer = key.origin.layer.clone();
        tree.remove(&[PRESET]);
        Ok(tree)
    }

    /// Returns whether the text with the number `source` is that of a preset.
    pub(crate) fn has_text(&self, source: usize) -> bool {
        self.names.contains_key(&source)
    }

    /// Lays `preset` over the values of lower layers, and below the others. Returns the values that another preset has
    /// set differently.
    fn lay(&self, own: &mut ValueNode, preset: ValueNode, path: &mut Vec<String>) -> Vec<PresetConflict> {
        let is_outranked = own.origin.layer.rank() < preset.origin.layer.rank();
        let is_table = own.as_table().is_some() && !is_by_rate(&preset) && !is_by_rate(own);
        let whole = is_outranked && replaces_whole(own, &preset, path);
        let differs = own.text() != preset.text();
        let ValueNode { value, origin, key } = preset;
        let mut conflicts = Vec::new();
        match (&mut own.value, value) {
            (Value::Table(below), Value::Table(table)) if is_table && !whole => {
                for (name, node) in table {
                    match below.get_mut(&name) {
                        Some(existing) => {
                            path.push(name);
                            conflicts.append(&mut self.lay(existing, node, path));
                            path.pop();
                        }
                        None => drop(below.insert(name, node)),
                    }
                }
            }
            (_, value) => {
                let other = self.names.get(&own.origin.source).filter(|_| own.origin.source != origin.source);
                let preset = ValueNode { value, origin, key };
                if let Some(other) = other.filter(|_| differs) {
                    let (path, values) = (path.clone(), [own.text(), preset.text()]);
                    conflicts.push(PresetConflict { path, other, values });
                } else if is_outranked {
                    *own = preset;
                }
            }
        }
        conflicts
    }

    fn report(&self, sources: &ScenarioTexts, key: &ValueNode, conflict: PresetConflict) -> Report {
        let PresetConflict { path, other, values: [first, second] } = conflict;
        let path = dotted(&path);
        let name = key.as_str().unwrap_or_default();
        let message = format!(
            "the presets `{other}` and `{name}` set `{path}` differently: to {first} and to {second}"
        );
        let report = Report::at(sources, &key.origin, path.clone(), message);
        report.allowed(format!("one of the presets, or the key itself beside them: {path} = ..."))
    }

    /// Replaces the values of presets that depend on `topology.rate`.
    pub(crate) fn at_rate(&self, sources: &ScenarioTexts, tree: &mut ValueNode) -> Vec<Report> {
        let mut reports = Vec::new();
        if !self.names.is_empty() {
            let rate = tree.at(&["topology", "rate"]);
            let known = rate.map(|rate| rate.as_str().and_then(|rate| rate.parse().ok()));
            self.choose(sources, tree, known, &mut Vec::new(), &mut reports);
        }
        reports
    }

    fn choose(
        &self,
        sources: &ScenarioTexts,
        node: &mut ValueNode,
        rate: Option<Option<Rate>>,
        path: &mut Vec<String>,
        reports: &mut Vec<Report>,
    ) {
        let name = self.names.get(&node.origin.source).filter(|_| is_by_rate(node));
        let Value::Table(table) = &mut node.value else { return };
        let Some(name) = name else {
            for (key, node) in table {
                path.push(key.clone());
                self.choose(sources, node, rate, path, reports);
                path.pop();
            }
            return;
        };
        // A rate that cannot be read is an error of its own, so any value does.
        let chosen = rate.map(|rate| value_at(table, rate.unwrap_or(Rate::from_gbps(1))));
        let key = dotted(path);
        let Some(chosen) = chosen else {
            let message = format!(
                "the preset `{name}` has `{key}` by `topology.rate`, which this topology does not have"
            );
            let report = Report::at(sources, &node.origin, key.clone(), message);
            return reports.push(report.allowed(format!("the key itself beside the preset: {key} = ...")));
        };
        node.value = Value::String(chosen);
    }
}

/// A value that two presets set differently.
#[derive(Debug)]
struct PresetConflict {
    path: Vec<String>,
    other: &'static str,
    values: [String; 2],
}

/// Returns whether a value depends on the rate of the hosts' links.
fn is_by_rate(node: &ValueNode) -> bool {
    let is_rate = |key: &String| key.parse::<Rate>().is_ok();
    node.as_table().is_some_and(|table| !table.is_empty() && table.keys().all(is_rate))
}

/// Returns the value at `rate`: linear between the rates of the table, which ascend, in proportion above, and constant
/// below.
fn value_at(table: &Table, rate: Rate) -> String {
    let points = table.iter().filter_map(|(rate, node)| {
        let (number, unit) = split(node.as_str()?);
        Some((rate.parse::<Rate>().ok()?.as_bps() as f64, number, unit))
    });
    let points: Vec<(f64, f64, &str)> = points.collect();
    let bps = rate.as_bps() as f64;
    let above = points.iter().position(|(known, ..)| bps <= *known);
    let (number, unit) = match above {
        Some(0) => (points[0].1, points[0].2),
        Some(next) => {
            let ((from, low, _), (to, high, unit)) = (points[next - 1], points[next]);
            (low + (high - low) * (bps - from) / (to - from), unit)
        }
        None => points.last().map_or((0.0, ""), |(known, number, unit)| (number * bps / known, *unit)),
    };
    // Half a packet or half a byte is a whole one.
    match unit {
        "B" | " packets" => format!("{}{unit}", number.ceil()),
        _ => format!("{number}{unit}"),
    }
}

/// Splits a quantity into its number and its unit, with the blank between them.
fn split(text: &str) -> (f64, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    (text[..end].parse().unwrap_or_default(), &text[end..])
}

/// Puts `node` under `key` of a table.
fn put(table: &mut ValueNode, key: &str, node: ValueNode) {
    if let Some(table) = table.as_table_mut() {
        table.insert(key.to_owned(), node);
    }
}

/// Returns a table that has `node` under `key`.
fn put_in(key: &str, node: ValueNode) -> ValueNode {
    let place: ValueOrigin = node.origin.clone();
    let mut table = ValueNode { value: Value::Table(Table::new()), origin: place.clone(), key: place };
    put(&mut table, key, node);
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_linear_between_rates_and_proportional_above() {
        let text =
            "k = { \"1Gbps\" = \"20 packets\", \"10Gbps\" = \"65 packets\" }\nb = { \"1Gbps\" = \"1KB\" }";
        let mut sources = ScenarioTexts::default();
        let source = sources.add("preset", text);
        let (tree, reports) = node::parse(&sources, source, text, &crate::source::SourceLayer::Flag);
        assert!(reports.is_empty());
        let at = |key: &str, rate: &str| {
            value_at(
                tree.get(key).and_then(ValueNode::as_table).expect("a table"),
                rate.parse().expect("a rate"),
            )
        };
        for (rate, expected) in [
            ("100Mbps", "20 packets"),
            ("1Gbps", "20 packets"),
            ("10Gbps", "65 packets"),
            ("5.5Gbps", "43 packets"),
            ("25Gbps", "163 packets"),
        ] {
            assert_eq!(at("k", rate), expected, "{rate}");
        }
        assert_eq!((at("b", "1Gbps"), at("b", "2.5Gbps")), ("1KB".to_owned(), "2.5KB".to_owned()));
    }

    #[test]
    fn every_preset_has_its_source_and_the_rates_it_was_made_for() {
        for (name, text) in presets() {
            let table: toml::Table = text.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
            for key in ["source", "made_for"] {
                assert!(table[PRESET][key].as_str().is_some_and(|text| text.len() > 5), "{name}: {key}");
            }
        }
    }
}
