//! A small, exact version of the reproduction, what its arms say in a fraction of a second, and the committed page.

use plimsoll_reproduce::{Journal, Options, Reproduction, reproduce, study};

use crate::common;

#[test]
fn an_idle_page_and_the_motivations_means_are_exact() {
    let rows = study("detail").measure_exact(1).expect("the shipped scenarios load");
    assert_eq!(rows.len(), 3 + 2);
    for row in rows {
        assert_eq!(row.within, Some(true), "{row:?}");
    }
}

fn tail(reproduction: &Reproduction, series: &str, x: &str) -> f64 {
    let is_it = |row: &&plimsoll_reproduce::StudyRow| {
        row.base == "source" && row.series == series && row.x == x && row.metric == "page_ms_p999"
    };
    reproduction.rows.iter().find(is_it).map_or(f64::NAN, |row| row.measured)
}

/// `load@0.1` measures 100 ms: 640 pages an arm.
#[test]
fn the_whole_stack_cuts_the_tail_and_push_back_alone_lengthens_it() {
    let only = vec!["load@0.1".parse().expect("any text is a part")];
    let options =
        Options { quick: true, threads: 2, seed: 1, servers: std::path::PathBuf::new(), only, commit: None };
    let made = reproduce(study("detail"), &options, &mut Journal::in_memory(), &|_, _, _| true);
    let made = made.expect("the shipped scenarios load");
    let of = |series| tail(&made, series, "0.1");
    assert!(of("DeTail") < 0.5 * of("baseline"), "{} {}", of("DeTail"), of("baseline"));
    assert!(of("push-back") > of("baseline"), "{} {}", of("push-back"), of("baseline"));
}

/// The goals of the study, on the committed page.
#[test]
fn every_claim_of_the_talk_is_on_the_committed_page() {
    let (_, reproduction) = common::committed(study("detail"));
    assert!(!reproduction.quick, "the committed page is of a full run");
    assert!(reproduction.missing.is_empty(), "{:?}", reproduction.missing);
    let judged = |metric: &str| {
        let is_it = |row: &&plimsoll_reproduce::StudyRow| row.metric == metric && row.within.is_some();
        reproduction.rows.iter().filter(is_it).count()
    };
    assert_eq!(judged("cut_percent"), 5 + 1);
    assert_eq!(judged("over_baseline"), 1);
    // Other readings of judged rows.
    assert_eq!((judged("over_evicting"), judged("cut_percent_of_evicting")), (0, 0));
}

#[test]
fn the_committed_page_is_what_the_committed_rows_give() {
    common::page_is_of_its_rows(study("detail"));
}

#[test]
fn every_committed_row_that_is_off_is_explained_or_an_open_question() {
    common::rows_that_are_off_are_told(study("detail"));
}
