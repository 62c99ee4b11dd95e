//! Reads measured latencies: histograms as HdrHistogram writes them, and lists.
//!
//! | contents | by | unit if none is given |
//! |---|---|---|
//! | interval log, V2 (`.hlog`) | HdrHistogram, `chronos-load run --hdr FILE.hlog` | ns |
//! | one histogram, V2, compressed or not, as bytes or in base64 | HdrHistogram | ns |
//! | percentiles as text (`.hgrm`) | HdrHistogram, `chronos-load run --hdr FILE` | us |
//! | the whole output of wrk2 | `wrk2 --latency` | ms |
//! | a latency a line, or `latency,share` of a cumulative distribution | anything | us |
//! | CSV with a column of latencies | anything | us |
//!
//! The histograms of a log are added up, those of one tag: intervals with other tags measure something else, such as
//! the same requests corrected for coordinated omission. Percentiles as text are linear between two lines, since a
//! histogram does not say more; what a line counts is more exact than its percentile, and is used instead.

use base64::Engine as _;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use indexmap::IndexMap;
use plimsoll_units::csv;
use plimsoll_units::spelling::did_you_mean;

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
    /// The intervals of a log have several tags, or not the one that was asked for.
    #[error("the log has intervals {listed}; choose one tag with --tag{help}")]
    Tags {
        /// The tags and how many latencies each has.
        listed: String,
        /// The nearest spelling, if one was asked for.
        help: String,
    },
    /// A tag was asked for, and the file has none.
    #[error("a tag was asked for; only an interval log of HdrHistogram has tags")]
    NoTags,
    /// The output has several tables of percentiles.
    #[error(
        "{0} tables of percentiles; cut out the one that is meant, such as the first (corrected latencies)"
    )]
    Tables(usize),
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

/// What the user says about a file beyond its contents.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hints<'a> {
    /// The unit of the numbers; that of the format if `None`.
    pub unit: Option<Unit>,
    /// The name of the column of a CSV file that has the latencies.
    pub column: Option<&'a str>,
    /// The tag of the intervals of a log; empty for those without one.
    pub tag: Option<&'a str>,
}

/// Reads the latencies of a file in any of the formats.
///
/// # Errors
/// Says what is wrong, in which line, and what is allowed.
pub fn read(bytes: &[u8], hints: Hints<'_>) -> Result<Measured, MeasuredError> {
    let Hints { unit, column, tag } = hints;
    if is_histogram(bytes) {
        return of_histogram(&histogram(bytes)?, unit, Vec::new());
    }
    let text = std::str::from_utf8(bytes).map_err(|_| MeasuredError::Bytes)?;
    let suspect = text.lines().filter_map(suspicion).map(str::to_owned).collect();
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    let first = lines.next().unwrap_or_default().trim();
    if first.starts_with("\"StartTimestamp\"") || is_interval(first) {
        return of_histogram(&of_log(text, tag)?, unit, suspect);
    }
    if tag.is_some() {
        return Err(MeasuredError::NoTags);
    }
    if let Some(name) = column {
        return of_column(text, unit, name, suspect);
    }
    if is_base64(first) {
        return of_histogram(&histogram(&decoded(first)?)?, unit, suspect);
    }
    if first.starts_with(['{', '[']) {
        return Err(MeasuredError::Json);
    }
    if is_head_of_percentiles(first) {
        return of_percentiles(text, 0, unit.unwrap_or(Unit::Microseconds), suspect);
    }
    let tables = text.lines().filter(|line| is_head_of_percentiles(line)).count();
    match tables {
        0 => {}
        1 => {
            let above = text.lines().take_while(|line| !is_head_of_percentiles(line)).count();
            return of_percentiles(text, above, unit.unwrap_or(Unit::Milliseconds), suspect);
        }
        several => return Err(MeasuredError::Tables(several)),
    }
    let listed = Empirical::parse(text)?;
    let samples = listed.samples();
    Ok(Measured { distribution: listed.scaled(unit.unwrap_or(Unit::Microseconds).us()), samples, suspect })
}

