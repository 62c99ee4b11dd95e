//! Runs the switches against Open vSwitch's own controller, a learning switch.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use plimsoll_chronos_load::openflow::OpenFlowReport;
use plimsoll_chronos_load::process::{Recipe, ServerProcess, ServerTransport};

fn controller() -> Option<ServerProcess> {
    if Command::new("ovs-testcontroller").arg("-V").output().is_err() {
        plimsoll_testing::missing(
            "ovs-testcontroller is not installed (Debian's package openvswitch-testcontroller)",
        );
        return None;
    }
    let recipe = Recipe::parse("ovs=ovs-testcontroller ptcp:{port}:127.0.0.1 --unixctl={socket}").unwrap();
    Some(ServerProcess::start(&recipe, ServerTransport::Tcp, &[]).unwrap())
}

#[track_caller]
fn run(words: &[&str], server: &ServerProcess) -> OpenFlowReport {
    let output = Command::new(env!("CARGO_BIN_EXE_chronos-load"))
        .args([
            "openflow",
            "--time=200ms",
            "--warm-up=50ms",
            "--wait=block",
            "--format=json",
            "--timeout=20s",
        ])
        .arg(format!("--controller={}", server.endpoint))
        .args(words)
        .output()
        .unwrap();
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn a_learning_switch_answers_every_packet() {
    let Some(server) = controller() else { return };
    for version in ["--openflow-version=1.0", "--openflow-version=1.3"] {
        for mode in [&["--mode=latency", "--switches=16"][..], &["--mode=throughput", "--switches=2"]] {
            let report = run(&[&[version, "--macs=1000"], mode].concat(), &server);
            let replies = report.replies;
            assert!(replies.answered > 0 && replies.flow_mods > 0, "{version} {mode:?}: {report}");
            assert_eq!((replies.lost, replies.errors), (0, 0), "{version} {mode:?}: {report}");
            assert_eq!(report.latency.samples, replies.answered);
        }
    }
}

#[test]
fn packets_without_buffers_come_back_in_packet_outs() {
    let Some(server) = controller() else { return };
    let report = run(&["--unbuffered", "--switches=2", "--macs=1000"], &server);
    assert!(report.replies.answered > 0 && report.replies.packet_outs > 0, "{report}");
    assert_eq!((report.replies.lost, report.replies.errors), (0, 0), "{report}");
}

#[test]
fn controllers_are_compared_in_pairs() {
    if controller().is_none() {
        return;
    }
    let recipe =
        |name| format!("--server={name}=ovs-testcontroller ptcp:{{port}}:127.0.0.1 --unixctl={{socket}}");
    let output = Command::new(env!("CARGO_BIN_EXE_chronos-load"))
        .args([
            "compare-openflow",
            "--pairs=1",
            "--time=100ms",
            "--wait=block",
            "--switches=2",
            "--timeout=20s",
        ])
        .args([recipe("A"), recipe("B")])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", String::from_utf8_lossy(&output.stderr));
    for figure in ["answers/s: B to A ", "p99 us: B to A ", "controller's processor us per answer: B to A "] {
        assert!(text.contains(figure), "{text}");
    }
}
