//! Models without a network.
//!
//! ```text
//!            ┌── fan_out: all at once, wait for the last ──> the largest of S draws
//! Law ───────┤
//!  ^         ├── sequential: one after the other ──────────> L times wait and service, as many as a budget allows
//!  │         └── Redundant: replicas, hedges, retries ─────> a shorter tail, and more requests
//!  │                └── chain: L steps, each the last of W ──> the time of a page
//!  └── measured: histograms and lists of latencies
//!
//! questions: options with their defaults, of the command line and of Python ──> a table
//!
//! ClusterModel ─ cluster::run ─> servers with the same data, whose queues copies of requests lengthen
//! ServerModel ── server::run ──> threads, queues, locks, partitions, their balance ──> latency breakdown by request
//! ```
//!
//! The laws of the tail follow chapter 4 of Kapoor's dissertation (2015; Chronos, SoCC 2012). Their latencies are in
//! microseconds, as floating-point numbers: they are estimates, and no event is ordered by them. The server's model is
//! a simulation with the engine of the fabric: integer time, named random streams, ties that favour no owner.

#![forbid(unsafe_code)]

pub mod chain;
pub mod cluster;
pub mod fan_out;
mod integral;
mod law;
pub mod measured;
pub mod questions;
mod redundancy;
pub mod sequential;
pub mod server;

pub use law::{Empirical, Law, LawError};
pub use redundancy::{CopyPolicy, CopyPolicyError, Redundant};
