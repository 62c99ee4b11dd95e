//! Deserialises typed values from a [`Node`] tree and locates every error of serde.
//!
//! Two conventions of the file format live here. A type that is an enum with content is a table
//! whose `kind` names the variant; the remaining keys are the content (a lone key that is the name
//! of a variant may replace `kind`: `{ cdf = "websearch" }`). Where a variant is called
//! `constant`, its bare content may replace the table: `"100us"`. serde's own tagged enums buffer
//! their content and so lose the places; the model therefore derives `Deserialize` for the untagged
//! shape and this module does the rest.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};

use crate::error::{Report, did_you_mean, nearest};
use crate::keys::SET_AROUND;
use crate::node::{Table, Value, ValueNode, dotted};
use crate::source::{ScenarioTexts, SourceLayer, ValueOrigin};
use crate::unmodelled;

/// The key that names the variant of an enum.
const KIND: &str = "kind";

/// Deserialises `root` into `T`. On failure reports as many errors as can be distinguished: after each
/// one the culprit is taken out and the rest is tried again.
pub(crate) fn deserialize<T: de::DeserializeOwned>(
    sources: &ScenarioTexts,
    root: &ValueNode,
) -> Result<T, Vec<Report>> {
    let mut tree = root.clone();
    let mut reports: Vec<Report> = Vec::new();
    let mut removed: Vec<Vec<String>> = Vec::new();
    for _ in 0..ERRORS_MAX {
        let mut error = match T::deserialize(NodeDe::new(&tree)) {
            Ok(value) if reports.is_empty() => return Ok(value),
            Ok(_) => break,
            Err(error) => error,
        };
        error.path.reverse();
        let mut culprit = error.path.clone();
        if let ValueProblem::Missing { key, .. } = &error.problem {
            let missing: Vec<String> = culprit.iter().cloned().chain([(*key).to_owned()]).collect();
            if !removed.contains(&missing) {
                reports.push(error.report(sources, root));
            }
        } else {
            if let ValueProblem::UnknownKey { key, allowed } = &error.problem
                && let Some(meant) = nearest(key, allowed.iter().copied())
            {
                // The key that was meant is then missing too; one report is enough.
                removed.push(parent(&culprit).iter().cloned().chain([meant.to_owned()]).collect());
            }
            reports.push(error.report(sources, root));
        }
        // A list item has no key of its own to take out; its list goes.
        while !culprit.is_empty() && tree.remove(&keys(&culprit)).is_none() {
            culprit.pop();
        }
        if culprit.is_empty() {
            break;
        }
        removed.push(culprit);
    }
    Err(reports)
}

/// Enough for any file that a person wrote.
const ERRORS_MAX: usize = 100;

fn parent(path: &[String]) -> &[String] {
    path.split_last().map_or(&[], |(_, parent)| parent)
}

fn keys(path: &[String]) -> Vec<&str> {
    path.iter().map(String::as_str).collect()
}

/// A serde error on its way out of the tree, gathering its path.
#[derive(Debug)]
pub(crate) struct DeError {
    problem: ValueProblem,
    /// Innermost key first, until it is reported.
    path: Vec<String>,
    origin: Option<ValueOrigin>,
    literal: String,
}

#[derive(Debug)]
enum ValueProblem {
    UnknownKey { key: String, allowed: &'static [&'static str] },
    UnknownVariant { text: String, allowed: &'static [&'static str] },
    Missing { key: &'static str, allowed: &'static [&'static str] },
    Expected(String),
    Other(String),
}

impl DeError {
    fn new(problem: ValueProblem) -> DeError {
        DeError { problem, path: Vec::new(), origin: None, literal: String::new() }
    }

    /// The same error seen from the table that holds `node` under `key`.
    fn within(mut self, key: &str, node: &ValueNode) -> DeError {
        if self.origin.is_none() {
            self.origin = Some(node.origin.clone());
            self.literal = node.literal();
        }
        self.path.push(key.to_owned());
        self
    }

    fn report(&self, sources: &ScenarioTexts, root: &ValueNode) -> Report {
        let origin = self.origin.as_ref().unwrap_or(&root.origin);
        let key = dotted(&self.path);
        let literal = match self.literal.as_str() {
            "" => "this",
            literal => literal,
        };
        match &self.problem {
            ValueProblem::UnknownKey { key: unknown, allowed } => {
                // `--set` reaches the keys around a run as well, of which a run itself knows nothing.
                let around: &[&str] =
                    if self.path.len() == 1 && origin.layer == SourceLayer::Flag { SET_AROUND } else { &[] };
                let allowed = [allowed, around].concat();
                Report::at(sources, origin, key, format!("unknown key `{unknown}`"))
                    .allowed(allowed.join(", "))
                    .maybe_help(did_you_mean(unknown, allowed.iter().copied()))
            }
            ValueProblem::UnknownVariant { text, allowed } => {
                // A constant is written bare, not as a `kind`.
                let of_kind = self.path.last().is_some_and(|key| key == KIND);
                let allowed: Vec<&str> =
                    allowed.iter().copied().filter(|name| !of_kind || *name != CONSTANT).collect();
                let names: Vec<String> = allowed.iter().map(|name| format!("\"{name}\"")).collect();
                Report::at(sources, origin, key, format!("\"{text}\" is not one of its values"))
                    .allowed(names.join(", "))
                    .maybe_help(unmodelled::help(&self.path, text).or_else(|| did_you_mean(text, allowed)))
            }
            ValueProblem::Missing { key: missing, allowed } => {
                let message = format!("the key `{missing}` is missing");
                let report = Report::at(sources, origin, key, message).without_value();
                if allowed.is_empty() { report } else { report.allowed(allowed.join(", ")) }
            }
            ValueProblem::Expected(expected) => {
                Report::at(sources, origin, key, format!("{literal} does not fit")).allowed(expected.clone())
            }
            ValueProblem::Other(message) => Report::at(sources, origin, key, "").quantity(message),
        }
    }
}

impl fmt::Display for DeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.problem)
    }
}

