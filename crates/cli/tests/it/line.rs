//! Tests the load line on the command line.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::process::Stdio;

use crate::common::Place;
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
        .prints("variant,load,objective,metric,value,low,high,runs,warnings\nbase,,mean(w) < 24us,line,");
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
    place
        .plimsoll(&["compare", "out"])
        .ends_with(2)
        .says("out holds a search of `plimsoll line`")
        .prints_nothing();
}

/// At a low load the scenario's own duration has no message; a longer run then says how many there are.
#[test]
fn a_run_without_messages_is_made_longer() {
    let place = queue();
    let few = ["--set", "workload.w.load=0.001", "--set", "run.duration=12ms", "--set", "run.warmup=10ms"];
    let more = ["--messages", "200", "--replicates-max", "4", "--within", "0.001..0.01"];
    let ran = place.plimsoll(&with(&[&few[..], &more].concat()));
    assert!(!ran.stderr.contains("no message of"), "{}", ran.stderr);
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
        .prints("base: never meets mean(w) < 7us, not even at 200 Mb/s: no load can meet mean(w) < 7us, as idle links")
        .says("no load is known to meet mean(w) < 7us with base");
    let place = queue();
    place
        .plimsoll(&with(&["--slo", "mean(w) < 10ms"]))
        .ends_with(0)
        .prints("base: always meets mean(w) < 10ms, up to 950 Mb/s");
}

/// A network whose lowest load sends too few transfers to be judged.
const RACK: &str = r#"
version = 1
title = "base"
[run]
duration = "100ms"
warmup = "10ms"
[topology]
kind = "rack"
hosts = 4
rate = "1Gbps"
delay = "5us"
[workload.small]
kind = "rpc"
request = "100B"
response = "900B"
load = "7Mbps"
[workload.background]
kind = "transfer"
size = "100KB"
load = 0.3
[workload.page]
kind = "pages"
front_ends = "h1"
back_ends = "h2..h3"
retrievals = 2
pages_per_second = 500
deadline = "5ms"
"#;

/// Returns the only variant of a search in `RACK`, which ended with a finding.
fn not_met(place: &Place, objectives: &[&str], more: &[&str]) -> Value {
    let mut args =
        vec!["line", "rack.toml", "--over", "background", "--format", "json", "--quiet", "--force"];
    args.extend(["--replicates-max", "8", "--out", "out"]);
    args.extend(objectives.iter().flat_map(|slo| ["--slo", slo]));
    args.extend(more);
    let json = place.plimsoll(&args).ends_with(1).says("no load is known to meet").json();
    let variant = json["variants"][0].clone();
    assert_eq!(
        (&variant["low"], &variant["load"], &variant["headroom"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    let (page, sentence) = (place.read("out/report.html"), json["sentences"][0].as_str().unwrap().to_owned());
    assert!(!page.contains("line of base") && !sentence.contains(" up to "), "{sentence}");
    variant
}

#[test]
fn objectives_that_no_load_can_meet_are_never_met_and_the_reason_is_said() {
    let place = Place::new();
    place.write("rack.toml", RACK);
    for (objectives, runs, reason) in [
        (&["goodput(background) > 2Gbps"][..], false, "background offers at most 990 Mb/s at 0.99"),
        (&["goodput(small) >= 10Mbps"], false, "small offers at most 7.00 Mb/s at 0.99"),
        (&["goodput(page) > 5Gbps"], false, "the links of all hosts together carry 4.00 Gb/s"),
        (&["p99(small) < 20us"], true, "as idle links alone take longer"),
        // At the lowest loads some runs have no message of the searched workload, whose 100 KB take 0.8 ms.
        (&["mean(background) < 100us"], true, "can meet mean(background) < 100us, as idle links alone"),
        (
            &["mean(background) < 100us", "mean(small) < 1ms"],
            true,
            "can meet mean(background) < 100us, as idle",
        ),
        (&["max(page) <= 1us"], true, ""),
        (
            &["goodput(background) > 800Mbps", "p99(background) < 900us"],
            true,
            "goodput(background) > 800Mbps needs a load of about 0.80 at least",
        ),
    ] {
        for more in [&[][..], &["--at", "0.003"]] {
            let variant = not_met(&place, objectives, more);
            assert_eq!(variant["found"], Value::from("never"), "{objectives:?}");
            assert_eq!(variant["loads"].as_array().unwrap().is_empty(), !runs, "{objectives:?}");
            let said = variant["reason"].as_str().unwrap_or_default();
            assert!(said.contains(reason), "{objectives:?}: {said}");
        }
    }
}

#[test]
fn a_goodput_of_the_searched_workload_bounds_the_load_from_below() {
    let place = Place::new();
    place.write("rack.toml", RACK);
    let base = [
        "line",
        "rack.toml",
        "--over",
        "background",
        "--slo",
        "goodput(background) > 100Mbps",
        "--out",
        "out",
    ];
    let at = |load| [&base[..], &["--replicates-max", "8", "--quiet", "--force", "--at", load]].concat();
    place.plimsoll(&at("0.3")).ends_with(0).prints("from about 0.1");
    place
        .plimsoll(&at("0.02"))
        .ends_with(1)
        .says("a load of 0.0200 offers too little for the goodput of base");
}

#[test]
fn pages_have_a_deadline() {
    let place = Place::new();
    place.write("rack.toml", RACK);
    let base = ["line", "rack.toml", "--over", "page", "--out", "out", "--within", "100..2000", "--quiet"];
    let with = |more: [&'static str; 2]| [&base[..], &["--replicates-max", "16"], &more].concat();
    place.plimsoll(&with(["--slo", "deadline(page) > 50%"])).ends_with(0).prints("base: always meets");
    place
        .plimsoll(&with(["--slo", "deadline(small) > 50%"]))
        .ends_with(2)
        .says("the messages of `small` have no deadline")
        .says("a workload with the key `deadline`: page");
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
fn a_first_look_brackets_the_line_and_changes_no_result() {
    let place = queue();
    let looked = place.plimsoll(&with(&["--threads", "1"])).ends_with(0).says("met by a first run (1 run; ");
    let at =
        |text: &str| looked.stderr.find(text).unwrap_or_else(|| panic!("no `{text}`: {}", looked.stderr));
    assert!(
        at("first look, with one run a load: base ") < at("base at 600 Mb/s: met ("),
        "{}",
        looked.stderr
    );
    let mut whole = with(&["--threads", "16"]);
    whole[7] = "whole";
    let ran = place.plimsoll(&whole).ends_with(0);
    assert!(!ran.stderr.contains("first look"), "{}", ran.stderr);
    assert_eq!(looked.stdout, ran.stdout);
    assert_eq!(place.read("out/lines.json"), place.read("whole/lines.json"));
}

#[test]
fn a_killed_search_repeats_no_finished_run() {
    let place = queue();
    let mut command = place.command(&with(&["--threads", "1"]));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let lines = || std::fs::read_to_string(place.path("out/runs.jsonl")).unwrap_or_default().lines().count();
    plimsoll_testing::eventually("a third finished run", || lines() >= 3);
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
