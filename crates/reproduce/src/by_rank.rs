//! [`RankFigure`]: the slowdown of flows by the rank of their size, made of the runs of another figure.

use std::collections::BTreeMap;

use plimsoll_experiment::Measure;
use plimsoll_results::outcome::Outcome;
use plimsoll_units::Span;
use serde::Deserialize;

use crate::row::StudyRow;

/// Percentiles of the slowdown in ranges of rank, as HPCC's authors show them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RankFigure {
    /// The name of the figure whose runs are measured; it has one point.
    pub of: String,
    /// The workload of the flows.
    pub workload: String,
    /// The middles of the ranges of rank, which are the x axis, as shares of all flows: 0 for the smallest flow.
    pub xs: Vec<String>,
    /// The width of each range, as a share of all flows.
    pub width: f64,
    /// The runs' schemes, and their names on this figure; the others are not shown.
    pub series: BTreeMap<String, String>,
}

impl RankFigure {
    /// The metrics of the rows, with the aggregates that they are.
    pub const METRICS: [(&str, &str); 3] =
        [("fct_slowdown_p50", "p50"), ("fct_slowdown_p95", "p95"), ("fct_slowdown_p99", "p99")];

    /// Returns the rows that a run gives; those of ranges beyond all flows, and without a flow, are missing.
    pub(crate) fn rows(&self, figure: &str, base: &str, scheme: &str, outcome: &Outcome) -> Vec<StudyRow> {
        let Some(series) = self.series.get(scheme) else { return Vec::new() };
        let mut rows = Vec::new();
        for x in &self.xs {
            for (metric, aggregate) in RankFigure::METRICS {
                let Some(estimate) =
                    self.measure(x, aggregate).and_then(|measure| measure.estimate(outcome, Span::ZERO))
                else {
                    continue;
                };
                let mut row = StudyRow::new(figure, base, series, x, metric, "x");
                row.set_measured(&estimate);
                rows.push(row);
            }
        }
        rows
    }

    /// Returns the measure of an aggregate in the range around `middle`; `None` if that is no range of rank.
    fn measure(&self, middle: &str, aggregate: &str) -> Option<Measure> {
        let middle: f64 = middle.parse().ok()?;
        let (from, to) = (100.0 * (middle - self.width / 2.0), 100.0 * (middle + self.width / 2.0));
        Measure::parse(&format!("slowdown.{aggregate}({}, rank {from:.4}..{to:.4}%)", self.workload)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_rank_are_read_as_measures() {
        let figure = RankFigure {
            of: String::new(),
            workload: "flows".to_owned(),
            xs: Vec::new(),
            width: 0.05,
            series: BTreeMap::new(),
        };
        let measure = figure.measure("0.95", "p95").expect("a range");
        assert_eq!(
            measure,
            Measure::parse("slowdown.p95(flows, rank 92.5000..97.5000%)").expect("a measure")
        );
        assert_eq!(figure.measure("0.99", "p95"), None);
        assert_eq!(figure.measure("all", "p95"), None);
    }
}
