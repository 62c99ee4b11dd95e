use base64::Engine as _;
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

fn median(measured: &MeasuredLatencies) -> f64 {
    Law::Empirical(measured.distribution.clone()).quantile(0.5)
}

#[test]
fn histograms_are_read_in_all_their_forms() {
    let (mut plain, mut compressed) = (Vec::new(), Vec::new());
    V2Serializer::new().serialize(&thousand(), &mut plain).expect("it is written");
    V2DeflateSerializer::new().serialize(&thousand(), &mut compressed).expect("it is written");
    let text = base64::engine::general_purpose::STANDARD.encode(&compressed);
    for bytes in [&plain[..], &compressed, text.as_bytes()] {
        let found = read(bytes, Hints::default()).expect("it is a histogram");
        assert_eq!((found.samples, found.suspect.len()), (Some(1_000), 0));
        assert!((median(&found) - 500.0).abs() < 1.0, "{}", median(&found));
    }
    let found = read(&plain, Hints { unit: Some(Unit::Microseconds), ..Hints::default() })
        .expect("it is a histogram");
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
    let found = read(&log, Hints::default()).expect("it is a log");
    assert_eq!((found.samples, found.suspect), (Some(3_000), vec!["the generator waited".to_owned()]));
    // With the line of names that other writers have.
    let text = String::from_utf8(log).expect("it is text");
    let (head, interval) = text.split_at(text.rfind("0.000,").expect("there is an interval"));
    let named = format!("{head}\"StartTimestamp\",\"Interval_Length\",\"Interval_Max\",\"x\"\n{interval}");
    assert!(read(named.as_bytes(), Hints::default()).is_ok_and(|found| found.samples >= Some(1_000)));
}

#[test]
fn percentiles_as_text_are_points() {
    let text = "       Value     Percentile TotalCount 1/(1-Percentile)\n\n  10.0 0.0 1 1.00\n  20.0 0.5 5 2.00\n  \
                40.0 1.0 10\n#[Mean    = 25.0, StdDeviation   = 8.0]\n";
    let found = read(text.as_bytes(), Hints::default()).expect("they are percentiles");
    assert_eq!((median(&found), found.samples), (20.0, Some(10)));
    assert_eq!(Law::Empirical(found.distribution).cdf(30.0), 0.75);
    let in_ms = read(text.as_bytes(), Hints { unit: Some(Unit::Milliseconds), ..Hints::default() })
        .expect("they are percentiles");
    assert_eq!(median(&in_ms), 20_000.0);
}

#[test]
fn a_column_of_many_is_found_by_its_name() {
    let text = "op,latency_us,size\nget,10,100\nset,,7\nget,30,100\n";
    let found = read(text.as_bytes(), Hints { column: Some("latency_us"), ..Hints::default() })
        .expect("there is one");
    assert_eq!((found.samples, median(&found)), (Some(2), 10.0));
    let error = read(text.as_bytes(), Hints { column: Some("latency"), ..Hints::default() })
        .expect_err("there is none")
        .to_string();
    assert_eq!(error, "no column `latency`; allowed: op, latency_us, size");
    let error = read(text.as_bytes(), Hints { column: Some("op"), ..Hints::default() })
        .expect_err("it is text")
        .to_string();
    assert!(error.starts_with("line 2: `get` in column `op`; allowed"), "{error}");
}

