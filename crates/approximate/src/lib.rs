//! [`run`]: an approximate run, of a sample of links, each simulated by itself.
//!
//! ```text
//! Model ──each_flow──> flows and their paths ──> loads, a sample of links ──> the flows over each sampled link
//! each link ──link_model──> a scenario of its own ──plimsoll_sim::run──> delays: completion time - time alone
//! measured flows ──> time alone on the whole path + a delay for each of its links ──> Outcome, intervals
//! ```
//!
//! The flows, their sizes, times and paths are those of the whole run with the same seed, and so are the transports and
//! queues at each link: what is approximate is that links do not see each other. Waits that two links have in common
//! count twice, and a flow that one link slows comes to the next as fast as ever.

#![forbid(unsafe_code)]

mod alone;
mod compose;
mod flows;
mod link_model;
mod links;
mod plan;
mod refuse;
mod table;

use std::error::Error;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::Model;
use plimsoll_sim::batch::{self, BatchError, BatchWatch};
use plimsoll_sim::{Progress, RunError};

use alone::{AloneRun, AloneTimes};
use plan::{Gathered, Plan};
pub use table::{ApproximateRow, Approximation, Precision, SIZES};

/// How much an approximate run simulates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ApproximateSize {
    /// The most links of each class, such as from leaf to spine, with both directions.
    pub links: usize,
    /// The most messages whose completion times are composed.
    pub messages: usize,
}

impl Default for ApproximateSize {
    fn default() -> ApproximateSize {
        ApproximateSize { links: 200, messages: 200_000 }
    }
}

/// The highest load of a link at which an approximate run was compared with whole runs.
pub const HIGHEST_LOAD: f64 = 0.8;

/// The highest share of packets that may be lost.
pub const HIGHEST_LOSS: f64 = 0.001;

/// The reasons why there is no approximate run.
#[derive(Debug, thiserror::Error)]
pub enum ApproximateError {
    /// Links of the scenario depend on each other by more than their packets.
    #[error("an approximate run simulates links one by one, which leaves out `{key}`: {reason}")]
    Refused {
        /// The key of the scenario.
        key: String,
        /// The reason.
        reason: String,
    },
    /// A link is busier than any at which the error is known.
    #[error(
        "the busiest link has a load of {load:.2}, and the error of an approximate run is known up to \
         {HIGHEST_LOAD}: lower the load, or run it without `--approximate`"
    )]
    Busy {
        /// The load of the busiest link.
        load: f64,
    },
    /// Too many packets were lost.
    #[error(
        "{percent:.2} % of the packets of the simulated links were lost, and at most 0.1 % may be: losses at one link \
         change what the others get"
    )]
    Lossy {
        /// The lost share of the packets, in percent.
        percent: f64,
    },
    /// There is no flow to measure.
    #[error("no flow starts after the warm-up: raise `run.duration`")]
    Nothing,
    /// A link's run failed, or was cancelled.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Runs `model` approximately on `threads` threads. `goes_on` is asked now and then, with the finished and the planned
/// number of runs, and cancels when it returns false.
///
/// # Errors
/// Fails if the scenario has something that links share beyond their packets, a link is too busy, too many packets were
/// lost, or it was cancelled.
pub fn run(
    model: &Model,
    size: ApproximateSize,
    threads: usize,
    goes_on: &(dyn Fn(usize, usize) -> bool + Sync),
) -> Result<Approximation, ApproximateError> {
    refuse::check(model)?;
    let plan = Plan::new(model, size)?;
    let runs = Runs { all: plan.size(), done: Mutex::new(0), threads, goes_on };
    let (mut alone, mut gathered) = (AloneTimes::default(), Gathered::default());
    runs.alone(&plan.alone_runs(&[]), &mut alone)?;
    for stage in 0..plan.stages() {
        let links = plan.link_runs(stage, &gathered);
        runs.alone(&plan.alone_runs(&links), &mut alone)?;
        let models: Vec<&Model> = links.iter().map(|run| &run.built.model).collect();
        let of_stage = Mutex::new(&mut gathered);
        runs.each(&models, &|index, outcome| {
            plan.gather(&links[index], outcome, &alone, &mut locked(&of_stage));
        })?;
        gathered.sort();
    }
    if gathered.loss() > HIGHEST_LOSS {
        return Err(ApproximateError::Lossy { percent: 100.0 * gathered.loss() });
    }
    plan.conclude(&gathered, &alone)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The runs of links and of flows alone.
struct Runs<'a> {
    /// The number of all of them.
    all: usize,
    done: Mutex<usize>,
    threads: usize,
    goes_on: &'a (dyn Fn(usize, usize) -> bool + Sync),
}

impl Runs<'_> {
    /// Adds the times of flows alone.
    fn alone(&self, runs: &[AloneRun], times: &mut AloneTimes) -> Result<(), RunError> {
        let models: Vec<&Model> = runs.iter().map(|run| &run.model).collect();
        let times = Mutex::new(times);
        self.each(&models, &|index, outcome| locked(&times).add(&runs[index], outcome))
    }

    /// Runs `models`, and hands each outcome to `take`, from any thread.
    fn each(&self, models: &[&Model], take: &(dyn Fn(usize, &Outcome) + Sync)) -> Result<(), RunError> {
        batch::run_all(models, self.threads, &Watch { runs: self, take }).map_err(|error| match error {
            BatchError::Run(error) => error,
            BatchError::Owner(_) => RunError::Cancelled,
        })
    }
}

struct Watch<'a> {
    runs: &'a Runs<'a>,
    take: &'a (dyn Fn(usize, &Outcome) + Sync),
}

impl BatchWatch for Watch<'_> {
    fn on_progress(&self, _: usize, _: Progress) -> bool {
        (self.runs.goes_on)(*locked(&self.runs.done), self.runs.all)
    }

    fn on_done(&self, index: usize, outcome: Outcome) -> Result<(), Box<dyn Error + Send + Sync>> {
        (self.take)(index, &outcome);
        let mut done = locked(&self.runs.done);
        *done += 1;
        match (self.runs.goes_on)(*done, self.runs.all) {
            true => Ok(()),
            false => Err(Box::new(RunError::Cancelled)),
        }
    }
}

#[cfg(test)]
mod tests;
