//! Topologies from the exports of other tools, and the hosts of an import in them.

use std::path::Path;

use plimsoll_import::Remark::{Assumed, Ignored};
use plimsoll_import::topology::{Topology, TopologyShape};
use plimsoll_import::{ClassTraffic, FoundFlow, ImportFound, TrafficClass};
use plimsoll_units::Span;

fn folder() -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/files").display().to_string()
}

/// Returns hosts, switches and links of an export, in short.
fn short(spec: &str) -> String {
    let topology = match Topology::read(&spec.replace(':', &format!(":{}/", folder()))) {
        Ok(topology) => topology,
        Err(error) => return error.to_string().replace(&folder(), ""),
    };
    let TopologyShape::Listed(graph) = topology.shape else { panic!("{spec} is an export") };
    let hosts: Vec<String> =
        graph.hosts.iter().map(|host| format!("{}({})", host.name, host.addresses.join(" "))).collect();
    let links: Vec<String> = (graph.links.iter())
        .map(|link| {
            format!("{}-{} {}", graph.node_name(link.from, true), graph.node_name(link.to, true), link.rate)
        })
        .collect();
    format!("{}; {}; {}", hosts.join(" "), graph.switches.join(" "), links.join(", "))
}

#[test]
fn exports_become_graphs() {
    let cases = [
        (
            "lldp:lldp,25G,100G",
            "web-1.example.net(10.0.1.5 fe80::1) db-1(10.0.2.7); leaf1 spine1 leaf2; leaf1-web-1.example.net 25Gbps, \
             leaf1-spine1 100Gbps, leaf2-db-1 25Gbps, leaf2-spine1 100Gbps",
        ),
        (
            "containerlab:topology-data.json,25G",
            "web-1(172.20.20.3 10.0.1.5) db-1(172.20.20.4 10.0.2.7); leaf1; leaf1-web-1 25Gbps, leaf1-db-1 25Gbps",
        ),
        (
            "netbox:cables.csv,25G,100G",
            "web-1() db-1(); leaf1 leaf2 spine1; web-1-leaf1 25Gbps, db-1-leaf2 25Gbps, leaf1-spine1 100Gbps, \
             leaf2-spine1 100Gbps",
        ),
        (
            "netbox:cables.csv,25G,hosts=*-1",
            "web-1() db-1(); leaf1 leaf2 spine1; web-1-leaf1 25Gbps, db-1-leaf2 25Gbps, leaf1-spine1 25Gbps, \
             leaf2-spine1 25Gbps",
        ),
        (
            "graphml:network.graphml",
            "web-1(10.0.1.5) db-1(10.0.2.7); leaf1 leaf2; web-1-leaf1 25Gbps, db-1-leaf2 25Gbps, leaf1-leaf2 100Gbps",
        ),
        (
            "netbox:cables.csv",
            "/cables.csv: the cable from web-1 to leaf1 has no rate: expected the rates of hosts and of uplinks in \
             --topology, such as lldp:FOLDER,25G,100G",
        ),
        (
            "netbox:cables.csv,25G,hosts=none*",
            "/cables.csv: 0 hosts and 5 switches: expected two hosts or more, and a switch; hosts=PATTERN in \
             --topology names the hosts",
        ),
        (
            "netbox:own.csv,25G",
            "/own.csv: no columns of devices in \"first;last;from;to;kilobytes;app\": expected side_a_device and \
             side_b_device, or Device A and Device B",
        ),
        (
            "graphml:own.csv,25G",
            "/own.csv: 0 hosts and 0 switches: expected two hosts or more, and a switch; \
             hosts=PATTERN in --topology names the hosts",
        ),
        (
            "lldp:own.csv,25G",
            "/own.csv: no JSON: expected ident at line 1 column 2: expected the output of `lldpctl -f json`",
        ),
    ];
    for (spec, expected) in cases {
        assert_eq!(short(spec), expected, "{spec}");
    }
}

fn found(hosts: &[&str]) -> ImportFound {
    let flow =
        |source, destination| FoundFlow { start: Span::ZERO, end: Span::ZERO, source, destination, bytes: 1 };
    let flows = (1..hosts.len() as u32).map(|host| flow(host - 1, host)).collect();
    ImportFound {
        hosts: hosts.iter().map(|host| (*host).to_owned()).collect(),
        classes: vec![TrafficClass { name: "flows".to_owned(), traffic: ClassTraffic::Flows(flows) }],
        duration: Span::from_secs(1),
        notes: Vec::new(),
    }
}

fn flows(found: &ImportFound) -> Vec<(u32, u32)> {
    let ClassTraffic::Flows(flows) = &found.classes[0].traffic else { panic!("flows") };
    flows.iter().map(|flow| (flow.source, flow.destination)).collect()
}

#[test]
fn hosts_are_matched_by_name_or_address() {
    let topology = || Topology::read(&format!("lldp:{}/lldp,25G,100G", folder())).unwrap();
    // By address, by the name up to its first dot, and one that the topology lacks.
    let (placed_found, placed) = topology().place(found(&["8.8.8.8", "10.0.2.7", "WEB-1"]), false).unwrap();
    assert_eq!(placed_found.hosts, ["10.0.2.7", "WEB-1"]);
    assert_eq!(flows(&placed_found), [(0, 1)]);
    assert_eq!(placed.hosts, ["h1", "h0"]);
    let ignored: Vec<_> = placed.notes.iter().filter(|note| note.remark == Ignored).collect();
    assert_eq!(ignored[0].text, "1 host that the topology lacks, and their traffic: 8.8.8.8");
    let graph = placed.graph.unwrap();
    assert!(graph.starts_with("hosts = [\"h0\", \"h1\"]\nswitches = [\"s0\", \"s1\", \"s2\"]\n"), "{graph}");
    assert!(!graph.contains("web"), "{graph}");
    let (_, placed) = topology().place(found(&["10.0.2.7", "10.0.1.5"]), true).unwrap();
    assert_eq!(placed.hosts, ["db-1", "web-1.example.net"]);
    let error = topology().place(found(&["a", "b"]), true).unwrap_err().to_string();
    assert_eq!(
        error,
        "--topology: it has none of the hosts of the files, such as a, b: expected hosts such as \
         web-1.example.net, db-1"
    );
}

#[test]
fn a_generated_network_has_room_or_says_so() {
    let (_, placed) = Topology::read("rack:3,25G").unwrap().place(found(&["a", "b"]), false).unwrap();
    assert_eq!(placed.hosts, ["h0", "h1", "h2"]);
    assert_eq!(placed.table, "[topology]\nkind = \"rack\"\nhosts = 3\nrate = \"25Gbps\"\ndelay = \"1us\"\n");
    assert!(placed.notes.iter().all(|note| note.remark == Assumed));
    let error = Topology::read("rack:3,25G").unwrap().place(found(&["a", "b", "c", "d"]), false).unwrap_err();
    assert_eq!(error.to_string(), "--topology: 3 hosts for the 4 of the files: expected at least 4 hosts");
}
