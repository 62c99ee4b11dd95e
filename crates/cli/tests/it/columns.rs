//! Reads the columns with pandas, Polars and DuckDB, each by the code that columns.md documents.
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::common;

use std::process::Command;

use common::Place;
use plimsoll_results::run_dir::READERS;

/// A scenario with all kinds of records: requests outside a query before those in one; swept values with and without
/// decimals; a queue that is empty for a long time; messages that do not complete; a variant whose name pandas would
/// parse as missing.
const SCENARIO: &str = r#"
version = 1
title = "columns"
[run]
duration = "100ms"
drain = "0s"
[topology]
kind = "rack"
hosts = 4
rate = "1Gbps"
delay = "5us"
[port.switch]
buffer = "100 packets"
[transport]
initial_ssthresh = 16
[workload.small]
kind = "rpc"
request = "100B"
response = "900B"
load = 0.1
[workload.search]
kind = "fan-out"
request = "100B"
response = "2KB"
deadline = "10ms"
queries_per_second = 500
start = "60ms"
[workload.background]
kind = "transfer"
size = "10MB"
load = 0.5
[observe]
flow_series = "1ms"
goodput_every = "1ms"
links = true
queue.client = { port = "client", every = "100us" }
[variant.null]
transport.kind = "tcp"
[variant.DCTCP]
transport.kind = "dctcp"
port.switch.ecn = { threshold = "30KB" }
[sweep]
"workload.background.load" = [1, 0.5]
"#;

/// Returns a column's type: `i`nteger, `f`loat or `t`ext.
fn kind(column: &str) -> char {
    match column {
        "variant" | "workload" | "name" | "port" | "from" | "to" | "tier" => 't',
        "workload.background.load" | "mean_bytes" | "alpha" => 'f',
        _ => 'i',
    }
}

const CHECK: &str = r#"
import sys, glob
def same(found, of):
    for file, column, kind in of:
        if found(file, column) != kind:
            sys.exit(f"{file} {column}: {found(file, column)} instead of {kind}")
"#;

/// The interpreter that has Debian's packages, whichever else is called python3.
const PYTHON: &str = "/usr/bin/python3";

/// Runs Python code on the columns of a run, or reports why not.
fn check(place: &Place, library: &str, lines: &str) {
    let found = Command::new(PYTHON).args(["-c", &format!("import {library}")]).output();
    if !found.is_ok_and(|output| output.status.success()) {
        plimsoll_testing::skipped!("{PYTHON} has no {library}");
        return;
    }
    place.plimsoll(&["run", "columns.toml", "--out", "out", "--quiet"]).ends_with(0);
    let mut expected = String::new();
    for file in ["messages", "queries", "queues", "links", "connections", "series", "goodput"] {
        let folder = common::names(&place.path("out/points"))[0].clone();
        let text = place.read(&format!("out/points/{folder}/{file}.csv"));
        for column in text.lines().next().unwrap().split(',') {
            expected.push_str(&format!("('{file}', '{column}', '{}'),", kind(column)));
        }
    }
    let script = format!("{CHECK}\n{lines}\nsame(found, [{expected}])\n");
    let output = Command::new(PYTHON).arg("-c").arg(&script).current_dir(place.path("out")).output().unwrap();
    assert!(output.status.success(), "{}\n{script}", String::from_utf8_lossy(&output.stderr));
}

fn scenario() -> Place {
    let place = Place::new();
    place.write("columns.toml", SCENARIO);
    place
}

/// Returns the documented code as a function of the file's name.
fn reader(name: &str) -> String {
    READERS.iter().find(|(reader, _)| *reader == name).unwrap().1.replace("messages.csv", "' + file + '.csv")
}

/// Checks both libraries of data frames: `text` is their name of the text type.
fn data_frames(library: &str, name: &str, text: &str, more: &str) {
    let lines = format!(
        r#"
def read_all(file):
{}
    return messages
tables = {{}}
def found(file, column):
    kinds = {{'Int64': 'i', 'Float64': 'f', '{text}': 't'}}
    tables.setdefault(file, read_all(file))
{more}
    return kinds.get(str(tables[file][column].dtype), tables[file][column].dtype)
"#,
        indented(&reader(name))
    );
    check(&scenario(), library, &lines);
}

#[test]
fn pandas_reads_the_columns() {
    let more = r#"
    if file == 'messages':
        assert tables[file]['completed_ps'].isna().any()
        assert set(tables[file]['variant']) == {'null', 'DCTCP'}
"#;
    data_frames("pandas", "pandas", "string", more);
}

#[test]
fn polars_reads_the_columns() {
    data_frames("polars", "Polars", "String", "");
}

#[test]
fn duckdb_reads_the_columns() {
    let lines = format!(
        r#"
import duckdb
def found(file, column):
    kinds = {{'BIGINT': 'i', 'DOUBLE': 'f', 'VARCHAR': 't'}}
    rows = duckdb.sql("describe " + "{}").fetchall()
    kind = dict((row[0], row[1]) for row in rows)[column]
    return kinds.get(kind, kind)
"#,
        READERS[2].1.replace("messages.csv", "\" + file + \".csv")
    );
    check(&scenario(), "duckdb", &lines);
}

fn indented(lines: &str) -> String {
    lines.lines().map(|line| format!("    {line}\n")).collect()
}

#[test]
fn the_guide_shows_the_lines_that_are_tested() {
    let guide = include_str!("../../../../docs/operating.md");
    for (name, lines) in READERS {
        assert!(guide.contains(lines), "{name}: docs/operating.md lacks\n{lines}");
    }
}
