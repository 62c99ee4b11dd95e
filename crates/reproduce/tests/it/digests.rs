//! Every shipped scenario keeps its digests: of its input, which keys journals and resumed runs, and of its outcome.
//!
//! `digests.csv` beside this file has a row for each variant of each scenario, at the first point of its sweep, cut
//! short so that all of them take seconds; for points of the studies; and for replays of made-up ingress logs through
//! the live fabric. A change that is meant to alter a result says so in its commit and writes the table again:
//!
//! ```sh
//! UPDATE=1 cargo test -p plimsoll-reproduce digests
//! ```
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_results::Digest;
use plimsoll_scenario::{Overrides, Point, Scenario};

#[cfg(target_os = "linux")]
#[path = "digests/replays.rs"]
mod replays;

/// Files that run for another time than [`DEFAULT`], since their links are slow or their flows many.
const CUT: &[(&str, &str)] = &[
    ("collectives/shared.toml", "500us"),
    ("collectives/training.toml", "300us"),
    ("dcqcn/fabric.toml", "50us"),
    ("dcqcn/flows.toml", "5ms"),
    ("dcqcn/parking-lot.toml", "2ms"),
    ("dcqcn/shares.toml", "2ms"),
    ("dcqcn/victim.toml", "2ms"),
    ("detail-kernel/oversubscribed.toml", "60ms"),
    ("detail-kernel/pages.toml", "60ms"),
    ("detail/arms.toml", "4ms"),
    ("detail/degraded.toml", "4ms"),
    ("detail/motivation.toml", "20ms"),
    ("detail/pages-standard.toml", "4ms"),
    ("detail/pages.toml", "4ms"),
    ("homa/overcommitment.toml", "500us"),
    ("homa/workloads.toml", "200us"),
    ("hpcc/fabric.toml", "50us"),
    ("hpcc/incast.toml", "300us"),
    ("hpcc/testbed.toml", "600us"),
    ("hull-kernel/star.toml", "500ms"),
    ("hull/dynamic.toml", "1s"),
    ("hull/low-latency.toml", "1s"),
    ("hull/search.toml", "100ms"),
    ("hull/source.toml", "50ms"),
    ("hull/standard.toml", "50ms"),
    ("hull/static.toml", "10ms"),
    ("hull/variable.toml", "40ms"),
    ("ndp/collateral.toml", "26ms"),
    ("ndp/in-out.toml", "2ms"),
    ("ndp/incast.toml", "1ms"),
    ("ndp/permutation.toml", "300us"),
    ("ndp/slow-link.toml", "1ms"),
    ("parity/dctcp.toml", "600ms"),
    ("parity/fair-share.toml", "600ms"),
    ("parity/incast.toml", "600ms"),
    ("parity/linux.toml", "200ms"),
    ("parity/pacing.toml", "200ms"),
    ("parity/permutation.toml", "200ms"),
    ("parity/phantom-queue.toml", "600ms"),
    ("parity/priorities.toml", "600ms"),
    ("parity/requests.toml", "600ms"),
    ("parity/single-flow.toml", "600ms"),
    ("parity/small-buffer.toml", "600ms"),
    ("programs/memcached.toml", "2100ms"),
    ("programs/ptpd.toml", "200ms"),
    ("qjump-kernel/apps.toml", "100ms"),
    ("qjump-kernel/barrier.toml", "60ms"),
    ("qjump-kernel/commit.toml", "200ms"),
    ("qjump-kernel/switch.toml", "100ms"),
    ("qjump-kernel/table1.toml", "200ms"),
    ("qjump-kernel/testbed.toml", "400ms"),
    ("qjump/apps.toml", "5ms"),
    ("qjump/barrier.toml", "1ms"),
    ("qjump/fig11.toml", "2ms"),
    ("qjump/fig9-standard.toml", "500us"),
    ("qjump/fig9.toml", "500us"),
    ("qjump/memcached.toml", "40ms"),
    ("qjump/testbed.toml", "40ms"),
    ("quickstart.toml", "40ms"),
    ("reactor-kernel/one-to-all.toml", "2200ms"),
    ("reactor-kernel/promotion.toml", "100ms"),
    ("reactor-kernel/reaction.toml", "700ms"),
    ("reactor/reaction.toml", "100ms"),
    ("reactor/requests.toml", "200ms"),
    ("roce/acceptance.toml", "1ms"),
    ("roce/fabric.toml", "100us"),
    ("scale/allreduce.toml", "20us"),
    ("scale/million.toml", "20us"),
    ("schemes/fabric.toml", "20us"),
    ("schemes/incast.toml", "510us"),
    ("schemes/storage.toml", "20us"),
    ("schemes/websearch.toml", "40us"),
    ("timely/fabric.toml", "50us"),
    ("timely/fixed-points.toml", "40ms"),
    ("timely/powertcp.toml", "2ms"),
    ("timely/thresholds.toml", "2ms"),
    ("uet/incast.toml", "3ms"),
    ("uet/leaf-spine.toml", "1us"),
    ("uet/slow-links.toml", "40us"),
];

/// How long the workloads of a scenario send; messages under way have as long again.
const DEFAULT: &str = "20ms";

