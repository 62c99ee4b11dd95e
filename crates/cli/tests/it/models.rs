//! Tests `plimsoll model` on measurements in files and run directories; crates/models tests formats and formulas.
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::common::{Place, QUICKSTART};

/// An interval log as `chronos-load run --hdr` writes it: 200 latencies each of 80, 90, 100, 120 and 300 us, in ns.
pub const LOG: &str = "#latencies in nanoseconds\n#[MaxValueDivisor: 1000000.000]\n0.000,1.000,0.300,\
    HISTFAAAADx4nC2IUQkAIAxEpycYwH3axVBWMMDALCYwkBaQCc6Dew9ebj0REZMN3+4xqpZtYVbB8PYVBIcFF/+TDBo=\n";

#[test]
fn a_log_is_read_and_a_suspect_one_is_a_warning() {
    let place = Place::new();
    place.write("get.hlog", &format!("#[SUSPECT: the generator waited]\n{LOG}"));
    let ran = place.plimsoll(&["model", "fanout", "--from", "get.hlog", "--servers", "1,2"]).ends_with(0);
    let ran = ran.says("warning: get.hlog is marked SUSPECT: the generator waited");
    ran.prints("one request   p50 100.03 us").prints("1000 latencies").prints("above 99.0000 %");
    let csv = place.plimsoll(&["model", "hedge", "--from", "get.hlog", "--at", "80%", "--format", "csv"]);
    // The fifth that takes 300 us gets a copy after 120 us, four fifths of which take 80 to 120 us.
    let csv = csv.ends_with(0);
    let cells: Vec<f64> =
        csv.stdout.lines().nth(1).unwrap().split(',').map(|cell| cell.parse().unwrap()).collect();
    let [by_then, after, mean, .., load] = cells[..] else { panic!("{cells:?}") };
    assert!(
        (by_then - 0.8).abs() < 1e-9 && (after - 120.0).abs() < 0.1 && (load - 1.2).abs() < 1e-9,
        "{cells:?}"
    );
    let expected = 0.2 * (80.0 + 90.0 + 100.0 + 120.0) + 0.2 * 0.2 * (200.0 + 210.0 + 220.0 + 240.0 + 300.0);
    assert!((mean - expected).abs() < 0.2, "{mean} {expected}");
}

#[test]
fn a_run_directory_is_read_by_point_and_workload() {
    let place = Place::new();
    let quick =
        ["--set", "run.duration=0.3s", "--set", "run.warmup=0s", "--replicates", "1", "--out", "run", "-q"];
    place.plimsoll(&[&["run", QUICKSTART], &quick[..]].concat()).ends_with(0);
    let model = |more: &[&str]| place.plimsoll(&[&["model", "page", "--from", "run"], more].concat());
    model(&[]).ends_with(2).says("name one with --point: `DCTCP`; `HULL`; `TCP`");
    model(&["--point", "HULL"]).ends_with(2).says("name one with --workload: `small`; `background`");
    model(&["--point", "HUL", "--workload", "small"]).ends_with(2).says("did you mean `HULL`?");
    model(&["--point", "HULL", "--workload", "smal"]).ends_with(2).says("did you mean `small`?");
    model(&["--point", "HULL", "--unit", "ns"]).ends_with(2).says("cannot be used with");
    model(&["--unit", "ns"]).ends_with(2).says("a run directory has neither --unit nor --column");
    let point = ["--point", "HULL", "--workload", "small", "--format", "json"];
    let json = model(&[&point[..], &["--retrievals", "1"]].concat()).ends_with(0).json();
    let of_page = json[0]["p50_ms"].as_f64().unwrap();
    let summary = place.summary("run");
    let text = summary.to_string();
    assert!(of_page > 0.01 && of_page < 1.0, "{of_page}: {}", &text[..text.len().min(500)]);
}

/// The same requests, as they were measured and corrected for coordinated omission.
#[test]
fn the_tags_of_a_log_are_not_added_up() {
    let place = Place::new();
    place.write("get.hlog", include_str!("../../../models/src/measured/cases/two-tags.hlog"));
    let model = |more: &[&str]| {
        let words = ["model", "fanout", "--from", "get.hlog", "--servers", "1"];
        place.plimsoll(&[&words[..], more].concat())
    };
    let tags = "with tag `raw` (1000 in all), with tag `co-fixed` (1000 in all)";
    model(&[]).ends_with(2).says(tags).prints_nothing();
    model(&["--tag", "co-fix"]).ends_with(2).says("did you mean `co-fixed`?").prints_nothing();
    model(&["--tag", "raw"]).ends_with(0).prints("1000 latencies");
    model(&["--tag", "co-fixed"]).ends_with(0).prints("1000 latencies");
}

#[test]
fn bad_files_are_named_with_what_is_allowed() {
    let place = Place::new();
    place.write("bad.csv", "us\n10\nfast\n");
    place.write("bad.hlog", "0.000,1.000,0.300,HISTFAAA\n");
    place.write("get.csv", "10\n20\n");
    let fails = |words: &[&str], part: &str| {
        place.plimsoll(&[&["model", "fanout"], words].concat()).ends_with(2).says(part).prints_nothing();
    };
    fails(
        &["--from", "bad.csv"],
        "--from bad.csv: line 3: `fast`; allowed: a latency, 0 or more, on each line",
    );
    fails(&["--from", "bad.hlog"], "--from bad.hlog: no histogram in HdrHistogram's V1 or V2 format");
    fails(&["--from", "none.csv"], "--from: cannot read none.csv");
    fails(&["--from", "get.csv", "--workload", "small"], "only a run directory has workloads and points");
    fails(&["--from", "get.csv", "--mean", "3us"], "cannot be used with");
    fails(&["--unit", "ns"], "--from <FILE>");
}
