//! [`ThreadMemory`]: the memory that the connections of all threads hold together, and its limit
//! ([`Limits::memory_bytes`]).
//!
//! *Held* are the buffers, by their capacity, of requests that are not whole or wait for their turn, of replies that
//! wait to be sent, and of replies on their way between threads. *Coming* are requests on their way between threads,
//! and estimates of replies that are not made yet ([`Replies::expected`]). Both together decide:
//!
//! | held and coming, of the budget | level | |
//! |---|---|---|
//! | up to a half | free | every connection continues |
//! | up to three quarters | scarce | connections whose replies fit their share continue: an equal part of the quarter |
//! | more | full | sending continues, nothing is read; if it is held, threads execute no remote requests |
//!
//! Connections that wait resume when the level falls: clients that read their replies make it fall. If it does not
//! fall, connections that have moved next to nothing for a while are closed ([`Holding::has_stalled`]), the one that
//! holds the most first; and if memory stays full, so are connections with a request of which the rest would have to be
//! read, since nothing else makes room for it. Of these the oldest request of all threads is closed first
//! ([`ThreadMemory::may_close_since`]), for a request that never ends is older than one that has just begun: the memory
//! of a connection is a weak criterion, as all that wait are read in turn and hold about the same. Connections within
//! their share are never closed. The last eighths are for free buffers ([`ThreadMemory::pool_bytes`]), and for bytes
//! that arrive before they are counted.
//!
//! Threads count for themselves, and publish a change when it has become a *quantum*: a connection whose replies leave
//! as they arrive costs no atomic operation.

use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use crate::Limits;
use crate::shared::Shared;

/// The counts that threads share.
#[derive(Debug, Default)]
pub(crate) struct SharedMemory {
    held: MemoryLine,
    coming: MemoryLine,
    /// The most that was held since memory was last returned to the system.
    peak: AtomicIsize,
    /// Threads with connections that wait for memory.
    waiting: AtomicUsize,
}

/// The report of a thread about its oldest request that may be closed to make room, in nanoseconds since the start.
#[derive(Debug, Default)]
pub(crate) struct OldestRequest {
    /// The time at which the request began; `u64::MAX` without one.
    began: AtomicU64,
    /// The time at which the thread last looked for one.
    looked_at: AtomicU64,
}

/// A number on a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct MemoryLine(AtomicIsize);

/// How scarce memory is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum MemoryLevel {
    /// Every connection continues.
    Free,
    /// Connections within their share continue.
    Scarce,
    /// No connection continues.
    Full,
}

/// One thread's view of the memory of all connections.
pub(crate) struct ThreadMemory {
    shared: Arc<Shared>,
    held: Count,
    coming: Count,
    /// Bytes that connections of this thread hold.
    own: usize,
    /// Bytes up to which memory is free, and up to which it is scarce.
    first: isize,
    last: isize,
    /// The size in bytes from which on a change is published.
    quantum: usize,
    /// Connections of this thread that wait for memory.
    waiting: Vec<u32>,
    /// The level when the last of them began to wait.
    waiting_at: MemoryLevel,
    /// When this thread looks next for connections to close.
    pub(crate) next_look: Duration,
    /// The time since which nothing helps, as of the last look.
    pub(crate) stuck_since: Option<Duration>,
    /// True if nothing helped: waiting connections resume although memory is scarce.
    is_granted: bool,
    /// How often the allocator is still asked to return memory, since much less is held than before.
    returns_left: u8,
}

/// A sum over the threads, in the view of one of them.
#[derive(Debug, Default)]
struct Count {
    /// The published part, which the other threads see.
    known: isize,
    /// The part that is not published yet.
    untold: isize,
}

/// The memory of one connection.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    held: usize,
    coming: usize,
    /// Bytes that had moved when the connection last moved a part of its memory.
    moved: usize,
    /// The time of that measurement.
    since: Duration,
    /// The time at which the request at the head of its input began; `None` without one.
    request_since: Option<Duration>,
    /// The times at which it began to wait for memory, and at which it resumed.
    waits_since: Option<Duration>,
    released_at: Duration,
    /// True if the connection waits for memory.
    pub(crate) is_waiting: bool,
}

