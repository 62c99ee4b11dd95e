//! [`Over`]: the key that is searched, the values that it may have, and where they meet objectives.
//!
//! ```text
//! a load:      met ──────────┤ line         below its line; the range is known
//! other key:   ? ────────────────── ?       the runs at both ends of `--within` show the side
//! ```
//!
//! The unit of another key is that of its range: `100KB..1MB` are sizes, `1us..10us` times.

use plimsoll_scenario::model::{Model, Workload};
use plimsoll_scenario::{Point, did_you_mean};
use plimsoll_stats::search::{SearchAxis, SearchValues, Side};
use plimsoll_traffic::kind::LoadKey;
use plimsoll_units::quantity::Load;
use plimsoll_units::{Bytes, Rate, Span};
use serde::{Deserialize, Serialize};

use crate::search::rounded;

/// The key of a scenario that is searched.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Over {
    /// The dotted key: `workload.background.load`.
    pub key: String,
    /// The unit in which values of the key are given.
    pub unit: Unit,
    /// Its value in the scenario, in its unit; `None` for a key that the scenario leaves to its default.
    pub today: Option<f64>,
    /// The lowest value that the search tries, in `unit` (`--within`).
    pub low: f64,
    /// The highest value that the search tries, in `unit` (`--within`).
    pub high: f64,
    /// The side of the line on which objectives are met: below it for a load; `None` for another key, of which the runs
    /// at both ends of the range show it.
    #[serde(default = "below", skip_serializing_if = "is_load")]
    pub side: Option<Side>,
    /// Whether the scenario takes powers of two alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_power_of_two: bool,
}

fn below() -> Option<Side> {
    Some(Side::Below)
}

fn is_load(side: &Option<Side>) -> bool {
    side.is_some()
}

/// The units in which values of a key are given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// The value is a share, such as a load's of a link, or any other number without a unit.
    Share,
    /// The value is a rate in bits per second; of a load, of payload.
    BitsPerSecond,
    /// The load is a number of queries per second.
    PerSecond,
    /// The value is a size in bytes.
    Bytes,
    /// The value is a length of a queue in packets.
    Packets,
    /// The value is a time in picoseconds.
    Picoseconds,
    /// The value is a whole number.
    Count,
}

/// The reasons why no load can be searched.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum OverError {
    /// Nothing in the scenario has a load.
    #[error("no workload of the scenario has a load that could be searched: {kinds} have none")]
    NoLoad {
        /// The kinds that it has.
        kinds: String,
    },
    /// Several have one, and none is called `background`.
    #[error("several workloads have a load; say which one to search with `--over KEY`: {candidates}")]
    Several {
        /// The keys that can be searched.
        candidates: String,
    },
    /// The key is not that of a load.
    #[error(
        "`{key}` is no load of the scenario\n  allowed: {candidates}{}\n  `plimsoll line` searches other keys of \
         numbers between two values: --within LOW..HIGH",
        help.as_ref().map_or(String::new(), |help| format!("\n  {help}"))
    )]
    Unknown {
        /// The key that was asked for.
        key: String,
        /// The keys that can be searched.
        candidates: String,
        /// The nearest spelling.
        help: Option<String>,
    },
    /// The range has no room.
    #[error(
        "the values from {low} to {high} are no range; write LOW..HIGH, both more than 0, such as 0.05..0.9"
    )]
    Range {
        /// The lower end of the range that was asked for.
        low: String,
        /// The upper end of the range that was asked for.
        high: String,
    },
}

/// The highest share of a link that is tried: at 1 a queue has no steady state.
const SHARE_MAX: f64 = 0.99;
/// The lowest load is this share of today's.
const LOWEST: f64 = 0.01;
/// The highest number of queries per second, as a multiple of today's, where no link bounds them.
const QUERIES_MAX: f64 = 1_000.0;

