//! Distributions as HdrHistogram writes them: one histogram, an interval log of several, or percentiles as text.
//!
//! A histogram is in the V1 or V2 format, compressed or not. V1 differs in its counts, which have a fixed width; they
//! are written anew as V2 has them, zigzag numbers of 7 bits a byte, for the library that reads V2.

use std::io::Read as _;

use base64::Engine as _;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use indexmap::IndexMap;
use plimsoll_text::shortened;
use plimsoll_text::spelling::did_you_mean;

/// The reasons why a text or bytes are no distribution of HdrHistogram.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HdrError {
    /// It begins like a histogram and is not one.
    #[error("no histogram in HdrHistogram's V1 or V2 format: {0}")]
    Histogram(String),
    /// The intervals of a log have several tags, or lack the requested one.
    #[error("the log has intervals {listed}")]
    Tags {
        /// The tags and how many latencies each has.
        listed: String,
        /// The nearest spelling, if a tag was requested.
        help: String,
    },
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
    /// The histogram has no counts, or the log no intervals.
    #[error("the histogram has no latencies")]
    Empty,
}

/// The upper three bytes of the cookie of every format.
const COOKIE: [u8; 3] = [0x1c, 0x84, 0x93];

/// The lower four bits of the cookie of a V1 histogram, as it is and compressed; the bits above are the bytes a count.
const V1: u8 = 1;
const V1_COMPRESSED: u8 = 2;

/// The first four bytes of an uncompressed V2 histogram.
const V2_COOKIE: [u8; 4] = [COOKIE[0], COOKIE[1], COOKIE[2], 0x13];

/// Bytes of a V1 or V2 histogram before its counts: cookie, length of the counts, and 32 bytes of settings.
const HEADER: usize = 40;

/// The longest V1 histogram, inflated: 9 digits over the whole range have fewer counts.
const INFLATED_MAX: u64 = 64 << 20;

/// Returns whether bytes begin like an encoded histogram of the V1 or V2 format, compressed or not.
pub fn is_histogram(bytes: &[u8]) -> bool {
    bytes.strip_prefix(&COOKIE).and_then(<[u8]>::first).is_some_and(|last| (1..=4).contains(&(last & 15)))
}

/// Returns whether text begins like an encoded histogram in base64.
pub fn is_base64(text: &str) -> bool {
    text.starts_with("HIST")
}

/// Returns whether a text is an interval log: a line of its names, or an interval, with or without a tag.
pub fn is_log(text: &str) -> bool {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#'));
    lines.next().is_some_and(|line| {
        let (_, interval) = tagged(line.trim());
        line.starts_with("\"StartTimestamp\"") || interval.split(',').nth(3).is_some_and(is_base64)
    })
}

/// Returns whether a line is the head of a table of percentiles.
pub fn is_head_of_percentiles(line: &str) -> bool {
    line.split_whitespace().take(3).eq(["Value", "Percentile", "TotalCount"])
}

/// Splits the tag of an interval, empty if it has none, from the rest of its line.
fn tagged(line: &str) -> (&str, &str) {
    line.strip_prefix("Tag=").and_then(|rest| rest.split_once(',')).unwrap_or(("", line))
}

/// Returns the values of a histogram that were counted, ascending, with their counts.
pub fn counts(histogram: &Histogram<u64>) -> impl Iterator<Item = (u64, u64)> + '_ {
    histogram.iter_recorded().map(|step| (step.value_iterated_to(), step.count_since_last_iteration()))
}

/// Decodes a histogram of the V1 or V2 format, compressed or not.
///
/// # Errors
/// Fails if the bytes are none.
pub fn histogram(bytes: &[u8]) -> Result<Histogram<u64>, HdrError> {
    let as_v2;
    let mut bytes = match bytes.get(3).map(|last| last & 15) {
        Some(V1) => {
            as_v2 = of_v1(bytes)?;
            &as_v2[..]
        }
        Some(V1_COMPRESSED) => {
            let mut inflated = Vec::new();
            let inflater = ZlibDecoder::new(bytes.get(8..).unwrap_or_default());
            inflater
                .take(INFLATED_MAX)
                .read_to_end(&mut inflated)
                .map_err(|error| HdrError::Histogram(error.to_string()))?;
            as_v2 = of_v1(&inflated)?;
            &as_v2[..]
        }
        _ => bytes,
    };
    Deserializer::new().deserialize(&mut bytes).map_err(|error| HdrError::Histogram(error.to_string()))
}

