//! Checks that `plimsoll compare` counts each sample once.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use crate::common::Place;
use serde_json::Value;

const SCENARIO: &str = r#"
version = 1
title = "Compared"
replicates = 3
[run]
duration = "20ms"
[topology]
kind = "rack"
hosts = 3
rate = "1Gbps"
delay = "5us"
[workload.transfers]
kind = "transfer"
size = "20KB"
load = 0.3
[variant.TCP]
transport.kind = "tcp"
[variant.DCTCP]
transport.kind = "dctcp"
port.switch.ecn = { threshold = "30KB" }
"#;

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (path, to) = (entry.as_ref().unwrap().path(), to.join(entry.unwrap().file_name()));
        if path.is_dir() { copy(&path, &to) } else { fs::copy(path, to).map(drop).unwrap() }
    }
}

/// Returns the samples behind each variant.
fn samples(summary: &Value) -> Vec<(String, Vec<u64>)> {
    let seeds = |cell: &Value| {
        cell["runs"].as_array().unwrap().iter().map(|run| run["seed"].as_u64().unwrap()).collect()
    };
    let cells = summary["cells"].as_array().unwrap();
    cells.iter().map(|cell| (cell["variant"].as_str().unwrap().to_owned(), seeds(cell))).collect()
}

fn seed_of(point: &Path) -> u64 {
    let mark: Value = serde_json::from_str(&fs::read_to_string(point.join("point.json")).unwrap()).unwrap();
    mark["seed"].as_u64().unwrap()
}

fn runs(place: &Place) {
    place.write("scenario.toml", SCENARIO);
    place.plimsoll(&["run", "scenario.toml", "--out", "a", "-q"]).ends_with(0);
}

#[test]
fn a_run_named_twice_counts_once() {
    let place = Place::new();
    runs(&place);
    copy(&place.path("a"), &place.path("copy"));
    copy(&place.path("a"), &place.path("elsewhere/a"));
    for format in ["table", "json", "csv", "md"] {
        let alone = place.plimsoll(&["compare", "a", "--format", format]).ends_with(0);
        // The note below a table goes to stderr with a CSV.
        let is_warned = alone.stderr.starts_with("warning: p99 of `transfers` needs at least 1,000 samples");
        assert_eq!(
            (is_warned, alone.stderr.is_empty()),
            (format == "csv", format != "csv"),
            "{}",
            alone.stderr
        );
        for others in [&["a"][..], &["./a"], &["a", "a"], &["copy"], &["copy", "elsewhere/a", "a"]] {
            let again =
                place.plimsoll(&[&["compare", "a", "--format", format], others].concat()).ends_with(0);
            assert_eq!(again.stdout, alone.stdout, "{others:?}");
            assert_eq!(again.stderr.matches("6 of 6 runs in").count(), others.len(), "{}", again.stderr);
            assert!(again.stderr.contains("each counts once, in a"), "{}", again.stderr);
        }
    }
}

#[test]
fn runs_that_overlap_count_once() {
    let place = Place::new();
    runs(&place);
    // The replicates 0 to 2 are also in `a`; one of them is removed, as in a shard of the work.
    place.plimsoll(&["run", "scenario.toml", "--replicates", "5", "--out", "b", "-q"]).ends_with(0);
    let (a, all) = (place.summary("a"), place.summary("b"));
    let first = samples(&a)[0].1[0];
    let gone: Vec<_> = fs::read_dir(place.path("b/points"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|point| seed_of(point) == first)
        .collect();
    assert_eq!(gone.len(), 2, "a point of each variant has that seed");
    gone.iter().for_each(|point| fs::remove_dir_all(point).unwrap());
    let ran = place.plimsoll(&["compare", "a", "b", "--format", "json"]).ends_with(0);
    assert!(ran.stderr.contains("4 of 8 runs in b are those of a"), "{}", ran.stderr);
    let found = samples(&ran.json());
    let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["TCP (a)", "TCP (b)", "DCTCP (a)", "DCTCP (b)"]);
    for pair in found.chunks(2) {
        let seeds: Vec<u64> = pair.iter().flat_map(|(_, seeds)| seeds.clone()).collect();
        let once: BTreeSet<u64> = seeds.iter().copied().collect();
        assert_eq!((pair[0].1.len(), pair[1].1.len(), once.len()), (3, 2, 5), "{pair:?}");
        assert!(once.iter().copied().eq(samples(&all)[0].1.iter().copied().collect::<BTreeSet<_>>()));
    }
    // The same samples are now in the other order.
    let other = place.plimsoll(&["compare", "b", "a", "--format", "json"]).ends_with(0);
    let count: usize = samples(&other.json()).iter().map(|(_, seeds)| seeds.len()).sum();
    assert_eq!(count, 10);
}

