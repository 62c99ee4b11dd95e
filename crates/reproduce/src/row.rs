//! [`Row`]: one measured number beside the published one.

use plimsoll_results::stats::Estimate;
use serde::{Deserialize, Serialize};

/// One measured number beside the published one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Row {
    /// The paper's figure or table.
    pub figure: String,
    /// `source`: as the study's scripts ran it, held to its values. `standard`: by the book.
    pub base: String,
    /// The scheme.
    pub series: String,
    /// The value on the figure's x axis.
    pub x: String,
    /// What is measured.
    pub metric: String,
    /// Its unit.
    pub unit: String,
    /// The measured number.
    pub measured: f64,
    /// Its 95 % interval, where there are enough samples for one.
    pub ci: Option<(f64, f64)>,
    /// The published number; `None` where none was published or found.
    pub published: Option<f64>,
    /// Measured / published.
    pub ratio: Option<f64>,
    /// The largest factor, either way, that counts as reproduced; `None` where none is asked for.
    pub tolerance: Option<f64>,
    /// Whether the ratio is within the tolerance.
    pub within: Option<bool>,
}

impl Row {
    pub(crate) fn compare(mut self, published: Option<f64>, tolerance: Option<f64>) -> Row {
        self.published = published;
        self.ratio = published.filter(|&published| published != 0.0).map(|published| self.measured / published);
        self.tolerance = tolerance.filter(|_| published.is_some());
        self.within = self.ratio.zip(self.tolerance).map(|(ratio, tolerance)| {
            (1.0 / tolerance..=tolerance).contains(&ratio)
        });
        self
    }

    pub(crate) fn set_measured(&mut self, estimate: &Estimate) {
        self.measured = estimate.value;
        self.ci = estimate.interval.map(|interval| (interval.low, interval.high));
    }
}
