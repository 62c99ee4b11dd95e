//! The traffic agent: programs of the hosts, over the kernel's sockets.
//!
//! ```text
//! Plan (drawn before the run) ── a connection: client thread, server thread, reader of answers ──> Done
//! ```
//!
//! Requests are written when the plan says so, whatever is still under way before them. Both ends know the plan, so
//! nothing but the messages' own bytes travels.

pub(crate) mod plan;
mod run;

pub(crate) use run::{Agents, Counts, Done, Settings};
