//! Tests `plimsoll run`: its files, its output and its errors.
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::common::{Place, QUICKSTART, SWEEP, names};
use serde_json::Value;

/// Two short points a variant.
const SHORT: [&str; 8] = [
    "--set",
    "replicates=1",
    "--set",
    "sweep.\"workload.background.load\"=[0.2, 0.4]",
    "--set",
    "run.duration=0.2s",
    "--set",
    "run.warmup=0s",
];

fn quickstart<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&["run", QUICKSTART][..], &SHORT, more].concat()
}

#[test]
fn a_run_leaves_its_directory_and_prints_its_table() {
    let place = Place::new();
    let ran = place.plimsoll(&quickstart(&["--out", "out", "--perfetto"])).ends_with(0);
    for words in ["TCP", "DCTCP", "HULL", "Completion time of small", "95 % confidence interval"] {
        assert!(ran.stdout.contains(words), "no `{words}` in {}", ran.stdout);
    }
    let ran = ran.says("Report   out/report.html").says("--set run.warmup=0s --seed 1").says("[6/6]");
    assert!(!ran.stdout.contains("report.html") && !ran.stdout.contains("[6/6]"), "{}", ran.stdout);

    assert_eq!(names(&place.path("out/points")).len(), 6);
    let manifest: Value = serde_json::from_str(&place.read("out/manifest.json")).unwrap();
    assert!(manifest["points"].as_array().unwrap().iter().all(|point| point["digest"].is_string()));
    let summary = place.summary("out");
    assert_eq!(summary["cells"].as_array().unwrap().len(), 6);
    assert!(place.read("out/report.html").contains("</html>"));
    assert!(place.read("out/scenario.toml").contains("\"run.duration=0.2s\""));
    for timeline in names(&place.path("out/perfetto")) {
        let _: Value = serde_json::from_str(&place.read(&format!("out/perfetto/{timeline}"))).unwrap();
    }
    assert_eq!(names(&place.path("out/perfetto")).len(), 6);
}

#[test]
fn a_plan_prints_what_threads_could_gain_and_keeps_nothing() {
    let place = Place::new();
    let plan = |more: &[&str]| {
        place.plimsoll(&[&quickstart(&["--threads", "2", "--plan", "--quiet"])[..], more].concat())
    };
    let printed: Value = serde_json::from_str(&plan(&["--format", "json"]).ends_with(0).stdout).unwrap();
    let points = printed["points"].as_array().unwrap();
    assert_eq!(points.len(), 6);
    for point in points {
        let divided = &point["divided"];
        let processes = divided["processes"].as_array().unwrap();
        let events: u64 = processes.iter().filter_map(|process| process["events"].as_u64()).sum();
        assert_eq!((processes.len(), divided["events"].as_u64()), (2, Some(events)), "{point:#}");
        assert!(divided["speed_up_bound"].as_f64().is_some_and(|bound| (1.0..2.0).contains(&bound)));
    }
    plan(&[]).ends_with(0).prints("speed-up").prints("HULL, workload.background.load = 0.4");
    plan(&["--set", "observe.packets=10"]).ends_with(0).prints("`observe.packets`: packets are captured");
    plan(&["--list"]).ends_with(2).says("cannot be used with");
    assert!(!place.path("results").exists());
}

#[test]
fn packets_are_captured() {
    let place = Place::new();
    place
        .plimsoll(&quickstart(&["--pcap", "--out", "out"]))
        .ends_with(0)
        .says("--set observe.packets=100000");
    let captures = names(&place.path("out/pcap"));
    assert_eq!(captures.len(), 6);
    for capture in captures {
        let bytes = std::fs::read(place.path("out/pcap").join(&capture)).unwrap();
        assert_eq!(bytes[..4], [0x0A, 0x0D, 0x0D, 0x0A], "{capture}");
        assert!(bytes.len() > 10_000, "{capture} has {} bytes", bytes.len());
    }
}

