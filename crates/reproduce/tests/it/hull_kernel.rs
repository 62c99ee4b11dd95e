//! HULL between network namespaces: its scenarios, and the committed page.

use plimsoll_reproduce::study;

use crate::common;

#[test]
fn the_committed_page_is_what_the_committed_rows_give() {
    common::page_is_of_its_rows(study("hull-kernel"));
}

#[test]
fn every_committed_row_that_is_off_is_explained() {
    assert!(!common::committed(study("hull-kernel")).1.quick, "the committed page is of a full run");
    common::rows_that_are_off_are_told(study("hull-kernel"));
}

#[test]
fn no_committed_row_is_of_a_machine_that_was_too_slow() {
    let (_, reproduction) = common::committed(study("hull-kernel"));
    let suspect: Vec<_> = reproduction.rows.iter().filter(|row| row.suspect).collect();
    assert!(suspect.is_empty(), "{suspect:#?}");
}
