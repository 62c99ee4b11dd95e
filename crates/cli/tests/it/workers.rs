//! Tests that workers give the outcome of threads, also where one of them dies.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;

use crate::common::{Place, signal};

const SCENARIO: &str = r#"
version = 1
title = "links by workers"
[run]
duration = "4ms"
approximate = { links = 10 }
[topology]
kind = "leaf-spine"
leaves = 4
spines = 2
hosts_per_leaf = 4
rate = "10Gbps"
fabric_rate = "40Gbps"
delay = "1us"
[transport]
kind = "dctcp"
connections = "per-message"
handshake = false
min_rto = "5ms"
[port.switch]
ecn = { threshold = "100KB" }
buffer = "2MB"
[workload.all]
kind = "all-to-all"
load = 0.4
size = "20KB"
[sweep]
"run.seed" = [1, 2]
"#;

/// Starts a worker, the first of which ends after six lines, as one that is killed does.
const DIES_ONCE: &str = r#"
mkdir first 2>/dev/null || exec "$1" work
for line in 1 2 3 4 5 6; do IFS= read -r text; printf '%s\n' "$text"; done | "$1" work
"#;

#[test]
fn any_number_of_workers_gives_the_outcome_of_threads_also_where_one_dies() {
    let place = Place::new();
    place.write("links.toml", SCENARIO);
    place.write("worker.sh", DIES_ONCE);
    let digest = |more: &[&str]| {
        let ran = place.plimsoll(&[&["run", "links.toml", "--force", "--format", "json"], more].concat());
        ran.json()["digest"].clone()
    };
    let threads = digest(&["--out", "threads"]);
    assert!(threads.is_string());
    for count in ["1", "3"] {
        assert_eq!(digest(&["--workers", count, "--out", count]), threads, "{count} workers");
    }
    let program = Path::new(env!("CARGO_BIN_EXE_plimsoll")).display();
    let command = format!("sh worker.sh '{program}'");
    let run = ["run", "links.toml", "--format", "json", "--workers", "2", "--worker-command", &command];
    let ran = place.plimsoll(&run).says("its tasks are carried out by others");
    assert!(place.path("first").is_dir(), "one worker was to end early");
    assert_eq!(ran.json()["digest"], threads);
}

#[test]
fn workers_that_cannot_do_the_work_are_an_error_that_names_the_remedy() {
    let place = Place::new();
    place.write("links.toml", SCENARIO);
    for (command, says) in [
        ("false", "no worker is left, and 0 of "),
        ("cat", "has to start `plimsoll work`"),
        ("no-such-program", "cannot start worker 1 by `no-such-program`"),
    ] {
        let run = ["run", "links.toml", "--workers", "2", "--worker-command", command];
        place.plimsoll(&run).ends_with(2).says(says);
    }
    // What is refused leaves no run behind, and removes none.
    let whole = ["run", "links.toml", "--out", "w", "--set", "run.approximate=off", "--workers", "2"];
    place.plimsoll(&whole).ends_with(2).says("`--workers` is for approximate runs");
    assert!(!place.path("w").exists());
    place.plimsoll(&["run", "links.toml", "--out", "done", "--quiet"]).ends_with(0);
    let forced =
        ["run", "links.toml", "--out", "done", "--force", "--workers", "2", "--worker-command", "nosuch"];
    place.plimsoll(&forced).ends_with(2);
    assert!(place.path("done/summary.json").exists());
    let captured = ["run", "links.toml", "--out", "w", "--pcap"];
    place.plimsoll(&captured).ends_with(2).says("has no packets of the whole network to capture");
    let sbatch = ["sbatch", "links.toml", "--workers", "8", "--", "--time=10"];
    let script = place.plimsoll(&sbatch).ends_with(0).stdout;
    assert!(script.contains("#SBATCH --ntasks=8\n") && script.contains("--workers 8"), "{script}");
    assert!(script.contains("--worker-command 'srun --ntasks=1 --exact --mem=0 plimsoll work'"), "{script}");
}

#[test]
fn a_run_that_is_ended_leaves_no_worker_behind() {
    let place = Place::new();
    place.write("links.toml", SCENARIO);
    // What a wrapper has started has the pipes, too.
    place.write("wrapper.sh", "sleep 1000 & echo $! > new\nmv new started\nwait\n");
    let run = ["run", "links.toml", "--quiet", "--workers", "1", "--worker-command", "sh wrapper.sh"];
    let mut child = place.command(&run).spawn().unwrap();
    while !place.path("started").exists() {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    signal(&child, signal_hook::consts::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(128 + signal_hook::consts::SIGTERM));
    let sleeps = place.read("started").trim().to_owned();
    let stat = std::fs::read_to_string(format!("/proc/{sleeps}/stat")).unwrap_or_default();
    assert!(stat.is_empty() || stat.contains(") Z"), "{stat}");
}
