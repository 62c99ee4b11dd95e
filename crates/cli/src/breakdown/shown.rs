//! [`Shown`]: everything that the tables, the page and the timeline show.

use plimsoll_breakdown::{Lock, ProfileReport, Report, Target};
use plimsoll_units::Rate;

use super::cost::Cost;

/// A report with what else is known about the run.
pub(super) struct Shown {
    pub(super) report: Report,
    pub(super) target: Target,
    /// The rate of the link, where it is known.
    pub(super) rate: Option<Rate>,
    pub(super) sample: u32,
    /// The share of the time in which requests were traced.
    pub(super) duty: f64,
    pub(super) lost_records: u64,
    pub(super) records: u64,
    /// The futexes at which the server's threads slept longest.
    pub(super) locks: Vec<Lock>,
    /// The functions that the processors ran for the server, or why they are not known.
    pub(super) profile: Result<ProfileReport, String>,
    /// What tracing cost, where that was measured.
    pub(super) cost: Option<Cost>,
    /// Why tracing ended early.
    pub(super) ended: Option<String>,
}
