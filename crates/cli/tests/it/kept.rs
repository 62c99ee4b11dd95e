//! Checks that a run directory's scenario repeats the run when all its sources are deleted.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;

use crate::common::Place;

/// The base is in a folder next to the scenario's, and includes a file below its own folder.
const BASE: &str = r#"
include = "common/head.toml"
[run]
duration = "60ms"
[port.switch]
buffer = "100 packets"
ecn = { threshold = "30KB" } # turned off by the phantom queue of the file above
[port.leaf] # a tier of the topology below, which the file above replaces
buffer = "64KB"
"#;

const HEAD: &str = r#"
version = 1
title = "Kept"
[topology]
kind = "leaf-spine"
leaves = 1
spines = 1
hosts_per_leaf = 2
rate = "1Gbps"
delay = "1us"
"#;

const MAIN: &str = r#"
include = "../parts/base.toml"
[topology]
kind = "file"
path = "net.graph"
[port.switch] # this comment stays
phantom_queue = {}
[workload.listed]
kind = "flow-list"
path = "./lists/flows.csv"
[workload.drawn]
kind = "transfer"
client = "web"
servers = "cache..db"
size = { cdf = "sizes.csv" }
load = 0.2
[variant.TCP]
transport.kind = "tcp"
port.switch.phantom_queue = "off"
[variant.HULL]
transport.kind = "dctcp"
[sweep]
"workload.drawn.size.cdf" = ["sizes.csv", "../other sizes.csv"]
"#;

const GRAPH: &str = r#"
hosts = ["web", "cache", "db"]
switches = ["only ''' one"]
[[link]]
from = "web"
to = "only ''' one"
rate = "1Gbps"
delay = "1us"
[[link]]
from = "cache"
to = "only ''' one"
rate = "1Gbps"
delay = "1us"
[[link]]
from = "db"
to = "only ''' one"
rate = "1Gbps"
delay = "1us"
"#;

const FLAGS: &[&str] = &[
    "--set",
    "workload.drawn.load=0.3",
    "--set",
    "transport.min_rto=5ms",
    "--seed",
    "11",
    "--replicates",
    "2",
    "--format",
    "json",
];

fn originals(place: &Place) {
    for folder in ["my/lists", "parts/common"] {
        fs::create_dir_all(place.path(folder)).unwrap();
    }
    place.write("my/main.toml", MAIN);
    place.write("parts/base.toml", BASE);
    place.write("parts/common/head.toml", HEAD);
    place.write("my/net.graph", GRAPH);
    place.write(
        "my/lists/flows.csv",
        "start,source,destination,size,class\n# line ends of Windows\r\n0s,web,db,200KB,bulk\r\n1ms,cache,web,900B,\n",
    );
    place.write("my/sizes.csv", "bytes,cdf\n1000,0.5\n20000,1\n");
    place.write("other sizes.csv", "bytes,cdf\n5000,0.1\n9000,1");
}

#[test]
fn a_run_repeats_from_its_directory_when_the_originals_are_gone() {
    let place = Place::new();
    originals(&place);
    let args = [&["run", "my/main.toml", "--out", "out"], FLAGS].concat();
    let first = place.plimsoll(&args).ends_with(0).json();
    let kept = place.read("out/scenario.toml");
    assert!(kept.contains("# this comment stays"), "{kept}");
    fs::create_dir(place.path("elsewhere")).unwrap();
    fs::rename(place.path("out"), place.path("elsewhere/moved")).unwrap();
    for folder in ["my", "parts"] {
        fs::remove_dir_all(place.path(folder)).unwrap();
    }
    fs::remove_file(place.path("other sizes.csv")).unwrap();

    let again = ["run", "elsewhere/moved/scenario.toml", "--out", "again", "--format", "json"];
    let second = place.plimsoll(&again).ends_with(0).json();
    assert_eq!(first["digest"], second["digest"]);
    // The digests of all points agree: 2 variants, 2 values of the sweep, 2 replicates.
    assert_eq!(place.read("again/scenario.toml"), kept);
    assert_eq!(kept.lines().filter(|line| line.ends_with("_r1")).count(), 4, "{kept}");
}

#[test]
fn flags_over_a_kept_scenario_are_kept_too() {
    let place = Place::new();
    originals(&place);
    let run = |scenario: &str, out: &str, flags: &[&str]| {
        let args = [&["run", scenario, "--out", out, "--format", "json"], flags].concat();
        place.plimsoll(&args).ends_with(0).json()["digest"].clone()
    };
    let load = ["--set", "workload.drawn.load=0.1"];
    let seed = ["--seed", "12", "--replicates", "1"];
    let rto = ["--set", "transport.min_rto=5ms"];
    run("my/main.toml", "one", &[&rto[..], &["--seed", "11", "--replicates", "2"]].concat());
    let two = run("one/scenario.toml", "two", &[&load[..], &seed].concat());
    assert_eq!(two, run("my/main.toml", "direct", &[&rto[..], &load, &seed].concat()));
    assert_eq!(two, run("two/scenario.toml", "three", &[]));
    assert_eq!(place.read("two/scenario.toml"), place.read("three/scenario.toml"));
}
