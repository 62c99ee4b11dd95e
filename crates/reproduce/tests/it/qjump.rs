//! Small, exact versions of the reproduction, and the committed page.

use plimsoll_reproduce::{Journal, Options, Part, page, reproduce, study};

use crate::common;

#[test]
fn idle_times_mean_sizes_and_the_bound_are_exact() {
    let rows = study("qjump").measure_exact(1).expect("the shipped scenarios load");
    assert_eq!(rows.len(), 4 * 5 + 2 + 1 + 4 + 4);
    for row in rows {
        assert_eq!(row.within, Some(true), "{row:?}");
    }
}

fn options(only: &[&str]) -> Options {
    let part = |text: &&str| text.parse::<Part>().expect("any text is a part");
    Options {
        quick: true,
        threads: 1,
        seed: 1,
        servers: std::path::PathBuf::new(),
        commit: None,
        only: only.iter().map(part).collect(),
    }
}

/// Not one packet above the bound; and parts that were not requested are named.
#[test]
fn packets_that_keep_their_rate_keep_the_bound() {
    let parts = options(&["fig11@1", "fig11-guests@1"]);
    let made = reproduce(study("qjump"), &parts, &mut Journal::in_memory(), &|_, _, _| true);
    let made = made.expect("it runs");
    let within = || made.rows.iter().filter(|row| row.metric == "within_bound_percent");
    assert_eq!(within().count(), 4);
    let framed = |row: &&plimsoll_reproduce::StudyRow| row.series == "even-framed";
    assert!(within().filter(|row| !framed(row)).all(|row| row.measured == 100.0));
    let text = &page::files(study("qjump"), &made)["qjump.md"];
    assert!(text.contains("> Not run yet: fig11, source: bucket at 0.5,"), "{text}");
}

/// Short runs of the testbed's figures: their exact values, and the order of schemes.
#[test]
fn the_testbed_s_figures_are_there_in_small() {
    let parts = ["switch", "table1", "barrier", "burst", "fig10", "fig6", "apps", "fig7-wred@40"];
    let made = reproduce(study("qjump"), &options(&parts), &mut Journal::in_memory(), &|_, _, _| true);
    let rows = made.expect("it runs").rows;
    let value = |figure: &str, series: &str, x: &str, metric: &str| {
        let is = |row: &&plimsoll_reproduce::StudyRow| {
            (row.figure.as_str(), row.series.as_str(), row.x.as_str(), row.metric.as_str())
                == (figure, series, x, metric)
        };
        let row = rows.iter().find(is);
        row.unwrap_or_else(|| panic!("no {metric} of {series} at {x} in {figure}")).measured
    };
    // With priorities a ping waits for one packet of 1500 B at most.
    assert!(value("fig3a", "+iperf,QJump", "99", "latency_us") <= 1.5968 + 1.2);
    assert!(value("fig3a", "+iperf", "50", "latency_us") > 100.0 * 1.5968);
    // 85 us of hosts and a full buffer, no more than 1.6 ms.
    let shared = value("table1", "TCP", "shared queue", "rtt_us_p50");
    assert!((800.0..=1700.0).contains(&shared), "{shared}");
    let idle = value("table1", "TCP", "idle", "rtt_us_p50");
    assert!((85.0..85.02).contains(&idle), "{idle}");
    // Two answers of 1040 B an epoch of 40.96 us, and the 443 us of 128 requests at 3.5 us each.
    let limited = value("fig10", "QJump", "0.5", "requests_per_s");
    assert!((0.95..=1.0).contains(&(limited / (2.0 / 40.96e-6))), "{limited}");
    let free = value("fig10", "QJump", "10", "latency_us_p50");
    assert!((free / 448.0 - 1.0).abs() < 0.02, "{free}");
    // Bursts beyond the buffer cost TCP a timeout of 10 ms; within it, QJump costs a factor of two.
    assert!(value("burst", "TCP", "4", "completion_us_p99") > 10_000.0);
    assert!(value("burst", "QJump", "4", "completion_us_p99") < 4_000.0);
    assert!(value("fig6-share", "QJump", "1.5", "commits_over_idle") > 0.95);
    assert!(value("fig6-share", "TCP", "1.5", "commits_over_idle") < 0.9);
    let over = |series, application| value("fig7", series, application, "rms_over_ideal");
    assert!(over("contended", "ptpd") > 20.0, "{}", over("contended", "ptpd"));
    for application in ["ptpd", "memcached"] {
        let over = over("QJump", application);
        assert!(over < 1.3, "{application}: {over}");
    }
    let over = |series, x| value("ratios", series, x, "over_alone");
    assert!((over("+Hadoop,QJump", "barrier p50") - 1.0).abs() < 0.1);
}

#[test]
fn a_figure_or_point_that_is_not_there_is_an_error_with_what_is() {
    let error = |only: &str| {
        let made = reproduce(study("qjump"), &options(&[only]), &mut Journal::in_memory(), &|_, _, _| true);
        made.expect_err("there is no such part").to_string()
    };
    assert!(error("fig2").starts_with("there is no fig2; there is table1, "), "{}", error("fig2"));
    assert_eq!(
        error("fig9-datamining@1"),
        "there is no fig9-datamining at 1; there is 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8"
    );
}

#[test]
fn the_committed_page_is_what_the_committed_rows_give() {
    common::page_is_of_its_rows(study("qjump"));
}

#[test]
fn every_committed_row_that_is_off_is_explained_or_an_open_question() {
    common::rows_that_are_off_are_told(study("qjump"));
}
