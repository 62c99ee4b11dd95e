//! What results look like: a table on a terminal, a page that needs no network, a figure.
//!
//! [`table`] is what `plimsoll run` prints; [`verdict`] is its sentences.

pub mod figures;
pub mod table;
pub mod verdict;

pub use table::{Format, Style};
