//! Tail models: what one request's latency makes of those who ask many times.
//!
//! ```text
//!            ┌── fan_out: all at once, wait for the last ──> the largest of S draws
//! Law ───────┤
//!            └── sequential: one after the other ──────────> L times wait and service, as many as a budget allows
//! ```
//!
//! After chapter 4 of Kapoor's dissertation (2015; Chronos, SoCC 2012). Latencies are in microseconds, as floating-point
//! numbers: these are estimates, and nothing that orders events.

#![forbid(unsafe_code)]

pub mod fan_out;
mod law;
pub mod sequential;

pub use law::{Empirical, Law, LawError};
