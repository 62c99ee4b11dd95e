//! The tests of `plimsoll-chronos-xdp`, in one program.
#![cfg(feature = "kernel")]
#![allow(clippy::unwrap_used, reason = "tests")]

mod devices;
mod dispatch;
mod pair;
