//! What is asked of runs.
//!
//! ```text
//! text ──Measure::parse──> Measure ──check(Model)──> before a run: the scenario has what it names
//!                             └──────estimate(Outcome)──> after it: a number and its interval
//! ```

#![forbid(unsafe_code)]

pub mod measure;

pub use measure::{Measure, TimeUnit};
