//! Checks the command's exit status where its output cannot be written.
#![cfg(target_os = "linux")]

use plimsoll_testing::streams::ends_without_streams;

#[test]
fn a_lost_stream_is_no_panic() {
    let program = env!("CARGO_BIN_EXE_chronos-load");
    ends_without_streams(program, &["run", "--help"], 0);
    ends_without_streams(program, &["--version"], 0);
    // No process listens there, so the status is that of an error anyway.
    ends_without_streams(program, &["run", "--server", "unix:/nonexistent/socket"], 2);
}
