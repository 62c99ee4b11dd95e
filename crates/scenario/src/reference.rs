//! The reference of all keys, made from the JSON Schema: as Markdown, which docs/reference/scenario.md is, and as a
//! list of [`KeyEntry`].

mod key_entry;

use std::collections::BTreeSet;
use std::fmt::Write;

use plimsoll_mechanisms::{EngineNeed, TABLES};
use serde_json::{Map, Value};

use crate::schema::schema;
use key_entry::plain;

pub use key_entry::{KeyEntry, find_keys, nearest_keys};

/// The most columns of a line of prose.
const COLUMNS: usize = 120;
/// Words that would begin a list, a quotation, a table or a heading at the start of a line of Markdown.
const BLOCK_MARKS: [&str; 7] = ["-", "+", "*", ">", "|", "=", "#"];

/// Returns the text of docs/reference/scenario.md.
pub fn reference() -> String {
    written().0
}

/// Lists all keys in the order of the reference.
pub fn keys() -> Vec<KeyEntry> {
    written().1
}

fn written() -> (String, Vec<KeyEntry>) {
    let schema = schema();
    let mut writer = Writer {
        schema: &schema,
        text: format!("{HEAD}{}", mechanisms()),
        keys: Vec::new(),
        done: BTreeSet::new(),
        waiting: Vec::new(),
    };
    let mut root = schema.as_object().cloned().unwrap_or_default();
    if let Some(Value::Object(properties)) = root.get_mut("properties") {
        // Variants repeat all other tables.
        for key in ["variant", "sweep", "slo", "files"] {
            if let Some(Value::Object(table)) = properties.get_mut(key) {
                table.shift_remove("additionalProperties");
            }
        }
    }
    root.insert("description".to_owned(), Value::String(FILE.to_owned()));
    writer.table("The file", &root);
    while !writer.waiting.is_empty() {
        let (title, schema) = writer.waiting.remove(0);
        writer.section(&title, &schema);
    }
    (writer.text, writer.keys)
}

const HEAD: &str = "# Scenario file: all keys

<!-- Made from the doc comments of crates/scenario, crates/traffic and crates/mechanisms; to make it again:
     UPDATE=1 cargo test -p plimsoll-scenario --test it generated -->

A scenario is a TOML file. Times, sizes and rates are texts with a unit (`\"10ms\"`, `\"64KiB\"`,
`\"10Gbps\"`). `b` is a bit and `B` a byte, and no other letter's case is ignored but that of K, M, G and T; `µs` is
`us`. A share of a link may be written in per cent (`\"40%\"`). Where a key names a mechanism, its table turns the
mechanism on (`{}` with all its defaults) and `\"off\"` turns it off. Of several tables the later one wins:

1. the file that `include` names, 2. this file, 3. `[variant.NAME]`, 4. the point of `[sweep]`,
5. `set` of the file, `--set key=value` and `--seed`. A key that one of these sets is not swept, nor is a key of a table
   that it sets, if that table names the key or replaces the whole. In swept tables it sets its key at every point.

Tables merge key by key. The table of a mechanism, a distribution, and a topology or workload of another `kind` are
replaced whole. A phantom queue turns off what marks by the port's own queue in layers below its own. A sweep or
`--set` of a parameter of a mechanism has no effect in a variant where that mechanism is off. Paths are relative to the
scenario; that of an include is relative to the file that names it. `plimsoll scenario show` prints the result with
where each value comes from.

## Mechanisms

";

/// Returns the table of mechanisms from their descriptions: one row each.
fn mechanisms() -> String {
    let mut text = "| table | where it is `\"off\"` | port engine |\n|---|---|---|\n".to_owned();
    for table in TABLES {
        let engine = match table.engine {
            EngineNeed::Either => "express or general",
            EngineNeed::GeneralHere => "general",
            EngineNeed::GeneralAtSwitches => "general at all ports of switches",
            EngineNeed::GeneralEverywhere => "general at all ports",
        };
        text.push_str(&format!("| `{}` | {} | {engine} |\n", table.path(), table.off));
    }
    text
}

const FILE: &str =
    "A file is the description of one run, and around it the variants and the sweep that make many of it.";

struct Writer<'a> {
    schema: &'a Value,
    text: String,
    keys: Vec<KeyEntry>,
    /// Definitions that have a section.
    done: BTreeSet<String>,
    waiting: Vec<(String, Value)>,
}

