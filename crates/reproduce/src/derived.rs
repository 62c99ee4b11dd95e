//! [`DerivedFigure`]: a figure that runs nothing of its own, and shows what another figure's runs have measured.

use std::collections::BTreeMap;

use plimsoll_results::outcome::Outcome;
use serde::Deserialize;

use crate::by_rank::RankFigure;
use crate::distribution::PercentileFigure;
use crate::queue_in_time::QueueFigure;
use crate::row::StudyRow;
use crate::timeline::TimelineFigure;

/// A view of another figure's runs: the table of a figure by the name of its kind.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DerivedFigure {
    /// Samples by percentile.
    Distribution(PercentileFigure),
    /// Observations of a workload over time.
    Timeline(TimelineFigure),
    /// A watched queue over time.
    QueueInTime(QueueFigure),
    /// Slowdown by the rank of the flows' sizes.
    Ranks(RankFigure),
}

impl DerivedFigure {
    /// Returns the name of the figure whose runs are shown.
    pub fn of(&self) -> &str {
        match self {
            DerivedFigure::Distribution(shown) => &shown.of,
            DerivedFigure::Timeline(shown) => &shown.of,
            DerivedFigure::QueueInTime(shown) => &shown.of,
            DerivedFigure::Ranks(shown) => &shown.of,
        }
    }

    /// Returns the runs' schemes with their names on this figure; the others are not shown.
    pub fn series(&self) -> &BTreeMap<String, String> {
        match self {
            DerivedFigure::Distribution(shown) => &shown.series,
            DerivedFigure::Timeline(shown) => &shown.series,
            DerivedFigure::QueueInTime(shown) => &shown.series,
            DerivedFigure::Ranks(shown) => &shown.series,
        }
    }

    /// Returns the names of the metrics in the rows.
    pub fn metrics(&self) -> Vec<&str> {
        match self {
            DerivedFigure::Distribution(shown) => vec![&shown.metric],
            DerivedFigure::Timeline(shown) => vec![&shown.metric],
            DerivedFigure::QueueInTime(_) => vec![QueueFigure::METRIC],
            DerivedFigure::Ranks(_) => RankFigure::METRICS.iter().map(|(metric, _)| *metric).collect(),
        }
    }

    /// Returns the rows that a run of the other figure gives.
    pub(crate) fn rows(&self, figure: &str, base: &str, scheme: &str, outcome: &Outcome) -> Vec<StudyRow> {
        match self {
            DerivedFigure::Distribution(shown) => shown.rows(figure, base, scheme, outcome),
            DerivedFigure::Timeline(shown) => shown.rows(figure, base, scheme, outcome),
            DerivedFigure::QueueInTime(shown) => shown.rows(figure, base, scheme, outcome),
            DerivedFigure::Ranks(shown) => shown.rows(figure, base, scheme, outcome),
        }
    }
}
