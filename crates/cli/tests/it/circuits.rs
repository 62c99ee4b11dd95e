//! Schedules circuits, compares schedulers, and rejects invalid demands.
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::common;

use common::Place;

/// The worked example of Solstice's paper, with rates at which a byte takes a picosecond by circuit.
const EXAMPLE: &str = "0,13,10,70,4\n0,0,14,12,69\n65,0,0,12,14\n15,33,2,0,11\n12,7,3,1,0\n";
const UNITS: [&str; 8] =
    ["--circuit-rate", "8Tbps", "--packet-rate", "800Gbps", "--night", "1ps", "--window", "100ps"];

fn schedule<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    ["circuits", "schedule", file].into_iter().chain(UNITS).chain(more.iter().copied()).collect()
}

#[test]
fn the_papers_example_is_scheduled() {
    let place = Place::new();
    place.write("demand.csv", EXAMPLE);
    let json = place.plimsoll(&schedule("demand.csv", &["--format", "json"])).ends_with(0).json();
    let keys: Vec<&str> = json.as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(keys, ["configurations", "residue", "total_ps", "compute_us", "phi"]);
    let days: Vec<u64> = json["configurations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|configuration| configuration["duration_ps"].as_u64().unwrap())
        .collect();
    assert_eq!((days, &json["total_ps"], &json["phi"]), (vec![69, 11, 10], &93.into(), &98.into()));
    assert_eq!(json["configurations"][0]["matching"], serde_json::json!([3, 4, 0, 1, 2]));
    assert_eq!(json["residue"][0], serde_json::json!([0, 2, 0, 1, 4]));
    assert!(json["compute_us"].as_f64().unwrap() > 0.0);
    place
        .plimsoll(&schedule("demand.csv", &["--figure", "week.svg"]))
        .ends_with(0)
        .prints("69ps  0>3 1>4 2>0 3>1 4>2")
        .prints("341 B by circuits, 26 B by packets, 93ps with nights");
    assert!(place.read("week.svg").contains("Circuits of 5 ports by solstice"));
    // A sender without a circuit has none in JSON either.
    let json = place
        .plimsoll(&schedule("demand.csv", &["--scheduler", "islip", "--format", "json"]))
        .ends_with(0)
        .json();
    let last = json["configurations"].as_array().unwrap().last().unwrap();
    assert!(last["matching"].as_array().unwrap().iter().any(serde_json::Value::is_null), "{last}");
}

#[test]
fn schedulers_are_compared_in_every_form() {
    let place = Place::new();
    let compare = |more: &[&str]| {
        let all = [&["circuits", "compare", "--ports", "8", "--demands", "2"], more].concat();
        place.plimsoll(&all)
    };
    let json = compare(&["--format", "json"]).ends_with(0).json();
    assert_eq!(json["schedulers"].as_array().unwrap().len(), 6);
    for each in json["schedulers"].as_array().unwrap() {
        assert!(each["times_lb_h"].as_f64().unwrap() >= 1.0, "{each}");
    }
    compare(&["--format", "csv"]).ends_with(0).prints("\nLB_f,,,");
    compare(&["--format", "md"]).ends_with(0).prints("| scheduler | circuits used |");
    compare(&["--scheduler", "solstice,tms", "--figure", "times.svg"]).ends_with(0).prints("LB_c");
    assert!(place.read("times.svg").contains("Time to serve, 8 ports"));
    // The same seed is the same demand, as a file as well.
    let demand = place.plimsoll(&["circuits", "demand", "--ports", "8", "--seed", "3"]).ends_with(0);
    place.write("demand.csv", &demand.stdout);
    let of_file =
        place.plimsoll(&["circuits", "compare", "demand.csv", "--format", "json"]).ends_with(0).json();
    let of_seed = place
        .plimsoll(&[
            "circuits",
            "compare",
            "--ports",
            "8",
            "--seed",
            "3",
            "--demands",
            "1",
            "--format",
            "json",
        ])
        .ends_with(0)
        .json();
    assert_eq!(of_file["lb_c_ms"], of_seed["lb_c_ms"]);
    assert_eq!(of_file["schedulers"][0]["time_to_serve_ms"], of_seed["schedulers"][0]["time_to_serve_ms"]);
}

#[test]
fn what_is_no_demand_is_told_with_its_place() {
    let place = Place::new();
    place.write("bad.csv", "0,1\n2, -7\n");
    place
        .plimsoll(&["circuits", "schedule", "bad.csv"])
        .ends_with(2)
        .says("error: `-7` is negative\n --> bad.csv:2:4\n")
        .says("allowed: bytes as a whole number")
        .prints_nothing();
    place.write("wide.csv", "0,1,2\n2,0,1\n");
    place
        .plimsoll(&["circuits", "compare", "wide.csv"])
        .ends_with(2)
        .says("2 rows of 3 values each\n --> wide.csv:2:1");
    place.write("demand.csv", EXAMPLE);
    let circuits = |more: &[&str]| place.plimsoll(&[&["circuits", "schedule", "demand.csv"], more].concat());
    circuits(&["--night", "4ms"]).ends_with(2).says("a night of 4ms leaves no day in a window of 3ms");
    circuits(&["--scheduler", "eclpse"]).ends_with(2).says("did you mean `eclipse`?");
    circuits(&["--circuit-rate", "0bps"]).ends_with(2).says("a circuit rate of 0 carries nothing");
    circuits(&["--figure", "week.png"]).ends_with(2).says("allowed: a name that ends in .svg");
    place.plimsoll(&["circuits", "schedule", "none.csv"]).ends_with(2).says("cannot read none.csv");
    place
        .plimsoll(&["circuits", "demand", "--ports", "4", "--large", "2", "--small", "2"])
        .ends_with(2)
        .says("allowed: at most 3, one to each other port");
    place.plimsoll(&["circuits", "demand", "--ports", "5000"]).ends_with(2).says("from 2 to 4096");
}
