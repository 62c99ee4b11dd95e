//! Chronos (SoCC 2012; Kapoor's dissertation, chapters 4 to 6) on this machine: chronos-memcached and chronos-openflow
//! beside memcached and ovs-testcontroller, under `plimsoll-chronos-load`.
//!
//! ```text
//! figures ──> Turns, Controllers, WakeUp (tasks: servers that take turns) ──> rows `kernel` ──> model ──> rows `simulated`
//!               └── plan: what they are made of, as text                        └── claims: beside what is published
//! ```
//!
//! Servers of one point run at once and are asked one after the other, each other round in the other order; a number
//! is the median of the rounds, and a ratio the median of the rounds' ratios. The model of a server is told what `given` says
//! of this machine, and nothing else.

mod claims;
#[cfg(target_os = "linux")]
mod controllers;
mod explain;
mod figures;
mod model;
mod plan;
#[cfg(target_os = "linux")]
mod rounds;
mod tasks;
mod text;
#[cfg(target_os = "linux")]
mod turns;
#[cfg(target_os = "linux")]
mod wake_up;

use crate::study::Study;

/// The study.
pub static CHRONOS_KERNEL: Study = Study {
    id: "chronos-kernel",
    command: "chronos --on kernel",
    figures: figures::figures,
    summary: |rows| {
        let model = model::rows(rows);
        let claims = claims::rows(&[rows, &model].concat());
        [model, claims].concat()
    },
    unordered: &["given", "claims", "table6.1"],
    drawn: figures::drawn,
    tables: &[("claims", "Beside what is published")],
    explanations: explain::EXPLANATIONS,
    head: text::HEAD,
    reading: text::READING,
    closing: text::CLOSING,
    ..Study::ON_KERNEL
};
