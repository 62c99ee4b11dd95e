//! [`ValueNode`]: the tree of a file in which every value knows where it was written, and the rule by
//! which one tree is laid over another.

use indexmap::IndexMap;
use plimsoll_mechanisms::TABLES;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::Report;
use crate::keys::{DISCIPLINE, NIC_TABLES, TRANSPORTS, WORKLOAD};
use crate::source::{ScenarioTexts, SourceLayer, ValueOrigin};

/// A value with its place and that of its key.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct ValueNode {
    pub(crate) value: Value,
    pub(crate) origin: ValueOrigin,
    pub(crate) key: ValueOrigin,
}

/// A value of a TOML file.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Value {
    String(String),
    Integer(i128),
    Float(f64),
    Bool(bool),
    /// Dates mean nothing to a scenario; kept as text for the message.
    Datetime(String),
    Array(Vec<ValueNode>),
    Table(Table),
}

/// The keys and values of a table, in the order of the file.
pub(crate) type Table = IndexMap<String, ValueNode>;

/// Tables nested deeper than this are refused: no scenario needs them, and every walk recurses.
const DEPTH_MAX: usize = 32;

impl ValueNode {
    /// An empty table without a place in a file.
    pub(crate) fn empty_table() -> ValueNode {
        ValueNode {
            value: Value::Table(Table::new()),
            origin: ValueOrigin::start(),
            key: ValueOrigin::start(),
        }
    }

    pub(crate) fn as_table(&self) -> Option<&Table> {
        match &self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn as_table_mut(&mut self) -> Option<&mut Table> {
        match &mut self.value {
            Value::Table(table) => Some(table),
            _ => None,
        }
    }

    pub(crate) fn as_str(&self) -> Option<&str> {
        match &self.value {
            Value::String(text) => Some(text),
            _ => None,
        }
    }

    /// The value of a key of a table, or of an index of a list.
    pub(crate) fn get(&self, key: &str) -> Option<&ValueNode> {
        match &self.value {
            Value::Table(table) => table.get(key),
            Value::Array(nodes) => nodes.get(key.parse::<usize>().ok()?),
            _ => None,
        }
    }

    /// The node at a path of keys.
    pub(crate) fn at(&self, path: &[&str]) -> Option<&ValueNode> {
        path.iter().try_fold(self, |node, key| node.get(key))
    }

    /// The node at a path, or its closest ancestor that exists.
    pub(crate) fn nearest_at(&self, path: &[&str]) -> &ValueNode {
        let mut node = self;
        for key in path {
            match node.get(key) {
                Some(child) => node = child,
                None => break,
            }
        }
        node
    }

    /// Takes out the node at a path.
    pub(crate) fn remove(&mut self, path: &[&str]) -> Option<ValueNode> {
        let (last, parents) = path.split_last()?;
        let mut node = self;
        for key in parents {
            node = node.as_table_mut()?.get_mut(*key)?;
        }
        node.as_table_mut()?.shift_remove(*last)
    }

    /// Moves the node and all below it to another layer; the places stay.
    pub(crate) fn relayer(&mut self, layer: &SourceLayer) {
        self.origin.layer = layer.clone();
        self.key.layer = layer.clone();
        match &mut self.value {
            Value::Table(table) => table.values_mut().for_each(|node| node.relayer(layer)),
            Value::Array(nodes) => nodes.iter_mut().for_each(|node| node.relayer(layer)),
            _ => {}
        }
    }

    /// Moves the node and all below it to one place.
    pub(crate) fn move_to(&mut self, place: &ValueOrigin) {
        self.origin = place.clone();
        self.key = place.clone();
        match &mut self.value {
            Value::Table(table) => table.values_mut().for_each(|node| node.move_to(place)),
            Value::Array(nodes) => nodes.iter_mut().for_each(|node| node.move_to(place)),
            _ => {}
        }
    }

    /// The value as the user would write it; tables and long lists by their kind.
    pub(crate) fn literal(&self) -> String {
        match &self.value {
            Value::String(text) => format!("{text:?}"),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => float_text(*number),
            Value::Bool(yes) => yes.to_string(),
            Value::Datetime(text) => text.clone(),
            Value::Array(nodes) if nodes.len() <= 4 => {
                let items: Vec<String> = nodes.iter().map(ValueNode::literal).collect();
                format!("[{}]", items.join(", "))
            }
            Value::Array(nodes) => format!("a list of {}", nodes.len()),
            Value::Table(_) => "a table".to_owned(),
        }
    }

    /// The value without the quotes of a string, as tables of results show it.
    pub(crate) fn text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            Value::Table(table) => {
                let items: Vec<String> =
                    table.iter().map(|(key, node)| format!("{key} = {}", node.literal())).collect();
                format!("{{ {} }}", items.join(", "))
            }
            _ => self.literal(),
        }
    }
}

