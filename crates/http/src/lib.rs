//! A small HTTP server for the programs of this workspace, and the metrics that it serves to Prometheus.
//!
//! ```text
//! Listener ──> serve ──> Request ──> the caller's function ──> Answer
//! counters ──> metrics::Exposition (families, samples) ──> text ──> metrics::serve ──> GET /metrics
//! ```

#![forbid(unsafe_code)]

mod listener;
pub mod metrics;
mod server;

pub use listener::{Listener, ListenerReach};
pub use server::{HttpAnswer, Limits, PATIENCE, Request, absolute, serve};
