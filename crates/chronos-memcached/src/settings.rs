//! The settings with which a server was started.

use std::path::PathBuf;

use plimsoll_chronos::TlsFiles;

use crate::auth::Credentials;
use crate::session::Protocol;
use crate::store::ItemRef;

/// The settings, with memcached's defaults.
#[derive(Clone, Debug)]
pub struct MemcachedSettings {
    /// `-m`, bytes of item memory.
    pub memory_limit: u64,
    /// `-I`, bytes of the largest item, counted as memcached counts: its header and key included.
    pub item_size_max: u64,
    /// True unless `-M` is given.
    pub evict: bool,
    /// True unless `-C` is given.
    pub cas: bool,
    /// True unless `-F` is given.
    pub flush: bool,
    /// Allows the command shutdown (`-A`).
    pub shutdown: bool,
    /// The growth factor of size classes (`-f`).
    pub growth_factor: f64,
    /// `-n`, bytes of key and value that the smallest chunk has room for.
    pub chunk_size: usize,
    /// The delimiter of prefixes in statistics (`-D`).
    pub prefix_delimiter: u8,
    /// Statistics per prefix from the start.
    pub detail: bool,
    /// `-B`: Unknown is auto-negotiation.
    pub protocol: Protocol,
    /// `-Y` or, with `-S`, the file of SASL users.
    pub credentials: Option<Credentials>,
    /// Requires SASL authentication (`-S`).
    pub sasl: bool,
    /// The number of worker threads (`-t`).
    pub threads: u32,
    /// The largest number of connections (`-c`).
    pub connections_max: u32,
    /// `-R`: requests of a connection after which it gives way to others.
    pub requests_per_turn: u32,
    /// `-p`, 0 for none, -1 for any.
    pub tcp_port: i32,
    /// `-U`, 0 for none, -1 for any.
    pub udp_port: i32,
    /// The addresses that were given by `-l`.
    pub listen: Option<String>,
    /// True unless `-X` is given: `stats cachedump` and `lru_crawler metadump` are served.
    pub dump: bool,
    /// `-o lru_crawler`, `no_lru_crawler` or `no_modern`: idle threads look for expired items.
    pub crawler: bool,
    /// The path of the UNIX socket (`-s`).
    pub unix_socket: Option<PathBuf>,
    /// The permissions of the UNIX socket (`-a`).
    pub unix_mask: u32,
    /// The length of the accept queue (`-b`).
    pub backlog: u32,
    /// The verbosity (`-v`, up to three times).
    pub verbosity: u32,
    /// `-Z`: the files of `-o ssl_chain_cert` and `-o ssl_key`, and of `ssl_ca_cert` if clients are verified.
    pub tls: Option<TlsFiles>,
    /// `-o ssl_ca_cert`, which changes nothing unless `tls` has it too.
    pub tls_authority: Option<PathBuf>,
    /// `-o ssl_verify_mode`, which is shown in `stats settings`; `tls` has its effect.
    pub tls_verification: u32,
    /// `-o ssl_wbuf_size` in bytes, which is shown in `stats settings` and changes nothing.
    pub tls_write_bytes: u32,
    /// `-e`: the file that keeps the items over a restart.
    pub memory_file: Option<PathBuf>,
    /// `-o idle_timeout`, seconds, 0 for none.
    pub idle_timeout: u32,
    /// `-o chronos_partitions`.
    pub partitions: u32,
    /// `-o chronos_vbuckets`: a binary request's partition is its vBucket field (modulo the partitions), not its key's.
    pub by_vbucket: bool,
    /// `-o chronos_udp_amplification`: bytes of a reply for each byte of its datagram, 0 for any number.
    pub udp_amplification: u32,
    /// The seed of the key hash: a random number, unless a test sets its own.
    pub hash_secret: u64,
}

/// Partitions for each thread, or groups of them.
pub const PARTITIONS_PER_THREAD: u32 = 16;
/// Requests of a connection after which it gives way to others; memcached's default is 20, where a get counts as one.
pub const REQUESTS_PER_TURN: u32 = 1024;
/// Factor from one chunk size to the next; memcached's default is 1.25.
pub const GROWTH_FACTOR: f64 = 1.06;

