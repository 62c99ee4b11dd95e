//! Locks, first come first served.

use std::collections::VecDeque;

use plimsoll_units::{Span, Time};
use serde::Deserialize;

/// The mechanism that keeps threads from using a state at the same time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Locking {
    /// None: each thread has its own state.
    None,
    /// One lock that all threads of a process share.
    Global {
        /// Time from a release until the next waiting thread, which has slept, resumes: a mutex that the kernel
        /// resolves.
        wake: Span,
    },
    /// One lock a partition.
    PerPartition {
        /// As for the global lock.
        wake: Span,
    },
    /// One reader/writer lock a process, fair.
    ReadWrite {
        /// As for the global lock.
        wake: Span,
        /// Time of each change of the count of readers, one after the other: the cache line moves between cores.
        count: Span,
    },
    /// Readers take no lock; writers take one, and keep it for a grace period (read-copy-update).
    Rcu {
        /// As for the global lock.
        wake: Span,
        /// Time for which a writer waits for the readers before it.
        grace: Span,
    },
}

impl Locking {
    /// Sets what a wake-up takes, where threads sleep at the lock.
    pub fn wake_up_in(&mut self, span: Span) {
        match self {
            Locking::None => {}
            Locking::Global { wake }
            | Locking::PerPartition { wake }
            | Locking::ReadWrite { wake, .. }
            | Locking::Rcu { wake, .. } => *wake = span,
        }
    }

    pub(super) fn wake(self) -> Span {
        match self {
            Locking::None => Span::ZERO,
            Locking::Global { wake }
            | Locking::PerPartition { wake }
            | Locking::ReadWrite { wake, .. }
            | Locking::Rcu { wake, .. } => wake,
        }
    }

    /// Returns whether a request takes a lock.
    pub(super) fn takes(self, writes: bool) -> bool {
        match self {
            Locking::None => false,
            Locking::Rcu { .. } => writes,
            Locking::Global { .. } | Locking::PerPartition { .. } | Locking::ReadWrite { .. } => true,
        }
    }

    /// Returns whether it takes the lock alone.
    pub(super) fn excludes(self, writes: bool) -> bool {
        !matches!(self, Locking::ReadWrite { .. }) || writes
    }

    /// Returns the time of a change of the count of readers.
    pub(super) fn count(self) -> Span {
        match self {
            Locking::ReadWrite { count, .. } => count,
            _ => Span::ZERO,
        }
    }

    /// Returns the time for which a holder keeps the lock beyond its own work.
    pub(super) fn grace(self, writes: bool) -> Span {
        match self {
            Locking::Rcu { grace, .. } if writes => grace,
            _ => Span::ZERO,
        }
    }
}

/// The state of one lock: its holders, and the threads that wait for it.
#[derive(Clone, Debug, Default)]
pub(super) struct SimulatedLock {
    readers: u32,
    writer: bool,
    /// When the cache line of its count is free.
    line_free: Time,
    /// The waiting threads, and whether each needs the lock alone.
    waiting: VecDeque<(usize, bool)>,
}

impl SimulatedLock {
    /// Returns until when a thread that asks at `now` changes the lock's count.
    pub(super) fn change_count(&mut self, now: Time, takes: Span) -> Time {
        self.line_free = self.line_free.max(now) + takes;
        self.line_free
    }

    /// Takes the lock, or joins the line; whether it was taken.
    pub(super) fn enter(&mut self, thread: usize, alone: bool) -> bool {
        let is_taken = self.waiting.is_empty() && self.admits(alone);
        if is_taken {
            self.admit(alone);
        } else {
            self.waiting.push_back((thread, alone));
        }
        is_taken
    }

    /// Releases the lock; the threads that have it next are added to `next`.
    pub(super) fn leave(&mut self, alone: bool, next: &mut Vec<usize>) {
        if alone {
            self.writer = false;
        } else {
            self.readers -= 1;
        }
        while let Some(&(thread, alone)) = self.waiting.front()
            && self.admits(alone)
        {
            self.waiting.pop_front();
            self.admit(alone);
            next.push(thread);
        }
    }

    fn admits(&self, alone: bool) -> bool {
        !self.writer && (!alone || self.readers == 0)
    }

    fn admit(&mut self, alone: bool) {
        if alone {
            self.writer = true;
        } else {
            self.readers += 1;
        }
    }
}
