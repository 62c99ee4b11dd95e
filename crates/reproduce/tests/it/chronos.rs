//! A small, exact version of the reproduction, who is better in it, and the committed page.

use plimsoll_reproduce::{Journal, Options, Reproduction, reproduce, study};

use crate::common;

#[test]
fn percentiles_and_expected_maxima_are_exact() {
    let rows = study("chronos").measure_exact(1).expect("there is no scenario to load");
    assert_eq!(rows.len(), 5);
    for row in rows {
        assert_eq!(row.within, Some(true), "{row:?}");
    }
}

fn made(parts: &[&str]) -> Reproduction {
    let only = parts.iter().map(|part| part.parse().expect("any text is a part")).collect();
    let options =
        Options { quick: true, threads: 2, seed: 1, servers: std::path::PathBuf::new(), only, commit: None };
    reproduce(study("chronos"), &options, &mut Journal::in_memory(), &|_, _, _| true).expect("the models fit")
}

fn value(reproduction: &Reproduction, of: [&str; 4]) -> f64 {
    let is = |row: &&plimsoll_reproduce::StudyRow| {
        row.base == "source" && [&row.figure, &row.series, &row.x, &row.metric].map(String::as_str) == of
    };
    reproduction.rows.iter().find(is).unwrap_or_else(|| panic!("no row {of:?}")).measured
}

/// The published values that parameters are taken from, and one that they are not.
#[test]
fn one_lock_explains_its_rate_its_waiting_and_its_contention() {
    let made = made(&["lock@40"]);
    let of = |metric| value(&made, ["lock", "MC", "40", metric]);
    assert!((of("requests_per_s") / 120_000.0 - 1.0).abs() < 0.05, "{}", of("requests_per_s"));
    assert!((of("waiting_percent") / 33.3 - 1.0).abs() < 0.1, "{}", of("waiting_percent"));
    assert!(of("contended_percent") > 50.0, "{}", of("contended_percent"));
}

#[test]
fn the_model_of_a_server_waits_as_eq_4_2_says() {
    let made = made(&["fig4.3@0.5"]);
    for series in ["sd 1", "sd 2"] {
        let of = |metric| value(&made, ["fig4.3", series, "0.5", metric]);
        let over = of("wait_us_simulated") / of("wait_us_exact");
        assert!((over - 1.0).abs() < 0.15, "{series}: {over}");
    }
}

#[test]
fn steering_follows_hot_keys_the_faster_the_better() {
    let made = made(&["fig6.7@10"]);
    let of = |series| value(&made, ["fig6.7", series, "10", "latency_us_p99"]);
    assert!(of("10 us") < of("100 us"), "{} {}", of("10 us"), of("100 us"));
    assert!(of("100 us") < 0.1 * of("static"), "{} {}", of("100 us"), of("static"));
}

/// The same seed gives the same rows on any number of cores.
#[test]
fn tasks_do_not_depend_on_the_number_of_cores() {
    let at = |threads| {
        let only = vec!["fig6.2@20".parse().expect("any text is a part")];
        let options =
            Options { quick: true, threads, seed: 7, servers: std::path::PathBuf::new(), only, commit: None };
        reproduce(study("chronos"), &options, &mut Journal::in_memory(), &|_, _, _| true)
            .expect("the models fit")
    };
    assert_eq!(at(1), at(3));
}

#[test]
fn the_committed_page_is_what_the_committed_rows_give() {
    common::page_is_of_its_rows(study("chronos"));
}

#[test]
fn every_committed_row_that_is_off_is_explained_or_an_open_question() {
    let (_, reproduction) = common::committed(study("chronos"));
    assert!(!reproduction.quick, "the committed page is of a full run");
    assert!(reproduction.missing.is_empty(), "{:?}", reproduction.missing);
    common::rows_that_are_off_are_told(study("chronos"));
}
