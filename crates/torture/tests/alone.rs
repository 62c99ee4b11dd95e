//! Runs the attacks for half a minute on the build machine, and one trial of the quick ones elsewhere. They compare the
//! kernel's objects of the whole machine: no other test runs beside them.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::io::{self, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};

/// Seconds for all attacks together where CI is set.
const SECONDS: &str = "30";
/// The attacks that are quick and need no root.
const QUICK: [&str; 4] =
    ["--tries=1", "--attack=sweeps-killed", "--attack=files-damaged", "--attack=digests"];

#[test]
fn nothing_is_lost() {
    let torture = Path::new(env!("CARGO_BIN_EXE_plimsoll-torture"));
    for program in ["plimsoll", "chronos-memcached", "chronos-search", "chronos-openflow"] {
        if !torture.with_file_name(program).exists() {
            return plimsoll_testing::missing(format!(
                "{program} is not built yet: cargo test --workspace builds it"
            ));
        }
    }
    let is_build_machine = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    let mut command = Command::new(torture);
    if is_build_machine {
        command.args(["--seconds", SECONDS]);
    } else {
        command.args(QUICK);
    }
    let output = command.stdin(Stdio::null()).output().unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    // The table goes past the test runner's capture, since it is the purpose of this test.
    let _ = write!(io::stderr(), "{table}");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{table}\n{said}");
    assert!(table.contains(" tries, 0 losses"), "{table}\n{said}");
}
