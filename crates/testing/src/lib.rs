//! Shared code of tests: waiting for an event, reporting a skipped test, measuring the processor time that other
//! programs took, the names of metrics, and manual pages.
//!
//! The test runner captures the output of a passing test, so a test that skips itself would do so unnoticed. The macros
//! of this crate write to stderr directly, between the runner's own lines.

pub mod manuals;
pub mod metrics;
mod others;
#[cfg(target_os = "linux")]
pub mod streams;

use std::fmt;
use std::io::{self, Write as _};
use std::thread;
use std::time::{Duration, Instant};

pub use others::Others;

/// The longest wait of [`eventually`]: far longer than anything takes on a machine under load, as it bounds a test that
/// hangs and measures nothing.
pub const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until a condition holds that the kernel, a server or a process brings about soon, but at no known time: an
/// object of the kernel is released a grace period after its last user, a connection is closed by the other end.
///
/// # Panics
/// Panics with `what`, the name of the event, if it has not occurred within [`PATIENCE`].
#[track_caller]
pub fn eventually(what: impl fmt::Display, mut has_come: impl FnMut() -> bool) {
    let began = Instant::now();
    while !has_come() {
        assert!(began.elapsed() < PATIENCE, "not within {} s: {what}", PATIENCE.as_secs());
        thread::sleep(Duration::from_millis(1));
    }
}

/// Reports that the test of this thread is skipped, and the reason: the missing part, and how to get it. The arguments
/// are as for `format!`.
#[macro_export]
macro_rules! skipped {
    ($($why:tt)+) => {
        $crate::say_skipped(::core::format_args!($($why)+))
    };
}

/// Reports that the test of this thread is skipped because a program is missing. Where the environment variable CI is
/// set, the test fails instead: CI installs the packages that the Makefile lists in TEST_PACKAGES.
///
/// # Panics
/// Panics where CI is set.
#[track_caller]
pub fn missing(what: impl fmt::Display) {
    let is_build_machine = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!is_build_machine, "CI is set, where no test may be skipped: {what}");
    skipped!("{what}");
}

/// Writes the line of [`skipped!`] to stderr.
pub fn say_skipped(why: fmt::Arguments<'_>) {
    // The test runner gives a test's thread the name of the test.
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    // With stderr closed, the line is dropped.
    let _ = writeln!(io::stderr(), "skipped: {test}: {why}");
}
