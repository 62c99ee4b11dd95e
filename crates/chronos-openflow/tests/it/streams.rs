//! The controller keeps serving when its stdout and stderr are closed.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test")]

#[test]
fn a_lost_stream_ends_no_controller() {
    let folder = tempfile::tempdir().unwrap();
    plimsoll_testing::streams::serves_without_streams(
        env!("CARGO_BIN_EXE_chronos-openflow"),
        folder.path(),
        |socket| vec!["--listen".to_owned(), format!("unix:{socket}")],
    );
}
