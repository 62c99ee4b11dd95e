//! Workloads: their parameters, their checks, the load they offer, and the sources that generate the traffic.
//!
//! ```text
//! [workload.NAME] ──> Workload (registry) ──Kind::check──> findings, demand
//!                          └──Kind::source──> Source ──Actions──> transport, network
//! ```
//!
//! Each kind of workload is one file, which holds its parameters, implements [`Kind`] for them, and has its [`Source`];
//! the table in `kinds.rs` lists it. A source draws the properties of a request (gap, size, server, service
//! time) from streams keyed by its own name and the request's index, never by time or variant: the same request meets
//! every variant. Sources are sans-IO: the simulator drives them by its events, an emulated run by the wall's clock and
//! the kernel's sockets.

#![forbid(unsafe_code)]

pub mod arrivals;
pub mod cdf;
pub mod check;
pub mod clock_servo;
pub mod distribution;
mod draw;
mod exchange;
pub mod facts;
pub mod hdr;
pub mod hosts;
pub mod jobs;
pub mod kind;
pub mod kinds;
mod listed;
mod one_way;
pub mod record;
mod registry;
mod requests;
mod slab;
pub mod source;
#[cfg(test)]
mod testing;
mod traffic;
pub mod weights;

pub use kind::Kind;
pub use kinds::*;
pub use source::{
    Actions, Arrival, ConnectionEnd, Datagram, Hint, MessageWaits, Opened, Source, SourceReach, Write,
};
pub use traffic::{Traffic, TrafficSpec, WorkloadSpec};
