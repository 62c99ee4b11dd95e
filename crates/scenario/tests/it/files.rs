//! The files that a scenario reads: graphs, flow lists, distributions.
#![allow(clippy::unwrap_used, reason = "a test")]

use plimsoll_fabric::net::topology::File;
use plimsoll_scenario::model::{HostSet, Topology, Workload};
use plimsoll_scenario::{Overrides, Scenario, ScenarioError};
use plimsoll_units::{Bytes, Rate, Span};

const GRAPH: &str = r#"
hosts = ["web", "cache", "db"]
switches = ["left", "right"]
[[link]]
from = "web"
to = "left"
rate = "1Gbps"
delay = "1us"
[[link]]
from = "right"
to = "cache"
rate = "10Gbps"
delay = "1us"
[[link]]
from = "db"
to = "right"
rate = "10Gbps"
delay = "1us"
[[link]]
from = "left"
to = "right"
rate = "10Gbps"
delay = "2us"
"#;

const SCENARIO: &str = r#"
version = 1
title = "t"
[topology]
kind = "file"
path = "net.graph"
[port.switch]
buffer = "500 packets"
[workload.list]
kind = "flow-list"
path = "flows.csv"
[workload.some]
kind = "transfer"
client = "web"
servers = "cache..db"
size = { cdf = "sizes.csv" }
load = 0.1
count = 10
"#;

fn load(files: &[(&str, &str)]) -> Result<Scenario, Vec<ScenarioError>> {
    let directory = tempfile::tempdir().unwrap();
    let given = [
        ("net.graph", GRAPH),
        (
            "flows.csv",
            "start,source,destination,size,class\n# two flows\n0s,web,db,10MB,bulk\r\n 1.5ms , cache, client, 900B,\n",
        ),
        ("sizes.csv", "bytes,cdf\n100,0\n200,1\n"),
    ];
    for (name, text) in given.iter().chain(files) {
        std::fs::write(directory.path().join(name), text).unwrap();
    }
    Scenario::parse("t.toml", SCENARIO, directory.path())
}

#[test]
fn all_that_is_named_is_read() {
    let scenario = load(&[]).unwrap();
    let model = &scenario.points()[0].model;
    let Topology::File(File { graph: Some(graph), .. }) = &model.topology else { panic!() };
    assert_eq!((graph.hosts.len(), graph.switches.len(), graph.links.len()), (3, 2, 4));
    assert_eq!((graph.links[1].from, graph.links[1].to, graph.links[3].delay), (4, 1, Span::from_us(2)));
    assert_eq!(model.topology.host("db"), Some(2));
    assert_eq!(model.topology.host("client"), Some(0));
    assert_eq!(model.topology.host("h1"), None);
    assert_eq!(model.topology.host_rate(0), Rate::from_gbps(1));
    assert_eq!(model.topology.host_name(1), "cache");
    assert_eq!(model.topology.switch_ports("switch"), 3);
    assert_eq!(HostSet::Selector("cache..db".to_owned()).resolve(&model.topology, None).unwrap(), [1, 2]);
    let Workload::FlowList(list) = &model.workload["list"] else { panic!() };
    assert_eq!(list.flows.len(), 2);
    assert_eq!(
        (list.flows[0].source, list.flows[0].destination, list.flows[0].size),
        (0, 2, Bytes::new(10_000_000))
    );
    assert_eq!((list.flows[1].start, list.flows[1].destination), (Span::from_us(1500), 0));
    assert_eq!(list.flows[0].class, "bulk");
    let Workload::Transfer(some) = &model.workload["some"] else { panic!() };
    assert_eq!(some.size.sampler().mean(), 150.0);
}

