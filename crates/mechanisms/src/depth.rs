//! [`Depth`]: how much waits in a queue, in bytes or in packets.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use plimsoll_units::{Bytes, ParseQuantityError};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// A limit or threshold on a queue: `"30KB"` or `"65 packets"`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Depth {
    /// The queue is measured in bytes.
    Bytes(Bytes),
    /// The queue is measured in packets of any size.
    Packets(u64),
}

impl Depth {
    /// Returns the measure of the queue, its bytes or its packets, that this depth is compared with.
    #[inline]
    pub fn pick(self, bytes: u64, packets: u64) -> u64 {
        match self {
            Depth::Bytes(_) => bytes,
            Depth::Packets(_) => packets,
        }
    }

    /// Returns the number alone, in bytes or in packets.
    #[inline]
    pub fn count(self) -> u64 {
        match self {
            Depth::Bytes(bytes) => bytes.get(),
            Depth::Packets(packets) => packets,
        }
    }
}

/// A text that is not a queue depth.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}; write a size such as \"30KB\" or a count such as \"65 packets\"")]
pub struct ParseDepthError(String);

impl FromStr for Depth {
    type Err = ParseDepthError;
    fn from_str(text: &str) -> Result<Depth, ParseDepthError> {
        let trimmed = text.trim();
        let packets = trimmed.strip_suffix("packets").or_else(|| trimmed.strip_suffix("packet"));
        match packets {
            Some(number) => number
                .trim()
                .replace('_', "")
                .parse()
                .map(Depth::Packets)
                .map_err(|_| ParseDepthError(format!("`{text}` is not a whole number of packets"))),
            None => trimmed
                .parse()
                .map(Depth::Bytes)
                .map_err(|error: ParseQuantityError| ParseDepthError(error.problem().to_string())),
        }
    }
}

impl fmt::Display for Depth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Depth::Bytes(bytes) => bytes.fmt(f),
            Depth::Packets(1) => f.write_str("1 packet"),
            Depth::Packets(packets) => write!(f, "{packets} packets"),
        }
    }
}

impl Serialize for Depth {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Depth {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Depth, D::Error> {
        let text = Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for Depth {
    fn schema_name() -> Cow<'static, str> {
        "Depth".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^\\s*[0-9._]+\\s*(packets?|[KMGTkmgt]?B|[KMGkmg]iB)\\s*$",
            "description": "A queue depth: a size such as \"30KB\" or a count such as \"65 packets\"."
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms() {
        for (text, depth) in [
            ("30KB", Depth::Bytes(Bytes::new(30_000))),
            ("65 packets", Depth::Packets(65)),
            ("1 packet", Depth::Packets(1)),
        ] {
            assert_eq!(text.parse(), Ok(depth));
            assert_eq!(depth.to_string(), text);
        }
        assert_eq!("1_000packets".parse(), Ok(Depth::Packets(1_000)));
        for text in ["", "65", "packets", "1.5 packets", "65 pkts", "-1 packets"] {
            assert!(text.parse::<Depth>().is_err(), "{text}");
        }
    }
}
