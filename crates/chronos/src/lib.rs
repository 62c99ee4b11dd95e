//! Chronos (SoCC 2012; dissertation, chapters 5 and 6): a server's state is split into partitions, each owned by one
//! thread at a time, and a request goes to the owner of its partition as early as it can.
//!
//! ```text
//! bytes ──> Service::parse ──> partition p ──┬─ own ──> Service::execute ──────────────┬──> replies, in order
//!           on the connection's thread       └─ another's ──> ring ──> execute ──> ring ┘
//! ```
//!
//! A server is a [`Service`]: it defines how requests are parsed, which partition each belongs to, and their effect on
//! that partition. It knows neither threads nor sockets. [`Direct`] runs it on the caller's thread without a network;
//! [`Runtime`] runs it on threads, over TCP, UDP and UNIX sockets. `docs/chronos/porting.md` explains how to port a
//! server.
//!
//! # Threads
//!
//! ```text
//!                  ┌────────────── thread 0 ──────────────┐   ring   ┌────────────── thread 1 ──────────────┐
//!  connections ──> │ driver ─> worker ─> engine ─> mail ──┼────────> │ mail ─> engine ─> worker ─> driver   │
//!  dealt in turn   │ epoll or  sessions  steering         │ <────────┼── one bounded ring a direction and   │
//!                  │ io_uring  outputs   own partitions   │          │   pair; an eventfd wakes a sleeper   │
//!                  └──────────────────────────────────────┘          └──────────────────────────────────────┘
//!  thread 0 also accepts for all and runs the balancer; UDP: each thread has a socket of its own (SO_REUSEPORT), and
//!  queues of its own at each DatagramDevice
//! ```
//!
//! * A thread has its connections and its partitions for itself. A request for an own partition is parsed out of the
//!   receive buffer and executed into the connection's output: no lock, no allocation, no atomic read-modify-write.
//! * A request for a partition of another thread is written down and sent by ring; its reply fills the hole that it
//!   left among the connection's replies. Buffers travel with messages. A thread never waits for room in a ring, so
//!   rings of one message are enough not to deadlock; connections wait instead, and are not read meanwhile.
//! * With [`Config::datagram_steering`] the kernel, or a [`DatagramDevice`] before it, delivers a datagram to the
//!   thread that owns its key's partition, so that no request crosses threads except while a partition moves.
//! * Partitions move without a lock; the dissertation keeps a mutex for that window. `steering.rs` describes the
//!   protocol and its promise: requests of a connection for one partition run once each, in their order.
//! * One thread accepts and deals connections in turn, as memcached does: with SO_REUSEPORT the kernel would draw by
//!   hash, and two of a handful of connections may share a thread while another has none.
//! * `examples/chronos-locked` runs the same service under locks, by the same sockets, to measure the gain by steering.
//!
//! # Left out
//!
//! Moving memory between NUMA nodes: partitions are built by the thread that first owns them, so their memory is near
//! it, and the balancer keeps them in its node ([`Balancing::across_nodes`]); a partition that does cross leaves its
//! memory behind.

mod backlog;
mod balancer;
mod buffers;
mod config;
mod connection;
mod datagrams;
mod device;
mod direct;
mod engine;
mod epoll;
pub mod frames;
mod kernel_steering;
mod key_hash;
mod look_ahead;
mod mail;
mod memory;
pub mod metrics;
mod mmsg;
mod nodes;
#[cfg(feature = "options")]
pub mod options;
mod output;
mod page_pool;
mod port;
mod reply_budget;
mod runtime;
mod service;
mod shared;
mod sockets;
mod sources;
mod stats;
mod steering;
#[cfg(test)]
mod steering_tests;
mod tls;
mod uring;
mod worker;

pub use backlog::Backlog;
pub use config::{AcrossNodes, Balancing, Config, IoBackend, Limits, Listen, LoadMetric, Poll, StartError};
pub use device::{
    DatagramDevice, DatagramDispatch, DeviceInfo, DeviceQueue, DeviceReceiver, DeviceSender, Dispatcher,
    OpenDevice, Rejected, ReturnAddress, Sent,
};
pub use direct::{Direct, ServedInput};
pub use key_hash::{DatagramSteering, KeyHash, PartitionId};
pub use look_ahead::Ahead;
pub use page_pool::{Page, PagePool};
pub use runtime::{RunningServer, Runtime, ServerError, Stop};
pub use service::{Now, Service, SessionTransport, Step};
pub use stats::{PartitionStats, RuntimeStats, ThreadStats};
pub use tls::{ClientVerification, Tls, TlsError, TlsFiles};

/// Compiles the code of the guide as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/chronos/porting.md")]
pub struct PortingGuide;
