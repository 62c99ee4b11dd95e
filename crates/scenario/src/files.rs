//! [`ScenarioFiles`]: the files that a scenario reads, from the disk or from its own table `files`; and
//! the text that needs no other file.
//!
//! Files are embedded under the names that the scenario has for them, and nothing is merged: the
//! text keeps its comments, and a phantom queue still knows which marking lies in a file below it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, BufReader, Cursor, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use plimsoll_files::Origin;
use plimsoll_traffic::check::JobFile;

use crate::node::{quoted_key, toml_string};

/// Reads files by the names that a scenario has for them. Each is read once, so all points of a
/// scenario see the same text.
#[derive(Clone, Debug, Default)]
pub(crate) struct ScenarioFiles {
    /// Names are relative to this folder.
    base_dir: PathBuf,
    embedded: BTreeMap<String, String>,
    /// The texts that the caller gives in place of files on the disk.
    given: BTreeMap<String, String>,
    read: RefCell<BTreeMap<String, String>>,
}

impl ScenarioFiles {
    pub(crate) fn new(base_dir: PathBuf) -> ScenarioFiles {
        ScenarioFiles { base_dir, ..ScenarioFiles::default() }
    }

    /// Reads these texts in place of files on the disk from now on.
    pub(crate) fn give(&mut self, texts: &BTreeMap<String, String>) {
        self.given.extend(texts.iter().map(|(name, text)| (name.clone(), text.clone())));
    }

    /// Returns the given texts that cannot be read, as the scenario has its own of that name.
    pub(crate) fn hidden(&self) -> impl Iterator<Item = &str> {
        self.given.keys().map(String::as_str).filter(|name| self.embedded.contains_key(*name))
    }

    /// Returns the given texts that nothing has read.
    pub(crate) fn unread(&self) -> Vec<String> {
        let read = self.read.borrow();
        self.given.keys().filter(|name| !read.contains_key(*name)).cloned().collect()
    }

    /// Adds a text of the table `files`; one that is there already stays.
    pub(crate) fn embed(&mut self, name: String, text: String) {
        self.embedded.entry(name).or_insert(text);
    }

    /// The text of a file of at most [`FILE_MAX`] bytes: an include, a graph, a distribution.
    pub(crate) fn read(&self, name: &str) -> io::Result<String> {
        self.read_up_to(name, FILE_MAX)
    }

    /// The text of a flow list, which may be as long as [`FLOW_LIST_MAX`].
    pub(crate) fn read_flow_list(&self, name: &str) -> io::Result<String> {
        self.read_up_to(name, FLOW_LIST_MAX)
    }

    /// The text of a job, which is not kept where it is longer than that of a flow list.
    pub(crate) fn open_job(&self, name: &str) -> io::Result<JobFile<'_>> {
        let is_text = self.embedded.contains_key(name) || self.given.contains_key(name);
        let path = self.base_dir.join(name);
        let length = if is_text { 0 } else { path.metadata().map_or(0, |about| about.len()) };
        if length <= FLOW_LIST_MAX {
            let text = self.read_flow_list(name)?;
            return Ok(JobFile { input: Box::new(Cursor::new(text)), is_kept: true });
        }
        if length > JOB_MAX {
            let problem = format!("it has {length} bytes, where at most {JOB_MAX} fit");
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, problem));
        }
        let file = plimsoll_files::open_to_read(&path, Origin::Name)?;
        Ok(JobFile { input: Box::new(BufReader::new(file.take(JOB_MAX))), is_kept: false })
    }

    fn read_up_to(&self, name: &str, most: u64) -> io::Result<String> {
        if let Some(text) = self.embedded.get(name) {
            return Ok(text.clone());
        }
        if let Some(text) = self.read.borrow().get(name) {
            return Ok(text.clone());
        }
        let text = match self.given.get(name) {
            Some(text) => text.clone(),
            None => plimsoll_files::read_text(&self.base_dir.join(name), Origin::Name, most)?,
        };
        self.read.borrow_mut().insert(name.to_owned(), text.clone());
        Ok(text)
    }

    /// What tells whether two names mean the same file: its path, or for an embedded one its name.
    pub(crate) fn identity(&self, name: &str) -> PathBuf {
        if self.embedded.contains_key(name) || self.given.contains_key(name) {
            return PathBuf::from("[files]").join(name);
        }
        let path = self.base_dir.join(name);
        path.canonicalize().unwrap_or(path)
    }

    /// The files that were read and are not in the scenario's own table: from the disk, or given by the caller.
    pub(crate) fn into_read(self) -> BTreeMap<String, String> {
        self.read.into_inner()
    }
}

/// Bytes of a file that a scenario names: an include, a graph, a distribution.
pub(crate) const FILE_MAX: u64 = 16 << 20;

/// Bytes of a flow list: some three million flows.
pub(crate) const FLOW_LIST_MAX: u64 = 128 << 20;

/// Bytes of a job: some hundred million operations.
const JOB_MAX: u64 = 4 << 30;

