//! A load generator that measures from the time at which a request should have been sent.
//!
//! ```text
//!  Setup, Phase ──> Generator (no clock, no socket) <──> drive (sockets, clock) <──> servers
//!                       └──> Book ──> Report ──> table, JSON, HDR
//!                             └──> rounds at rate after rate (line) ──> the highest rate that meets an objective
//! ```
//! The requests are a pure function of the seed ([`setup`], [`draws`]), and the counts one of the arrival times of
//! bytes ([`generator`]). Only [`drive`] and [`phase`] read a clock. [`agent`] has other machines
//! send a share of the load. `docs/chronos/load.md` is the user's guide.

pub mod agent;
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
pub mod line;
pub mod link;
pub mod neighbour;
pub mod objective;
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
