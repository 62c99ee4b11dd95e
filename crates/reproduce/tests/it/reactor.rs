//! REACToR's study as far as it goes: a short run of a day's load, and the committed page.

use plimsoll_reproduce::{Journal, Options, reproduce, study};

use crate::common;

#[test]
fn bursts_fill_a_day_of_500_us() {
    let only = vec!["fig7.3a@500".parse().expect("any text is a part")];
    let servers = std::path::PathBuf::new();
    let options = Options { quick: true, threads: 2, seed: 1, servers, only, commit: None };
    let made = reproduce(study("reactor"), &options, &mut Journal::in_memory(), &|_, _, _| true);
    let made = made.expect("the shipped scenarios load");
    let is_median = |row: &&plimsoll_reproduce::StudyRow| {
        row.series == "as-described" && row.x == "500" && row.metric == "burst_us_p50"
    };
    let median = made.rows.iter().find(is_median).map_or(f64::NAN, |row| row.measured);
    // A packet of 1.2 us that has begun by the evening is sent to its end.
    assert!((495.0..=501.2).contains(&median), "{median}");
}

#[test]
fn the_committed_page_is_what_the_committed_rows_give() {
    common::page_is_of_its_rows(study("reactor"));
}

#[test]
fn every_committed_row_that_is_off_is_told() {
    assert!(!common::committed(study("reactor")).1.quick, "the committed page is of a full run");
    common::rows_that_are_off_are_told(study("reactor"));
}