#[test]
fn threads_change_nothing() {
    let place = Place::new();
    let one =
        place.plimsoll(&quickstart(&["--format", "json", "--threads", "1", "--out", "one"])).ends_with(0);
    let two =
        place.plimsoll(&quickstart(&["--format", "json", "--threads", "2", "--out", "two"])).ends_with(0);
    assert_eq!(one.stdout, two.stdout);
    let json = one.json();
    assert_eq!(json["digest"].as_str().map(str::len), Some(32));
    let digests: Vec<&str> = json["cells"]
        .as_array()
        .unwrap()
        .iter()
        .map(|cell| cell["runs"][0]["digest"].as_str().unwrap())
        .collect();
    assert_eq!(digests.len(), 6);

    let other =
        place.plimsoll(&quickstart(&["--format", "json", "--seed", "2", "--out", "other"])).ends_with(0);
    assert_ne!(other.json()["digest"], json["digest"]);
}

#[test]
fn every_format_is_itself() {
    let place = Place::new();
    let with =
        |format| place.plimsoll(&quickstart(&["--out", "out", "--quiet", "--format", format])).ends_with(0);
    with("table").prints("mean us");
    with("md").prints("|---");
    with("csv")
        .prints("variant,workload.background.load,subject,metric,value,low,high,samples,warnings\n")
        .says("warning: p99");
    with("json").prints("\"verdicts\"");
    place
        .plimsoll(&quickstart(&["--format", "jsn"]))
        .ends_with(2)
        .says("similar value exists: 'json'")
        .prints_nothing();
}

/// 32 senders by DCTCP with all defaults share a link; where windows of one segment wait for delayed ACKs they do not,
/// and every form of the result says so.
#[test]
fn flows_that_are_starved_are_told() {
    let place = Place::new();
    place.write(
        "senders.toml",
        "version = 1\ntitle = 'senders'\n[run]\nduration = '700ms'\nwarmup = '200ms'\n\
         [topology]\nkind = 'rack'\nhosts = 33\nrate = '1Gbps'\ndelay = '5us'\n[transport]\nkind = 'dctcp'\n\
         [port.switch]\nbuffer = '512KB'\necn = { threshold = '30KB' }\n\
         [workload.bulk]\nkind = 'flows'\nfrom = 'others'\nto = 'h0'\n",
    );
    let with = |out, more: &[&str]| {
        let all = [&["run", "senders.toml", "--quiet", "--out", out, "--format", "json"], more].concat();
        place.plimsoll(&all).ends_with(0).json()
    };
    let fairness = |json: &Value| json["cells"][0]["workloads"][0]["fairness"].as_f64().unwrap();
    let fair = with("fair", &[]);
    assert!(fairness(&fair) > 0.9, "{fair}");
    // 973 Mb/s of payload are a full link; flows without an end have nothing else to show.
    let goodput = fair["cells"][0]["workloads"][0]["goodput_mbps"]["value"].as_f64().unwrap();
    assert!((950.0..975.0).contains(&goodput), "{fair}");
    place.plimsoll(&["compare", "fair"]).ends_with(0).prints("goodput Mb/s");
    assert_eq!(fair["warnings"], Value::Array(Vec::new()));
    let starved = with("starved", &["--set", "transport.min_window=1"]);
    assert!(fairness(&starved) < 0.5, "{starved}");
    assert_eq!(starved["warnings"][0]["kind"], "unfair");
    let csv = place.plimsoll(&["compare", "starved", "--format", "csv"]).ends_with(0);
    csv.says("share unequally").prints("bulk,fairness,").prints(",unfair\n");
    place.plimsoll(&["compare", "starved"]).ends_with(0).prints("share unequally");
}

#[test]
fn the_default_directory_is_gone_on_with() {
    let place = Place::new();
    let first = place.plimsoll(&quickstart(&[])).ends_with(0);
    let again = place.plimsoll(&quickstart(&[])).ends_with(0).says("6 of 6 points are finished already");
    assert_eq!(first.stdout, again.stdout);
    assert_eq!(names(&place.path("results")).len(), 1);
    place.plimsoll(&quickstart(&["--force"])).ends_with(0).says("[6/6]");
    place.plimsoll(&quickstart(&["--seed", "2"])).ends_with(0).says("[6/6]");
    let runs = names(&place.path("results"));
    assert_eq!(runs.len(), 2, "{runs:?}");
    assert!(runs.iter().all(|run| run.starts_with("quickstart-")), "{runs:?}");
    // With --quiet, only the notes are suppressed.
    assert_eq!(place.plimsoll(&quickstart(&["--quiet"])).ends_with(0).stderr, "");
}