impl Over {
    /// Chooses the load to search in these points: the one asked for, or the only one, or that of `background`.
    ///
    /// # Errors
    /// Fails if there is none, or several and none is asked for.
    pub fn find(points: &[Point], wanted: Option<&str>) -> Result<Over, OverError> {
        let model = points.first().map(|point| &point.model);
        let all: Vec<Over> = model.map(candidates).unwrap_or_default();
        let names = || all.iter().map(|over| over.key.as_str());
        let listed = names().collect::<Vec<_>>().join(", ");
        if let Some(key) = wanted {
            let found = all.iter().find(|over| over.key == key || over.workload() == key);
            return found.cloned().ok_or_else(|| OverError::Unknown {
                key: key.to_owned(),
                candidates: listed.clone(),
                help: did_you_mean(key, names().chain(all.iter().map(Over::workload))),
            });
        }
        match all.as_slice() {
            [] => {
                let kinds = model.into_iter().flat_map(|model| model.workload.values().map(Workload::kind));
                Err(OverError::NoLoad { kinds: kinds.collect::<Vec<_>>().join(", ") })
            }
            [only] => Ok(only.clone()),
            several => several
                .iter()
                .find(|over| over.workload() == "background")
                .cloned()
                .ok_or(OverError::Several { candidates: listed }),
        }
    }

    /// Returns the key `key` of a scenario with these points, which is not a load, within a range such as `100KB..1MB`.
    ///
    /// # Errors
    /// Returns the form of a valid range, if this one is invalid or its ends have different units.
    pub fn of_key(points: &[Point], key: &str, within: &str) -> Result<Over, String> {
        let wrong = || {
            format!(
                "`{within}` is no range for `{key}`; write LOW..HIGH as the scenario writes its value: a size \
                 (100KB..1MB), a time (1us..10us), a rate (10Gbps..100Gbps), packets (20 packets..200 packets), a \
                 share (5%..40%) or numbers (1..64, 0.1..2.5)"
            )
        };
        let (low, high) = within.split_once("..").ok_or_else(wrong)?;
        let fits = |unit: &Unit| Some((*unit, unit.read(low)?, unit.read(high)?));
        let (unit, low, high) = Unit::OF_KEYS.iter().find_map(fits).ok_or_else(wrong)?;
        let settings = points.first().map(Point::settings).unwrap_or_default();
        let start = format!("{key} = ");
        let today = settings.lines().find_map(|line| line.strip_prefix(&start));
        let today = today.and_then(|value| unit.read(value.trim_matches('"')));
        let over = Over { key: key.to_owned(), unit, today, low, high, side: None, is_power_of_two: false };
        over.within(low, high).map_err(|_| wrong())
    }

    /// Returns the value at which a search begins: today's, or the middle of the range where that is not known.
    pub fn start(&self) -> f64 {
        self.today.unwrap_or((self.low * self.high).sqrt())
    }

    /// Returns whether the key is a load, which meets objectives up to its line.
    pub fn is_load(&self) -> bool {
        self.side.is_some()
    }

    /// Returns the axis of the search.
    pub(crate) fn axis(&self) -> SearchAxis {
        let values = match self.unit.is_whole() {
            true if self.is_power_of_two => SearchValues::PowersOfTwo,
            true => SearchValues::Whole,
            false => SearchValues::Any,
        };
        SearchAxis { side: self.side, values }
    }

    /// Returns the same load within another range.
    ///
    /// # Errors
    /// Fails if the range is empty.
    pub fn within(self, low: f64, high: f64) -> Result<Over, OverError> {
        if !(low > 0.0 && high > low && high.is_finite()) {
            return Err(OverError::Range { low: low.to_string(), high: high.to_string() });
        }
        Ok(Over { low, high, ..self })
    }

