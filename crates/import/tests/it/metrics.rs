//! Rates from the answer to a range query of Prometheus.

use std::fs;
use std::path::{Path, PathBuf};

use plimsoll_import::Remark::{Assumed, Found, Ignored};
use plimsoll_import::metrics::{MetricSettings, RateDirection, read};

use crate::found_text::{notes, of};

fn file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files/query-range.json")
}

#[test]
fn counters_of_interfaces_become_rates_of_hosts() {
    // web-1: (7.5 + 7.5) MB and 15 MB in 60 s each; db-1: 6 MB, and 7.5 MB after a restart.
    let found = read(&file(), &MetricSettings::default()).unwrap();
    let expected = "db-1 web-1 over 120s\n\
                    traffic 0 sends 900000 receives 2500000 bit/s\n\
                    traffic 1 sends 2000000 receives ? bit/s\n";
    assert_eq!(of(&found), expected);
    let by_tier = MetricSettings { class_label: Some("tier".to_owned()), ..MetricSettings::default() };
    let found = read(&file(), &by_tier).unwrap();
    let expected = "db-1 web-1 over 120s\n\
                    back 0 sends 900000 receives 2500000 bit/s\n\
                    front 1 sends 2000000 receives ? bit/s\n";
    assert_eq!(of(&found), expected);
    assert_eq!(
        notes(&found, Found),
        [
            "4 series of counters, of which rates are taken",
            "class back: 0.900 Mb/s on average, 0.800 Mb/s .. 1.000 Mb/s in 2 steps; variation within a step is not \
             known",
            "class front: 2.000 Mb/s on average, 2.000 Mb/s .. 2.000 Mb/s in 2 steps; variation within a step is not \
             known",
        ]
    );
    assert_eq!(
        notes(&found, Ignored),
        ["1 series of interfaces that carry no packets of the network, or those of another interface: lo",]
    );
    assert_eq!(notes(&found, Assumed)[0], "a counter became smaller 1 time: it restarted from 0");
}

#[test]
fn a_direction_can_be_given() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rates.json");
    // As of `rate(...)`, which leaves the name out.
    let text = r#"{"status":"success","data":{"resultType":"matrix","result":[
        {"metric":{"host":"a"},"values":[[0,"1000"],[60,"3000"]]}]}}"#;
    fs::write(&path, text).unwrap();
    let settings = MetricSettings { host_label: "host".to_owned(), ..MetricSettings::default() };
    let error = read(&path, &settings).unwrap_err().to_string();
    assert!(
        error.ends_with("does not say its direction: expected --direction transmit or receive"),
        "{error}"
    );
    let receive = MetricSettings { direction: Some(RateDirection::Receive), ..settings };
    assert_eq!(of(&read(&path, &receive).unwrap()), "a over 60s\ntraffic 0 sends ? receives 16000 bit/s\n");
    let bits = MetricSettings { bits: true, ..receive };
    assert_eq!(of(&read(&path, &bits).unwrap()), "a over 60s\ntraffic 0 sends ? receives 2000 bit/s\n");
}

#[test]
fn errors_name_the_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("answer.json");
    let series = |series: &str| {
        format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":[{series}]}}}}"#)
    };
    let cases = [
        ("{".to_owned(), "no answer of Prometheus: EOF while parsing"),
        (r#"{"status":"error","error":"out of bounds"}"#.to_owned(), "the query failed: out of bounds"),
        (
            r#"{"status":"success","data":{"resultType":"vector","result":[]}}"#.to_owned(),
            "the answer is a vector: expected a matrix: ask /api/v1/query_range",
        ),
        (series(""), "no series with values"),
        (
            series(r#"{"metric":{"instanc":"a"},"values":[]}"#),
            "series 0: no label \"instance\" (did you mean `instanc`?): expected one of instanc",
        ),
        (
            series(r#"{"metric":{"__name__":"transmit","instance":"a"},"values":[[1,"x"]]}"#),
            "series 0: invalid value \"x\": expected times",
        ),
        (
            series(r#"{"metric":{"__name__":"transmit","instance":"a"},"values":[[1,"5"]]}"#),
            "all values are of one time, so there is no length of time for a run: expected two times or more",
        ),
        (
            series(r#"{"metric":{"__name__":"transmit","instance":"a"},"values":[[1,"0"],[2,"0"]]}"#),
            "no host has traffic: expected rates above 0",
        ),
    ];
    for (text, expected) in cases {
        fs::write(&path, &text).unwrap();
        let error = read(&path, &MetricSettings::default()).unwrap_err().to_string();
        let error = error.replace(&format!("{}: ", path.display()), "");
        assert!(error.starts_with(expected), "{error}");
    }
}
