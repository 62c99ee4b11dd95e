//! The finished runs of a search, kept so that a killed search repeats none of them.

use std::path::Path;

use plimsoll_experiment::{Finished, Store, StoreError};
use plimsoll_results::run_dir::Existing;
use serde::{Deserialize, Serialize};

use crate::measure::Run;

/// The name of the store in the run directory.
const FILE: &str = "runs.jsonl";

/// The run of a variant at a load.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) variant: String,
    /// The load as the scenario writes it.
    pub(crate) load: String,
    pub(crate) replicate: u32,
    /// Whether the run is one of a first look that has shorter ones.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_short: bool,
}

/// A finished run with its key.
#[derive(Serialize, Deserialize)]
pub(crate) struct JournaledRun {
    #[serde(flatten)]
    pub(crate) key: Key,
    pub(crate) run: Run,
}

impl Finished for JournaledRun {
    type Key = Key;

    fn key(&self) -> Key {
        self.key.clone()
    }
}

/// Opens the runs of a run directory, without the runs that `existing` drops: all, or the damaged ones.
pub(crate) fn open(dir: &Path, existing: Existing) -> Result<Store<JournaledRun>, StoreError> {
    let path = dir.join(FILE);
    if existing == Existing::Repair {
        Store::<JournaledRun>::repair(&path)?;
    }
    if existing == Existing::Replace { Store::open_anew(&path) } else { Store::open(&path) }
}
