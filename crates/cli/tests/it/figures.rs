//! Tests `plimsoll figure`, and the page of `plimsoll compare --out`.
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::common::{Place, names};

/// Two variants at two loads, with a queue.
const SCENARIO: &str = r#"
version = 1
title = "Drawn"
[run]
duration = "20ms"
[topology]
kind = "rack"
hosts = 3
rate = "1Gbps"
delay = "5us"
[workload.transfers]
kind = "transfer"
size = "20KB"
load = 0.3
[variant.TCP]
transport.kind = "tcp"
[variant.DCTCP]
transport.kind = "dctcp"
port.switch.ecn = { threshold = "30KB" }
[sweep]
"workload.transfers.load" = [0.3, 0.6]
[observe]
queue.client = { port = "client", every = "1ms" }
"#;

fn drawn() -> Place {
    let place = Place::new();
    place.write("scenario.toml", SCENARIO);
    place.plimsoll(&["run", "scenario.toml", "--out", "out", "-q"]).ends_with(0);
    place
}

#[test]
fn the_figures_of_a_report_are_listed_and_written() {
    let place = drawn();
    let list = place.plimsoll(&["figure", "out"]).ends_with(0).stdout;
    let report = place.read("out/report.html");
    let listed: Vec<&str> = list.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(listed.len(), report.matches("<figure ").count(), "{list}");
    for name in &listed {
        assert!(report.contains(&format!("<figure class=\"card\" id=\"{name}\">")), "{name}");
    }
    assert!(
        list.contains("time-transfers") && list.contains(", at each sweep point (share, time)"),
        "{list}"
    );
    // A queue needs the points, and has a line for each variant.
    let queue = ["figure", "out", "queue-client", "--at", "0.6"];
    let svg = place.plimsoll(&queue).ends_with(0).stdout;
    for part in ["TCP</text>", "DCTCP</text>", "stroke=\"currentColor\" stroke-width=\"2\""] {
        assert!(svg.contains(part), "no {part} in {svg}");
    }
    // Whether a figure is made from the summary alone or from the points, it is the same.
    let sweep = ["figure", "out", "sweep-transfers-p99"];
    let svg = place.plimsoll(&sweep).ends_with(0).stdout;
    std::fs::remove_file(place.path("out/summary.json")).unwrap();
    assert_eq!(place.plimsoll(&sweep).ends_with(0).stdout, svg);
    assert!(svg.starts_with("<svg ") && svg.contains("p99 completion time of transfers"), "{svg}");
    let slo = place.plimsoll(&[&sweep[..], &["--slo", "p99(transfers) < 2ms"]].concat()).ends_with(0).stdout;
    assert!(slo.contains("p99(transfers) &lt; 2ms") && slo.contains("stroke-dasharray"), "{slo}");

    let time = ["figure", "out", "time-transfers", "--at", "0.6"];
    place.plimsoll(&[&time[..], &["--svg", "share.svg"]].concat()).ends_with(0).prints_nothing();
    place.plimsoll(&[&time[..], &["--svg", "time.svg", "--view", "time"]].concat()).ends_with(0);
    assert_ne!(place.read("share.svg"), place.read("time.svg"));
    let other = place.plimsoll(&["figure", "out", "time-transfers", "--at", "0.3"]).ends_with(0).stdout;
    assert_ne!(place.read("share.svg"), other);
    // Without a run the folder has no figures, and no file is left behind.
    assert_eq!(names(&place.path(".")), ["out", "scenario.toml", "share.svg", "time.svg"]);
}

#[test]
fn every_figure_is_written_and_a_point_is_named_by_its_beginning() {
    let place = Place::new();
    let two = "\"workload.transfers.load\" = [0.3, 0.6]\n\"port.switch.buffer\" = [\"20KB\", \"200KB\"]\n";
    let scenario = SCENARIO.replace("\"workload.transfers.load\" = [0.3, 0.6]\n", two);
    place.write("scenario.toml", &scenario);
    place.plimsoll(&["run", "scenario.toml", "--out", "out", "-q"]).ends_with(0);
    place.plimsoll(&["figure", "out", "--all", "all"]).ends_with(0).says("28 figures in all");
    let written = names(&place.path("all"));
    for name in [
        "sweep-transfers-p99-at-20KB.svg",
        "sweep-queue-client-mean-at-200KB.svg",
        "time-transfers-at-0.3-20KB.svg",
        "who-pays-at-0.6-200KB.svg",
    ] {
        assert!(written.iter().any(|file| file == name), "no {name} in {written:?}");
    }
    let at = |at: &str| place.plimsoll(&["figure", "out", "time-transfers", "--at", at]);
    assert_eq!(at("0.6, 2").ends_with(2).says("--at 0.6, 2: several").prints_nothing().stdout, "");
    at("0.6").ends_with(2).says("--at 0.6: several sweep points begin so; allowed: 0.6, 20KB; 0.6, 200KB");
    assert_eq!(at("0.6, 200").ends_with(0).stdout, place.read("all/time-transfers-at-0.6-200KB.svg"));
    assert_eq!(at("0.6, 20KB").ends_with(0).stdout, place.read("all/time-transfers-at-0.6-20KB.svg"));
    // A measure has a chart for each value of the key that is not on the axis.
    let measure = ["figure", "out", "--measure", "goodput(transfers)"];
    place.plimsoll(&measure).ends_with(2).says("name one with --at: 20KB; 200KB").prints_nothing();
    let large = place.plimsoll(&[&measure[..], &["--at", "200KB"]].concat()).ends_with(0).stdout;
    assert!(large.contains("goodput(transfers), ") && large.contains("200KB"), "{large}");
}

