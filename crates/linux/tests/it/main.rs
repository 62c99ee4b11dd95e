//! The tests of `plimsoll-linux`, in one program: one build and one link for all of them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod frames;
mod live;