/// Writes a V1 histogram as one of the V2 format.
fn of_v1(bytes: &[u8]) -> Result<Vec<u8>, HdrError> {
    let wrong = |what: &str| HdrError::Histogram(what.to_owned());
    let (header, counts) = bytes.split_at_checked(HEADER).ok_or_else(|| wrong("it is cut"))?;
    let width = usize::from(header[3] >> 4 & 0xe);
    if !header.starts_with(&COOKIE) || header[3] & 15 != V1 || ![2, 4, 8].contains(&width) {
        return Err(wrong("its cookie is not known"));
    }
    let length = u32::from_be_bytes([header[4], header[5], header[6], header[7]]) as usize;
    let counts = counts.get(..length).ok_or_else(|| wrong("it is cut"))?;
    let mut written = Vec::with_capacity(HEADER + length);
    for count in counts.chunks_exact(width) {
        let count = count.iter().fold(0u64, |count, byte| count << 8 | u64::from(*byte));
        let mut zigzag = count.checked_mul(2).ok_or_else(|| wrong("a count is negative"))?;
        while zigzag > 0x7f {
            written.push(zigzag as u8 | 0x80);
            zigzag >>= 7;
        }
        written.push(zigzag as u8);
    }
    let length = u32::try_from(written.len()).map_err(|_| wrong("it is too long"))?;
    Ok([&V2_COOKIE[..], &length.to_be_bytes(), &header[8..], &written].concat())
}

/// Decodes a histogram in base64.
///
/// # Errors
/// Fails if the text is none.
pub fn of_base64(text: &str) -> Result<Histogram<u64>, HdrError> {
    let decoded = base64::engine::general_purpose::STANDARD.decode(text.trim());
    histogram(&decoded.map_err(|error| HdrError::Histogram(error.to_string()))?)
}

/// Adds up the histograms of the intervals of a log that have the tag; of all, where there is one tag or none.
///
/// # Errors
/// Fails if an interval is invalid, or if there are several tags and none of them is wanted.
pub fn of_log(text: &str, wanted: Option<&str>) -> Result<Histogram<u64>, HdrError> {
    let mut sums: IndexMap<&str, Histogram<u64>> = IndexMap::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with(['#', '"'])) {
        let (tag, interval) = tagged(line.trim());
        let encoded = interval.split(',').nth(3).ok_or_else(|| {
            let allowed = "[Tag=NAME,]START,LENGTH,MAX,HISTOGRAM";
            HdrError::Histogram(format!("interval log: `{}`; allowed: {allowed}", shortened(line, 60)))
        })?;
        let one = of_base64(encoded)?;
        match sums.get_mut(tag) {
            None => _ = sums.insert(tag, one),
            Some(sum) => {
                sum.auto(true);
                sum.add(&one).map_err(|error| HdrError::Histogram(error.to_string()))?;
            }
        }
    }
    let listed = |sums: &IndexMap<&str, Histogram<u64>>| {
        let of = |(tag, sum): (&&str, &Histogram<u64>)| match *tag {
            "" => format!("without a tag ({} in all)", sum.len()),
            tag => format!("with tag `{tag}` ({} in all)", sum.len()),
        };
        sums.iter().map(of).collect::<Vec<_>>().join(", ")
    };
    match wanted {
        Some(tag) if sums.contains_key(tag) => {}
        Some(tag) => {
            let help = did_you_mean(tag, sums.keys().copied());
            let help = help.map_or_else(String::new, |help| format!("; {help}"));
            return Err(HdrError::Tags { listed: listed(&sums), help });
        }
        None if sums.len() > 1 => {
            let help = if sums.contains_key("") { ", which is empty for those without one" } else { "" };
            return Err(HdrError::Tags { listed: listed(&sums), help: help.to_owned() });
        }
        None => {}
    }
    let chosen = wanted.or_else(|| sums.keys().next().copied());
    chosen.and_then(|tag| sums.swap_remove(tag)).ok_or(HdrError::Empty)
}

