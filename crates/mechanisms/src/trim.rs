//! Packet trimming: a data packet that finds no room loses its payload, and its header goes on to the receiver, which
//! learns of the loss at once (Cutting Payload, Cheng et al., NSDI 2014; NDP, Handley et al., SIGCOMM 2017; Ultra
//! Ethernet 1.0, section 4.1).
//!
//! ```text
//!              ┌─ data queue: the port's `buffer` ────────────┐
//! packet ──────┤      │ no room: cut to `header` bytes        ├─ `service` ─> link
//!              └─ header queue: `queue` ──────────────────────┘
//!                     │ no room: back to its sender, once, or dropped
//! ```
//!
//! Packets without data, such as acknowledgements, wait in the header queue as well. Each limit concerns its own queue,
//! with the packet in service where the port's `counts` says so. With [`classes`](crate::classes) the class of
//! `priority` is the header queue, and `buffer` is the limit of the other classes together. The threshold of a
//! [`shared_buffer`](crate::shared_buffer) concerns the data alone; headers take of its memory what is left.

use std::fmt;
use std::str::FromStr;

use plimsoll_units::Bytes;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use crate::mechanism::{EngineNeed, Mechanism, Section, Table};
use crate::{Depth, InvalidParam};

/// Trimming at a port of a switch. Ultra Ethernet answers a trimmed packet. TCP and RoCE ignore it, as a real host does
/// whose checksum fails: to them the packet is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct TrimParams {
    /// The size of a trimmed packet on the wire: 40 B to 512 B. Packets that are not longer are not trimmed. Default
    /// 64 B, as in NDP.
    pub header: Bytes,
    /// The priority of a trimmed packet from here on, 1 to 7. Default 7.
    #[schemars(range(min = 1, max = 7))]
    pub priority: u8,
    /// The most that may wait in the header queue: at least `header`. Default twice the port's `buffer`, as in htsim.
    /// With `classes` the `buffer` of the class limits it, with the same default, and this key is not used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<Depth>,
    /// The service of the header queue while data wait too: `"strict"`, or the number of headers for each data packet,
    /// such as `"10:1"` (NDP). Default `strict`. With `classes` their scheduler decides, and this key is not used.
    pub service: HeaderService,
    /// The packet that is trimmed. Default `arriving`.
    pub victim: Victim,
    /// A header that finds no room is sent back to its sender, once, in place of being dropped. Default false.
    pub bounce: bool,
}

impl Default for TrimParams {
    fn default() -> TrimParams {
        TrimParams {
            header: Bytes::new(64),
            priority: 7,
            queue: None,
            service: HeaderService::default(),
            victim: Victim::default(),
            bounce: false,
        }
    }
}

impl Mechanism for TrimParams {
    const TABLE: Table =
        Table::replaced_whole(Section::Port, "trim", "a packet that finds no room is dropped")
            .needs(EngineNeed::GeneralHere);

    fn validate(&self) -> Result<(), InvalidParam> {
        let header = self.header.get();
        InvalidParam::unless((40..=512).contains(&header), "header", self.header, "40B to 512B")?;
        InvalidParam::unless((1..=7).contains(&self.priority), "priority", self.priority, "1 to 7")?;
        let queue = self.queue.unwrap_or(Depth::Packets(1));
        let has_room = match queue {
            Depth::Packets(packets) => packets > 0,
            Depth::Bytes(bytes) => bytes >= self.header,
        };
        InvalidParam::unless(has_room, "queue", queue, "at least `header`, or 1 packet")
    }
}

/// The packet that loses its payload when an arriving one finds no room.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Victim {
    /// The arriving packet.
    #[default]
    Arriving,
    /// The arriving packet, or by a fair coin the last one that waits, whose place it takes: if that one is at least as
    /// large. The coin breaks phase effects (NDP).
    CoinTail,
}

/// The service of the header queue while data packets wait too.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum HeaderService {
    /// Headers first.
    #[default]
    Strict,
    /// So many headers, then one data packet.
    HeadersPerData(u32),
}

impl HeaderService {
    /// Returns whether the header queue is served, where both have packets and `headers` of its packets have been sent
    /// in a row beside waiting data. `headers` is counted on.
    pub fn is_header(self, headers: &mut u32) -> bool {
        let HeaderService::HeadersPerData(most) = self else { return true };
        let is_header = *headers < most;
        *headers = if is_header { *headers + 1 } else { 0 };
        is_header
    }
}

impl FromStr for HeaderService {
    type Err = String;

    fn from_str(text: &str) -> Result<HeaderService, String> {
        let number = text.strip_suffix(":1").and_then(|number| number.trim().parse().ok());
        match number {
            _ if text == "strict" => Ok(HeaderService::Strict),
            Some(headers @ 1..=100_000) => Ok(HeaderService::HeadersPerData(headers)),
            _ => Err(format!("`{text}` is no service; allowed: \"strict\", or \"1:1\" to \"100000:1\"")),
        }
    }
}

impl fmt::Display for HeaderService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeaderService::Strict => f.write_str("strict"),
            HeaderService::HeadersPerData(headers) => write!(f, "{headers}:1"),
        }
    }
}

impl Serialize for HeaderService {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for HeaderService {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<HeaderService, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

impl JsonSchema for HeaderService {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "HeaderService".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "pattern": "^(strict|[0-9]+ *:1)$" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_headers_then_one_data_packet() {
        let service: HeaderService = "10:1".parse().unwrap();
        let mut headers = 0;
        let served: Vec<bool> = (0..22).map(|_| service.is_header(&mut headers)).collect();
        let expected: Vec<bool> = (0..22).map(|packet| packet % 11 != 10).collect();
        assert_eq!(served, expected);
        assert!((0..100).all(|_| HeaderService::Strict.is_header(&mut headers)));
    }

    #[test]
    fn ranges() {
        for (text, key) in
            [("header = '39B'", "header"), ("priority = 0", "priority"), ("queue = '63B'", "queue")]
        {
            assert_eq!(toml::from_str::<TrimParams>(text).unwrap().validate().unwrap_err().key, key);
        }
        assert!(toml::from_str::<TrimParams>("service = '0:1'").is_err());
        assert!(toml::from_str::<TrimParams>("service = 'headers'").is_err());
        let params: TrimParams = toml::from_str("service = '10:1'\nvictim = 'coin-tail'").unwrap();
        assert_eq!(toml::from_str::<TrimParams>(&toml::to_string(&params).unwrap()).unwrap(), params);
    }
}
