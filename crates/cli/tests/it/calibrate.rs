//! Checks that `plimsoll calibrate` and `plimsoll compare --measured` take measured files by the name of a workload.

use crate::common::Place;

/// The scenario of the page about calibration.
fn scenario() -> String {
    let page = include_str!("../../../../docs/calibrate.md");
    page.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a block").to_owned()
}

/// Writes the latencies of `get` in a run with another seed and these settings, one a line.
pub fn measure(place: &Place, file: &str, set: &[&str]) {
    let set = set.iter().flat_map(|set| ["--set", set]);
    let run = ["run", "cache.toml", "--seed", "2", "--out", "measured", "--force", "-q"];
    place.plimsoll(&run.into_iter().chain(set).collect::<Vec<_>>()).ends_with(0);
    let points = std::fs::read_dir(place.path("measured/points")).expect("the run has points");
    let point = points.flatten().next().expect("one point").path();
    let messages = std::fs::read_to_string(point.join("messages.csv")).expect("it has messages");
    let mut lines = messages.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    let at = |name: &str| head.iter().position(|known| *known == name).expect("the column exists");
    let (created, completed) = (at("created_ps"), at("completed_ps"));
    let latencies = lines.filter_map(|row| {
        let ps = row[completed].parse::<u64>().ok()? - row[created].parse::<u64>().ok()?;
        Some(format!("{}\n", ps as f64 / 1e6))
    });
    place.write(file, &latencies.collect::<String>());
}

/// Makes the scenario of the page, and measurements with hidden parameters at both of its loads.
pub fn prepare(place: &Place) {
    place.write("cache.toml", &scenario());
    let hidden = ["workload.get.service.mean=14us", "host.processor={ interrupt = '3us' }"];
    measure(place, "idle.csv", &hidden);
    measure(place, "loaded.csv", &[&hidden[..], &["workload.get.load=200Mbps"]].concat());
}

#[test]
fn a_file_of_the_user_is_not_replaced() {
    let place = Place::new();
    place.write("cache.toml", &scenario());
    place.write("lat.csv", "1\n2\n");
    let ran = place.plimsoll(&["calibrate", "cache.toml", "--measured", "lat.csv", "--out", "cache.toml"]);
    ran.ends_with(2)
        .says("cache.toml is not a file of `plimsoll calibrate`; choose another place with `--out`");
    assert_eq!(place.read("cache.toml"), scenario());
    // An error of the scenario is one error.
    place.write("lat.csv", &"10\n".repeat(200));
    let ran =
        place.plimsoll(&["calibrate", "cache.toml", "--measured", "lat.csv", "--fit", "workload.get.servic"]);
    let ran = ran.ends_with(2).says("servic");
    assert!(!ran.stderr.contains("error: error:"), "{}", ran.stderr);
}

#[test]
fn a_check_that_fails_is_a_finding() {
    let place = Place::new();
    prepare(&place);
    let check = ["calibrate", "cache.toml", "--measured", "get=idle.csv", "--check", "loaded.csv", "--at"];
    let good = place.plimsoll(&[&check[..], &["load=200Mbps", "--format", "json"]].concat()).ends_with(0);
    let fitted = &good.json()["fit"]["fitted"][0];
    assert_eq!(fitted["key"], "workload.get.service.mean");
    assert!(fitted["us"].as_f64().is_some_and(|us| (us - 14.0).abs() < 1.4), "{fitted}");
    assert!(
        place
            .read("calibrated.toml")
            .contains("include = \"cache.toml\"\nset = [\n    \"workload.get.service.mean=")
    );
    place.plimsoll(&["scenario", "check", "calibrated.toml"]).ends_with(0);
    let wrong = ["load=200Mbps", "--set", "workload.get.service=5us"];
    let wrong = place.plimsoll(&[&check[..], &wrong].concat()).ends_with(1);
    wrong
        .prints("host.processor.interrupt cannot be told from workload.get.service")
        .prints("at the checked load: off");
}

#[test]
fn measured_files_are_compared_by_workload() {
    let place = Place::new();
    prepare(&place);
    place.plimsoll(&["run", "cache.toml", "--out", "run", "-q"]).ends_with(0);
    let compare = ["compare", "run", "--measured"];
    let of = |more: &[&str]| place.plimsoll(&[&compare[..], more].concat());
    of(&["get=idle.csv"]).ends_with(0).prints("measured us").prints("p99.9");
    let json = of(&["idle.csv", "--server", "get=idle.csv", "--format", "json"]).ends_with(0).json();
    assert_eq!(json[0]["workload"], "get");
    assert_eq!(json[0]["quantiles"].as_array().map(Vec::len), Some(4));
    of(&["gte=idle.csv"])
        .ends_with(2)
        .prints_nothing()
        .says("no workload `gte`; allowed: get; did you mean `get`?");
    // Two measurements of one workload have rows of their own.
    of(&["get=idle.csv", "--measured", "get=loaded.csv"])
        .ends_with(0)
        .prints("get=idle.csv")
        .prints("get=loaded.csv");
    place.write("wrong.csv", "10\n20000000\n");
    of(&["get=wrong.csv"])
        .ends_with(2)
        .says("--measured wrong.csv: line 2: `20000000` is longer than the run");
    place.write("wrong.csv", "10\n-2\n");
    of(&["get=wrong.csv"])
        .ends_with(2)
        .says("--measured wrong.csv: line 2: `-2`; allowed: a latency, 0 or more");
    of(&["get=nowhere.csv"]).ends_with(2).says("cannot read nowhere.csv");
}
