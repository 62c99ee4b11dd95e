//! A small, exact version of the reproduction, and the committed page.

use std::fs;
use std::path::Path;

use plimsoll_reproduce::{HULL, Reproduction, page};

#[test]
fn exact_completion_times_are_those_of_the_raw_data() {
    let rows = HULL.measure_exact(1).expect("the shipped scenarios load");
    assert_eq!(rows.len(), 8);
    for row in rows {
        assert_eq!(row.within, Some(true), "{row:?}");
    }
}

fn committed() -> (std::path::PathBuf, Reproduction) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reproductions");
    let rows = fs::read_to_string(folder.join("hull/rows.json")).expect("the rows are committed");
    (folder, serde_json::from_str(&rows).expect("the rows are a reproduction"))
}

#[test]
fn the_committed_page_is_what_the_committed_rows_give() {
    let (folder, reproduction) = committed();
    for (name, text) in page::files(&HULL, &reproduction) {
        if std::env::var_os("UPDATE").is_some() {
            fs::write(folder.join(&name), &text).expect("the page can be written");
        }
        let kept = fs::read_to_string(folder.join(&name)).unwrap_or_default();
        assert!(
            kept == text,
            "docs/reproductions/{name} is out of date; \
             run `UPDATE=1 cargo test -p plimsoll-reproduce --test hull`"
        );
    }
}

#[test]
fn every_committed_row_that_is_off_is_explained_or_an_open_question() {
    let (_, reproduction) = committed();
    assert!(!reproduction.quick, "the committed page is of a full run");
    let untold: Vec<_> = reproduction
        .rows
        .iter()
        .filter(|row| row.is_off() && HULL.explanation(row).is_none() && HULL.open_question(row).is_none())
        .collect();
    assert!(untold.is_empty(), "{untold:#?}");
}
