//! BulletTrains' study as far as it goes: a short run of the patterns, and the committed page.

use plimsoll_reproduce::{Journal, Options, reproduce, study};

use crate::common;

#[test]
fn bursts_of_all_to_all_traffic_are_segments_of_the_offload() {
    let only = vec!["fig3.2@on".parse().expect("any text is a part")];
    let servers = std::path::PathBuf::new();
    let options = Options { quick: true, threads: 2, seed: 1, servers, only, commit: None };
    let made = reproduce(study("bullettrains"), &options, &mut Journal::in_memory(), &|_, _, _| true);
    let made = made.expect("the shipped scenarios load");
    let is_median =
        |row: &&plimsoll_reproduce::StudyRow| row.series == "all-to-all" && row.metric == "data_burst_p50";
    let median = made.rows.iter().find(is_median).map_or(f64::NAN, |row| row.measured);
    // 64 KB are 44 packets of 1460 B.
    assert!((median - 44.0).abs() < 1.0, "{median}");
}

#[test]
fn the_committed_page_is_what_the_committed_rows_give() {
    common::page_is_of_its_rows(study("bullettrains"));
}

#[test]
fn every_committed_row_that_is_off_is_told() {
    assert!(!common::committed(study("bullettrains")).1.quick, "the committed page is of a full run");
    common::rows_that_are_off_are_told(study("bullettrains"));
}
