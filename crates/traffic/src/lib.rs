//! Workloads: their parameters, their checks, the load they offer, and the sources that generate the traffic.
//!
//! ```text
//! [workload.NAME] ──> Workload (registry) ──Kind::check──> findings, demand
//!                          └──Kind::source──> Source ──Actions──> transport, network
//! ```
//!
//! Each kind of workload is one file, which holds its parameters, implements [`Kind`] for them, and has its
//! [`Source`]; the table at the end of this file lists it. A source draws what a request needs (gap, size, server,
//! service time) from streams keyed by its own name and the request's index, never by time or variant: the same
//! request meets every variant. Sources are sans-IO: the simulator drives them by its events, an emulated run by the
//! wall's clock and the kernel's sockets.

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
pub mod kind;
mod one_way;
pub mod record;
mod registry;
mod requests;
mod slab;
pub mod source;
#[cfg(test)]
mod testing;
mod traffic;

pub use kind::Kind;
pub use source::{Actions, Arrival, ConnectionEnd, Datagram, Hint, Opened, Reach, Source, Write};
pub use traffic::{Traffic, TrafficSpec, WorkloadSpec};

pub mod all_to_all;
pub mod barrier;
pub mod closed_loop;
pub mod commit;
pub mod fan_out;
pub mod file_service;
pub mod flow_list;
pub mod flows;
pub mod hstride;
pub mod incast;
pub mod packets;
pub mod pages;
pub mod permutation;
pub mod ping;
pub mod pstride;
pub mod ptp;
pub mod rpc;
pub mod shuffle;
pub mod stride;
pub mod transfer;

registry::workloads! {
    Flows "flows" (flow) in flows;
    Rpc "rpc" in rpc;
    Transfer "transfer" in transfer;
    FanOut "fan-out" in fan_out;
    AllToAll "all-to-all" (flow) in all_to_all;
    Permutation "permutation" (flow) in permutation;
    Incast "incast" (flow) in incast;
    FlowList "flow-list" (flow) in flow_list;
    Packets "packets" (flow) in packets;
    Ping "ping" in ping;
    ClosedLoop "closed-loop" in closed_loop;
    Shuffle "shuffle" in shuffle;
    Barrier "barrier" in barrier;
    Commit "commit" in commit;
    Pages "pages" in pages;
    Ptp "ptp" in ptp;
    Stride "stride" (flow) in stride;
    Pstride "pstride" (flow) in pstride;
    Hstride "hstride" (flow) in hstride;
    FileService "file-service" in file_service;
}