/// A connection that has moved less than a part ([`STALLED_PART`]) of its memory in this time has stalled.
pub(crate) const PATIENCE: Duration = Duration::from_millis(250);
/// The reciprocal of the part of a connection's memory that counts as a move.
const STALLED_PART: usize = 16;
/// The time after which a connection that itself waits for memory is closed, if nothing moves: its client cannot help
/// it.
pub(crate) const FULL_PATIENCE: Duration = Duration::from_millis(25);
/// Time between two looks for connections to close; the second, while memory is full and nothing moves.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(50);
pub(crate) const LOOK_EVERY_FULL: Duration = Duration::from_millis(5);
/// Requests are of the same age if they began this close to each other, or within one 32nd of the oldest one's age:
/// threads need not take turns then.
const SAME_AGE: Duration = LOOK_EVERY_FULL;
const SAME_AGE_PART: u32 = 32;
/// The most bytes of free buffers that a thread keeps.
const POOL_BYTES: usize = 4 << 20;

impl ThreadMemory {
    /// Creates the view of one of the threads of `shared`.
    pub(crate) fn new(limits: &Limits, shared: Arc<Shared>) -> ThreadMemory {
        let budget = isize::try_from(limits.memory_bytes).unwrap_or(isize::MAX);
        let threads = shared.threads() as usize;
        ThreadMemory {
            shared,
            held: Count::default(),
            coming: Count::default(),
            own: 0,
            first: budget / 2,
            last: budget - budget / 4,
            quantum: (limits.memory_bytes / threads / 64).clamp(4 << 10, 256 << 10),
            waiting: Vec::new(),
            waiting_at: MemoryLevel::Free,
            next_look: Duration::ZERO,
            stuck_since: None,
            is_granted: false,
            returns_left: 0,
        }
    }

    /// Returns the bytes of free buffers that each of `threads` threads may keep.
    pub(crate) fn pool_bytes(limits: &Limits, threads: u32) -> usize {
        POOL_BYTES.min(limits.memory_bytes / 8 / threads as usize)
    }

    /// Begins a turn: reads the counts that the others have published.
    #[inline]
    pub(crate) fn turn(&mut self) {
        self.held.known = self.shared.memory.held.0.load(Ordering::Relaxed);
        self.coming.known = self.shared.memory.coming.0.load(Ordering::Relaxed);
    }

    /// Reports whether every connection may continue, in this thread's view.
    #[inline]
    pub(crate) fn is_free(&self) -> bool {
        self.held.sum() + self.coming.sum() <= self.first
    }

    /// Returns how scarce memory is.
    pub(crate) fn level(&mut self) -> MemoryLevel {
        if self.is_free() {
            return MemoryLevel::Free;
        }
        self.tell();
        self.turn();
        match self.held.sum() + self.coming.sum() {
            sum if sum <= self.first => MemoryLevel::Free,
            sum if sum <= self.last => MemoryLevel::Scarce,
            _ => MemoryLevel::Full,
        }
    }

    /// Reports whether a connection that has `bytes`, which may be more than was counted last, may continue.
    pub(crate) fn allows(&mut self, bytes: usize) -> bool {
        match self.level() {
            MemoryLevel::Free => true,
            MemoryLevel::Scarce => self.is_granted || bytes <= self.share(),
            MemoryLevel::Full => false,
        }
    }

    /// Reports whether the bytes already held are too many for further requests of other threads.
    #[inline]
    pub(crate) fn is_full_without_coming(&mut self) -> bool {
        self.held.sum() > self.last && {
            self.tell();
            self.turn();
            self.held.sum() > self.last
        }
    }

    /// Returns the bytes that each connection may have while memory is scarce.
    pub(crate) fn share(&self) -> usize {
        let connections = self.shared.connections.load(Ordering::Relaxed).max(1);
        (self.last - self.first) as usize / connections
    }

    /// Returns the bytes to free for waiting connections: a part more than makes memory free, so that a few of them may
    /// resume; of that, the part that this thread's connections hold of all. 0 if memory is scarce for another reason
    /// than held bytes.
    pub(crate) fn excess(&mut self) -> usize {
        self.tell();
        self.turn();
        let held = self.held.sum().max(1) as u128;
        let excess = (self.held.sum() - (self.first - self.first / 8)).max(0) as u128;
        (excess * self.own as u128).div_ceil(held) as usize
    }

