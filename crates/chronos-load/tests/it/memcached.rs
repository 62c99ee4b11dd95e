//! Runs the generator against memcached itself: every protocol and transport reads the values back that it has stored.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::process::Command;

use plimsoll_chronos_load::process::{Recipe, ServerProcess, ServerTransport};
use plimsoll_chronos_load::report::Report;

/// Starts memcached; returns none if it is not installed.
pub fn memcached(transport: ServerTransport) -> Option<ServerProcess> {
    if Command::new("memcached").arg("-V").output().is_err() {
        plimsoll_testing::missing("memcached is not installed (Debian's package memcached)");
        return None;
    }
    let flags = match transport {
        ServerTransport::Unix => "-s {socket}",
        ServerTransport::Tcp | ServerTransport::Udp => "-p {port} -U {port}",
    };
    let recipe = Recipe::parse(&format!("memcached=memcached -u nobody -l 127.0.0.1 -m 64 {flags}")).unwrap();
    let recipe = match transport {
        // memcached creates its socket before it drops its privileges, in a folder that only the caller may enter.
        ServerTransport::Unix => {
            Recipe::parse(&format!("memcached=memcached -u root -m 64 {flags}")).unwrap()
        }
        ServerTransport::Tcp | ServerTransport::Udp => recipe,
    };
    Some(ServerProcess::start(&recipe, transport, &[]).unwrap())
}

