//! The tests of `plimsoll-chronos-locked`, in one program.
#![allow(clippy::unwrap_used, reason = "tests")]

mod memcached;
mod reads;
mod runtime;
mod search;
