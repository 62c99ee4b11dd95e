//! A load generator that measures from the time at which a request should have been sent.
//!
//! ```text
//!  Setup, Phase ──> Generator (no clock, no socket) <──> drive (sockets, clock) <──> servers
//!                       └──> Book ──> Report ──> table, JSON, HDR
//! ```
//! The requests are a pure function of the seed ([`setup`], [`draws`]), and the counts one of the arrival times of
//! bytes ([`generator`]). Only [`drive`] and [`phase`] read a clock. `docs/chronos/load.md` is the user's guide.

pub mod arrivals;
pub mod bench;
pub mod book;
pub mod commands;
pub mod compare;
pub mod draws;
pub mod drive;
pub mod endpoint;
pub mod generator;
pub mod keys;
pub mod link;
pub mod neighbour;
pub mod openflow;
pub mod options;
pub mod phase;
pub mod placement;
pub mod process;
pub mod protocol;
pub mod report;
pub mod setup;
pub mod values;
pub mod wake_up;
