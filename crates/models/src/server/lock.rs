//! Locks, first come first served.

use std::collections::VecDeque;

use plimsoll_units::{Span, Time};
use serde::Deserialize;

/// What keeps threads off each other's state.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Locking {
    /// Nothing: nobody else has the state.
    None,
    /// One lock that all threads of a process share.
    Global {
        /// From a release until the next in line, who has slept, goes on: a mutex that the kernel resolves.
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
        /// What each change of the count of readers takes, one after the other: the cache line on its way between
        /// cores.
        count: Span,
    },
    /// Readers take no lock; writers take one, and keep it for a grace period (read-copy-update).
    Rcu {
        /// As for the global lock.
        wake: Span,
        /// How long a writer waits for the readers before it.
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

    /// Whether a request takes a lock.
    pub(super) fn takes(self, writes: bool) -> bool {
        match self {
            Locking::None => false,
            Locking::Rcu { .. } => writes,
            Locking::Global { .. } | Locking::PerPartition { .. } | Locking::ReadWrite { .. } => true,
        }
    }

    /// Whether it takes it alone.
    pub(super) fn excludes(self, writes: bool) -> bool {
        !matches!(self, Locking::ReadWrite { .. }) || writes
    }

    /// What a change of the count of readers takes.
    pub(super) fn count(self) -> Span {
        match self {
            Locking::ReadWrite { count, .. } => count,
            _ => Span::ZERO,
        }
    }

    /// What a holder stays for beyond its own work.
    pub(super) fn grace(self, writes: bool) -> Span {
        match self {
            Locking::Rcu { grace, .. } if writes => grace,
            _ => Span::ZERO,
        }
    }
}

/// The state of one lock: its holders, and the threads that wait for it.
#[derive(Clone, Debug, Default)]
pub(super) struct Lock {
    readers: u32,
    writer: bool,
    /// When the cache line of its count is free.
    line_free: Time,
    /// Thread, and whether it wants the lock alone.
    waiting: VecDeque<(usize, bool)>,
}

impl Lock {
    /// Until when the lock's count is changed by whoever asks at `now`.
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

    /// Gives the lock back; who has it next is added to `next`.
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
