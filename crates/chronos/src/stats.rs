//! [`RuntimeStats`]: the runtime's counters. Every counter has one writer, so counting is a load and a store.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::DeviceInfo;
use plimsoll_mechanisms::partition_balancer::BalanceCounts;

/// A counter with one writer at a time.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    #[inline]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// The counters of one thread, on cache lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct ThreadCounters {
    pub(crate) opened: Counter,
    pub(crate) closed: Counter,
    pub(crate) refused: Counter,
    pub(crate) accept_errors: Counter,
    pub(crate) timed_out: Counter,
    pub(crate) shed: Counter,
    pub(crate) own: Counter,
    pub(crate) foreign: Counter,
    pub(crate) forwarded: Counter,
    pub(crate) received_bytes: Counter,
    pub(crate) sent_bytes: Counter,
    pub(crate) datagrams: Counter,
    pub(crate) dropped: Counter,
    pub(crate) bad_checksums: Counter,
    pub(crate) malformed: Counter,
    pub(crate) overruns: Counter,
    pub(crate) wakes: Counter,
    pub(crate) sleeps: Counter,
    pub(crate) rings_full: Counter,
    pub(crate) adopted: Counter,
    pub(crate) yields: Counter,
}

/// The counters of one partition, written by its owner.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct PartitionCounters {
    pub(crate) load: Counter,
    pub(crate) owner: AtomicU32,
}

/// The counters of the policy that moves partitions, as of the last epoch.
#[derive(Debug, Default)]
struct BalanceCounters {
    splits: Counter,
    joins: Counter,
    crossings: Counter,
}

/// Everything that a running server counts. It may be read at any time; the values of different counters need not be of
/// one instant.
#[derive(Debug)]
pub struct RuntimeStats {
    threads: Box<[ThreadCounters]>,
    partitions: Box<[PartitionCounters]>,
    balance: BalanceCounters,
    devices: Vec<DeviceInfo>,
}

/// One thread's counts since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ThreadStats {
    /// Connections open now.
    pub connections: u64,
    /// Connections that were opened since the start.
    pub connections_total: u64,
    /// Connections refused since there were too many.
    pub refused: u64,
    /// Times that no connection could be accepted (no file descriptors, say).
    pub accept_errors: u64,
    /// Connections closed since they were idle too long.
    pub timed_out: u64,
    /// Connections closed since others waited for the memory that they held ([`crate::Limits::memory_bytes`]).
    pub shed: u64,
    /// Requests of own connections for own partitions.
    pub own: u64,
    /// Requests of own connections for partitions of other threads.
    pub foreign: u64,
    /// Requests that came for a partition which had moved on.
    pub forwarded: u64,
    /// Bytes received from clients.
    pub received_bytes: u64,
    /// Bytes sent to clients.
    pub sent_bytes: u64,
    /// Datagrams that were received.
    pub datagrams: u64,
    /// Datagrams that could not be sent: the kernel did not take them; at a device, no frame was free or they were
    /// longer than its packets.
    pub dropped: u64,
    /// Frames of a device ([`crate::Listen::Device`]) with a wrong checksum.
    pub bad_checksums: u64,
    /// Frames of a device that are no whole datagram, or whose sender cannot be answered.
    pub malformed: u64,
    /// Datagrams that came to a device's queue when it had no room, as of some time in the last second.
    pub overruns: u64,
    /// Wake-ups sent to threads that slept.
    pub wakes: u64,
    /// Times that the thread slept.
    pub sleeps: u64,
    /// Times that a ring was too full for the messages to send.
    pub rings_full: u64,
    /// Partitions taken over from other threads.
    pub adopted: u64,
    /// Times that a connection had as many requests as one may have in a turn, and gave way to others.
    pub yields: u64,
}

/// One partition's counts since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PartitionStats {
    /// The load of its requests, by the balancer's load metric (requests, bytes or nanoseconds).
    pub load: u64,
    /// The thread that owns it.
    pub owner: u32,
}

