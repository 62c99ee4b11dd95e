//! Chronos (SoCC 2012; Kapoor's dissertation, chapters 4 to 6) on this machine: chronos-memcached and chronos-openflow
//! beside memcached and ovs-testcontroller, under `plimsoll-chronos-load`.
//!
//! ```text
//! points ──> Turns, Controllers, WakeUp ──> rows `kernel` ──> model ──> rows `simulated`
//!            (servers that take turns)                          └── claims: beside what is published
//!               └── plan: what they are made of, as text
//! ```
//!
//! Servers of one point run at once and are asked one after the other, each other round in the other order; a number
//! is the median of the rounds, and a ratio the median of the rounds' ratios. The model of a server has from this
//! machine what `given` measures, and nothing else.

mod claims;
#[cfg(target_os = "linux")]
mod controllers;
mod copies;
mod model;
pub(crate) mod plan;
mod points;
#[cfg(target_os = "linux")]
pub(crate) mod rounds;
mod tasks;
#[cfg(target_os = "linux")]
pub(crate) mod turns;
#[cfg(target_os = "linux")]
pub(crate) mod veth;
#[cfg(target_os = "linux")]
mod wake_up;

pub(crate) use points::TASKS;

use crate::row::Row;
use crate::study::Study;

/// Computes what the model makes of this machine, and what is published as a ratio.
pub(crate) fn summary(study: &Study, rows: &[Row]) -> Vec<Row> {
    let model = model::rows(rows);
    let claims = claims::rows(study, &[rows, &model].concat());
    [model, claims].concat()
}