/// Runs `chronos-load run` and parses its report. On a busy machine runs are suspect; the test checks the values.
#[track_caller]
fn run(servers: &[&ServerProcess], words: &str) -> Report {
    let mut command = Command::new(env!("CARGO_BIN_EXE_chronos-load"));
    command.args(["run", "--time=200ms", "--warm-up=50ms", "--wait=block", "--format=json", "--timeout=5s"]);
    for server in servers {
        command.arg(format!("--server={}", server.endpoint));
    }
    let output = command.args(words.split_whitespace()).output().unwrap();
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[track_caller]
fn assert_all_read(report: &Report) {
    let counts = report.counts;
    assert!(counts.gets > 0 && counts.sets > 0 && counts.completed > 0, "{counts:?}");
    assert_eq!((counts.misses, counts.wrong, counts.refused, counts.lost), (0, 0, 0, 0), "{report}");
    assert_eq!((counts.late, counts.unsent, counts.closed), (0, 0, 0), "{report}");
}

const FEW: &str = "--keys 500 --connections 4";

#[test]
fn every_protocol_reads_what_it_stored() {
    for transport in [ServerTransport::Tcp, ServerTransport::Unix, ServerTransport::Udp] {
        let Some(server) = memcached(transport) else { return };
        for protocol in ["ascii", "meta", "binary"] {
            let closed = run(&[&server], &format!("{FEW} --protocol {protocol}"));
            assert_all_read(&closed);
            assert_eq!(closed.counts.hits, closed.counts.gets);
            let open = run(&[&server], &format!("{FEW} --protocol {protocol} --rate 2000 --vbuckets 16"));
            if transport == ServerTransport::Udp {
                // On a busy machine, requests may overflow the server's socket while it waits.
                assert_eq!((open.counts.wrong, open.counts.refused, open.counts.misses), (0, 0, 0), "{open}");
            } else {
                assert_all_read(&open);
            }
            assert!(open.rate_asked == Some(2000.0) && open.counts.due > 0);
        }
    }
}

#[test]
fn gets_of_many_keys_and_values_of_many_sizes_are_read() {
    let Some(server) = memcached(ServerTransport::Tcp) else { return };
    for protocol in ["ascii", "meta", "binary"] {
        let sizes = if protocol == "meta" { "uniform:1,20000" } else { "etc" };
        let words =
            format!("{FEW} --protocol {protocol} --multi-get 20 --value-size {sizes} --outstanding 3");
        let report = run(&[&server], &words);
        assert_all_read(&report);
        assert_eq!(report.counts.hits, 20 * report.counts.gets);
    }
}

#[test]
fn replies_of_many_datagrams_are_read() {
    let Some(server) = memcached(ServerTransport::Udp) else { return };
    for protocol in ["ascii", "binary"] {
        let report =
            run(&[&server], &format!("{FEW} --protocol {protocol} --multi-get 10 --value-size 1000"));
        assert_all_read(&report);
    }
    // A value too large for one datagram is stored over TCP.
    let tcp = server.endpoint.to_string().replace("udp:", "");
    let command = |words: &str| {
        let output = Command::new(env!("CARGO_BIN_EXE_chronos-load"))
            .args([
                "run",
                "--time=200ms",
                "--wait=block",
                "--format=json",
                "--timeout=20s",
                "--value-size=5000",
            ])
            .args(words.split_whitespace())
            .output()
            .unwrap();
        assert!(
            output.status.code().is_some_and(|code| code < 2),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_slice::<Report>(&output.stdout).unwrap().counts
    };
    command(&format!("{FEW} --ratio 1:0 --server {tcp}"));
    let counts = command(&format!("{FEW} --ratio 1:0 --server {} --no-load", server.endpoint));
    assert!(counts.hits > 0, "{counts:?}");
    assert_eq!((counts.hits, counts.wrong, counts.refused, counts.late), (counts.gets, 0, 0, 0));
}

#[test]
fn several_servers_are_read_in_every_shape() {
    let servers: Vec<ServerProcess> = (0..3).map_while(|_| memcached(ServerTransport::Tcp)).collect();
    if servers.is_empty() {
        return;
    }
    let servers: Vec<&ServerProcess> = servers.iter().collect();
    for shape in [
        "--fan-out 3",
        "--chain 10",
        "--replicas 2",
        "--replicas 2 --hedge 2ms",
        "--replicas 2 --retry 50ms",
        "--sharding ketama --multi-get 8",
    ] {
        let report = run(&servers, &format!("{FEW} {shape} --ratio 5:5 --value-size 100"));
        assert_all_read(&report);
    }
}

#[test]
fn keys_that_are_not_there_are_misses() {
    let Some(server) = memcached(ServerTransport::Tcp) else { return };
    let report = run(&[&server], &format!("{FEW} --no-load --ratio 1:0 --key-prefix nothing"));
    assert_eq!((report.counts.misses, report.counts.hits), (report.counts.gets, 0));
}

#[test]
fn two_threads_share_the_clients() {
    let Some(server) = memcached(ServerTransport::Tcp) else { return };
    for pace in
        ["--rate 1000 --arrivals bursts:10,1ms,10%", "--popularity hot:3,99%,100us", "--popularity zipf:1"]
    {
        assert_all_read(&run(&[&server], &format!("{FEW} --threads 2 {pace}")));
    }
}

#[test]
fn a_comparison_of_memcached_with_itself_has_every_figure() {
    if memcached(ServerTransport::Tcp).is_none() {
        return;
    }
    let output = Command::new(env!("CARGO_BIN_EXE_chronos-load"))
        .args(["compare", "--pairs=2", "--time=100ms", "--warm-up=20ms", "--keys=500", "--at=50%"])
        .args(["--server=A=memcached -u nobody -p {port} -l 127.0.0.1", "--wait=block", "--timeout=20s"])
        .arg("--server=B=memcached -u nobody -p {port} -l 127.0.0.1 -t 1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.code().is_some_and(|code| code < 2), "{}", String::from_utf8_lossy(&output.stderr));
    for figure in [
        "operations/s at saturation: B to A ",
        "server's processor us per operation at saturation: B to A ",
        "p99 us of the open loop: B to A ",
        "(median of 2)",
    ] {
        assert!(text.contains(figure), "{text}");
    }
    let turns = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        turns.lines().collect::<Vec<_>>().join("; "),
        "pair 1 of 2: A; pair 1 of 2: B; pair 2 of 2: B; pair 2 of 2: A"
    );
}
