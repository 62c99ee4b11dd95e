//! Reads measured latencies: histograms as HdrHistogram writes them, and lists.
//!
//! | contents | by | unit if none is given |
//! |---|---|---|
//! | interval log, V1 or V2 (`.hlog`) | HdrHistogram, `chronos-load run --hdr FILE.hlog` | ns |
//! | one histogram, V1 or V2, compressed or not, as bytes or in base64 | HdrHistogram | ns |
//! | percentiles as text (`.hgrm`) | HdrHistogram, `chronos-load run --hdr FILE` | us |
//! | the whole output of wrk2 | `wrk2 --latency` | ms |
//! | JSON: a histogram | `memtier_benchmark --json-out-file` | us |
//! | JSON: percentiles or bins | `fio --output-format=json` | ns |
//! | buckets with a bound `le`, as text or as the answer to a query | Prometheus, OpenMetrics | s |
//! | a latency a line, or `latency,share` of a cumulative distribution | anything | us |
//! | CSV with a column of latencies | anything | us |
//!
//! The histograms of a log with one tag are added up: intervals with other tags measure something else, such as the
//! same requests corrected for coordinated omission. Percentiles as text are linear between two lines, since a
//! histogram has no finer data; the count of a line is more exact than its percentile, and is used instead.

mod buckets;
mod programs;

use hdrhistogram::Histogram;
use plimsoll_text::csv;
use plimsoll_text::spelling::did_you_mean;
use plimsoll_traffic::hdr::{self, HdrError};

use crate::law::{Empirical, LawError};

/// The latencies of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct MeasuredLatencies {
    /// Their distribution, in us.
    pub distribution: Empirical,
    /// The number of latencies, if the file states it.
    pub samples: Option<u64>,
    /// The share of latencies whose values the file bounds, 1 unless a histogram has counts above its last bound.
    pub bounded: f64,
    /// The reasons why the measurement is suspect, from the file.
    pub suspect: Vec<String>,
}

/// The unit of the numbers in a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Numbers are nanoseconds.
    Nanoseconds,
    /// Numbers are microseconds.
    Microseconds,
    /// Numbers are milliseconds.
    Milliseconds,
    /// The numbers of the file are seconds.
    Seconds,
}

impl Unit {
    /// Returns how many us one is.
    fn us(self) -> f64 {
        match self {
            Unit::Nanoseconds => 1e-3,
            Unit::Microseconds => 1.0,
            Unit::Milliseconds => 1e3,
            Unit::Seconds => 1e6,
        }
    }
}

/// The reasons why a file has no latencies.
#[derive(Debug, thiserror::Error)]
pub enum MeasuredError {
    /// The file has a list that is none of latencies.
    #[error(transparent)]
    Law(#[from] LawError),
    /// The file begins as a histogram, a log or percentiles, and is none.
    #[error(transparent)]
    Hdr(HdrError),
    /// The file has several parts, such as tags of a log or verbs of a load generator, or lacks the requested one.
    #[error("the file has {listed}; choose one with --tag{help}")]
    Tags {
        /// The parts; those of a log with the number of latencies.
        listed: String,
        /// The nearest spelling, if a tag was requested.
        help: String,
    },
    /// A tag was requested, and the file has none.
    #[error(
        "a tag was asked for; only interval logs, JSON of load generators and Prometheus histograms have tags"
    )]
    NoTags,
    /// The output has several tables of percentiles.
    #[error(
        "{0} tables of percentiles; cut out the one that is meant, such as the first (corrected latencies)"
    )]
    Tables(usize),
    /// The file is neither bytes of a histogram nor text.
    #[error(
        "neither text nor a histogram in HdrHistogram's V1 or V2 format; allowed: an interval log, one histogram, \
         percentiles as text, or a CSV file of latencies"
    )]
    Bytes,
    /// The file is JSON, which has percentiles at best.
    #[error(
        "JSON without latencies; allowed: the JSON of memtier_benchmark, of fio, or of a Prometheus query for buckets, \
         a histogram, as `chronos-load run --hdr FILE` writes it, or a CSV file"
    )]
    Json,
    /// The counts of a Prometheus histogram fall, or a bound is no number.
    #[error("`{metric}`: {reason}; allowed: `le` bounds with counts that do not fall, up to `le=\"+Inf\"`")]
    Buckets {
        /// The name of the histogram.
        metric: String,
        /// The property that makes the histogram invalid.
        reason: String,
    },
    /// The file has no column of that name.
    #[error("no column `{name}`; allowed: {allowed}")]
    Column {
        /// The name of the requested column.
        name: String,
        /// The names of the existing columns.
        allowed: String,
    },
    /// Several columns of the file have that name.
    #[error("{count} columns `{name}`; allowed: one column of that name")]
    Columns {
        /// The name of the requested column.
        name: String,
        /// The number of columns that have the name.
        count: usize,
    },
    /// A latency is longer than the run in which it was measured.
    #[error(
        "{place} is longer than the run, which takes {run_us} us; allowed: a shorter latency (`--unit` states the unit \
         of the file), or a longer run"
    )]
    Longer {
        /// The line and its text, or the longest latency of a histogram.
        place: String,
        /// The length of the run in us.
        run_us: f64,
    },
    /// A cell of the column is not a latency.
    #[error("line {line}: `{cell}` in column `{name}`; allowed: a latency, 0 or more, or nothing")]
    Cell {
        /// The number of the line, counted from 1.
        line: usize,
        /// The name of the column.
        name: String,
        /// The text of the cell.
        cell: String,
    },
}

