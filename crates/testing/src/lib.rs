//! What tests of all crates share: how one says that it is left out, and whether others kept the processors busy.
//!
//! The test runner keeps what a test prints unless it fails, so a test that finds something missing and passes would say so to
//! nobody. What is said here goes past that, and stands among the runner's own lines.

mod others;
#[cfg(target_os = "linux")]
pub mod streams;

use std::fmt;
use std::io::{self, Write as _};
use std::thread;

pub use others::Others;

/// Says that the test of this thread is left out, and why: what is missing, and where it is to be had. As with `format!`.
#[macro_export]
macro_rules! skipped {
    ($($why:tt)+) => {
        $crate::say_skipped(::core::format_args!($($why)+))
    };
}

/// Says that the test of this thread is left out for want of a program. Where the environment variable CI is set it fails:
/// what the Makefile's TEST_PACKAGES name is installed there.
///
/// # Panics
/// With CI set.
#[track_caller]
pub fn missing(what: impl fmt::Display) {
    let is_build_machine = std::env::var_os("CI").is_some_and(|value| !value.is_empty());
    assert!(!is_build_machine, "CI is set, and no test is left out then: {what}");
    skipped!("{what}");
}

/// What [`skipped!`] calls.
pub fn say_skipped(why: fmt::Arguments<'_>) {
    // The runner names a test's thread after it.
    let thread = thread::current();
    let test = thread.name().unwrap_or("a test");
    // Nobody listens: then nobody is told.
    let _ = writeln!(io::stderr(), "skipped: {test}: {why}");
}
