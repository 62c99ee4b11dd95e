//! Names may contain anything, but none controls a terminal, hides on a page, or begins a formula in a spreadsheet.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Place, Ran};
use plimsoll_text::is_hidden;

/// The sequences are: a terminal's title, a colour, its form in C1, and bidirectional marks.
const HOSTILE: &str =
    "=cmd|' /C calc'!A0 \u{1b}]0;title\u{7}\u{1b}[31m\u{9b}32m\u{202e}\u{2066}\u{200f}\u{61c}\r\u{7f} end";

/// Returns the sequences as TOML writes them.
fn toml(number: usize) -> String {
    let escaped: String = HOSTILE
        .chars()
        .map(|c| if is_hidden(c) { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() })
        .collect();
    format!("\"{escaped}{number}\"")
}

/// Returns a scenario with a hostile name wherever a name is allowed.
fn scenario() -> String {
    let [title, description, host0, host1, variant0, variant1, queue, slo] = std::array::from_fn(toml);
    format!(
        r#"
version = 1
title = {title}
description = {description}
[run]
duration = "20ms"
[topology]
kind = "file"
path = {graph}
[port.switch]
buffer = "100 packets"
[observe]
links = true
goodput_every = "1ms"
flow_series = "1ms"
packets = 50
[observe.queue.{queue}]
port = {host0}
every = "1ms"
[workload.small]
kind = "rpc"
client = {host0}
servers = [{host1}]
request = "100B"
response = "1KB"
load = 0.2
[[fault]]
from = {host1}
to = {switch}
at = "5ms"
until = "6ms"
down = true
[variant.{variant0}]
transport.kind = "tcp"
[variant.{variant1}]
transport.kind = "dctcp"
[sweep]
"workload.small.load" = [0.1, 0.2]
[slo]
{slo} = "p99(small) < 1ms"
[files.{graph}]
text = '''
hosts = [{host0}, {host1}]
switches = [{switch}]
[[link]]
from = {host0}
to = {switch}
rate = "1Gbps"
delay = "1us"
[[link]]
from = {host1}
to = {switch}
rate = "1Gbps"
delay = "1us"
'''
"#,
        graph = toml(8),
        switch = toml(9),
    )
}

#[track_caller]
fn assert_clean(what: &str, text: &str) {
    // Texts of several lines contain line breaks and tabs.
    let hidden = text.char_indices().find(|(_, c)| is_hidden(*c) && *c != '\n' && *c != '\t');
    if let Some((at, c)) = hidden {
        let near: String = text[..at].chars().rev().take(60).collect::<Vec<_>>().into_iter().rev().collect();
        panic!("{what} has a raw {c:?} after {near:?}");
    }
}

#[track_caller]
fn assert_no_formula(what: &str, csv: &str) {
    for line in csv.lines() {
        // The names of this test contain no commas and no quotes.
        for cell in line.split(',') {
            let cell = cell.trim_start_matches('"');
            let begins = cell.starts_with(['=', '+', '-', '@', '\t', '\r']);
            assert!(!begins || cell.parse::<f64>().is_ok(), "{what}: {cell:?}");
        }
    }
}

fn clean(ran: Ran) -> Ran {
    assert_clean("stdout", &ran.stdout);
    assert_clean("stderr", &ran.stderr);
    ran
}

fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { files.extend(files_below(&path)) } else { files.push(path) }
    }
    files
}