/// Points of the studies: a scenario, the figure's settings, and how long it runs here.
const POINTS: &[(&str, &[&str], &str)] = &[
    // HULL's standing queue, its dynamic flows, and its phantom queue at another threshold.
    ("hull/static.toml", &["sweep.\"workload.bulk.from\"=[\"h1..h2\"]", "topology.delay=\"5us\""], "10ms"),
    (
        "hull/dynamic.toml",
        &["workload.background.load=\"200Mbps\"", "workload.small.load=\"10Mbps\""],
        "100ms",
    ),
    ("hull/dynamic.toml", &["port.switch.phantom_queue={drain=0.9,threshold=\"1000B\"}"], "1s"),
    // DeTail's pages with more retrievals than one of its workloads has.
    ("detail/pages.toml", &["workload.page8.retrievals=10"], "4ms"),
    // QJump's applications beside each other, with a longer epoch.
    ("qjump/apps.toml", &["run.seed=2"], "5ms"),
    ("qjump/memcached.toml", &["run.seed=2"], "20ms"),
    // DeTail's network and HULL's rack of the kernel's studies, simulated.
    ("detail-kernel/pages.toml", &["run.seed=2"], "60ms"),
    ("hull-kernel/star.toml", &["run.seed=2"], "500ms"),
    ("qjump-kernel/switch.toml", &["run.seed=2"], "20ms"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Every scenario under `folder`, in the order of their names.
fn scenarios(folder: &Path, found: &mut Vec<PathBuf>) {
    let mut paths: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            scenarios(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "toml") {
            found.push(path);
        }
    }
}

/// Loads `text`, whose file is `path`, with `set`, cut to `duration`.
fn load(path: &Path, text: &str, set: &[&str], duration: &str) -> Scenario {
    let cut =
        ["run.warmup=0s".to_owned(), format!("run.duration={duration}"), format!("run.drain={duration}")];
    let set = set.iter().map(|&set| set.to_owned()).chain(cut).collect();
    let overrides = Overrides { set, ..Overrides::default() };
    Scenario::parse_with(&path.display().to_string(), text, path.parent().unwrap(), &overrides)
        .unwrap_or_else(|errors| panic!("{}: {errors:?}", path.display()))
}

/// The digest of what one thread observes, which two must observe as well, where the run can be divided.
fn outcome(point: &Point, name: &str) -> String {
    let digest = |threads| match plimsoll_sim::run_in_parts(&point.model, threads, &mut |_| true) {
        Ok(outcome) => Digest::of(&outcome),
        Err(error) => panic!("{name}: {error}"),
    };
    let one = digest(1);
    if plimsoll_sim::obstacle(&point.model).unwrap().is_none() {
        assert_eq!(digest(2), one, "{name}: two threads observe something else than one");
    }
    one.to_string()
}

/// A row for each variant of `scenario` at the first point of its sweep.
fn rows(table: &mut String, name: &str, scenario: &Scenario, given: &Scenario) {
    let mut seen: Vec<&str> = Vec::new();
    for (point, given) in scenario.points().iter().zip(given.points()) {
        if seen.contains(&point.variant.as_str()) {
            continue;
        }
        seen.push(&point.variant);
        let name = format!("{name},{}", point.label().replace(',', ";"));
        let outcome = outcome(point, &name);
        writeln!(table, "{name},{:016x},{:016x},{outcome}", given.digest, given.settings_digest()).unwrap();
    }
}

#[test]
fn digests_of_inputs_and_outcomes_are_those_of_the_table() {
    let mut table = "scenario,point,input,settings,outcome\n".to_owned();
    let folder = root().join("scenarios");
    let mut files = Vec::new();
    scenarios(&folder, &mut files);
    for path in files {
        let mut text = fs::read_to_string(&path).unwrap();
        if text.contains("\n[[link]]") {
            // A graph, which runs with the scenarios that name it.
            continue;
        }
        if Scenario::load(&path).is_err() {
            // A base, which other scenarios include: nothing is sent in it yet.
            text.push_str("[workload.any]\nkind = 'flows'\nfrom = ['h1', 'h2']\nto = 'h0'\nsize = '3MB'\n");
        }
        let name = path.strip_prefix(&folder).unwrap().display().to_string();
        let duration = CUT.iter().find(|(file, _)| *file == name).map_or(DEFAULT, |(_, cut)| cut);
        let given = Scenario::parse(&name, &text, path.parent().unwrap()).unwrap_or_else(|e| panic!("{e:?}"));
        rows(&mut table, &name, &load(&path, &text, &[], duration), &given);
    }
    for (file, set, duration) in POINTS {
        let path = folder.join(file);
        let text = fs::read_to_string(&path).unwrap();
        let overrides =
            Overrides { set: set.iter().map(|&set| set.to_owned()).collect(), ..Overrides::default() };
        let given = Scenario::load_with(&path, &overrides).unwrap_or_else(|errors| panic!("{errors:?}"));
        rows(&mut table, &format!("{file} {}", set.join(" ")), &load(&path, &text, set, duration), &given);
    }
    #[cfg(target_os = "linux")]
    replays::rows(&mut table, &folder);

    let committed = root().join("crates/reproduce/tests/it/digests.csv");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&committed, &table).unwrap();
    }
    let expected = fs::read_to_string(&committed).unwrap();
    let rows = |table: &str| -> BTreeMap<String, String> {
        let row = |line: &str| {
            let (name, digests) =
                line.rsplitn(4, ',').collect::<Vec<_>>().split_last().map(|(name, digests)| {
                    ((*name).to_owned(), digests.iter().rev().copied().collect::<Vec<_>>().join(","))
                })?;
            Some((name, digests))
        };
        table.lines().filter_map(row).collect()
    };
    let (found, expected) = (rows(&table), rows(&expected));
    let names: BTreeSet<&String> = found.keys().chain(expected.keys()).collect();
    let moved: Vec<String> = names
        .into_iter()
        .filter(|name| found.get(*name) != expected.get(*name))
        .map(|name| format!("{name}: {:?}, and the table has {:?}", found.get(name), expected.get(name)))
        .collect();
    assert!(moved.is_empty(), "{} rows have moved:\n{}", moved.len(), moved.join("\n"));
}
