//! [`run`]: an approximate run, of a sample of links, each simulated by itself.
//!
//! ```text
//! Model ──each_flow──> flows and their paths ──> loads, a sample of links ──> the flows over each sampled link
//! each link ──link_model──> a scenario of its own ──run──> delays of its flows: completion time - time alone
//! delays at the links before a link ──> when, and how fast, flows come to it: stage after stage along the paths
//! measured messages ──> time alone on the whole path + a delay for each of its links ──> Outcome, intervals, bias
//! ```
//!
//! Flows, their sizes, times and paths are those of the whole run with the same seed, and so are transports and queues
//! at each link. What is approximate is that a link sees of the others the mean pace of a flow alone, and nothing of
//! those behind it. docs/approximate.md has the errors.

mod alone;
mod bias;
mod compose;
mod flows;
mod link_model;
mod links;
mod plan;
mod runs;
mod table;
#[cfg(test)]
mod tests;

use std::sync::Mutex;

use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::{Approximate, Model};

use crate::{Progress, RunError};
use alone::AloneTimes;
use plan::{Gathered, Plan};
use runs::{Runs, locked};

/// The highest share of packets that may be lost.
const HIGHEST_LOSS: f64 = 0.001;

/// Runs `model` approximately on `threads` threads, on any number of which the outcome is the same.
///
/// # Errors
/// Fails if a link is too busy, too many packets were lost, or it was cancelled. What links share beyond their packets
/// was refused when the scenario was checked.
pub(crate) fn run(
    model: &Model,
    size: Approximate,
    threads: usize,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, RunError> {
    let plan = Plan::new(model, size)?;
    let mut runs = Runs::new(model, plan.link_count(), threads, progress);
    let (mut alone, mut gathered) = (AloneTimes::default(), Gathered::default());
    runs.alone(&plan.whole_paths_alone(), &mut alone)?;
    for stage in 0..plan.stages() {
        let links = plan.link_runs(stage, &gathered);
        runs.alone(&plan.links_alone(&links), &mut alone)?;
        let models: Vec<&Model> = links.iter().map(|run| &run.built.model).collect();
        let of_stage = Mutex::new(&mut gathered);
        runs.each(&models, &|index, outcome| {
            plan.gather(&links[index], outcome, &alone, &mut locked(&of_stage));
        })?;
        gathered.sort();
    }
    if gathered.loss() > HIGHEST_LOSS {
        let problem = format!(
            "after losses links depend on each other: at most 0.1 % of packets may be lost, and of messages have a \
             timeout, and at the simulated links it was {:.2} %; run the whole network",
            100.0 * gathered.loss()
        );
        return Err(RunError::Build { key: "run.approximate".to_owned(), problem });
    }
    plan.conclude(&gathered, &alone)
}
