//! The tests of `plimsoll-linux` that need no namespaces.
#![allow(clippy::unwrap_used, reason = "tests")]

mod frames;