impl Writer<'_> {
    fn line(&mut self, line: impl std::fmt::Display) {
        // Writing to a String cannot fail.
        let _ = writeln!(self.text, "{line}");
    }

    fn definition(&self, schema: &Value) -> Option<(String, Value)> {
        let name = schema.get("$ref")?.as_str()?.strip_prefix("#/$defs/")?;
        Some((name.to_owned(), self.schema.get("$defs")?.get(name)?.clone()))
    }

    /// A table, or a choice of tables by `kind`.
    fn section(&mut self, title: &str, schema: &Value) {
        if let Some(Value::Array(kinds)) = schema.get("oneOf").or_else(|| schema.get("anyOf")) {
            self.heading(title, schema);
            for kind in kinds {
                let Some(name) = kind.get("properties").and_then(|properties| properties.get("kind")) else {
                    continue;
                };
                let name = name.get("const").map(Value::to_string).unwrap_or_default();
                let kind = match self.definition(kind) {
                    Some((_, definition)) => merged(&definition, kind),
                    None => kind.clone(),
                };
                self.line(format!("\n### {title}, kind = {name}\n"));
                self.line(wrapped(&text_of(&kind), ""));
                let name = name.trim_matches('"');
                KeyEntry::of_kinds(&mut self.keys, table_of(title)).add_choice(name, &text_of(&kind));
                self.rows(title, Some(name), kind.as_object().unwrap_or(&Map::new()));
            }
        } else if let Some(table) = schema.as_object() {
            self.table(title, table);
        }
    }

    fn heading(&mut self, title: &str, schema: &Value) {
        self.line(format!("\n## {title}\n"));
        self.line(wrapped(&text_of(schema), ""));
    }

    fn table(&mut self, title: &str, table: &Map<String, Value>) {
        self.heading(title, &Value::Object(table.clone()));
        self.rows(title, None, table);
    }

    /// The keys of a table, or of one kind of it.
    fn rows(&mut self, title: &str, of_kind: Option<&str>, table: &Map<String, Value>) {
        let Some(Value::Object(properties)) = table.get("properties") else { return };
        let required: Vec<&str> = match table.get("required") {
            Some(Value::Array(keys)) => keys.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let outer = title == "The file";
        let path = if outer { "" } else { title.trim_matches('`') };
        self.line("\n| key | type | default | meaning |\n|---|---|---|---|");
        let mut choices: Vec<(String, Value)> = Vec::new();
        for (key, schema) in properties {
            if key == "kind" && schema.get("const").is_some() {
                continue;
            }
            let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
            let kind = self.type_of(&inner, schema, &mut choices);
            let default = match schema.get("default") {
                Some(Value::Null) | None if required.contains(&key.as_str()) => "required".to_owned(),
                Some(Value::Null | Value::Object(_)) | None => String::new(),
                Some(Value::String(text)) if text.is_empty() => String::new(),
                Some(value) => format!("`{value}`"),
            };
            let default = if outer && ["version", "title", "topology"].contains(&key.as_str()) {
                "required".to_owned()
            } else {
                default
            };
            let meaning = text_of(schema);
            self.line(format!("| `{key}` | {kind} | {default} | {} |", meaning.replace('|', "\\|")));
            self.keys.push(KeyEntry {
                path: key_entry::joined(table_of(title), key),
                kind: of_kind.map(str::to_owned),
                values: plain(&kind),
                default: plain(&default),
                meaning: plain(&meaning),
                choices: Vec::new(),
            });
        }
        if let Some(other) = table.get("additionalProperties").filter(|other| other.is_object()) {
            let kind = self.type_of(&format!("{path}.NAME"), other, &mut choices);
            self.line(format!("| any name | {kind} | | One tier of the topology by its name. |"));
        }
        for (key, values) in choices {
            self.line(format!("\nValues of `{key}`:\n"));
            let Some(values) = values.as_array() else { continue };
            let path = key_entry::joined(table_of(title), &key);
            for value in values {
                let name = value.get("const").map(Value::to_string).unwrap_or_default();
                self.line(wrapped(&format!("* `{name}`: {}", text_of(value)), "  "));
                let known = self.keys.iter_mut().find(|k| k.path == path && k.kind.as_deref() == of_kind);
                if let Some(known) = known {
                    known.add_choice(name.trim_matches('"'), &text_of(value));
                }
            }
        }
    }

    /// The type in words; tables are put on the list of sections to write.
    fn type_of(&mut self, path: &str, schema: &Value, choices: &mut Vec<(String, Value)>) -> String {
        if let Some((name, definition)) = self.definition(schema) {
            return match name.as_str() {
                "Span" => "time".to_owned(),
                "Bytes" => "size".to_owned(),
                "Rate" => "rate".to_owned(),
                "BufferLimit" => "buffer".to_owned(),
                "Load" => "load".to_owned(),
                "HostName" => "host".to_owned(),
                "Hosts" => "hosts".to_owned(),
                "Depth" => "size, or `\"N packets\"`".to_owned(),
                "SpanDistribution" | "BytesDistribution" => {
                    let (title, kind) = match name.as_str() {
                        "SpanDistribution" => ("Distribution of times", "time or distribution"),
                        _ => ("Distribution of sizes", "size or distribution"),
                    };
                    self.later(&name, title.to_owned(), definition);
                    kind.to_owned()
                }
                _ => self.composite(path, &name, definition, choices),
            };
        }
        if let Some(Value::Array(options)) = schema.get("anyOf") {
            let kinds: Vec<String> =
                options.iter().map(|option| self.type_of(path, option, choices)).collect();
            return kinds.join(" or ");
        }
        if let Some(value) = schema.get("const") {
            return format!("`{value}`");
        }
        if let Some(other) = schema.get("additionalProperties").filter(|other| other.is_object()) {
            return self.type_of(&format!("{path}.NAME"), other, choices) + " by name";
        }
        if let Some((name, definition)) = schema.get("items").and_then(|items| self.definition(items))
            && definition.get("properties").is_some()
        {
            self.later(&name, format!("`[[{path}]]`"), definition);
            return "list of tables".to_owned();
        }
        let name = match schema.get("type") {
            Some(Value::String(name)) => name.as_str(),
            Some(Value::Array(names)) => names.first().and_then(Value::as_str).unwrap_or(""),
            _ => "",
        };
        match name {
            "integer" => "whole number",
            "boolean" => "true or false",
            "string" => "text",
            "object" => "table",
            "array" => "list",
            other => other,
        }
        .to_owned()
    }

    fn composite(
        &mut self,
        path: &str,
        name: &str,
        definition: Value,
        choices: &mut Vec<(String, Value)>,
    ) -> String {
        if let Some(Value::Array(values)) = definition.get("oneOf")
            && values.iter().all(|value| value.get("const").is_some())
        {
            let names: Vec<String> = values
                .iter()
                .filter_map(|value| value.get("const"))
                .map(|value| format!("`{value}`"))
                .collect();
            choices.push((path.rsplit('.').next().unwrap_or(path).to_owned(), Value::Array(values.clone())));
            return names.join(", ");
        }
        if definition.get("type").and_then(Value::as_str) == Some("string") {
            return "text".to_owned();
        }
        let path = path
            .replace("port.host.", "port.*.")
            .replace("port.switch", "port.*")
            .replace("port.host", "port.*");
        self.later(name, format!("`{path}`"), definition);
        "table".to_owned()
    }

    fn later(&mut self, name: &str, title: String, definition: Value) {
        if self.done.insert(name.to_owned()) {
            self.waiting.push((title, definition));
        }
    }
}