#[test]
fn another_scenario_is_refused() {
    let place = Place::new();
    place.plimsoll(&quickstart(&["--out", "out"])).ends_with(0);
    let before = place.read("out/manifest.json");
    place
        .plimsoll(&quickstart(&["--out", "out", "--seed", "2"]))
        .ends_with(2)
        .says("another run")
        .says("`--out DIR`")
        .says("`--force`")
        .prints_nothing();
    assert_eq!(place.read("out/manifest.json"), before);
    place.plimsoll(&quickstart(&["--out", "none", "--resume"])).ends_with(2).says("holds no run to resume");
    assert_eq!(place.entries(), ["out"]);
}

#[test]
fn a_bad_scenario_writes_nothing() {
    let place = Place::new();
    let ran = place.plimsoll(&quickstart(&["--set", "run.duraton=1s"]));
    ran.ends_with(2)
        .says("error: run.duraton: unknown key")
        .says("did you mean `duration`?")
        .prints_nothing();
    place.plimsoll(&["run", "none.toml"]).ends_with(2).says("cannot read none.toml").prints_nothing();
    assert_eq!(place.entries(), <[String; 0]>::default());
}

#[test]
fn a_place_that_cannot_be_written_is_found_out_first() {
    let place = Place::new();
    place.write("file", "");
    let ran = place.plimsoll(&quickstart(&["--out", "file/out"])).ends_with(2).prints_nothing();
    assert_eq!(ran.stderr, "error: cannot read file/out: Not a directory (os error 20)\n");
    // This file system allows no folders, whatever the user.
    let ran = place.plimsoll(&quickstart(&["--out", "/proc/plimsoll"])).ends_with(2).prints_nothing();
    assert!(ran.stderr.starts_with("error: cannot make /proc/plimsoll"), "{}", ran.stderr);
    place.write("mine", "a file of the user's");
    place.plimsoll(&quickstart(&["--out", "."])).ends_with(2).says("neither empty nor a run directory");
    // A scenario alone, as an import leaves it, does not make a run directory.
    std::fs::create_dir(place.path("imported")).unwrap();
    place.write("imported/scenario.toml", "precious");
    place
        .plimsoll(&quickstart(&["--out", "imported"]))
        .ends_with(2)
        .says("neither empty nor a run directory");
    assert_eq!(place.read("imported/scenario.toml"), "precious");
    assert_eq!(place.entries(), ["file", "imported", "mine"]);
}

#[test]
fn too_few_samples_are_warned_about() {
    let place = Place::new();
    place
        .plimsoll(&quickstart(&["--out", "out"]))
        .ends_with(0)
        .prints("p99 of `small` needs at least 1,000 samples")
        .prints("`--replicates N`");
}

#[test]
fn the_list_says_what_is_done() {
    let place = Place::new();
    place.write("sweep.toml", SWEEP);
    let list = ["run", "sweep.toml", "--set", "run.duration=0.05s", "--out", "out", "--list"];
    let ran = place.plimsoll(&list).ends_with(0);
    assert_eq!(ran.stdout.lines().filter(|line| line.contains(" open ")).count(), 8, "{}", ran.stdout);
    assert_eq!(place.entries(), ["sweep.toml"]);
    let shard = ["run", "sweep.toml", "--set", "run.duration=0.05s", "--out", "out", "--shard", "1/4"];
    place.plimsoll(&shard).ends_with(0).says("belong to other shards");
    let ran = place.plimsoll(&list).ends_with(0);
    assert_eq!(ran.stdout.lines().filter(|line| line.contains(" done ")).count(), 2, "{}", ran.stdout);
    place.plimsoll(&["run", "sweep.toml", "--shard", "5/4"]).ends_with(2).says("I from 1 to N");
}

