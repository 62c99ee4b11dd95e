use hdrhistogram::serialization::interval_log::IntervalLogWriterBuilder;
use hdrhistogram::serialization::{Serializer as _, V2DeflateSerializer, V2Serializer};

use super::*;
use crate::law::Law;

/// Returns a histogram of 1 to 1000 us in ns.
fn thousand() -> Histogram<u64> {
    let mut histogram = Histogram::new(3).expect("3 digits are allowed");
    (1..=1_000).for_each(|us| histogram.record(us * 1_000).expect("it fits"));
    histogram
}

fn median(measured: &Measured) -> f64 {
    Law::Empirical(measured.distribution.clone()).quantile(0.5)
}

#[test]
fn histograms_are_read_in_all_their_forms() {
    let (mut plain, mut compressed) = (Vec::new(), Vec::new());
    V2Serializer::new().serialize(&thousand(), &mut plain).expect("it is written");
    V2DeflateSerializer::new().serialize(&thousand(), &mut compressed).expect("it is written");
    let text = base64::engine::general_purpose::STANDARD.encode(&compressed);
    for bytes in [&plain[..], &compressed, text.as_bytes()] {
        let found = read(bytes, None, None).expect("it is a histogram");
        assert_eq!((found.samples, found.suspect.len()), (Some(1_000), 0));
        assert!((median(&found) - 500.0).abs() < 1.0, "{}", median(&found));
    }
    let found = read(&plain, Some(Unit::Microseconds), None).expect("it is a histogram");
    assert!((median(&found) - 500e3).abs() < 1e3);
}

#[test]
fn the_histograms_of_a_log_add_up() {
    let mut log = b"#[SUSPECT: the generator waited]\n".to_vec();
    let mut serializer = V2DeflateSerializer::new();
    let mut writer = IntervalLogWriterBuilder::new()
        .add_comment("latencies in nanoseconds")
        .begin_log_with(&mut log, &mut serializer)
        .expect("it is written");
    for second in 0..3 {
        let at = std::time::Duration::from_secs(second);
        writer
            .write_histogram(&thousand(), at, std::time::Duration::from_secs(1), None)
            .expect("it is written");
    }
    drop(writer);
    let found = read(&log, None, None).expect("it is a log");
    assert_eq!((found.samples, found.suspect), (Some(3_000), vec!["the generator waited".to_owned()]));
    // With the line of names that other writers have.
    let text = String::from_utf8(log).expect("it is text");
    let (head, interval) = text.split_at(text.rfind("0.000,").expect("there is an interval"));
    let named = format!("{head}\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"x\"\n{interval}");
    assert!(read(named.as_bytes(), None, None).is_ok_and(|found| found.samples >= Some(1_000)));
}

#[test]
fn percentiles_as_text_are_points() {
    let text = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n  10.0 0.0 1 1.00\n  20.0 0.5 5 2.00\n  \
                40.0 1.0 10\n#[Mean    = 25.0, StdDeviation   = 8.0]\n";
    let found = read(text.as_bytes(), None, None).expect("they are percentiles");
    assert_eq!((median(&found), found.samples), (20.0, Some(10)));
    assert_eq!(Law::Empirical(found.distribution).cdf(30.0), 0.75);
    let in_ms = read(text.as_bytes(), Some(Unit::Milliseconds), None).expect("they are percentiles");
    assert_eq!(median(&in_ms), 20_000.0);
}

#[test]
fn a_column_of_many_is_found_by_its_name() {
    let text = "op,latency_us,size\nget,10,100\nset,,7\nget,30,100\n";
    let found = read(text.as_bytes(), None, Some("latency_us")).expect("there is one");
    assert_eq!((found.samples, median(&found)), (Some(2), 10.0));
    let error = read(text.as_bytes(), None, Some("latency")).expect_err("there is none").to_string();
    assert_eq!(error, "no column `latency`; allowed: op, latency_us, size");
    let error = read(text.as_bytes(), None, Some("op")).expect_err("it is text").to_string();
    assert!(error.starts_with("line 2: `get` in column `op`; allowed"), "{error}");
}

#[test]
fn what_has_no_latencies_says_what_is_allowed() {
    for (bytes, part) in [
        (&b"\xff\xfe\x00"[..], "neither text nor a histogram"),
        (b"\x1c\x84\x93\x13xx", "no histogram in HdrHistogram's V2 format"),
        (b"HISTFAAA!", "no histogram in HdrHistogram's V2 format"),
        (b"", "there is no latency in it"),
        (b"Value Percentile TotalCount\n5 0.0 3\n4 1.0 4\n", "line 3: `4 1.0 4`; allowed: `VALUE PERCENTILE"),
        (b"1\n2\nfast\n", "line 3: `fast`"),
        (b"{\n  \"suspect\": []\n}\n", "JSON has no distribution; allowed: a histogram"),
    ] {
        let error = read(bytes, None, None).expect_err("it has none").to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn lists_have_their_unit() {
    let found = read(b"ms\n1\n2\n3\n", Some(Unit::Milliseconds), None).expect("it is a list");
    assert_eq!((median(&found), found.samples), (2_000.0, Some(3)));
    let points = read(b"10,0.5\n20,1\n", None, None).expect("they are points");
    assert_eq!((median(&points), points.samples), (10.0, None));
}
