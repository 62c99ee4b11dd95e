//! Values that a file may spell in more than one way: a buffer in packets or bytes, a load as a share or a
//! rate, a mechanism's table or `"off"`.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::value::MapAccessDeserializer;
use serde::de::{self, Deserialize, Deserializer, MapAccess, Unexpected, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::{Bytes, Rate, parse_share};

/// The most that may wait in a queue.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum QueueLimit {
    /// The queue never drops.
    #[default]
    Unlimited,
    /// The limit is a number of packets of any size: `"500 packets"`.
    Packets(u64),
    /// The limit is a number of bytes: `"512KB"`.
    Bytes(Bytes),
}

const BUFFER_FORMS: &str = "a buffer in quotes, such as \"500 packets\", \"512KB\" or \"unlimited\"";

impl std::str::FromStr for QueueLimit {
    type Err = String;
    fn from_str(text: &str) -> Result<QueueLimit, String> {
        let trimmed = text.trim();
        if trimmed == "unlimited" {
            return Ok(QueueLimit::Unlimited);
        }
        let packets = trimmed.strip_suffix("packets").or_else(|| trimmed.strip_suffix("packet"));
        if let Some(number) = packets {
            let number = number.trim_end().replace('_', "");
            return number
                .parse()
                .map(QueueLimit::Packets)
                .map_err(|_| format!("`{text}` is not a whole number of packets"));
        }
        if trimmed.parse::<f64>().is_ok() {
            return Err(format!("`{text}` has no unit; write {BUFFER_FORMS}"));
        }
        trimmed.parse().map(QueueLimit::Bytes).map_err(|error| format!("{error}, or packets"))
    }
}

impl fmt::Display for QueueLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            QueueLimit::Unlimited => f.write_str("unlimited"),
            QueueLimit::Packets(packets) => write!(f, "{packets} packets"),
            QueueLimit::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

impl Serialize for QueueLimit {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for QueueLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<QueueLimit, D::Error> {
        struct Text;
        impl Visitor<'_> for Text {
            type Value = QueueLimit;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(BUFFER_FORMS)
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<QueueLimit, E> {
                text.parse().map_err(E::custom)
            }
        }
        deserializer.deserialize_str(Text)
    }
}

impl JsonSchema for QueueLimit {
    fn schema_name() -> Cow<'static, str> {
        "BufferLimit".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "pattern": "^\\s*(unlimited|[0-9_]+\\s*packets?|[0-9._]+\\s*([KMGTkmgt]?B|[KMGkmg]iB))\\s*$",
            "description": "\"500 packets\", a size such as \"512KB\", or \"unlimited\"."
        })
    }
}

/// The traffic that a workload offers to a link.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Load {
    /// The load is a share of the link's rate: `0.2`.
    Share(f64),
    /// The load is a rate of payload: `"200Mbps"`.
    Rate(Rate),
}

impl Load {
    /// Returns the payload bits per second that are offered to a link of rate `link`.
    pub fn bits_per_second(self, link: Rate) -> f64 {
        match self {
            Load::Share(share) => share * link.as_bps() as f64,
            Load::Rate(rate) => rate.as_bps() as f64,
        }
    }

    /// Returns the share of a link of rate `link` that is offered.
    pub fn share_of(self, link: Rate) -> f64 {
        self.bits_per_second(link) / link.as_bps() as f64
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Load::Share(share) => share.fmt(f),
            Load::Rate(rate) => rate.fmt(f),
        }
    }
}

