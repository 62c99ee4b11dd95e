//! [`Runs`]: many small runs on several threads, with one progress.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::Model;
use plimsoll_units::{Span, Time};

use super::alone::{AloneRun, AloneTimes};
use crate::build::run_whole;
use crate::{Progress, RunError};

/// The runs of an approximate run.
pub(super) struct Runs<'a> {
    threads: usize,
    /// The number of links to be run.
    links: usize,
    done_links: usize,
    packet_hops: AtomicU64,
    events: AtomicU64,
    /// The duration of the whole run, of which progress is a share.
    horizon: Time,
    progress: &'a mut dyn FnMut(Progress) -> bool,
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Runs<'a> {
    pub(super) fn new(
        model: &Model,
        links: usize,
        threads: usize,
        progress: &'a mut dyn FnMut(Progress) -> bool,
    ) -> Runs<'a> {
        let horizon = Time::ZERO + model.run.duration.unwrap_or(Span::from_ms(1));
        let (packet_hops, events) = (AtomicU64::new(0), AtomicU64::new(0));
        Runs { threads: threads.max(1), links, done_links: 0, packet_hops, events, horizon, progress }
    }

    /// Adds the times of flows alone.
    pub(super) fn alone(&mut self, runs: &[AloneRun], times: &mut AloneTimes) -> Result<(), RunError> {
        let models: Vec<&Model> = runs.iter().map(|run| &run.model).collect();
        let times = Mutex::new(times);
        let done_links = self.done_links;
        self.each(&models, &|index, outcome| locked(&times).add(&runs[index], outcome))?;
        self.done_links = done_links;
        Ok(())
    }

    /// Runs `models`, and hands each outcome to `take`, from any thread and in any order.
    pub(super) fn each(
        &mut self,
        models: &[&Model],
        take: &(dyn Fn(usize, &Outcome) + Sync),
    ) -> Result<(), RunError> {
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let failure: Mutex<Option<RunError>> = Mutex::new(None);
        let (hops, events) = (&self.packet_hops, &self.events);
        // Runs models until there are no more; `goes_on` is asked during each.
        let work = |goes_on: &mut dyn FnMut(usize) -> bool| {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(model) = models.get(index).filter(|_| !stop.load(Ordering::Relaxed)) else { return };
                let mut asked = |_| !stop.load(Ordering::Relaxed) && goes_on(index);
                match run_whole(model, &mut asked) {
                    Ok(outcome) => {
                        hops.fetch_add(outcome.counters.packet_hops, Ordering::Relaxed);
                        events.fetch_add(outcome.counters.events, Ordering::Relaxed);
                        take(index, &outcome);
                    }
                    Err(error) => {
                        stop.store(true, Ordering::Relaxed);
                        locked(&failure).get_or_insert(error);
                    }
                }
                if !goes_on(index) {
                    stop.store(true, Ordering::Relaxed);
                    locked(&failure).get_or_insert(RunError::Cancelled);
                }
            }
        };
        let (horizon, links, done_links) = (self.horizon, self.links.max(1), self.done_links);
        let progress = &mut *self.progress;
        thread::scope(|scope| {
            for _ in 1..self.threads.min(models.len()) {
                let work = || work(&mut |_| true);
                // Where no further thread can be started, the others do the work.
                if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work(&mut |index| {
                let share = ((done_links + index) as f64 / links as f64).min(1.0);
                progress(Progress {
                    now: Time::from_ps((horizon.as_ps() as f64 * share) as u64),
                    horizon,
                    packet_hops: hops.load(Ordering::Relaxed),
                    events: events.load(Ordering::Relaxed),
                })
            });
        });
        self.done_links += models.len();
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }
}
