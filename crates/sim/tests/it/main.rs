//! The tests of `plimsoll-sim`, in one program: one build and one link for all of them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bursts;
mod capture;
mod host_stack;
mod shared_buffer;
mod truth;
