//! Vectors of events, and the requests that the matcher makes of them.
#![allow(clippy::unwrap_used, reason = "tests")]

mod script;
mod vectors;
mod whole;
