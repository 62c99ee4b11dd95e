//! The papers' experiments, measured beside their published values.
//!
//! ```text
//! Study::figures ──> jobs (figure, point, scheme, base) ──batch──> rows ──> table, page, SVG
//!                                        published/*.csv ──────────^
//! ```
//!
//! A figure's job is a scenario, or a task of the study's own: a formula, or the model of a server.
//!
//! The simulator does not depend on this crate, so nothing in it can know a published value.

#![forbid(unsafe_code)]

mod chronos;
mod chronos_kernel;
mod detail;
mod detail_kernel;
mod hull;
mod hull_kernel;
pub mod journal;
mod kernel;
pub mod metric;
mod ns2;
mod orderings;
pub mod page;
pub mod published;
mod qjump;
mod qjump_kernel;
pub mod row;
mod run;
pub mod study;

pub use chronos::CHRONOS;
pub use chronos_kernel::CHRONOS_KERNEL;
pub use detail::DETAIL;
pub use detail_kernel::DETAIL_KERNEL;
pub use hull::HULL;
pub use hull_kernel::HULL_KERNEL;
pub use journal::Journal;
pub use orderings::Ordering;
pub use qjump::QJUMP;
pub use qjump_kernel::QJUMP_KERNEL;
pub use row::Row;
pub use run::{Options, Part, ReproduceError, Reproduction, reproduce};
pub use study::Study;