#[test]
fn the_digest_is_of_their_content() {
    let digest = |files: &[(&str, &str)]| load(files).unwrap().points()[0].digest;
    let before = digest(&[]);
    assert_eq!(before, digest(&[]));
    assert_ne!(before, digest(&[("sizes.csv", "bytes,cdf\n100,0\n300,1\n")]));
    assert_ne!(before, digest(&[("net.graph", &GRAPH.replace("2us", "3us"))]));
    let of_flows = |rows: &str| {
        let text = format!("start,source,destination,size,class\n{rows}\n");
        digest(&[("flows.csv", &text)])
    };
    let one = of_flows("1s,web,db,10MB,bulk");
    assert_eq!(one, of_flows("1000ms , web,db, 10000kB,bulk"), "the same flow in other words");
    let others = [
        "2s,web,db,10MB,bulk",
        "1s,cache,db,10MB,bulk",
        "1s,web,cache,10MB,bulk",
        "1s,web,db,9MB,bulk",
        "1s,web,db,10MB,",
    ];
    let mut digests: Vec<u64> = others.iter().map(|rows| of_flows(rows)).chain([before, one]).collect();
    digests.sort_unstable();
    digests.dedup();
    assert_eq!(digests.len(), others.len() + 2);
}

/// Checks a scenario that draws its sizes from `sizes.csv`, with files from the caller and none on the disk.
fn given(table: &str, files: &[(&str, &str)]) -> Result<Scenario, Vec<ScenarioError>> {
    let head = r#"
version = 1
title = "t"
run.duration = "1s"
topology = { kind = "rack", hosts = 2, rate = "1Gbps", delay = "1us" }
[workload.some]
kind = "transfer"
load = 0.1
size = { cdf = "sizes.csv" }
"#;
    let files = files.iter().map(|&(name, text)| (name.to_owned(), text.to_owned())).collect();
    let nowhere = tempfile::tempdir().unwrap();
    let overrides = Overrides { files, ..Overrides::default() };
    Scenario::parse_with("t.toml", &format!("{head}{table}"), nowhere.path(), &overrides)
}

const SIZES: &str = "bytes,cdf\n100,0\n200,1\n";
const OWN_SIZES: &str = "[files.\"sizes.csv\"]\ntext = \"\"\"\nbytes,cdf\n100,0\n200,1\n\"\"\"\n";

#[test]
fn a_caller_may_give_files() {
    let digest = |scenario: &Scenario| scenario.points()[0].digest;
    let scenario = given("", &[("sizes.csv", SIZES)]).unwrap();
    assert_eq!(digest(&scenario), digest(&given(OWN_SIZES, &[]).unwrap()));
    let other = given("", &[("sizes.csv", "bytes,cdf\n100,0\n300,1\n")]).unwrap();
    assert_ne!(digest(&scenario), digest(&other), "the digest is of their content");
    let nowhere = tempfile::tempdir().unwrap();
    let recorded = Scenario::parse("r.toml", scenario.self_contained(), nowhere.path()).unwrap();
    assert_eq!(digest(&recorded), digest(&scenario), "a recorded scenario has them");
    let set = vec!["workload.some.load=0.2".to_owned()];
    let overrides = Overrides { set, ..scenario.overrides().clone() };
    assert_ne!(digest(&scenario.with_overrides(&overrides).unwrap()), digest(&scenario));
}

#[test]
fn a_given_file_must_be_read() {
    let errors = given("", &[("sizes.csv", SIZES), ("size.csv", SIZES)]).unwrap_err();
    assert_eq!((errors.len(), errors[0].key.as_str()), (1, "files.\"size.csv\""));
    assert!(errors[0].message.contains("no key names that file"), "{}", errors[0]);
    let errors = given(OWN_SIZES, &[("sizes.csv", SIZES)]).unwrap_err();
    assert_eq!((errors.len(), errors[0].key.as_str()), (1, "files.\"sizes.csv\""));
    assert!(errors[0].message.contains("has its own file of that name"), "{}", errors[0]);
}

#[test]
fn errors_name_the_file_that_is_wrong() {
    let errors = load(&[("net.graph", &GRAPH.replace("hosts =", "host ="))]).unwrap_err();
    assert_eq!((errors[0].file.as_str(), errors[0].line), ("net.graph", 2));
}
