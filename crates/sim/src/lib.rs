//! A run as a function: a scenario's model in, what was observed out.
//!
//! ```text
//! Model ──build──> World { network, ports, connections, workloads } ──events──> Recorder ──> Outcome
//! ```
//!
//! [`run`] has no other input than the model (which holds the seed) and no other output than the
//! [`Outcome`]; the progress callback can stop it and see how far it is, no more. [`server`] does the same for the
//! inside of one server, without a network.

#![forbid(unsafe_code)]

mod acting;
pub mod batch;
mod build;
mod classes;
mod connection;
pub mod estimate;
mod faults;
mod flow_control;
mod look_ahead;
mod observe;
mod parallel;
mod pool;
mod receive;
pub mod server;
mod tap;
mod transport;
mod wire;
mod wires;
mod world;

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::SelectPath;
use plimsoll_mechanisms::tcp::MakeController;
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::Model;
use plimsoll_units::Time;

pub use parallel::{obstacle, run_in_parts, run_on};
pub use plimsoll_fabric::MakeDiscipline;

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// Simulated time.
    pub now: Time,
    /// When the run ends at the latest; [`Time::MAX`] if it ends when its work is done.
    pub horizon: Time,
    /// Packets that have completed a link so far.
    pub packet_hops: u64,
    /// Events handled so far.
    pub events: u64,
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The progress callback said so.
    #[error("the run was cancelled")]
    Cancelled,
    /// Switches that pause each other in a circle: none of these ports will ever send again.
    #[error("deadlock at {at}: flow control has paused these links in a circle, none can move: {}", links.join(", "))]
    Deadlock {
        /// When something last moved.
        at: Time,
        /// The links of the circle, each as `from -> to`.
        links: Vec<String>,
    },
    /// It needs more memory than there is for it.
    #[error(
        "a run would keep about {}, of which {} are {what} (`{key}`), and the limit is {}; {advice}, or raise \
         `--memory-max`",
        estimate::about(*total), estimate::about(*bytes), estimate::about(*limit as f64)
    )]
    TooLarge {
        /// What it would keep, in the plural.
        what: &'static str,
        /// Dotted key of the scenario that asks for it.
        key: String,
        /// How much that takes.
        bytes: f64,
        /// How much everything that is known takes.
        total: f64,
        /// How much there is.
        limit: u64,
        /// What to change.
        advice: String,
    },
    /// The model cannot be built.
    #[error("{key}: {problem}")]
    Build {
        /// Dotted key of the scenario.
        key: String,
        /// What is wrong with its value.
        problem: String,
    },
}

impl From<Unbuildable> for RunError {
    fn from(Unbuildable { key, problem }: Unbuildable) -> RunError {
        RunError::Build { key, problem }
    }
}

/// Runs `model`. `progress` is called about every million events; the run is cancelled when it
/// returns false.
///
/// # Errors
/// If the model cannot be built, or the run was cancelled.
///
/// # Panics
/// If packets were not conserved, or the parts of a completion time do not sum to it: a defect of
/// the simulator, never of the scenario.
pub fn run(model: &Model, progress: &mut dyn FnMut(Progress) -> bool) -> Result<Outcome, RunError> {
    run_with(model, Extensions::default(), progress)
}

/// Mechanisms from outside, in place of the scenario's own: `docs/extending.md`.
#[derive(Default)]
pub struct Extensions<'a> {
    /// Makes the congestion controller of every end of a connection.
    pub congestion_control: Option<MakeController>,
    /// Makes the queue discipline of a switch port; where it gives `None`, the scenario's own stays. The port's
    /// `buffer` still limits what waits.
    pub queue_discipline: Option<&'a MakeDiscipline<'a>>,
    /// Chooses among shortest paths at every switch.
    pub path_selector: Option<Box<dyn SelectPath>>,
}

/// Runs `model` with mechanisms from outside. A run is a pure function of the model as long as these are.
///
/// # Errors
/// As [`run`].
///
/// # Panics
/// As [`run`], and if a path selector chooses a path that there is not.
pub fn run_with(
    model: &Model,
    extensions: Extensions,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, RunError> {
    let mut build = build::build(model, extensions)?;
    let end = build.world.run(progress)?;
    Ok(build.finish(end))
}
