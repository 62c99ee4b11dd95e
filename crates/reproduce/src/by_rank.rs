//! [`RankFigure`]: the slowdown of flows by the rank of their size, made of the runs of another figure.

use std::collections::BTreeMap;

use plimsoll_experiment::Measure;
use plimsoll_units::Span;
use serde::Deserialize;

use crate::row::StudyRow;
use crate::study::FinishedRun;

/// Percentiles of the slowdown in ranges of rank, as HPCC's authors show them.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RankFigure {
    /// The name of the figure whose runs are measured; it has one point.
    pub of: String,
    /// The workload of the flows.
    pub workload: String,
    /// The ranges of rank, which are the x axis, as shares of all flows: `0.05-0.10`, 0 for the smallest flow.
    pub ranges: Vec<String>,
    /// The runs' schemes, and their names on this figure; the others are not shown.
    pub series: BTreeMap<String, String>,
}

impl RankFigure {
    /// The metrics of the rows, with the aggregates that they are.
    pub const METRICS: [(&str, &str); 3] =
        [("fct_slowdown_p50", "p50"), ("fct_slowdown_p95", "p95"), ("fct_slowdown_p99", "p99")];

    /// Returns the rows that a run gives. Those of a range that is none, and of a percentile that a range has too few
    /// flows for, are missing.
    pub(crate) fn rows(&self, figure: &str, run: &FinishedRun<'_>) -> Vec<StudyRow> {
        let Some(series) = self.series.get(run.series) else { return Vec::new() };
        let mut rows = Vec::new();
        for x in &self.ranges {
            for (metric, aggregate) in RankFigure::METRICS {
                let Some(estimate) =
                    self.measure(x, aggregate).and_then(|measure| measure.estimate(run.outcome, Span::ZERO))
                else {
                    continue;
                };
                let mut row = StudyRow::new(figure, run.base.name(), series, x, metric, "x");
                row.set_measured(&estimate);
                rows.push(row);
            }
        }
        rows
    }

    /// Returns the measure of an aggregate within a range of rank; `None` if the text is none.
    fn measure(&self, range: &str, aggregate: &str) -> Option<Measure> {
        let (from, to) = range.split_once('-')?;
        let percent = |share: &str| share.parse::<f64>().ok().map(|share| 100.0 * share);
        // Shares such as 0.07 are no binary fractions: their percents are rounded to the digits that they have.
        let (from, to) = (percent(from)?, percent(to)?);
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
            ranges: Vec::new(),
            series: BTreeMap::new(),
        };
        let measure = figure.measure("0.07-0.125", "p95").expect("a range");
        assert_eq!(measure, Measure::parse("slowdown.p95(flows, rank 7.0000..12.5000%)").expect("a measure"));
        assert_eq!(figure.measure("0.5-0.1", "p95"), None);
        assert_eq!(figure.measure("all", "p95"), None);
    }
}
