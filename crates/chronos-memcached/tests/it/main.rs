//! The tests of `plimsoll-chronos-memcached`, in one program: one build and one link for all of them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod client_certificates;
mod clients;
mod common;
mod device;
mod differential;
mod exporter;
mod fuzz;
mod instructions;
mod memory;
mod metrics;
mod operation;
mod reload;
mod restart;
mod server;
mod soak;
mod streams;
