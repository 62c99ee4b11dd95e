//! The keys of a scenario as controls, by the JSON Schema.
//!
//! ```text
//! points ──> model as JSON ──> leaves (dotted key, value) ──┬─ schema at that key: number, choice, quantity ──> Knob
//!                              of each variant              └─ differs between variants: theirs, and no knob
//! ```

use std::collections::BTreeSet;

use plimsoll_report::html::{Control, Knob};
use plimsoll_scenario::Point;
use serde_json::Value;

/// Keys that name things, or whose change makes another scenario of the file.
const LEFT_OUT: [&str; 8] =
    ["version", "title", "description", "fault", "program", "observe", "circuits.seed", "kind"];

const TIMES: [&str; 5] = ["ns", "us", "ms", "s", "min"];
const SIZES: [&str; 6] = ["B", "KB", "MB", "GB", "KiB", "MiB"];
const RATES: [&str; 3] = ["Kbps", "Mbps", "Gbps"];
const DEPTHS: [&str; 4] = ["packets", "B", "KB", "MB"];

/// Returns the keys of these points, one for each variant, as controls, the keys that the scenario sets first.
pub fn knobs(points: &[&Point], schema: &Value) -> Vec<Knob> {
    let mut knobs: Vec<Knob> = Vec::new();
    let mut leaves: Vec<(Vec<String>, Value, Vec<&str>)> = Vec::new();
    let mut differing: BTreeSet<Vec<String>> = BTreeSet::new();
    let mut set: BTreeSet<String> = BTreeSet::new();
    let model = |point: &&Point| serde_json::to_value(&point.model).unwrap_or_default();
    let models: Vec<Value> = points.iter().map(model).collect();
    for (point, model) in points.iter().zip(&models) {
        set.extend(point.settings().lines().filter_map(|line| Some(line.split_once(" = ")?.0.to_owned())));
        collect(&mut Vec::new(), model, &mut |path, value| match leaves
            .iter_mut()
            .find(|(known, ..)| known == path)
        {
            Some((_, known, variants)) => {
                variants.push(&point.variant);
                if known != value {
                    differing.insert(path.to_vec());
                }
            }
            None => leaves.push((path.to_vec(), value.clone(), vec![&point.variant])),
        });
    }
    for (path, value, variants) in leaves {
        let is_left_out =
            LEFT_OUT.contains(&path[0].as_str()) || path.last().is_some_and(|key| key == "kind");
        if is_left_out && path != ["transport", "kind"] || differing.contains(&path) {
            continue;
        }
        // A tier has the values of `port.switch`, except for its own.
        if path[0] == "port" && !["switch", "host"].contains(&path[1].as_str()) {
            let of_switch: Vec<String> =
                ["port", "switch"].into_iter().map(str::to_owned).chain(path[2..].iter().cloned()).collect();
            if models.iter().any(|model| at(model, &of_switch) == Some(&value)) {
                continue;
            }
        }
        let key = dotted(&path);
        let Some((found, help)) = find(schema, &path, &models) else { continue };
        let Some((control, value)) = control(&key, &found, &value, schema) else { continue };
        let all = variants.len() == points.len();
        knobs.push(Knob {
            group: group(&path),
            help: help.replace('\n', " "),
            value,
            control,
            variants: if all { Vec::new() } else { variants.into_iter().map(str::to_owned).collect() },
            is_set: set.contains(&key),
            key,
        });
    }
    in_order(knobs)
}

/// Arranges groups in the order in which a reader looks for them: traffic first, then its network.
fn in_order(mut knobs: Vec<Knob>) -> Vec<Knob> {
    const ORDER: [&str; 8] =
        ["workload", "port", "host", "transport", "paths", "circuits", "topology", "run"];
    let rank = |knob: &Knob| {
        let first = knob.group.split('.').next().unwrap_or_default().to_owned();
        ORDER.iter().position(|name| *name == first).unwrap_or(ORDER.len())
    };
    // Groups without a key of the scenario's own come last.
    let set: BTreeSet<String> =
        knobs.iter().filter(|knob| knob.is_set).map(|knob| knob.group.clone()).collect();
    knobs.sort_by_key(|knob| (!set.contains(&knob.group), rank(knob), knob.group.clone(), !knob.is_set));
    knobs
}

/// Calls `visit` for each leaf of a table, with its path.
fn collect<'a>(path: &mut Vec<String>, value: &'a Value, visit: &mut impl FnMut(&[String], &'a Value)) {
    match value {
        Value::Object(table) => {
            for (key, inner) in table {
                path.push(key.clone());
                collect(path, inner, visit);
                path.pop();
            }
        }
        Value::Null => {}
        leaf => visit(path, leaf),
    }
}

/// Returns a path as a dotted key, in which keys with other characters than a bare one may have are quoted.
fn dotted(path: &[String]) -> String {
    let is_bare =
        |key: &str| !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    let quoted = |key: &String| if is_bare(key) { key.clone() } else { format!("{key:?}") };
    path.iter().map(quoted).collect::<Vec<_>>().join(".")
}

/// Returns the name of a key's group: its table, of which workloads and ports have one each.
fn group(path: &[String]) -> String {
    let depth = if ["workload", "port"].contains(&path[0].as_str()) { 2 } else { 1 };
    dotted(&path[..depth.min(path.len() - 1).max(1)])
}

