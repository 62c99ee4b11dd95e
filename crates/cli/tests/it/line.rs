//! Tests the load line on the command line.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::process::Stdio;

use crate::common::{Place, wait_until};
use serde_json::Value;

/// A queue whose line is known: M/D/1 with 8 us of service and a mean of 24 us at a load of 0.8.
const QUEUE: &str = r#"
version = 1
title = "M/D/1"
[run]
warmup = "10ms"
[topology]
kind = "dumbbell"
left = 1
right = 1
rate = "1000Gbps"
delay = "0s"
bottleneck_rate = "1Gbps"
[workload.w]
kind = "packets"
from = "h0"
to = "h1"
size = "1000B"
load = "600Mbps"
count = 20000
[slo]
wait = "mean(w) < 24us"
"#;

const LINE: [&str; 8] =
    ["line", "queue.toml", "--within", "200Mbps..950Mbps", "--precision", "10%", "--out", "out"];

fn with<'a>(more: &[&'a str]) -> Vec<&'a str> {
    LINE.iter().copied().chain(more.iter().copied()).collect()
}

fn queue() -> Place {
    let place = Place::new();
    place.write("queue.toml", QUEUE);
    place
}

#[test]
fn a_queue_has_its_line_in_every_form() {
    let place = queue();
    place
        .plimsoll(&LINE)
        .ends_with(0)
        .prints("Load line of workload.w.load")
        .prints("base: meets mean(w) < 24us up to ")
        .prints("the bottleneck is the dumbbell queue")
        .says("base at 600 Mb/s: met")
        .says("Repeat   plimsoll line queue.toml --seed 1 --slo 'mean(w) < 24us' --over workload.w.load --within \
            200Mbps..950Mbps --precision 0.1");
    let page = place.read("out/report.html");
    assert!(page.ends_with("</html>\n"));
    // The loads that were run are points without a line between them.
    assert!(
        page.contains("stroke-linejoin=\"round\" stroke-dasharray")
            && page.contains("mean(w) against the load")
    );
    assert!(
        !page.contains("stroke-linejoin=\"round\"/>"),
        "only the limit and the line itself are drawn as lines"
    );
    let runs = place.read("out/runs.jsonl");
    let json = place.plimsoll(&with(&["--format", "json", "--quiet"])).ends_with(0).json();
    assert_eq!(place.read("out/runs.jsonl"), runs, "nothing is run again");
    let line = &json["variants"][0];
    let of = |key: &str| line[key].as_f64().unwrap();
    assert_eq!(line["found"], Value::from("line"));
    assert!(of("low") < of("load") && of("load") < of("high"), "{line}");
    assert!((of("load") / 0.8e9 - 1.0).abs() < 0.05, "{line}");
    assert!((of("headroom") - of("load") / 0.6e9).abs() < 1e-9);
    assert_eq!(line["today"], Value::from("keeps"));
    assert_eq!(line["part"]["name"], Value::from("the dumbbell queue"));
    assert_eq!(json["slos"][0]["text"], Value::from("mean(w) < 24us"));
    place
        .plimsoll(&with(&["--format", "csv", "--quiet"]))
        .ends_with(0)
        .prints("variant,load,objective,metric,value,low,high,runs\nbase,,mean(w) < 24us,line,");
    place.plimsoll(&with(&["--format", "md", "--quiet"])).ends_with(0).prints("| base | ");
}

#[test]
fn a_search_may_be_of_one_variant_and_its_knee_is_a_figure() {
    let place = Place::new();
    let two = "[variant.alpha]\n[variant.beta]\n";
    place.write("queue.toml", &format!("{QUEUE}{two}"));
    let ran = place.plimsoll(&with(&["--variant", "beta"])).ends_with(0).says("--variant beta");
    assert!(ran.stdout.contains("\nbeta: meets") && !ran.stdout.contains("alpha"), "{}", ran.stdout);
    place.plimsoll(&["figure", "out"]).ends_with(0).prints("knee-0  mean(w) against the load\n");
    place
        .plimsoll(&["figure", "out", "knee-0"])
        .ends_with(0)
        .prints("line of beta: ")
        .prints("mean(w) &lt; 24us");
    place
        .plimsoll(&with(&["--variant", "bet"]))
        .ends_with(2)
        .says("`bet`: expected one of alpha, beta; did you mean `beta`?");
    // The rest follows in the same directory, and repeats nothing.
    let runs = place.read("out/runs.jsonl");
    place.plimsoll(&LINE).ends_with(0).prints("alpha: meets").prints("beta: meets");
    assert!(place.read("out/runs.jsonl").starts_with(&runs));
}

#[test]
fn a_load_above_the_line_is_a_finding() {
    let place = queue();
    place
        .plimsoll(&with(&["--at", "900Mbps"]))
        .ends_with(1)
        .says("a load of 900 Mb/s is above the line of base")
        .prints("today's 900 Mb/s is 1.");
    let place = queue();
    place.plimsoll(&with(&["--at", "300Mbps"])).ends_with(0).prints("% of it");
}

