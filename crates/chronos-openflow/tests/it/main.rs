//! The tests of `plimsoll-chronos-openflow`, in one program: one build and one link for all of them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod conversations;
mod deadlines;
mod hostile;
mod metrics;
mod ofp_print;
mod open_vswitch;
mod silent;
mod smuggling;
mod streams;
mod support;
