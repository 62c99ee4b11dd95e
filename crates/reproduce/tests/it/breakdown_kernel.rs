//! Real servers that are traced for a few seconds, and the committed page.

use std::path::Path;

use plimsoll_reproduce::{Journal, Options, Reproduction, reproduce, study};

use crate::common;

fn look(part: &str, servers: &Path) -> Result<Reproduction, String> {
    let only = vec![part.parse().expect("any text is a part")];
    let options =
        Options { quick: true, threads: 1, seed: 1, only, servers: servers.to_owned(), commit: None };
    let made = reproduce(study("breakdown-kernel"), &options, &mut Journal::in_memory(), &|_, _, _| true);
    made.map_err(|error| error.to_string())
}

/// Measures a point; none where this machine or this build lacks what that needs.
fn measured(part: &str) -> Option<Reproduction> {
    match look(part, &common::servers()?) {
        Err(error) => {
            let lacks = [
                "without the eBPF programs",
                "need root",
                "needs root",
                "is not installed",
                "there is no ",
                "eBPF is not available",
            ];
            assert!(lacks.iter().any(|why| error.contains(why)), "{error}");
            plimsoll_testing::skipped!("{error}");
            None
        }
        Ok(made) => Some(made),
    }
}

/// Returns a number of the figure that was measured.
fn of(made: &Reproduction, figure: &str, series: &str, metric: &str) -> f64 {
    let mut rows =
        made.rows.iter().filter(|row| (row.figure.as_str(), row.base.as_str()) == (figure, "kernel"));
    let row = rows.find(|row| (row.series.as_str(), row.metric.as_str()) == (series, metric));
    row.unwrap_or_else(|| panic!("no {metric} of {series}")).measured
}

#[test]
fn the_parts_of_requests_are_traced_and_set_beside_table_5_1() {
    let Some(made) = measured("parts@30") else { return };
    for series in ["MC", "CH"] {
        let of = |metric: &str| of(&made, "parts", series, metric);
        assert!(of("requests_matched") > 100.0, "{series}");
        // On a busy machine requests meet in the socket's queue, and most of them cannot be distinguished.
        assert!((0.0..100.0).contains(&of("unmatched_percent")), "{series}: {}", of("unmatched_percent"));
        // The rest to 100 % is between packets, where the peer waits for a processor; each request's parts are
        // held to its latency where they are made.
        for metric in ["kernel_percent", "application_percent", "remainder_percent"] {
            assert!((0.0..=100.0).contains(&of(metric)), "{series}: {metric} {}", of(metric));
        }
        assert!(of("kernel_us_p50") <= of("kernel_us_p99"), "{series}");
        assert!(of("application_us_mean") > 0.0 && of("send_us_mean") > 0.0, "{series}");
        assert!(of("serialisation_us") > 0.5, "{series}: 1 KB takes longer at 10 Gb/s");
    }
    let row = made.rows.iter().find(|row| {
        (row.figure.as_str(), row.series.as_str(), row.metric.as_str()) == ("table5.1", "MC at 30", "us_mean")
            && row.x == "application"
    });
    let row = row.unwrap_or_else(|| panic!("{:#?}", made.rows));
    assert_eq!(row.measured, of(&made, "parts", "MC", "application_us_mean"));
}

#[test]
fn locks_are_counted_where_the_server_calls_the_c_library() {
    let Some(made) = measured("locks@20") else { return };
    let of = |series: &str, metric: &str| of(&made, "locks", series, metric);
    // A get takes the lock of its item, and that of its thread's counts.
    assert!(of("MC 4T", "acquisitions_per_request") > 1.5);
    for metric in ["contended_percent", "waiting_percent", "asleep_percent"] {
        assert!((0.0..=100.0).contains(&of("MC 4T", metric)), "{metric}");
    }
    assert!(of("global lock 4T", "futex_sleeps_per_request") >= 0.0);
    let counted = made.rows.iter().filter(|row| row.metric == "contended_percent" && row.figure == "locks");
    assert!(counted.map(|row| row.series.as_str()).eq(["MC 4T"]), "our servers have no such locks to count");
    // Four threads do not have a processor each where there are two.
    assert!(made.rows.iter().filter(|row| row.figure == "locks").all(|row| row.suspect));
}

#[test]
fn the_committed_page_is_what_the_committed_rows_give() {
    common::page_is_of_its_rows(study("breakdown-kernel"));
}

#[test]
fn every_committed_row_that_is_off_is_explained() {
    assert!(!common::committed(study("breakdown-kernel")).1.quick, "the committed page is of a full run");
    common::rows_that_are_off_are_told(study("breakdown-kernel"));
}
