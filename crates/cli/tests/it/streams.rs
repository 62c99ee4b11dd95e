//! Checks the messages and files of a run whose output cannot be written: a closed pipe, a full disk, a closed
//! descriptor, a closed terminal.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;

use crate::common::Place;
use plimsoll_testing::streams::{Lost, Stream, Terminal};

/// Four points of some milliseconds each, whose tails have too few samples, so that the run prints a warning.
const SMALL: &str = r#"
version = 1
title = "Streams"
replicates = 2
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
[slo]
transfers = "p90(transfers) < 1ms"
[sweep]
"workload.transfers.load" = [0.3, 0.4]
"#;

const PROGRAM: &str = env!("CARGO_BIN_EXE_plimsoll");

/// Returns the files below a folder, except the ones that contain the folder, the time or the command.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder_here) = open.pop() {
        for entry in fs::read_dir(folder_here).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
            if name != "manifest.json" {
                found.insert(name, fs::read(path).unwrap());
            }
        }
    }
    found
}

/// Runs the program with each stream lost in each way, and passes on the status, the other stream's text and the case.
fn each(
    place: &Place,
    arguments: impl Fn(&str) -> Vec<String>,
    look: impl Fn(Stream, Lost, Option<i32>, String, &str),
) {
    for stream in [Stream::Stdout, Stream::Stderr] {
        for lost in Lost::ALL {
            let case = format!("{stream:?}-{lost:?}");
            let mut command = lost.command(PROGRAM, stream).unwrap();
            command.args(arguments(&case)).current_dir(place.path(".")).stdin(Stdio::null());
            match stream {
                Stream::Stdout => command.stderr(Stdio::piped()),
                Stream::Stderr => command.stdout(Stdio::piped()),
            };
            let output = command.spawn().unwrap().wait_with_output().unwrap();
            let other = [output.stdout, output.stderr].concat();
            look(stream, lost, output.status.code(), String::from_utf8(other).unwrap(), &case);
        }
    }
}

fn words(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|word| (*word).to_owned()).collect()
}

#[test]
fn a_run_is_whole_whatever_becomes_of_its_streams() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    let normal = place.plimsoll(&["run", "small.toml", "--out", "normal", "--perfetto"]).ends_with(0);
    let whole = files(&place.path("normal"));
    assert!(whole.contains_key("summary.json") && whole.contains_key("report.html") && whole.len() > 10);
    each(
        &place,
        |case| words(&["run", "small.toml", "--out", case, "--perfetto"]),
        |stream, lost, code, other, case| {
            assert_eq!(code, Some(if lost.is_error_of(stream) { 2 } else { 0 }), "{case}: {other}");
            let found = files(&place.path(case));
            assert!(found.keys().eq(whole.keys()), "{case}: {:?}", found.keys());
            for (name, bytes) in &found {
                assert!(*bytes == whole[name], "{case}: {name} is another");
            }
            match stream {
                Stream::Stderr => assert_eq!(other, normal.stdout, "{case}"),
                Stream::Stdout => {
                    assert!(other.contains("Results  ") && other.contains("Report   "), "{case}: {other}");
                    assert_eq!(other.contains("cannot write to stdout"), code == Some(2), "{case}: {other}");
                }
            }
        },
    );
}

#[test]
fn a_search_is_whole_whatever_becomes_of_its_streams() {
    let place = Place::new();
    place.write("small.toml", &SMALL.replace("replicates = 2\n", ""));
    let search = |out: &str| {
        words(&[
            "line",
            "small.toml",
            "--out",
            out,
            "--set",
            "sweep={}",
            "--replicates-max",
            "2",
            "--precision",
            "50%",
        ])
    };
    // Two runs decide nothing, which is a finding.
    let arguments = search("normal");
    place.plimsoll(&arguments.iter().map(String::as_str).collect::<Vec<_>>()).ends_with(1);
    let whole = files(&place.path("normal"));
    each(&place, search, |stream, lost, code, other, case| {
        assert_eq!(code, Some(if lost.is_error_of(stream) { 2 } else { 1 }), "{case}: {other}");
        assert_eq!(files(&place.path(case))["lines.json"], whole["lines.json"], "{case}");
        assert!(place.path(case).join("report.html").is_file(), "{case}");
    });
}

#[test]
fn commands_that_keep_nothing_end_as_they_should() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    for arguments in [
        &["--help"][..],
        &["run", "--help"],
        &["--version"],
        &["config"],
        &["scenario", "schema"],
        &["scenario", "check", "small.toml"],
        &["scenario", "show", "small.toml"],
        &["run", "small.toml", "--list"],
        &["completions", "bash"],
        &["model", "qjump", "--hosts", "4"],
    ] {
        each(
            &place,
            |_| words(arguments),
            |stream, lost, code, other, case| {
                assert_eq!(
                    code,
                    Some(if lost.is_error_of(stream) { 2 } else { 0 }),
                    "{arguments:?}, {case}: {other}"
                );
            },
        );
    }
    for arguments in [&["run", "none.toml"][..], &["run"], &["compare", "none", "none"]] {
        each(
            &place,
            |_| words(arguments),
            |_, _, code, other, case| {
                assert_eq!(code, Some(2), "{arguments:?}, {case}: {other}");
            },
        );
    }
}

#[test]
fn a_terminal_that_goes_while_it_shows_progress_ends_nothing() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    place.plimsoll(&["run", "small.toml", "--out", "normal", "-q"]).ends_with(0);
    let (mut window, inner) = Terminal::open().unwrap();
    let mut command = place.command(&["run", "small.toml", "--out", "out", "--verbose"]);
    // The long runs follow the run that prints the first line.
    command.args(["--set", "replicates=40"]).stdout(Stdio::null()).stderr(Stdio::from(inner));
    let mut child = command.spawn().unwrap();
    drop(command);
    let mut first = [0; 16];
    assert!(window.read(&mut first).unwrap() > 0);
    drop(window);
    assert_eq!(child.wait().unwrap().code(), Some(0));
    let kept = files(&place.path("out"));
    for (name, bytes) in files(&place.path("normal")).iter().filter(|(name, _)| name.starts_with("points/")) {
        assert!(kept[name] == *bytes, "{name} is another");
    }
}

#[test]
fn a_reader_of_both_streams_that_goes_after_a_line_takes_nothing_away() {
    let place = Place::new();
    place.write("small.toml", SMALL);
    place.plimsoll(&["run", "small.toml", "--out", "normal", "-q"]).ends_with(0);
    let status = std::process::Command::new("sh")
        .args(["-c", r#""$0" run small.toml --out out 2>&1 | head -n 1"#, PROGRAM])
        .current_dir(place.path("."))
        .stdout(Stdio::null())
        .status()
        .unwrap();
    assert!(status.success());
    // The shell has waited for both processes.
    assert_eq!(files(&place.path("out")), files(&place.path("normal")));
}
