//! Checks that damage in a run directory is reported with the command that repairs it, and that the repair runs only
//! the damaged points again.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Place, SWEEP, names};

const RUN: [&str; 6] = ["run", "sweep.toml", "--out", "out", "--set", "run.duration=0.05s"];

/// Returns every file below a folder, with its content.
fn all(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files.extend(all(&path));
        } else {
            let bytes = fs::read(&path).unwrap();
            files.push((path, bytes));
        }
    }
    files.sort();
    files
}

fn flip(path: &Path) {
    let mut bytes = fs::read(path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(path, bytes).unwrap();
}

#[test]
fn damage_is_named_and_repaired_to_the_same_bytes() {
    let place = Place::new();
    place.write("sweep.toml", SWEEP);
    place.plimsoll(&RUN).ends_with(0);
    let out = place.path("out");
    let good = all(&out);
    let point = names(&out.join("points")).remove(0);
    let repair = [&RUN[..], &["--repair"]].concat();
    let compare = ["compare", "out", "out"];
    // Each case is a file, and the number of points that a repair runs again.
    let cases = [
        (out.join("points").join(&point).join("messages.csv"), 1),
        (out.join("points").join(&point).join("point.json"), 1),
        (out.join("manifest.json"), 0),
    ];
    for (file, again) in cases {
        flip(&file);
        let name = file.file_name().unwrap().to_str().unwrap();
        place.plimsoll(&RUN).ends_with(2).prints_nothing().says(name).says("damaged").says("`--repair`");
        place
            .plimsoll(&compare)
            .ends_with(2)
            .prints_nothing()
            .says(name)
            .says("plimsoll run out/scenario.toml --out out --repair");
        if again > 0 {
            place.plimsoll(&[&RUN[..], &["--list"]].concat()).ends_with(0).prints("damaged");
        }
        place.plimsoll(&repair).ends_with(0).says(&format!("{} of 8 points are finished already", 8 - again));
        for (path, bytes) in &good {
            assert!(fs::read(path).unwrap() == *bytes, "{} after {name}", path.display());
        }
        assert_eq!(all(&out).len(), good.len(), "nothing else is there");
    }
    // Files that a run writes anew whenever it ends need no repair.
    for name in ["summary.json", "report.html", "columns.md", "scenario.toml"] {
        flip(&out.join(name));
        place.plimsoll(&RUN).ends_with(0);
        assert!(all(&out) == good, "{name}");
    }
    // A repair without damage runs nothing.
    place.plimsoll(&repair).ends_with(0).says("8 of 8 points are finished already");
    assert!(all(&out) == good);
}

#[test]
fn the_command_that_readers_name_repairs() {
    let place = Place::new();
    place.write("sweep.toml", SWEEP);
    place.plimsoll(&RUN).ends_with(0);
    let out = place.path("out");
    let summary = place.read("out/summary.json");
    let point = names(&out.join("points")).remove(0);
    for file in [out.join("points").join(point).join("messages.csv"), out.join("manifest.json")] {
        flip(&file);
        let ran = place.plimsoll(&["compare", "out", "out"]).ends_with(2);
        let command = ran.stderr.split('`').find(|words| words.starts_with("plimsoll ")).unwrap().to_owned();
        let words: Vec<&str> = command.split(' ').skip(1).collect();
        place.plimsoll(&words).ends_with(0);
        place.plimsoll(&["compare", "out", "out"]).ends_with(0);
        assert_eq!(place.read("out/summary.json"), summary);
    }
}

#[test]
fn the_journal_of_a_search_is_repaired() {
    let place = Place::new();
    place.write(
        "quick.toml",
        &SWEEP.replace("8s", "0.1s").split("[sweep]").next().unwrap().replace(
            "[variant.DCTCP]\ntransport.kind = \"dctcp\"\nport.switch.ecn = { threshold = \"30KB\" }\n",
            "",
        ),
    );
    let line = [
        "line",
        "quick.toml",
        "--out",
        "out",
        "--slo",
        "p99(transfers) < 30ms",
        "--precision",
        "50%",
        "--replicates-max",
        "2",
    ];
    // Two runs decide nothing, which is a finding.
    place.plimsoll(&line).ends_with(1);
    let found = place.read("out/lines.json");
    let journal = place.path("out/runs.jsonl");
    let runs = place.read("out/runs.jsonl").lines().count();
    flip(&journal);
    place.plimsoll(&line).ends_with(2).says("runs.jsonl is damaged in line").says("`--repair`");
    place
        .plimsoll(&[&line[..], &["--repair"]].concat())
        .ends_with(1)
        .says(&format!("{} runs are finished already", runs - 1));
    assert_eq!(place.read("out/lines.json"), found);
    place.plimsoll(&line).ends_with(1).says(&format!("{runs} runs are finished already"));
    // A kill may leave a line unfinished; only its run is lost.
    let journal = place.read("out/runs.jsonl");
    place.write("out/runs.jsonl", &journal[..journal.len() - 9]);
    place
        .plimsoll(&line)
        .ends_with(1)
        .says("warning: out/runs.jsonl: the unfinished last line, ")
        .says(&format!("{} runs are finished already", runs - 1));
    flip(&place.path("out/manifest.json"));
    place.plimsoll(&line).ends_with(2).says("manifest.json is damaged").says("`--repair`");
    place
        .plimsoll(&[&line[..], &["--repair"]].concat())
        .ends_with(1)
        .says(&format!("{runs} runs are finished already"));
}
