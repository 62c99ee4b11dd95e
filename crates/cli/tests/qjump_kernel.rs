//! A point of QJump's Fig. 3a between network namespaces: a ping beside bulk flows, with and without QJump.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use serde_json::Value;

mod common;
use common::Place;

const SCENARIO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scenarios/qjump-kernel/switch.toml");

#[test]
fn with_qjump_a_ping_does_not_wait_for_bulk_flows() {
    let place = Place::new();
    let check = place.plimsoll(&["check"]);
    if check.code != Some(0) {
        return eprintln!("skipped: this system lacks something\n{}", check.stdout);
    }
    let [beside, jumped] = ["+iperf", "+iperf,QJump"].map(|variant| median_us(&place, variant));
    match (beside, jumped) {
        (Ok(beside), Ok(jumped)) => {
            eprintln!("median round trip: {beside:.0} us beside bulk flows, {jumped:.0} us with QJump");
            // Published: 1047 and 2.7 us one way. A busy machine takes milliseconds to wake up a program.
            assert!(jumped < beside / 5.0, "{jumped} us with QJump, {beside} us without");
        }
        (Err(reason), _) | (_, Err(reason)) => eprintln!("skipped: {reason}"),
    }
}

/// The median of the pings; an error is a reason not to look at it.
fn median_us(place: &Place, variant: &str) -> Result<f64, String> {
    let short = ["--set", "run.duration='3s'", "--set", "run.warmup='1500ms'"];
    let run = ["emulate", SCENARIO, "--variant", variant, "--out", variant];
    let ran = place.plimsoll(&[&run[..], &short[..]].concat());
    let line = |with: &str| ran.stderr.lines().find(|line| line.contains(with)).map(str::to_owned);
    if let Some(reason) = line("suspect:").or(line("not emulated")).or(line("too busy")) {
        return Err(reason);
    }
    ran.ends_with(0);
    let summary: Value = serde_json::from_str(&place.read(&format!("{variant}/summary.json"))).unwrap();
    let workloads = summary["cells"][0]["workloads"].as_array().unwrap();
    let ping = workloads.iter().find(|workload| workload["name"] == "ping").unwrap();
    Ok(ping.pointer("/completion_us/p50/value").and_then(Value::as_f64).unwrap())
}
