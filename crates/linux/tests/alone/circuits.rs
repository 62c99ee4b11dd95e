//! Hybrid networks between real namespaces.

use plimsoll_linux::{Emulated, Options, Program, check};
use plimsoll_units::Span;

use crate::world::{lacks, model, options, run, run_with};

/// Weeks of 15 ms with circuits of 100 Mb/s beside a packet switch of 10 Mb/s.
const HYBRID: &str = "[topology]\nkind = 'hybrid'\nracks = 3\nrate = '100Mbps'\npacket_rate = '10Mbps'\n\
                      delay = '20us'\n\
                      [circuits]\nweek = '15ms'\nreconfiguration = '300us'\nlead = '4ms'\nacks = 'packet'\n\
                      [host]\nbackpressure = true\n[port.host]\nbuffer = '8MB'\n\
                      [transport]\nkind = 'cubic'\nmin_rto = '200ms'\n";

const TRANSFER: &str = "[workload.a]\nkind = 'flows'\nfrom = ['h1']\nto = 'h0'\nsize = '2MB'\n";

/// A transfer that the packet switch alone would carry in 1.6 s is promoted to circuits, which lose nothing; its demand
/// is read of real sockets, and the log with these readings replays to the same digest. Its window is read with it.
#[test]
fn a_transfer_is_promoted_to_circuits() {
    let text = format!("{HYBRID}{TRANSFER}[observe]\nflow_series = '10ms'\n");
    let Some(emulated) = run(&text, &[]) else { return };
    let outcome = &emulated.outcome;
    let latency = outcome.messages[0].latency().unwrap();
    assert!(latency.as_secs_f64() < 1.2, "{latency}");
    let of_pair = outcome.circuits.iter().filter(|circuit| (circuit.sender.0, circuit.receiver.0) == (1, 0));
    let bytes: u64 = of_pair.map(|circuit| circuit.bytes).sum();
    assert!(bytes > 1_000_000, "{bytes} B by circuits");
    assert_eq!(outcome.counters.circuit_drops, 0);
    assert!(emulated.readings.is_some_and(|readings| readings.took.count() > 0));
    let series = &outcome.series;
    let (first, last) = (series.first().unwrap(), series.last().unwrap());
    assert!(series.len() > 10 && last.cwnd > first.cwnd, "{first:?} {last:?}");
    assert!(series.iter().all(|point| point.connection == 0 && point.subflow == 0));
    assert!(series.iter().any(|point| point.rate.as_bps() > 50_000_000), "{series:?}");
    assert!(
        !outcome.warnings.iter().any(|warning| warning.contains("flow_series")),
        "{:?}",
        outcome.warnings
    );
    let weeks = &outcome.circuit_weeks;
    assert!(weeks.len() > 5 && weeks.iter().all(|week| week.lost_dark + week.lost_unmatched == 0));
}

