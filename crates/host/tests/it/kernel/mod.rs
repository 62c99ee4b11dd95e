//! Policies on veth pairs in namespaces of their own: what an apply changes, a rollback takes back, wherever the apply
//! was ended. Needs root and iproute2; skips with the reason elsewhere.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod counts;
mod crash;
mod exact;
mod others;
mod pacer;
mod snapshot;
mod sockets;
mod world;
