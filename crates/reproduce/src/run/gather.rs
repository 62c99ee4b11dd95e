//! [`Gather`]: finished runs go to the journal, whichever thread they come from.

use std::sync::{Mutex, MutexGuard};

use plimsoll_experiment::StoreError;
use plimsoll_results::outcome::Outcome;
use plimsoll_sim::Progress;
use plimsoll_sim::batch::Watch;

use super::bench::{Bench, Job};
use crate::journal::{Entry, Journal};
use crate::options::OnProgress;

struct GatherState<'a> {
    journal: &'a mut Journal,
    done: usize,
    packet_hops: u64,
}

/// Runs that are under way.
pub(super) struct Gather<'a> {
    bench: &'a Bench<'a>,
    /// The jobs of each run of a simulated network.
    jobs: &'a [Vec<&'a Job>],
    /// The number of jobs, simulated or not.
    of: usize,
    progress: OnProgress<'a>,
    state: Mutex<GatherState<'a>>,
}

impl<'a> Gather<'a> {
    /// Returns a gatherer of `of` jobs, of which these are simulated networks.
    pub(super) fn new(
        bench: &'a Bench<'a>,
        jobs: &'a [Vec<&'a Job>],
        of: usize,
        progress: OnProgress<'a>,
        journal: &'a mut Journal,
    ) -> Gather<'a> {
        Gather {
            bench,
            jobs,
            of,
            progress,
            state: Mutex::new(GatherState { journal, done: 0, packet_hops: 0 }),
        }
    }

    fn state(&self) -> MutexGuard<'_, GatherState<'a>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Reports how far it is; false if everything is to stop.
    pub(super) fn tell(&self) -> bool {
        let state = self.state();
        (self.progress)(state.done, self.of, state.packet_hops)
    }

    /// Keeps a finished run, an entry for each job that it is of.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub(super) fn keep(&self, entries: Vec<Entry>) -> Result<(), StoreError> {
        let mut state = self.state();
        state.done += entries.len();
        state.packet_hops += entries.first().map_or(0, |entry| entry.packet_hops);
        for entry in entries {
            state.journal.keep(entry)?;
        }
        (self.progress)(state.done, self.of, state.packet_hops);
        Ok(())
    }
}

impl Watch for Gather<'_> {
    fn on_progress(&self, _: usize, _: Progress) -> bool {
        self.tell()
    }

    fn on_done(
        &self,
        index: usize,
        outcome: Outcome,
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let entries = self.jobs[index].iter().map(|job| self.bench.entry(job, &outcome));
        Ok(self.keep(entries.collect())?)
    }
}