/// MPTCP has a subflow by each switch, and traffic for only circuits or only the packet switch keeps to that.
#[test]
fn subflows_and_workloads_are_bound_to_switches() {
    let with = |mptcp| Options { mptcp, ..options() };
    let text = format!("{HYBRID}{TRANSFER}");
    if let Some(missing) = lacks() {
        return plimsoll_testing::skipped!("this system lacks {missing}");
    }
    let by_packet = text.replace("week =", "packet_only = ['a']\nweek =");
    let carried = run(&by_packet, &[]).unwrap();
    assert_eq!(carried.outcome.circuits.iter().map(|circuit| circuit.packets).sum::<u64>(), 0);
    let calls = text.replace("week =", "estimator = 'send_calls'\nweek =");
    let refused = check(&model(&calls), &with(None)).unwrap_err().to_string();
    assert!(refused.contains("circuits.estimator") && refused.contains("socket_buffers"), "{refused}");
    if let Err(error) = check(&model(&text), &with(Some(2))) {
        return plimsoll_testing::skipped!("{error}");
    }
    let three = check(&model(&text), &with(Some(3))).unwrap_err().to_string();
    assert!(three.contains("one by circuits"), "{three}");
    let mptcp = run_with(&text, with(Some(2))).unwrap();
    let counts = mptcp.multipath.unwrap();
    assert_eq!((counts.connections, counts.joined, counts.fallbacks), (1, 1, 0));
    let of_pair =
        mptcp.outcome.circuits.iter().filter(|circuit| (circuit.sender.0, circuit.receiver.0) == (1, 0));
    assert!(of_pair.map(|circuit| circuit.packets).sum::<u64>() > 100);
    // With one active subflow the packet switch has what it was given before the first circuit, and acknowledgements:
    // of a larger transfer a smaller part.
    let text = text.replace("'2MB'", "'16MB'").replace("'100M", "'200M").replace("'10M", "'40M");
    let by_packets = |emulated: &Emulated| {
        emulated.outcome.circuit_weeks.iter().map(|week| week.packet_bytes).sum::<u64>()
    };
    let both_active = run_with(&text, with(Some(2))).unwrap();
    let one_active = "mptcp = { coupling = 'uncoupled', paths = 'classes', scheduler = 'active-path' }\n";
    let text = text.replace("kind = 'cubic'\n", &format!("kind = 'cubic'\n{one_active}"));
    let one_active = run_with(&text, with(None)).unwrap();
    assert_eq!(one_active.multipath.unwrap().joined, 1);
    let (one, both) = (by_packets(&one_active), by_packets(&both_active));
    assert!(one * 2 < both, "{one} and {both} B by the packet switch");
}

/// A workload and a program announce transfers with their times: the circuits of the weeks in which they are to begin
/// are there for them, and no earlier ones. The program sends nothing, so its circuit stays empty.
#[test]
fn announced_transfers_get_circuits_in_the_week_in_which_they_begin() {
    let announce = "python3 -c 'import socket, time\n\
                    s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n\
                    s.bind(\"\\0program\")\n\
                    for text in (\"h1 1MB 100ms\", \"h7 1MB 100ms\"):\n\
                    \x20   s.sendto(text.encode(), \"\\0plimsoll-hints\")\n\
                    \x20   print(s.recv(400).decode().strip(), flush=True)\n\
                    time.sleep(0.3)'";
    let text =
        format!("{HYBRID}{TRANSFER}start = '150ms'\n").replace("week =", "estimator = 'timed_hints'\nweek =");
    let log = std::env::temp_dir().join(format!("plimsoll-announced-{}", std::process::id()));
    let program = Program {
        host: 2,
        level: None,
        command: announce.to_owned(),
        start: Span::ZERO,
        stop: None,
        log: Some(log.clone()),
    };
    let emulated = run_with(&text, Options { programs: vec![program], ..options() });
    let answers = std::fs::read_to_string(&log).unwrap_or_default();
    let _ = std::fs::remove_file(&log);
    let Some(emulated) = emulated else { return };
    let outcome = &emulated.outcome;
    let first = |sender, receiver| {
        let circuits = outcome.circuits.iter();
        circuits
            .filter(|circuit| (circuit.sender.0, circuit.receiver.0) == (sender, receiver))
            .map(|c| c.week)
            .min()
    };
    // Week 10 is that of 150 ms.
    assert_eq!(first(1, 0), Some(10));
    assert!(
        outcome
            .circuits
            .iter()
            .any(|circuit| circuit.week == 10 && circuit.sender.0 == 1 && circuit.bytes > 0)
    );
    if !answers.starts_with("ok") {
        return plimsoll_testing::skipped!("no python3 to announce a transfer: {answers}");
    }
    // It was started later than the workloads, and lives longer than its announcement.
    let week = first(2, 1).expect("an announced transfer has a circuit");
    assert!(week >= 6, "{week}");
    let rejected = "h2 announced data for `h7`: expected another of the hosts h0 to h2";
    assert_eq!(answers.lines().nth(1), Some(rejected));
    assert!(outcome.warnings.iter().any(|warning| warning.ends_with(rejected)), "{:?}", outcome.warnings);
}