#[test]
fn hostile_names_come_out_harmless_in_every_form() {
    let place = Place::new();
    let file = format!("{}.toml", HOSTILE.replace('/', "-"));
    place.write(&file, &scenario());
    let out = format!("{}.run", HOSTILE.replace('/', "-"));
    let run = ["run", &file, "--out", &out, "--perfetto"];
    clean(place.plimsoll(&run)).ends_with(0).prints("\\u{1b}]0;title").says("\\u{1b}]0;title");
    for format in ["table", "json", "csv", "md"] {
        let ran =
            clean(place.plimsoll(&[&run[..], &["--format", format, "--verbose"]].concat())).ends_with(0);
        if format == "csv" {
            assert_no_formula(format, &ran.stdout);
            assert!(ran.stdout.contains("'=cmd"), "{}", ran.stdout);
        }
        let ran = clean(place.plimsoll(&["compare", &out, &out, "--format", format]));
        if format == "csv" && ran.code == Some(0) {
            assert_no_formula(format, &ran.stdout);
        }
    }
    let mut kinds = std::collections::BTreeSet::new();
    for path in files_below(&place.path(&out)) {
        let extension = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        let Ok(text) = fs::read_to_string(&path) else { continue };
        let what = path.file_name().unwrap().to_string_lossy().into_owned();
        // The text of this file is the author's own, as TOML allows it.
        if what != "scenario.toml" {
            assert_clean(&what, &text);
        }
        if extension == "csv" {
            assert_no_formula(&what, &text);
        }
        kinds.insert(extension);
    }
    for kind in ["csv", "html", "json", "md"] {
        assert!(kinds.contains(kind), "{kind} in {kinds:?}");
    }
    clean(place.plimsoll(&["scenario", "check", &file])).ends_with(0);
    clean(place.plimsoll(&["scenario", "show", &file])).ends_with(0);
    clean(place.plimsoll(&[&run[..], &["--list"]].concat())).ends_with(0);
    // The output of a merge and errors quote names of the file, of its folder, and of the command line.
    clean(place.plimsoll(&["merge", "merged", &out])).ends_with(0);
    clean(place.plimsoll(&[&run[..], &["--variant", HOSTILE]].concat())).ends_with(2);
    clean(place.plimsoll(&[&run[..], &["--set", &format!("workload.{HOSTILE}=1")]].concat())).ends_with(2);
    clean(place.plimsoll(&["run", &format!("{HOSTILE}.none")])).ends_with(2);
    clean(place.plimsoll(&["compare", HOSTILE, HOSTILE])).ends_with(2);
    for (from, to) in [
        ("client = ", "clientele = "),
        ("kind = \"rpc\"", "kind = \"rpc\\u001b[31m\\u202e\""),
        ("port = ", "port = \"tier:\\u001b[31m\" # "),
        ("duration = \"20ms\"", "duration = \"20\\u001b[31mms\""),
        ("version = 1", "version = 1 \u{1b}[31m\u{202e}"),
        ("at = \"5ms\"", "at = \"5ms\"\nfrom = \"\\u009b1m\""),
    ] {
        place.write("bad.toml", &scenario().replacen(from, to, 1));
        let ran = clean(place.plimsoll(&["run", "bad.toml"]));
        assert_eq!(ran.code, Some(2), "{to}");
    }
}

#[test]
fn hostile_lines_are_harmless() {
    let place = Place::new();
    let scenario = scenario().replace("[sweep]\n\"workload.small.load\" = [0.1, 0.2]\n", "");
    place.write("t.toml", &scenario);
    let line = ["line", "t.toml", "--out", "out", "--precision", "50%", "--replicates-max", "2"];
    // Two runs decide nothing, which is a finding.
    for format in ["table", "json", "csv", "md"] {
        let ran = clean(place.plimsoll(&[&line[..], &["--format", format]].concat())).ends_with(1);
        if format == "csv" {
            assert_no_formula(format, &ran.stdout);
        }
    }
    for name in ["out/report.html", "out/lines.json", "out/manifest.json"] {
        assert_clean(name, &place.read(name));
    }
}

/// A stranger's run directory is shown, but its JSON cannot control the terminal.
#[test]
fn names_from_a_run_directory_are_harmless() {
    let place = Place::new();
    place.write("t.toml", &scenario());
    clean(place.plimsoll(&["run", "t.toml", "--out", "out"])).ends_with(0);
    let path = place.path("out/manifest.json");
    let text = fs::read_to_string(&path).unwrap();
    // The file is damaged on purpose: the error that quotes it is escaped.
    fs::write(&path, text.replacen("\"title\": \"", "\"title\": \"\u{1b}[31m\u{202e}", 1)).unwrap();
    clean(place.plimsoll(&["compare", "out", "out"])).ends_with(2);
    // A manifest without a checksum is of an earlier format, which anybody can write.
    let mut json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let json = json.as_object_mut().unwrap();
    json.remove("checksum");
    json.insert("format".into(), 2.into());
    json.insert("command".into(), HOSTILE.into());
    json.insert("warnings".into(), serde_json::json!([HOSTILE]));
    fs::write(&path, serde_json::to_string(json).unwrap()).unwrap();
    for format in ["table", "json", "csv", "md"] {
        clean(place.plimsoll(&["compare", "out", "out", "--format", format]));
    }
    clean(place.plimsoll(&["merge", "merged", "out"]));
    clean(place.plimsoll(&["export", "hpcc-fct", "out"]));
}
