//! [`Gather`]: finished runs go to the journal, whichever thread they come from.

use std::sync::{Mutex, MutexGuard};

use plimsoll_experiment::{BenchWatch, StoreError};

use crate::journal::{Journal, StudyRun};
use crate::options::OnProgress;

struct GatherState<'a> {
    journal: &'a mut Journal,
    done: usize,
    packet_hops: u64,
}

/// Runs that are under way.
pub(super) struct Gather<'a> {
    /// The number of jobs.
    of: usize,
    progress: OnProgress<'a>,
    state: Mutex<GatherState<'a>>,
}

impl<'a> Gather<'a> {
    /// Returns a gatherer of `of` jobs.
    pub(super) fn new(of: usize, progress: OnProgress<'a>, journal: &'a mut Journal) -> Gather<'a> {
        Gather { of, progress, state: Mutex::new(GatherState { journal, done: 0, packet_hops: 0 }) }
    }

    fn state(&self) -> MutexGuard<'_, GatherState<'a>> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Keeps a finished run, an entry for each job that it is of.
    ///
    /// # Errors
    /// If the journal cannot be written.
    pub(super) fn keep(&self, entries: Vec<StudyRun>) -> Result<(), StoreError> {
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

impl BenchWatch for Gather<'_> {
    /// Reports how far the runs are; false if everything is to stop.
    fn goes_on(&self) -> bool {
        let state = self.state();
        (self.progress)(state.done, self.of, state.packet_hops)
    }
}
