//! Measurements are made by runs with a known change and another seed, so that the right answer is known.
#![allow(clippy::unwrap_used, reason = "tests")]

mod recovery;
mod verdicts;

use std::path::Path;

use plimsoll_calibrate::ModelledLatencies;
use plimsoll_experiment::bench::{Bench, BenchWatch};
use plimsoll_models::Empirical;
use plimsoll_models::measured::MeasuredLatencies;
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::{Overrides, Scenario};

const SCENARIO: &str = r#"
version = 1
title = "A cache beside transfers"
[run]
duration = "1s"
warmup = "10ms"
[topology]
kind = "rack"
hosts = 4
rate = "10Gbps"
delay = "2us"
[transport]
kind = "dctcp"
min_rto = "10ms"
ack_delay = "500us"
[port.switch]
buffer = "400KB"
[workload.get]
kind = "rpc"
client = "h0"
servers = ["h1"]
request = "100B"
response = "1KB"
load = "100Mbps"
service = { kind = "exponential", mean = "10us" }
[workload.bulk]
kind = "transfer"
client = "h0"
servers = ["h2", "h3"]
size = "20KB"
load = 0.3
"#;

/// Reads the scenario with these overrides.
fn scenario(set: &[&str], seed: Option<u64>) -> Scenario {
    let set = set.iter().map(|set| (*set).to_owned()).collect();
    let overrides = Overrides { set, seed, ..Overrides::default() };
    Scenario::parse_with("cache.toml", SCENARIO, Path::new("."), &overrides).unwrap()
}

fn outcome(set: &[&str], seed: Option<u64>) -> Outcome {
    plimsoll_sim::run(&scenario(set, seed).points()[0].model, &mut |_| true).unwrap()
}

fn modelled(set: &[&str]) -> ModelledLatencies {
    ModelledLatencies::of(&[&outcome(set, None)], "get").unwrap()
}

/// Returns the latencies of `get`, and its times at the server, in a run with another seed.
fn measured(set: &[&str]) -> [MeasuredLatencies; 2] {
    let outcome = outcome(set, Some(2));
    let messages =
        outcome.messages.iter().filter(|message| message.workload == 0 && message.completed.is_some());
    let messages: Vec<_> =
        messages.filter(|message| message.created.as_ps() >= outcome.warmup.as_ps()).collect();
    let of = |us: Vec<f64>| MeasuredLatencies {
        samples: Some(us.len() as u64),
        distribution: Empirical::of_samples(us),
        bounded: 1.0,
        suspect: Vec::new(),
    };
    [
        of(messages.iter().filter_map(|message| Some(message.latency()?.as_us_f64())).collect()),
        of(messages.iter().map(|message| message.split.service.as_us_f64()).collect()),
    ]
}

struct Unwatched;

impl BenchWatch for Unwatched {}

fn bench() -> Bench<'static> {
    Bench { threads: 1, memory_max: u64::MAX, watch: &Unwatched, workers: None }
}
