//! [`RunError`]: why a run has no outcome.

use plimsoll_fabric::{Deadlock, Unbuildable};
use plimsoll_units::Time;

use crate::estimate;

/// The reason why a run has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The progress callback stopped the run.
    #[error("the run was cancelled")]
    Cancelled,
    /// Switches pause each other in a circle: none of these ports will ever send again.
    #[error("deadlock at {at}: flow control has paused these links in a circle, none can move: {}", links.join(", "))]
    Deadlock {
        /// When something last moved.
        at: Time,
        /// The links of the circle, each as `from -> to`.
        links: Vec<String>,
    },
    /// The run needs more memory than it may take.
    #[error(
        "a run would keep about {}, of which {} are {what} (`{key}`), and the limit is {}; {advice}, or raise \
         `--memory-max`",
        estimate::about(*total), estimate::about(*bytes), estimate::about(*limit as f64)
    )]
    TooLarge {
        /// The things that the run would keep, in the plural.
        what: &'static str,
        /// The dotted key of the scenario that asks for it.
        key: String,
        /// How many bytes that takes.
        bytes: f64,
        /// How many bytes everything that is estimated takes.
        total: f64,
        /// How many bytes the run may take.
        limit: u64,
        /// The change that makes the run smaller.
        advice: String,
    },
    /// The model cannot be built.
    #[error("{key}: {problem}")]
    Build {
        /// The dotted key of the scenario.
        key: String,
        /// The problem of its value.
        problem: String,
    },
}

impl From<Unbuildable> for RunError {
    fn from(Unbuildable { key, problem }: Unbuildable) -> RunError {
        RunError::Build { key, problem }
    }
}

impl From<Deadlock> for RunError {
    fn from(Deadlock { at, links }: Deadlock) -> RunError {
        RunError::Deadlock { at, links }
    }
}
