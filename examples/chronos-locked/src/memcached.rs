//! memcached's gets as shared reads.

use std::sync::atomic::{AtomicU64, Ordering};

use plimsoll_chronos::Now;
use plimsoll_chronos_memcached::{
    Bits, Clock, ItemState, Lookup, Memcached, Partition, ReplyStyle, Request, Verb,
};

use crate::SharedRead;

/// The statistics of shared gets.
#[derive(Debug)]
pub struct Reads {
    gets: AtomicU64,
    misses: AtomicU64,
    bytes_written: AtomicU64,
    /// The number of hits by size class.
    hits: Box<[AtomicU64]>,
}

/// A get of text or binary is shared if its item is active already, or does not exist: as in memcached, most fetches
/// leave the item unchanged. A meta get may set, renew or win the item, and is not shared.
impl SharedRead for Memcached {
    type Reads = Reads;

    fn reads(&self, partition: &Partition) -> Reads {
        let hits = (0..partition.store.class_count()).map(|_| AtomicU64::new(0)).collect();
        Reads { gets: AtomicU64::new(0), misses: AtomicU64::new(0), bytes_written: AtomicU64::new(0), hits }
    }

    fn read(
        &self,
        partition: &Partition,
        reads: &Reads,
        request: &Request<'_>,
        now: Now,
        reply: &mut Vec<u8>,
    ) -> bool {
        let head = &request.head;
        if head.verb != Verb::Get || head.style == ReplyStyle::Meta || head.has(Bits::DETAIL) {
            return false;
        }
        let store = &partition.store;
        let found = store.peek(head.hash, request.key);
        if let Some(item) = found {
            // A second fetch makes an item active, and an expired item is removed: both change the partition.
            let is_live = matches!(store.state_of(item, Clock::new(now).second), Lookup::Hit(_));
            if !is_live || store.header(item).state & ItemState::ACTIVE == 0 {
                return false;
            }
        }
        let before = reply.len();
        partition.answer_get(request, found, reply);
        reads.gets.fetch_add(1, Ordering::Relaxed);
        reads.bytes_written.fetch_add((reply.len() - before) as u64, Ordering::Relaxed);
        match found {
            Some(item) => reads.hits[store.class(item)].fetch_add(1, Ordering::Relaxed),
            None => reads.misses.fetch_add(1, Ordering::Relaxed),
        };
        true
    }

    fn settle(&self, partition: &mut Partition, reads: &mut Reads, request: &Request<'_>) {
        if !matches!(request.head.verb, Verb::Stats | Verb::ResetStats) {
            return;
        }
        let Reads { gets, misses, bytes_written, hits } = reads;
        partition.counters.get_commands += std::mem::take(gets.get_mut());
        partition.counters.get_misses += std::mem::take(misses.get_mut());
        partition.counters.bytes_written += std::mem::take(bytes_written.get_mut());
        for (class, hits) in hits.iter_mut().enumerate() {
            partition.store.count_class(class).get_hits += std::mem::take(hits.get_mut());
        }
    }
}
