//! [`ReproduceError`]: the reason why a reproduction failed.

use plimsoll_sim::batch::BatchError;

/// The reason why a reproduction failed.
#[derive(Debug, thiserror::Error)]
pub enum ReproduceError {
    /// A shipped scenario is wrong: a defect of this crate.
    #[error("the shipped scenario {name} does not load: {problem}")]
    Scenario {
        /// The name of its file.
        name: String,
        /// The first error that it has.
        problem: String,
    },
    /// The study has no such figure or point.
    #[error("there is no {part}; there is {known}")]
    Part {
        /// The figure or point that the caller named.
        part: String,
        /// The names that there are.
        known: String,
    },
    /// The scenarios could not be laid out for loading.
    #[error("cannot write the scenarios to a temporary folder: {0}")]
    Io(#[from] std::io::Error),
    /// A run failed or was cancelled.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// This system cannot carry a run, or a run on it failed; or a task did.
    #[error("{scheme} at {x}: {problem}")]
    Kernel {
        /// The scheme of the run that failed.
        scheme: String,
        /// The point on the axis that it is of.
        x: String,
        /// The reason, in words.
        problem: String,
    },
    /// A run by the wall's clock was cancelled.
    #[error("cancelled")]
    Cancelled,
    /// The journal could not be written.
    #[error("{0}")]
    Journal(plimsoll_experiment::StoreError),
    /// A page has rows that no run of the study measures any more; the field is their number.
    #[error(
        "the page has {0} rows of runs that the study does not have any more; a call without `--keep` runs all"
    )]
    Keep(usize),
}
