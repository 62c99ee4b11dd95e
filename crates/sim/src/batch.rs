//! Many runs on many cores.
//!
//! Runs share nothing, so the outcomes do not depend on how many threads there are; only the order
//! in which they are handed over does. Where there are fewer runs than threads, each gets several. No more runs go on
//! beside each other than fit into the memory that the owner has for them, as far as that is known before.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::Model;

use crate::approximate::{self, Answer, Round};
use crate::{Progress, RunError, estimate, run_on};

/// Receives what happens in a batch; it is called from any thread.
pub trait BatchWatch: Sync {
    /// Run `index` has begun.
    fn on_start(&self, _index: usize) {}

    /// Run `index` has made progress. Returning false cancels the whole batch.
    fn on_progress(&self, _index: usize, _progress: Progress) -> bool {
        true
    }

    /// Returns how many bytes the runs under way may need together.
    fn memory_max(&self) -> u64 {
        u64::MAX
    }

    /// Returns who carries out the tasks of approximate runs; none for the threads of this process.
    fn workers(&self) -> Option<&dyn Workers> {
        None
    }

    /// Run `index` is done, and its outcome is handed over. Returning an error stops the batch.
    fn on_done(&self, index: usize, outcome: Outcome)
    -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// Carries out tasks of approximate runs, in other processes or on other machines.
pub trait Workers: Sync {
    /// Carries out the tasks of a round of run `index`, several runs' at a time, and returns the answers in the order
    /// of the tasks. `goes_on` hears of how many there are answers; the run is cancelled when it returns false.
    ///
    /// # Errors
    /// Fails if there are no workers left, and with [`RunError::Cancelled`].
    fn carry_out(
        &self,
        index: usize,
        round: &Round,
        goes_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<Vec<Answer>, BatchError>;
}

/// Why a batch did not finish.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// A run failed or was cancelled.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The owner could not take an outcome.
    #[error(transparent)]
    Owner(Box<dyn std::error::Error + Send + Sync>),
}

/// Runs all of `models` on `threads` threads, in order of their index.
///
/// # Errors
/// The first failure; runs that are under way are then cancelled, finished ones have been handed
/// over. Where a run needs more memory than there is, none is begun.
pub fn run_all(models: &[&Model], threads: usize, watch: &dyn BatchWatch) -> Result<(), BatchError> {
    let each = threads / models.len().max(1);
    let threads = threads.min(beside_each_other(models, watch.memory_max())?);
    let next = AtomicUsize::new(0);
    let stop = AtomicBool::new(false);
    let failure: Mutex<Option<BatchError>> = Mutex::new(None);
    let work = || {
        while !stop.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(model) = models.get(index) else { return };
            if let Err(error) = run_one(index, model, each, &stop, watch) {
                stop.store(true, Ordering::Relaxed);
                let mut failure = failure.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                failure.get_or_insert(error);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..threads.clamp(1, models.len().max(1)) {
            // Where no further thread can be started, the others do the work.
            if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });
    match failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        Some(error) => Err(error),
        None => Ok(()),
    }
}

/// Returns how many of these runs fit into `limit` bytes at a time.
fn beside_each_other(models: &[&Model], limit: u64) -> Result<usize, RunError> {
    let mut largest: f64 = 0.0;
    for model in models {
        largest = largest.max(estimate::check(model, limit)?);
    }
    Ok((limit as f64 / largest.max(1.0)) as usize)
}

fn run_one(
    index: usize,
    model: &Model,
    threads: usize,
    stop: &AtomicBool,
    watch: &dyn BatchWatch,
) -> Result<(), BatchError> {
    watch.on_start(index);
    let mut progress = |progress| !stop.load(Ordering::Relaxed) && watch.on_progress(index, progress);
    let outcome = match (model.run.approximate(), watch.workers()) {
        (Some(size), Some(workers)) => {
            let mut counts = [0, 0];
            approximate::run_by(model, *size, |round| -> Result<_, BatchError> {
                let mut goes_on = |done| progress(round.progress(model, done, counts));
                let answers = workers.carry_out(index, &round, &mut goes_on)?;
                for answer in &answers {
                    counts = [counts[0] + answer.packet_hops, counts[1] + answer.events];
                }
                Ok(answers)
            })?
        }
        _ => run_on(model, threads, &mut progress)?,
    };
    watch.on_done(index, outcome).map_err(BatchError::Owner)
}
