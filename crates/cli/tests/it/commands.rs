//! Tests the commands other than `run`.
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::common;

use common::{Place, QUICKSTART};
use serde_json::Value;

#[test]
fn a_new_scenario_is_checked_shown_and_run() {
    let place = Place::new();
    let new = place.plimsoll(&["scenario", "new", "mine"]).ends_with(0);
    assert_eq!(new.stdout, "mine.toml\n");
    let text = place.read("mine.toml");
    place
        .plimsoll(&["scenario", "new", "mine"])
        .ends_with(2)
        .says("mine.toml is there already")
        .prints_nothing();
    assert_eq!(place.read("mine.toml"), text);
    place.plimsoll(&["scenario", "check", "mine.toml"]).ends_with(0).prints("4 points\n  TCP, ");
    let point = "DCTCP_background.load-0.6";
    place
        .plimsoll(&["scenario", "show", "mine.toml", "--point", point, "--set", "run.duration=2s"])
        .ends_with(0)
        .prints("seed = 1")
        .prints("# default")
        .prints("# --set");
    place.plimsoll(&["scenario", "show", "mine.toml", "--point", "x"]).ends_with(2).says(point);
    place
        .plimsoll(&["run", "mine.toml", "--set", "run.duration=0.11s", "--quiet"])
        .ends_with(0)
        .prints("Completion time of small");
}

#[test]
fn built_in_scenarios_are_run_and_copied_by_name() {
    let place = Place::new();
    let list = place.plimsoll(&["scenario", "list"]).ends_with(0);
    assert!(list.stdout.contains("\nhull/dynamic  "), "{}", list.stdout);
    assert!(!list.stdout.contains("hull/source"), "it is only there to be included");
    let words = ["run", "quickstart", "--set", "run.duration=1001ms", "--variant", "TCP"];
    let ran = place.plimsoll(&words).ends_with(0);
    ran.says("plimsoll run quickstart --set run.duration=1001ms --seed 1");
    // The copy has the files that the scenario names, so that it can be edited anywhere.
    place.plimsoll(&["scenario", "new", "mine", "--from", "hull/dynamic"]).ends_with(0).prints("mine.toml");
    assert!(place.read("mine.toml").contains("\n[files.\"source.toml\"]\n"));
    place.plimsoll(&["scenario", "check", "mine.toml"]).ends_with(0);
    for wrong in [["run", "quikstart"].as_slice(), &["scenario", "new", "x", "--from", "quikstart"]] {
        place.plimsoll(wrong).ends_with(2).says("did you mean `quickstart`?").says("plimsoll scenario list");
    }
}

/// Objectives are read by the check, and not only by the search that they are for.
#[test]
fn objectives_are_part_of_the_check() {
    let place = Place::new();
    let base = "version = 1\ntitle = 'x'\n[run]\nduration = '1ms'\n[topology]\nkind = 'rack'\nhosts = 3\n\
                rate = '1Gbps'\ndelay = '1us'\n[workload.w]\nkind = 'all-to-all'\nsize = '1KB'\nload = 0.1\n[slo]\n";
    for (objective, said) in [("p99(ww) < 1ms", "slo.a: "), ("p99(w) < 1 parsec", "slo.a: ")] {
        place.write("slo.toml", &format!("{base}a = '{objective}'\n"));
        let checked =
            place.plimsoll(&["scenario", "check", "slo.toml"]).ends_with(2).says(said).prints_nothing();
        let refused = place.plimsoll(&["run", "slo.toml", "--out", "out"]).ends_with(2).prints_nothing();
        assert_eq!(refused.stderr, checked.stderr);
        assert!(!place.path("out").exists());
    }
    place.write("slo.toml", &format!("{base}a = 'p99(w) < 1ms'\n"));
    place.plimsoll(&["scenario", "check", "slo.toml"]).ends_with(0);
}

#[test]
fn a_bad_scenario_is_told_with_its_line() {
    let place = Place::new();
    place.write(
        "bad.toml",
        "version = 1\ntitle = \"x\"\n[topology]\nkind = \"rack\"\nhosts = 3\nrate = \"1Gbs\"\n",
    );
    place
        .plimsoll(&["scenario", "check", "bad.toml"])
        .ends_with(2)
        .says("--> bad.toml:6:8")
        .says("did you mean \"1Gbps\"?")
        .says("error: bad.toml cannot be run")
        .prints_nothing();
}

#[test]
fn the_schema_is_json() {
    let schema = Place::new().plimsoll(&["scenario", "schema"]).ends_with(0).json();
    assert_eq!(schema["title"], Value::from("Plimsoll scenario"));
}