/// Parses the table of percentiles behind `above` lines, as values and the number of values not above each. In the
/// output of a program it ends with a summary, whose lines begin with `#[`.
///
/// # Errors
/// Fails if a line does not belong to the table, or if the table is missing.
pub fn percentiles(text: &str, above: usize) -> Result<Vec<(f64, u64)>, HdrError> {
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
        let value = cells.first().and_then(|cell| cell.parse::<f64>().ok());
        let value = value.filter(|value| value.is_finite() && *value >= 0.0);
        let count = cells.get(2).and_then(|cell| cell.parse::<u64>().ok());
        let row = value.zip(count).filter(|(value, count)| {
            *count > 0 && rows.last().is_none_or(|last| last.0 <= *value && last.1 <= *count)
        });
        rows.push(
            row.ok_or_else(|| HdrError::Percentiles {
                line: number,
                text: shortened(line, 60).into_owned(),
            })?,
        );
    }
    if rows.is_empty() { Err(HdrError::Empty) } else { Ok(rows) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A histogram of the V1 format with 2 bytes a count, compressed, of another library's tests. Its contents were
    /// read from its bytes by the rule of the format: 724 values of 0 to 170 units of 16,384, each given by its upper
    /// end.
    const OF_V1: &str = "HISTIgAAAFd42pNpmazIwMAYxgABTBDKT4GBgdnNYMcCBvsPUBkeBkYGZqA8MwMbAzsDC5DFBCTZgJCDQY1Bjk\
                         GLQZRBlUEPCB8zWDCYMxgDZZkZhgJgHDibAY8JB/A=";

    #[test]
    fn counts_of_the_v1_format_are_read() {
        let found = of_base64(OF_V1).unwrap();
        let counted: Vec<(u64, u64)> = counts(&found).collect();
        assert_eq!(counted.iter().map(|(_, count)| count).sum::<u64>(), 724);
        let units: Vec<(u64, u64)> = counted.iter().map(|(value, count)| (value >> 14, *count)).collect();
        assert_eq!((units[0], units[1], units[2]), ((0, 12), (1, 1), (2, 3)));
        assert_eq!(units[units.len() - 3..], [(26, 3), (109, 1), (170, 1)]);
        assert_eq!(counted[0].0, 16_383);
    }

    #[test]
    fn a_distribution_may_be_a_histogram() {
        use crate::cdf::CdfTable;
        use crate::distribution::{DrawnQuantity as _, Interpolate};
        use plimsoll_units::{Bytes, Span};

        let log = format!("#[StartTime: 0]\n0.0,1.0,0.1,{OF_V1}\n1.0,1.0,0.1,{OF_V1}\n");
        let percentiles = "Value Percentile TotalCount 1/(1-Percentile)\n10.0 0.5 5 2.0\n20.0 1.0 10 inf\n";
        let chosen = |name: &str, tag: Option<&str>, text: &str| {
            CdfTable::open(name, tag, &|_| Ok(text.to_owned()), Span::COLUMNS)
        };
        let open = |name: &str, text: &str| chosen(name, None, text);
        let read = open("get.hlog", &log).unwrap();
        assert_eq!(read.interpolate(), Interpolate::Step);
        // In ps, with shares that rise to 1.
        assert_eq!(read.points().first(), Some(&(16_383_000.0, 12.0 / 724.0)));
        assert_eq!(read.points().last(), Some(&((171.0 * 16_384.0 - 1.0) * 1e3, 1.0)));
        assert_eq!(open("a/histogram", OF_V1).unwrap(), read);
        assert_eq!(open("get.hgrm", percentiles).unwrap().points(), [(10e6, 0.5), (20e6, 1.0)]);
        let tagged = format!("Tag=a,0.0,1.0,0.1,{OF_V1}\n0.0,1.0,0.1,{OF_V1}\n");
        let error = open("get.hlog", &tagged).unwrap_err();
        assert!(error.message.contains("with tag `a` (724 in all)"), "{error:?}");
        for tag in ["a", ""] {
            assert_eq!(chosen("get.hlog", Some(tag), &tagged).unwrap(), read, "{tag:?}");
        }
        let error = chosen("get.hlog", Some("b"), &tagged).unwrap_err();
        assert!(error.key == "tag" && error.message.contains("with tag `a`"), "{error:?}");
        for (name, text) in [("get.hgrm", percentiles), ("a.csv", "us,cdf\n1,1\n"), ("websearch", "")] {
            let error = chosen(name, Some("a"), text).unwrap_err();
            assert!(error.key == "tag" && error.message.contains("has no tags"), "{error:?}");
        }
        let error = CdfTable::open("get.hlog", None, &|_| Ok(log.clone()), Bytes::COLUMNS).unwrap_err();
        assert!(error.message.contains("it has times"), "{error:?}");
    }

    #[test]
    fn what_is_cut_or_no_histogram_is_an_error() {
        assert!(matches!(of_base64(&OF_V1[..80]), Err(HdrError::Histogram(_))));
        for text in ["HISTIgAAAFd42g==", "HISTCAAA", "HIST", "HISTI!"] {
            assert!(of_base64(text).is_err(), "{text}");
        }
        let mut bytes = vec![0x1c, 0x84, 0x93, 0x21];
        bytes.resize(HEADER, 0xff);
        assert!(histogram(&bytes).is_err());
    }
}
