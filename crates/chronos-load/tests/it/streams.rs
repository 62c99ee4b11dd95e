//! What the command ends with where nobody reads what it says.
#![cfg(target_os = "linux")]

use plimsoll_testing::streams::ends_without_streams;

#[test]
fn a_lost_stream_is_no_panic() {
    let program = env!("CARGO_BIN_EXE_chronos-load");
    ends_without_streams(program, &["run", "--help"], 0);
    ends_without_streams(program, &["--version"], 0);
    // Nobody listens there: an error anyway.
    ends_without_streams(program, &["run", "--server", "unix:/nonexistent/socket"], 2);
}
