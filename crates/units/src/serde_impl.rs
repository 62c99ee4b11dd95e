//! Quantities in files are strings with a unit; this module reads, writes and describes them in JSON Schema.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::{Bytes, Rate, Span};

macro_rules! quantity {
    ($type:ident, $expecting:literal, $pattern:literal, $description:literal) => {
        impl Serialize for $type {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.collect_str(self)
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<$type, D::Error> {
                struct Text;
                impl Visitor<'_> for Text {
                    type Value = $type;
                    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                        f.write_str($expecting)
                    }
                    fn visit_str<E: de::Error>(self, text: &str) -> Result<$type, E> {
                        text.parse().map_err(E::custom)
                    }
                }
                deserializer.deserialize_str(Text)
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({ "type": "string", "pattern": $pattern, "description": $description })
            }
        }
    };
}

quantity!(
    Span,
    "a length of time in quotes, such as \"10ms\"",
    "^\\s*[0-9._]+\\s*(ps|ns|us|\u{b5}s|\u{3bc}s|ms|s|min|h)\\s*$",
    "A length of time, such as \"10ms\": ps, ns, us, ms, s, min or h."
);
quantity!(
    Bytes,
    "a size in quotes, such as \"64KiB\"",
    "^\\s*[0-9._]+\\s*([KMGTkmgt]?B|[KMGkmg]iB)\\s*$",
    "A size, such as \"64KiB\": B, KB, MB, GB, TB (decimal), KiB, MiB, GiB (binary); B is a byte, and b is refused."
);
quantity!(
    Rate,
    "a rate in quotes, such as \"10Gbps\"",
    "^\\s*[0-9._]+\\s*[KMGTkmgt]?bps\\s*$",
    "A rate, such as \"10Gbps\": bps, Kbps, Mbps, Gbps or Tbps; b is a bit, and B is refused."
);