    /// Counts the bytes that a connection holds now, and those coming to it.
    #[inline]
    pub(crate) fn recount(&mut self, holding: &mut Holding, held: usize, coming: usize) {
        if held != holding.held {
            let more = held as isize - holding.held as isize;
            self.own = self.own - holding.held + held;
            holding.held = held;
            self.hold(more);
        }
        if coming != holding.coming {
            let more = coming as isize - holding.coming as isize;
            holding.coming = coming;
            self.expect(more);
        }
    }

    /// Removes a connection, and the memory that it held.
    pub(crate) fn forget(&mut self, holding: &Holding) {
        self.own -= holding.held;
        self.hold(-(holding.held as isize));
        self.expect(-(holding.coming as isize));
    }

    /// Counts `more` held bytes (fewer, if negative): of a connection, or of a reply on its way.
    pub(crate) fn hold(&mut self, more: isize) {
        if self.held.add(more) >= self.quantum {
            self.tell();
        }
    }

    /// Counts `more` coming bytes.
    pub(crate) fn expect(&mut self, more: isize) {
        if self.coming.add(more) >= self.quantum {
            self.tell();
        }
    }

    /// Publishes the counts of this thread, and wakes the other threads if they wait for memory.
    pub(crate) fn tell(&mut self) {
        if self.held.untold == 0 && self.coming.untold == 0 {
            return;
        }
        let memory = &self.shared.memory;
        let fewer = self.held.untold + self.coming.untold;
        self.held.tell(&memory.held.0);
        self.coming.tell(&memory.coming.0);
        if self.held.known > memory.peak.load(Ordering::Relaxed) {
            memory.peak.store(self.held.known, Ordering::Relaxed);
        }
        let sum = self.held.known + self.coming.known;
        let has_fallen = |below: isize| sum <= below && sum - fewer > below;
        if fewer < 0
            && memory.waiting.load(Ordering::Relaxed) > 0
            && (has_fallen(self.first) || has_fallen(self.last))
        {
            self.shared.wake_all();
        }
    }

    /// Registers a waiting connection of this thread.
    pub(crate) fn wait(&mut self, key: u32, holding: &mut Holding, now: Duration) {
        if holding.is_waiting {
            return;
        }
        holding.is_waiting = true;
        if now.saturating_sub(holding.released_at) > PATIENCE {
            holding.waits_since = None;
        }
        holding.waits_since.get_or_insert(now);
        if self.waiting.is_empty() {
            self.shared.memory.waiting.fetch_add(1, Ordering::Relaxed);
            self.waiting_at = MemoryLevel::Free;
        }
        self.waiting.push(key);
        self.waiting_at = self.waiting_at.max(self.level());
    }

    /// Reports whether connections of this thread wait.
    pub(crate) fn has_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Reports whether waiting connections may resume.
    pub(crate) fn has_eased(&mut self) -> bool {
        if self.waiting.is_empty() {
            return false;
        }
        // Other threads may have freed memory between the refusal and the wait.
        let level = self.level();
        level == MemoryLevel::Free || level < self.waiting_at
    }

    /// Returns the connections that waited, which are served now; some of them may be gone.
    pub(crate) fn take_waiting(&mut self) -> Vec<u32> {
        if !self.waiting.is_empty() {
            self.shared.memory.waiting.fetch_sub(1, Ordering::Relaxed);
        }
        std::mem::take(&mut self.waiting)
    }

    /// Reports whether stalled connections are to be closed: some connections wait, or nothing moves.
    pub(crate) fn is_stuck(&mut self) -> bool {
        match self.level() {
            MemoryLevel::Free => false,
            MemoryLevel::Scarce => self.shared.memory.waiting.load(Ordering::Relaxed) > 0,
            MemoryLevel::Full => true,
        }
    }

    /// Publishes the begin of the oldest request that this thread, `me`, may close to make room; `None` without one.
    pub(crate) fn tell_oldest(&self, me: u32, began: Option<Duration>, now: Duration) {
        let oldest = self.shared.oldest_request(me);
        let nanoseconds = began.map_or(u64::MAX, |began| began.as_nanos() as u64);
        oldest.began.store(nanoseconds, Ordering::Relaxed);
        // Pairs with the load in `may_close_since`.
        oldest.looked_at.store(now.as_nanos() as u64, Ordering::Release);
    }

