//! A small version of the reproduction, and the committed page.

use plimsoll_reproduce::{Journal, Options, Reproduction, reproduce, study};

use crate::common;

fn made(parts: &[&str]) -> Reproduction {
    let only = parts.iter().map(|part| part.parse().expect("any text is a part")).collect();
    let options =
        Options { quick: true, threads: 2, seed: 1, servers: std::path::PathBuf::new(), only, commit: None };
    reproduce(study("solstice"), &options, &mut Journal::in_memory(), &|_, _, _| true)
        .expect("the schedulers run")
}

/// Both published sizes, Solstice's own rows.
#[test]
fn solstice_is_as_published_at_8_and_64_ports() {
    let made = made(&["fig4@8,64"]);
    let held: Vec<_> = made
        .rows
        .iter()
        .filter(|row| {
            (row.figure.as_str(), row.base.as_str()) == ("fig4", "source") && row.series == "Solstice"
        })
        .filter(|row| row.published.is_some())
        .collect();
    assert_eq!(held.len(), 8, "{held:#?}");
    assert!(held.iter().all(|row| row.within == Some(true)), "{held:#?}");
}

/// Whole days, as in the pseudo-code, leave the packet switch nothing to do where there are two configurations.
#[test]
fn cutting_the_last_day_is_what_uses_the_packet_switch() {
    let made = made(&["fig4@8"]);
    let of = |base: &str| {
        let is = |row: &&plimsoll_reproduce::StudyRow| {
            row.base == base && row.series == "Solstice" && row.metric == "packet_util_pct"
        };
        made.rows.iter().find(is).expect("there is a row").measured
    };
    assert!(of("source") > 80.0 && of("standard") < 5.0, "{} and {}", of("source"), of("standard"));
}

/// A solver's optimum is not longer than Solstice's schedule of the same demand, and hardly shorter.
#[test]
fn solved_demands_have_their_optimum() {
    let rows = study("solstice").measure_exact(1).expect("there is no scenario to load");
    let of_solstice: Vec<_> = rows.iter().filter(|row| row.metric == "over_optimum_pct").collect();
    assert!(!of_solstice.is_empty());
    for row in of_solstice {
        assert!((-0.001..14.0).contains(&row.measured), "{row:#?}");
    }
}

#[test]
fn the_committed_page_is_what_the_committed_rows_give() {
    common::page_is_of_its_rows(study("solstice"));
}

#[test]
fn every_committed_row_that_is_off_is_explained_or_an_open_question() {
    let (_, reproduction) = common::committed(study("solstice"));
    assert!(!reproduction.quick, "the committed page is of a full run");
    common::rows_that_are_off_are_told(study("solstice"));
}
