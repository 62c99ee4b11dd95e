//! [`PercentileFigure`]: a figure by percentile, made of the runs of another figure.

use std::collections::BTreeMap;

use plimsoll_experiment::Measure;
use plimsoll_results::outcome::Outcome;
use plimsoll_results::stats::{Samples, Statistic};
use plimsoll_units::Span;
use serde::Deserialize;

use crate::row::StudyRow;

/// A distribution of what another figure's runs measured.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct PercentileFigure {
    /// The name of the figure whose runs are measured.
    pub of: String,
    /// A measure of the samples that are distributed.
    pub(crate) samples: Measure,
    /// The name of the metric in the rows.
    pub metric: String,
    /// The unit of the rows.
    pub unit: String,
    /// The percentiles, which are the x axis.
    pub percentiles: Vec<String>,
    /// The runs' schemes, and their names on this figure; the others are not shown.
    pub series: BTreeMap<String, String>,
}

impl PercentileFigure {
    /// Returns the rows that a run gives.
    pub(crate) fn rows(&self, figure: &str, base: &str, scheme: &str, outcome: &Outcome) -> Vec<StudyRow> {
        let Some(series) = self.series.get(scheme) else { return Vec::new() };
        let samples = Samples::new(vec![self.samples.samples(outcome, Span::ZERO)]);
        let row = |x: &String| {
            let percent: f64 = x.parse().ok()?;
            let mut row = StudyRow::new(figure, base, series, x, &self.metric, &self.unit);
            row.set_measured(&samples.estimate(Statistic::Percentile(percent / 100.0))?);
            Some(row)
        };
        self.percentiles.iter().filter_map(row).collect()
    }
}