/// Bytes of a scenario, which may carry the files that it names.
const SCENARIO_MAX: u64 = 256 << 20;

/// The text of a scenario file. A pipe is read too, so that a shell may write `<(...)`.
///
/// # Errors
/// If it cannot be read, or is larger than any scenario.
pub(crate) fn read_scenario(path: &Path) -> io::Result<String> {
    plimsoll_files::read_text(path, Origin::Argument, SCENARIO_MAX)
}

/// Where a text that another file names begins with something else than one of `keys`: the number of that
/// line. Such a file is not meant for us, whatever it is, and no error may quote its content: a scenario that
/// includes `/etc/shadow` or a private key would print it.
pub(crate) fn foreign_start(text: &str, keys: &[&str]) -> Option<usize> {
    let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim).zip(1..);
    let mut lines = lines.filter(|(line, _)| !line.is_empty() && !line.starts_with('#'));
    let (first, number) = lines.next()?;
    let first = first.trim_start_matches('[').trim_start();
    let (quote, first) = match first.chars().next() {
        Some(quote @ ('"' | '\'')) => (Some(quote), &first[1..]),
        _ => (None, first),
    };
    let is_of_key = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let (key, rest) = first.split_at(first.find(|c| !is_of_key(c)).unwrap_or(first.len()));
    let rest = quote.map_or(Some(rest), |quote| rest.strip_prefix(quote));
    let goes_on = rest.is_some_and(|rest| rest.trim_start().starts_with(['=', '.', ']']));
    (!goes_on || !keys.contains(&key)).then_some(number)
}

/// The flags of the command line, as keys of the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct CommandLineKeys {
    /// `set`: the settings of the file, of the command line, and the seed.
    pub(crate) set: Option<Vec<String>>,
    /// The value of `replicates`, if the command line sets it.
    pub(crate) replicates: Option<u32>,
}

/// Returns a scenario with files in its table `files`, by the names that it has for them.
pub fn with_files(text: &str, files: &BTreeMap<String, String>) -> String {
    self_contained(text, &[], &CommandLineKeys::default(), files)
}

/// A scenario with flags and files put into its text. `places` are the places of the keys `set` and
/// `replicates` in it, which the keys of `flags` replace.
pub(crate) fn self_contained(
    text: &str,
    places: &[(&str, Range<usize>)],
    flags: &CommandLineKeys,
    files: &BTreeMap<String, String>,
) -> String {
    let mut head = String::new();
    let mut cuts: Vec<Range<usize>> = Vec::new();
    let mut put = |key: &str, value: String| {
        head.push_str(&format!("{key} = {value}\n"));
        let place = places.iter().find(|(known, _)| *known == key);
        cuts.extend(place.map(|(_, range)| range.clone()));
    };
    if let Some(set) = &flags.set {
        let items: String = set.iter().map(|item| format!("    {},\n", toml_string(item))).collect();
        put("set", format!("[\n{items}]"));
    }
    if let Some(replicates) = flags.replicates {
        put("replicates", replicates.to_string());
    }
    cuts.sort_by_key(|cut| cut.start);
    let mut out = head;
    let mut from = 0;
    for cut in cuts {
        out.push_str(&text[from..cut.start]);
        from = cut.end;
    }
    out.push_str(text[from..].trim_start_matches('\u{feff}'));
    for (name, text) in files {
        let end = if out.ends_with('\n') { "\n" } else { "\n\n" };
        out.push_str(&format!("{end}[files.{}]\ntext = {}\n", quoted_key(name), block(text)));
    }
    out
}

/// A text of several lines as TOML reads it back to the last byte.
fn block(text: &str) -> String {
    let plain = |c: char| !c.is_control() || c == '\n' || c == '\t';
    if text.chars().all(plain) && !text.contains("'''") && !text.ends_with('\'') {
        format!("'''\n{text}'''")
    } else {
        toml_string(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_ours_begins_with_a_key_of_ours() {
        let keys = ["version", "port"];
        let ours = [
            "",
            "# nothing\n",
            "version = 1",
            "\u{feff}\n # a\nversion=1",
            "[port.host]",
            "[[port]]",
            "port.host.buffer = 1",
            "\"port\".host.buffer = 1",
            "[ 'port' . x ]",
            "version = ",
        ];
        for text in ours {
            assert_eq!(foreign_start(text, &keys), None, "{text:?}");
        }
        let foreign = [
            ("root:$6$salt$hash:19000:0:99999:7:::", 1),
            ("\n-----BEGIN OPENSSH PRIVATE KEY-----\nversion = 1", 2),
            ("password = \"secret\"\nversion = 1", 1),
            ("port: 80", 1),
            ("version", 1),
            ("versions = 1", 1),
            ("\"version = 1", 1),
            ("{\"version\": 1}", 1),
            ("\u{0}", 1),
        ];
        for (text, line) in foreign {
            assert_eq!(foreign_start(text, &keys), Some(line), "{text:?}");
        }
    }
}
