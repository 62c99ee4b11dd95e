//! Which mechanism raises a network's load line, and how it is turned on.
//!
//! ```text
//! Scenario ──> AdviseBase + candidates (data) ──> one scenario, a variant each ──> PreparedAdvice
//! PreparedAdvice ──trials: few short runs, one load, common seeds──> the clearly worse are dropped ──> survivors
//! survivors ──line::draw──> lines ──two keys of the best──line::draw──> Advice (ranking, costs, what is not known)
//! Advice ──> table, JSON, CSV, Markdown;  templates + settings of the best ──> policy, switch settings, scenario
//! ```
//!
//! All runs are kept in the journal of the search, so that a stopped one resumes. The crate reads no clock: its
//! [`AdviseWatch`] knows how much of a budget is spent.

#![forbid(unsafe_code)]

mod advice;
mod apply;
mod candidates;
mod prepare;
mod search;
mod text;
mod trials;
mod variants;

pub use advice::{Advice, CandidateCost, RankedCandidate, State};
pub use apply::CandidateFiles;
pub use candidates::{Have, UnknownCapability, capabilities};
pub use prepare::{AdviseError, AdviseQuestion, PreparedAdvice, prepare};
pub use search::{AdviseWatch, advise};
pub use variants::BASE;
