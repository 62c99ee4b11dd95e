//! [`Over`]: the load that is searched, and the values that it may have.

use plimsoll_scenario::model::{Model, Workload};
use plimsoll_scenario::{Point, did_you_mean};
use plimsoll_traffic::kind::LoadKey;
use plimsoll_units::quantity::Load;
use serde::{Deserialize, Serialize};

use crate::search::rounded;

/// The key of a scenario that is searched.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Over {
    /// The dotted key: `workload.background.load`.
    pub key: String,
    /// The unit in which values of the key are given.
    pub unit: Unit,
    /// Its value in the scenario, in its unit.
    pub today: f64,
    /// The lowest value that the search tries, in `unit` (`--within`).
    pub low: f64,
    /// The highest value that the search tries, in `unit` (`--within`).
    pub high: f64,
}

/// The units in which a load is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// The load is a share of a link's rate.
    Share,
    /// The load is a number of payload bits per second.
    BitsPerSecond,
    /// The load is a number of queries per second.
    PerSecond,
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
        "`{key}` is no load of the scenario\n  allowed: {candidates}{}",
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
        "the loads from {low} to {high} are no range; write LOW..HIGH, both more than 0, such as 0.05..0.9"
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
        let read = match self.unit {
            Unit::Share => plimsoll_units::parse_share(text).ok(),
            Unit::PerSecond => text.trim().parse::<f64>().ok(),
            Unit::BitsPerSecond => text.parse().ok().map(|rate: plimsoll_units::Rate| rate.as_bps() as f64),
        };
        let allowed = match self.unit {
            Unit::Share => "a share of the link, such as 0.4 or 40%",
            Unit::PerSecond => "queries per second, such as 1500",
            Unit::BitsPerSecond => "a rate, such as 200Mbps",
        };
        let key = &self.key;
        read.filter(|load| *load > 0.0 && load.is_finite())
            .ok_or_else(|| format!("`{text}` is no load for `{key}`; write {allowed}, as the scenario does"))
    }

    /// Writes the value as `--set` takes it. Loads of four significant digits are exact.
    pub fn written(&self, load: f64) -> String {
        match self.unit {
            Unit::Share | Unit::PerSecond => format!("{load:?}"),
            Unit::BitsPerSecond => format!("{:.0}bps", load),
        }
    }

    /// Writes the value with its unit for tables and sentences.
    pub fn shown(&self, load: f64) -> String {
        match self.unit {
            Unit::Share => {
                let text = format!("{:.*}", plimsoll_report::figures::decimals(load).clamp(2, 4), load);
                text.strip_suffix('0').filter(|_| load >= 0.1).unwrap_or(&text).to_owned()
            }
            Unit::BitsPerSecond => plimsoll_report::figures::rate(load / 1e6),
            Unit::PerSecond => format!("{}/s", plimsoll_report::figures::number(load)),
        }
    }

    /// Returns the workload that has the load.
    pub(crate) fn workload(&self) -> &str {
        self.key.split('.').nth(1).unwrap_or_default()
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
    Over { key, unit, today, low, high: rounded(high) }
}
