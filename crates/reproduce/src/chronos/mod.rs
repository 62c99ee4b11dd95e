//! Chronos (SoCC 2012; Kapoor's dissertation, chapters 4 to 6), simulated: tail models, memcached's queues and locks,
//! and steering, drawn by the model of a server for 1 to 64 threads.
//!
//! `source` is what the paper has: a mutex for every partition; `standard` hands partitions over as this project's
//! runtime does, where nobody takes a lock.

mod assumed;
mod claims;
mod evaluation;
mod explain;
mod figures;
mod tasks;
mod testbed;
mod text;

pub(crate) use figures::{MakeTask, figure as task_figure, number, of_kind};
pub(crate) use tasks::{Gauge, P50, P99};
pub(crate) use testbed::{constant, lognormal};

use crate::study::{Base, Study};

/// The study.
pub static CHRONOS: Study = Study {
    id: "chronos",
    command: "chronos",
    bases: [Base::Source, Base::Standard],
    scenarios: &[],
    scenario_text: None,
    figures: figures::figures,
    also: |_, _, _, _, _| Vec::new(),
    exact: |_, _| Ok(claims::exact()),
    summary: claims::rows,
    unordered: &["oracles", "claims", "table5.1", "lock"],
    other_seeds: 0,
    drawn: figures::drawn,
    tables: &[("claims", "What the text says"), ("oracles", "Exact values")],
    has_original: false,
    explanations: explain::EXPLANATIONS,
    open: explain::OPEN,
    head: text::HEAD,
    reading: text::READING,
    closing: text::CLOSING,
    orderings: text::ORDERINGS,
};
