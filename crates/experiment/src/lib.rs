//! Questions to runs, the bench on which runs are made, and the store of finished runs.
//!
//! ```text
//! text ──Measure::parse──> Measure ──check(Model)──> before a run: the scenario has what it names
//!                             └──────estimate(Outcome)──> after it: a number and its interval
//! Question ──> store: which points are missing ──> Bench (sim::batch) ──> store ──> measures, summary
//! ```
//!
//! The store of a run is its directory ([`points`]). Searches and studies keep numbers of each run in a [`Store`]: a
//! line of JSON with a checksum, by its key.

#![forbid(unsafe_code)]

pub mod bench;
pub mod measure;
pub mod memory;
pub mod points;
pub mod question;
pub mod replay;
pub mod slo;
pub mod store;

pub use bench::{Bench, BenchWatch};
pub use measure::{Measure, TimeUnit};
pub use memory::Memory;
pub use question::Question;
pub use slo::{Metric, Slo};
pub use store::{Finished, Store, StoreError};
