//! What `studies/chronos` runs: tail models, memcached's queues and locks, and steering, drawn by the model of a server
//! for 1 to 64 threads.

mod assumed;
mod copies;
mod evaluation;
mod normal_law;
mod points;
mod tasks;
mod testbed;

pub(crate) use normal_law::normal_law;
pub(crate) use points::TASKS;
pub(crate) use tasks::{Gauge, P50, P99};
pub(crate) use testbed::{constant, lognormal, number};