/// A float that TOML reads back as a float.
pub(crate) fn float_text(number: f64) -> String {
    match number {
        n if n.is_nan() => "nan".to_owned(),
        n if n.is_infinite() => if n > 0.0 { "inf" } else { "-inf" }.to_owned(),
        n => format!("{n:?}"),
    }
}

/// Lays `over` over `base`: tables merge key by key; everything else, and a table that is one
/// mechanism, one distribution or of another `kind`, replaces the former value.
pub(crate) fn merge(base: &mut ValueNode, over: ValueNode, path: &mut Vec<String>) {
    let whole = replaces_whole(base, &over, path);
    let ValueNode { value, origin, key } = over;
    match (&mut base.value, value) {
        (Value::Table(below), Value::Table(above)) if !whole => {
            for (name, node) in above {
                match below.get_mut(&name) {
                    Some(existing) => {
                        path.push(name);
                        merge(existing, node, path);
                        path.pop();
                    }
                    None => {
                        below.insert(name, node);
                    }
                }
            }
        }
        (_, value) => *base = ValueNode { value, origin, key },
    }
}

/// Whether a path leads to the table of a mechanism, which is replaced as one. Of the tables that a mechanism from
/// outside may have, each is one.
pub(crate) fn is_mechanism(path: &[String]) -> bool {
    let is_of_nic = |key: &str| NIC_TABLES.contains(&key);
    match path {
        [section, _, key] if section == "port" && key == DISCIPLINE => true,
        [section, _] if section == "paths" => true,
        [section, key] if section == "transport" => key != WORKLOAD && !is_of_nic(key),
        [section, _, key] if section == TRANSPORTS => !is_of_nic(key),
        // Within the keys of queue pairs, the table of each controller is one; so with Ultra Ethernet's.
        [section, table, _] if section == "transport" => is_of_nic(table),
        [section, _, table, _] if section == TRANSPORTS => is_of_nic(table),
        _ => TABLES.iter().any(|table| table.is_at(path)),
    }
}

/// The table of a workload that says where and how a job runs.
const RUN_OF_JOB: &str = "run";

/// Whether a value laid over another replaces it as one.
pub(crate) fn replaces_whole(base: &ValueNode, over: &ValueNode, path: &[String]) -> bool {
    let kind_differs = || match (base.get("kind"), over.get("kind")) {
        (Some(below), Some(above)) => below.value != above.value,
        _ => false,
    };
    match path {
        [first] if first == "topology" => kind_differs(),
        [first, _] if first == "workload" => kind_differs(),
        // Every other table of a workload than the run of a job is a distribution, or the servo of its clocks.
        [first, _, table] if first == "workload" => table != RUN_OF_JOB,
        _ => is_mechanism(path),
    }
}

/// Parses a TOML text; syntax errors are collected, and what could be read is returned.
pub(crate) fn parse(
    sources: &ScenarioTexts,
    source: usize,
    text: &str,
    layer: &SourceLayer,
) -> (ValueNode, Vec<Report>) {
    let (table, errors) = DeTable::parse_recoverable(text);
    let origin = |span| ValueOrigin { source, span, layer: layer.clone() };
    let mut reports: Vec<Report> = errors
        .into_iter()
        .map(|error| {
            let span = error.span().unwrap_or(0..0);
            Report::at(sources, &origin(span), "", error.message().trim().replace('\n', ", "))
        })
        .collect();
    let mut builder = NodeBuilder { sources, source, layer, reports: &mut reports };
    let value = builder.table(table.get_ref(), 0);
    (ValueNode { value, origin: origin(0..0), key: origin(0..0) }, reports)
}

