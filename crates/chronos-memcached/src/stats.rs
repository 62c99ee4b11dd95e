//! Counters, and the reports that `stats` makes of them.
//!
//! Each partition counts for itself; `stats` goes to all of them and `report` adds up their answers. Counters that
//! belong to no partition are in [`Shared`], and [`Published`] is for metrics, which ask no partition.

mod prefixes;
mod published;
mod report;
mod roster;
mod sink;

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
use std::sync::{Arc, OnceLock};

use plimsoll_chronos::RuntimeStats;

pub use roster::{Roster, RosterSocket, SocketState};

use crate::counters::ClassCounts;
pub use crate::counters::Counters;
pub use prefixes::{Prefixed, Prefixes};
pub use published::{PublishedCounts, Shown};
pub use report::{detail, general, items, settings, slabs};
pub use sink::ReportSink;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The version of memcached whose replies this server reproduces.
pub const VERSION: &str = "1.6.18";

/// The report that `stats` asks for; it travels in a request's mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Report {
    /// The report of `stats` without an argument.
    General,
    /// The report of `stats items`.
    Items,
    /// The report of `stats slabs`.
    Slabs,
    /// The report of `stats detail dump`.
    Detail,
}

impl Report {
    /// Returns the report that travelled as `mode`.
    pub fn from_mode(mode: u8) -> Report {
        match mode {
            1 => Report::Items,
            2 => Report::Slabs,
            3 => Report::Detail,
            _ => Report::General,
        }
    }
}

/// The state that all threads share: changed rarely, and read by `stats`.
#[derive(Debug, Default)]
pub struct Shared {
    /// The number of open connections.
    pub connections: AtomicU64,
    /// The number of connections since the start.
    pub connections_total: AtomicU64,
    /// The number of bytes of requests.
    pub bytes_read: AtomicU64,
    /// The number of attempts to log in.
    pub auth_commands: AtomicU64,
    /// The number of these that were rejected.
    pub auth_errors: AtomicU64,
    /// Values refused for their size.
    pub too_large: AtomicU64,
    /// True while `stats detail` is on.
    pub detail: AtomicBool,
    /// The function that the shutdown command calls.
    pub shutdown: OnceLock<fn(bool)>,
    /// Reads the certificates again; none without TLS.
    pub certificates: OnceLock<Certificates>,
    /// The counters of the runtime, once it runs.
    pub runtime: OnceLock<Arc<RuntimeStats>>,
    /// The list of open sockets.
    pub roster: Roster,
    /// The level set by `verbosity`.
    pub verbosity: AtomicU32,
    /// `lru_crawler enable`: whether idle threads look for expired items.
    pub crawler: AtomicBool,
    /// `lru_crawler sleep` and `tocrawl`, which are shown in `stats settings` and change nothing.
    pub crawler_sleep: AtomicU32,
    /// A setting that is reported, as `crawler_sleep` is.
    pub crawler_items: AtomicU32,
    /// `slabs automove`, which is shown in `stats settings` and changes nothing.
    pub automove: AtomicU32,
}

/// The function of the command `refresh_certs`, and the time of its last success.
pub struct Certificates {
    /// Reads the certificates, or returns the error.
    pub read: Box<dyn Fn() -> Result<(), String> + Send + Sync>,
    /// Seconds after the server's start when they were read last.
    pub read_at: AtomicU32,
}

impl std::fmt::Debug for Certificates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Certificates {{ read_at: {:?} }}", self.read_at)
    }
}

/// The sizes of one partition, and the counts of its classes: the other half of a general report.
#[derive(Clone, Copy, Default, Debug, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
pub struct Gauges {
    /// The number of items that the partition holds.
    pub items: u64,
    /// The number of items that were ever stored.
    pub items_total: u64,
    /// The bytes of the items.
    pub bytes: u64,
    /// The bytes of the index.
    pub index_bytes: u64,
    /// Sweeps for expired items that have begun.
    pub sweeps: u64,
    /// Partitions with a sweep under way, or about to begin.
    pub sweeping: u64,
    /// Pages that moved from one class to another.
    pub pages_moved: u64,
    /// The counts of all classes.
    pub counts: ClassCounts,
}

/// Adds `part`, which is the bytes of a `T` made of 64-bit numbers, to `sum`.
pub fn add<T: FromBytes + IntoBytes + Immutable>(sum: &mut T, part: &[u8]) {
    for (place, more) in sum.as_mut_bytes().chunks_exact_mut(8).zip(part.chunks_exact(8)) {
        let number =
            u64::read_from_bytes(place).expect("8 bytes") + u64::read_from_bytes(more).expect("8 bytes");
        place.copy_from_slice(&number.to_ne_bytes());
    }
}