#[test]
fn what_has_no_latencies_says_what_is_allowed() {
    for (bytes, part) in [
        (&b"\xff\xfe\x00"[..], "neither text nor a histogram"),
        (b"\x1c\x84\x93\x13xx", "no histogram in HdrHistogram's V1 or V2 format"),
        (b"HISTFAAA!", "no histogram in HdrHistogram's V1 or V2 format"),
        (b"", "there is no latency in it"),
        (b"Value Percentile TotalCount\n5 0.0 3\n4 1.0 4\n", "line 3: `4 1.0 4`; allowed: `VALUE PERCENTILE"),
        (b"1\n2\nfast\n", "line 3: `fast`"),
        (b"1\n2\n-3\n", "line 3: `-3`; allowed: a latency, 0 or more"),
        (b"Value Percentile TotalCount\n-5 0.0 3\n4 1.0 4\n", "line 2: `-5 0.0 3`"),
        (b"{\n  \"suspect\": []\n}\n", "JSON without latencies; allowed: the JSON of memtier_benchmark"),
    ] {
        let error = read(bytes, Hints::default()).expect_err("it has none").to_string();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn a_latency_longer_than_the_run_is_an_error_with_its_line() {
    let of = |bytes: &[u8], column| {
        let hints = Hints { unit: Some(Unit::Milliseconds), column, run_us: Some(2e6), ..Hints::default() };
        read(bytes, hints).map(|found| median(&found)).map_err(|error| error.to_string())
    };
    assert_eq!(of(b"1\n2000\n", None), Ok(1_000.0));
    let rest = "is longer than the run, which takes 2000000 us; allowed: a shorter latency (`--unit` states the unit \
                of the file), or a longer run";
    assert_eq!(of(b"ms\n1\n2001\n", None), Err(format!("line 3: `2001` {rest}")));
    assert_eq!(of(b"1,0.5\n2001,1\n", None), Err(format!("line 2: `2001,1` {rest}")));
    assert_eq!(of(b"op,t\nget,2001\n", Some("t")), Err(format!("line 2: `2001` in column `t` {rest}")));
    let mut bytes = Vec::new();
    V2Serializer::new().serialize(&thousand(), &mut bytes).expect("it is written");
    let said = of(&bytes, None).expect_err("they are ns");
    assert!(said.starts_with("the longest latency, 10") && said.ends_with(rest), "{said}");
    assert_eq!(
        of(b"t,t\n1,2\n", Some("t")),
        Err("2 columns `t`; allowed: one column of that name".to_owned())
    );
}

#[test]
fn lists_have_their_unit() {
    let found = read(b"ms\n1\n2\n3\n", Hints { unit: Some(Unit::Milliseconds), ..Hints::default() })
        .expect("it is a list");
    assert_eq!((median(&found), found.samples), (2_000.0, Some(3)));
    let points = read(b"10,0.5\n20,1\n", Hints::default()).expect("they are points");
    assert_eq!((median(&points), points.samples), (10.0, None));
}

const TWO_TAGS: &str = include_str!("cases/two-tags.hlog");
const WRK2: &str = include_str!("cases/wrk2.txt");

fn tag(tag: &str) -> Hints<'_> {
    Hints { tag: Some(tag), ..Hints::default() }
}

fn p99_us(measured: &MeasuredLatencies) -> f64 {
    Law::Empirical(measured.distribution.clone()).quantile(0.99)
}

/// The same requests, as they were measured and corrected for coordinated omission: two distributions, not one.
#[test]
fn the_tags_of_a_log_are_not_added_up() {
    let error = read(TWO_TAGS.as_bytes(), Hints::default()).expect_err("there are two").to_string();
    assert_eq!(
        error,
        "the file has intervals with tag `raw` (1000 in all), with tag `co-fixed` (1000 in all); choose one with --tag"
    );
    for (name, p99) in [("raw", 1_000.0), ("co-fixed", 400_000.0)] {
        let found = read(TWO_TAGS.as_bytes(), tag(name)).expect("there is one");
        assert_eq!(found.samples, Some(1_000));
        assert!((p99_us(&found) / p99 - 1.0).abs() < 5e-3, "{name}: {}", p99_us(&found));
    }
    let error = read(TWO_TAGS.as_bytes(), tag("co-fix")).expect_err("there is none").to_string();
    assert!(error.ends_with("with --tag; did you mean `co-fixed`?"), "{error}");
    // One tag alone needs no choice, and intervals without a tag have the empty one.
    let one: String =
        TWO_TAGS.lines().filter(|line| !line.starts_with("Tag=raw")).map(|l| l.to_owned() + "\n").collect();
    assert!(
        (p99_us(&read(one.as_bytes(), Hints::default()).expect("one tag")) / 400_000.0 - 1.0).abs() < 5e-3
    );
    let mixed = TWO_TAGS.replace("Tag=raw,", "");
    assert!(read(mixed.as_bytes(), Hints::default()).is_err());
    assert_eq!(read(mixed.as_bytes(), tag("")).expect("there is one").samples, Some(1_000));
    assert!(read(b"10\n20\n", tag("raw")).expect_err("a list").to_string().contains("only interval logs"));
}

#[test]
fn the_whole_output_of_wrk2_is_read_in_its_unit() {
    for hints in [Hints::default(), Hints { unit: Some(Unit::Milliseconds), ..Hints::default() }] {
        let found = read(WRK2.as_bytes(), hints).expect("there is a table");
        assert_eq!((median(&found), p99_us(&found), found.samples), (3_000.0, 8_000.0, Some(1_000)));
    }
    let seconds = read(WRK2.as_bytes(), Hints { unit: Some(Unit::Seconds), ..Hints::default() });
    assert_eq!(median(&seconds.expect("there is a table")), 3e6);
    let table = &WRK2[WRK2.find("       Value").expect("a head")..];
    let error = read(format!("{WRK2}{table}").as_bytes(), Hints::default()).expect_err("two tables");
    assert!(error.to_string().starts_with("2 tables of percentiles"), "{error}");
    let broken = WRK2.replace("0.900000          900", "0.900000          9x0");
    let error = read(broken.as_bytes(), Hints::default()).expect_err("a bad row").to_string();
    assert!(error.starts_with("line 17: `"), "{error}");
}