/// The table of a section in paths of keys.
fn table_of(title: &str) -> &str {
    match title {
        "The file" => "",
        "Distribution of sizes" => key_entry::SIZE,
        "Distribution of times" => key_entry::TIME,
        name => name.trim_matches('`'),
    }
}

/// A variant of a choice holds its `kind` beside the reference to its table.
fn merged(definition: &Value, kind: &Value) -> Value {
    let mut merged = definition.clone();
    if let (Some(merged), Some(text)) = (merged.as_object_mut(), kind.get("description")) {
        merged.insert("description".to_owned(), text.clone());
    }
    merged
}

fn text_of(schema: &Value) -> String {
    let text = schema.get("description").and_then(Value::as_str).unwrap_or("");
    text.replace("\n\n", "<br>").replace('\n', " ").replace("[`", "`").replace("`]", "`")
}

/// Breaks a paragraph between words into lines of at most [`COLUMNS`] columns; lines after the first start with
/// `indent`. A word of [`BLOCK_MARKS`] stays on the line of the word before it.
fn wrapped(text: &str, indent: &str) -> String {
    let (mut lines, mut width) = (String::new(), 0);
    for word in text.split_whitespace() {
        let columns = word.chars().count();
        if width == 0 {
            // The first word needs no space before it.
        } else if width + 1 + columns > COLUMNS && !BLOCK_MARKS.contains(&word) {
            lines.push('\n');
            lines.push_str(indent);
            width = indent.len();
        } else {
            lines.push(' ');
            width += 1;
        }
        lines.push_str(word);
        width += columns;
    }
    lines
}