impl std::error::Error for DeError {}

impl de::Error for DeError {
    fn custom<T: fmt::Display>(message: T) -> DeError {
        DeError::new(ValueProblem::Other(message.to_string()))
    }
    fn invalid_type(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> DeError {
        DeError::new(ValueProblem::Expected(in_words(expected.to_string())))
    }
    fn invalid_value(_: de::Unexpected<'_>, expected: &dyn de::Expected) -> DeError {
        DeError::new(ValueProblem::Expected(in_words(expected.to_string())))
    }
    fn invalid_length(_: usize, expected: &dyn de::Expected) -> DeError {
        DeError::new(ValueProblem::Expected(in_words(expected.to_string())))
    }
    fn unknown_variant(variant: &str, allowed: &'static [&'static str]) -> DeError {
        DeError::new(ValueProblem::UnknownVariant { text: variant.to_owned(), allowed })
    }
    fn unknown_field(field: &str, allowed: &'static [&'static str]) -> DeError {
        DeError::new(ValueProblem::UnknownKey { key: field.to_owned(), allowed })
    }
    fn missing_field(key: &'static str) -> DeError {
        DeError::new(ValueProblem::Missing { key, allowed: &[] })
    }
}

/// serde names Rust types; a scenario has no `u32`.
fn in_words(expected: String) -> String {
    match expected.as_str() {
        "u8" => "a whole number from 0 to 255".to_owned(),
        "u16" => "a whole number from 0 to 65535".to_owned(),
        "u32" => format!("a whole number from 0 to {}", u32::MAX),
        "u64" | "usize" => "a whole number, not negative".to_owned(),
        "f64" | "f32" => "a number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" => "a text in quotes".to_owned(),
        "a map" => "a table".to_owned(),
        text if text.starts_with("struct ") => "a table".to_owned(),
        text if text.starts_with("sequence") => "a list".to_owned(),
        _ => expected,
    }
}

/// The deserialiser of one node; `hidden` is a key that has been consumed.
struct NodeDe<'a> {
    node: &'a ValueNode,
    hidden: Option<&'static str>,
}