/// Returns whether a line is the head of HdrHistogram's table of percentiles.
fn is_head_of_percentiles(line: &str) -> bool {
    line.split_whitespace().take(3).eq(["Value", "Percentile", "TotalCount"])
}

/// Returns whether a line is an interval of a log, with or without a tag.
fn is_interval(line: &str) -> bool {
    let (_, interval) = tagged(line);
    interval.split(',').nth(3).is_some_and(is_base64)
}

/// Splits the tag of an interval, empty if it has none, from the rest of its line.
fn tagged(line: &str) -> (&str, &str) {
    line.strip_prefix("Tag=").and_then(|rest| rest.split_once(',')).unwrap_or(("", line))
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

/// Adds up the histograms of those intervals of a log that have a tag.
fn of_log(text: &str, wanted: Option<&str>) -> Result<Histogram<u64>, MeasuredError> {
    let mut sums: IndexMap<&str, Histogram<u64>> = IndexMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with(['#', '"'])) {
        let (tag, interval) = tagged(line.trim());
        let encoded = interval.split(',').nth(3).ok_or_else(|| {
            let allowed = "[Tag=NAME,]START,LENGTH,MAX,HISTOGRAM";
            MeasuredError::Histogram(format!("interval log: `{}`; allowed: {allowed}", shortened(line)))
        })?;
        let one = histogram(&decoded(encoded)?)?;
        match sums.get_mut(tag) {
            None => _ = sums.insert(tag, one),
            Some(sum) => {
                sum.auto(true);
                sum.add(&one).map_err(|error| MeasuredError::Histogram(error.to_string()))?;
            }
        }
    }
    let listed = |sums: &IndexMap<&str, Histogram<u64>>| {
        let of = |(tag, sum): (&&str, &Histogram<u64>)| match *tag {
            "" => format!("without a tag ({} latencies)", sum.len()),
            tag => format!("with tag `{tag}` ({} latencies)", sum.len()),
        };
        sums.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    match wanted {
        Some(tag) if sums.contains_key(tag) => {}
        Some(tag) => {
            let help = did_you_mean(tag, sums.keys().copied());
            let help = help.map_or_else(String::new, |help| format!("; {help}"));
            return Err(MeasuredError::Tags { listed: listed(&sums), help });
        }
        None if sums.len() > 1 => {
            let help = if sums.contains_key("") { ", which is empty for those without one" } else { "" };
            return Err(MeasuredError::Tags { listed: listed(&sums), help: help.to_owned() });
        }
        None => {}
    }
    let chosen = wanted.or_else(|| sums.keys().next().copied());
    chosen.and_then(|tag| sums.swap_remove(tag)).ok_or_else(|| LawError::Empty.into())
}

/// Returns the beginning of a line, for a message.
fn shortened(line: &str) -> String {
    if line.chars().count() <= 60 {
        line.to_owned()
    } else {
        line.chars().take(57).chain("...".chars()).collect()
    }
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

/// Reads the table of percentiles behind so many lines; in the output of a program it ends with its summary, whose
/// lines begin with `#[`.
fn of_percentiles(
    text: &str,
    above: usize,
    unit: Unit,
    suspect: Vec<String>,
) -> Result<Measured, MeasuredError> {
    let us = unit.us();
    let mut rows: Vec<(f64, u64)> = Vec::new();
    for (number, line) in (1..).zip(text.lines()).skip(above) {
        let first = line.trim_start();
        if above > 0 && first.starts_with("#[") {
            break;
        }
        if first.is_empty() || first.starts_with('#') || first.starts_with("Value") {
            continue;
        }
        let cells: Vec<&str> = line.split_whitespace().collect();
        let value = cells.first().and_then(|cell| cell.parse::<f64>().ok()).filter(|value| value.is_finite());
        let count = cells.get(2).and_then(|cell| cell.parse::<u64>().ok());
        let row = value.zip(count).filter(|(value, count)| {
            *count > 0 && rows.last().is_none_or(|last| last.0 <= *value && last.1 <= *count)
        });
        rows.push(row.ok_or_else(|| MeasuredError::Percentiles { line: number, text: shortened(line) })?);
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
