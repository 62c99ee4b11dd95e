//! One body, two arms: ten small scenarios tell the same story simulated and between network namespaces.
//!
//! Goodput is within 5 %, the mean of each watched queue within 15 %, and the 99th percentiles of queues and of
//! completion times within 30 %. A run that is *suspect*, because this machine was too slow for it, is not compared,
//! and the reason is printed; on a machine that is otherwise idle most must be.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use std::fs;

use serde_json::Value;

mod common;
use common::Place;

const SCENARIOS: [&str; 10] = [
    "single-flow",
    "fair-share",
    "incast",
    "requests",
    "dctcp",
    "phantom-queue",
    "priorities",
    "small-buffer",
    "permutation",
    "pacing",
];

const GOODPUT: f64 = 0.05;
const MEAN: f64 = 0.15;
const P99: f64 = 0.30;

/// Of ten, on a machine with nothing else to do.
const COMPARED_LEAST: usize = 8;
/// Share of the processors' time that was idle, from which on a machine has nothing else to do: a run of its own takes
/// a fifth of two.
const IDLE: f64 = 0.6;

/// A number of both arms, and how far apart they may be.
struct Pair {
    what: String,
    simulated: f64,
    emulated: f64,
    tolerance: f64,
}

#[test]
fn simulated_and_emulated_runs_of_a_scenario_agree() {
    let place = Place::new();
    let check = place.plimsoll(&["check"]);
    if check.code != Some(0) {
        return plimsoll_testing::skipped!("this system lacks something\n{}", check.stdout);
    }
    let (mut compared, mut apart) = (0, Vec::new());
    let before = processors();
    for name in SCENARIOS {
        match pairs(name, &place) {
            Err(reason) => plimsoll_testing::skipped!("{name}: {reason}"),
            Ok(pairs) => {
                compared += 1;
                apart.extend(pairs.iter().filter_map(|pair| judged(name, pair)));
            }
        }
    }
    let (idle, all) = (processors().0 - before.0, processors().1 - before.1);
    let idle = idle / all.max(1.0);
    eprintln!("{compared} of {} compared; processors idle for {:.0} %", SCENARIOS.len(), 100.0 * idle);
    assert!(apart.is_empty(), "{}", apart.join("\n"));
    assert!(
        idle < IDLE || compared >= COMPARED_LEAST,
        "an idle machine carried only {compared} as it should"
    );
}

/// What to compare; an error is a reason not to.
fn pairs(name: &str, place: &Place) -> Result<Vec<Pair>, String> {
    let scenario = format!("{}/../../scenarios/parity/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let (simulated, emulated) = (format!("{name}-simulated"), format!("{name}-emulated"));
    place.plimsoll(&["run", &scenario, "--out", &simulated]).ends_with(0);
    let emulate = place.plimsoll(&["emulate", &scenario, "--out", &emulated]);
    let line = |with: &str| emulate.stderr.lines().find(|line| line.contains(with)).map(str::to_owned);
    if let Some(reason) = line("suspect:").or(line("congestion control")).or(line("too busy")) {
        return Err(reason);
    }
    emulate.ends_with(0);
    Ok(compare(&cell(place, &simulated), &cell(place, &emulated)))
}

/// The one point of a run directory.
fn cell(place: &Place, folder: &str) -> Value {
    let mut summary: Value = serde_json::from_str(&place.read(&format!("{folder}/summary.json"))).unwrap();
    summary["cells"][0].take()
}

fn compare(simulated: &Value, emulated: &Value) -> Vec<Pair> {
    let delivered = |cell: &Value| -> f64 {
        let of = |workload: &Value| workload["connections"]["delivered"].as_f64().unwrap();
        cell["workloads"].as_array().unwrap().iter().map(of).sum()
    };
    let goodput = Pair {
        what: "goodput, by bytes delivered".to_owned(),
        simulated: delivered(simulated),
        emulated: delivered(emulated),
        tolerance: GOODPUT,
    };
    let mut pairs = vec![goodput];
    let mut of = |list: &str, statistics: &[(&str, f64)]| {
        let both = simulated[list].as_array().unwrap().iter().zip(emulated[list].as_array().unwrap());
        for (one, other) in both {
            let name = one["name"].as_str().unwrap();
            for (pointer, tolerance) in statistics {
                // A workload without messages has no completion times.
                if let Some(simulated) = one.pointer(pointer).and_then(Value::as_f64) {
                    let emulated = other.pointer(pointer).and_then(Value::as_f64).unwrap_or(f64::NAN);
                    let what = format!("{name}{pointer}");
                    pairs.push(Pair { what, simulated, emulated, tolerance: *tolerance });
                }
            }
        }
    };
    of("queues", &[("/mean_us/value", MEAN), ("/p99_us/value", P99)]);
    of("workloads", &[("/completion_us/p99/value", P99)]);
    pairs
}

/// Prints a pair, and says so if it is too far apart.
fn judged(name: &str, pair: &Pair) -> Option<String> {
    let Pair { what, simulated, emulated, tolerance } = pair;
    let ratio = emulated / simulated;
    let line =
        format!("{name}: {what}: simulated {simulated:.0}, emulated {emulated:.0}: {ratio:.3} times as much");
    eprintln!("{line}");
    // Not a number is not within.
    let within = (ratio - 1.0).abs() <= *tolerance;
    (!within).then(|| format!("{line}, more than {:.0} % apart", 100.0 * tolerance))
}

/// Idle and whole time of all processors since the system started, in ticks.
fn processors() -> (f64, f64) {
    let stat = fs::read_to_string("/proc/stat").unwrap();
    let ticks: Vec<f64> =
        stat.lines().next().unwrap().split_whitespace().filter_map(|tick| tick.parse().ok()).collect();
    (ticks[3] + ticks[4], ticks.iter().take(8).sum())
}
