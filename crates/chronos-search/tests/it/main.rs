//! The tests of `plimsoll-chronos-search`, in one program: one build and one link for all of them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod conversations;
mod datagrams;
mod hostile;
mod memory;
mod metrics;
mod ranking;
mod server;
mod silent;
mod smuggling;
mod streams;
mod support;
