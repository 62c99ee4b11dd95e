//! The runtime under real sockets and threads.
#![allow(clippy::unwrap_used, reason = "tests")]

mod balance;
mod client;
mod datagrams;
mod exchanges;
mod memory;
mod order;
mod service;
mod silent;
mod split;
mod start;
mod streams;
mod table;
mod tls;
mod turns;