impl RuntimeStats {
    /// Counters of `threads` threads and of the partitions with these owners, all 0; and the devices
    /// that datagrams are taken from.
    pub(crate) fn new(threads: u32, owners: &[u32], devices: Vec<DeviceInfo>) -> RuntimeStats {
        let partition =
            |&owner: &u32| PartitionCounters { owner: AtomicU32::new(owner), ..PartitionCounters::default() };
        RuntimeStats {
            threads: (0..threads).map(|_| ThreadCounters::default()).collect(),
            partitions: owners.iter().map(partition).collect(),
            balance: BalanceCounters::default(),
            devices,
        }
    }

    pub(crate) fn thread(&self, thread: u32) -> &ThreadCounters {
        &self.threads[thread as usize]
    }

    pub(crate) fn partition(&self, partition: u32) -> &PartitionCounters {
        &self.partitions[partition as usize]
    }

    pub(crate) fn partitions_len(&self) -> u32 {
        self.partitions.len() as u32
    }

    /// Returns the number of requests of all threads' connections.
    pub(crate) fn requests(&self) -> u64 {
        self.threads.iter().map(|thread| thread.own.get().wrapping_add(thread.foreign.get())).sum()
    }

    pub(crate) fn set_balance(&self, counts: BalanceCounts) {
        self.balance.splits.set(counts.splits);
        self.balance.joins.set(counts.joins);
        self.balance.crossings.set(counts.crossings);
    }

    /// Returns the counts of the policy that moves partitions, since the start; [`ThreadStats::adopted`] has the number
    /// of moves.
    pub fn balance(&self) -> BalanceCounts {
        BalanceCounts {
            splits: self.balance.splits.get(),
            joins: self.balance.joins.get(),
            crossings: self.balance.crossings.get(),
        }
    }

    /// Returns the devices from which datagrams are received, with the way each is used.
    pub fn devices(&self) -> &[DeviceInfo] {
        &self.devices
    }

    /// Returns the counts of each thread.
    pub fn threads(&self) -> Vec<ThreadStats> {
        self.threads.iter().map(thread_stats).collect()
    }

    /// Returns the counts of each partition.
    pub fn partitions(&self) -> Vec<PartitionStats> {
        let stats = |counters: &PartitionCounters| PartitionStats {
            load: counters.load.get(),
            owner: counters.owner.load(Ordering::Relaxed),
        };
        self.partitions.iter().map(stats).collect()
    }

    /// Returns the sum over the threads.
    pub fn total(&self) -> ThreadStats {
        let mut total = ThreadStats::default();
        for thread in self.threads() {
            total.connections += thread.connections;
            total.connections_total += thread.connections_total;
            total.refused += thread.refused;
            total.accept_errors += thread.accept_errors;
            total.timed_out += thread.timed_out;
            total.shed += thread.shed;
            total.own += thread.own;
            total.foreign += thread.foreign;
            total.forwarded += thread.forwarded;
            total.received_bytes += thread.received_bytes;
            total.sent_bytes += thread.sent_bytes;
            total.datagrams += thread.datagrams;
            total.dropped += thread.dropped;
            total.bad_checksums += thread.bad_checksums;
            total.malformed += thread.malformed;
            total.overruns += thread.overruns;
            total.wakes += thread.wakes;
            total.sleeps += thread.sleeps;
            total.rings_full += thread.rings_full;
            total.adopted += thread.adopted;
            total.yields += thread.yields;
        }
        total
    }
}

fn thread_stats(counters: &ThreadCounters) -> ThreadStats {
    ThreadStats {
        connections: counters.opened.get().saturating_sub(counters.closed.get()),
        connections_total: counters.opened.get(),
        refused: counters.refused.get(),
        accept_errors: counters.accept_errors.get(),
        timed_out: counters.timed_out.get(),
        shed: counters.shed.get(),
        own: counters.own.get(),
        foreign: counters.foreign.get(),
        forwarded: counters.forwarded.get(),
        received_bytes: counters.received_bytes.get(),
        sent_bytes: counters.sent_bytes.get(),
        datagrams: counters.datagrams.get(),
        dropped: counters.dropped.get(),
        bad_checksums: counters.bad_checksums.get(),
        malformed: counters.malformed.get(),
        overruns: counters.overruns.get(),
        wakes: counters.wakes.get(),
        sleeps: counters.sleeps.get(),
        rings_full: counters.rings_full.get(),
        adopted: counters.adopted.get(),
        yields: counters.yields.get(),
    }
}