#[test]
fn keys_are_explained() {
    let place = Place::new();
    place.plimsoll(&["config", "run.seed"]).ends_with(0).prints("same file and seed").prints("default: 1\n");
    place.plimsoll(&["config", "port.tor.ecn"]).ends_with(0).prints("keys:    at, compare, threshold\n");
    place.plimsoll(&["config", "topology.kind"]).ends_with(0).prints("\n    leaf-spine  Leaves with hosts");
    place.plimsoll(&["config"]).ends_with(0).prints("\n  kind = \"rack\": hosts, rate, delay\n");
    place
        .plimsoll(&["config", "transport.min_rot"])
        .ends_with(2)
        .says("did you mean `transport.min_rto`")
        .prints_nothing();
}

#[test]
fn runs_are_compared() {
    let place = Place::new();
    let run = |buffer: &str, out: &str| {
        let buffer = format!("port.switch.buffer={buffer} packets");
        let args = [
            "run",
            QUICKSTART,
            "--set",
            "run.duration=0.5s",
            "--set",
            "run.warmup=0s",
            "--set",
            &buffer,
            "--replicates",
            "1",
            "--out",
            out,
            "--quiet",
        ];
        place.plimsoll(&args).ends_with(0);
    };
    run("500", "deep");
    run("20", "shallow");
    let compared = place.plimsoll(&["compare", "deep", "shallow"]).ends_with(0);
    let compared = compared.prints("TCP (deep)").prints("TCP (shallow): ").prints("HULL (shallow): ");
    let compared = compared.prints("Differences from the first run").prints("TCP (shallow): p99 of ");
    assert!(!compared.stdout.contains("\nTCP (deep): "), "{}", compared.stdout);
    let json = place.plimsoll(&["compare", "deep", "shallow", "--format", "json"]).ends_with(0).json();
    assert_eq!(json["comparisons"][0]["variant"], Value::from("TCP (shallow)"));
    assert_eq!(json["comparisons"][0]["base"], Value::from("TCP (deep)"));
    assert_eq!(json["of"].as_array().unwrap().len(), 2);
    place.plimsoll(&["compare", "deep", "."]).ends_with(2).says("not a run directory").prints_nothing();
}

#[test]
fn shells_are_completed_and_the_version_told() {
    let place = Place::new();
    place.plimsoll(&["completions", "bash"]).ends_with(0).prints("plimsoll");
    place.plimsoll(&["--version"]).ends_with(0).prints(concat!("plimsoll ", env!("CARGO_PKG_VERSION")));
    let kernel = if cfg!(feature = "kernel") { "with" } else { "without" };
    place.plimsoll(&["--version"]).ends_with(0).prints(&format!("\n{kernel} the eBPF programs"));
    let short = place.plimsoll(&["-V"]).ends_with(0);
    assert_eq!(short.stdout.lines().count(), 1, "{}", short.stdout);
    for (words, meant) in [(&["rum"][..], "'run'"), (&["rnu"], "'run'"), (&["scenario", "shwo"], "'show'")] {
        let said = format!("similar subcommand exists: {meant}");
        place.plimsoll(words).ends_with(2).says(&said).prints_nothing();
    }
}

#[test]
fn a_reader_may_go_away() {
    let place = Place::new();
    let mut command = place.command(&["scenario", "schema"]);
    let mut child =
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let ran = common::Ran::of(&["scenario", "schema"], child.wait_with_output().unwrap());
    assert_eq!(ran.ends_with(0).stderr, "");
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::new();
    place.plimsoll(&["man", "share/man1"]).ends_with(0).prints_nothing();
    let pages = common::names(&place.path("share/man1"));
    for page in ["plimsoll.1", "plimsoll-run.1", "plimsoll-merge.1", "plimsoll-scenario-check.1"] {
        assert!(pages.iter().any(|name| name == page), "{page} is not among {pages:?}");
        assert!(place.read(&format!("share/man1/{page}")).contains(".SH NAME"), "{page}");
    }
    place.write("file", "");
    place.plimsoll(&["man", "file"]).ends_with(2).says("cannot write manual pages to file");
}

#[test]
fn a_missing_scenario_is_no_error_of_syntax() {
    let place = Place::new();
    for command in ["run", "line"] {
        let ran = place.plimsoll(&[command, "none.toml"]).ends_with(2).prints_nothing();
        assert!(ran.stderr.starts_with("error: cannot read none.toml: No such file"), "{}", ran.stderr);
        assert!(!ran.stderr.contains("none.toml:1") && !ran.stderr.contains(" | "), "{}", ran.stderr);
        assert_eq!(
            ran.stderr.matches("error").count() - ran.stderr.matches("os error").count(),
            1,
            "{}",
            ran.stderr
        );
    }
}

