//! DSCP: the differentiated services code point (RFC 2474) of a workload's packets, and the priority of each.
//!
//! ```text
//! workload ── host.dscp ──> code point ── host.dscp_to_priority ──> priority ──> class, pause, level
//! ```
//!
//! The map is one for the whole network, as switches of one fabric have it, so a simulated packet carries its priority
//! alone. Packets of an emulated run carry the code point.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use indexmap::IndexMap;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

/// The number of code points.
pub const DSCPS: usize = 64;

/// The names of code points: class selectors (RFC 2474), lower effort (RFC 8622), assured forwarding (RFC 2597), voice
/// with admission (RFC 5865) and expedited forwarding (RFC 3246).
pub(crate) const DSCP_NAMES: [(&str, u8); 23] = [
    ("CS0", 0),
    ("CS1", 8),
    ("CS2", 16),
    ("CS3", 24),
    ("CS4", 32),
    ("CS5", 40),
    ("CS6", 48),
    ("CS7", 56),
    ("LE", 1),
    ("AF11", 10),
    ("AF12", 12),
    ("AF13", 14),
    ("AF21", 18),
    ("AF22", 20),
    ("AF23", 22),
    ("AF31", 26),
    ("AF32", 28),
    ("AF33", 30),
    ("AF41", 34),
    ("AF42", 36),
    ("AF43", 38),
    ("VA", 44),
    ("EF", 46),
];

/// A code point as a scenario writes it: a name such as `EF`, or a number.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DscpText(String);

impl DscpText {
    /// Returns the code point, 0 to 63; `None` if the text is neither a name nor such a number.
    pub fn code_point(&self) -> Option<u8> {
        code_point(&self.0)
    }
}

impl fmt::Display for DscpText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for DscpText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for DscpText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DscpText, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = DscpText;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a DSCP, such as \"EF\" or 46")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<DscpText, E> {
                Ok(DscpText(text.to_owned()))
            }
            fn visit_i64<E: de::Error>(self, number: i64) -> Result<DscpText, E> {
                Ok(DscpText(number.to_string()))
            }
            fn visit_u64<E: de::Error>(self, number: u64) -> Result<DscpText, E> {
                Ok(DscpText(number.to_string()))
            }
        }
        deserializer.deserialize_any(Text)
    }
}

impl JsonSchema for DscpText {
    fn schema_name() -> Cow<'static, str> {
        "DscpText".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [{ "type": "string" }, { "type": "integer", "minimum": 0, "maximum": 63 }] })
    }

    fn inline_schema() -> bool {
        true
    }
}

/// Returns the code points that a key of `host.dscp_to_priority` names: one, or a range such as `8..15`, the last one
/// included. `None` if it names none.
pub(crate) fn code_points(text: &str) -> Option<RangeInclusive<u8>> {
    let (first, last) = text.split_once("..").unwrap_or((text, text));
    let range = code_point(first)?..=code_point(last)?;
    (!range.is_empty()).then_some(range)
}

/// Returns the priority of every code point: the one that `map` gives it, or else its upper three bits, which are the
/// priority of a class selector.
pub(crate) fn priorities(map: &IndexMap<String, u8>) -> [u8; DSCPS] {
    let mut priorities = std::array::from_fn(|code_point| (code_point >> 3) as u8);
    for (text, priority) in map {
        for code_point in code_points(text).into_iter().flatten() {
            priorities[usize::from(code_point)] = *priority;
        }
    }
    priorities
}

fn code_point(text: &str) -> Option<u8> {
    let text = text.trim();
    let named = DSCP_NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text));
    let number = || text.parse().ok().filter(|number| usize::from(*number) < DSCPS);
    named.map(|(_, code_point)| *code_point).or_else(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_points_have_names_and_numbers() {
        for (text, expected) in [
            ("EF", Some(46..=46)),
            ("af41", Some(34..=34)),
            ("46", Some(46..=46)),
            ("8..15", Some(8..=15)),
            ("AF11 .. AF13", Some(10..=14)),
            ("64", None),
            ("15..8", None),
            ("EFF", None),
            ("", None),
        ] {
            assert_eq!(code_points(text), expected, "{text}");
        }
    }

    #[test]
    fn code_points_without_an_entry_have_the_priority_of_their_class() {
        let map = [("EF", 7), ("8..15", 0)].map(|(key, priority)| (key.to_owned(), priority));
        let priorities = priorities(&map.into_iter().collect());
        assert_eq!([46, 45, 8, 15, 16, 63].map(|point: usize| priorities[point]), [7, 5, 0, 0, 2, 7]);
    }
}
