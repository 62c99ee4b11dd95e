//! The forms of a result: a table on a terminal, a page that needs no network, a figure.
//!
//! [`table`] is what `plimsoll run` prints, with the sentences of [`verdict`]; [`html`] is `report.html`. [`plots`]
//! turns an experiment into [`chart`]s, and [`svg`] draws every chart, for the report and for documentation.

pub mod chart;
pub mod circuits;
mod escape;
pub mod figures;
pub mod html;
pub mod plots;
mod processors;
pub mod queues;
pub mod svg;
pub mod table;
pub mod verdict;

pub use table::{Format, Style};
