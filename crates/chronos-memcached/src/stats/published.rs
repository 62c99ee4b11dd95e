//! [`PublishedCounts`]: the counts of partitions, for threads that do not own them.
//!
//! A partition's counters are plain numbers of its owner. About once a second, the owner copies them to here while it
//! does its housekeeping, word by word; others read the words without a lock. So the values read are up to a second or
//! two old, and the numbers of a partition need not be of one instant.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_http::metrics::{Exposition, MetricKind};
use zerocopy::{FromBytes, IntoBytes};

use super::{Counters, Gauges, Shared};
use crate::store::ItemBudget;

/// The counts of all partitions.
#[derive(Debug)]
pub struct PublishedCounts(Box<[Slot]>);

/// The counts of one partition, which its owner writes.
#[derive(Debug)]
struct Slot([AtomicU64; WORDS]);

/// The number of words of a partition's counters and gauges together.
const WORDS: usize = (size_of::<Counters>() + size_of::<Gauges>()) / size_of::<u64>();

impl PublishedCounts {
    /// Creates the counts of `partitions` partitions, all 0.
    pub fn new(partitions: u32) -> PublishedCounts {
        PublishedCounts((0..partitions).map(|_| Slot([const { AtomicU64::new(0) }; WORDS])).collect())
    }

    /// Copies the counts of a partition to where others may read them.
    pub fn publish(&self, partition: u32, counters: &Counters, gauges: &Gauges) {
        let words = counters.as_bytes().chunks_exact(8).chain(gauges.as_bytes().chunks_exact(8));
        for (place, word) in self.0[partition as usize].0.iter().zip(words) {
            place.store(u64::read_from_bytes(word).expect("8 bytes"), Ordering::Relaxed);
        }
    }

    /// Returns the sums over all partitions, as they were copied last.
    pub fn sums(&self) -> (Counters, Gauges) {
        let mut sums = [0_u64; WORDS];
        for slot in &self.0 {
            for (sum, word) in sums.iter_mut().zip(&slot.0) {
                *sum = sum.wrapping_add(word.load(Ordering::Relaxed));
            }
        }
        let (counters, gauges) = sums.as_bytes().split_at(size_of::<Counters>());
        (
            Counters::read_from_bytes(counters).expect("all counters"),
            Gauges::read_from_bytes(gauges).expect("all gauges"),
        )
    }
}

/// The counts of a server that metrics show.
#[derive(Clone, Debug)]
pub struct Shown {
    pub(crate) published: Arc<PublishedCounts>,
    pub(crate) shared: Arc<Shared>,
    pub(crate) budget: Arc<ItemBudget>,
}

impl Shown {
    /// Writes the server's own counters, beside its runtime's.
    pub fn expose(&self, out: &mut Exposition) {
        let (counters, gauges) = self.published.sums();
        commands(&counters, out);
        let counts = gauges.counts;
        out.gauge("chronos_memcached_items", "Items in the cache.", gauges.items);
        out.counter("chronos_memcached_items_stored", "Items that were stored.", gauges.items_total);
        out.gauge(
            "chronos_memcached_items_bytes",
            "Bytes of the items: headers, keys and values.",
            gauges.bytes,
        );
        out.gauge("chronos_memcached_index_bytes", "Bytes of the index.", gauges.index_bytes);
        out.gauge("chronos_memcached_memory_bytes", "Item memory in use.", self.budget.taken());
        out.gauge(
            "chronos_memcached_memory_limit_bytes",
            "Item memory that may be used (-m).",
            self.budget.limit(),
        );
        out.counter("chronos_memcached_evictions", "Items evicted to make room.", counts.evicted);
        out.counter(
            "chronos_memcached_evictions_unfetched",
            "Evicted items that were never fetched.",
            counts.evicted_unfetched,
        );
        out.counter(
            "chronos_memcached_items_reclaimed",
            "Expired and flushed items whose memory a store took.",
            counts.reclaimed,
        );
        out.counter(
            "chronos_memcached_items_swept",
            "Expired and flushed items that idle threads removed.",
            counts.swept,
        );
        out.counter(
            "chronos_memcached_pages_moved",
            "Pages that went to another size class.",
            gauges.pages_moved,
        );
        out.family("chronos_memcached_stores_refused", MetricKind::Counter, "Values refused, by reason.")
            .sample(&[("reason", "size")], self.shared.too_large.load(Ordering::Relaxed))
            .sample(&[("reason", "memory")], counters.no_memory);
        let (attempts, failed) = (&self.shared.auth_commands, &self.shared.auth_errors);
        let (attempts, failed) = (attempts.load(Ordering::Relaxed), failed.load(Ordering::Relaxed));
        out.family("chronos_memcached_logins", MetricKind::Counter, "Attempts to log in, by result.")
            .sample(&[("result", "accepted")], attempts.saturating_sub(failed))
            .sample(&[("result", "rejected")], failed);
    }
}

fn commands(counters: &Counters, out: &mut Exposition) {
    let help = "Keys that commands were about, by command and result.";
    out.family("chronos_memcached_commands", MetricKind::Counter, help);
    for (command, result, count) in counters.samples() {
        let labels = [("command", command), ("result", result)];
        // An empty label is the same as none.
        out.sample(if result.is_empty() { &labels[..1] } else { &labels }, count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_add_up_as_they_were_published_last() {
        let published = PublishedCounts::new(3);
        let gauges = |items| Gauges { items, ..Gauges::default() };
        let counters = |get_commands| Counters { get_commands, bytes_written: 7, ..Counters::default() };
        published.publish(0, &counters(5), &gauges(1));
        published.publish(2, &counters(6), &gauges(2));
        published.publish(2, &counters(60), &gauges(20));
        let (counters, gauges) = published.sums();
        assert_eq!((counters.get_commands, counters.bytes_written, gauges.items), (65, 14, 21));
    }
}
