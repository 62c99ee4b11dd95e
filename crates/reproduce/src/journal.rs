//! [`Journal`]: the rows of finished runs, kept so that a reproduction that was stopped goes on where it was.
//!
//! One line of JSON a run, keyed by the digest of what the run's scenario sets, which holds the seed, and by its base,
//! which says what carried the packets. Defaults are not in it, so that a journal outlives a new key of the format;
//! where a default itself changes, the version has to. A line is written in one piece when its run is done, with a
//! checksum; a last line that was cut short is dropped with a warning, and one that has been changed is an error, or
//! dropped by a repair. What was published and how close a number must be are not taken from here: they are set anew
//! beside the measured numbers.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use plimsoll_files::Origin;
use plimsoll_results::sealed_line;
use serde::{Deserialize, Serialize};

use crate::options::Part;
use crate::row::Row;

/// The largest journal that is read, in bytes.
const JOURNAL_BYTES_MAX: u64 = 512 << 20;

/// A finished run, a line of the journal.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Entry {
    /// Of what the run's scenario sets, as text: the same digest means the same run.
    pub digest: String,
    /// The version of the program that ran it.
    pub version: String,
    /// The commit that it was built from, where known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The digest of what the simulator made of its scenario then, by the committed table: a run from before a change
    /// of results does not count. None of what is not simulated, or from before this was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcomes: Option<String>,
    /// The seed that the run was made with.
    pub seed: u64,
    /// The figure that the run is of.
    pub figure: String,
    /// As in its rows: `source`, `standard`, `kernel` or `simulated`.
    pub base: String,
    /// The point on the figure's axis.
    pub x: String,
    /// The scheme that the run is of.
    pub series: String,
    /// Packets that completed a link.
    pub packet_hops: u64,
    /// The rows that the run measured.
    pub rows: Vec<Row>,
}

/// Finished runs by digest, figure and base, in a file if there is one. Two figures may have the same run, and measure
/// different things in it.
#[derive(Debug, Default)]
pub struct Journal {
    entries: BTreeMap<Key, Entry>,
    file: Option<(PathBuf, File)>,
    dropped: Option<String>,
}

impl Entry {
    /// Returns the digest of what the run was told, with that of what the simulator made of its scenario.
    pub fn identity(&self) -> String {
        identity(&self.digest, self.outcomes.as_deref())
    }
}

/// Joins the digest of a run's settings with that of the outcomes of its scenario.
pub(crate) fn identity(digest: &str, outcomes: Option<&str>) -> String {
    outcomes.map_or_else(|| digest.to_owned(), |outcomes| format!("{digest}-{outcomes}"))
}

impl Journal {
    /// Returns a journal that is lost when the program ends.
    pub fn in_memory() -> Journal {
        Journal::default()
    }

