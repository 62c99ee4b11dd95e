//! Runs and policies on this machine's kernel. They go by the wall's clock and take namespaces, cgroups and units, so
//! they are a program of their own, beside which no other test runs.
#![allow(clippy::unwrap_used, reason = "tests")]

mod breakdown;
mod circuits;
#[path = "../it/common/mod.rs"]
mod common;
mod emulate;
mod host;
mod import;
mod qjump_kernel;
mod rollout;
mod systemd;
