//! A small, exact version of the reproduction, and the committed page.

use plimsoll_reproduce::study;

use crate::common;

#[test]
fn exact_completion_times_are_those_of_the_raw_data() {
    let rows = study("hull").measure_exact(1).expect("the shipped scenarios load");
    let (exact, draws): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row.figure == "oracles");
    assert_eq!((exact.len(), draws.len()), (8, 3));
    for row in exact {
        assert_eq!(row.within, Some(true), "{row:?}");
    }
}

#[test]
fn the_committed_page_is_what_the_committed_rows_give() {
    common::page_is_of_its_rows(study("hull"));
}

#[test]
fn every_committed_row_that_is_off_is_explained_or_an_open_question() {
    assert!(!common::committed(study("hull")).1.quick, "the committed page is of a full run");
    common::rows_that_are_off_are_told(study("hull"));
}
