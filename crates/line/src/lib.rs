//! The load line: the highest load at which every objective is met.
//!
//! ```text
//! LineQuestion, Scenario ──> AskedLine (objectives, load) ──> one Search a variant
//! Search ──Ask (load, replicate)──> drive: models with common seeds, without those in the journal ──> Bench
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
mod pace;
pub mod page;
pub mod question;
mod reach;
pub mod search;
mod smaller;
pub mod so_far;
mod text;

pub use drive::{LineTrial, Room, SearchNews, SearchStop, SearchWatch, affordable, draw, trials};
pub use lines::Lines;
pub use over::Over;
pub use plimsoll_experiment::Slo;
pub use question::{AskedLine, LineQuestion};
pub use search::ExpectedLines;
pub use smaller::Smaller;
pub use so_far::SoFar;