impl From<HdrError> for MeasuredError {
    fn from(error: HdrError) -> MeasuredError {
        match error {
            HdrError::Tags { listed, help } => {
                MeasuredError::Tags { listed: format!("intervals {listed}"), help }
            }
            other => MeasuredError::Hdr(other),
        }
    }
}

/// The user's information about a file beyond its contents.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Hints<'a> {
    /// The unit of the numbers; the format's if `None`.
    pub unit: Option<Unit>,
    /// The name of the column of a CSV file that has the latencies.
    pub column: Option<&'a str>,
    /// The part of the file: the tag of the intervals of a log, empty for intervals without one; the verb of a load
    /// generator's JSON; the name of a Prometheus histogram.
    pub tag: Option<&'a str>,
    /// The length in us of the run beside which the latencies are placed: no latency may be longer.
    pub run_us: Option<f64>,
}

/// Reads the latencies of a file in any of the formats.
///
/// # Errors
/// Names the error, its line, and the allowed values.
pub fn read(bytes: &[u8], hints: Hints<'_>) -> Result<MeasuredLatencies, MeasuredError> {
    let found = read_any(bytes, hints)?;
    let longest = found.distribution.longest();
    match hints.run_us {
        Some(run_us) if longest > run_us => {
            Err(MeasuredError::Longer { place: format!("the longest latency, {longest} us,"), run_us })
        }
        _ => Ok(found),
    }
}

/// Reads the latencies of a file; only a file with a latency a line is checked against the length of the run.
fn read_any(bytes: &[u8], hints: Hints<'_>) -> Result<MeasuredLatencies, MeasuredError> {
    let Hints { unit, column, tag, run_us } = hints;
    if hdr::is_histogram(bytes) {
        return of_histogram(&hdr::histogram(bytes)?, unit, Vec::new());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| MeasuredError::Bytes)?;
    let suspect = text.lines().filter_map(suspicion).map(str::to_owned).collect();
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let first = lines.next().unwrap_or_default().trim();
    if hdr::is_log(text) {
        return of_histogram(&hdr::of_log(text, tag)?, unit, suspect);
    }
    if first.starts_with(['{', '[']) {
        return programs::read(text, unit, tag, suspect);
    }
    if buckets::is_exposition(text) {
        return buckets::of_text(text, unit, tag, suspect);
    }
    if tag.is_some() {
        return Err(MeasuredError::NoTags);
    }
    if let Some(name) = column {
        return of_column(text, hints, name, suspect);
    }
    if hdr::is_base64(first) {
        return of_histogram(&hdr::of_base64(first)?, unit, suspect);
    }
    if hdr::is_head_of_percentiles(first) {
        return of_percentiles(text, 0, unit.unwrap_or(Unit::Microseconds), suspect);
    }
    let tables = text.lines().filter(|line| hdr::is_head_of_percentiles(line)).count();
    match tables {
        0 => {}
        1 => {
            let above = text.lines().take_while(|line| !hdr::is_head_of_percentiles(line)).count();
            return of_percentiles(text, above, unit.unwrap_or(Unit::Milliseconds), suspect);
        }
        several => return Err(MeasuredError::Tables(several)),
    }
    let listed = Empirical::parse(text)?;
    let (samples, us) = (listed.samples(), unit.unwrap_or(Unit::Microseconds).us());
    let is_longer =
        |cell: &str| cell.parse().is_ok_and(|latency: f64| run_us.is_some_and(|run| latency * us > run));
    let longer =
        csv::rows(text, Some(b'#')).find(|row| row.cells().first().is_some_and(|cell| is_longer(cell)));
    if let Some((row, run_us)) = longer.zip(run_us) {
        return Err(MeasuredError::Longer {
            place: format!("line {}: `{}`", row.line, row.text.trim()),
            run_us,
        });
    }
    Ok(MeasuredLatencies { distribution: listed.scaled(us), samples, bounded: 1.0, suspect })
}

