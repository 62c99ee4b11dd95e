//! The journal of a search: one line of JSON for every finished run, so that a search which was killed
//! repeats none. A line is written at once and whole; a last line that was cut short is dropped.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use serde::{Deserialize, Serialize};

use crate::measure::Run;

/// Its name in the run directory.
const FILE: &str = "runs.jsonl";

/// Which run.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub(crate) struct Key {
    pub(crate) variant: String,
    /// As the scenario writes it.
    pub(crate) load: String,
    pub(crate) replicate: u32,
}

#[derive(Serialize, Deserialize)]
struct Entry {
    #[serde(flatten)]
    key: Key,
    run: Run,
}

pub(crate) struct Journal {
    path: PathBuf,
    inner: Mutex<Inner>,
}

struct Inner {
    file: File,
    runs: BTreeMap<Key, Run>,
}

impl Inner {
    /// Writes a line whole or not at all, so that one which finds a full disk spoils none that follows.
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let before = self.file.metadata()?.len();
        self.file.write_all(line).inspect_err(|_| {
            // What cannot be cut off is dropped when the journal is opened next.
            let _ = self.file.set_len(before);
        })
    }
}

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The operating system refused.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// `read`, `write`.
        action: &'static str,
        /// The journal.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// A line is no run.
    #[error("{} is damaged in line {line}: {what}; begin anew with `--force`", path.display())]
    Damaged {
        /// The journal.
        path: PathBuf,
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
}

impl Journal {
    /// Opens the journal of a run directory, without what it holds if `anew`.
    pub(crate) fn open(dir: &Path, anew: bool) -> Result<Journal, JournalError> {
        let path = dir.join(FILE);
        let io = |action| {
            let path = path.clone();
            move |source| JournalError::Io { action, path, source }
        };
        let text = match fs::read_to_string(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            read => read.map_err(io("read"))?,
        };
        let whole = if anew { 0 } else { text.rfind('\n').map_or(0, |end| end + 1) };
        let mut runs = BTreeMap::new();
        for (number, line) in text[..whole].lines().enumerate() {
            let entry: Entry = serde_json::from_str(line).map_err(|error| JournalError::Damaged {
                path: path.clone(),
                line: number + 1,
                what: error.to_string(),
            })?;
            runs.insert(entry.key, entry.run);
        }
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(io("write"))?;
        file.set_len(whole as u64).map_err(io("write"))?;
        Ok(Journal { path, inner: Mutex::new(Inner { file, runs }) })
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Run> {
        self.inner().runs.get(key).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.inner().runs.len()
    }

    /// Keeps a finished run.
    pub(crate) fn keep(&self, key: Key, run: Run) -> Result<(), JournalError> {
        let entry = Entry { key, run };
        let mut line = serde_json::to_string(&entry).expect("a run has text keys and finite numbers only");
        line.push('\n');
        let mut inner = self.inner();
        inner.append(line.as_bytes()).map_err(|source| JournalError::Io {
            action: "write",
            path: self.path.clone(),
            source,
        })?;
        inner.runs.insert(entry.key, entry.run);
        Ok(())
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