    /// Reads a load as a scenario writes it: `0.4`, `200Mbps`, `1500`.
    ///
    /// # Errors
    /// Returns the values that are allowed.
    pub fn parse(&self, text: &str) -> Result<f64, String> {
        let what = if self.is_load() { "load" } else { "value" };
        let (key, allowed) = (&self.key, self.unit.allowed());
        self.unit.read(text).ok_or_else(|| {
            format!("`{text}` is no {what} for `{key}`; write {allowed}, as the scenario does")
        })
    }

    /// Writes the value as `--set` takes it. Values of four significant digits are exact.
    pub fn written(&self, value: f64) -> String {
        match self.unit {
            Unit::Share | Unit::PerSecond => format!("{value:?}"),
            Unit::BitsPerSecond => format!("{value:.0}bps"),
            Unit::Bytes => format!("{value:.0}B"),
            Unit::Packets => format!("{value:.0} packets"),
            Unit::Picoseconds => format!("{value:.0}ps"),
            Unit::Count => format!("{value:.0}"),
        }
    }

    /// Writes the value with its unit for tables and sentences.
    pub fn shown(&self, value: f64) -> String {
        // An estimate between two values has more digits than it is worth.
        let whole = || rounded(value).round() as u64;
        match self.unit {
            Unit::Share => {
                let text = format!("{:.*}", plimsoll_report::figures::decimals(value).clamp(2, 4), value);
                text.strip_suffix('0').filter(|_| value >= 0.1).unwrap_or(&text).to_owned()
            }
            Unit::BitsPerSecond => plimsoll_report::figures::rate(value / 1e6),
            Unit::PerSecond => format!("{}/s", plimsoll_report::figures::number(value)),
            Unit::Bytes => Bytes::new(whole()).to_string(),
            Unit::Packets => format!("{} packets", whole()),
            Unit::Picoseconds => Span::from_ps(whole()).to_string(),
            Unit::Count => whole().to_string(),
        }
    }

    /// Returns the workload that has the load; nothing for another key.
    pub(crate) fn workload(&self) -> &str {
        self.key.split('.').nth(1).filter(|_| self.is_load()).unwrap_or_default()
    }
}

impl Unit {
    /// The units of keys other than loads, in the order in which a text is read.
    const OF_KEYS: [Unit; 6] =
        [Unit::Bytes, Unit::Picoseconds, Unit::BitsPerSecond, Unit::Packets, Unit::Count, Unit::Share];

    /// Reads a value as a scenario writes it; `None` if it is of another unit, or not above 0.
    fn read(self, text: &str) -> Option<f64> {
        let text = text.trim();
        let value = match self {
            Unit::Share => plimsoll_units::parse_share(text).ok()?,
            Unit::PerSecond => text.parse().ok()?,
            Unit::BitsPerSecond => text.parse::<Rate>().ok()?.as_bps() as f64,
            Unit::Bytes => text.parse::<Bytes>().ok()?.get() as f64,
            Unit::Packets => text.strip_suffix("packets")?.trim().parse::<u64>().ok()? as f64,
            Unit::Picoseconds => text.parse::<Span>().ok()?.as_ps() as f64,
            Unit::Count => text.parse::<u64>().ok()? as f64,
        };
        (value > 0.0 && value.is_finite()).then_some(value)
    }

    fn allowed(self) -> &'static str {
        match self {
            Unit::Share => "a share, such as 0.4 or 40%",
            Unit::PerSecond => "queries per second, such as 1500",
            Unit::BitsPerSecond => "a rate, such as 200Mbps",
            Unit::Bytes => "a size, such as 100KB",
            Unit::Packets => "packets, such as 20 packets",
            Unit::Picoseconds => "a time, such as 10us",
            Unit::Count => "a whole number, such as 8",
        }
    }

    fn is_whole(self) -> bool {
        matches!(self, Unit::Bytes | Unit::Packets | Unit::Picoseconds | Unit::Count)
    }

    /// Returns the part of a value that a figure counts in: Mb/s for rates, us for times.
    pub(crate) fn scale(self) -> f64 {
        match self {
            Unit::BitsPerSecond | Unit::Picoseconds => 1e6,
            _ => 1.0,
        }
    }
}

