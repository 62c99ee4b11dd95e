//! QJump's levels, and programs that have them.

use std::fs;

use plimsoll_linux::{Emulated, Options, Program, check};
use plimsoll_units::Span;

use crate::world::{RACK, model, options, run, run_with};

/// Small requests beside two endless flows: by priority and within their share they do not wait behind the flows.
#[test]
fn a_level_does_not_wait_for_bulk() {
    let text = "[topology]\nkind = 'rack'\nhosts = 3\nrate = '50Mbps'\ndelay = '100us'\n\
                [transport]\nmin_rto = '200ms'\n[run]\nduration = '1.5s'\nwarmup = '500ms'\n\
                [port.switch]\nbuffer = '200KB'\norder = 'priorities'\n\
                [port.host]\norder = 'priorities'\n\
                [workload.bulk]\nkind = 'flows'\nfrom = ['h1', 'h2']\nto = 'h0'\n\
                [workload.small]\nkind = 'ping'\nfrom = 'h1'\nto = 'h0'\nsize = '64B'\ninterval = '10ms'\n\
                one_at_a_time = true\n";
    let levels = "[host]\npriority = { small = 7 }\n[host.qjump]\npacket = '256B'\n";
    let with = format!("{text}{levels}");
    if let Err(error) = check(&model(&with), &options()) {
        plimsoll_testing::skipped!("{error}");
        return;
    }
    let median = |emulated: &Emulated| {
        let messages = emulated.outcome.messages.iter().filter(|message| message.workload == 1);
        let mut latencies: Vec<Span> =
            messages.map(|message| message.latency().unwrap_or(Span::MAX)).collect();
        latencies.sort_unstable();
        // A ping that the full queue drops is lost for a second, in which no other is sent.
        (latencies.len() > 5).then(|| latencies[latencies.len() / 2])
    };
    // At least 100 kB wait for h0, which is 16 ms. On a machine that stops the senders for a while nothing waits, and
    // there is nothing to compare with.
    let contended = |_| {
        let without = run(text, &[]).unwrap();
        assert_eq!(without.excess, None);
        median(&without).filter(|median| *median > Span::from_ms(8))
    };
    let without = (0..3).find_map(contended).expect("in one of three runs bulk fills the queue");
    let with = run(&with, &[]).unwrap();
    assert_eq!(with.excess.unwrap()[7], 0, "one small packet at a time is within the share");
    let with = median(&with).expect("no ping is lost within its share");
    eprintln!("median round trip: {without} without QJump, {with} with it");
    assert!(with < without / 2, "{with} with QJump, {without} without");
}

/// A sender beyond the share of its level gets exactly the share, by UDP as by TCP.
#[test]
fn a_greedy_level_gets_its_share() {
    // One packet of 256 B in an epoch of 2 ms is 1.02 Mb/s.
    let text = "[topology]\nkind = 'rack'\nhosts = 2\nrate = '50Mbps'\ndelay = '100us'\n\
                [run]\nduration = '1s'\ndrain = '2s'\n[transport]\nsegment = '200B'\nmin_rto = '20ms'\n\
                [host]\npriority = { many = 7, flow = 6 }\n\
                [host.qjump]\npacket = '256B'\nepoch = '2ms'\nlevels = ['line', 'line', 'line', 'line', 'line', \
                'line', '4x', '1x']\n\
                [workload.many]\nkind = 'ping'\nfrom = 'h1'\nto = 'h0'\nsize = '100B'\ninterval = '200us'\n\
                [workload.flow]\nkind = 'flows'\nfrom = ['h1']\nto = 'h0'\nsize = '10MB'\n";
    if let Err(error) = check(&model(text), &options()) {
        plimsoll_testing::skipped!("{error}");
        return;
    }
    let emulated = run(text, &[]).unwrap();
    let outcome = &emulated.outcome;
    let excess = emulated.excess.unwrap();
    assert!(excess[7] > 1_000 && excess[6] > 0, "{excess:?}");
    assert_eq!(excess[..6], [0; 6]);
    // Level 7: of 5,000 packets of 142 B one an epoch; an epoch more for the one that is under way.
    let arrived = outcome
        .messages
        .iter()
        .filter(|message| message.workload == 0 && message.completed.is_some())
        .count();
    assert!((50..=502).contains(&arrived), "{arrived} of 5000 came back");
    // Level 6: 1024 B an epoch are 512 kB a second, headers included. A connection paces itself below that, and loses
    // some of it when the other level's packets wake up: 60 kB/s were measured. A connection without pacing waits for
    // retransmission timers: 3 kB/s.
    let delivered = outcome.connections[0].delivered as f64 / outcome.end.as_secs_f64();
    eprintln!("{arrived} pings, {delivered:.0} B/s by TCP, beyond the share {excess:?}");
    assert!((15_000.0..=520_000.0).contains(&delivered), "{delivered} B/s");
}

