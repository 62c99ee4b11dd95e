//! The tests of `plimsoll-reproduce`, in one program: one build and one link for all of them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod breakdown_kernel;
mod bullettrains;
mod bullettrains_kernel;
mod chronos;
mod chronos_kernel;
mod common;
mod detail;
mod detail_kernel;
mod digests;
mod hull;
mod hull_kernel;
mod ledger;
mod qjump;
mod qjump_kernel;
mod reactor;
mod reactor_kernel;
mod resume;
mod solstice;
mod sources;
