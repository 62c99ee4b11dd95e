//! Reads measured latencies: histograms as HdrHistogram writes them, and lists.
//!
//! | contents | by | unit if none is given |
//! |---|---|---|
//! | interval log, V2 (`.hlog`) | HdrHistogram, `chronos-load run --hdr FILE.hlog` | ns |
//! | one histogram, V2, compressed or not, as bytes or in base64 | HdrHistogram | ns |
//! | percentiles as text (`.hgrm`) | HdrHistogram, `chronos-load run --hdr FILE` | us |
//! | a latency a line, or `latency,share` of a cumulative distribution | anything | us |
//! | CSV with a column of latencies | anything | us |
//!
//! The histograms of a log are added up. Percentiles as text are linear between two lines, since a histogram does not
//! say more; what a line counts is more exact than its percentile, and is used instead.

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use plimsoll_units::csv;

use crate::law::{Empirical, LawError};

/// The latencies of a file.
#[derive(Clone, PartialEq, Debug)]
pub struct Measured {
    /// Their distribution, in us.
    pub distribution: Empirical,
    /// The number of latencies, where the file says it.
    pub samples: Option<u64>,
    /// The reasons why the measurement is suspect, as the file says them.
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
    /// The file begins as a histogram and is none.
    #[error("no histogram in HdrHistogram's V2 format: {0}")]
    Histogram(String),
    /// A line of percentiles cannot be read.
    #[error(
        "line {line}: `{text}`; allowed: `VALUE PERCENTILE TOTALCOUNT 1/(1-PERCENTILE)` with the first three rising"
    )]
    Percentiles {
        /// The number of the line, counted from 1.
        line: usize,
        /// The text of the line.
        text: String,
    },
    /// The file is neither bytes of a histogram nor text.
    #[error(
        "neither text nor a histogram in HdrHistogram's V2 format; allowed: an interval log, one histogram, \
         percentiles as text, or a CSV file of latencies"
    )]
    Bytes,
    /// The file is JSON, which has percentiles at best.
    #[error(
        "JSON has no distribution; allowed: a histogram, as `chronos-load run --hdr FILE` writes it, or a CSV file"
    )]
    Json,
    /// There is no column of that name.
    #[error("no column `{name}`; allowed: {allowed}")]
    Column {
        /// The name that was asked for.
        name: String,
        /// The names of the columns that there are.
        allowed: String,
    },
    /// A cell of the column is no latency.
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

/// Reads the latencies of a file in any of the formats; `column` is the name of the column of a CSV file that has them.
///
/// # Errors
/// Says what is wrong, in which line, and what is allowed.
pub fn read(bytes: &[u8], unit: Option<Unit>, column: Option<&str>) -> Result<Measured, MeasuredError> {
    if is_histogram(bytes) {
        return of_histogram(&histogram(bytes)?, unit, Vec::new());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| MeasuredError::Bytes)?;
    let suspect = text.lines().filter_map(suspicion).map(str::to_owned).collect();
    if let Some(name) = column {
        return of_column(text, unit, name, suspect);
    }
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let first = lines.next().unwrap_or_default().trim();
    if first.starts_with("\"StartTimestamp\"") || first.split(',').nth(3).is_some_and(is_base64) {
        return of_histogram(&of_log(text)?, unit, suspect);
    }
    if is_base64(first) {
        return of_histogram(&histogram(&decoded(first)?)?, unit, suspect);
    }
    if first.starts_with(['{', '[']) {
        return Err(MeasuredError::Json);
    }
    if first.split_whitespace().take(2).eq(["Value", "Percentile"]) {
        return of_percentiles(text, unit, suspect);
    }
    let listed = Empirical::parse(text)?;
    let samples = listed.samples();
    Ok(Measured { distribution: listed.scaled(unit.unwrap_or(Unit::Microseconds).us()), samples, suspect })
}

/// Returns the reason in a comment that marks a run of `chronos-load` as suspect.
fn suspicion(line: &str) -> Option<&str> {
    Some(line.strip_prefix("#[SUSPECT: ")?.strip_suffix(']').unwrap_or(line))
}

/// Whether bytes begin as an encoded histogram does, with the cookie of the V2 format, compressed or not.
fn is_histogram(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x1c, 0x84, 0x93, 0x13]) || bytes.starts_with(&[0x1c, 0x84, 0x93, 0x14])
}

