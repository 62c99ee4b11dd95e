//! [`Exchange`]: how far every logical process is, and the messages between them.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::{hint, thread};

use plimsoll_units::{Span, Time};

use plimsoll_fabric::{DemandShare, Outbox};

use super::process::ProcessMail;
use crate::hosts::Announcement;

/// The state that the logical processes of a run share.
#[derive(Debug)]
pub(super) struct Exchange {
    seats: Vec<ProcessSeat>,
    lookahead: Span,
    horizon: Time,
    /// The time that the run continues after all workloads have finished.
    grace: Span,
    /// A process has failed.
    failed: AtomicBool,
    /// Messages posted so far.
    posted: AtomicU64,
    /// Messages posted and not yet taken.
    in_transit: AtomicU64,
    news: News,
}

/// A logical process as the others see it, in cache lines of its own. Times are in picoseconds; the largest number
/// means never.
#[derive(Debug)]
#[repr(align(128))]
struct ProcessSeat {
    /// All events before this have been handled, and their packets have been posted.
    clock: AtomicU64,
    /// When its next event is, as far as its queue has it.
    next: AtomicU64,
    /// The time at which its workloads had all finished.
    finished: AtomicU64,
    packet_hops: AtomicU64,
    events: AtomicU64,
    /// The mail for it, by sender.
    mail: Vec<Mutex<ProcessMail>>,
}

/// The status that a logical process publishes.
#[derive(Clone, Copy, Debug)]
pub(super) struct LpStatus {
    /// All events before this have been handled.
    pub(super) done: Time,
    pub(super) next: Time,
    pub(super) finished: Time,
    pub(super) packet_hops: u64,
    pub(super) events: u64,
}

/// The bound up to which a logical process may handle events.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bound {
    /// The last instant whose events it may handle.
    pub(super) last: Time,
    /// All events before this are done then; [`Time::MAX`] if none are left in the run.
    pub(super) done: Time,
}

impl Bound {
    /// Returns the earlier of this bound and that of all events before `done`.
    pub(super) fn within(self, done: Time) -> Bound {
        if done > self.last { self } else { Bound { last: Time::from_ps(done.as_ps() - 1), done } }
    }
}

impl Exchange {
    pub(super) fn new(processes: u8, lookahead: Span, horizon: Time, grace: Span) -> Exchange {
        let seat = |_| ProcessSeat {
            clock: AtomicU64::new(0),
            next: AtomicU64::new(0),
            finished: AtomicU64::new(u64::MAX),
            packet_hops: AtomicU64::new(0),
            events: AtomicU64::new(0),
            mail: (0..processes).map(|_| Mutex::default()).collect(),
        };
        Exchange {
            seats: (0..processes).map(seat).collect(),
            lookahead,
            horizon,
            grace,
            failed: AtomicBool::new(false),
            posted: AtomicU64::new(0),
            in_transit: AtomicU64::new(0),
            news: News::new(usize::from(processes)),
        }
    }

    /// Returns a guard that, when dropped, has the others stop, unless its process has ended well.
    pub(super) fn guard(&self) -> ProcessGuard<'_> {
        ProcessGuard { exchange: self, ended_well: Cell::new(false) }
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Returns a number that changes whenever there is news.
    pub(super) fn edition(&self) -> u64 {
        self.news.edition.load(Ordering::SeqCst)
    }

    /// Waits until the edition is another than `seen`.
    pub(super) fn wait(&self, seen: u64) {
        self.news.wait(seen);
    }

    /// Computes how far the others' clocks let a process go. Read before the messages: then whatever arrives by then
    /// is among those.
    pub(super) fn bound(&self) -> Bound {
        let now = self.slowest_clock().max(self.first_event().unwrap_or(0));
        // A process that has not finished by now will not have before now, so that the end is a grace, and with it a
        // lookahead, away.
        let finished = self.seats.iter().map(|seat| seat.finished.load(Ordering::SeqCst)).max();
        let finished = Time::from_ps(finished.unwrap_or(u64::MAX));
        let horizon = self.horizon.min(finished.saturating_add(self.grace));
        let done = Time::from_ps(now).saturating_add(self.lookahead);
        if done > horizon || now == u64::MAX {
            Bound { last: horizon, done: Time::MAX }
        } else {
            Bound { last: Time::from_ps(done.as_ps() - 1), done }
        }
    }

