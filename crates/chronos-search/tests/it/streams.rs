//! The server keeps serving when its stdout and stderr are closed.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "a test")]

#[test]
fn a_lost_stream_ends_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let document = folder.path().join("document.txt");
    std::fs::write(&document, "words of a document").unwrap();
    let document = document.to_str().unwrap();
    plimsoll_testing::streams::serves_without_streams(
        env!("CARGO_BIN_EXE_chronos-search"),
        folder.path(),
        |socket| vec!["--listen".to_owned(), format!("unix:{socket}"), document.to_owned()],
    );
}
