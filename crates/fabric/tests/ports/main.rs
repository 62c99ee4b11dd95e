//! One port at a time, in front of a sink that writes everything down; and a whole fabric without a scenario.
#![allow(clippy::unwrap_used, reason = "tests")]

mod bench;
mod engines;
mod fairness;
mod kinds;
mod pacing;
mod telemetry;
mod trimming;
mod whole;
