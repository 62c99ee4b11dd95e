//! Checks captures of simulated packets with tshark.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::process::Command;

use crate::common::{Place, names};

/// On a network without losses, anything that tshark flags is a defect of the capture, in every transport.
#[test]
fn tshark_finds_nothing_wrong_with_a_clean_run() {
    if !Command::new("tshark").arg("--version").output().is_ok_and(|out| out.status.success()) {
        return plimsoll_testing::missing("tshark is not installed");
    }
    let place = Place::new();
    place.write("clean.toml", CLEAN);
    place.plimsoll(&["run", "clean.toml", "--pcap", "--out", "out", "-q"]).ends_with(0);
    let captures = names(&place.path("out/pcap"));
    assert_eq!(captures.len(), 6);
    for capture in captures {
        let fields = |filter: &str, fields: &[&str]| {
            let mut tshark = Command::new("tshark");
            tshark
                .arg("-r")
                .arg(place.path("out/pcap").join(&capture))
                .args(["-n", "-Y", filter, "-T", "fields"]);
            for field in fields {
                tshark.args(["-e", field]);
            }
            let out = tshark.output().unwrap();
            assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
            String::from_utf8(out.stdout).unwrap()
        };
        let syn = fields("tcp.flags.syn == 1 && tcp.seq == 0", &["tcp.stream"]);
        let data = fields("tcp.len > 0", &["tcp.stream"]);
        assert!(
            syn.lines().count() >= 2 && data.lines().count() > 50,
            "{capture}: {} data",
            data.lines().count()
        );
        let flagged = fields("tcp.analysis.flags", &["frame.number", "_ws.expert.message"]);
        assert_eq!(flagged, "", "{capture}");
    }
}

/// A scenario that watches both directions of a client's link, where no queue ever overflows.
const CLEAN: &str = r#"
version = 1
title = "Nothing is lost"
[run]
duration = "4ms"
[topology]
kind = "rack"
hosts = 3
rate = "1Gbps"
delay = "5us"
[port.switch]
buffer = "unlimited"
[port.host]
buffer = "unlimited"
[workload.small]
kind = "rpc"
request = "100B"
response = "9KB"
load = 0.2
[workload.large]
kind = "transfer"
size = "300KB"
load = 0.3
[observe]
queue.in = { port = "client", every = "1ms" }
queue.out = { port = "nic:client", every = "1ms" }
[variant.TCP]
transport.kind = "tcp"
[variant.CUBIC]
transport.kind = "cubic"
[variant.DCTCP]
transport.kind = "dctcp"
port.switch.ecn = { threshold = "30KB" }
[sweep]
"transport.connections" = ["long-lived", "per-message"]
"#;