/// Whether text begins as these cookies do in base64.
fn is_base64(text: &str) -> bool {
    text.starts_with("HISTE") || text.starts_with("HISTF")
}

fn decoded(text: &str) -> Result<Vec<u8>, MeasuredError> {
    let decoded = base64::engine::general_purpose::STANDARD.decode(text.trim());
    decoded.map_err(|error| MeasuredError::Histogram(error.to_string()))
}

fn histogram(bytes: &[u8]) -> Result<Histogram<u64>, MeasuredError> {
    let mut bytes = bytes;
    let histogram = Deserializer::new().deserialize(&mut bytes);
    histogram.map_err(|error| MeasuredError::Histogram(error.to_string()))
}

/// Adds up the histograms of an interval log.
fn of_log(text: &str) -> Result<Histogram<u64>, MeasuredError> {
    // The iterator has no line of column names, which logs have before their intervals.
    let without_names: String =
        text.lines().filter(|line| !line.starts_with('"')).map(|line| line.to_owned() + "\n").collect();
    let mut sum: Option<Histogram<u64>> = None;
    for entry in IntervalLogIterator::new(without_names.as_bytes()) {
        let entry = entry.map_err(|error| MeasuredError::Histogram(format!("interval log: {error:?}")))?;
        if let LogEntry::Interval(interval) = entry {
            let one = histogram(&decoded(interval.encoded_histogram())?)?;
            match &mut sum {
                None => sum = Some(one),
                Some(sum) => {
                    sum.auto(true);
                    sum.add(&one).map_err(|error| MeasuredError::Histogram(error.to_string()))?;
                }
            }
        }
    }
    sum.ok_or_else(|| LawError::Empty.into())
}

fn of_histogram(
    histogram: &Histogram<u64>,
    unit: Option<Unit>,
    suspect: Vec<String>,
) -> Result<Measured, MeasuredError> {
    if histogram.is_empty() {
        return Err(LawError::Empty.into());
    }
    let us = unit.unwrap_or(Unit::Nanoseconds).us();
    let counts = histogram
        .iter_recorded()
        .map(|step| (step.value_iterated_to() as f64 * us, step.count_since_last_iteration()));
    Ok(Measured { distribution: Empirical::of_counts(counts), samples: Some(histogram.len()), suspect })
}

fn of_percentiles(text: &str, unit: Option<Unit>, suspect: Vec<String>) -> Result<Measured, MeasuredError> {
    let us = unit.unwrap_or(Unit::Microseconds).us();
    let mut rows: Vec<(f64, u64)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let first = line.trim_start();
        if first.is_empty() || first.starts_with('#') || first.starts_with("Value") {
            continue;
        }
        let cells: Vec<&str> = line.split_whitespace().collect();
        let value = cells.first().and_then(|cell| cell.parse::<f64>().ok()).filter(|value| value.is_finite());
        let count = cells.get(2).and_then(|cell| cell.parse::<u64>().ok());
        let row = value.zip(count).filter(|(value, count)| {
            *count > 0 && rows.last().is_none_or(|last| last.0 <= *value && last.1 <= *count)
        });
        rows.push(row.ok_or_else(|| MeasuredError::Percentiles { line: number, text: line.to_owned() })?);
    }
    let all = rows.last().ok_or(LawError::Empty)?.1;
    let points = rows.iter().map(|(value, count)| (value * us, *count as f64 / all as f64)).collect();
    Ok(Measured { distribution: Empirical::of_points(points), samples: Some(all), suspect })
}

/// Reads the column of a CSV file with that name; empty cells are skipped.
fn of_column(
    text: &str,
    unit: Option<Unit>,
    name: &str,
    suspect: Vec<String>,
) -> Result<Measured, MeasuredError> {
    let us = unit.unwrap_or(Unit::Microseconds).us();
    let mut rows = csv::rows(text, Some(b'#'));
    let head = rows.next().ok_or(LawError::Empty)?;
    let names = head.cells();
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
            latencies.push(latency.ok_or_else(wrong)? * us);
        }
    }
    if latencies.is_empty() {
        return Err(LawError::Empty.into());
    }
    let samples = Some(latencies.len() as u64);
    Ok(Measured { distribution: Empirical::of_samples(latencies), samples, suspect })
}

#[cfg(test)]
mod tests;
