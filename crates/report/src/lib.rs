//! What results look like: a table on a terminal, a page that needs no network, a figure.
//!
//! [`table`] is what `plimsoll run` prints and [`verdict`] its sentences; [`html`] is `report.html`;
//! [`svg`] draws figures for documentation. [`plots`] says what the figures of an experiment show;
//! [`chart`] is the form in which both hands that draw them take it.

pub mod chart;
pub mod figures;
pub mod html;
pub mod plots;
pub mod svg;
pub mod table;
pub mod verdict;

pub use table::{Format, Style};
