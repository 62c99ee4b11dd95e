//! Jobs: operations with dependencies, over any transport.
//!
//! ```text
//! collective, GOAL file, ... ──> GraphBuilder ──> JobGraph ──> JobSource ──Actions──> transport, network
//!                                                                  ^── messages that have arrived ──┘
//! ```
//!
//! A job has ranks, each on a host of its own. A rank carries out its operations (send, receive, compute) as soon as
//! those are done for which they wait, and it has a stream and a NIC for them.

mod accounts;
pub mod astra;
pub mod chakra;
pub mod costs;
mod counterparts;
mod critical_path;
mod engine;
pub mod goal;
pub mod goal_binary;
pub mod graph;
mod ideal;
mod matching;
pub(crate) mod matrix;
pub mod placement;
pub mod repeat;
mod resources;
mod rounds;
pub mod run;
pub mod schedule;
pub(crate) mod size;
#[cfg(test)]
mod tests;
