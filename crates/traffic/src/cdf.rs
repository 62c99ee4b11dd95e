//! [`CdfTable`]: the points of a cumulative distribution, bundled or from a CSV file.

use std::io;

use plimsoll_units::csv::rows;
use plimsoll_units::spelling::did_you_mean;

use crate::distribution::Interpolate;

/// The reason why points are not a distribution. The message names the file and the line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct CdfError {
    /// The problem in words.
    pub message: String,
    /// The values that are allowed.
    pub allowed: Option<String>,
    /// The nearest name, where the name of a bundled distribution is unknown.
    pub help: Option<String>,
}

/// Points (value in the smallest unit, share of draws at most that large) that both ascend; the last share is 1.
#[derive(Clone, PartialEq, Debug)]
pub struct CdfTable {
    points: Vec<(f64, f64)>,
    interpolate: Interpolate,
}

/// The bundled distributions: name, text and how the source draws between points. The sources are named in scenarios/cdf/README.md.
const BUNDLED: &[(&str, &str, Interpolate)] = &[
    ("websearch", include_str!("../../../scenarios/cdf/websearch.csv"), Interpolate::Linear),
    ("websearch-pfabric", include_str!("../../../scenarios/cdf/websearch-pfabric.csv"), Interpolate::Linear),
    ("datamining", include_str!("../../../scenarios/cdf/datamining.csv"), Interpolate::Linear),
    (
        "datamining-pfabric",
        include_str!("../../../scenarios/cdf/datamining-pfabric.csv"),
        Interpolate::Linear,
    ),
    ("facebook-hadoop", include_str!("../../../scenarios/cdf/facebook-hadoop.csv"), Interpolate::Linear),
    ("homa-w1", include_str!("../../../scenarios/cdf/homa-w1.csv"), Interpolate::Step),
    ("homa-w2", include_str!("../../../scenarios/cdf/homa-w2.csv"), Interpolate::Step),
    ("homa-w3", include_str!("../../../scenarios/cdf/homa-w3.csv"), Interpolate::Step),
    ("homa-w4", include_str!("../../../scenarios/cdf/homa-w4.csv"), Interpolate::Step),
    ("homa-w5", include_str!("../../../scenarios/cdf/homa-w5.csv"), Interpolate::Step),
];

impl CdfTable {
    /// Opens the bundled distribution of that name, or the file: a path has a slash or ends in `.csv`.
    pub(crate) fn open(
        name: &str,
        read: &dyn Fn(&str) -> io::Result<String>,
        units: &[(&str, f64)],
    ) -> Result<CdfTable, CdfError> {
        if name.contains('/') || name.to_lowercase().ends_with(".csv") {
            let text = read(name).map_err(|error| CdfError {
                message: format!("cannot read \"{name}\": {error}"),
                allowed: Some("a CSV file, its path relative to the scenario".to_owned()),
                help: None,
            })?;
            return CdfTable::parse(name, &text, units, Interpolate::Linear);
        }
        let names = || BUNDLED.iter().map(|(name, ..)| *name);
        match BUNDLED.iter().find(|(bundled, ..)| *bundled == name) {
            Some((_, text, interpolate)) => CdfTable::parse(name, text, units, *interpolate),
            None => Err(CdfError {
                message: format!("there is no distribution \"{name}\""),
                allowed: Some(format!(
                    "{}, or the path of a CSV file",
                    names().collect::<Vec<_>>().join(", ")
                )),
                help: did_you_mean(name, names()),
            }),
        }
    }

    fn parse(
        name: &str,
        text: &str,
        units: &[(&str, f64)],
        interpolate: Interpolate,
    ) -> Result<CdfTable, CdfError> {
        let columns: Vec<String> = units.iter().map(|(unit, _)| format!("{unit},cdf")).collect();
        let error = |line: usize, problem: &str| CdfError {
            message: format!("{name}, line {line}: {problem}"),
            allowed: Some(format!(
                "a first line {}; then values and shares that ascend to 1",
                columns.join(" or ")
            )),
            help: None,
        };
        let mut rows = rows(text, None);
        let header = rows.next();
        let unit = header.as_ref().and_then(|header| match header.cells()[..] {
            [unit, "cdf"] => units.iter().find(|(known, _)| *known == unit),
            _ => None,
        });
        let Some((_, factor)) = unit else {
            // Without our columns it may be anybody's file, of which nothing is quoted.
            return Err(error(1, "the columns are not known"));
        };
        let mut points: Vec<(f64, f64)> = Vec::new();
        let mut last_line = 1;
        for record in rows {
            let (line, row) = (record.line, record.text.trim_start());
            last_line = line;
            let numbers = match record.cells()[..] {
                [value, share] => value.parse::<f64>().ok().zip(share.parse::<f64>().ok()),
                _ => None,
            };
            let Some((value, share)) = numbers else {
                return Err(error(line, &format!("`{row}` is not two numbers")));
            };
            let (value_before, share_before) = points.last().copied().unwrap_or((0.0, 0.0));
            let value = value * factor;
            // Written so that NaN fails.
            if !(value >= value_before && share >= share_before && share <= 1.0 && value.is_finite()) {
                return Err(error(
                    line,
                    &format!("`{row}` does not ascend from the line before, or leaves 0 to 1"),
                ));
            }
            points.push((value, share));
        }
        match points.last() {
            Some((_, share)) if *share == 1.0 => Ok(CdfTable { points, interpolate }),
            _ => Err(error(last_line, "the last share is not 1")),
        }
    }

    /// Returns how its source draws between the points.
    pub(crate) fn interpolate(&self) -> Interpolate {
        self.interpolate
    }

    /// Returns the points, for the digest of a run.
    pub fn points(&self) -> &[(f64, f64)] {
        &self.points
    }

    /// Returns the value that a share `u` in [0, 1) of draws does not reach.
    pub(crate) fn quantile(&self, u: f64, interpolate: Interpolate) -> f64 {
        let above = self.points.partition_point(|(_, share)| *share <= u).min(self.points.len() - 1);
        let (value, share) = self.points[above];
        if above == 0 || interpolate == Interpolate::Step {
            return value;
        }
        let (value_below, share_below) = self.points[above - 1];
        value_below + (value - value_below) * (u - share_below) / (share - share_below)
    }

    /// Returns the exact mean.
    pub(crate) fn mean(&self, interpolate: Interpolate) -> f64 {
        let (first, first_share) = self.points[0];
        let segments = self.points.windows(2).map(|pair| {
            let ((low, low_share), (high, high_share)) = (pair[0], pair[1]);
            let middle = match interpolate {
                Interpolate::Linear => (low + high) / 2.0,
                Interpolate::Step => high,
            };
            (high_share - low_share) * middle
        });
        first * first_share + segments.sum::<f64>()
    }
}
