//! [`Store`]: finished runs, kept so that a stopped command repeats none of them.
//!
//! ```text
//! run.jsonl:  {"load":"0.25", .., "check":"9f.."}     a line of JSON for each run, with a checksum
//! ```
//!
//! A line is written in one call and synced to the disk. A last line that is incomplete is dropped, with a warning; a
//! line that was changed since is an error, and a repair drops it. A store without a file is lost with the program.

pub mod sealed_line;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use plimsoll_files::Origin;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The largest file that is read, in bytes: some million runs.
const BYTES_MAX: u64 = 512 << 20;

/// A finished run, which has a line of its own.
pub trait Finished: Serialize + DeserializeOwned {
    /// The type of the key that identifies a run.
    type Key: Ord;

    /// Returns the key of the run.
    fn key(&self) -> Self::Key;

    /// Reads the run from a line's JSON; `None` if it does not count today.
    ///
    /// # Errors
    /// Returns the reason, in words, why the JSON describes no run.
    fn read(json: &str) -> Result<Option<Self>, String> {
        serde_json::from_str(json).map(Some).map_err(|error| error.to_string())
    }
}

/// Finished runs by their keys, in a file if there is one.
#[derive(Debug)]
pub struct Store<R: Finished> {
    runs: BTreeMap<R::Key, R>,
    file: Option<(PathBuf, File)>,
    dropped: Option<String>,
}

/// The reason why a store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The operating system reported an error.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// The operation that failed: `read` or `write`.
        action: &'static str,
        /// The path of the file.
        path: PathBuf,
        /// The reason of the operating system.
        source: io::Error,
    },
    /// A line of the file describes no run.
    #[error(
        "{} is damaged in line {line}: {what}; the same command with `--repair` runs again what is bad",
        path.display()
    )]
    Damaged {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, counted from 1.
        line: usize,
        /// The reason why the line describes no run.
        what: String,
    },
}

impl StoreError {
    fn io(action: &'static str, path: &Path) -> impl Fn(io::Error) -> StoreError {
        move |source| StoreError::Io { action, path: path.to_owned(), source }
    }
}

impl<R: Finished> Default for Store<R> {
    fn default() -> Store<R> {
        Store { runs: BTreeMap::new(), file: None, dropped: None }
    }
}

impl<R: Finished> Store<R> {
    /// Returns a store that is lost when the program ends.
    pub fn in_memory() -> Store<R> {
        Store::default()
    }

    /// Opens the store in a file, which is made if there is none.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or written, or a line is damaged.
    pub fn open(path: &Path) -> Result<Store<R>, StoreError> {
        let bytes = read(path)?;
        let damaged =
            |line: usize| move |what| StoreError::Damaged { path: path.to_owned(), line: line + 1, what };
        let (whole, rest) = sealed_line::split(&bytes);
        let lines = String::from_utf8_lossy(whole);
        let mut runs = BTreeMap::new();
        for (number, line) in lines.lines().enumerate() {
            if let Some(run) = run_of::<R>(line).map_err(damaged(number))? {
                runs.insert(run.key(), run);
            }
        }
        let dropped = sealed_line::dropped(path, rest).map_err(damaged(lines.lines().count()))?;
        let file = appending(path)?;
        if dropped.is_some() {
            file.set_len(whole.len() as u64).map_err(StoreError::io("write", path))?;
        }
        Ok(Store { runs, file: Some((path.to_owned(), file)), dropped })
    }

