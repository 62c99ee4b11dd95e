//! Runs the commands of documentation pages on small inputs: every line of a block that begins with `$ `.
//!
//! The files that a page names are made here. Programs that are not this project's are stand-ins in a folder of the
//! search path, so that a page may say `tcpdump ... | plimsoll bursts -`.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::Place;

/// Returns the commands of a page, without the comments behind them.
fn commands(page: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(page);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut in_block = false;
    let mut commands: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.starts_with("```") {
            in_block = !in_block;
        } else if in_block && let Some(command) = line.strip_prefix("$ ") {
            commands.push(command.split("  # ").next().unwrap().trim_end().to_owned());
        }
    }
    assert!(commands.len() >= 3, "{page} has commands");
    commands
}

/// Runs every command of a page in `place`. All end with status 0, but for those that contain a text of `fails`: they
/// end with 2.
#[track_caller]
fn run_page(page: &str, place: &Place, fails: &[&str]) {
    let programs = Path::new(env!("CARGO_BIN_EXE_plimsoll")).parent().unwrap();
    let rest = std::env::var("PATH").unwrap();
    let path = format!("{}:{}:{rest}", place.path("stand-ins").display(), programs.display());
    for command in commands(page) {
        let out = Command::new("sh")
            .args(["-c", &command])
            .current_dir(place.path("."))
            .env("PATH", &path)
            .env_remove("COLUMNS")
            .stdin(Stdio::null())
            .output()
            .unwrap();
        let expected = if fails.iter().any(|part| command.contains(part)) { 2 } else { 0 };
        let (stdout, stderr) = (String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
        assert_eq!(out.status.code(), Some(expected), "docs/{page}: {command}\n{stdout}\n{stderr}");
    }
}

/// Makes a program of the search path that runs a line of shell.
fn stand_in(place: &Place, name: &str, line: &str) {
    fs::create_dir_all(place.path("stand-ins")).unwrap();
    let file = format!("stand-ins/{name}");
    place.write(&file, &format!("#!/bin/sh\n{line}\n"));
    fs::set_permissions(place.path(&file), fs::Permissions::from_mode(0o755)).unwrap();
}

/// Makes the scenarios of this repository reachable under their folder's name.
fn scenarios(place: &Place) {
    let scenarios = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    std::os::unix::fs::symlink(scenarios, place.path("scenarios")).unwrap();
}

#[test]
fn the_page_of_tail_models() {
    let place = Place::new();
    place.write("get.hlog", crate::models::LOG);
    place.write("get.csv", "ms\n0.1\n0.2\n0.4\n3\n");
    place.write("requests.csv", "verb,latency_us\nget,80\nget,95\nset,310\n");
    let quick = ["--set", "run.duration=0.3s", "--set", "run.warmup=0s", "-q"];
    let run = [&["run", crate::common::QUICKSTART, "--out", "results/quickstart"], &quick[..]].concat();
    place.plimsoll(&run).ends_with(0);
    run_page("models.md", &place, &[]);
}

#[test]
fn the_page_of_bursts() {
    let place = Place::new();
    if !place.may_capture() {
        plimsoll_testing::skipped!("a capture from a device needs CAP_NET_RAW");
        return;
    }
    let _traffic = crate::bursts::Traffic::start();
    fs::write(place.path("link.pcap"), crate::bursts::capture(3)).unwrap();
    stand_in(&place, "tcpdump", "cat link.pcap");
    scenarios(&place);
    run_page("bursts.md", &place, &["head -c 7029"]);
}

#[test]
fn the_page_of_the_tail() {
    let place = Place::new();
    if !place.may_capture() {
        plimsoll_testing::skipped!("a capture from a device needs CAP_NET_RAW");
        return;
    }
    let _traffic = crate::bursts::Traffic::start();
    // The load generator has tests of its own, with a server to ask.
    place.write("measured.hlog", crate::models::LOG);
    stand_in(&place, "chronos-load", "cp measured.hlog get.hlog");
    scenarios(&place);
    run_page("tail.md", &place, &[]);
}
