//! Compares ten small scenarios simulated and emulated between network namespaces.
//!
//! Goodput is within 5 %, the mean of each watched queue within 15 %, and the 99th percentiles of queues and of
//! completion times within 30 %. A run that is *suspect*, because this machine was too slow for it, is not compared but
//! repeated, and skipped with the reason if it stays so; on an otherwise idle machine most must be compared. One run on
//! a shared machine may differ by chance, by a late wake-up ahead of a full queue: then the median of three counts, and
//! nothing where other programs kept the processors busy meanwhile.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use plimsoll_testing::Others;
use serde_json::Value;

use crate::common::Place;

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

/// The number of the ten scenarios that an otherwise idle machine must compare.
const COMPARED_LEAST: usize = 8;
/// The largest share of processor time of other programs on an idle machine.
const IDLE: f64 = 0.05;
/// The share of other programs from which differences are ignored: steal delays every wake-up on a message's path.
const BUSY: f64 = 0.1;

/// The most emulated runs of a scenario, including suspect ones.
const TRIES: usize = 5;
/// The number of compared runs where the first differs.
const RUNS: usize = 3;
/// The most repeated runs of all scenarios: a machine that is too slow for all of them is found out soon.
const REPEATS: usize = 16;

/// A figure of both runs, and its tolerance.
struct Pair {
    what: String,
    simulated: f64,
    emulated: f64,
    tolerance: f64,
}

#[test]
fn simulated_and_emulated_runs_of_a_scenario_agree() {
    let place = Place::new();
    let check = place.plimsoll(&["check", "emulate"]);
    if check.code != Some(0) {
        return plimsoll_testing::skipped!("this system lacks something\n{}", check.stdout);
    }
    let (mut compared, mut apart, mut repeats) = (0, Vec::new(), REPEATS);
    let others = Others::watch();
    for name in SCENARIOS {
        match pairs(name, &place, &mut repeats) {
            Err(reason) => plimsoll_testing::skipped!("{name}: {reason}"),
            Ok(pairs) => {
                compared += 1;
                apart.extend(pairs.iter().filter(|pair| !pair.agrees()).map(|pair| pair.apart(name)));
            }
        }
    }
    let others = others.share();
    eprintln!(
        "{compared} of {} compared; others took {:.0} % of the processors",
        SCENARIOS.len(),
        100.0 * others
    );
    assert!(apart.is_empty(), "{}", apart.join("\n"));
    assert!(
        others > IDLE || compared >= COMPARED_LEAST,
        "an idle machine carried only {compared} as it should"
    );
}

/// Runs a scenario both ways: the first emulated run if it agrees, else the median of several. An error is a reason to
/// skip the comparison.
fn pairs(name: &str, place: &Place, repeats: &mut usize) -> Result<Vec<Pair>, String> {
    let scenario = format!("{}/../../scenarios/parity/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    place.plimsoll(&["run", &scenario, "--out", name]).ends_with(0);
    let simulated = place.summary(name);
    let others = Others::watch();
    let (mut runs, mut reason) = (Vec::new(), String::new());
    for run in 0..TRIES {
        match place.emulated(&[&scenario], &format!("{name}-{run}")) {
            Err(suspect) => reason = suspect,
            Ok(emulated) => {
                let pairs = compare(&simulated["cells"][0], &emulated["cells"][0]);
                pairs.iter().for_each(|pair| eprintln!("{name}: {}", pair.told()));
                runs.push(pairs);
            }
        }
        let agrees = runs.len() == 1 && runs[0].iter().all(Pair::agrees);
        if agrees || runs.len() == RUNS || *repeats == 0 {
            break;
        }
        *repeats -= 1;
    }
    let pairs = medians(runs).ok_or(reason)?;
    match (pairs.iter().find(|pair| !pair.agrees()), others.share()) {
        (Some(apart), share) if share > BUSY => {
            Err(format!("others took {:.0} % of the processors, and {}", 100.0 * share, apart.told()))
        }
        _ => Ok(pairs),
    }
}

/// Returns each pair with the median of the emulated runs; none without runs.
fn medians(mut runs: Vec<Vec<Pair>>) -> Option<Vec<Pair>> {
    let mut pairs = runs.pop()?;
    for (index, pair) in pairs.iter_mut().enumerate() {
        let mut values: Vec<f64> =
            runs.iter().map(|run| run[index].emulated).chain([pair.emulated]).collect();
        values.sort_by(f64::total_cmp);
        let middle = values.len() / 2;
        pair.emulated = (values[middle] + values[(values.len() - 1) / 2]) / 2.0;
    }
    Some(pairs)
}

/// Returns the pairs of the single point of both runs.
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

impl Pair {
    fn ratio(&self) -> f64 {
        self.emulated / self.simulated
    }

    fn agrees(&self) -> bool {
        // A comparison with NaN is false.
        (self.ratio() - 1.0).abs() <= self.tolerance
    }

    fn told(&self) -> String {
        let Pair { what, simulated, emulated, .. } = self;
        format!("{what}: simulated {simulated:.0}, emulated {emulated:.0}: {:.3} times as much", self.ratio())
    }

    fn apart(&self, name: &str) -> String {
        format!("{name}: {}, more than {:.0} % apart", self.told(), 100.0 * self.tolerance)
    }
}
