//! The traffic agent: programs of the hosts, over the kernel's sockets.
//!
//! ```text
//! Plan (drawn before the run) ── a connection: client thread, server thread, reader of answers ──> Done
//! Workload (reacts to what arrives) ── a thread for all of its hosts: Driver ──> Records
//! ```
//!
//! Requests are written when the plan says so, whatever is still under way before them. Both ends know the plan, so
//! nothing but the messages' own bytes travels.

mod datagrams;
pub(crate) mod driver;
mod pace;
mod pipes;
pub(crate) mod plan;
mod run;
mod sockets;

pub(crate) use driver::{Place, Records};
pub(crate) use pace::Shares;
pub(crate) use run::{Agents, Counts, Done, Settings};
