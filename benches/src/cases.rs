//! The three scenarios, and the known differences of the two simulators on them.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use clap::ValueEnum;
use plimsoll_scenario::model::Model;
use plimsoll_scenario::{Overrides, Scenario};

/// A benchmark scenario; `benches/ns3/README.md` describes them.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, ValueEnum)]
pub enum Case {
    /// Nine TCP senders to one receiver.
    S1,
    /// Nine DCTCP senders to one receiver.
    S2,
    /// A DCTCP permutation on a fat-tree.
    S3,
}

impl Case {
    /// The scenarios, in the order of the tables.
    pub const ALL: [Case; 3] = [Case::S1, Case::S2, Case::S3];

    /// Returns the name in tables and options: `S1`.
    pub fn name(self) -> &'static str {
        match self {
            Case::S1 => "S1",
            Case::S2 => "S2",
            Case::S3 => "S3",
        }
    }

    /// Returns a description of the scenario, for a heading.
    pub fn title(self) -> &'static str {
        match self {
            Case::S1 => "nine TCP senders to one receiver",
            Case::S2 => "nine DCTCP senders to one receiver",
            Case::S3 => "a DCTCP permutation on a fat-tree of 128 hosts",
        }
    }

    /// Returns the simulated seconds in which ns-3 stays below some eight seconds.
    pub fn beside_ns3_s(self, quick: bool) -> f64 {
        match (self, quick) {
            (Case::S1 | Case::S2, false) => 2.0,
            (Case::S1 | Case::S2, true) => 0.1,
            (Case::S3, false) => 0.001,
            (Case::S3, true) => 0.000_2,
        }
    }

    /// Returns the simulated seconds of a run without ns-3, long enough to be timed.
    pub fn alone_s(self, quick: bool) -> f64 {
        match (self, quick) {
            (Case::S1 | Case::S2, false) => 20.0,
            (Case::S3, false) => 0.01,
            (_, true) => self.beside_ns3_s(true),
        }
    }

    /// Returns the simulated seconds of the two runs whose difference the instruction gate divides.
    pub fn gate_s(self) -> (f64, f64) {
        match self {
            Case::S1 | Case::S2 => (0.05, 0.15),
            Case::S3 => (0.000_2, 0.000_3),
        }
    }

    /// Returns the name of its scenario file, without the extension.
    pub fn scenario(self) -> String {
        self.name().to_lowercase()
    }

    /// Explains a result in which the two simulators differ: which one is right, and why.
    pub fn explanation(self, result: &str) -> Option<&'static str> {
        let known: &[(&str, &str)] = match self {
            Case::S1 => S1,
            Case::S2 => S2,
            Case::S3 => S3,
        };
        known.iter().find(|(name, _)| *name == result).map(|(_, why)| *why)
    }
}

/// Returns the checked model of a file of `benches/scenarios`, with `set` laid over it: of this variant, or of the
/// first.
pub fn model(scenario: &str, variant: Option<&str>, set: Vec<String>) -> Result<Model> {
    let loaded = load(scenario, set)?;
    let point = loaded.points().iter().find(|point| variant.is_none_or(|name| point.variant == name));
    Ok(point.ok_or_else(|| anyhow!("{scenario} has no variant {variant:?}"))?.model.clone())
}

/// Returns the names of the variants of a file of `benches/scenarios`, in its order.
pub fn variants(scenario: &str) -> Result<Vec<String>> {
    Ok(load(scenario, Vec::new())?.points().iter().map(|point| point.variant.clone()).collect())
}

fn load(scenario: &str, set: Vec<String>) -> Result<Scenario> {
    let overrides = Overrides { set, ..Overrides::default() };
    let path = folder().join("scenarios").join(format!("{scenario}.toml"));
    Scenario::load_with(&path, &overrides).map_err(|errors| {
        let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
        anyhow!(errors.join("\n"))
    })
}

/// Returns this crate's folder.
pub fn folder() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the repository's folder.
pub fn repository() -> PathBuf {
    folder().join("..")
}

const S1: &[(&str, &str)] = &[(
    "Jain's index",
    "neither is a reference. Which flow meets a full drop-tail queue hangs on the exact times of arrival, \
     and with windows of some 50 packets it takes seconds until every flow has been cut equally often.",
)];
const S2: &[(&str, &str)] = &[];
const S3: &[(&str, &str)] =
    &[("goodput, Mb/s", S3_RECOVERY), ("Jain's index", S3_RECOVERY), ("drops", S3_RECOVERY)];
const S3_RECOVERY: &str = "neither is wrong; they follow different documents. On a mark Plimsoll cuts the window \
     at once (RFC 8257, section 3.3; RFC 3168, section 6.1.2), and after a loss it sends by RFC 6675. ns-3 \
     spreads every cut over a round trip (PRR, RFC 6937), so the overshoot of slow start meets the 35 places \
     above the threshold for longer, and a flow that loses a retransmission then stands still for the 200 ms \
     of the minimum RTO, which is the rest of the run. With ns-3's `TcpClassicRecovery` (seeds 1 to 3) the gap \
     in goodput falls from 23 % to 8 %, and more than half of that in drops goes. What is left is not \
     explained; permutation and paths are drawn by other generators.";
