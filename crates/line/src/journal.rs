//! The journal of a search: one line of JSON for every finished run, so that a search which was killed repeats none. A
//! line is written in one call and synced to the disk; a last line that is incomplete is dropped, with a warning. Each
//! line has a checksum: a line that was changed since is an error, and a repair drops it.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use plimsoll_files::Origin;
use plimsoll_results::sealed_line;
use serde::{Deserialize, Serialize};

use crate::measure::Run;

/// The name of the journal in the run directory.
const FILE: &str = "runs.jsonl";

/// The largest journal that is read, in bytes: some million runs.
const JOURNAL_BYTES_MAX: u64 = 512 << 20;

/// The run that a line of the journal is about.
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

fn is_good(line: &str) -> bool {
    line.strip_suffix('\n').is_some_and(|line| entry_of(line).is_ok())
}

/// The entry of a line, without its end.
fn entry_of(line: &str) -> Result<Entry, String> {
    serde_json::from_str(&sealed_line::opened(line)?).map_err(|error| error.to_string())
}

/// The finished runs, in a file if there is one.
#[derive(Default)]
pub(crate) struct Journal {
    path: PathBuf,
    /// The warning that an unfinished line was dropped.
    dropped: Option<String>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    file: Option<File>,
    runs: BTreeMap<Key, Run>,
}

impl Inner {
    /// Writes a line whole or not at all, so that a full disk damages no line that follows.
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        let Some(file) = &mut self.file else { return Ok(()) };
        let before = file.metadata()?.len();
        file.write_all(line).and_then(|()| file.sync_data()).inspect_err(|_| {
            // What cannot be cut off is dropped when the journal is opened next.
            let _ = file.set_len(before);
        })
    }
}

/// The reasons why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The operating system reported an error.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation that failed: `read` or `write`.
        action: &'static str,
        /// The path of the journal.
        path: PathBuf,
        /// The reason of the operating system.
        source: io::Error,
    },
    /// A line of the journal describes no run.
    #[error(
        "{} is damaged in line {line}: {what}; the same command with `--repair` runs again what is bad",
        path.display()
    )]
    Damaged {
        /// The path of the journal.
        path: PathBuf,
        /// The number of the line, counted from 1.
        line: usize,
        /// The reason why the line describes no run.
        what: String,
    },
}

impl Journal {
    /// Opens the journal of a run directory. It drops all entries if `anew`, and damaged entries if it is to be
    /// repaired.
    pub(crate) fn open(dir: &Path, anew: bool, repair: bool) -> Result<Journal, JournalError> {
        let path = dir.join(FILE);
        let io = |action| {
            let path = path.clone();
            move |source| JournalError::Io { action, path, source }
        };
        let mut bytes = match plimsoll_files::read(&path, Origin::Folder, JOURNAL_BYTES_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read.map_err(io("read"))?,
        };
        if repair {
            let text = String::from_utf8_lossy(&bytes);
            let good: String = text.split_inclusive('\n').filter(|line| is_good(line)).collect();
            if good.as_bytes() != bytes {
                let unfinished = path.with_extension("unfinished");
                let written = plimsoll_files::create(&unfinished, Origin::Folder).and_then(|mut file| {
                    file.write_all(good.as_bytes())?;
                    file.sync_all()?;
                    fs::rename(&unfinished, &path)
                });
                written.map_err(io("write"))?;
                bytes = good.into_bytes();
            }
        }
        let (whole, rest) = if anew { Default::default() } else { sealed_line::split(&bytes) };
        let lines = String::from_utf8_lossy(whole);
        let damaged = |number| {
            let path = path.clone();
            move |what| JournalError::Damaged { path, line: number + 1, what }
        };
        let mut runs = BTreeMap::new();
        for (number, line) in lines.lines().enumerate() {
            let entry = entry_of(line).map_err(damaged(number))?;
            runs.insert(entry.key, entry.run);
        }
        let dropped = sealed_line::dropped(&path, rest).map_err(damaged(lines.lines().count()))?;
        let file = plimsoll_files::open(&path, Origin::Folder, File::options().create(true).append(true))
            .map_err(io("write"))?;
        file.set_len(whole.len() as u64).map_err(io("write"))?;
        Ok(Journal { path, dropped, inner: Mutex::new(Inner { file: Some(file), runs }) })
    }