fn candidates(model: &Model) -> Vec<Over> {
    let link = model.topology.host_rate(0).as_bps() as f64;
    let load = |name: &str, load: Load| {
        let (unit, today, high) = match load {
            Load::Share(share) => (Unit::Share, share, SHARE_MAX),
            Load::Rate(rate) => (Unit::BitsPerSecond, rate.as_bps() as f64, SHARE_MAX * link),
        };
        over(format!("workload.{name}.load"), unit, today, high)
    };
    let rate = |name: &str, key: &str, today: f64, most: f64| {
        over(format!("workload.{name}.{key}"), Unit::PerSecond, today, most * today)
    };
    let of = |(name, workload): (&String, &Workload)| {
        Some(match workload.params().load()? {
            LoadKey::Load(value) => load(name, value),
            LoadKey::PerSecond { key, per_second } => {
                rate(name, key, per_second, most_of_today(model, workload))
            }
        })
    };
    model.workload.iter().filter_map(of).collect()
}

/// Returns the highest multiple of today's load that is tried: the one at which the link that all responses share is
/// full, and not below today's.
fn most_of_today(model: &Model, workload: &Workload) -> f64 {
    let offered = workload.params().offered_bps(&model.topology);
    let most =
        shared_link_bps(model, workload).zip(offered).map(|(link, offered)| SHARE_MAX * link / offered);
    most.map_or(QUERIES_MAX, |most| most.clamp(1.0, QUERIES_MAX))
}

/// Returns the rate of the link that all of a workload's payload crosses, in bits per second.
pub(crate) fn shared_link_bps(model: &Model, workload: &Workload) -> Option<f64> {
    let host = model.topology.host(&workload.params().shared_link()?.0)?;
    Some(model.topology.host_rate(host).as_bps() as f64)
}

fn over(key: String, unit: Unit, today: f64, high: f64) -> Over {
    // If today's load is above the range, the range below it is searched.
    let low = rounded((LOWEST * today).min(high / 2.0));
    let (today, high) = (Some(today), rounded(high));
    Over { key, unit, today, low, high, side: below(), is_power_of_two: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(text: &str) -> Result<Over, String> {
        Over::of_key(&[], "port.switch.red.min", text)
    }

    #[test]
    fn a_key_has_the_unit_of_its_range() {
        for (text, unit, low, written, shown) in [
            ("100KB..1MB", Unit::Bytes, 1e5, "100000B", "100KB"),
            ("1.5us..10us", Unit::Picoseconds, 1.5e6, "1500000ps", "1.5us"),
            ("10Gbps..100Gbps", Unit::BitsPerSecond, 1e10, "10000000000bps", "10.0 Gb/s"),
            ("20 packets .. 200 packets", Unit::Packets, 20.0, "20 packets", "20 packets"),
            ("2..64", Unit::Count, 2.0, "2", "2"),
            ("5%..40%", Unit::Share, 0.05, "0.05", "0.0500"),
            ("0.25..2.5", Unit::Share, 0.25, "0.25", "0.25"),
        ] {
            let over = within(text).unwrap();
            assert_eq!((over.unit, over.low, over.today, over.side), (unit, low, None, None), "{text}");
            assert_eq!(
                (over.written(over.low).as_str(), over.shown(over.low).as_str()),
                (written, shown),
                "{text}"
            );
        }
        assert_eq!(within("1KB..1MB").unwrap().shown(123_456.7), "123.5KB", "an estimate is rounded");
        for wrong in ["100KB", "100KB..10us", "1MB..100KB", "0..64", "low..high", "-2..64"] {
            let error = within(wrong).unwrap_err();
            assert!(error.contains("a size (100KB..1MB)") && error.contains(wrong), "{error}");
        }
    }
}
