//! Shared code of the tests of studies: the committed pages, and the programs of real servers.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_reproduce::{Journal, Options, Reproduction, Study, keep, page, reproduce};

/// The folder of the pages, and the rows of the study's page.
pub fn committed(study: &Study) -> (PathBuf, Reproduction) {
    let folder = folder();
    let rows = fs::read_to_string(folder.join(&study.id).join("rows.json")).expect("the rows are committed");
    (folder, serde_json::from_str(&rows).expect("the rows are a reproduction"))
}

/// The folder of this build's programs, if this machine has all that a study of real servers needs.
pub fn servers() -> Option<PathBuf> {
    let test = std::env::current_exe().expect("a program has a path");
    let folder = test.ancestors().nth(2).expect("tests are in a folder of the build's").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let skip = |why: &str| {
        plimsoll_testing::skipped!("{why}");
        None
    };
    if !std::env::split_paths(&path).any(|folder| folder.join("memcached").is_file()) {
        return skip("memcached is not installed (Debian's package memcached)");
    }
    if std::thread::available_parallelism().map_or(1, Into::into) < 2 {
        return skip("a server and its clients need two processors");
    }
    if !folder.join("chronos-memcached").is_file() {
        return skip(
            "chronos-memcached is not built; `cargo build -p plimsoll-chronos-memcached` does, as do the \
                     workspace's tests",
        );
    }
    Some(folder)
}

/// A journal that is filled from the rows of a page alone gives that page, without a run of `part`. Returns the page,
/// and the options.
pub fn is_kept_without_its_journal(study: &'static Study, part: &str) -> (Reproduction, Options) {
    let earlier = committed(study).1;
    let only = vec![part.parse().expect("any text is a part")];
    let (seed, servers) = (earlier.seed, PathBuf::new());
    let options = Options { quick: false, threads: 1, seed, only, servers, commit: None };
    let mut journal = Journal::in_memory();
    keep(study, &options, &mut journal, &earlier).expect("every row is of a point");
    let made = reproduce(study, &options, &mut journal, &|_, _, _| panic!("nothing is left to run"));
    let made = made.expect("the scenarios load");
    assert_eq!((&made.rows, made.packet_hops), (&earlier.rows, earlier.packet_hops));
    (earlier, options)
}

/// The page and its figures follow from the rows.
pub fn page_is_of_its_rows(study: &Study) {
    let mut reproduction = committed(study).1;
    reproduction.settle(study);
    for (name, text) in page::files(study, &reproduction) {
        is_kept(&name, &text, &study.id);
    }
}

/// A file of the pages is this text; with `UPDATE` set it is written first.
pub fn is_kept(name: &str, text: &str, test: &str) {
    let file = folder().join(name);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&file, text).expect("the page can be written");
    }
    assert!(
        fs::read_to_string(&file).unwrap_or_default() == text,
        "docs/reproductions/{name} is out of date; run `UPDATE=1 cargo test -p plimsoll-reproduce --test it {test}`"
    );
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproductions")
}

/// A row that is off has an explanation or is an open question.
pub fn rows_that_are_off_are_told(study: &Study) {
    let (_, reproduction) = committed(study);
    let is_told = |row: &_| study.explanation(row).is_some() || study.open_question(row).is_some();
    let untold: Vec<_> = reproduction.rows.iter().filter(|row| row.is_off() && !is_told(row)).collect();
    assert!(untold.is_empty(), "{untold:#?}");
}
