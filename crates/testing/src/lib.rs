//! Shared code of tests: reporting a skipped test, measuring the processor time that other programs took, and the names
//! of metrics, and manual pages.
//!
//! The test runner captures what a passing test prints, so a test that skips itself would do so unnoticed. The macros
//! of this crate write to stderr directly, between the runner's own lines.

pub mod manuals;
pub mod metrics;
mod others;
#[cfg(target_os = "linux")]
pub mod streams;

use std::fmt;
use std::io::{self, Write as _};
use std::thread;

pub use others::Others;

/// Reports that the test of this thread is skipped, and why: what is missing, and how to get it. The arguments are
/// those of `format!`.
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