/// Programs start and end at their times, with their given level, and their output is kept.
#[test]
fn programs_have_levels_times_and_logs() {
    let text = format!(
        "{RACK}[run]\nduration = '2s'\n[host.qjump]\npacket = '2KB'\n\
         [workload.ask]\nkind = 'ping'\nto = 'h1'\ninterval = '100ms'\n"
    );
    let folder = std::env::temp_dir().join(format!("plimsoll-programs-{}", std::process::id()));
    let priority = "python3 -c 'import socket; print(socket.socket().getsockopt(socket.SOL_SOCKET, \
                    socket.SO_PRIORITY))'";
    let program = |name: &str, level, command: &str| Program {
        host: 1,
        level,
        command: command.to_owned(),
        start: Span::ZERO,
        stop: None,
        log: Some(folder.join(name)),
    };
    let programs = vec![
        program("level", Some(5), priority),
        program("none", None, priority),
        program("fails", None, "sh -c 'echo no; exit 3'"),
        Program {
            start: Span::from_ms(200),
            stop: Some(Span::from_ms(950)),
            ..program("late", None, "sh -c 'date +%s%N; sleep 60'")
        },
    ];
    let options = Options { programs, ..options() };
    if let Err(error) = check(&model(&text), &options) {
        plimsoll_testing::skipped!("{error}");
        return;
    }
    fs::create_dir_all(&folder).unwrap();
    let emulated = run_with(&text, options).unwrap();
    let said = |name: &str| fs::read_to_string(folder.join(name)).unwrap().trim().to_owned();
    let (level, none, fails) = (said("level"), said("none"), said("fails"));
    let late = said("late");
    fs::remove_dir_all(&folder).unwrap();
    assert!(late.bytes().all(|byte| byte.is_ascii_digit()), "{late}");
    // Any may have been ended before it printed.
    if level.is_empty() || none.is_empty() || late.is_empty() {
        plimsoll_testing::skipped!("no python3 to ask for the level, or it took longer than the run");
    } else {
        assert_eq!((level.as_str(), none.as_str()), ("5", "0"));
    }
    assert_eq!(fails, "no");
    let failed: Vec<_> =
        emulated.programs.iter().filter(|end| end.program.command.contains("exit 3")).collect();
    assert!(failed.len() == 1 && failed[0].has_failed(), "{:?}", emulated.programs);
    assert!(emulated.outcome.warnings.iter().any(|warning| warning.contains("exit status: 3")));
    let stopped = emulated.programs.iter().find(|end| end.program.stop.is_some()).unwrap();
    assert_eq!(stopped.status, None, "it was killed at its time");
}

/// Data that a server sends over accepted connections is held to the server's level, too.
#[test]
fn accepted_connections_have_their_server_s_level() {
    // One packet of 256 B in an epoch of 2 ms is 128 kB/s.
    let text = format!(
        "{RACK}segment = '200B'\n[run]\nduration = '3s'\n[host.qjump]\npacket = '256B'\nepoch = '2ms'\n\
         levels = ['line', 'line', 'line', 'line', 'line', 'line', 'line', '1x']\n\
         [workload.ask]\nkind = 'ping'\nto = 'h2'\ninterval = '100ms'\n"
    );
    let server = "python3 -c 'import socket; listener = socket.create_server((\"10.0.0.2\", 4000)); \
                  listener.accept()[0].sendall(bytes(10000000))'";
    let client = "python3 -c 'import socket, time\n\
                  while True:\n\
                  \x20   try:\n\
                  \x20       server = socket.create_connection((\"10.0.0.2\", 4000)); break\n\
                  \x20   except OSError:\n\
                  \x20       time.sleep(0.01)\n\
                  server.recv(10000000, socket.MSG_WAITALL)'";
    let program = |host, level, command: &str| Program {
        host,
        level,
        command: command.to_owned(),
        start: Span::ZERO,
        stop: None,
        log: None,
    };
    let programs = vec![program(1, Some(7), server), program(0, None, client)];
    let options = Options { programs, ..options() };
    if let Err(error) = check(&model(&text), &options) {
        plimsoll_testing::skipped!("{error}");
        return;
    }
    let emulated = run_with(&text, options).unwrap();
    // Unlimited, it would be most of 10 MB: 50,000 packets.
    assert!(emulated.excess.unwrap()[7] > 0, "the level has refused what was too much");
    assert!(emulated.outcome.counters.packets_delivered < 10_000);
}
