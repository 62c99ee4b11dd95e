//! A memcached on Chronos: memcached's protocols, flags and answers, on partitions that one thread owns at a time.
//!
//! ```text
//!            ┌─ text ──┐
//! bytes ──> parse: ├─ meta ──┼──> Request (verb, key, hash) ──> Partition ──> store ──> answer in the request's words
//!            └─ binary ┘              │                          index + arena
//!                                     └─ everywhere: flush_all, stats ──> merge
//! ```
//!
//! [`Memcached`] is a [`plimsoll_chronos::Service`]: it knows neither threads nor sockets. The replies of memcached 1.6
//! are the reference, byte for byte, errors included; `tests/it/differential` compares. Deliberate departures:
//!
//! * A cas value is unique and grows for each key, but with several partitions not over all keys: partition p of P
//!   counts p + 1, p + 1 + P, ... With one partition the values are memcached's.
//! * Eviction is a clock with memcached's rule for active items, not three lists (`store/arena.rs`).
//! * A reply in datagrams is one sequence (`plimsoll_chronos::frames`).
//! * Commands that control memcached's own threads (`lru`, `lru_crawler`, `slabs`, `watch`, `extstore`) answer ERROR.

mod auth;
mod binary;
mod clock;
mod counters;
mod files;
mod journal;
mod memory_file;
mod meta;
mod options;
mod partition;
mod process;
pub mod program;
mod request;
mod server;
mod service;
mod session;
mod settings;
pub mod stats;
mod store;
mod text;

pub use auth::{Credentials, CredentialsError};
pub use clock::Clock;
pub use partition::Partition;
pub use request::{Bits, ReplyStyle, Request, Verb};
pub use server::{Memcached, SettingsError};
pub use session::{Protocol, Session};
pub use settings::{GROWTH_FACTOR, MemcachedSettings, PARTITIONS_PER_THREAD, REQUESTS_PER_TURN};
pub use store::{ItemState, Lookup};
