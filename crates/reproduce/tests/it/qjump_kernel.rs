//! QJump between network namespaces: its scenarios, and the committed page.

use plimsoll_reproduce::QJUMP_KERNEL;

use crate::common;

#[test]
fn the_committed_page_is_what_the_committed_rows_give() {
    common::page_is_of_its_rows(&QJUMP_KERNEL);
}

#[test]
fn every_committed_row_that_is_off_is_explained() {
    assert!(!common::committed(&QJUMP_KERNEL).1.quick, "the committed page is of a full run");
    common::rows_that_are_off_are_told(&QJUMP_KERNEL);
}

/// Where nothing queues, frames have no wait beside which their lateness would be small: such rows are held to nothing.
#[test]
fn no_committed_number_that_is_held_is_of_a_machine_that_was_too_slow() {
    let (_, reproduction) = common::committed(&QJUMP_KERNEL);
    let held: Vec<_> = reproduction.rows.iter().filter(|row| row.suspect && row.within.is_some()).collect();
    assert!(held.is_empty(), "{held:#?}");
}