#[test]
fn scenarios_that_differ_are_compared_even_if_their_results_do_not() {
    let place = Place::new();
    runs(&place);
    // Such a buffer never fills, so the results are the same.
    let roomy = ["--set", "port.switch.buffer=\"9000 packets\"", "--out", "roomy", "-q"];
    place.plimsoll(&[&["run", "scenario.toml"], &roomy[..]].concat()).ends_with(0);
    let compared = place.plimsoll(&["compare", "a", "roomy", "--format", "json"]).ends_with(0);
    assert_eq!(compared.stderr, "");
    assert_eq!(samples(&compared.json()).len(), 4);
}

#[test]
fn unrelated_runs_are_refused_in_a_sentence() {
    let place = Place::new();
    runs(&place);
    let bulk = SCENARIO.replace("workload.transfers", "workload.bulk");
    let other = SCENARIO.replace("hosts = 3", "hosts = 4").replace("20KB", "30KB");
    let swept = format!("{SCENARIO}[sweep]\n\"workload.transfers.load\" = [0.2, 0.3]\n");
    for (name, scenario, why) in [
        ("bulk", bulk, "no workload is in both; the first has transfers, the other bulk"),
        (
            "other",
            other,
            "they are of different networks, and of the workloads that both name (transfers) none has the same",
        ),
        (
            "swept",
            swept,
            "they sweep different keys; the first sweeps none, the other workload.transfers.load",
        ),
    ] {
        place.write(&format!("{name}.toml"), &scenario);
        place.plimsoll(&["run", &format!("{name}.toml"), "--out", name, "-q"]).ends_with(0);
        let ran = place.plimsoll(&["compare", "a", name, "--out", "page"]).ends_with(2).prints_nothing();
        ran.says(&format!("{name} cannot be compared with a: {why}"));
    }
    assert!(!place.path("page").exists());
    // Another network with the same workloads, and another load in the same network, can be compared.
    for set in ["topology.hosts=4", "workload.transfers.load=0.2"] {
        place.plimsoll(&["run", "scenario.toml", "--set", set, "--out", set, "-q"]).ends_with(0);
        place.plimsoll(&["compare", "a", set]).ends_with(0);
    }
}

#[test]
fn approximate_runs_say_so_wherever_their_numbers_are() {
    let place = Place::new();
    let scenario = "version = 1\ntitle = 't'\n[run]\nduration = '10ms'\n[topology]\nkind = 'rack'\nhosts = 4\n\
                    rate = '10Gbps'\ndelay = '1us'\n[transport]\nconnections = 'per-message'\n\
                    [workload.all]\nkind = 'all-to-all'\nload = 0.3\nsize = '20KB'\n[slo]\nall = 'p99(all) < 1ms'\n";
    place.write("s.toml", scenario);
    place.plimsoll(&["run", "s.toml", "--out", "whole", "--quiet"]).ends_with(0);
    place
        .plimsoll(&["run", "s.toml", "--approximate", "--out", "sample", "--quiet", "--format", "csv"])
        .ends_with(0)
        .prints("approximation,of_links,8.0")
        .prints("approximation,bias_low.p99,")
        .prints("all,slowdown_up_to_100000.p50,");
    place.plimsoll(&["compare", "whole", "sample"]).ends_with(0).says(
        "warning: sample is of approximate runs, whose bias is in the differences: at such a load a p99 was",
    );
    place
        .plimsoll(&["line", "s.toml", "--approximate", "--within", "0.2..0.4", "--replicates-max", "2"])
        .says("--approximate --slo");
    // All that an approximate run refuses is said before anything is run.
    place.write("s.toml", &format!("{scenario}[host]\npacer = {{}}\nloss = 0.1\n"));
    for command in [&["run", "s.toml", "--list"][..], &["scenario", "check", "s.toml"]] {
        place.plimsoll(command).ends_with(0);
        let set = [command, &["--set", "run.approximate={}"]].concat();
        let refused = place.plimsoll(&set).ends_with(2);
        refused.says("--> s.toml:19:9").says("host.pacer").says("host.loss").says("2 errors");
    }
}
