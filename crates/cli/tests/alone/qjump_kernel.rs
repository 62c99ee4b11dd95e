//! Runs points of QJump's figures between network namespaces, with and without QJump: a ping beside bulk flows (3a),
//! and commits beside bursts of UDP (6).
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use plimsoll_testing::Others;
use serde_json::Value;

use crate::common::Place;

const SCENARIOS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/qjump-kernel");

#[test]
fn with_qjump_a_ping_does_not_wait_for_bulk_flows() {
    let place = Place::new();
    let check = place.plimsoll(&["check", "emulate"]);
    if check.code != Some(0) {
        return plimsoll_testing::skipped!("this system lacks something\n{}", check.stdout);
    }
    let others = Others::watch();
    let [beside, jumped] = ["+iperf", "+iperf,QJump"].map(|variant| median_us(&place, variant));
    match (beside, jumped) {
        (Ok(beside), Ok(jumped)) => {
            eprintln!("median round trip: {beside:.0} us beside bulk flows, {jumped:.0} us with QJump");
            // Published are 1047 and 2.7 us one way. A busy machine takes milliseconds to wake up a program.
            let passes = jumped < beside / 5.0 || others.were_busy();
            assert!(passes, "{jumped} us with QJump, {beside} us without");
        }
        (Err(reason), _) | (_, Err(reason)) => plimsoll_testing::skipped!("{reason}"),
    }
}

/// With bursts of 1.5 times a server's link, TCP's commits wait for lost packets, and QJump's pass.
#[test]
fn with_qjump_commits_do_not_wait_for_bursts() {
    let place = Place::new();
    let check = place.plimsoll(&["check", "emulate"]);
    if check.code != Some(0) {
        return plimsoll_testing::skipped!("this system lacks something\n{}", check.stdout);
    }
    let sets = ["run.duration='2500ms'", "run.drain='3s'", "workload.udp.load=0.75"];
    let commits = |variant: &str| -> Result<u64, String> {
        let commit = emulated(&place, "commit.toml", variant, "commit", &sets)?;
        let count = |name: &str| commit["queries"][name].as_u64().unwrap();
        Ok(count("queries") - count("unfinished"))
    };
    let others = Others::watch();
    match (commits("TCP"), commits("QJump")) {
        (Ok(tcp), Ok(jumped)) => {
            eprintln!("commits in a burst of 2.5 s: {tcp} by TCP, {jumped} with QJump");
            let passes = (jumped > tcp && jumped > 20) || others.were_busy();
            assert!(passes, "{jumped} with QJump, {tcp} by TCP");
        }
        (Err(reason), _) | (_, Err(reason)) => plimsoll_testing::skipped!("{reason}"),
    }
}

/// Returns the median of the pings; an error is a reason to skip the test.
fn median_us(place: &Place, variant: &str) -> Result<f64, String> {
    let ping =
        emulated(place, "switch.toml", variant, "ping", &["run.duration='3s'", "run.warmup='1500ms'"])?;
    Ok(ping.pointer("/completion_us/p50/value").and_then(Value::as_f64).unwrap())
}

/// Returns a workload's part of the summary; an error is a reason to skip the test.
fn emulated(
    place: &Place,
    file: &str,
    variant: &str,
    workload: &str,
    sets: &[&str],
) -> Result<Value, String> {
    let scenario = format!("{SCENARIOS}/{file}");
    let run = [scenario.as_str(), "--variant", variant];
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
    let summary = place.emulated(&[&run[..], &sets[..]].concat(), variant)?;
    let workloads = summary["cells"][0]["workloads"].as_array().unwrap();
    Ok(workloads.iter().find(|found| found["name"] == workload).unwrap().clone())
}
