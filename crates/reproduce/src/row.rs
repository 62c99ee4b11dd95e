//! [`StudyRow`]: one measured number beside the published one.

use plimsoll_results::stats::Estimate;
use serde::{Deserialize, Serialize};

/// One measured number beside the published one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct StudyRow {
    /// The name of the figure or table of the study: `fig2b`.
    pub figure: String,
    /// `source`: as the study's scripts ran it, held to its values; `standard`: by the book. `kernel`: between
    /// network namespaces, held to the values; `simulated`: the same, simulated.
    pub base: String,
    /// The scheme that was measured, such as a variant of the scenario.
    pub series: String,
    /// The value on the figure's x axis.
    pub x: String,
    /// The name of the measured quantity, with its unit: `queue_us_mean`.
    pub metric: String,
    /// The unit of all numbers of the row: `us`, `Mb/s`.
    pub unit: String,
    /// The measured number, in `unit`.
    pub measured: f64,
    /// Its 95 % interval, where there are enough samples for one.
    pub ci: Option<(f64, f64)>,
    /// Smallest and largest number over runs with other seeds, made where one run is off: how far the
    /// draw of arrivals alone moves it.
    pub seeds: Option<(f64, f64)>,
    /// The published number; `None` where none was published or found.
    pub published: Option<f64>,
    /// The original paper's number, where the study repeats an experiment of it.
    pub original: Option<f64>,
    /// The measured number over the published one; `None` where none is published.
    pub ratio: Option<f64>,
    /// The largest factor, either way, that counts as reproduced; `None` if the row is held to none.
    pub tolerance: Option<f64>,
    /// Whether the ratio is within the tolerance.
    pub within: Option<bool>,
    /// What became of the published value; `None` where none was published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub state: Option<RowState>,
    /// How many flows the run had, where a page has runs of different length.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flows: Option<u64>,
    /// Whether the run is shorter than the page's, in place of one that was not run: it is held to nothing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub quick: bool,
    /// Whether `within` says only that two schemes are in the published order: the number itself is another machine's.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub order_only: bool,
    /// Whether the machine was too slow for the run, or lost frames: `suspect` in the words of `plimsoll emulate`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub suspect: bool,
}

/// The result of the comparison with a published value.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RowState {
    /// The number is within its tolerance, or the order is the published one.
    Held,
    /// The number is outside, and an experiment whose numbers are rows of the page shows why.
    Explained,
    /// The number is outside, could not be decided, or the machine was too slow for it.
    Open,
    /// The number was given to a model, or is a formula's: it shows nothing about the system.
    Input,
}

impl RowState {
    /// Returns the name of the state in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            RowState::Held => "held",
            RowState::Explained => "explained",
            RowState::Open => "open",
            RowState::Input => "input",
        }
    }
}

impl StudyRow {
    pub(crate) fn new(figure: &str, base: &str, series: &str, x: &str, metric: &str, unit: &str) -> StudyRow {
        StudyRow {
            figure: figure.to_owned(),
            base: base.to_owned(),
            series: series.to_owned(),
            x: x.to_owned(),
            metric: metric.to_owned(),
            unit: unit.to_owned(),
            measured: f64::NAN,
            ci: None,
            seeds: None,
            published: None,
            original: None,
            ratio: None,
            tolerance: None,
            within: None,
            state: None,
            flows: None,
            quick: false,
            order_only: false,
            suspect: false,
        }
    }

    pub(crate) fn set_measured(&mut self, estimate: &Estimate) {
        self.measured = estimate.value;
        self.ci = estimate.interval.map(|interval| (interval.low, interval.high));
    }

    pub(crate) fn compare(
        mut self,
        published: Option<f64>,
        original: Option<f64>,
        tolerance: Option<f64>,
    ) -> StudyRow {
        self.published = published;
        self.original = original;
        self.ratio =
            published.filter(|&published| published != 0.0).map(|published| self.measured / published);
        self.tolerance = tolerance.filter(|_| self.ratio.is_some());
        self.within = self
            .ratio
            .zip(self.tolerance)
            .map(|(ratio, tolerance)| (1.0 / tolerance..=tolerance).contains(&ratio));
        self
    }

    /// Removes the tolerance and the verdict: a run for which the machine was too slow shows neither way.
    pub(crate) fn let_go(&mut self) {
        (self.tolerance, self.within) = (None, None);
    }

    /// Returns whether other seeds give numbers on both sides of the published one.
    pub fn is_the_draw(&self) -> bool {
        let (Some((low, high)), Some(published)) = (self.seeds, self.published) else { return false };
        (low..=high).contains(&published)
    }

    /// Returns what an explanation has to account for: the ratio to the published number, or the number itself.
    pub(crate) fn deviation(&self) -> f64 {
        self.ratio.unwrap_or(self.measured)
    }

    /// Returns whether the row is outside the tolerance that it is held to.
    pub fn is_off(&self) -> bool {
        self.within == Some(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tolerance_is_a_factor_either_way() {
        let row = |measured, tolerance| {
            let mut row = StudyRow::new("fig2b", "source", "TCP", "2", "queue_us_mean", "us");
            row.measured = measured;
            row.compare(Some(100.0), None, Some(tolerance)).within
        };
        assert_eq!(row(134.0, 1.35), Some(true));
        assert_eq!(row(75.0, 1.35), Some(true));
        assert_eq!(row(73.0, 1.35), Some(false));
        assert_eq!(row(136.0, 1.35), Some(false));
    }

    #[test]
    fn without_a_published_value_nothing_is_judged() {
        let mut row = StudyRow::new("fig2c", "source", "TCP", "2", "queue_us_mean", "us");
        row.measured = 1.0;
        let row = row.compare(None, None, Some(1.05));
        assert_eq!((row.ratio, row.tolerance, row.within), (None, None, None));
    }
}
