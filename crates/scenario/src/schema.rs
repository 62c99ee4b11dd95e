//! The JSON Schema of a whole file: the model, and around it variants, the sweep and includes.

use serde_json::{Map, Value, json};

use crate::model::Model;
use crate::presets::presets;

/// The schema that editors read; scenarios/schema.json is this.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Model).to_value();
    cdf_names_itself(&mut schema);
    without_null(&mut schema);
    let mut definitions = match schema.get_mut("$defs").map(Value::take) {
        Some(Value::Object(definitions)) => definitions,
        _ => Map::new(),
    };
    if let Some(Value::Array(kinds)) =
        definitions.get_mut("Workload").and_then(|kinds| kinds.get_mut("oneOf"))
    {
        for kind in kinds {
            kind["properties"]["transport"] = json!({
                "type": "string",
                "description": "The table of `transports` that carries the messages. Default `transport`."
            });
        }
    }
    let names: Vec<&str> = presets().map(|(name, _)| name).collect();
    let preset = |description: &str| json!({ "type": "string", "enum": names, "description": description });
    schema["properties"]["preset"] =
        preset("A scheme by one word, laid below the keys beside it: transport, ports, host and paths.");
    if let Some(transport) = definitions.get_mut("TransportParams") {
        transport["properties"]["preset"] = preset(
            "Only in `[transports.NAME]`: the scheme whose transport it is, laid below the keys beside it.",
        );
    }
    let mut variant = schema.clone();
    if let Some(variant) = variant.as_object_mut() {
        for key in ["$schema", "$defs", "title"] {
            variant.shift_remove(key);
        }
        variant.insert("description".to_owned(), json!("What the variant changes; the rest is the file's."));
        if let Some(Value::Object(properties)) = variant.get_mut("properties") {
            properties.shift_remove("version");
        }
    }
    let tables: Vec<String> = definitions
        .iter()
        .filter(|(_, definition)| has_keys(definition))
        .map(|(name, _)| name.clone())
        .collect();
    let partial: Vec<(String, Value)> = tables
        .iter()
        .filter_map(|name| {
            let mut definition = definitions.get(name)?.clone();
            relax(&mut definition, &tables);
            Some((format!("{name}{PARTIAL}"), definition))
        })
        .collect();
    definitions.extend(partial);
    relax(&mut variant, &tables);
    definitions.insert("Variant".to_owned(), variant);
    if let Some(root) = schema.as_object_mut() {
        root.insert("title".to_owned(), json!("Plimsoll scenario"));
        let required = root.shift_remove("required").unwrap_or_default();
        root.insert("anyOf".to_owned(), json!([{ "required": required }, { "required": ["include"] }]));
        if let Some(Value::Object(properties)) = root.get_mut("properties") {
            properties.extend(outer());
        }
        root.insert("$defs".to_owned(), Value::Object(definitions));
    }
    schema
}

/// The keys of a file that are not of one run.
fn outer() -> Map<String, Value> {
    let tables = json!({
        "include": {
            "type": "string",
            "description": "A file, its path relative to this one, over which this one is laid."
        },
        "set": {
            "type": "array",
            "items": { "type": "string" },
            "description": "What `--set` would be given, each as `key=value`: laid over every run, also over \
                variants and the sweep."
        },
        "replicates": {
            "type": "integer",
            "minimum": 1,
            "default": 1,
            "description": "Runs of each point with seeds of their own; `--replicates` goes before it."
        },
        "variant": {
            "type": "object",
            "additionalProperties": { "$ref": "#/$defs/Variant" },
            "description": "Variants by name, compared side by side in file order; each lays its keys over the \
                file. A mechanism's table is replaced whole, and \"off\" removes it."
        },
        "sweep": {
            "type": "object",
            "additionalProperties": { "anyOf": [{ "type": "array", "minItems": 1 }, { "type": "object" }] },
            "description": "Dotted keys, each with a list of values; several keys make the product of their lists."
        },
        "slo": {
            "type": "object",
            "additionalProperties": { "type": "string" },
            "description": "Objectives by name, such as query = \"p99(query) < 1ms\": what `plimsoll line` \
                judges a load by, unless `--slo` says otherwise."
        },
        "files": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "properties": { "text": { "type": "string" } },
                "required": ["text"],
                "additionalProperties": false
            },
            "description": "Texts of files under the names that the scenario has for them, looked up before the \
                disk; a run directory keeps its scenario in this way."
        }
    });
    match tables {
        Value::Object(tables) => tables,
        _ => Map::new(),
    }
}

const PARTIAL: &str = "Partial";

/// Whether there are keys anywhere in a definition, which then has a partial form.
fn has_keys(schema: &Value) -> bool {
    match schema {
        Value::Object(object) => object.contains_key("properties") || object.values().any(has_keys),
        Value::Array(items) => items.iter().any(has_keys),
        _ => false,
    }
}

/// Nothing is required of a table that is laid over another.
fn relax(schema: &mut Value, tables: &[String]) {
    match schema {
        Value::Object(object) => {
            object.shift_remove("required");
            object.shift_remove("default");
            if let Some(one_of) = object.shift_remove("oneOf") {
                object.insert("anyOf".to_owned(), one_of);
            }
            if let Some(Value::String(reference)) = object.get_mut("$ref")
                && tables.iter().any(|name| reference.strip_prefix("#/$defs/") == Some(name))
            {
                reference.push_str(PARTIAL);
            }
            object.values_mut().for_each(|inner| relax(inner, tables));
        }
        Value::Array(items) => items.iter_mut().for_each(|inner| relax(inner, tables)),
        _ => {}
    }
}

/// TOML has no null: a key that may be absent has no null among its types.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("default").is_some_and(Value::is_null) {
                object.shift_remove("default");
            }
            if let Some(Value::Array(types)) = object.get_mut("type") {
                types.retain(|name| name != "null");
            }
            if let Some(Value::Array(options)) = object.get_mut("anyOf") {
                options.retain(|option| option.get("type") != Some(&json!("null")));
            }
            object.values_mut().for_each(without_null);
        }
        Value::Array(items) => items.iter_mut().for_each(without_null),
        _ => {}
    }
}

/// `{ cdf = "websearch" }` needs no `kind`.
fn cdf_names_itself(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("properties").and_then(|properties| properties.get("cdf")).is_some() {
                object.insert("required".to_owned(), json!(["cdf"]));
            }
            object.values_mut().for_each(cdf_names_itself);
        }
        Value::Array(items) => items.iter_mut().for_each(cdf_names_itself),
        _ => {}
    }
}
