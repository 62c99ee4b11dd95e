//! A queueing model of one server: threads, queues, locks, partitions and Chronos's load balancer, and its clients.
//!
//! ```text
//! clients ──network──> classification ──delivery──> queue ──> thread: system, [lock: application] ──> NIC ──> clients
//!                      (partition → owner)           │                                                │
//!                             ^                      └── shared by a process, of a connection, or     └─ one line
//!                             └── owners, each epoch: `Balance`, the code of the real runtime    of the owning thread
//! ```
//!
//! After the latency characterisation and the design of Chronos (Kapoor, dissertation, 2015, chapters 5 and 6; SoCC
//! 2012). The costs of a request are given ([`Costs`]); the waiting times are results: for a thread, for a lock, for
//! the NIC's line. [`run`] is a pure function of the model and the seed: time is in picoseconds, a request draws from a
//! stream keyed by its number, so that the same request meets every design, and ties between events are broken by the
//! engine's rule.
//!
//! Departures from the machine: a request is classified when it enters its queue, after the delivery, not before; the
//! threads are never taken off their cores, except by a [`Neighbour`]; system time is spent before the lock, and all
//! at once, where a real request spends some of it on its answer; a reader that gets a lock after a wait is woken like
//! a writer.

mod arrivals;
mod keys;
mod lock;
mod machine;
mod model;
mod neighbour;
mod outcome;
mod spacing;
mod steering;

use plimsoll_mechanisms::InvalidParam;

pub use arrivals::ServerArrivals;
pub use keys::{KeyPopularity, Keys};
pub use lock::Locking;
pub use model::{Costs, Dispatch, MemoryPlacement, Numa, ServerModel, Steering, THREADS_MAX};
pub use neighbour::{EvictedLines, Neighbour, ProcessorShare};
pub use outcome::{LockCounts, Served, ServerOutcome};
pub use spacing::Spacing;

/// Serves `model.requests` requests.
///
/// # Errors
/// If a value does not fit; the error names the allowed ones.
///
/// # Panics
/// If the parts of a latency do not sum to it: a defect of the simulator.
pub fn run(model: &ServerModel, seed: u64) -> Result<ServerOutcome, InvalidParam> {
    model.check()?;
    Ok(machine::ServerMachine::new(model, seed).run())
}

#[cfg(test)]
mod tests;
