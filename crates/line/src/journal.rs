//! The finished runs of a search, so that one which was killed repeats none.

use std::path::Path;
use std::sync::{Mutex, MutexGuard};

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
}

#[derive(Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    key: Key,
    run: Run,
}

impl Finished for Entry {
    type Key = Key;

    fn key(&self) -> Key {
        self.key.clone()
    }
}

/// The finished runs, which all threads of a batch keep.
#[derive(Default)]
pub(crate) struct Journal(Mutex<Store<Entry>>);

impl Journal {
    /// Opens the journal of a run directory, without the runs that `existing` drops: all, or those that are damaged.
    pub(crate) fn open(dir: &Path, existing: Existing) -> Result<Journal, StoreError> {
        let path = dir.join(FILE);
        if existing == Existing::Repair {
            Store::<Entry>::repair(&path)?;
        }
        let store = if existing == Existing::Replace { Store::open_anew(&path) } else { Store::open(&path) };
        store.map(|store| Journal(Mutex::new(store)))
    }

    /// Returns the warning that an unfinished line was dropped when the journal was opened.
    pub(crate) fn dropped(&self) -> Option<String> {
        self.store().dropped().map(str::to_owned)
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Run> {
        self.store().get(key).map(|entry| entry.run.clone())
    }

    pub(crate) fn len(&self) -> usize {
        self.store().len()
    }

    /// Appends a finished run.
    pub(crate) fn keep(&self, key: Key, run: Run) -> Result<(), StoreError> {
        self.store().keep(Entry { key, run })
    }

    fn store(&self) -> MutexGuard<'_, Store<Entry>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
