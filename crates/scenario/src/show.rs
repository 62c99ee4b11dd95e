//! The merged file of one point as TOML, with a comment after each value saying where it comes
//! from. The same text without comments is the canonical form; it parses back to the same model, and
//! with the former names of keys that have moved, a point's digest is computed over it.

use std::fmt::Write;

use serde_json::{Map, Value};

use crate::model::Model;
use crate::moved;
use crate::node::{ValueNode, dotted, float_text, is_mechanism, quoted_key, toml_string};
use crate::registry::written;
use crate::source::{ScenarioTexts, SourceLayer, ValueOrigin};

/// With comments, where `tree` and its sources are given.
pub(crate) fn render(model: &Model, places: Option<(&ValueNode, &ScenarioTexts)>) -> String {
    let table = written(model).unwrap_or_default();
    let mut text = String::new();
    Writer { places, text: &mut text }.table(&mut Vec::new(), &table);
    text
}

/// Returns the text that a point's digest is computed over.
pub(crate) fn digested(model: &Model) -> String {
    let mut table = written(model).unwrap_or_default();
    moved::restore(&mut table);
    let mut text = String::new();
    Writer { places: None, text: &mut text }.table(&mut Vec::new(), &table);
    text
}

/// Defaults that have changed, with their former values. Runs are kept by their settings, so a file that writes a
/// former default down is the one that left the key out, and the present default counts as set.
const FORMER_DEFAULTS: [(&[&str], &str); 2] =
    [(&["port", "host", "order"], "\"fifo\""), (&["transport", "min_window"], "1")];

/// The settings of the file and nothing else, in canonical form, one key a line: defaults are not in it, so that
/// a new key with a default leaves it as it is. Title and description change no run and are not in it.
pub(crate) fn settings(model: &Model, tree: &ValueNode) -> String {
    let mut text = format!("run.seed = {}\n", model.run.seed);
    if let Some(mut table) = written(model) {
        table.retain(|key, _| !["title", "description"].contains(&key.as_str()));
        set_below(&mut text, tree, &mut Vec::new(), &table);
        for (path, former) in FORMER_DEFAULTS {
            let value = path[1..].iter().try_fold(table.get(path[0]), |value, key| Some(value?.get(*key)));
            if let Some(Some(value)) = value
                && tree.at(path).is_none()
                && literal(value) != former
            {
                text.push_str(&format!("{} = {}\n", path.join("."), literal(value)));
            }
        }
    }
    text
}

/// Returns whether a file has written a former default down. A variant or a flag that sets it has another reason.
fn is_former(path: &[String], value: &Value, node: &ValueNode) -> bool {
    matches!(node.origin.layer, SourceLayer::File(_))
        && FORMER_DEFAULTS.iter().any(|(former, text)| *former == path && literal(value) == *text)
}

fn set_below(text: &mut String, tree: &ValueNode, path: &mut Vec<String>, table: &Map<String, Value>) {
    for (key, value) in table {
        let Some(node) = tree.get(key) else { continue };
        path.push(key.clone());
        match (value, node.as_table()) {
            // A mechanism that is on with its defaults sets no key below it.
            (Value::Object(inner), Some(set)) if !set.is_empty() => set_below(text, node, path, inner),
            (Value::Null, _) => {}
            _ if *path == ["run", "seed"] || is_former(path, value, node) => {}
            (Value::Object(_), Some(_)) => text.push_str(&format!("[{}]\n", dotted(path))),
            _ => text.push_str(&format!("{} = {}\n", dotted(&moved::former(path)), literal(value))),
        }
        path.pop();
    }
}

struct Writer<'a> {
    places: Option<(&'a ValueNode, &'a ScenarioTexts)>,
    text: &'a mut String,
}

impl Writer<'_> {
    /// Values first, then the tables, as TOML wants it.
    fn table(&mut self, path: &mut Vec<String>, table: &Map<String, Value>) {
        let leaves: Vec<(String, &str)> = table
            .iter()
            .filter(|(_, value)| !value.is_object() && !value.is_null())
            .map(|(key, value)| (format!("{} = {}", quoted_key(key), literal(value)), key.as_str()))
            .collect();
        if !path.is_empty() && (!leaves.is_empty() || table.is_empty() || is_mechanism(path)) {
            let header = format!("\n[{}]", dotted(path));
            let comment = if is_mechanism(path) { self.comment(path) } else { None };
            self.line(&header, 0, comment);
        }
        let width =
            leaves.iter().map(|(line, _)| line.chars().count()).filter(|width| *width <= WIDTH_MAX).max();
        for (line, key) in &leaves {
            path.push((*key).to_owned());
            let comment = self.comment(path);
            path.pop();
            self.line(line, width.unwrap_or(0), comment);
        }
        for (key, value) in table {
            if let Value::Object(inner) = value {
                path.push(key.clone());
                self.table(path, inner);
                path.pop();
            }
        }
    }

    fn line(&mut self, line: &str, width: usize, comment: Option<String>) {
        // Writing to a String cannot fail.
        let _ = match comment {
            Some(comment) => writeln!(self.text, "{line:width$}  # {comment}"),
            None => writeln!(self.text, "{line}"),
        };
    }

    fn comment(&self, path: &[String]) -> Option<String> {
        let (tree, sources) = self.places?;
        let keys: Vec<&str> = path.iter().map(String::as_str).collect();
        Some(tree.at(&keys).map_or_else(|| "default".to_owned(), |node| describe(sources, &node.origin)))
    }
}

/// Comments are aligned to lines up to this long.
const WIDTH_MAX: usize = 60;

fn describe(sources: &ScenarioTexts, origin: &ValueOrigin) -> String {
    // The rule of a value that a preset has by the rate of links.
    let is_preset = sources.name(origin.source).starts_with("preset ");
    let rule = Some(sources.text(origin)).filter(|text| is_preset && text.starts_with("{ \""));
    let rule = rule.map_or_else(String::new, |rule| format!(", by topology.rate: {rule}"));
    let place = || format!("{}:{}{rule}", sources.name(origin.source), sources.line(origin));
    match &origin.layer {
        SourceLayer::Default => "default".to_owned(),
        SourceLayer::File(_) => place(),
        SourceLayer::Variant(name) => format!("variant {name}, {}", place()),
        SourceLayer::Sweep => format!("sweep, {}", place()),
        SourceLayer::Flag if !sources.name(origin.source).starts_with("--") => format!("set, {}", place()),
        SourceLayer::Flag => sources.name(origin.source).to_owned(),
    }
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => toml_string(text),
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => float_text(float),
            _ => number.to_string(),
        },
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(literal).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(table) => {
            let entries = table.iter().filter(|(_, value)| !value.is_null());
            let entries: Vec<String> =
                entries.map(|(key, value)| format!("{} = {}", quoted_key(key), literal(value))).collect();
            format!("{{ {} }}", entries.join(", "))
        }
        other => other.to_string(),
    }
}