impl Default for MemcachedSettings {
    fn default() -> MemcachedSettings {
        MemcachedSettings {
            memory_limit: 64 << 20,
            item_size_max: 1 << 20,
            evict: true,
            cas: true,
            flush: true,
            shutdown: false,
            growth_factor: GROWTH_FACTOR,
            chunk_size: 48,
            prefix_delimiter: b':',
            detail: false,
            protocol: Protocol::Unknown,
            credentials: None,
            sasl: false,
            threads: 4,
            connections_max: 1024,
            requests_per_turn: REQUESTS_PER_TURN,
            tcp_port: 11_211,
            udp_port: 0,
            listen: None,
            dump: true,
            crawler: true,
            unix_socket: None,
            unix_mask: 0o700,
            backlog: 1024,
            verbosity: 0,
            tls: None,
            tls_authority: None,
            tls_verification: 0,
            tls_write_bytes: 16 << 10,
            memory_file: None,
            idle_timeout: 0,
            partitions: 4 * PARTITIONS_PER_THREAD,
            by_vbucket: false,
            udp_amplification: 0,
            hash_secret: 0,
        }
    }
}

/// Pages that a partition's memory should make.
const PAGES_PER_PARTITION: u64 = 16;
/// The smallest and the largest page in bytes.
const PAGE_BYTES: std::ops::RangeInclusive<u64> = (16 << 10)..=(64 << 10);
/// Pages that a partition keeps.
pub(crate) const PAGES_FLOOR: usize = 2;

/// The limit on the size of an item (`-I`).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ItemLimit {
    bytes: u64,
    cas: bool,
}

impl ItemLimit {
    /// Reports whether an item is above it, counted as memcached counts: with its own header and line end.
    pub fn is_exceeded(self, key_bytes: usize, client_flags: u32, value_bytes: usize) -> bool {
        const MEMCACHED_HEADER_BYTES: usize = 48;
        let cas_bytes = if self.cas { 8 } else { 0 };
        let flags_bytes = if client_flags == 0 { 0 } else { 4 };
        let bytes = MEMCACHED_HEADER_BYTES + cas_bytes + key_bytes + 1 + flags_bytes + value_bytes + 2;
        bytes as u64 > self.bytes
    }
}

impl MemcachedSettings {
    /// Returns the limit on the size of an item.
    pub fn item_limit(&self) -> ItemLimit {
        ItemLimit { bytes: self.item_size_max, cas: self.cas }
    }

    /// Returns the default number of partitions: [`PARTITIONS_PER_THREAD`] a thread, each a group of `ways`. With
    /// little memory there are fewer, down to one a thread (or one group), so that a partition has pages for several
    /// sizes of items.
    pub fn partitions_for(memory_limit: u64, threads: u32, ways: u32) -> u32 {
        // A group divides its keys among `ways` partitions, whose memory may be less.
        let pages_each = if ways == 1 { PAGES_PER_PARTITION } else { 2 * PAGES_FLOOR as u64 };
        let unit = threads.saturating_mul(ways).max(1);
        let most = memory_limit / (pages_each * PAGE_BYTES.start()) / u64::from(unit);
        unit.saturating_mul(most.clamp(1, u64::from(PARTITIONS_PER_THREAD)) as u32)
    }

    /// Returns the bytes of a page: smaller where partitions have little memory.
    pub fn page_bytes(&self) -> usize {
        let wanted = self.memory_limit / u64::from(self.partitions) / PAGES_PER_PARTITION;
        let power = if wanted == 0 { 0 } else { 1 << wanted.ilog2() };
        power.clamp(*PAGE_BYTES.start(), *PAGE_BYTES.end()) as usize
    }

    /// Returns the largest `-m` with which partitions find all their items, in bytes: 32 GiB for each.
    pub fn memory_max(&self) -> u64 {
        u64::from(self.partitions) * ItemRef::PAGES_MAX as u64 * *PAGE_BYTES.end()
    }

    /// Returns the smallest `-m` with which every partition has its floor, in bytes.
    pub fn memory_min(&self) -> u64 {
        u64::from(self.partitions) * (PAGES_FLOOR * self.page_bytes()) as u64 * 2
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Memcached;

    /// None of the memory is allocated yet.
    #[test]
    fn memory_is_what_the_partitions_can_hold() {
        const GIBIBYTE: u64 = 1 << 30;
        let refusal = |partitions: u32, memory_limit: u64| {
            let refused = Memcached::new(MemcachedSettings {
                memory_limit,
                partitions,
                ..MemcachedSettings::default()
            })
            .err();
            refused.map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(refusal(1, 32 * GIBIBYTE), "");
        assert_eq!(
            refusal(1, 32 * GIBIBYTE + 1),
            "-m 32768 MiB is too much for 1 partitions, which hold 32768 MiB; use more with -o chronos_partitions"
        );
        assert_eq!(refusal(16, 512 * GIBIBYTE), "");
        assert!(refusal(16, 513 * GIBIBYTE).contains("-m 525312 MiB is too much for 16 partitions"));
        assert!(
            refusal(1024, 32 << 20)
                .contains("-m 32 MiB is too little for 1024 partitions, which need 64 MiB")
        );
    }
}
