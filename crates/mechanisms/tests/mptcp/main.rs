//! MPTCP over a small network of our own: the data sequence, its schedulers, reinjection, and the state after any loss.

mod net;
mod opening;
mod reinjection;
mod reliability;
mod scheduling;
