//! The papers' experiments, measured beside their published values.
//!
//! ```text
//! studies/ID/study.toml ──study_file──> Study ──> jobs: figure, point, scheme, base
//!           published.csv                 ^                    │ run: batch of scenarios, tasks of the registry
//!           head.md, reading.md ..        │                    v
//! scenarios/ID/*.toml ────────────────────┘                 journal ──> rows, judged ──> page, SVG
//! ```
//!
//! A study is data: a figure is an entry of `study.toml` with its values in `published.csv`. A figure's job is a
//! scenario, or a task with parameters: a model of `models`, or real servers of `plimsoll-servers`. Rows that follow
//! from others are claims, by expressions.
//!
//! The simulator does not depend on this crate, so nothing in it can know a published value.

#![forbid(unsafe_code)]

mod brief;
mod by_rank;
mod claim;
mod computed;
mod derived;
mod distribution;
mod error;
mod exact;
mod expression;
mod functions;
pub mod journal;
mod kernel;
pub mod ledger;
mod machine_model;
pub mod metric;
mod models;
mod ns2;
mod options;
mod orderings;
mod outcomes;
pub mod page;
pub mod published;
mod queue_in_time;
mod registry;
pub mod row;
pub mod row_filter;
mod run;
mod simulated;
mod single_run;
pub mod sources;
mod studies;
pub mod study;
mod study_file;
mod timeline;
mod words;

pub use brief::in_brief;
pub use error::ReproduceError;
pub use journal::Journal;
pub use ledger::Ledger;
pub use options::{Options, Part};
pub use orderings::Ordering;
pub use row::{RowState, StudyRow};
pub use run::{ProgramBuild, Replay, Reproduction, keep, replay, reproduce};
pub use studies::{every, find, study};
pub use study::{Base, Study};
