//! The server keeps serving when its stdout and stderr are closed.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test")]

#[test]
fn a_lost_stream_ends_no_server() {
    let folder = tempfile::tempdir().unwrap();
    plimsoll_testing::streams::serves_without_streams(
        env!("CARGO_BIN_EXE_chronos-memcached"),
        folder.path(),
        // As root it asks for a user to become.
        |socket| ["-vv", "-m", "16", "-R", "5", "-u", "root", "-s", socket].map(str::to_owned).to_vec(),
    );
}
