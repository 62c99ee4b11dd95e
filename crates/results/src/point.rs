//! [`PointOutcome`]: one run of an experiment, with the coordinates that say which.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::digest::Digest;
use crate::outcome::Outcome;

/// Identity of a run within an experiment: a variant at one point of the sweep, repeated with another seed.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
pub struct PointKey {
    /// The variant's name in the scenario.
    pub variant: String,
    /// Each swept key with its value, in the order of the scenario; empty without a sweep.
    pub sweep: Vec<(String, String)>,
    /// Number of the replicate, from 0.
    pub replicate: u32,
}

impl PointKey {
    /// The sweep point in words: `workload.background.load = 0.4`; empty without a sweep.
    pub fn sweep_label(&self) -> String {
        sweep_label(&self.sweep)
    }
}

impl fmt::Display for PointKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.variant)?;
        if !self.sweep.is_empty() {
            write!(f, ", {}", self.sweep_label())?;
        }
        write!(f, ", replicate {}", self.replicate)
    }
}

/// Returns a sweep point in words, such as `workload.background.load = 0.4`.
pub fn sweep_label(sweep: &[(String, String)]) -> String {
    sweep.iter().map(|(key, value)| format!("{key} = {value}")).collect::<Vec<_>>().join(", ")
}

/// One run and its outcome.
#[derive(Clone, Debug)]
pub struct PointOutcome {
    /// The key that names the run.
    pub key: PointKey,
    /// The seed of the run's random streams.
    pub seed: u64,
    /// The digest of the field `outcome`.
    pub digest: Digest,
    /// The observations of the run.
    pub outcome: Outcome,
}

impl PointOutcome {
    /// Takes an outcome and computes its digest.
    pub fn new(key: PointKey, seed: u64, outcome: Outcome) -> PointOutcome {
        PointOutcome { key, seed, digest: Digest::of(&outcome), outcome }
    }
}