/// Returns the schema of a key, and its description of the key.
fn find(schema: &Value, path: &[String], models: &[Value]) -> Option<(Value, String)> {
    let model = models.iter().find(|model| at(model, path).is_some())?;
    let mut here = schema.clone();
    let mut help = String::new();
    for depth in 0..path.len() {
        let table = resolve(schema, &here, at(model, &path[..depth]));
        let inner = table
            .get("properties")
            .and_then(|properties| properties.get(&path[depth]))
            .or_else(|| table.get("additionalProperties").filter(|inner| inner.is_object()))?;
        help = inner.get("description").and_then(Value::as_str).unwrap_or_default().to_owned();
        here = inner.clone();
    }
    Some((here, help))
}

fn at<'a>(model: &'a Value, path: &[String]) -> Option<&'a Value> {
    path.iter().try_fold(model, |value, key| value.get(key))
}

/// Follows references and, of alternatives, the one that has the `kind` of `value`, or is a table.
fn resolve(schema: &Value, here: &Value, value: Option<&Value>) -> Value {
    let mut here = here.clone();
    for _ in 0..8 {
        if let Some(definition) = definition(schema, &here) {
            here = definition.clone();
            continue;
        }
        let options = here.get("oneOf").or_else(|| here.get("anyOf")).and_then(Value::as_array);
        if here.get("properties").is_some() || options.is_none() {
            return here;
        }
        let options = options.cloned().unwrap_or_default();
        let kind = value.and_then(|value| value.get("kind"));
        let has_kind = |option: &&Value| {
            let option = match option.get("$ref") {
                Some(_) => resolve(schema, option, None),
                None => (*option).clone(),
            };
            kind.is_some() && option.pointer("/properties/kind/const") == kind
        };
        let is_table = |option: &&Value| option.get("const").is_none();
        let chosen = options.iter().find(has_kind).or_else(|| options.iter().find(is_table));
        match chosen {
            Some(chosen) => here = chosen.clone(),
            None => return here,
        }
    }
    here
}

/// Returns the control for a value, and the value as `--set` takes it; `None` for a value that no control can write.
fn control(key: &str, found: &Value, value: &Value, schema: &Value) -> Option<(Control, String)> {
    let choices = choices(schema, found);
    match value {
        Value::Bool(on) => Some((Control::Switch, on.to_string())),
        Value::Number(number) => {
            let value = number.as_f64()?;
            let whole = !number.is_f64();
            let is_share =
                key.ends_with(".load") || key.ends_with("loss") || (!whole && value > 0.0 && value <= 1.0);
            Some((plain(value, whole, is_share), number.to_string()))
        }
        Value::String(text) if choices.iter().any(|choice| choice == text) => {
            Some((Control::Choice(choices), text.clone()))
        }
        Value::String(text) => {
            let quantity = quantity(text);
            Some((quantity.unwrap_or(Control::Text), text.clone()))
        }
        // Lists, texts and numbers of JSON are TOML too.
        Value::Array(_) => Some((Control::Text, value.to_string())),
        Value::Null | Value::Object(_) => None,
    }
}

/// Returns the control of a number without a unit.
fn plain(value: f64, whole: bool, is_share: bool) -> Control {
    let (low, high, by_factors) = match (is_share, whole) {
        (true, _) => (0.01, 0.99, false),
        (false, true) if value <= 32.0 => {
            (if value < 1.0 { 0.0 } else { 1.0 }, (value * 3.0).max(10.0), false)
        }
        (false, _) => (value / 8.0, value * 8.0, true),
    };
    Control::Number { value, unit: String::new(), units: Vec::new(), low, high, by_factors, whole }
}

/// Returns the control of a number with a unit; `None` if the text is none.
fn quantity(text: &str) -> Option<Control> {
    let end = text.find(|c: char| !(c.is_ascii_digit() || c == '.'))?;
    let (number, unit) = (text[..end].parse::<f64>().ok()?, text[end..].trim());
    let families: [&[&str]; 4] = [&TIMES, &SIZES, &RATES, &DEPTHS];
    let unit = if unit == "packet" { "packets" } else { unit };
    let units: Vec<String> = families
        .iter()
        .find(|family| family.contains(&unit))?
        .iter()
        .map(|unit| (*unit).to_owned())
        .collect();
    let (low, high, by_factors) =
        if number > 0.0 { (number / 10.0, number * 10.0, true) } else { (0.0, 100.0, false) };
    let whole = unit == "packets";
    Some(Control::Number { value: number, unit: unit.to_owned(), units, low, high, by_factors, whole })
}

/// Returns the words that a schema allows, if it allows nothing else.
fn choices(schema: &Value, found: &Value) -> Vec<String> {
    let found = definition(schema, found).unwrap_or(found);
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(Value::Array(words)) = found.get("enum") {
        return words.iter().filter_map(text).collect();
    }
    let options = found.get("oneOf").or_else(|| found.get("anyOf")).and_then(Value::as_array);
    let mut words = Vec::new();
    for option in options.into_iter().flatten() {
        match (option.get("const"), option.get("enum"), option.get("$ref")) {
            (Some(word), ..) => words.extend(text(word)),
            (_, Some(Value::Array(several)), _) => words.extend(several.iter().filter_map(text)),
            (_, _, Some(_)) => words.extend(choices(schema, option)),
            _ => {}
        }
    }
    words
}

/// Returns the definition to which a schema refers, if it does.
fn definition<'a>(schema: &'a Value, here: &Value) -> Option<&'a Value> {
    schema.get("$defs")?.get(here.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?)
}
