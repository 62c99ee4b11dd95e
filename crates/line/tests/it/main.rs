//! The tests of `plimsoll-line`, in one program: one build and one link for all of them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod keys;
mod queues;
mod search;
mod time;
