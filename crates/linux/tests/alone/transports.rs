//! Several transports in one emulated run: each workload's connections have its own.

use std::fs;

use plimsoll_linux::{CaptureTo, EmulateError, Emulated, Options, Program, check};
use plimsoll_units::Span;

use crate::world::{CapturedPacket, RACK, captured, lacks, model, options, run_with};

/// DCTCP from h1 and CUBIC from h2, to h0, with smaller segments, a smaller first window and a longer timeout.
const MIXED: &str = "[topology]\nkind = 'rack'\nhosts = 3\nrate = '50Mbps'\ndelay = '5ms'\n\
    [run]\nduration = '1500ms'\n[port.switch]\nbuffer = '200KB'\necn = { threshold = '30KB' }\n\
    [transport]\nkind = 'dctcp'\nmin_rto = '200ms'\n\
    [transports.backup]\nkind = 'cubic'\nmin_rto = '700ms'\nsegment = '1000B'\ninitial_window = 4\npriority = 1\n\
    [workload.query]\nkind = 'flows'\nfrom = 'h1'\nto = 'h0'\n\
    [workload.backup]\nkind = 'flows'\nfrom = 'h2'\nto = 'h0'\ntransport = 'backup'\n";

/// Returns whether the emulation of `text` is possible here; prints the reason where it is not.
fn is_possible(text: &str, options: &Options) -> bool {
    if let Some(missing) = lacks() {
        plimsoll_testing::skipped!("this system lacks {missing}");
        return false;
    }
    match check(&model(text), options) {
        Err(EmulateError::NoCongestionControl(lacks)) => plimsoll_testing::skipped!("{lacks}"),
        Err(error) if error.to_string().contains("MPTCP (CONFIG_MPTCP)") => {
            plimsoll_testing::skipped!("{error}");
        }
        _ => return true,
    }
    false
}

/// What sockets report (`ss`), and what is on the wire.
#[test]
fn workloads_have_the_transports_that_they_name() {
    if !is_possible(MIXED, &options()) {
        return;
    }
    let folder = std::env::temp_dir().join(format!("plimsoll-mixed-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let listing = |host: u32| folder.join(format!("sockets-{host}"));
    let programs = [1, 2].map(|host| {
        let file = listing(host).display().to_string();
        let list = format!(
            "sh -c 'while :; do ss -tinoH state established > {file}.new && mv {file}.new {file}; sleep 0.1; done'"
        );
        Program { host, level: None, command: list, start: Span::ZERO, stop: None, log: None }
    });
    let capture = Some(CaptureTo { folder: folder.clone(), bytes_max: 100 });
    let options = Options { capture, programs: programs.to_vec(), ..options() };
    let emulated = run_with(MIXED, options).unwrap();
    assert!(emulated.outcome.counters.marks > 0, "the switch marks");

    for (host, control, segment, timeout) in [(1, "dctcp", 1460, 200..700), (2, "cubic", 1000, 700..1600)] {
        let text = fs::read_to_string(listing(host)).unwrap();
        assert!(text.contains(control), "{text}");
        assert!(text.contains(&format!(" mss:{segment} ")), "{text}");
        assert_eq!(text.contains(" ecn "), control == "dctcp", "{text}");
        let number = text.split(" rto:").nth(1).and_then(|rest| rest.split(' ').next());
        let number: f64 = number.and_then(|word| word.parse().ok()).unwrap_or_else(|| panic!("{text}"));
        assert!(timeout.contains(&(number as u32)), "a timeout of {number} ms in {timeout:?}: {text}");
    }
    for (host, name, port, ect, first, class) in
        [(1, "query", 20_000, true, 10, 0), (2, "backup", 20_001, false, 4, 1)]
    {
        let packets = captured(&fs::read(folder.join(format!("h{host}.pcapng"))).unwrap());
        let of_workload: Vec<&CapturedPacket> =
            packets.iter().filter(|packet| packet.ports.contains(&port)).collect();
        let data = |packet: &&&CapturedPacket| packet.is_sent && packet.payload > 0;
        assert!(of_workload.iter().filter(data).count() > 100, "{name}");
        for packet in of_workload.iter().filter(data) {
            assert_eq!(packet.traffic_class & 3 != 0, ect, "{name}: ECN-capable, {packet:?}");
            assert_eq!(packet.traffic_class >> 5, class, "{name}: {packet:?}");
        }
        // The SYN-ACK is the first packet received, and the next one acknowledges data.
        let before = of_workload.iter().take_while({
            let mut received = 0;
            move |packet| {
                received += u32::from(!packet.is_sent);
                received < 2
            }
        });
        assert_eq!(before.filter(data).count(), first, "{name}: the first window");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn mptcp_and_tcp_are_in_one_run() {
    let text = "[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\nhosts_per_leaf = 1\nrate = '40Mbps'\n\
                fabric_rate = '10Mbps'\ndelay = '100us'\n[run]\nduration = '500ms'\n\
                [transports.paths]\nmptcp = { subflows = 4, coupling = 'uncoupled' }\n\
                [workload.wide]\nkind = 'flows'\nfrom = 'h0'\nto = 'h1'\ntransport = 'paths'\n\
                [workload.narrow]\nkind = 'flows'\nfrom = 'h0'\nto = 'h1'\n";
    if !is_possible(text, &options()) {
        return;
    }
    let emulated: Emulated = run_with(text, options()).unwrap();
    let counts = emulated.multipath.unwrap();
    assert_eq!((counts.connections, counts.fallbacks), (1, 0), "one connection of two");
    let warnings = &emulated.outcome.warnings;
    assert!(
        warnings.iter().any(|said| said.starts_with("the connections of `wide` were MPTCP, with up to 4")),
        "{warnings:?}"
    );
    assert!(emulated.outcome.connections.iter().all(|connection| connection.delivered > 0));
}

/// A transport whose host could not have it beside the other's is refused at its key.
#[test]
fn keys_of_a_whole_host_cannot_differ() {
    let refused = |own: &str| {
        let text = format!(
            "{RACK}[transports.own]\n{own}\n[workload.a]\nkind = 'incast'\nsize = '1KB'\nevery = '1s'\n\
             [workload.b]\nkind = 'incast'\nsize = '1KB'\nevery = '1s'\ntransport = 'own'\n"
        );
        is_possible(&text, &options())
            .then(|| check(&model(&text), &options()).map_err(|error| error.to_string()))
    };
    for (own, key, reason) in [
        ("recovery = 'newreno'", "transports.own.recovery", "net.ipv4.tcp_sack"),
        ("header = '52B'", "transports.own.header", "net.ipv4.tcp_timestamps"),
        ("pacing_rate = '1Mbps'", "transports.own.pacing_rate", "not emulated"),
        ("dup_ack_threshold = 5", "transports.own.dup_ack_threshold", "RACK"),
    ] {
        let Some(checked) = refused(own) else { return };
        let said = checked.unwrap_err();
        assert!(said.starts_with(&format!("{key}: ")) && said.contains(reason), "{said}");
    }
    assert_eq!(refused("kind = 'cubic'\necn = 'on'\nconnections = 'per-message'"), Some(Ok(())));
}
