//! [`Files`]: what a scenario reads beside itself, from the disk or from its own table `files`; and
//! the text that needs no other file.
//!
//! Files are embedded under the names that the scenario has for them, and nothing is merged: the
//! text keeps its comments, and a phantom queue still knows which marking lies in a file below it.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;

use crate::node::{quoted_key, toml_string};

/// Reads files by the names that a scenario has for them. Each is read once, so all points of a
/// scenario see the same text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files {
    /// Names are relative to this folder.
    base_dir: PathBuf,
    embedded: BTreeMap<String, String>,
    read: RefCell<BTreeMap<String, String>>,
}

impl Files {
    pub(crate) fn new(base_dir: PathBuf) -> Files {
        Files { base_dir, ..Files::default() }
    }

    /// Adds a text of the table `files`; one that is there already stays.
    pub(crate) fn embed(&mut self, name: String, text: String) {
        self.embedded.entry(name).or_insert(text);
    }

    /// The text of a file.
    pub(crate) fn read(&self, name: &str) -> io::Result<String> {
        if let Some(text) = self.embedded.get(name) {
            return Ok(text.clone());
        }
        if let Some(text) = self.read.borrow().get(name) {
            return Ok(text.clone());
        }
        let text = std::fs::read_to_string(self.base_dir.join(name))?;
        self.read.borrow_mut().insert(name.to_owned(), text.clone());
        Ok(text)
    }

    /// What tells whether two names mean the same file: its path, or for an embedded one its name.
    pub(crate) fn identity(&self, name: &str) -> PathBuf {
        if self.embedded.contains_key(name) {
            return PathBuf::from("[files]").join(name);
        }
        let path = self.base_dir.join(name);
        path.canonicalize().unwrap_or(path)
    }

    /// The files that were read from the disk.
    pub(crate) fn into_read(self) -> BTreeMap<String, String> {
        self.read.into_inner()
    }
}

/// What the command line asked for, as keys of the file.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Flags {
    /// `set`: those of the file, those of the command line, and the seed.
    pub(crate) set: Option<Vec<String>>,
    /// `replicates`.
    pub(crate) replicates: Option<u32>,
}

/// A scenario with flags and files put into its text. `places` are those of the keys `set` and
/// `replicates` in it, which make way for those of `flags`.
pub(crate) fn self_contained(
    text: &str,
    places: &[(&str, Range<usize>)],
    flags: &Flags,
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
