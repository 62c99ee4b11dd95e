//! Checks the form of the repository's English: the width of its lines, and doc comments that are too short to say
//! anything. The content of sentences is for reviews.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The most characters of a line of Rust or of Markdown prose.
const COLUMNS: usize = 120;
/// The most characters of a doc comment that counts as short, such as `/// Which.`.
const SHORT: usize = 20;
/// The most short doc comments of the whole repository.
const SHORT_MAX: usize = 50;
/// Paths, by their beginnings, that are not judged: pages that a program writes from the texts under `studies/`, a
/// paragraph a line, and these texts.
const GENERATED: &[&str] = &["docs/reproductions/", "studies/"];

/// A line of a file, with its number counted from 1.
struct Line<'t> {
    number: usize,
    text: &'t str,
}

impl Line<'_> {
    /// Returns the line's place for a message: file, number and text.
    fn of(&self, file: &str) -> (String, usize, String) {
        (file.to_owned(), self.number, self.text.to_owned())
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the files of the repository with this extension, and their contents.
fn files(extension: &str) -> Vec<(String, String)> {
    let listed = Command::new("git").args(["ls-files", "-z"]).current_dir(root()).output().unwrap();
    assert!(listed.status.success(), "git ls-files: {}", String::from_utf8_lossy(&listed.stderr));
    let names = String::from_utf8(listed.stdout).unwrap();
    let named =
        names.split('\0').filter(|name| Path::new(name).extension().is_some_and(|is| is == extension));
    // A file may be removed in the work tree and still be listed.
    named.filter_map(|name| Some((name.to_owned(), fs::read_to_string(root().join(name)).ok()?))).collect()
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> {
    text.lines().enumerate().map(|(index, text)| Line { number: index + 1, text })
}

/// Returns the prose of a Markdown text: no code blocks, no rows of tables.
fn prose(text: &str) -> Vec<Line<'_>> {
    let mut fence: Option<&str> = None;
    let mut found = Vec::new();
    for line in lines(text) {
        let start = line.text.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| start.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            (Some(_), _) => {}
            (None, None) if start.starts_with('|') => {}
            (None, None) => found.push(line),
        }
    }
    found
}

/// Returns whether a line is too wide, and not because of a URL, which cannot be broken.
fn is_wide(line: &str) -> bool {
    let width = |text: &str| text.chars().count();
    width(line) > COLUMNS
        && !line.split_whitespace().any(|word| word.contains("://") && width(word) > COLUMNS / 2)
}

/// Returns the doc comments of one line with at most [`SHORT`] characters.
fn short_comments(text: &str) -> Vec<Line<'_>> {
    let content = |line: &str| {
        let line = line.trim_start();
        line.strip_prefix("///").or_else(|| line.strip_prefix("//!")).map(|rest| rest.trim().chars().count())
    };
    let all: Vec<Line<'_>> = lines(text).collect();
    let is_comment = |index: Option<usize>| {
        index.and_then(|index| all.get(index)).is_some_and(|line| content(line.text).is_some())
    };
    let mut found = Vec::new();
    for (index, line) in all.iter().enumerate() {
        let alone = !is_comment(index.checked_sub(1)) && !is_comment(Some(index + 1));
        if alone && content(line.text).is_some_and(|length| length <= SHORT) {
            found.push(Line { number: line.number, text: line.text });
        }
    }
    found
}

/// Returns the number of places in files that people write, and lists them.
fn judged(places: Vec<(String, usize, String)>) -> (usize, String) {
    let (mut count, mut list) = (0, String::new());
    for (file, number, text) in places {
        if !GENERATED.iter().any(|start| file.starts_with(start)) {
            count += 1;
            let _ = writeln!(list, "{file}:{number}: {}", text.trim());
        }
    }
    (count, list)
}

#[test]
fn no_line_is_wider_than_120_columns() {
    let mut wide = Vec::new();
    for (file, text) in files("rs") {
        wide.extend(lines(&text).filter(|line| is_wide(line.text)).map(|line| line.of(&file)));
    }
    for (file, text) in files("md") {
        wide.extend(prose(&text).into_iter().filter(|line| is_wide(line.text)).map(|line| line.of(&file)));
    }
    let (count, list) = judged(wide);
    assert!(count == 0, "{count} lines are wider than {COLUMNS} columns; break them:\n{list}");
}

#[test]
fn doc_comments_are_sentences() {
    let mut short = Vec::new();
    for (file, text) in files("rs") {
        short.extend(short_comments(&text).into_iter().map(|line| line.of(&file)));
    }
    let (count, list) = judged(short);
    assert!(
        count <= SHORT_MAX,
        "{count} doc comments have {SHORT} characters or fewer, {SHORT_MAX} may; say what each thing is or does, or \
         allow missing_docs on a field whose name says it all:\n{list}"
    );
}

#[test]
fn prose_and_short_comments_are_found() {
    let text = "# Head\n| a | row |\n```text\ncode\n```\nprose\n";
    let found: Vec<usize> = prose(text).iter().map(|line| line.number).collect();
    assert_eq!(found, [1, 6]);
    let rust = "/// Which.\nfn a() {}\n/// One of two lines,\n/// short.\nfn b() {}\n    //! Head.\n";
    let found: Vec<usize> = short_comments(rust).iter().map(|line| line.number).collect();
    assert_eq!(found, [1, 6]);
    assert!(is_wide(&"x".repeat(121)) && !is_wide(&"x".repeat(120)));
    assert!(!is_wide(&format!("see https://example.org/{}", "x".repeat(120))));
}
