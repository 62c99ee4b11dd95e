//! MPTCP over a small network of our own: the data sequence, its schedulers, reinjection, and what any loss leaves.

mod net;
mod opening;
mod reinjection;
mod reliability;
mod scheduling;
