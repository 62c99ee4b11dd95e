//! [`QueueFigure`]: a queue over time, made of the runs of another figure.

use std::collections::BTreeMap;

use plimsoll_results::outcome::Outcome;
use plimsoll_results::stats::Estimate;
use serde::Deserialize;

use crate::row::StudyRow;

/// The mean of a watched queue in each of its intervals; x is its beginning in us.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct QueueFigure {
    /// The name of the figure whose runs are shown.
    pub of: String,
    /// The name of the queue (`observe.queue.NAME`).
    pub queue: String,
    /// The runs' schemes, and their names on this figure; the others are not shown.
    pub series: BTreeMap<String, String>,
}

impl QueueFigure {
    /// The metric of the rows.
    pub const METRIC: &str = "queue_kb";

    /// Returns the rows that a run gives, in kB.
    pub(crate) fn rows(&self, figure: &str, base: &str, scheme: &str, outcome: &Outcome) -> Vec<StudyRow> {
        let Some(series) = self.series.get(scheme) else { return Vec::new() };
        let Some(queue) = outcome.queues.iter().find(|queue| queue.name == self.queue) else {
            return Vec::new();
        };
        let row = |(interval, bytes): (usize, &f64)| {
            let begins = queue.from.as_secs_f64() * 1e6 + interval as f64 * queue.every.as_us_f64();
            let x = format!("{}", (begins * 1e3).round() / 1e3);
            let mut row = StudyRow::new(figure, base, series, &x, QueueFigure::METRIC, "KB");
            row.set_measured(&Estimate::bare(bytes / 1e3, 1));
            row
        };
        queue.mean_bytes.iter().enumerate().map(row).collect()
    }
}
