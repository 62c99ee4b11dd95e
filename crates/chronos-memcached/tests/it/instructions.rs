//! The gate on the cost of a request: instructions of parse, execute and format, as valgrind counts them.
//!
//! A count is the same on a busy machine and on a quiet one. Two runs of different length are subtracted, which removes
//! the start and the filling. The counts hold for the test profile with rustc 1.95, whose code differs from that of the
//! release profile: they show whether a request has become more expensive, not its cost in production.
#![allow(clippy::print_stdout, reason = "a test; its runner shows it where it fails")]

use crate::common::mix;

use std::process::Command;
use std::time::Duration;

use plimsoll_chronos::{Direct, Now, Service, SessionTransport};
use plimsoll_chronos_memcached::{Memcached, MemcachedSettings};

const KEYS: u64 = 500;
/// Requests that arrive together.
const BATCH: u64 = 16;
const SHORT: u64 = 100;
const LONG: u64 = 600;
/// The factor by which a count may differ from the table.
const TOLERANCE: f64 = 1.1;
/// Instructions an operation, making the request included.
const TABLE: [(&str, f64); 3] = [("text", 2045.0), ("meta", 2135.0), ("binary", 1687.0)];

/// The requests that are counted: run by the other test, under valgrind.
#[test]
#[ignore = "no test by itself: instructions_per_operation runs it under valgrind"]
fn requests() {
    let variable = |name: &str| std::env::var(name).expect("set by the other test");
    let (protocol, batches) =
        (variable("MIX_PROTOCOL"), variable("MIX_BATCHES").parse::<u64>().expect("a number"));
    let settings = MemcachedSettings { partitions: 4, hash_secret: 7, ..MemcachedSettings::default() };
    let mut direct = Direct::new(Memcached::new(settings).expect("good settings"), 4);
    let mut session = direct.service().open(SessionTransport::Tcp);
    let now = Now { since_start: Duration::ZERO, unix_seconds: 1_800_000_000 };
    let (mut input, mut reply) = (Vec::with_capacity(64 << 10), Vec::with_capacity(64 << 10));
    for key in 0..KEYS {
        input.clear();
        mix::set(&protocol, key, &mut input).expect("a protocol");
        direct.serve(&mut session, now, &input, &mut reply);
        reply.clear();
    }
    for batch in 0..batches {
        mix::requests(&protocol, KEYS, batch * BATCH..(batch + 1) * BATCH, &mut input).expect("a protocol");
        reply.clear();
        assert_eq!(direct.serve(&mut session, now, &input, &mut reply).consumed, input.len());
    }
}

fn count(protocol: &str, batches: u64) -> u64 {
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", "instructions::requests", "--ignored"])
        .env("MIX_PROTOCOL", protocol)
        .env("MIX_BATCHES", batches.to_string())
        .output()
        .expect("valgrind runs");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}");
    let line = text.lines().find_map(|line| line.split_once("Collected :")).expect("a count");
    line.1.trim().parse().expect("a number")
}

#[test]
fn instructions_per_operation() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        return plimsoll_testing::missing("valgrind is not installed (apt-get install valgrind)");
    }
    let mut wrong = Vec::new();
    for (protocol, expected) in TABLE {
        let more = count(protocol, LONG) - count(protocol, SHORT);
        let found = more as f64 / ((LONG - SHORT) * BATCH) as f64;
        println!("{protocol}: {found:.0} instructions an operation, {expected} in the table");
        if found > expected * TOLERANCE || found < expected / TOLERANCE {
            wrong.push(format!("{protocol}: {found:.0} instructions an operation, not {expected}"));
        }
    }
    assert!(wrong.is_empty(), "if this is as it should be, change the table: {}", wrong.join("; "));
}

#[test]
fn only_the_build_machine_must_have_valgrind() {
    for (is_build_machine, passes) in [("", true), ("true", false)] {
        let mut test = Command::new(std::env::current_exe().expect("this program"));
        test.args(["--exact", "instructions::instructions_per_operation"]);
        let output = test.env("PATH", "/nowhere").env("CI", is_build_machine).output().expect("it runs");
        assert_eq!(output.status.success(), passes, "{}", String::from_utf8_lossy(&output.stdout));
    }
}
