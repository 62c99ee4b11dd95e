//! Observations of runs, their evaluation, and their storage.
//!
//! Reading order: [`outcome`] is the result of a run; [`stats`] turns samples into estimates with intervals;
//! [`summary`] applies them to every variant and sweep point; [`digest`] distinguishes runs; [`run_dir`] keeps it all
//! on disk so that a killed run loses no finished point. [`capture`] writes packets and timelines for other tools;
//! [`replay`] has the packets of a moment, to be drawn.

pub mod by_rank;
pub mod by_size;
pub mod capture;
pub mod circuit_curves;
pub mod curves;
pub mod digest;
pub mod hpcc;
pub mod job_timeline;
pub mod latencies;
pub mod link_map;
pub mod mechanism_uses;
pub mod outcome;
pub mod over_time;
pub mod perfetto;
mod plain;
pub mod point;
pub mod replay;
pub mod run_dir;
pub mod side_by_side;
pub mod summary;
#[cfg(any(test, feature = "synthetic"))]
pub mod synthetic;

pub use curves::Curves;
pub use digest::Digest;
pub use outcome::Outcome;
pub use plimsoll_stats as stats;
pub use plimsoll_stats::{Estimate, Interval};
pub use point::{PointKey, PointOutcome};
pub use run_dir::RunDir;
pub use summary::Summary;