    /// Returns the latest begin of requests that `me` may close, where nothing has moved since `stuck_since`: no other
    /// thread has one that is clearly older. None may be closed before all threads have looked for theirs; a thread
    /// that does not for [`PATIENCE`] is passed over.
    pub(crate) fn may_close_since(&self, me: u32, stuck_since: Duration, now: Duration) -> Duration {
        let mut oldest = Duration::MAX;
        for thread in (0..self.shared.threads()).filter(|&thread| thread != me) {
            let told = self.shared.oldest_request(thread);
            let looked_at = Duration::from_nanos(told.looked_at.load(Ordering::Acquire));
            if looked_at >= stuck_since {
                oldest = oldest.min(Duration::from_nanos(told.began.load(Ordering::Relaxed)));
            } else if now.saturating_sub(stuck_since) < PATIENCE {
                return Duration::ZERO;
            }
        }
        oldest.saturating_add(SAME_AGE.max(now.saturating_sub(oldest) / SAME_AGE_PART))
    }

    /// Lets waiting connections resume while memory is scarce, or stops that.
    pub(crate) fn grant(&mut self, is_granted: bool) {
        self.is_granted = is_granted;
    }

    /// Has the other threads look too.
    pub(crate) fn wake_others(&self) {
        self.shared.wake_all();
    }

    /// Reports whether much less is held than when this was last true, or was at one of the last calls: the allocator's
    /// free memory may return to the system. A thread frees some buffers only after it has taken them off the count,
    /// and on a busy machine it may get no processor for seconds in between.
    pub(crate) fn has_shrunk(&mut self) -> bool {
        self.turn();
        let peak = &self.shared.memory.peak;
        let (most, now) = (peak.load(Ordering::Relaxed), self.held.sum().max(0));
        let has_shrunk = now < most / 2 && most - now > self.first / 2;
        if has_shrunk {
            peak.store(now, Ordering::Relaxed);
            self.returns_left = RETURNS;
        } else {
            self.returns_left = self.returns_left.saturating_sub(1);
        }
        self.returns_left > 0
    }
}

impl Count {
    #[inline]
    fn sum(&self) -> isize {
        self.known + self.untold
    }

    /// Adds, and returns the part that is not published.
    #[inline]
    fn add(&mut self, more: isize) -> usize {
        self.untold += more;
        self.untold.unsigned_abs()
    }

    fn tell(&mut self, shared: &AtomicIsize) {
        let untold = std::mem::take(&mut self.untold);
        self.known = shared.fetch_add(untold, Ordering::Relaxed) + untold;
    }
}

impl Holding {
    /// Creates the account of a connection that holds nothing yet.
    pub(crate) fn new(now: Duration) -> Holding {
        Holding { since: now, ..Holding::default() }
    }

    /// Returns the bytes that it held when they were last counted.
    pub(crate) fn held(&self) -> usize {
        self.held
    }

    /// Notes that `moved` bytes in all have been sent to the client or received from it.
    #[inline]
    pub(crate) fn note(&mut self, moved: usize, now: Duration) {
        let more = moved.wrapping_sub(self.moved);
        if self.held == 0 || more.saturating_mul(STALLED_PART) >= self.held {
            self.restart(moved, now);
        }
    }

    /// Ends the wait for memory.
    pub(crate) fn release(&mut self, now: Duration) {
        (self.is_waiting, self.released_at) = (false, now);
    }

    /// Restarts the measurement of its moves.
    pub(crate) fn restart(&mut self, moved: usize, now: Duration) {
        (self.moved, self.since) = (moved, now);
    }

    /// Notes the begin of a request, unless one has begun: its first bytes arrived now, or when the connection began to
    /// wait for memory.
    #[inline]
    pub(crate) fn begin_request(&mut self, now: Duration) {
        let waits_since = self.waits_since.filter(|_| now.saturating_sub(self.released_at) <= PATIENCE);
        self.request_since.get_or_insert(waits_since.unwrap_or(now));
    }

    /// Notes that a request is consumed; `has_next` is true if bytes of the next are there.
    #[inline]
    pub(crate) fn end_request(&mut self, has_next: bool, now: Duration) {
        self.request_since = has_next.then_some(now);
    }

    /// Returns the time at which the request at the head of its input began; without one, the time of its last move.
    pub(crate) fn request_since(&self) -> Duration {
        self.request_since.unwrap_or(self.since)
    }

