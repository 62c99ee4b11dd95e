//! A run that is stopped goes on where it was, and the committed page is what its rows give.

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use plimsoll_reproduce::{Journal, Options, Part, QJUMP, ReproduceError, page, reproduce};

mod common;

#[test]
fn idle_times_mean_sizes_and_the_bound_are_exact() {
    let rows = QJUMP.measure_exact(1).expect("the shipped scenarios load");
    assert_eq!(rows.len(), 4 * 5 + 2 + 1);
    for row in rows {
        assert_eq!(row.within, Some(true), "{row:?}");
    }
}

fn options(only: &[&str]) -> Options {
    let part = |text: &&str| text.parse::<Part>().expect("any text is a part");
    Options { quick: true, threads: 1, seed: 1, only: only.iter().map(part).collect() }
}

fn journal(path: &Path) -> Journal {
    Journal::open(path).expect("the folder can be written to")
}

#[test]
fn what_was_stopped_after_one_run_goes_on_with_the_next() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("journal.jsonl");
    let options = options(&["fig11@0.5,1"]);
    let stopped = reproduce(&QJUMP, &options, &mut journal(&path), &|done, of, _| (done, of) == (0, 6));
    assert!(matches!(stopped, Err(ReproduceError::Batch(_))), "{stopped:?}");
    let lines = || fs::read_to_string(&path).expect("there is a journal").lines().count();
    assert_eq!(lines(), 1);

    let runs = AtomicUsize::new(0);
    let note = |_: usize, of: usize, _: u64| {
        runs.store(of, Ordering::Relaxed);
        true
    };
    let resumed = reproduce(&QJUMP, &options, &mut journal(&path), &note).expect("it goes on");
    assert_eq!((runs.into_inner(), lines()), (5, 6));

    let again = reproduce(&QJUMP, &options, &mut journal(&path), &|_, _, _| panic!("nothing is to be run"));
    assert_eq!(again.expect("it is all there"), resumed);
    let whole = reproduce(&QJUMP, &options, &mut Journal::in_memory(), &|_, _, _| true);
    assert_eq!(whole.expect("it runs"), resumed);

    // Not one packet above the bound; and what was not asked for is named.
    let within = || resumed.rows.iter().filter(|row| row.metric == "within_bound_percent");
    assert_eq!(within().count(), 6);
    let framed = |row: &&plimsoll_reproduce::Row| row.series == "even-framed";
    assert!(within().filter(|row| !framed(row)).all(|row| row.within == Some(true)));
    let text = &page::files(&QJUMP, &resumed)["qjump.md"];
    assert!(text.contains("> Not run yet: fig11, source: bucket at 2,"), "{text}");
}

#[test]
fn a_figure_or_point_that_is_not_there_is_an_error_with_what_is() {
    let error = |only: &str| {
        let made = reproduce(&QJUMP, &options(&[only]), &mut Journal::in_memory(), &|_, _, _| true);
        made.expect_err("there is no such part").to_string()
    };
    assert_eq!(error("fig10"), "there is no fig10; there is fig9, fig9-datamining, fig11");
    assert_eq!(error("fig9-datamining@1"), "there is no fig9-datamining at 1; there is 0.2, 0.5, 0.8");
}

#[test]
fn the_committed_page_is_what_the_committed_rows_give() {
    common::page_is_of_its_rows(&QJUMP);
}

#[test]
fn every_committed_row_that_is_off_is_explained_or_an_open_question() {
    common::rows_that_are_off_are_told(&QJUMP);
}
