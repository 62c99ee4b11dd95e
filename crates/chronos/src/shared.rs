//! [`Shared`]: the few words that threads share: the table of owners, which threads have settled on it, which sleep,
//! and the stop.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io;

use crate::memory::{OldestRequest, SharedMemory};
use crate::sources::SourceCounts;

/// The state that all threads see.
#[derive(Debug)]
pub(crate) struct Shared {
    /// Grows with every table.
    generation: AtomicU64,
    /// The table: the owner of each partition.
    owners: Box<[AtomicU32]>,
    threads: Box<[PerThread]>,
    stopping: AtomicBool,
    failed: AtomicBool,
    /// Number of threads whose connections are all closed after the stop.
    drained: AtomicUsize,
    /// Connections of all threads.
    pub(crate) connections: AtomicUsize,
    /// The same by source address, where that is limited.
    pub(crate) sources: Arc<SourceCounts>,
    /// The memory that the connections hold.
    pub(crate) memory: SharedMemory,
}

#[derive(Debug)]
#[repr(align(128))]
struct PerThread {
    /// The generation that the thread has settled on.
    settled: AtomicU64,
    asleep: AtomicBool,
    oldest_request: OldestRequest,
    alarm: OwnedFd,
}

impl Shared {
    pub(crate) fn new(threads: u32, owners: &[u32]) -> io::Result<Shared> {
        let per_thread = |_| {
            let alarm = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
            let (settled, asleep) = (AtomicU64::new(0), AtomicBool::new(false));
            Ok(PerThread { settled, asleep, oldest_request: OldestRequest::default(), alarm })
        };
        Ok(Shared {
            generation: AtomicU64::new(0),
            owners: owners.iter().map(|&owner| AtomicU32::new(owner)).collect(),
            threads: (0..threads).map(per_thread).collect::<io::Result<_>>()?,
            stopping: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            drained: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            sources: Arc::default(),
            memory: SharedMemory::default(),
        })
    }

    pub(crate) fn threads(&self) -> u32 {
        self.threads.len() as u32
    }

    /// Returns a thread's report about its oldest request that may be closed to make room.
    pub(crate) fn oldest_request(&self, thread: u32) -> &OldestRequest {
        &self.threads[thread as usize].oldest_request
    }

    /// Returns the generation of the newest table; a thread that sees it sees the table.
    #[inline]
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    pub(crate) fn owner(&self, partition: u32) -> u32 {
        self.owners[partition as usize].load(Ordering::Relaxed)
    }

    /// This thread has settled on `generation`.
    pub(crate) fn settle(&self, thread: u32, generation: u64) {
        self.threads[thread as usize].settled.store(generation, Ordering::Release);
    }

    /// Reports whether all threads have settled on the newest generation.
    pub(crate) fn all_settled(&self) -> bool {
        let generation = self.generation();
        self.threads.iter().all(|thread| thread.settled.load(Ordering::Acquire) == generation)
    }

    /// Publishes a new table. Only the balancer calls it, after it has seen [`Shared::all_settled`].
    pub(crate) fn publish(&self, owners: &[u32]) {
        for (shared, &owner) in self.owners.iter().zip(owners) {
            shared.store(owner, Ordering::Relaxed);
        }
        self.generation.store(self.generation.load(Ordering::Relaxed) + 1, Ordering::Release);
        self.wake_all();
    }

    /// Returns the descriptor that wakes a thread which waits in the kernel.
    pub(crate) fn alarm(&self, thread: u32) -> BorrowedFd<'_> {
        self.threads[thread as usize].alarm.as_fd()
    }

    /// Marks the thread as about to sleep: a change made before this is seen by its next look, and one made later wakes
    /// it.
    pub(crate) fn fall_asleep(&self, thread: u32) {
        self.threads[thread as usize].asleep.store(true, Ordering::Relaxed);
        // Pairs with the fence in `wake`: either the thread sees the message, or the sender sees that it sleeps.
        fence(Ordering::SeqCst);
    }

    pub(crate) fn awake(&self, thread: u32) {
        self.threads[thread as usize].asleep.store(false, Ordering::Relaxed);
    }

    /// Wakes a thread, if it sleeps, after something was put where it looks.
    pub(crate) fn wake(&self, thread: u32) -> bool {
        fence(Ordering::SeqCst);
        let thread = &self.threads[thread as usize];
        let asleep = thread.asleep.load(Ordering::Relaxed) && thread.asleep.swap(false, Ordering::Relaxed);
        if asleep {
            // The counter cannot be full, and if it were, the thread would wake anyway.
            let _ = io::write(&thread.alarm, &1_u64.to_ne_bytes());
        }
        asleep
    }

    pub(crate) fn wake_all(&self) {
        for thread in 0..self.threads() {
            self.wake(thread);
        }
    }

    pub(crate) fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.wake_all();
    }

    #[inline]
    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// Notes that a thread is lost, so that the others do not wait for it.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
        self.stop();
    }

    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }

    /// Notes that the calling thread has closed its last connection.
    pub(crate) fn drain(&self) {
        self.drained.fetch_add(1, Ordering::AcqRel);
        self.wake_all();
    }

    pub(crate) fn all_drained(&self) -> bool {
        self.drained.load(Ordering::Acquire) >= self.threads.len()
    }
}
