//! What is asked of runs, and where those that are finished are kept.
//!
//! ```text
//! text ──Measure::parse──> Measure ──check(Model)──> before a run: the scenario has what it names
//!                             └──────estimate(Outcome)──> after it: a number and its interval
//! finished run ──> Store ──> a line of JSON with a checksum, by its key
//! ```

#![forbid(unsafe_code)]

pub mod measure;
pub mod store;

pub use measure::{Measure, TimeUnit};
pub use store::{Finished, Store, StoreError};
