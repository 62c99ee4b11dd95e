//! [`CdfTable`]: the points of a cumulative distribution, bundled or from a CSV file.

use std::io;

use hdrhistogram::Histogram;
use plimsoll_text::csv::rows;
use plimsoll_text::spelling::did_you_mean;

use crate::distribution::Interpolate;
use crate::hdr::{self, HdrError};

/// The reason why points are not a distribution. The message names the file and the line.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{message}")]
pub struct CdfError {
    /// The key of the distribution's table that is at fault: `cdf` or `tag`.
    pub key: &'static str,
    /// The problem in words, with file and line.
    pub message: String,
    /// The allowed values in words, where the message has room for them.
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

/// The bundled distributions: name, text and how the source draws between points. The sources are named in
/// scenarios/cdf/README.md.
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

/// The values that stand for a distribution whose draws are between its points.
const MASSES: u32 = 1_000;

/// Endings of the names of files without a slash.
const ENDINGS: [&str; 4] = [".csv", ".hlog", ".hgrm", ".hdr"];

/// The forms of HdrHistogram, of which `chronos-load run --hdr` writes the first and the last.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Hdr {
    /// An interval log, whose intervals are added up; its values are ns.
    Log,
    /// One histogram in base64, in ns.
    Base64,
    /// Percentiles as text, in us.
    Percentiles,
}

impl Hdr {
    fn find(text: &str) -> Option<Hdr> {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
        let first = lines.next()?.trim();
        match () {
            () if hdr::is_log(text) => Some(Hdr::Log),
            () if hdr::is_base64(first) => Some(Hdr::Base64),
            () if hdr::is_head_of_percentiles(first) => Some(Hdr::Percentiles),
            () => None,
        }
    }

    fn allowed(self) -> &'static str {
        match self {
            Hdr::Log => "an interval log of HdrHistogram",
            Hdr::Base64 => "a histogram of HdrHistogram in base64",
            Hdr::Percentiles => "percentiles as HdrHistogram writes them",
        }
    }
}

/// Returns an error if a tag is given for a file that has none.
fn no_tag(name: &str, tag: Option<&str>) -> Result<(), CdfError> {
    tag.map_or(Ok(()), |tag| {
        let message = format!("\"{tag}\", but \"{name}\" has no tags");
        let allowed = Some("no `tag`, or an interval log of HdrHistogram in `cdf`".to_owned());
        Err(CdfError { key: "tag", message, allowed, help: None })
    })
}

impl CdfTable {
    /// Opens the bundled distribution of that name, or the file: a path has a slash or one of [`ENDINGS`]. `tag`
    /// selects the intervals of an interval log; other files have no tags.
    pub(crate) fn open(
        name: &str,
        tag: Option<&str>,
        read: &dyn Fn(&str) -> io::Result<String>,
        units: &[(&str, f64)],
    ) -> Result<CdfTable, CdfError> {
        let lower = name.to_lowercase();
        if name.contains('/') || ENDINGS.iter().any(|ending| lower.ends_with(ending)) {
            let text = read(name).map_err(|error| CdfError {
                key: "cdf",
                message: format!("cannot read \"{name}\": {error}"),
                allowed: Some(
                    "a CSV file, or one of HdrHistogram, its path relative to the scenario".to_owned(),
                ),
                help: None,
            })?;
            let form = Hdr::find(&text);
            if let Some(form @ Hdr::Log) = form {
                return CdfTable::measured((name, tag), &text, units, form);
            }
            no_tag(name, tag)?;
            return match form {
                Some(form) => CdfTable::measured((name, None), &text, units, form),
                None => CdfTable::parse(name, &text, units, Interpolate::Linear),
            };
        }
        no_tag(name, tag)?;
        let names = || BUNDLED.iter().map(|(name, ..)| *name);
        match BUNDLED.iter().find(|(bundled, ..)| *bundled == name) {
            Some((_, text, interpolate)) => CdfTable::parse(name, text, units, *interpolate),
            None => Err(CdfError {
                key: "cdf",
                message: format!("there is no distribution \"{name}\""),
                allowed: Some(format!(
                    "{}, or the path of a CSV file or one of HdrHistogram",
                    names().collect::<Vec<_>>().join(", ")
                )),
                help: did_you_mean(name, names()),
            }),
        }
    }

    /// Takes measured values; every value of a histogram is one that was counted.
    fn measured(
        (name, tag): (&str, Option<&str>),
        text: &str,
        units: &[(&str, f64)],
        form: Hdr,
    ) -> Result<CdfTable, CdfError> {
        let error = |message: String, allowed: &str| CdfError {
            key: "cdf",
            message: format!("{name}: {message}"),
            allowed: Some(allowed.to_owned()),
            help: None,
        };
        let (unit, interpolate) = match form {
            Hdr::Log | Hdr::Base64 => ("ns", Interpolate::Step),
            Hdr::Percentiles => ("us", Interpolate::Linear),
        };
        let Some((_, factor)) = units.iter().find(|(known, _)| *known == unit) else {
            return Err(error("it has times".to_owned(), "a distribution of sizes"));
        };
        let of_histogram = |histogram: Histogram<u64>| {
            let mut all = 0;
            let sum = |(value, count)| {
                all += count;
                (value as f64, all)
            };
            hdr::counts(&histogram).map(sum).collect::<Vec<_>>()
        };
        let rows = match form {
            Hdr::Log => hdr::of_log(text, tag).map(of_histogram),
            Hdr::Base64 => hdr::of_base64(text).map(of_histogram),
            Hdr::Percentiles => hdr::percentiles(text, 0),
        };
        let rows = rows.map_err(|problem| match problem {
            HdrError::Tags { ref help, .. } => CdfError {
                key: if tag.is_some() { "tag" } else { "cdf" },
                help: help.strip_prefix("; ").map(str::to_owned),
                ..error(
                    problem.to_string(),
                    "one of these tags: `tag = \"NAME\"`, \"\" for those without one",
                )
            },
            problem => error(problem.to_string(), form.allowed()),
        })?;
        let Some(&(_, all)) = rows.last() else {
            return Err(error(HdrError::Empty.to_string(), form.allowed()));
        };
        let points = rows.iter().map(|(value, count)| (value * factor, *count as f64 / all as f64));
        Ok(CdfTable { points: points.collect(), interpolate })
    }

    fn parse(
        name: &str,
        text: &str,
        units: &[(&str, f64)],
        interpolate: Interpolate,
    ) -> Result<CdfTable, CdfError> {
        let columns: Vec<String> = units.iter().map(|(unit, _)| format!("{unit},cdf")).collect();
        let error = |line: usize, problem: &str| CdfError {
            key: "cdf",
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
            // Without our columns it may be a file of any kind, of which nothing is quoted.
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

    /// Returns values with their shares of draws, which add up to 1: the points, or values between them, of equal
    /// shares, where draws are between the points.
    pub fn masses(&self) -> Vec<(f64, f64)> {
        if self.interpolate == Interpolate::Step {
            let mut before = 0.0;
            let mass = |&(value, share): &(f64, f64)| (value, share - std::mem::replace(&mut before, share));
            return self.points.iter().map(mass).filter(|(_, share)| *share > 0.0).collect();
        }
        let share = 1.0 / f64::from(MASSES);
        (0..MASSES)
            .map(|place| (self.quantile((f64::from(place) + 0.5) * share, self.interpolate).ceil(), share))
            .collect()
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