#[test]
fn bounds_are_told_in_words() {
    let place = Place::new();
    for (arguments, words) in [
        (&["run", QUICKSTART, "--threads", "0"][..], "write a whole number of at least 1"),
        (&["run", QUICKSTART, "--replicates", "0"], "write a whole number of at least 1"),
        (&["line", QUICKSTART, "--replicates-max", "1"], "write a whole number from 2 to 4096"),
        #[cfg(unix)]
        (&["explore", QUICKSTART, "--port", "22x"], "write a whole number from 0 to 65535"),
        #[cfg(target_os = "linux")]
        (&["run-at-level", "9", "--", "true"], "write a whole number from 0 to 7"),
    ] {
        let ran = place.plimsoll(arguments).ends_with(2).says(words);
        assert!(!ran.stderr.contains("..="), "{}", ran.stderr);
    }
}

/// `--set` of a swept key replaces its sweep, so that every point has the value that its row names.
#[test]
fn a_setting_of_a_swept_key_is_not_swept() {
    let place = Place::new();
    place.plimsoll(&["scenario", "new", "mine"]).ends_with(0);
    let list = |set: &str| {
        let ran = place.plimsoll(&["run", "mine.toml", "--list", "--set", set]).ends_with(0);
        ran.stdout
    };
    assert_eq!(list("run.duration=2s").matches("load = 0.3").count(), 2);
    let one = list("workload.background.load=0.6");
    assert!(one.lines().count() >= 2 && !one.contains("load = "), "{one}");
    let wrong = ["run", "mine.toml", "--set", "wrkload.background.load=0.6"];
    place.plimsoll(&wrong).ends_with(2).says("1 | wrkload.background.load = 0.6\n  | ^^^^^^^\n");
    let long = ["line", "mine.toml", "--slo", "p99(small) < 1ms", "--messages", "9"];
    let swept = ["--set", "sweep.\"run.duration\"=[\"1s\", \"2s\"]"];
    place.plimsoll(&[&long[..], &swept].concat()).ends_with(2).says("the scenario sweeps `run.duration`");
    // The command that repeats a sweep of seeds keeps it.
    let seeds = ["--set", "sweep.\"run.seed\"=[1, 2]", "--variant", "TCP"];
    let run = ["run", "mine.toml", "--set", "run.duration=0.11s"];
    let line =
        ["line", "mine.toml", "--slo", "p99(small) < 10s", "--messages", "200", "--replicates-max", "4"];
    for command in [&run[..], &line] {
        let ran = place.plimsoll(&[command, &seeds].concat());
        assert!(!ran.says("Repeat").stderr.contains("--seed"));
    }
}

/// The command line parses quantities like a file.
#[test]
fn quantities_are_the_same_everywhere() {
    let place = Place::new();
    let digests = |set: &str| {
        let ran = place.plimsoll(&["run", QUICKSTART, "--list", "--set", set]).ends_with(0);
        ran.stdout.lines().map(|line| line.split_whitespace().nth(1).unwrap().to_owned()).collect::<Vec<_>>()
    };
    for (written, plain) in [
        ("topology.delay=5\u{b5}s", "topology.delay=5us"),
        ("topology.delay=5\u{3bc}s", "topology.delay=5us"),
        ("workload.background.load=40%", "workload.background.load=0.4"),
        ("run.duration=1min", "run.duration=60s"),
        ("topology.rate=1gbps", "topology.rate=1Gbps"),
        ("port.switch.buffer=64kB", "port.switch.buffer=64000B"),
    ] {
        assert_eq!(digests(written), digests(plain), "{written}");
    }
    for (wrong, words) in [
        ("topology.rate=10GBps", "`B` is a byte and `b` is a bit"),
        ("port.switch.buffer=1Mb", "`b` is a bit and `B` is a byte"),
        ("topology.rate=10Gps", "did you mean \"10Gbps\"?"),
    ] {
        place.plimsoll(&["run", QUICKSTART, "--list", "--set", wrong]).ends_with(2).says(words);
    }
    place
        .plimsoll(&["model", "qjump", "--rate", "10GBps"])
        .ends_with(2)
        .says("`B` is a byte and `b` is a bit");
    let slo = ["line", QUICKSTART, "--slo", "goodput(background) > 10GBps"];
    place.plimsoll(&slo).ends_with(2).says("`B` is a byte and `b` is a bit");
}
