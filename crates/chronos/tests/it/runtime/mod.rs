//! The runtime under real sockets and threads.
#![allow(clippy::unwrap_used, reason = "tests")]

mod balance;
mod client;
mod datagrams;
#[cfg(feature = "kernel")]
mod devices;
mod memory;
mod order;
#[cfg(feature = "kernel")]
#[path = "../common/pair.rs"]
mod pair;
mod service;
mod silent;
mod split;
mod start;
mod streams;
mod table;
mod tls;
mod turns;