struct NodeBuilder<'a> {
    sources: &'a ScenarioTexts,
    source: usize,
    layer: &'a SourceLayer,
    reports: &'a mut Vec<Report>,
}

impl NodeBuilder<'_> {
    fn origin(&self, span: std::ops::Range<usize>) -> ValueOrigin {
        ValueOrigin { source: self.source, span, layer: self.layer.clone() }
    }

    fn table(&mut self, table: &DeTable<'_>, depth: usize) -> Value {
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let mut nodes = Table::with_capacity(entries.len());
        for (key, value) in entries {
            let key_origin = self.origin(key.span());
            let node = self.node(value, key_origin, depth + 1);
            nodes.insert(key.get_ref().to_string(), node);
        }
        Value::Table(nodes)
    }

    fn node(&mut self, value: &Spanned<DeValue<'_>>, key: ValueOrigin, depth: usize) -> ValueNode {
        let origin = self.origin(value.span());
        if depth > DEPTH_MAX {
            self.fail(&origin, "tables are nested too deeply");
            return ValueNode { value: Value::Bool(false), origin, key };
        }
        let value = match value.get_ref() {
            DeValue::String(text) => Value::String(text.to_string()),
            DeValue::Integer(integer) => match i128::from_str_radix(integer.as_str(), integer.radix()) {
                Ok(number) => Value::Integer(number),
                Err(_) => {
                    self.fail(&origin, "this number has too many digits");
                    Value::Integer(0)
                }
            },
            DeValue::Float(float) => match float.as_str().parse() {
                Ok(number) => Value::Float(number),
                Err(_) => {
                    self.fail(&origin, "this is not a number");
                    Value::Float(0.0)
                }
            },
            DeValue::Boolean(yes) => Value::Bool(*yes),
            DeValue::Datetime(datetime) => Value::Datetime(datetime.to_string()),
            DeValue::Array(array) => {
                let items = array.iter().map(|item| self.node(item, key.clone(), depth + 1)).collect();
                Value::Array(items)
            }
            DeValue::Table(table) => self.table(table, depth),
        };
        ValueNode { value, origin, key }
    }

    fn fail(&mut self, origin: &ValueOrigin, message: &str) {
        self.reports.push(Report::at(self.sources, origin, "", message));
    }
}

/// The keys of a dotted path such as `workload.small.load` or `workload."two words".load`.
pub(crate) fn parse_path(dotted: &str) -> Option<Vec<String>> {
    if dotted.contains(['\n', '=', '#']) {
        return None;
    }
    let text = format!("{dotted} = 0");
    let table = DeTable::parse(&text).ok()?;
    let mut keys = Vec::new();
    let mut table = table.get_ref();
    loop {
        let (key, value) = table.iter().next()?;
        keys.push(key.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) => table = inner,
            _ => return (keys.len() <= DEPTH_MAX).then_some(keys),
        }
    }
}

/// A dotted path as text, with quotes where a key needs them.
pub(crate) fn dotted<S: AsRef<str>>(path: &[S]) -> String {
    let keys: Vec<String> = path.iter().map(|key| quoted_key(key.as_ref())).collect();
    keys.join(".")
}

/// A key as TOML writes it.
pub(crate) fn quoted_key(key: &str) -> String {
    let bare = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    if !key.is_empty() && key.chars().all(bare) { key.to_owned() } else { toml_string(key) }
}

/// A string as TOML writes it.
pub(crate) fn toml_string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        match c {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            '\r' => quoted.push_str("\\r"),
            c if (c as u32) < 0x20 || c as u32 == 0x7f => quoted.push_str(&format!("\\u{:04X}", c as u32)),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests;
