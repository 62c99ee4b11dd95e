//! Imports other simulators' files, and exports results in their format.
#![allow(clippy::unwrap_used, reason = "a test")]

use crate::common;

use common::Place;

#[test]
fn flows_go_in_and_completion_times_come_out() {
    let place = Place::new();
    // Switch 0 connects hosts 1 to 300: the numbers survive.
    let links: String = (1..301).map(|host| format!("{host} 0 100Gbps 1000ns 0\n")).collect();
    place.write("topology.txt", &format!("301 1 300\n0\n{links}"));
    place.write("flow.txt", "2\n1 300 3 100 100000 0.001\n300 2 3 100 1000 0.0000005\n");
    place
        .plimsoll(&["import", "hpcc", "--topology", "topology.txt", "--flows", "flow.txt", "--out", "in"])
        .ends_with(0)
        .says("in/network.toml: 300 hosts, 1 switch, 300 links")
        .says("in/flows.csv: 2 flows");
    place.plimsoll(&["run", "in/scenario.toml", "--out", "out", "--quiet"]).ends_with(0);
    place.plimsoll(&["export", "hpcc-fct", "out"]).ends_with(0).says("2 flows of base, replicate 0");
    let files = common::names(&place.path("out/fct"));
    let text = place.read(&format!("out/fct/{}", files[0]));
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(' ').collect()).collect();
    assert_eq!(lines[0][..6], ["0b012c01", "0b000201", "10000", "100", "1000", "500"], "{text}");
    assert_eq!(lines[1][..6], ["0b000101", "0b012c01", "10000", "100", "100000", "1000000"], "{text}");
    // The ideal time is that of 1040 B over two links of 100 Gb/s and 1 us each; the handshake is added to it.
    assert_eq!(lines[0][7], "2166");
    let number = |word: &str| word.parse::<u64>().unwrap();
    assert!(lines.iter().all(|line| line.len() == 8 && number(line[6]) > number(line[7])), "{text}");
}

#[test]
fn what_cannot_be_imported_is_told_and_leaves_nothing() {
    let place = Place::new();
    place.write("bad.cm", "Nodes 4\nConnections 1\n0->9 start 0 size 5\n");
    place
        .plimsoll(&["import", "htsim", "--connections", "bad.cm", "--out", "in"])
        .ends_with(2)
        .says("error: node 9 of 4\n --> bad.cm:3:4")
        .says("bad.cm cannot be imported: 1 error");
    assert!(!place.path("in").exists());
    place.plimsoll(&["import", "htsim", "--out", "in"]).ends_with(2).says("--topology");
    place
        .plimsoll(&["import", "cdf", "none.txt", "--out", "a.csv"])
        .ends_with(2)
        .says("cannot read none.txt");
    place.plimsoll(&["export", "hpcc-fct", "."]).ends_with(2).says("not a run directory");
}

#[test]
fn an_imported_distribution_is_one_that_a_scenario_reads() {
    let place = Place::new();
    place.write("web.txt", "1 1 0\n10 1 0.5\n100 1 1\n");
    place.plimsoll(&["import", "cdf", "web.txt", "--unit", "1460", "--out", "web.csv"]).ends_with(0);
    place.write(
        "s.toml",
        "version = 1\ntitle = 't'\n[topology]\nkind = 'rack'\nhosts = 3\nrate = '10Gbps'\ndelay = '1us'\n\
         [workload.all]\nkind = 'all-to-all'\nsize = { cdf = './web.csv' }\nload = 0.2\ncount = 50\n",
    );
    place.plimsoll(&["run", "s.toml", "--out", "out", "--quiet"]).ends_with(0);
}