#[test]
fn chosen_variants_run_first_and_the_rest_follows() {
    let place = Place::new();
    let json = |args: &[&str]| {
        let args = [args, &["--out", "out", "--format", "json"]].concat();
        place.plimsoll(&quickstart(&args)).ends_with(0)
    };
    let some = json(&["--variant", "HULL", "--variant", "TCP"])
        .says("2 of 6 points belong to other variants")
        .says("--variant HULL --variant TCP");
    let of_cell = |cell: &Value| cell["variant"].as_str().unwrap().to_owned();
    let variants: Vec<String> = some.json()["cells"].as_array().unwrap().iter().map(of_cell).collect();
    assert_eq!(variants, ["TCP", "HULL", "TCP", "HULL"]);
    json(&[]).says("4 of 6 points are finished already");
    place.plimsoll(&quickstart(&["--out", "whole"])).ends_with(0);
    assert_eq!(place.read("out/summary.json"), place.read("whole/summary.json"));
    place
        .plimsoll(&quickstart(&["--variant", "HUL"]))
        .ends_with(2)
        .says("unknown variant `HUL`: expected one of TCP, DCTCP, HULL")
        .prints_nothing();
}

#[test]
fn shards_make_the_whole() {
    let place = Place::new();
    place.write("sweep.toml", SWEEP);
    let with = |more: &[&str]| {
        let args =
            [&["run", "sweep.toml", "--set", "run.duration=0.2s", "--replicates", "2"][..], more].concat();
        place.plimsoll(&args).ends_with(0)
    };
    with(&["--out", "whole"]);
    with(&["--shard", "1/3"]);
    with(&["--shard", "2/3", "--out", "b"]);
    let first = names(&place.path("results"));
    assert!(first[0].ends_with("-shard-1-of-3"), "{first:?}");
    let a = format!("results/{}", first[0]);
    place
        .plimsoll(&["merge", "merged", &a, "b"])
        .ends_with(0)
        .says("5 of 16 points are missing")
        .says("plimsoll run sweep.toml --set run.duration=0.2s --seed 1 --replicates 2 --out merged");
    with(&["--shard", "3/3", "--out", "c"]);
    let merged = place.plimsoll(&["merge", "merged", "c", "--format", "json"]).ends_with(0);
    assert_eq!(place.read("merged/summary.json"), place.read("whole/summary.json"));
    let whole = with(&["--out", "whole", "--format", "json"]);
    assert_eq!(merged.stdout, whole.stdout);

    with(&["--seed", "2", "--out", "other"]);
    place
        .plimsoll(&["merge", "merged", "other"])
        .ends_with(2)
        .says("its scenario is another")
        .prints_nothing();
}

#[test]
fn a_duration_is_the_key_of_the_file() {
    let place = Place::new();
    let with = |arguments: &[&str]| {
        let all = [&["run", QUICKSTART, "--replicates", "1", "--format", "json"][..], arguments].concat();
        place.plimsoll(&all).ends_with(0)
    };
    let by_option = with(&["--duration", "20ms", "--set", "run.warmup=0s", "--out", "option"]);
    let by_key = with(&["--set", "run.warmup=0s", "--set", "run.duration=20ms", "--out", "key"]);
    assert_eq!(by_option.stdout, by_key.stdout);
    place
        .plimsoll(&["run", QUICKSTART, "--duration", "20", "--out", "bad"])
        .ends_with(2)
        .says("run.duration")
        .prints_nothing();
}

#[test]
fn replicates_have_seeds_of_their_own() {
    let place = Place::new();
    let ran =
        place.plimsoll(&quickstart(&["--replicates", "2", "--format", "json", "--out", "out"])).ends_with(0);
    let json = ran.json();
    let runs = json["cells"][0]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    assert_ne!(runs[0]["seed"], runs[1]["seed"]);
    assert_ne!(runs[0]["digest"], runs[1]["digest"]);
}
