//! The examples print the results that `docs/extending.md` has, and registered mechanisms run wherever a model runs.

use std::path::Path;
use std::process::Command;

use plimsoll_examples::codel::{CoDel, CoDelParams};
use plimsoll_examples::vegas::{Vegas, VegasParams};
use plimsoll_results::Digest;
use plimsoll_scenario::{Overrides, Registry, Scenario};
use plimsoll_sim::{run, run_in_parts};

const PAGE: &str = include_str!("../../docs/extending.md");

/// Every line that `command` prints to stdout up to the first empty one is a line of the page.
fn assert_documented(command: &mut Command) {
    let output = command.output().expect("an example starts");
    let printed = String::from_utf8(output.stdout).expect("text");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !printed.is_empty(), "{command:?}: {}\n{messages}", output.status);
    for line in printed.lines().take_while(|line| !line.is_empty()) {
        assert!(PAGE.lines().any(|other| other == line), "{command:?}: {line:?} is not in\n{printed}");
    }
}

#[test]
fn the_results_are_those_of_the_page() {
    for program in
        [env!("CARGO_BIN_EXE_codel"), env!("CARGO_BIN_EXE_vegas"), env!("CARGO_BIN_EXE_two_choices")]
    {
        assert_documented(&mut Command::new(program));
    }
}

#[test]
fn a_scheduler_of_ones_own_has_the_results_of_its_page() {
    let output = Command::new(env!("CARGO_BIN_EXE_largest_first")).output().expect("an example starts");
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(output.status.success() && printed.lines().count() == 2, "{printed}");
    let page = include_str!("../../docs/circuits.md");
    for line in printed.lines() {
        assert!(page.lines().any(|other| other == line), "{line:?} is not in docs/circuits.md");
    }
}

#[test]
fn registered_mechanisms_have_rows_in_the_table_of_a_run() {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("own-mechanisms");
    let scenario = concat!(env!("CARGO_MANIFEST_DIR"), "/own-mechanisms.toml");
    let mut command = Command::new(env!("CARGO_BIN_EXE_registered"));
    assert_documented(command.args(["run", scenario, "--force", "--quiet", "--out"]).arg(&out));
    // The run directory keeps the scenario; the same program reads it again.
    let mut again = Command::new(env!("CARGO_BIN_EXE_registered"));
    let output = again.args(["scenario", "show"]).arg(out.join("scenario.toml")).output().expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A run in parts builds the mechanisms of each part by the same factories, and gives the same bytes.
#[test]
fn a_parallel_run_has_the_registered_mechanisms() {
    let registry = Registry::new()
        .queue_discipline("codel", "1", |params: &CoDelParams, _| Box::new(CoDel::new(params)))
        .congestion_controller("vegas", "1", |params: &VegasParams| Box::new(Vegas::new(params)));
    let read = |more: &str| {
        let text = format!("{FABRIC}{more}");
        let scenario = Scenario::parse_from(&registry, "test", &text, Path::new("."), &Overrides::default());
        scenario.unwrap_or_else(|errors| panic!("{}", errors[0])).points()[0].model.clone()
    };
    let plain = Digest::of(&run(&read(""), &mut |_| true).expect("it runs"));
    for more in [
        "[port.switch]\ndiscipline.codel = { target = \"2us\", interval = \"20us\" }\n",
        "[transport.vegas]\nalpha = 1.0\n[variant.V]\ntransport.kind = \"vegas\"\n",
    ] {
        let model = read(more);
        let whole = Digest::of(&run(&model, &mut |_| true).expect("it runs"));
        let in_parts = Digest::of(&run_in_parts(&model, 2, &mut |_| true).expect("it runs"));
        assert_eq!(whole, in_parts, "{more}");
        assert_ne!(whole, plain, "{more} changes nothing");
    }
}

const FABRIC: &str = r#"version = 1
title = "flows across a fat-tree"
[topology]
kind = "fat-tree"
k = 4
rate = "1Gbps"
delay = "2us"
[transport]
handshake = false
min_rto = "1ms"
initial_rto = "1ms"
ack_every = 1
[workload.flows]
kind = "all-to-all"
size = "60KB"
load = 0.7
count = 150
"#;
