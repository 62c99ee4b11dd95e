//! Real servers for a few seconds, the errors where they are missing, and the committed page.

use std::path::Path;

use plimsoll_reproduce::{Journal, Options, Reproduction, StudyRow, reproduce, study};

use crate::common;

fn look(part: &str, servers: &Path) -> Result<Reproduction, String> {
    let only = vec![part.parse().expect("any text is a part")];
    let options =
        Options { quick: true, threads: 1, seed: 1, only, servers: servers.to_owned(), commit: None };
    let made = reproduce(study("chronos-kernel"), &options, &mut Journal::in_memory(), &|_, _, _| true);
    made.map_err(|error| error.to_string())
}

#[test]
fn servers_take_turns_and_every_value_is_verified() {
    let Some(servers) = common::servers() else { return };
    let made = look("fig6.4@40", &servers).expect("both servers answer");
    let of = |series: &str, metric: &str| {
        let is = |row: &&StudyRow| (row.series.as_str(), row.metric.as_str()) == (series, metric);
        let row = made.rows.iter().find(is).unwrap_or_else(|| panic!("no {metric} of {series}"));
        assert_eq!((row.figure.as_str(), row.base.as_str(), row.x.as_str()), ("fig6.4", "kernel", "40"));
        assert!(row.measured.is_finite() && row.measured > 0.0, "{row:?}");
        row.measured
    };
    for series in ["MC", "CH", "MC 2T", "CH 2T"] {
        let [mean, p50, p99] =
            ["latency_us_mean", "latency_us_p50", "latency_us_p99"].map(|metric| of(series, metric));
        assert!(p50 <= p99 && mean > 0.0, "{series}: {p50} {p99}");
        of(series, "server_us_per_request");
        // Nine of ten requests read a value, in a turn of 150 ms and the 50 ms before it; on a busy machine in longer.
        let read = of(series, "values_verified") / (of(series, "requests_per_s") * 0.2);
        assert!(read > 0.3, "{series}: {read}");
    }
    for series in ["CH", "CH 2T"] {
        for metric in ["mean_of_first", "p99_of_first", "rate_of_first", "cost_of_first"] {
            of(series, metric);
        }
    }
    assert_eq!(made.rows.len(), 4 * 6 + 2 * 4, "nothing is simulated of a machine that nothing is known of");
    assert!(made.missing.iter().all(|[figure, base, ..]| figure != "fig6.4" || base == "kernel"));
}

/// Over UDP between namespaces, through the kernel's stack and past it; root, `ip` and eBPF are needed.
#[test]
fn datagrams_past_the_kernels_stack_are_answered_and_verified() {
    let Some(servers) = common::servers() else { return };
    let made = match look("udp@saturation", &servers) {
        Err(error) => {
            let lacks =
                ["need root", "is not installed", "cannot bypass", "there is no ", "eBPF is not available"];
            assert!(lacks.iter().any(|why| error.contains(why)), "{error}");
            plimsoll_testing::skipped!("{error}");
            return;
        }
        Ok(made) => made,
    };
    let of = |series: &str, metric: &str| {
        let is = |row: &&StudyRow| (row.series.as_str(), row.metric.as_str()) == (series, metric);
        made.rows.iter().find(is).unwrap_or_else(|| panic!("no {metric} of {series}")).measured
    };
    for series in ["MC UDP", "CH UDP", "CH AF_XDP", "MC UDP 2T", "CH UDP 2T", "UNet locks 2T", "Chronos 2T"] {
        assert!(of(series, "values_verified") > 100.0, "{series}");
        assert!(of(series, "server_us_per_request") > 0.0, "{series}");
    }
    for metric in ["p99_of_first", "cost_of_first", "p99_of_locks", "cost_of_locks"] {
        assert!(of("Chronos 2T", metric) > 0.0, "{metric}");
    }
    // The network is gone with the run.
    let own = format!("plimsoll-p{:x}", std::process::id());
    let mut namespaces = std::fs::read_dir("/run/netns").into_iter().flatten().flatten();
    assert!(!namespaces.any(|entry| entry.file_name().to_string_lossy().starts_with(&own)));
}

#[test]
fn a_server_that_is_not_built_is_told_with_what_builds_it() {
    let nowhere = Path::new("/nowhere");
    let error = look("fig6.4@40", nowhere).expect_err("there is no server");
    assert!(
        error.contains("/nowhere/chronos-memcached") && error.contains("`make servers`")
            // Where more is missing, that is reported first.
            || error.contains("memcached is not installed")
            || error.contains("two processors"),
        "{error}"
    );
}

#[test]
fn the_committed_page_is_what_the_committed_rows_give() {
    common::page_is_of_its_rows(study("chronos-kernel"));
}

#[test]
fn every_committed_row_that_is_off_is_explained() {
    common::rows_that_are_off_are_told(study("chronos-kernel"));
}

/// Every figure has memcached and our server at the same points.
#[test]
fn every_committed_point_has_all_its_servers() {
    let (_, reproduction) = common::committed(study("chronos-kernel"));
    let has = |figure: &str, x: &str, series: &str| {
        reproduction.rows.iter().any(|row| {
            row.base == "kernel"
                && (row.figure.as_str(), row.x.as_str(), row.series.as_str()) == (figure, x, series)
        })
    };
    for figure in &study("chronos-kernel").figures {
        for case in figure.cases.iter().filter(|_| figure.id != "given") {
            let there = figure.series.iter().filter(|series| has(&figure.id, &case.x, series)).count();
            assert!(there == 0 || there == figure.series.len(), "{} at {}: {there}", figure.id, case.x);
        }
    }
}
