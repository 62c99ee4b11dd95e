//! The program chronos-search-locked, with every lock.
#![allow(clippy::unwrap_used, reason = "tests")]

#[allow(dead_code, reason = "the tests of chronos-search use all of it")]
#[path = "../../../../crates/chronos-search/tests/it/support/server.rs"]
mod server;

use plimsoll_chronos_locked::Lock;

#[test]
fn both_protocols_with_every_lock() {
    for (name, _) in Lock::ALL {
        server::both_protocols(&["--threads=2", &format!("--lock={name}")]);
    }
}

#[test]
fn two_baselines_at_once_are_rejected() {
    let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_chronos-search-locked"));
    let output = command.args(["--snapshots", "--lock=global"]).output().unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(2) && error.contains("choose one"), "{error}");
}