impl<'a> NodeDe<'a> {
    fn new(node: &'a ValueNode) -> NodeDe<'a> {
        NodeDe { node, hidden: None }
    }

    fn map(&self, table: &'a Table) -> TableAccess<'a> {
        TableAccess { entries: table.iter(), value: None, hidden: self.hidden }
    }
}

impl<'de> Deserializer<'de> for NodeDe<'de> {
    type Error = DeError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        match &self.node.value {
            Value::String(text) => visitor.visit_str(text),
            Value::Integer(number) => match (u64::try_from(*number), i64::try_from(*number)) {
                (Ok(number), _) => visitor.visit_u64(number),
                (_, Ok(number)) => visitor.visit_i64(number),
                _ => visitor.visit_i128(*number),
            },
            Value::Float(number) => visitor.visit_f64(*number),
            Value::Bool(yes) => visitor.visit_bool(*yes),
            Value::Datetime(_) => Err(de::Error::invalid_type(de::Unexpected::Other("date"), &visitor)),
            Value::Array(nodes) => visitor.visit_seq(ArrayAccess { nodes: nodes.iter().enumerate() }),
            Value::Table(table) => visitor.visit_map(self.map(table)),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, DeError> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, DeError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeError> {
        visitor.visit_enum(KindAccess { node: self.node, variants })
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

struct TableAccess<'a> {
    entries: indexmap::map::Iter<'a, String, ValueNode>,
    value: Option<(&'a str, &'a ValueNode)>,
    hidden: Option<&'static str>,
}

impl<'de> MapAccess<'de> for TableAccess<'de> {
    type Error = DeError;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, DeError> {
        let Some((key, node)) = self.entries.find(|(key, _)| Some(key.as_str()) != self.hidden) else {
            return Ok(None);
        };
        self.value = Some((key, node));
        seed.deserialize(StrDeserializer::new(key)).map(Some).map_err(|mut error: DeError| {
            error.origin = Some(node.key.clone());
            error.within(key, node)
        })
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, DeError> {
        let (key, node) = self.value.take().ok_or_else(|| de::Error::custom("a value without a key"))?;
        seed.deserialize(NodeDe::new(node)).map_err(|error| error.within(key, node))
    }
}

struct ArrayAccess<'a> {
    nodes: std::iter::Enumerate<std::slice::Iter<'a, ValueNode>>,
}

impl<'de> SeqAccess<'de> for ArrayAccess<'de> {
    type Error = DeError;

    fn next_element_seed<T: DeserializeSeed<'de>>(&mut self, seed: T) -> Result<Option<T::Value>, DeError> {
        let Some((index, node)) = self.nodes.next() else { return Ok(None) };
        seed.deserialize(NodeDe::new(node)).map(Some).map_err(|error| error.within(&index.to_string(), node))
    }
}

/// The variant whose bare content may replace its table.
const CONSTANT: &str = "constant";

struct KindAccess<'a> {
    node: &'a ValueNode,
    variants: &'static [&'static str],
}

impl<'de> EnumAccess<'de> for KindAccess<'de> {
    type Error = DeError;
    type Variant = Content<'de>;

    fn variant_seed<V: DeserializeSeed<'de>>(self, seed: V) -> Result<(V::Value, Content<'de>), DeError> {
        let KindAccess { node, variants } = self;
        let content = |hidden| Content { de: NodeDe { node, hidden }, variants };
        let Value::Table(table) = &node.value else {
            let variant = match &node.value {
                // One of the names, as `arrivals = "poisson"`.
                Value::String(text) if variants.contains(&text.as_str()) => text,
                _ if variants.contains(&CONSTANT) => CONSTANT,
                Value::String(text) => text,
                _ => {
                    return Err(DeError::new(ValueProblem::Expected(format!("one of {}", quoted(variants)))));
                }
            };
            return Ok((seed.deserialize(StrDeserializer::new(variant))?, content(None)));
        };
        if let Some(kind) = table.get(KIND) {
            let Value::String(text) = &kind.value else {
                let problem = ValueProblem::Expected(format!("one of {}", quoted(variants)));
                return Err(DeError::new(problem).within(KIND, kind));
            };
            let variant = seed
                .deserialize(StrDeserializer::new(text))
                .map_err(|error: DeError| error.within(KIND, kind))?;
            return Ok((variant, content(Some(KIND))));
        }
        match variants.iter().find(|variant| table.contains_key(**variant)) {
            Some(variant) => Ok((seed.deserialize(StrDeserializer::new(variant))?, content(None))),
            None => Err(DeError::new(ValueProblem::Missing { key: KIND, allowed: variants })),
        }
    }
}

fn quoted(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("\"{name}\"")).collect();
    quoted.join(", ")
}

struct Content<'a> {
    de: NodeDe<'a>,
    variants: &'static [&'static str],
}

impl<'de> VariantAccess<'de> for Content<'de> {
    type Error = DeError;

    fn unit_variant(self) -> Result<(), DeError> {
        match &self.de.node.value {
            Value::Table(table) => match table.iter().find(|(key, _)| Some(key.as_str()) != self.de.hidden) {
                None => Ok(()),
                Some((key, node)) => {
                    let error: DeError = de::Error::unknown_field(key, &[KIND]);
                    Err(DeError { origin: Some(node.key.clone()), ..error }.within(key, node))
                }
            },
            // A name and nothing else, so a bare text that is none of the names was not `constant`.
            Value::String(text) if !self.variants.contains(&text.as_str()) => {
                Err(de::Error::unknown_variant(text, self.variants))
            }
            _ => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(self, seed: T) -> Result<T::Value, DeError> {
        seed.deserialize(self.de)
    }

    fn tuple_variant<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, DeError> {
        self.de.deserialize_any(visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, DeError> {
        self.de.deserialize_any(visitor)
    }
}
