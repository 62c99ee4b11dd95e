//! DeTail between network namespaces: its scenarios, and the committed page.

use plimsoll_reproduce::study;

use crate::common;

#[test]
fn the_committed_page_is_what_the_committed_rows_give() {
    common::page_is_of_its_rows(study("detail-kernel"));
}

#[test]
fn every_committed_row_that_is_off_is_explained() {
    assert!(!common::committed(study("detail-kernel")).1.quick, "the committed page is of a full run");
    common::rows_that_are_off_are_told(study("detail-kernel"));
}

/// A figure of it has further rows of its runs, at places of the axis that no run has.
#[test]
fn the_runs_of_a_page_are_kept_without_its_journal() {
    common::is_kept_without_its_journal(study("detail-kernel"), "pages");
}

#[test]
fn no_committed_row_is_of_a_machine_that_was_too_slow() {
    let (_, reproduction) = common::committed(study("detail-kernel"));
    let suspect: Vec<_> = reproduction.rows.iter().filter(|row| row.suspect).collect();
    assert!(suspect.is_empty(), "{suspect:#?}");
}
