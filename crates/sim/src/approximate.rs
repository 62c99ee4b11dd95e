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
mod task;
#[cfg(test)]
mod tests;

use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::{Approximate, Model};

use crate::{Progress, RunError};
use alone::AloneTimes;
use plan::{Gathered, Plan};
use runs::Runs;
pub use task::{Answer, Task};

/// The highest share of packets that may be lost.
const HIGHEST_LOSS: f64 = 0.001;

/// Tasks that can be carried out in any order, and beside each other; later rounds need their answers.
pub struct Round {
    /// The tasks, in the order in which their answers are returned.
    pub tasks: Vec<Task>,
    /// The number of the round, from 0.
    pub number: usize,
    /// The number of rounds of the whole approximate run.
    pub of: usize,
}

/// Runs `model` approximately on `threads` threads, on any number of which the outcome is the same.
///
/// # Errors
/// As [`run_by`], and if it was cancelled.
pub(crate) fn run(
    model: &Model,
    size: Approximate,
    threads: usize,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, RunError> {
    let mut runs = Runs::new(model, threads, progress);
    run_by(model, size, |round| runs.round(&round))
}

/// Runs `model` approximately. `carry_out` has the tasks of a round carried out, by whomever, and returns their answers
/// in the order of the tasks; the outcome depends on nothing else.
///
/// # Errors
/// Fails if a link is too busy, or too many packets were lost, and as `carry_out` does. What links share beyond their
/// packets was refused when the scenario was checked.
///
/// # Panics
/// Panics if there are more or fewer answers than tasks.
pub fn run_by<E: From<RunError>>(
    model: &Model,
    size: Approximate,
    mut carry_out: impl FnMut(Round) -> Result<Vec<Answer>, E>,
) -> Result<Outcome, E> {
    let plan = Plan::new(model, size)?;
    let (mut alone, mut gathered) = (AloneTimes::default(), Gathered::default());
    let of = plan.stages();
    for number in 0..of {
        let links = plan.link_runs(number, &gathered);
        let mut without_others = plan.links_alone(&links);
        if number == 0 {
            without_others.append(&mut plan.whole_paths_alone());
        }
        let tasks = without_others.iter().map(|run| &run.task).chain(links.iter().map(|run| &run.built.task));
        let tasks: Vec<Task> = tasks.cloned().collect();
        let count = tasks.len();
        let answers = carry_out(Round { tasks, number, of })?;
        assert_eq!(answers.len(), count, "an answer for each task");
        let (of_alone, of_links) = answers.split_at(without_others.len());
        without_others.iter().zip(of_alone).for_each(|(run, answer)| alone.add(run, answer));
        links.iter().zip(of_links).for_each(|(run, answer)| plan.gather(run, answer, &alone, &mut gathered));
        gathered.sort();
    }
    if gathered.loss() > HIGHEST_LOSS {
        let problem = format!(
            "after losses links depend on each other: at most 0.1 % of packets may be lost, and of messages have a \
             timeout, and at the simulated links it was {:.2} %; run the whole network",
            100.0 * gathered.loss()
        );
        return Err(RunError::Build { key: "run.approximate".to_owned(), problem }.into());
    }
    Ok(plan.conclude(&gathered, &alone)?)
}
