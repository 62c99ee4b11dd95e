//! Tail models: the latency of an operation that makes many requests, from that of one request.
//!
//! ```text
//!            ┌── fan_out: all at once, wait for the last ──> the largest of S draws
//! Law ───────┤
//!            └── sequential: one after the other ──────────> L times wait and service, as many as a budget allows
//! ```
//!
//! The laws follow chapter 4 of Kapoor's dissertation (2015; Chronos, SoCC 2012). Latencies are in microseconds, as
//! floating-point numbers: they are estimates, and no event is ordered by them.

#![forbid(unsafe_code)]

pub mod fan_out;
mod law;
pub mod sequential;

pub use law::{Empirical, Law, LawError};
