//! [`Task`]: something that is measured by other means than a scenario.

use std::path::Path;
use std::sync::Arc;

use plimsoll_stats::Estimate;

/// The work of a point that runs no network: a formula, the model of a server, a server.
pub trait Task: Send + Sync {
    /// Returns all that its numbers follow from, its seed as well: tasks of a figure with the same text are the same
    /// run.
    fn settings(&self) -> String;

    /// Checks that this system has all that the task needs, before anything runs.
    ///
    /// # Errors
    /// Returns the missing part, and how to get it.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Measures. A task by the wall's clock has the machine for itself, and calls `goes_on` between its parts; once
    /// that was false, the result does not count.
    ///
    /// # Errors
    /// Returns the failure in words.
    fn measure(&self, goes_on: &dyn Fn() -> bool) -> Result<Vec<Measured>, String>;
}

/// One number of a task.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// The scheme that it is of, where a task measures several in turn; none: the point's.
    pub series: Option<&'static str>,
    /// The name of the quantity.
    pub metric: String,
    /// The unit of the number.
    pub unit: String,
    /// The number, with its interval.
    pub estimate: Estimate,
    /// Whether the machine was too slow for it.
    pub suspect: bool,
}

/// The place of a task in its figure.
#[derive(Clone, Copy, Debug)]
pub struct TaskPoint<'a> {
    /// The value on the figure's x axis.
    pub x: &'a str,
    /// The scheme that the point is of.
    pub series: &'a str,
    /// Whether it is as short as a quick look has it.
    pub quick: bool,
    /// The seed that the run has.
    pub seed: u64,
    /// The folder of the servers' programs.
    pub servers: &'a Path,
}

/// Makes the task of a point; `None` where the point belongs to another scheme's task.
pub type MakeTask = Arc<dyn Fn(&TaskPoint<'_>) -> Option<Arc<dyn Task>> + Send + Sync>;

impl Measured {
    /// Returns a number of the point's own scheme, if there is one.
    pub fn own(metric: &str, unit: &str, estimate: Option<Estimate>) -> Option<Measured> {
        let (metric, unit) = (metric.to_owned(), unit.to_owned());
        Some(Measured { series: None, metric, unit, estimate: estimate?, suspect: false })
    }
}

impl TaskPoint<'_> {
    /// Returns the scheme and the place, for the text of settings.
    pub fn name(&self) -> String {
        format!("{} at {}", self.series, self.x)
    }
}

/// Returns the name of a number's ratio to that of another server: that of `latency_us_p99` to the first is
/// `p99_of_first`.
pub fn ratio_name(metric: &str, other: &str) -> String {
    let short = match metric {
        "requests_per_s" => "rate",
        "server_us_per_request" => "cost",
        latency => latency.rsplit('_').next().unwrap_or(latency),
    };
    format!("{short}_of_{other}")
}
