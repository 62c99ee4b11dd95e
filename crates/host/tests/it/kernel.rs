//! Applies policies to veth pairs in namespaces of their own: a rollback restores the host after an apply that ended at
//! any step. The tests need root and iproute2, and are skipped elsewhere with the reason.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod change;
mod counts;
mod crash;
mod exact;
mod others;
mod pacer;
mod snapshot;
mod sockets;
mod world;
