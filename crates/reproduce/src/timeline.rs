//! [`TimelineFigure`]: a figure over time, made of the runs of another figure.

use std::collections::BTreeMap;

use plimsoll_results::outcome::Outcome;
use plimsoll_results::stats::Estimate;
use plimsoll_units::Span;
use serde::Deserialize;

use crate::row::StudyRow;

/// The observations of a workload of another figure's runs over time, such as the offsets of clocks.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct TimelineFigure {
    /// The name of the figure whose runs are shown.
    pub of: String,
    /// The name of the workload whose observations are shown.
    pub workload: String,
    /// Each row is the largest value of so long an interval; its x is the interval's end in seconds.
    pub every: Span,
    /// The name of the metric in the rows.
    pub metric: String,
    /// The runs' schemes, and their names on this figure; the others are not shown.
    pub series: BTreeMap<String, String>,
}

impl TimelineFigure {
    /// Returns the rows that a run gives, in us.
    pub(crate) fn rows(&self, figure: &str, base: &str, scheme: &str, outcome: &Outcome) -> Vec<StudyRow> {
        let Some(series) = self.series.get(scheme) else { return Vec::new() };
        let workload = outcome.workloads.iter().position(|info| info.name == self.workload);
        let mut intervals: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        for one in outcome.observations.iter().filter(|one| Some(usize::from(one.workload)) == workload) {
            let interval = one.begun.as_ps() / self.every.as_ps();
            intervals.entry(interval).or_default().push(one.value.as_us_f64());
        }
        let row = |(interval, values): (u64, Vec<f64>)| {
            let x = (self.every * (interval + 1)).as_secs_f64().to_string();
            let mut row = StudyRow::new(figure, base, series, &x, &self.metric, "us");
            let largest = values.iter().copied().fold(0.0, f64::max);
            row.set_measured(&Estimate::bare(largest, values.len() as u64));
            row
        };
        intervals.into_iter().map(row).collect()
    }
}