#[test]
fn never_and_always() {
    let place = queue();
    place
        .plimsoll(&with(&["--slo", "mean(w) < 7us"]))
        .ends_with(1)
        .says("no load is known to meet mean(w) < 7us")
        .prints("base: never meets mean(w) < 7us, not even at 200 Mb/s");
    let place = queue();
    place
        .plimsoll(&with(&["--slo", "mean(w) < 10ms"]))
        .ends_with(0)
        .prints("base: always meets mean(w) < 10ms, up to 950 Mb/s");
}

#[test]
fn a_goodput_above_the_link_has_no_line_in_any_form() {
    let place = queue();
    let goodput = ["--slo", "goodput(w) > 2Gbps"];
    let json = place.plimsoll(&with(&[&goodput[..], &["--format", "json"]].concat())).ends_with(1).json();
    let line = &json["variants"][0];
    assert_eq!((&line["found"], &line["load"], &line["low"]), (&"never".into(), &Value::Null, &Value::Null));
    // The lowest load, today's and the highest have four runs each.
    assert_eq!(place.read("out/runs.jsonl").lines().count(), 12);
    place
        .plimsoll(&with(&[&goodput[..], &["--at", "300Mbps"]].concat()))
        .ends_with(1)
        .prints("never meets goodput(w) > 2Gbps: even 950 Mb/s, the highest load tried, offers too little");
    place.plimsoll(&with(&[&goodput[..], &["--format", "csv"]].concat())).ends_with(1).prints(",never,,,");
    assert!(place.read("out/report.html").contains("offers too little"));
}

#[test]
fn what_cannot_be_searched_is_told() {
    let place = queue();
    for (more, words) in [
        (&["--slo", "p99(ww) < 1ms"][..], "--slo: the scenario has no workload `ww`"),
        (&["--slo", "p99(ww) < 1ms"], "\n  p99(ww) < 1ms\n      ^^\n  allowed: w\n  did you mean `w`?"),
        (&["--slo", "q99(w) < 1ms"], "no metric `q99`"),
        (&["--slo", "p99(w) < 1"], "has no unit"),
        (&["--slo", "deadline(w) > 99%"], "the messages of `w` have no deadline"),
        (
            &["--over", "workload.x.load"],
            "`workload.x.load` is no load of the scenario\n  allowed: workload.w.load",
        ),
        (&["--at", "0.5"], "--at: `0.5` is no load for `workload.w.load`; write a rate, such as 200Mbps"),
        (&["--within", "1Gbps..2Mbps"], "are no range"),
        (&["--messages", "1000"], "the scenario has none"),
        (&["--replicates", "3"], "--replicates-max"),
        (&["--precision", "0"], "0.1% to 100%"),
    ] {
        // A flag may be given once.
        let base = ["line", "queue.toml", "--out", "bad"];
        let args: Vec<&str> = base.iter().copied().chain(more.iter().copied()).collect();
        place.plimsoll(&args).ends_with(2).says(words).prints_nothing();
    }
    place.write("none.toml", &QUEUE.replace("[slo]\nwait = \"mean(w) < 24us\"\n", ""));
    place.plimsoll(&["line", "none.toml"]).ends_with(2).says("no objective; give one").prints_nothing();
    place.write("wrong.toml", &QUEUE.replace("\"mean(w) < 24us\"", "24"));
    place.plimsoll(&["line", "wrong.toml"]).ends_with(2).says("--> wrong.toml:").says("a text for each name");
    place.write(
        "two.toml",
        &QUEUE.replace(
            "[slo]",
            "[workload.v]\nkind = \"packets\"\nfrom = \"h0\"\nto = \
        \"h1\"\nsize = \"100B\"\nload = \"1Mbps\"\ncount = 10\n[slo]",
        ),
    );
    place.plimsoll(&["line", "two.toml"]).ends_with(2).says("--over KEY`: workload.w.load, workload.v.load");
}

#[test]
fn a_killed_search_repeats_no_finished_run() {
    let place = queue();
    let mut command = place.command(&with(&["--threads", "1"]));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = || std::fs::read_to_string(place.path("out/runs.jsonl")).unwrap_or_default().lines().count();
    wait_until("a third finished run", || lines() >= 3);
    child.kill().unwrap();
    assert_eq!(child.wait().unwrap().code(), None);
    // A killed process leaves the beginning of a line.
    let kept = place.read("out/runs.jsonl");
    let whole = kept.rfind('\n').map_or(0, |end| end + 1);
    let kept = kept[..whole].to_owned();
    place.write("out/runs.jsonl", &format!("{kept}{{\"variant\":\"ba"));
    let again = place
        .plimsoll(&LINE)
        .ends_with(0)
        .says(&format!("{} runs are finished already", kept.lines().count()));
    assert!(place.read("out/runs.jsonl").starts_with(&kept));
    let mut whole = LINE;
    whole[7] = "whole";
    let once = place.plimsoll(&whole).ends_with(0);
    assert_eq!(again.stdout, once.stdout);
    assert_eq!(place.read("out/lines.json"), place.read("whole/lines.json"));
    assert_eq!(place.read("out/report.html"), place.read("whole/report.html"));
    // The runs of another question are kept apart.
    place.plimsoll(&with(&["--slo", "mean(w) < 20us"])).ends_with(2).says("out holds another run");
}