    /// Returns when a process that continues at `from` publishes next.
    pub(super) fn stretch_from(&self, from: Time) -> Time {
        from.saturating_add(Span::from_ps((self.lookahead.as_ps() / STRETCHES).max(1)))
    }

    fn slowest_clock(&self) -> u64 {
        let clocks = self.seats.iter().map(|seat| seat.clock.load(Ordering::SeqCst));
        clocks.min().unwrap_or(u64::MAX)
    }

    /// Returns when something next happens in any process, if no message is under way: idle time is skipped.
    ///
    /// A process that is handling events shows the first of them. One that takes a message shows its new next event
    /// before the message is off the count; one that posts a message counts it before it shows its next event. So
    /// if none was counted, and none was posted while we looked, nothing earlier can come from anywhere.
    fn first_event(&self) -> Option<u64> {
        let posted = self.posted.load(Ordering::SeqCst);
        if self.in_transit.load(Ordering::SeqCst) > 0 {
            return None;
        }
        let first = self.seats.iter().map(|seat| seat.next.load(Ordering::SeqCst)).min();
        first.filter(|_| self.posted.load(Ordering::SeqCst) == posted)
    }

    /// Hands over the mail that the others have posted to process `here`; `take_all` takes it and returns when the
    /// next event is then.
    pub(super) fn take_mail(
        &self,
        here: u8,
        batch: &mut ProcessMail,
        mut take_all: impl FnMut(&mut ProcessMail) -> Time,
    ) {
        let seat = &self.seats[usize::from(here)];
        for mail in &seat.mail {
            std::mem::swap(&mut *lock(mail), batch);
            let count = batch.len() as u64;
            if count > 0 {
                let next = take_all(batch);
                seat.next.store(next.as_ps(), Ordering::SeqCst);
                self.in_transit.fetch_sub(count, Ordering::SeqCst);
            }
        }
    }

    /// Posts what process `here` has for process `to`.
    pub(super) fn post(
        &self,
        here: u8,
        to: u8,
        outbox: Option<&mut Outbox>,
        announcements: &mut Vec<Announcement>,
        demand: Option<&DemandShare>,
    ) {
        let crossings = outbox.as_ref().map_or(0, |outbox| outbox.packets.len() + outbox.signals.len());
        let count = (crossings + announcements.len() + usize::from(demand.is_some())) as u64;
        if count > 0 {
            self.in_transit.fetch_add(count, Ordering::SeqCst);
            self.posted.fetch_add(count, Ordering::SeqCst);
            let mut mail = lock(&self.seats[usize::from(to)].mail[usize::from(here)]);
            if let Some(outbox) = outbox {
                hand_over(&mut outbox.packets, &mut mail.crossings.packets);
                hand_over(&mut outbox.stamps, &mut mail.crossings.stamps);
                hand_over(&mut outbox.signals, &mut mail.crossings.signals);
            }
            hand_over(announcements, &mut mail.announcements);
            mail.demand.extend(demand.cloned());
        }
    }

    /// Shows the others how far process `here` is, which has posted all that it had for them. The clock is the last: a
    /// process that reads it sees all mail that was posted by then.
    pub(super) fn publish(&self, here: u8, status: LpStatus) {
        let seat = &self.seats[usize::from(here)];
        seat.packet_hops.store(status.packet_hops, Ordering::Relaxed);
        seat.events.store(status.events, Ordering::Relaxed);
        seat.finished.store(status.finished.as_ps(), Ordering::SeqCst);
        seat.next.store(status.next.as_ps(), Ordering::SeqCst);
        seat.clock.store(status.done.as_ps(), Ordering::SeqCst);
        self.news.publish();
    }

