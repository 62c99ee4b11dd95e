//! The tests of `plimsoll-scenario`, in one program: one build and one link for all of them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bad;
mod files;
mod fuzz;
mod generated;
mod import;
mod merge;
mod presets;
mod registry;
mod shipped;
