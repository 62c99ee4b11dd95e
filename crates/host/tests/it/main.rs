//! The tests of `plimsoll-host`, in one program: one build and one link for all of them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod deploy;
#[cfg(feature = "kernel")]
mod kernel;