impl Serialize for Load {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Load::Share(share) => serializer.serialize_f64(*share),
            Load::Rate(rate) => rate.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Load {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Load, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = Load;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a share of the link, such as 0.2, or a rate in quotes, such as \"200Mbps\"")
            }
            fn visit_f64<E: de::Error>(self, share: f64) -> Result<Load, E> {
                Ok(Load::Share(share))
            }
            fn visit_i64<E: de::Error>(self, share: i64) -> Result<Load, E> {
                Ok(Load::Share(share as f64))
            }
            fn visit_u64<E: de::Error>(self, share: u64) -> Result<Load, E> {
                Ok(Load::Share(share as f64))
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Load, E> {
                if text.trim_end().ends_with('%') {
                    return parse_share(text).map(Load::Share).map_err(E::custom);
                }
                text.parse()
                    .map(Load::Rate)
                    .map_err(|error| E::custom(format!("{error}, or a share such as 0.2 without quotes")))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

impl JsonSchema for Load {
    fn schema_name() -> Cow<'static, str> {
        "Load".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "anyOf": [
                { "type": "number", "exclusiveMinimum": 0 },
                { "type": "string", "pattern": "^\\s*[0-9._]+\\s*([KMGTkmgt]?bps|%)\\s*$" }
            ],
            "description": "A share of the link, such as 0.2 or \"20%\", or a rate, such as \"200Mbps\"."
        })
    }
}

/// A mechanism's table, or `"off"`, which removes the table of a less specific place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MaybeOff<T> {
    /// The file says `"off"`.
    Off,
    /// The mechanism is on with these parameters.
    On(T),
}

impl<T> MaybeOff<T> {
    /// Returns the parameters if the mechanism is on.
    pub fn on(&self) -> Option<&T> {
        match self {
            MaybeOff::Off => None,
            MaybeOff::On(params) => Some(params),
        }
    }
}

/// Returns the parameters of a mechanism that is on; `None` where it is off or the file does not mention it.
pub fn on<T>(mechanism: &Option<MaybeOff<T>>) -> Option<&T> {
    mechanism.as_ref().and_then(MaybeOff::on)
}

impl<T: Serialize> Serialize for MaybeOff<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            MaybeOff::Off => serializer.serialize_str("off"),
            MaybeOff::On(params) => params.serialize(serializer),
        }
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for MaybeOff<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<MaybeOff<T>, D::Error> {
        struct Either<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Either<T> {
            type Value = MaybeOff<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of its parameters ({} for the defaults) or \"off\"")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<MaybeOff<T>, E> {
                match text {
                    "off" => Ok(MaybeOff::Off),
                    _ => Err(E::invalid_value(Unexpected::Str(text), &self)),
                }
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<MaybeOff<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(MaybeOff::On)
            }
        }
        deserializer.deserialize_any(Either(PhantomData))
    }
}

impl<T: JsonSchema> JsonSchema for MaybeOff<T> {
    fn inline_schema() -> bool {
        true
    }
    fn schema_name() -> Cow<'static, str> {
        format!("{}OrOff", T::schema_name()).into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({ "anyOf": [generator.subschema_for::<T>(), { "const": "off" }] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_forms() {
        assert_eq!("500 packets".parse(), Ok(QueueLimit::Packets(500)));
        assert_eq!("1packet".parse(), Ok(QueueLimit::Packets(1)));
        assert_eq!("512KB".parse(), Ok(QueueLimit::Bytes(Bytes::new(512_000))));
        assert_eq!("unlimited".parse(), Ok(QueueLimit::Unlimited));
        for text in ["500", "many packets", "500 pakets", "", "-1 packets"] {
            assert!(text.parse::<QueueLimit>().is_err(), "{text}");
        }
        for limit in [QueueLimit::Unlimited, QueueLimit::Packets(7), QueueLimit::Bytes(Bytes::new(1500))] {
            assert_eq!(limit.to_string().parse(), Ok(limit));
        }
    }

    #[test]
    fn a_load_is_a_share_or_a_rate() {
        let link = Rate::from_gbps(1);
        assert_eq!(Load::Share(0.2).bits_per_second(link), 2e8);
        assert_eq!(Load::Rate(Rate::from_mbps(200)).share_of(link), 0.2);
        for (text, load) in [
            ("0.2", Load::Share(0.2)),
            ("'20%'", Load::Share(0.2)),
            ("'200Mbps'", Load::Rate(Rate::from_mbps(200))),
        ] {
            let table: std::collections::BTreeMap<String, Load> =
                toml::from_str(&format!("load = {text}")).unwrap();
            assert_eq!(table["load"], load, "{text}");
        }
    }
}
