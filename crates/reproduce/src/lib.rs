//! The papers' experiments, measured beside their published values.
//!
//! ```text
//! hull::figures ──> jobs (figure, point, scheme, base) ──batch──> rows ──> table, page, SVG
//!                                        published/*.csv ──────────^
//! ```
//!
//! The simulator does not depend on this crate, so nothing in it can know a published value.

#![forbid(unsafe_code)]

pub mod hull;
pub mod metric;
pub mod page;
pub mod published;
pub mod row;

pub use hull::run::{Options, ReproduceError, Reproduction, reproduce};
pub use row::Row;
