//! OpenMetrics text, and the small HTTP server that serves it to Prometheus.
//!
//! ```text
//! counters ──> Exposition (families, samples) ──> text ──> serve, on threads of its own ──> GET /metrics
//! ```
//! The format is that of the OpenMetrics specification 1.0.0.

#![forbid(unsafe_code)]

mod control_group;
mod exposition;
pub mod http;
mod listener;
mod process;
mod serve;

pub use control_group::control_group_memory;
pub use exposition::{Exposition, Kind};
pub use listener::{Listener, Reach};
pub use process::process;
pub use serve::{serve, spawn};
