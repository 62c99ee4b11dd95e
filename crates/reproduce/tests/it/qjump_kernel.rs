//! QJump between network namespaces: its scenarios, and the committed page.

use plimsoll_reproduce::{Journal, ReproduceError, keep, study};

use crate::common;

#[test]
fn the_committed_page_is_what_the_committed_rows_give() {
    common::page_is_of_its_rows(study("qjump-kernel"));
}

#[test]
fn every_committed_row_that_is_off_is_explained() {
    assert!(!common::committed(study("qjump-kernel")).1.quick, "the committed page is of a full run");
    common::rows_that_are_off_are_told(study("qjump-kernel"));
}

/// Where nothing queues, frames have no wait beside which their lateness would be small: such rows are held to nothing.
#[test]
fn no_committed_number_that_is_held_is_of_a_machine_that_was_too_slow() {
    let (_, reproduction) = common::committed(study("qjump-kernel"));
    let held: Vec<_> = reproduction.rows.iter().filter(|row| row.suspect && row.within.is_some()).collect();
    assert!(held.is_empty(), "{held:#?}");
}

/// The page's journal is not committed: its runs are known from its rows.
#[test]
fn the_runs_of_a_page_are_kept_without_its_journal() {
    let (mut of_another, options) = common::is_kept_without_its_journal(study("qjump-kernel"), "fig6");
    of_another.rows[0].x = "nowhere".to_owned();
    let kept = keep(study("qjump-kernel"), &options, &mut Journal::in_memory(), &of_another);
    assert!(matches!(kept, Err(ReproduceError::Keep(1))), "{kept:?}");
}