/// Returns the coordinates of the lines and the intervals.
fn drawn_lines(svg: &str) -> Vec<&str> {
    svg.split(" d=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// A measure that the report has, too, is drawn as there; any other has a figure as well.
#[test]
fn a_measure_is_drawn_over_the_sweep() {
    let place = drawn();
    let measure = |text: &str, more: &[&str]| {
        place.plimsoll(&[&["figure", "out", "--measure", text][..], more].concat())
    };
    let known = place.plimsoll(&["figure", "out", "sweep-transfers-p99"]).ends_with(0).stdout;
    let same = measure("p99(transfers)", &[]).ends_with(0).stdout;
    assert!(!drawn_lines(&same).is_empty() && same.contains(">p99(transfers)"), "{same}");
    assert_eq!(drawn_lines(&same), drawn_lines(&known));
    let other = measure("percent(transfers, <= 400us)", &["--svg", "share.svg"]).ends_with(0);
    other.prints_nothing();
    let share = place.read("share.svg");
    assert!(share.contains("percent (%)") && share.contains("TCP</text>"), "{share}");
    let limit = measure("p99(transfers)", &["--slo", "p99(transfers) < 2ms"]).ends_with(0).stdout;
    assert!(limit.contains("stroke-dasharray"), "{limit}");
    for (text, more, words) in [
        ("p99(transfer)", &[][..], "did you mean `transfers`?"),
        ("p99(transfers", &[], "--measure: "),
        ("p99(transfers)", &["--at", "0.3"], "--at: `p99(transfers)` is not of one sweep point"),
        ("p99(transfers)", &["--all", "all"], "cannot be used with"),
        ("p99(queue.client)", &["--slo", "p99(transfers) < 1ms"], "shows p99(queue.client), not"),
    ] {
        measure(text, more).ends_with(2).says(words).prints_nothing();
    }
    place.plimsoll(&["figure", "out", "time-transfers", "--measure", "p99(transfers)"]).ends_with(2);
    place.plimsoll(&["run", "scenario.toml", "--set", "workload.transfers.load=0.3", "--out", "one", "-q"]);
    let one = place.plimsoll(&["figure", "one", "--measure", "p99(transfers)"]);
    one.ends_with(2).says("sweeps no key, so the figure has no axis").prints_nothing();
}

#[test]
fn what_cannot_be_drawn_is_told() {
    let place = drawn();
    place.plimsoll(&["run", "scenario.toml", "--set", "run.duration=10ms", "--list"]).ends_with(0);
    for (more, words) in [
        (&["time-transfer"][..], "no figure `time-transfer`; did you mean `time-transfers`? allowed: "),
        (&["time-transfers"], "shows one sweep point at a time; name one with --at: 0.3; 0.6"),
        (&["time-transfers", "--at", "0.5"], "--at 0.5: the run has no such sweep point; "),
        (&["sweep-transfers-p99", "--at", "0.3"], "`sweep-transfers-p99` is not of one sweep point"),
        (&["time-transfers", "--at", "0.3", "--view", "shares"], "no such view; did you mean `share`?"),
        (&["sweep-transfers-p99", "--slo", "p99(transfers) < 2"], "--slo: "),
        (
            &["sweep-transfers-p99", "--slo", "goodput(transfers) > 2Mbps"],
            "--slo: `sweep-transfers-p99` shows p99(transfers), not goodput(transfers)",
        ),
        (&["sweep-transfers-p99", "--slo", "p99(foo) < 1ms"], "shows p99(transfers), not p99(foo)"),
        (
            &["sweep-transfers-p50", "--slo", "p99(transfers) < 1ms"],
            "shows p50(transfers), not p99(transfers)",
        ),
        (&["queue-client", "--at", "0.3", "--slo", "p99(transfers) < 1ms"], "no objective is about it"),
        (&["sweep-transfers-p99", "--png", "nowhere/a.png"], "cannot write nowhere/a.png"),
        (&["--svg", "a.svg"], "NAME"),
    ] {
        place.plimsoll(&[&["figure", "out"], more].concat()).ends_with(2).says(words).prints_nothing();
    }
    place.plimsoll(&["figure", "nowhere"]).ends_with(2).prints_nothing();
}

#[test]
fn a_browser_or_a_converter_draws_png_and_pdf() {
    let place = drawn();
    let args = ["figure", "out", "sweep-transfers-p99", "--png", "a.png", "--pdf", "a.pdf"];
    let ran = place.plimsoll(&args);
    if ran.stderr.contains("none is installed") {
        plimsoll_testing::skipped!("neither rsvg-convert nor Chromium is installed");
        return;
    }
    ran.ends_with(0);
    let begins = |name: &str, with: &[u8]| std::fs::read(place.path(name)).unwrap().starts_with(with);
    assert!(begins("a.png", b"\x89PNG") && begins("a.pdf", b"%PDF"));
    assert_eq!(names(&place.path(".")), ["a.pdf", "a.png", "out", "scenario.toml"]);
}

#[test]
fn compared_runs_have_a_page() {
    let place = drawn();
    place.plimsoll(&["run", "scenario.toml", "--seed", "2", "--out", "other", "-q"]).ends_with(0);
    place
        .plimsoll(&["compare", "out", "other", "--out", "both"])
        .ends_with(0)
        .says("Report   both/report.html");
    let page = place.read("both/report.html");
    for words in [
        "<h1>other compared with out</h1>",
        "Completion time relative to the first run",
        "TCP (other)",
        "plimsoll compare out other --out both",
    ] {
        assert!(page.contains(words), "{words}");
    }
    assert_eq!(place.summary("both")["comparisons"].as_array().unwrap().len(), 4);
    place
        .plimsoll(&["compare", "out", "--out", "other"])
        .ends_with(2)
        .says("--out other: this is a run directory");
}