    /// Opens the store in a file, without the runs that it holds.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn open_anew(path: &Path) -> Result<Store<R>, StoreError> {
        let file = appending(path)?;
        file.set_len(0).map_err(StoreError::io("write", path))?;
        Ok(Store { file: Some((path.to_owned(), file)), ..Store::default() })
    }

    /// Drops the damaged lines of a file, if there are any; the others stay as they are.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or written; it is then as it was.
    pub fn repair(path: &Path) -> Result<(), StoreError> {
        let bytes = read(path)?;
        let text = String::from_utf8_lossy(sealed_line::split(&bytes).0);
        let good: String =
            text.split_inclusive('\n').filter(|line| run_of::<R>(line.trim_end()).is_ok()).collect();
        if good.as_bytes() == bytes { Ok(()) } else { replace(path, &good) }
    }

    /// Returns the warning that an unfinished line was dropped when the file was opened.
    pub fn dropped(&self) -> Option<&str> {
        self.dropped.as_deref()
    }

    /// Returns the run of that key, if it is done.
    pub fn get(&self, key: &R::Key) -> Option<&R> {
        self.runs.get(key)
    }

    /// Returns the number of finished runs in the store.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Returns whether the store has no finished run.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Keeps a finished run.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub fn keep(&mut self, run: R) -> Result<(), StoreError> {
        if let Some((path, file)) = &mut self.file {
            append(file, line_of(&run).as_bytes()).map_err(StoreError::io("write", path))?;
        }
        self.runs.insert(run.key(), run);
        Ok(())
    }

    /// Forgets the runs that do not meet a condition.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written; it is then as it was.
    pub fn retain(&mut self, meets: impl Fn(&R) -> bool) -> Result<(), StoreError> {
        self.runs.retain(|_, run| meets(run));
        self.write_all()
    }

    /// Replaces the store's runs of these keys.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written; it is then as it was.
    pub fn replace(&mut self, runs: Vec<R>) -> Result<(), StoreError> {
        self.runs.extend(runs.into_iter().map(|run| (run.key(), run)));
        self.write_all()
    }

    fn write_all(&mut self) -> Result<(), StoreError> {
        let Some((path, file)) = &mut self.file else { return Ok(()) };
        replace(path, &self.runs.values().map(line_of).collect::<String>())?;
        *file = appending(path)?;
        Ok(())
    }
}

fn read(path: &Path) -> Result<Vec<u8>, StoreError> {
    match plimsoll_files::read(path, Origin::Folder, BYTES_MAX) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Vec::new()),
        read => read.map_err(StoreError::io("read", path)),
    }
}

fn appending(path: &Path) -> Result<File, StoreError> {
    let file = plimsoll_files::open(path, Origin::Folder, File::options().create(true).append(true));
    file.map_err(StoreError::io("write", path))
}

fn line_of<R: Finished>(run: &R) -> String {
    let json = serde_json::to_string(run).expect("a run has text keys and finite numbers only");
    sealed_line::sealed(&json) + "\n"
}

/// Reads the run of a line, without its end.
fn run_of<R: Finished>(line: &str) -> Result<Option<R>, String> {
    R::read(&sealed_line::opened(line)?)
}

/// Writes a file whole or not at all.
fn replace(path: &Path, text: &str) -> Result<(), StoreError> {
    let unfinished = path.with_extension("unfinished");
    let written = plimsoll_files::create(&unfinished, Origin::Folder).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    });
    if written.is_err() {
        // A file that cannot be removed only takes room.
        let _ = fs::remove_file(&unfinished);
    }
    written.map_err(StoreError::io("write", path))
}

