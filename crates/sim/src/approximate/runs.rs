//! [`Runs`]: the tasks of approximate runs on several threads, with one progress.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use plimsoll_scenario::model::Model;
use plimsoll_units::{Span, Time};

use super::{Answer, Round};
use crate::{Progress, RunError};

/// The threads that carry out tasks.
pub(super) struct Runs<'a> {
    model: &'a Model,
    threads: usize,
    packet_hops: AtomicU64,
    events: AtomicU64,
    progress: &'a mut dyn FnMut(Progress) -> bool,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'a> Runs<'a> {
    pub(super) fn new(
        model: &'a Model,
        threads: usize,
        progress: &'a mut dyn FnMut(Progress) -> bool,
    ) -> Runs<'a> {
        let (packet_hops, events) = (AtomicU64::new(0), AtomicU64::new(0));
        Runs { model, threads: threads.max(1), packet_hops, events, progress }
    }

    /// Carries out the tasks of a round.
    pub(super) fn round(&mut self, round: &Round) -> Result<Vec<Answer>, RunError> {
        let tasks = &round.tasks;
        let answers: Vec<Mutex<Option<Answer>>> = tasks.iter().map(|_| Mutex::default()).collect();
        let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
        let failure: Mutex<Option<RunError>> = Mutex::new(None);
        let (hops, events) = (&self.packet_hops, &self.events);
        // Carries out tasks until there are no more; `goes_on` is asked during each.
        let work = |goes_on: &mut dyn FnMut(usize) -> bool| {
            loop {
                let index = next.fetch_add(1, Ordering::Relaxed);
                let Some(task) = tasks.get(index).filter(|_| !stop.load(Ordering::Relaxed)) else { return };
                let mut asked = |_| !stop.load(Ordering::Relaxed) && goes_on(index);
                let failed = match task.run(self.model, &mut asked) {
                    Ok(answer) => {
                        hops.fetch_add(answer.packet_hops, Ordering::Relaxed);
                        events.fetch_add(answer.events, Ordering::Relaxed);
                        *locked(&answers[index]) = Some(answer);
                        (!goes_on(index)).then_some(RunError::Cancelled)
                    }
                    Err(error) => Some(error),
                };
                if let Some(error) = failed {
                    stop.store(true, Ordering::Relaxed);
                    locked(&failure).get_or_insert(error);
                }
            }
        };
        let progress = &mut *self.progress;
        thread::scope(|scope| {
            for _ in 1..self.threads.min(tasks.len()) {
                let work = || work(&mut |_| true);
                // Where no further thread can be started, the others do the work.
                if thread::Builder::new().spawn_scoped(scope, work).is_err() {
                    break;
                }
            }
            work(&mut |index| {
                progress(round.progress(
                    self.model,
                    index,
                    [hops, events].map(|of| of.load(Ordering::Relaxed)),
                ))
            });
        });
        match failure.into_inner().unwrap_or_else(PoisonError::into_inner) {
            Some(error) => Err(error),
            None => Ok(answers.into_iter().filter_map(|answer| locked(&answer).take()).collect()),
        }
    }
}

impl Round {
    /// Returns the progress of a run of `model` of which this many tasks of the round are done, and packet-hops and
    /// events in all.
    pub fn progress(&self, model: &Model, done: usize, [packet_hops, events]: [u64; 2]) -> Progress {
        let horizon = Time::ZERO + model.run.duration.unwrap_or(Span::from_ms(1));
        let share =
            (self.number as f64 + done as f64 / self.tasks.len().max(1) as f64) / self.of.max(1) as f64;
        let now = Time::from_ps((horizon.as_ps() as f64 * share) as u64);
        Progress { now, horizon, packet_hops, events }
    }
}