    /// Returns the packet-hops and events of all processes but `here`.
    pub(super) fn work_beside(&self, here: u8) -> (u64, u64) {
        let others = self.seats.iter().enumerate().filter(|(other, _)| *other != usize::from(here));
        others.fold((0, 0), |(hops, events), (_, seat)| {
            let hops = hops + seat.packet_hops.load(Ordering::Relaxed);
            (hops, events + seat.events.load(Ordering::Relaxed))
        })
    }

    /// Returns the mail that was never taken, by the process that it was for.
    pub(super) fn into_mail(self) -> impl Iterator<Item = Vec<ProcessMail>> {
        let opened = |mail: Mutex<ProcessMail>| mail.into_inner().unwrap_or_else(PoisonError::into_inner);
        self.seats.into_iter().map(move |seat| seat.mail.into_iter().map(opened).collect())
    }
}

/// Moves all of `from` to the end of `to`. If that is empty, as mail that was taken is, nothing is copied: every line
/// of a copy would have to come from the cache of the core that has read it.
fn hand_over<T>(from: &mut Vec<T>, to: &mut Vec<T>) {
    if to.is_empty() {
        std::mem::swap(from, to);
    } else {
        to.append(from);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The stretches of a lookahead after each of which a process publishes how far it is. With one, all would wait for
/// the slowest in every lookahead; with two, a process that has fewer events in one stretch and more in the next waits
/// half as long (`docs/internals/speed.md`, "Large networks, and threads").
const STRETCHES: u64 = 2;

/// Has the other processes stop if its own fails: see [`Exchange::guard`].
pub(super) struct ProcessGuard<'a> {
    exchange: &'a Exchange,
    ended_well: Cell<bool>,
}

impl ProcessGuard<'_> {
    pub(super) fn ended_well(&self) {
        self.ended_well.set(true);
    }
}

impl Drop for ProcessGuard<'_> {
    fn drop(&mut self) {
        if !self.ended_well.get() {
            self.exchange.failed.store(true, Ordering::SeqCst);
            self.exchange.news.publish();
        }
    }
}

/// Wakes the processes that wait for others: they spin for a while, where there is a core for each, and then sleep.
#[derive(Debug)]
struct News {
    edition: AtomicU64,
    sleepers: AtomicU64,
    sleep: Mutex<()>,
    wake: Condvar,
    spins: u32,
}

impl News {
    fn new(processes: usize) -> News {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        News {
            edition: AtomicU64::new(0),
            sleepers: AtomicU64::new(0),
            sleep: Mutex::default(),
            wake: Condvar::new(),
            spins: if processes <= cores { SPINS } else { 0 },
        }
    }

    fn publish(&self) {
        self.edition.fetch_add(1, Ordering::SeqCst);
        if self.sleepers.load(Ordering::SeqCst) > 0 {
            let _awake = lock(&self.sleep);
            self.wake.notify_all();
        }
    }

    fn wait(&self, seen: u64) {
        for _ in 0..self.spins {
            if self.edition.load(Ordering::SeqCst) != seen {
                return;
            }
            hint::spin_loop();
        }
        for _ in 0..YIELDS {
            if self.edition.load(Ordering::SeqCst) != seen {
                return;
            }
            thread::yield_now();
        }
        let mut asleep = lock(&self.sleep);
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        while self.edition.load(Ordering::SeqCst) == seen {
            asleep = self.wake.wait(asleep).unwrap_or_else(PoisonError::into_inner);
        }
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// How often a thread that waits lets others run before it goes to sleep. With more processes than cores the one that
/// it waits for then runs; if all slept, each publication would wake them all for nothing.
const YIELDS: u32 = 20;

/// Looks before a thread goes to sleep: some microseconds, about what sleeping and waking take.
const SPINS: u32 = 2_000;
