//! The forms of a result: a table on a terminal, a page that needs no network, a figure.
//!
//! [`table`] is what `plimsoll run` prints, with the sentences of [`verdict`]; [`html`] is `report.html`. [`plots`]
//! turns an experiment into [`chart`]s, and [`svg`] draws every chart, for the report and for documentation.
//! [`bursts`], [`breakdown`], [`schedules`] and [`models`] show the results of analyses without runs.

mod approximation;
#[cfg(target_os = "linux")]
pub mod breakdown;
pub mod bursts;
pub mod chart;
pub mod circuits;
mod escape;
pub mod figures;
mod findings;
pub mod html;
mod jobs;
pub mod models;
pub mod plots;
mod priorities;
mod processors;
pub mod queues;
pub mod schedules;
pub mod svg;
pub mod table;
pub mod verdict;

pub use findings::{Findings, FindingsPage};
pub use table::{Format, TableStyle};
