//! The tests of `plimsoll-chronos-load`, in one program: one build and one link for all of them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod faults;
mod line;
mod memcached;
mod openflow;
mod streams;
