//! The tests of `plimsoll-chronos`, in one program: one build and one link for all of them.
#![allow(clippy::unwrap_used, reason = "tests")]

#[cfg(feature = "kernel")]
#[allow(dead_code, reason = "the tests of dispatch use all of it")]
mod keys;
mod runtime;
mod steering;