    /// Returns the warning that an unfinished line was dropped when the journal was opened.
    pub(crate) fn dropped(&self) -> Option<&str> {
        self.dropped.as_deref()
    }

    pub(crate) fn get(&self, key: &Key) -> Option<Run> {
        self.inner().runs.get(key).cloned()
    }

    pub(crate) fn len(&self) -> usize {
        self.inner().runs.len()
    }

    /// Appends a finished run.
    pub(crate) fn keep(&self, key: Key, run: Run) -> Result<(), JournalError> {
        let entry = Entry { key, run };
        let json = serde_json::to_string(&entry).expect("a run has text keys and finite numbers only");
        let line = sealed_line::sealed(&json) + "\n";
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_damage_goes_unseen_and_a_repair_drops_what_is_bad_and_nothing_else() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let journal = Journal::open(folder.path(), false, false).expect("it is made");
        let key = |replicate| Key { variant: "HULL".to_owned(), load: "0.25".to_owned(), replicate };
        for replicate in 0..3 {
            journal.keep(key(replicate), Run::default()).expect("it is written");
        }
        let path = folder.path().join(FILE);
        let good = fs::read(&path).expect("it is there");
        for at in 0..good.len() {
            let mut flipped = good.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(&path, &flipped).expect("it is written");
            let number = good[..at].iter().filter(|byte| **byte == b'\n').count();
            match Journal::open(folder.path(), false, false) {
                Err(error @ JournalError::Damaged { .. }) => {
                    assert!(error.to_string().contains(&format!("in line {}:", number + 1)), "{error}");
                }
                Err(error) => panic!("{error}"),
                // The checksum's own name, or the end of the last line, without which it counts as cut short.
                Ok(journal) => assert!(
                    (0..3).all(|n| journal.get(&key(n)).is_none_or(|run| run == Run::default())),
                    "{at}"
                ),
            }
            fs::write(&path, &flipped).expect("it is written");
            let journal = Journal::open(folder.path(), false, true).expect("it is repaired");
            assert!(journal.len() >= if flipped[at] == b'\n' || good[at] == b'\n' { 1 } else { 2 }, "{at}");
            drop(journal);
            Journal::open(folder.path(), false, false).expect("nothing bad is left");
        }
    }
    #[test]
    fn an_unfinished_last_line_is_dropped_with_a_warning_unless_it_is_too_long() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(FILE);
        let open = |anew, repair| Journal::open(folder.path(), anew, repair);
        let key = Key { variant: "HULL".to_owned(), load: "0.25".to_owned(), replicate: 0 };
        let journal = open(false, false).expect("it is made");
        journal.keep(key, Run::default()).expect("it is written");
        assert_eq!(journal.dropped(), None);
        let good = fs::read_to_string(&path).expect("it is there");
        fs::write(&path, format!("{good}{}", &good[..7])).expect("it is written");
        let journal = open(false, false).expect("it opens");
        let warning = journal.dropped().expect("a warning");
        assert!(warning.contains("runs.jsonl: the unfinished last line, 7 bytes, is dropped"), "{warning}");
        assert_eq!((journal.len(), fs::read_to_string(&path).expect("it is there")), (1, good.clone()));

        fs::write(&path, format!("{good}{}", "x".repeat(20 << 20))).expect("it is written");
        let Err(error) = open(false, false) else { panic!("the line is too long") };
        let error = error.to_string();
        assert!(error.contains("damaged in line 2: the line has") && error.contains("--repair"), "{error}");
        assert_eq!(open(false, true).expect("it is repaired").len(), 1);
    }
}
