//! The load line: the highest load at which every objective is met.
//!
//! ```text
//! Scenario, objectives ──> Over (which load) ──> one Search a variant
//! Search ──Ask (load, replicate)──> drive: models with common seeds ──> sim::batch on all cores
//! Outcome ──> Run (a few numbers an objective) ──> journal ──> Search
//! Search ──Run by Run──> verdict at each load (interval over replicates) ──> bracket, bisection ──> Line
//! Lines ──> table, JSON, CSV, Markdown, report.html
//! ```
//!
//! [`measure`] has the rule by which a load is judged, [`search`] the one by which loads are chosen.

#![forbid(unsafe_code)]

pub mod drive;
mod journal;
pub mod lines;
pub mod measure;
pub mod over;
pub mod pace;
pub mod page;
mod reach;
pub mod search;
pub mod slo;
mod text;

pub use drive::{Options, Round, Stopped, Watch, draw};
pub use lines::Lines;
pub use over::Over;
pub use slo::Slo;
