//! Checks that this crate accepts the policies, units and dashboards of `deploy/`.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::fs;
use std::path::Path;
use std::process::Command;

use plimsoll_host::{HostCounters, Policy, open_metrics};
use plimsoll_testing::metrics;

fn deploy(path: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path)
}

#[test]
fn every_policy_is_one() {
    let policies = fs::read_dir(deploy("policies")).unwrap().flatten();
    let names: Vec<String> =
        policies.map(|entry| Policy::read(&entry.path()).unwrap().name().to_string()).collect();
    assert!(names.len() >= 3, "{names:?}");
}

/// Every metric in a panel exists.
#[test]
fn the_dashboard_asks_for_metrics_that_there_are() {
    let text = fs::read_to_string(deploy("grafana/plimsoll.json")).unwrap();
    let (known, asked) =
        (metrics::shown(&open_metrics(&[], &HostCounters::default())), metrics::asked(&text, "plimsoll_"));
    let unknown: Vec<&String> = asked.difference(&known).collect();
    assert!(unknown.is_empty(), "metrics that there are not: {unknown:?}");
    let unasked: Vec<&String> = known.difference(&asked).collect();
    assert!(unasked.is_empty(), "metrics that no panel shows: {unasked:?}");
}

/// Every metric in an alert rule exists, and promtool reads the rules where it is installed.
#[test]
fn the_alert_rules_ask_for_metrics_that_there_are() {
    let path = deploy("prometheus/plimsoll.rules.yml");
    let rules = fs::read_to_string(&path).unwrap();
    let (known, asked) =
        (metrics::shown(&open_metrics(&[], &HostCounters::default())), metrics::alerted(&rules, "plimsoll_"));
    let unknown: Vec<&String> = asked.difference(&known).collect();
    assert!(unknown.is_empty() && asked.len() >= 6, "of {asked:?} there are not: {unknown:?}");
    match Command::new("promtool").args(["check", "rules"]).arg(&path).output() {
        Err(error) => plimsoll_testing::skipped!("promtool (package prometheus): {error}"),
        Ok(said) => assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr)),
    }
    // Each alert fires on the series of its case, and on no other.
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/cases/rules.yml");
    let said = Command::new("promtool").args(["test", "rules"]).arg(&cases).output().unwrap();
    let texts = [said.stdout, said.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    assert!(said.status.success() && texts[0].contains("SUCCESS"), "{texts:?}");
}

/// Units do not hide from the planner the files that it reads.
#[test]
fn the_unit_that_applies_sees_which_modules_there_are() {
    let unit = fs::read_to_string(deploy("systemd/plimsoll-host@.service")).unwrap();
    let set: Vec<&str> = unit.lines().filter(|line| !line.starts_with('#')).collect();
    // That setting would hide /usr/lib/modules, and with it the module of fq.
    assert!(!set.iter().any(|line| line.starts_with("ProtectKernelModules=")), "{set:?}");
    assert!(!set.iter().any(|line| line.contains("CAP_SYS_MODULE") || line.contains("@module")), "{set:?}");
}