    /// Reports whether it has moved next to nothing for a while. A client may get no processor for a tenth of a second
    /// on a busy machine, so the while is longer, even where memory is full.
    pub(crate) fn has_stalled(&self, now: Duration) -> bool {
        now.saturating_sub(self.since) >= PATIENCE
    }

    /// Returns the order in which stalled connections are closed, the largest first: its bytes, times the time without
    /// a move.
    pub(crate) fn weight(&self, now: Duration) -> u128 {
        self.held as u128 * now.saturating_sub(self.since).as_millis().max(1)
    }
}

/// How often, once a second, the allocator is asked to return its free memory after much less is held.
const RETURNS: u8 = 10;

/// Has the allocator return its free memory to the system. An allocator without such a call does so by itself, or not
/// at all.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "the allocator's own call")]
    // SAFETY: it takes no pointer, and may be called at any time by any thread.
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        connections: 1024,
        connections_per_address: usize::MAX,
        idle: None,
        input_bytes: 1 << 20,
        output_bytes: 1 << 20,
        memory_bytes: 32 << 20,
        under_way: 256,
        backlog: 1,
        turn: 1024,
        drain: Duration::ZERO,
    };

    fn threads(count: u32) -> Vec<ThreadMemory> {
        let shared = Arc::new(Shared::new(count, &[0]).unwrap());
        shared.connections.store(100, Ordering::Relaxed);
        (0..count).map(|_| ThreadMemory::new(&LIMITS, shared.clone())).collect()
    }

    #[test]
    fn levels_are_of_all_threads_together() {
        let mut threads = threads(4);
        let mut holdings: Vec<Holding> = (0..4).map(|_| Holding::default()).collect();
        for (megabytes, level) in [
            (1, MemoryLevel::Free),
            (3, MemoryLevel::Free),
            (5, MemoryLevel::Scarce),
            (7, MemoryLevel::Full),
            (4, MemoryLevel::Free),
        ] {
            for (memory, holding) in threads.iter_mut().zip(&mut holdings) {
                memory.recount(holding, megabytes << 20, 0);
            }
            for memory in &mut threads {
                memory.turn();
                assert_eq!(memory.level(), level, "{megabytes} MiB each");
            }
        }
        // Coming bytes count too, but no thread leaves requests alone for them.
        threads[0].recount(&mut holdings[0], 4 << 20, 20 << 20);
        assert_eq!(threads[1].level(), MemoryLevel::Free, "it does not look before its next turn");
        threads[1].turn();
        assert!(threads[1].level() == MemoryLevel::Full && !threads[1].is_full_without_coming());
        threads.iter_mut().zip(&holdings).for_each(|(memory, holding)| memory.forget(holding));
        threads.iter_mut().for_each(ThreadMemory::tell);
        threads[1].turn();
        assert_eq!((threads[1].held.sum(), threads[1].coming.sum()), (0, 0));
    }

    #[test]
    fn small_changes_are_told_together() {
        let mut threads = threads(2);
        let mut holding = Holding::default();
        for _ in 0..1000 {
            threads[0].recount(&mut holding, 10_000, 5000);
            threads[0].recount(&mut holding, 0, 0);
        }
        threads[1].turn();
        assert_eq!(threads[1].held.known, 0, "nothing was told");
        (0..100).for_each(|number| threads[0].recount(&mut holding, number * 10_000, 0));
        threads[1].turn();
        let off = 990_000 - threads[1].held.known;
        assert!((0..=threads[0].quantum as isize).contains(&off), "{off} bytes are not known");
    }

    #[test]
    fn memory_returns_to_the_system_for_a_while_after_it_has_shrunk() {
        let mut memory = threads(1).pop().unwrap();
        let mut holding = Holding::default();
        memory.recount(&mut holding, 20 << 20, 0);
        assert!(!memory.has_shrunk());
        memory.recount(&mut holding, 1 << 20, 0);
        let asked = (0..30).take_while(|_| memory.has_shrunk()).count();
        assert_eq!(asked, usize::from(RETURNS));
    }

    #[test]
    fn those_within_their_share_go_on_while_memory_is_scarce() {
        let mut memory = threads(1).pop().unwrap();
        let mut holding = Holding::default();
        memory.recount(&mut holding, 15 << 20, 0);
        assert!(memory.allows(1 << 20));
        memory.recount(&mut holding, 17 << 20, 0);
        let share = (8 << 20) / 100;
        assert!(memory.allows(share) && !memory.allows(share + 1));
        memory.grant(true);
        assert!(memory.allows(share + 1));
        memory.recount(&mut holding, 25 << 20, 0);
        assert!(!memory.allows(0));
    }

    #[test]
    fn those_that_wait_go_on_when_the_level_falls() {
        let mut memory = threads(1).pop().unwrap();
        let (mut hog, mut other) = (Holding::default(), Holding::default());
        memory.recount(&mut hog, 25 << 20, 0);
        memory.wait(7, &mut other, Duration::ZERO);
        memory.wait(7, &mut other, Duration::ZERO);
        assert!(!memory.has_eased() && memory.is_stuck());
        memory.recount(&mut hog, 20 << 20, 0);
        assert!(memory.has_eased(), "it is scarce, and was full");
        assert_eq!(memory.take_waiting(), [7]);
        other.release(Duration::ZERO);
        memory.wait(7, &mut other, Duration::ZERO);
        assert!(!memory.has_eased(), "it is as scarce as before");
        assert_eq!(memory.excess(), (20 << 20) - (14 << 20));
        memory.forget(&hog);
        assert!(memory.has_eased() && !memory.is_stuck());
    }

    #[test]
    fn a_thread_leaves_its_requests_while_another_has_older_ones() {
        let (stuck_since, now) = (Duration::from_millis(9_950), Duration::from_secs(10));
        let threads = threads(3);
        let may_close = |me: usize, began_ms: u64| {
            Duration::from_millis(began_ms) <= threads[me].may_close_since(me as u32, stuck_since, now)
        };
        threads[0].tell_oldest(0, None, now);
        threads[1].tell_oldest(1, Some(Duration::from_millis(9_900)), now);
        assert!(!may_close(0, 1), "thread 2 has not looked for its oldest");
        threads[2].tell_oldest(2, Some(Duration::from_millis(9_800)), now);
        // 200 ms old: within a 32nd of that, two requests are of one age.
        assert!(may_close(0, 9_806) && !may_close(0, 9_807));
        assert!(may_close(1, 9_806) && !may_close(1, 9_900));
        assert!(may_close(2, 9_800), "its own are the oldest");
        threads[2].tell_oldest(2, None, now);
        // 100 ms old: within 5 ms.
        assert!(may_close(0, 9_905) && !may_close(0, 9_906));
        // The report of a thread from before the others were stuck is void, and the others do not wait for it forever.
        let (since, later) = (now + PATIENCE, now + PATIENCE + PATIENCE);
        assert_eq!(threads[0].may_close_since(0, since, since), Duration::ZERO);
        assert_eq!(threads[0].may_close_since(0, since, later), Duration::MAX);
    }

    #[test]
    fn a_request_is_as_old_as_its_wait_for_memory() {
        let at = Duration::from_millis;
        let mut memory = threads(1).pop().unwrap();
        let mut holding = Holding::new(at(0));
        // It waits twice before it is read.
        memory.wait(7, &mut holding, at(1000));
        holding.release(at(1100));
        memory.wait(7, &mut holding, at(1150));
        holding.release(at(1200));
        holding.begin_request(at(1201));
        holding.begin_request(at(1300));
        assert_eq!(holding.request_since(), at(1000));
        holding.end_request(true, at(1400));
        assert_eq!(holding.request_since(), at(1400));
        holding.end_request(false, at(1450));
        assert_eq!(holding.request_since(), at(0), "without a request, its last move counts");
        // A wait that ended long ago does not count.
        holding.begin_request(at(1200) + 2 * PATIENCE);
        assert_eq!(holding.request_since(), at(1200) + 2 * PATIENCE);
    }

    #[test]
    fn a_trickle_is_no_move() {
        let (begin, later) = (Duration::from_secs(1), Duration::from_secs(1) + PATIENCE);
        let mut memory = threads(1).pop().unwrap();
        let mut holding = Holding::new(begin);
        memory.recount(&mut holding, 1600, 0);
        holding.note(99, later);
        assert!(holding.has_stalled(later) && holding.weight(later) == 1600 * 250);
        holding.note(100, later);
        assert!(!holding.has_stalled(later) && holding.weight(later) == 1600);
    }
}
