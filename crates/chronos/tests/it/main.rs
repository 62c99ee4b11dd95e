//! The tests of `plimsoll-chronos`, in one program: one build and one link for all of them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod runtime;
mod steering;
