//! [`Memcached`]: the state that all partitions and connections of a server share, which parsers and reports read.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use plimsoll_chronos::{KeyHash, PagePool, Step};

use crate::clock::Clock;
use crate::memory_file::MemoryFile;
use crate::partition::Partition;
use crate::request::{Bits, Request};
use crate::settings::{MemcachedSettings, PAGES_FLOOR};
use crate::stats::{self, Certificates, Report, Shared};
use crate::store::{ChunkClasses, ItemBudget, Layout};

/// A memcached without threads and sockets.
#[derive(Debug)]
pub struct Memcached {
    pub(crate) settings: MemcachedSettings,
    pub(crate) shared: Arc<Shared>,
    pub(crate) budget: Arc<ItemBudget>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) hash: KeyHash,
    /// The published counters of partitions, if metrics show them.
    pub(crate) published: Option<Arc<stats::PublishedCounts>>,
    /// The file that keeps the items over a restart, with `-e`.
    pub(crate) memory_file: Option<Arc<MemoryFile>>,
    /// The partitions with the items of that file, until the server's threads take them; empty if there are none.
    pub(crate) restored: Mutex<Vec<Option<Partition>>>,
}

/// Settings that contradict each other.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The floors of the partitions do not fit.
    #[error(
        "-m {given} MiB is too little for {partitions} partitions, which need {needed} MiB; use fewer \
         threads (-t), or fewer partitions (-o chronos_partitions), of which each thread has one at least"
    )]
    MemoryTooSmall {
        /// The memory given, in MiB.
        given: u64,
        /// The number of partitions.
        partitions: u32,
        /// The memory needed, in MiB.
        needed: u64,
    },
    /// The memory is more than the partitions can hold.
    #[error(
        "-m {given} MiB is too much for {partitions} partitions, which hold {most} MiB; use more with -o \
         chronos_partitions"
    )]
    MemoryTooLarge {
        /// The memory given, in MiB.
        given: u64,
        /// The number of partitions.
        partitions: u32,
        /// Memory limit of all partitions together, in MiB.
        most: u64,
    },
    /// One item could fill the whole cache.
    #[error("-I {item} bytes must be at most half of -m, which is {memory} bytes")]
    ItemTooLarge {
        /// The largest item in bytes, `-I`.
        item: u64,
        /// The memory limit in bytes, `-m`.
        memory: u64,
    },
}

impl Memcached {
    /// Creates a server with `settings`; its item memory is not allocated yet.
    pub fn new(settings: MemcachedSettings) -> Result<Memcached, SettingsError> {
        let (memory, item) = (settings.memory_limit, settings.item_size_max);
        if memory < settings.memory_min() {
            return Err(SettingsError::MemoryTooSmall {
                given: memory >> 20,
                partitions: settings.partitions,
                needed: settings.memory_min().div_ceil(1 << 20),
            });
        }
        if memory > settings.memory_max() {
            return Err(SettingsError::MemoryTooLarge {
                given: memory >> 20,
                partitions: settings.partitions,
                most: settings.memory_max() >> 20,
            });
        }
        if item > memory / 2 {
            return Err(SettingsError::ItemTooLarge { item, memory });
        }
        let page_bytes = settings.page_bytes();
        let shared = Shared::default();
        shared.detail.store(settings.detail, Ordering::Relaxed);
        shared.verbosity.store(settings.verbosity, Ordering::Relaxed);
        shared.crawler.store(settings.crawler, Ordering::Relaxed);
        // memcached's defaults, which are only reported.
        shared.crawler_sleep.store(100, Ordering::Relaxed);
        shared.automove.store(1, Ordering::Relaxed);
        Ok(Memcached {
            layout: Arc::new(Layout {
                classes: ChunkClasses::new(page_bytes, settings.growth_factor, settings.chunk_size),
                page_bytes,
                pool: PagePool::new(page_bytes),
                pages_floor: PAGES_FLOOR,
                evict: settings.evict,
            }),
            budget: Arc::new(ItemBudget::new(memory, item)),
            hash: KeyHash::new(settings.hash_secret),
            shared: Arc::new(shared),
            settings,
            published: None,
            memory_file: None,
            restored: Mutex::default(),
        })
    }

    /// Has partitions publish their counts, before the server starts; returns the counts that metrics show.
    pub fn publish(&mut self) -> stats::Shown {
        let published = Arc::new(stats::PublishedCounts::new(self.settings.partitions));
        self.published = Some(Arc::clone(&published));
        stats::Shown { published, shared: Arc::clone(&self.shared), budget: Arc::clone(&self.budget) }
    }

    /// Returns the settings.
    pub fn settings(&self) -> &MemcachedSettings {
        &self.settings
    }

    /// Returns the counters that all threads share.
    pub fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    /// Sets the function that the shutdown command calls, if `-A` allows it: with true for `shutdown graceful`.
    pub fn on_shutdown(&self, hook: fn(bool)) {
        // The first hook stays.
        let _ = self.shared.shutdown.set(hook);
    }

    /// Sets the function that the command `refresh_certs` calls: it reads the certificates again, or returns the error
    /// in a line.
    pub fn on_refresh(&self, read: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        let certificates = Certificates { read: Box::new(read), read_at: AtomicU32::new(0) };
        // The first function stays.
        let _ = self.shared.certificates.set(certificates);
    }

    /// Returns the bytes of item memory in use, and their limit.
    pub fn memory(&self) -> (u64, u64) {
        (self.budget.taken(), self.budget.limit())
    }

    /// Sends `request`, which consumes `consumed` bytes, on its way to the partition of `key`.
    #[inline]
    pub(crate) fn run<'a>(&self, consumed: usize, mut request: Request<'a>, key: &[u8]) -> Step<Request<'a>> {
        let hash = self.hash.hash(key);
        request.head.hash = hash;
        // Set here, so that requests count from the command on that turns it on, however they are run.
        if self.shared.detail.load(Ordering::Relaxed) {
            request.head.bits |= Bits::DETAIL;
        }
        Step::Run { consumed, partition: KeyHash::partition(hash, self.settings.partitions), request }
    }

    /// Reports whether an item counts as too large for `-I`.
    #[inline]
    pub(crate) fn is_too_large(&self, key_bytes: usize, client_flags: u32, value_bytes: usize) -> bool {
        self.settings.item_limit().is_exceeded(key_bytes, client_flags, value_bytes)
    }

    /// Writes all lines of `report` to `sink`, except for `detail dump`, which has a format of its own.
    pub(crate) fn report_lines(
        &self,
        report: Report,
        replies: &[Vec<u8>],
        clock: Clock,
        sink: &mut dyn stats::ReportSink,
    ) {
        let (taken, limit) = self.memory();
        match report {
            Report::General => stats::general(replies, &self.settings, &self.shared, limit, clock, sink),
            Report::Items => stats::items(replies, sink),
            Report::Slabs => stats::slabs(replies, taken, sink),
            Report::Detail => {}
        }
    }
}
