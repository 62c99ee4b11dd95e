//! Measured latencies beside modelled ones.
//!
//! ```text
//! file ── models::measured ──> quantiles ──┐
//!                                          ├── Comparison: differences ── layer ──> host, queue, loss, service
//! outcomes ── ModelledLatencies (parts) ───┘
//!
//! Scenario, keys ── fit (Gauss-Newton, the same seeds) ──> CalibratedFit
//! CalibratedFit ── include ──> a scenario at another load ──> Check
//! ```
//!
//! Latencies are floating-point microseconds, since they are estimates. A fitted parameter is a whole number of
//! nanoseconds, as the scenario has it.

#![forbid(unsafe_code)]

mod check;
mod comparison;
mod fit;
mod layer;
mod modelled;
mod parameter;
mod quantiles;

pub use check::{Check, CheckVerdict};
pub use comparison::{Comparison, Quantile, listing};
pub use fit::{CalibrateError, CalibratedFit, Calibration, Fitted};
pub use layer::{LatencyLayer, Verdict};
pub use modelled::{ModelledLatencies, shortest_timeout};