/// Writes a line whole or not at all, so that a full disk damages no line that follows.
fn append(file: &mut File, line: &[u8]) -> io::Result<()> {
    let before = file.metadata()?.len();
    file.write_all(line).and_then(|()| file.sync_data()).inspect_err(|_| {
        // A part that cannot be cut off is dropped when the file is opened next.
        let _ = file.set_len(before);
    })
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
    struct Run {
        number: u32,
        third: f64,
    }

    impl Finished for Run {
        type Key = u32;

        fn key(&self) -> u32 {
            self.number
        }

        fn read(json: &str) -> Result<Option<Run>, String> {
            let run: Run = serde_json::from_str(json).map_err(|error| error.to_string())?;
            Ok((run.number < 100).then_some(run))
        }
    }

    const FILE: &str = "runs.jsonl";

    fn run(number: u32) -> Run {
        Run { number, third: 1.0 / 3.0 }
    }

    /// Returns a folder whose store has the runs of these numbers.
    fn folder(numbers: &[u32]) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(FILE);
        let mut store = Store::open(&path).expect("it is made");
        numbers.iter().for_each(|number| store.keep(run(*number)).expect("it is written"));
        (folder, path)
    }

    fn numbers(path: &Path) -> Vec<u32> {
        Store::<Run>::open(path).expect("it opens").runs.into_keys().collect()
    }

    #[test]
    fn no_damage_goes_unseen_and_a_repair_drops_what_is_bad_and_nothing_else() {
        let (_folder, path) = folder(&[0, 1, 2]);
        let good = fs::read(&path).expect("it is there");
        for at in 0..good.len() {
            let mut flipped = good.clone();
            flipped[at] ^= 1 << (at % 8);
            fs::write(&path, &flipped).expect("it is written");
            let line = good[..at].iter().filter(|byte| **byte == b'\n').count() + 1;
            match Store::<Run>::open(&path) {
                Err(error @ StoreError::Damaged { .. }) => {
                    let said = error.to_string();
                    assert!(
                        said.contains(&format!("in line {line}:")) && said.contains("--repair"),
                        "{said}"
                    );
                }
                Err(error) => panic!("{error}"),
                // The checksum's own name, or the end of the last line, without which it counts as cut short.
                Ok(store) => {
                    assert!((0..3).all(|n| store.get(&n).is_none_or(|found| *found == run(n))), "{at}");
                }
            }
            fs::write(&path, &flipped).expect("it is written");
            Store::<Run>::repair(&path).expect("it is repaired");
            let least = if flipped[at] == b'\n' || good[at] == b'\n' { 1 } else { 2 };
            assert!(numbers(&path).len() >= least, "{at}");
        }
    }

    #[test]
    fn an_unfinished_last_line_is_dropped_with_a_warning_unless_it_is_too_long() {
        let (_folder, path) = folder(&[0]);
        assert_eq!(Store::<Run>::open(&path).expect("it opens").dropped(), None);
        let good = fs::read_to_string(&path).expect("it is there");
        fs::write(&path, format!("{good}{}", &good[..7])).expect("it is written");
        let mut store = Store::<Run>::open(&path).expect("it opens");
        let warning = store.dropped().expect("a warning");
        assert!(warning.contains("runs.jsonl: the unfinished last line, 7 bytes, is dropped"), "{warning}");
        assert_eq!(fs::read_to_string(&path).expect("it is there"), good);
        store.keep(run(1)).expect("it is written");
        assert_eq!(numbers(&path), [0, 1]);

        fs::write(&path, format!("{good}{}", "x".repeat(20 << 20))).expect("it is written");
        let error = Store::<Run>::open(&path).expect_err("the line is too long").to_string();
        assert!(error.contains("damaged in line 2: the line has") && error.contains("--repair"), "{error}");
        Store::<Run>::repair(&path).expect("it is repaired");
        assert_eq!(numbers(&path), [0]);
    }

    #[test]
    fn runs_are_forgotten_replaced_and_left_out() {
        let (_folder, path) = folder(&[0, 1, 2]);
        let mut store = Store::<Run>::open(&path).expect("it opens");
        store.retain(|run| run.number != 1).expect("it is written");
        store.replace(vec![Run { number: 2, third: 0.3 }]).expect("it is written");
        store.keep(run(100)).expect("it is written");
        let store = Store::<Run>::open(&path).expect("it opens");
        assert_eq!((store.get(&1), store.get(&2).map(|run| run.third)), (None, Some(0.3)));
        assert_eq!(store.get(&100), None, "it does not count");
        drop(Store::<Run>::open_anew(&path).expect("it opens"));
        assert!(numbers(&path).is_empty());
    }
}
