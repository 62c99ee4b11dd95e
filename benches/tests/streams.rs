//! The exit status of the command when its output is not read.
#![cfg(target_os = "linux")]

use plimsoll_testing::streams::ends_without_streams;

#[test]
fn a_lost_stream_is_no_panic() {
    let program = env!("CARGO_BIN_EXE_plimsoll-benches");
    ends_without_streams(program, &["--help"], 0);
    ends_without_streams(program, &["one", "s1", "--seconds", "0.01"], 0);
}
