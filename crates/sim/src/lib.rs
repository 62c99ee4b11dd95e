//! A run as a function: a scenario's model in, an outcome out.
//!
//! ```text
//! Model ──build──> World { fabric, hosts, sources, recorder } ──events──> Outcome
//! ```
//!
//! [`run`] has no other input than the model (which holds the seed) and no other output than the
//! [`Outcome`]; the progress callback can stop it and see how far it is, no more.

#![forbid(unsafe_code)]

pub mod approximate;
pub mod batch;
mod build;
mod capacity;
mod error;
pub mod estimate;
mod hosts;
mod link_names;
mod look_ahead;
mod observe;
mod packet_capture;
mod packet_recorder;
mod parallel;
mod progress;
mod replay;
mod rules;
mod sim_hooks;
mod sources;
mod world;

use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::Model;

pub use error::RunError;
pub use parallel::{DividedLoad, Parallelism, ProcessLoad, obstacle, plan, run_in_parts, run_on};
pub use progress::Progress;
pub use replay::{Extent, RecordError, record};

/// Runs `model`. `progress` is called about every hundred thousand events; the run is cancelled when it
/// returns false.
///
/// # Errors
/// Fails if the model cannot be built, or the run was cancelled.
///
/// # Panics
/// Panics if packets were not conserved, or the components of a completion time do not sum to it: a defect of
/// the simulator, never of the scenario. Panics if a path selector from outside chooses a path that does not exist.
pub fn run(model: &Model, progress: &mut dyn FnMut(Progress) -> bool) -> Result<Outcome, RunError> {
    match model.run.approximate() {
        Some(size) => approximate::run(model, *size, 1, progress),
        None => build::run_whole(model, progress),
    }
}