/// Returns the part of a file that was asked for, or the only one; `noun` names such parts.
fn part<'a>(noun: &str, asked: Option<&str>, parts: &[&'a str]) -> Result<&'a str, MeasuredError> {
    let listed = || format!("{noun} {}", parts.join(", "));
    match (asked, parts) {
        (None, [only]) => Ok(only),
        (None, []) => Err(LawError::Empty.into()),
        (None, _) => Err(MeasuredError::Tags { listed: listed(), help: String::new() }),
        (Some(asked), _) => parts.iter().find(|part| **part == asked).copied().ok_or_else(|| {
            let help = did_you_mean(asked, parts.iter().copied());
            let help = help.map_or_else(String::new, |help| format!("; {help}"));
            MeasuredError::Tags { listed: listed(), help }
        }),
    }
}

/// Returns the reason in a comment that marks a run of `chronos-load` as suspect.
fn suspicion(line: &str) -> Option<&str> {
    Some(line.strip_prefix("#[SUSPECT: ")?.strip_suffix(']').unwrap_or(line))
}

fn of_histogram(
    histogram: &Histogram<u64>,
    unit: Option<Unit>,
    suspect: Vec<String>,
) -> Result<MeasuredLatencies, MeasuredError> {
    if histogram.is_empty() {
        return Err(LawError::Empty.into());
    }
    let us = unit.unwrap_or(Unit::Nanoseconds).us();
    let counts = hdr::counts(histogram).map(|(value, count)| (value as f64 * us, count));
    Ok(MeasuredLatencies {
        distribution: Empirical::of_counts(counts),
        samples: Some(histogram.len()),
        bounded: 1.0,
        suspect,
    })
}

/// Reads the table of percentiles after the header lines.
fn of_percentiles(
    text: &str,
    above: usize,
    unit: Unit,
    suspect: Vec<String>,
) -> Result<MeasuredLatencies, MeasuredError> {
    let us = unit.us();
    let rows = hdr::percentiles(text, above)?;
    let all = rows.last().ok_or(LawError::Empty)?.1;
    let points = rows.iter().map(|(value, count)| (value * us, *count as f64 / all as f64)).collect();
    let distribution = Empirical::of_points(points);
    Ok(MeasuredLatencies { distribution, samples: Some(all), bounded: 1.0, suspect })
}

/// Reads the column of a CSV file with that name; empty cells are skipped.
fn of_column(
    text: &str,
    hints: Hints<'_>,
    name: &str,
    suspect: Vec<String>,
) -> Result<MeasuredLatencies, MeasuredError> {
    let us = hints.unit.unwrap_or(Unit::Microseconds).us();
    let mut rows = csv::rows(text, Some(b'#'));
    let head = rows.next().ok_or(LawError::Empty)?;
    let names = head.cells();
    let count = names.iter().filter(|cell| **cell == name).count();
    if count > 1 {
        return Err(MeasuredError::Columns { name: name.to_owned(), count });
    }
    let place = names
        .iter()
        .position(|cell| *cell == name)
        .ok_or_else(|| MeasuredError::Column { name: name.to_owned(), allowed: names.join(", ") })?;
    let mut latencies = Vec::new();
    for row in rows {
        let cells = row.cells();
        let cell = cells.get(place).copied().unwrap_or_default();
        if !cell.is_empty() {
            let latency = cell.parse::<f64>().ok().filter(|latency| latency.is_finite() && *latency >= 0.0);
            let wrong =
                || MeasuredError::Cell { line: row.line, name: name.to_owned(), cell: cell.to_owned() };
            let latency = latency.ok_or_else(wrong)? * us;
            if let Some(run_us) = hints.run_us.filter(|run| latency > *run) {
                let place = format!("line {}: `{cell}` in column `{name}`", row.line);
                return Err(MeasuredError::Longer { place, run_us });
            }
            latencies.push(latency);
        }
    }
    if latencies.is_empty() {
        return Err(LawError::Empty.into());
    }
    let samples = Some(latencies.len() as u64);
    Ok(MeasuredLatencies { distribution: Empirical::of_samples(latencies), samples, bounded: 1.0, suspect })
}

#[cfg(test)]
mod tests;