    /// Opens the journal in a file, which is made if there is none. Lines of another version of the program do not
    /// count.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn open(path: &Path) -> io::Result<Journal> {
        let bytes = match plimsoll_files::read(path, Origin::Folder, JOURNAL_BYTES_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            read => read?,
        };
        let damaged = |number: usize| {
            move |what| {
                let what = format!(
                    "{} is damaged in line {}: {what}; the same command with `--repair` runs again what is bad",
                    path.display(),
                    number + 1
                );
                io::Error::new(io::ErrorKind::InvalidData, what)
            }
        };
        let mut entries = BTreeMap::new();
        let (whole, rest) = sealed_line::split(&bytes);
        let lines = String::from_utf8_lossy(whole);
        for (number, line) in lines.lines().enumerate() {
            if let Some(entry) = entry_of(line.trim_end()).map_err(damaged(number))? {
                entries.insert(key(&entry), entry);
            }
        }
        let dropped = sealed_line::dropped(path, rest).map_err(damaged(lines.lines().count()))?;
        let file = plimsoll_files::open(path, Origin::Folder, File::options().create(true).append(true))?;
        if dropped.is_some() {
            file.set_len(whole.len() as u64)?;
        }
        Ok(Journal { entries, file: Some((path.to_owned(), file)), dropped })
    }

    /// Returns the warning that an unfinished line was dropped when the journal was opened.
    pub fn dropped(&self) -> Option<&str> {
        self.dropped.as_deref()
    }

    /// Drops the damaged lines of a journal, if there are any; the rest stays as it is.
    ///
    /// # Errors
    /// If the file cannot be read or written.
    pub fn repair(path: &Path) -> io::Result<()> {
        let bytes = match plimsoll_files::read(path, Origin::Folder, JOURNAL_BYTES_MAX) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            read => read?,
        };
        let text = String::from_utf8_lossy(sealed_line::split(&bytes).0);
        let lines = text.split_inclusive('\n');
        let good: String = lines.filter(|line| entry_of(line.trim_end()).is_ok()).collect();
        if good.as_bytes() == bytes { Ok(()) } else { replace(path, &good) }
    }

    /// Forgets the runs of these parts of a study, whatever their seed.
    ///
    /// # Errors
    /// If the file cannot be written; it is then as it was.
    pub fn forget(&mut self, parts: &[Part]) -> io::Result<()> {
        let is_asked = |entry: &Entry| parts.iter().any(|part| part.has(&entry.figure, &entry.x));
        self.entries.retain(|_, entry| !is_asked(entry));
        self.write_all()
    }

    /// Puts these runs in the place of those that the journal has of them.
    ///
    /// # Errors
    /// If the file cannot be written; it is then as it was.
    pub(crate) fn replace(&mut self, entries: Vec<Entry>) -> io::Result<()> {
        self.entries.extend(entries.into_iter().map(|entry| (key(&entry), entry)));
        self.write_all()
    }

    fn write_all(&mut self) -> io::Result<()> {
        let Some((path, _)) = &self.file else { return Ok(()) };
        let lines = self.entries.values().map(line_of).collect::<io::Result<String>>()?;
        replace(path, &lines)?;
        let file = plimsoll_files::open(path, Origin::Folder, File::options().append(true))?;
        self.file = Some((path.clone(), file));
        Ok(())
    }

    /// Returns the run of that digest for a figure, a base, a place on the axis and a scheme, if it is done.
    pub fn get(&self, digest: u64, names: [&str; 4]) -> Option<&Entry> {
        self.entries.get(&(text(digest), names.map(str::to_owned)))
    }

    /// Returns the number of runs.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns whether there is no run.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Keeps a finished run.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn keep(&mut self, entry: Entry) -> io::Result<()> {
        if let Some((path, file)) = &mut self.file {
            let line = line_of(&entry)?;
            append(file, line.as_bytes()).map_err(|error| {
                io::Error::new(error.kind(), format!("cannot write {}: {error}", path.display()))
            })?;
        }
        self.entries.insert(key(&entry), entry);
        Ok(())
    }
}

/// The digest of a run and what its rows are called: two points of a figure may be the same run.
type Key = (String, [String; 4]);

fn key(entry: &Entry) -> Key {
    let Entry { figure, base, x, series, .. } = entry;
    (entry.digest.clone(), [figure, base, x, series].map(Clone::clone))
}

fn line_of(entry: &Entry) -> io::Result<String> {
    Ok(sealed_line::sealed(&serde_json::to_string(entry).map_err(io::Error::other)?) + "\n")
}

/// Reads the entry of a line; none of another version.
fn entry_of(line: &str) -> Result<Option<Entry>, String> {
    #[derive(Deserialize)]
    struct Head {
        version: String,
    }
    let json = sealed_line::opened(line)?;
    let head: Head = serde_json::from_str(&json).map_err(|error| error.to_string())?;
    if head.version != VERSION {
        return Ok(None);
    }
    serde_json::from_str(&json).map(Some).map_err(|error| error.to_string())
}

/// Writes a file whole or not at all.
fn replace(path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_extension("unfinished");
    let written = plimsoll_files::create(&unfinished, Origin::Folder).and_then(|mut file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&unfinished, path)
    });
    if written.is_err() {
        // What is left would only take room; that it cannot be removed changes nothing.
        let _ = fs::remove_file(&unfinished);
    }
    written
}

/// Writes a line whole or not at all, where that can be.
fn append(file: &mut File, line: &[u8]) -> io::Result<()> {
    let before = file.metadata()?.len();
    file.write_all(line).and_then(|()| file.sync_data()).inspect_err(|_| {
        // What cannot be cut off is dropped when the journal is opened next.
        let _ = file.set_len(before);
    })
}

/// Formats a digest as the journal writes it: JSON's numbers do not hold 64 bits everywhere.
pub(crate) fn text(digest: u64) -> String {
    format!("{digest:016x}")
}

pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(digest: u64) -> Entry {
        let mut row = Row::new("fig11", "source", "bucket", "1", "one_way_us_mean", "us");
        row.measured = 1.0 / 3.0;
        Entry {
            digest: text(digest),
            version: VERSION.to_owned(),
            commit: Some("aaaa".to_owned()),
            outcomes: None,
            seed: 1,
            figure: "fig11".to_owned(),
            base: "source".to_owned(),
            x: "1".to_owned(),
            series: "bucket".to_owned(),
            packet_hops: 7,
            rows: vec![row],
        }
    }

    const FIG11: [&str; 4] = ["fig11", "source", "1", "bucket"];
    const FIG9: [&str; 4] = ["fig9", "source", "1", "bucket"];

    #[test]
    fn two_points_of_one_digest_keep_their_names() {
        let mut journal = Journal::in_memory();
        let other = Entry { x: "2".to_owned(), ..entry(1) };
        journal.keep(entry(1)).and_then(|()| journal.keep(other.clone())).expect("they are kept");
        assert_eq!(journal.get(1, FIG11), Some(&entry(1)));
        assert_eq!(journal.get(1, ["fig11", "source", "2", "bucket"]), Some(&other));
    }

    #[test]
    fn what_was_kept_is_there_again_and_a_line_cut_short_is_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("journal.jsonl");
        let mut journal = Journal::open(&path).expect("it is made");
        journal.keep(entry(1)).expect("it is written");
        journal.keep(entry(2)).expect("it is written");
        let whole = fs::read_to_string(&path).expect("it is there");
        fs::write(&path, &whole[..whole.len() - 5]).expect("it can be cut");

        let mut journal = Journal::open(&path).expect("it opens");
        let warning = journal.dropped().expect("a warning");
        assert!(warning.contains("journal.jsonl: the unfinished last line, "), "{warning}");
        assert_eq!(journal.get(1, FIG11), Some(&entry(1)));
        assert_eq!(journal.get(2, FIG11), None);
        assert_eq!(journal.get(1, FIG9), None);
        journal.keep(entry(2)).expect("it is written");
        assert_eq!(Journal::open(&path).expect("it opens").get(2, FIG11), Some(&entry(2)));
    }

    #[test]
    fn a_changed_line_is_named_and_a_repair_drops_it() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("journal.jsonl");
        let mut journal = Journal::open(&path).expect("it is made");
        (1..4).try_for_each(|digest| journal.keep(entry(digest))).expect("they are written");
        let good = fs::read_to_string(&path).expect("it is there");
        for (from, to) in
            [("\"packet_hops\":7", "\"packet_hops\":6"), ("\"seed\"", "\"seec\""), ("0.333", "0.332")]
        {
            let second = good.find('\n').expect("a line") + 1;
            let bad = format!("{}{}", &good[..second], good[second..].replacen(from, to, 1));
            assert_ne!(bad, good);
            fs::write(&path, &bad).expect("it is written");
            let error = Journal::open(&path).expect_err("it is seen").to_string();
            assert!(
                error.contains("journal.jsonl is damaged in line 2") && error.contains("--repair"),
                "{error}"
            );
            Journal::repair(&path).expect("it is repaired");
            let journal = Journal::open(&path).expect("it opens");
            let there = [1, 2, 3].map(|digest| journal.get(digest, FIG11).is_some());
            assert_eq!(there, [true, false, true]);
        }
    }

    #[test]
    fn parts_are_forgotten_and_the_rest_stays() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("journal.jsonl");
        let mut journal = Journal::open(&path).expect("it is made");
        let other = Entry { x: "2".to_owned(), ..entry(2) };
        journal.keep(entry(1)).and_then(|()| journal.keep(other.clone())).expect("they are written");
        journal.forget(&["fig11@1".parse().expect("a part")]).expect("it is written");
        journal.keep(Entry { figure: "fig9".to_owned(), ..entry(3) }).expect("it is written");
        let journal = Journal::open(&path).expect("it opens");
        assert_eq!(journal.get(1, FIG11), None);
        assert_eq!(journal.get(2, ["fig11", "source", "2", "bucket"]), Some(&other));
        assert!(journal.get(3, FIG9).is_some());
    }

    #[test]
    fn another_versions_runs_do_not_count() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("journal.jsonl");
        let other = Entry { version: "0.0.0-other".to_owned(), ..entry(1) };
        Journal::open(&path).and_then(|mut journal| journal.keep(other)).expect("it is written");
        assert_eq!(Journal::open(&path).expect("it opens").get(1, FIG11), None);
    }
}
