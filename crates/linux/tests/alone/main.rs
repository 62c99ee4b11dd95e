//! Runs between real namespaces, by the wall's clock: no other test runs beside them. They need root and are skipped,
//! with the reason, where something is missing.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

mod circuits;
mod levels;
mod multipath;
mod ports;
mod transports;
mod world;

use std::fs;

use plimsoll_linux::{CaptureTo, EmulateError, Options, check, emulate};
use plimsoll_traffic::{Actions, Opened, Traffic};
use plimsoll_units::{Span, Streams, Time};

use world::{RACK, captured, lacks, model, options, run};

/// One-way delay 2 ms, so a request takes 4 ms at least and, on a busy machine, not much more.
#[test]
fn requests_take_what_the_links_take() {
    let text = format!(
        "{RACK}[workload.ask]\nkind = 'rpc'\nclient = 'h0'\nrequest = '100B'\nresponse = '1000B'\nload = '1Mbps'\n\
         count = 50\n"
    );
    let Some(emulated) = run(&text, &[]) else { return };
    let mut latencies: Vec<Span> =
        emulated.outcome.messages.iter().map(|message| message.latency().unwrap()).collect();
    latencies.sort_unstable();
    assert_eq!(latencies.len(), 50);
    assert!(latencies[0] >= Span::from_ms(4), "{}", latencies[0]);
    assert!(latencies[0] < Span::from_ms(12), "{}", latencies[0]);
    assert!(emulated.outcome.messages.iter().all(|message| message.ideal >= Span::from_ms(4)));
}

/// Two flows into one port of 100 Mb/s carry at most that, and with a queue of 10 packets some are lost.
#[test]
fn flows_share_a_link_and_its_queue() {
    let text = format!(
        "{RACK}[port.switch]\nbuffer = '10 packets'\n\
         [workload.bulk]\nkind = 'flows'\nfrom = ['h1', 'h2']\nto = 'h0'\nsize = '1MB'\n\
         [observe.queue.q]\nport = 'h0'\nevery = '10ms'\n"
    );
    let Some(emulated) = run(&text, &[]) else { return };
    let outcome = &emulated.outcome;
    assert!(outcome.messages.iter().all(|message| message.completed.is_some()));
    // 2 MB at 100 Mb/s take 160 ms.
    assert!(outcome.end.as_secs_f64() > 0.16, "{}", outcome.end);
    let queue = &outcome.queues[0];
    assert!(queue.drops > 0 && queue.drops == outcome.counters.switch_drops, "{}", queue.drops);
    assert!(*queue.max_bytes.iter().max().unwrap() <= 15_140 && queue.bytes > 2_000_000, "{queue:?}");
    assert!(outcome.counters.retransmissions > 0);
}

/// Flows without a size send until the end of the sending.
#[test]
fn endless_flows_send_until_the_end() {
    let text = format!("{RACK}[run]\nduration = '300ms'\n[workload.all]\nkind = 'permutation'\n");
    let Some(emulated) = run(&text, &[]) else { return };
    let outcome = &emulated.outcome;
    assert!((0.3..0.5).contains(&outcome.end.as_secs_f64()), "{}", outcome.end);
    assert!(
        outcome.connections.iter().all(|connection| connection.delivered > 100_000),
        "{:?}",
        outcome.connections
    );
}

/// With flow control nothing is lost, however small the buffer.
#[test]
fn a_pause_holds_a_real_host() {
    let text = format!(
        "{RACK}[port.switch]\nbuffer = '100KB'\npfc = {{}}\n\
         [workload.bulk]\nkind = 'incast'\nto = 'h0'\nsize = '1MB'\nevery = '1s'\n"
    );
    let Some(emulated) = run(&text, &[]) else { return };
    let counters = &emulated.outcome.counters;
    assert_eq!((counters.switch_drops, counters.nic_drops), (0, 0));
    assert!(emulated.outcome.messages.iter().all(|message| message.completed.is_some()));
}

/// A phantom queue that drains at a tenth marks packets that ask for ECN.
#[test]
fn marks_reach_the_kernel() {
    let text = format!(
        "{RACK}ecn = 'on'\n[port.switch.phantom_queue]\ndrain = 0.1\nthreshold = '3KB'\n\
         [workload.bulk]\nkind = 'flows'\nfrom = ['h1']\nto = 'h0'\nsize = '1MB'\n"
    );
    let Some(emulated) = run(&text, &[]) else { return };
    assert!(emulated.outcome.counters.marks > 0);
    assert_eq!(emulated.outcome.counters.switch_drops, 0);
}

/// A link that is dead from the 200th to the 500th millisecond: the kernel's TCP sends lost data again, and no message
/// arrives meanwhile.
#[test]
fn a_dead_link_is_dead_for_real_hosts() {
    let text = format!(
        "{RACK}[run]\nduration = '800ms'\ndrain = '10s'\n\
         [[fault]]\nfrom = 'h1'\nto = 'tor0'\ndown = true\nat = '200ms'\nuntil = '500ms'\n\
         [workload.ask]\nkind = 'transfer'\nclient = 'h0'\nservers = ['h1']\nsize = '1KB'\nload = '2Mbps'\n"
    );
    let Some(emulated) = run(&text, &[]) else { return };
    let outcome = &emulated.outcome;
    assert!(
        outcome.counters.link_drops > 0 && outcome.counters.retransmissions > 0,
        "{:?}",
        outcome.counters
    );
    assert_eq!(outcome.faults[0].to_string(), "h1 - tor0 dead from 200ms to 500ms");
    let completed: Vec<f64> =
        outcome.messages.iter().map(|message| message.completed.unwrap().as_secs_f64()).collect();
    // Packets that left before it died arrive 4 ms later, on a slow machine somewhat later; the first after it is back
    // takes 2 ms.
    let meanwhile = completed.iter().filter(|at| (0.25..0.502).contains(*at)).count();
    assert_eq!(meanwhile, 0, "{completed:?}");
    assert!(completed.iter().any(|at| *at < 0.2) && completed.iter().any(|at| *at > 0.502), "{completed:?}");
}

/// Queries, and a program beside them that is in the namespace of its host and ends with the run.
#[test]
fn programs_run_in_hosts() {
    let text = format!(
        "{RACK}[run]\nduration = '2s'\n\
         [workload.ask]\nkind = 'fan-out'\nclient = 'h0'\nrequest = '100B'\nresponse = '1000B'\n\
         queries_per_second = 20\n"
    );
    let file = std::env::temp_dir().join(format!("plimsoll-test-{}", std::process::id()));
    let command = format!("sh -c 'cat /sys/class/net/eth0/address > {}; sleep 100'", file.display());
    let Some(emulated) = run(&text, &[(2, &command)]) else { return };
    assert_eq!(fs::read_to_string(&file).unwrap().trim(), "02:50:00:00:00:02");
    fs::remove_file(&file).unwrap();
    let queries = &emulated.outcome.queries;
    assert!(queries.len() > 15, "{}", queries.len());
    assert!(queries.iter().filter_map(|query| query.completed).count() + 2 >= queries.len());
}

/// Every host has a file with the packets that it sent and got: whole blocks, and as many of each as the fabric
/// carried.
#[test]
fn captures_have_every_frame_of_a_host() {
    if let Some(missing) = lacks() {
        plimsoll_testing::skipped!("this system lacks {missing}");
        return;
    }
    let _alone = world::alone();
    let folder = std::env::temp_dir().join(format!("plimsoll-captures-{}", std::process::id()));
    let capture = Some(CaptureTo { folder: folder.clone(), bytes_max: 60 });
    let options = Options { verify: false, capture, ..options() };
    let text = format!(
        "{RACK}[workload.ask]\nkind = 'rpc'\nclient = 'h0'\nrequest = '100B'\nresponse = '1000B'\n\
         load = '1Mbps'\ncount = 20\n"
    );
    let emulated = emulate(&model(&text), &options, || false).unwrap();
    let (mut sent, mut got) = (0, 0);
    for host in 0..3 {
        let bytes = fs::read(folder.join(format!("h{host}.pcapng"))).unwrap();
        let packets = captured(&bytes);
        assert!(packets.iter().all(|packet| packet.kept <= 60));
        sent += packets.iter().filter(|packet| packet.is_sent).count() as u64;
        got += packets.iter().filter(|packet| !packet.is_sent).count() as u64;
    }
    fs::remove_dir_all(&folder).unwrap();
    let counters = &emulated.outcome.counters;
    // Hosts also send to groups, and are answered at the edge.
    let answered = got - counters.packets_delivered;
    assert_eq!(sent, counters.packets_sent + emulated.foreign + answered);
    assert!(counters.packets_delivered > 40);
}

#[test]
fn what_is_not_emulated_is_said_before_anything_is_made() {
    if let Some(missing) = lacks() {
        let text = check(&model(&format!("{RACK}[workload.p]\nkind = 'ping'\n")), &options())
            .unwrap_err()
            .to_string();
        assert!(text.contains("root"), "{text}");
        plimsoll_testing::skipped!("this system lacks {missing}");
        return;
    }
    for (lines, key) in [
        (
            "[host]\npriority_by_size = ['1MB']\n\
             [workload.i]\nkind = 'incast'\nsize = '1KB'\nevery = '1s'\n",
            "host.priority_by_size",
        ),
        (
            "[host.qjump]\nrefill = 'periodic'\n[workload.i]\nkind = 'incast'\nsize = '1KB'\nevery = '1s'\n",
            "host.qjump.refill",
        ),
        (
            "[port.switch]\nint = {}\n[workload.i]\nkind = 'incast'\nsize = '1KB'\nevery = '1s'\n",
            "port.switch.int",
        ),
    ] {
        let error = check(&model(&format!("{RACK}{lines}")), &options()).unwrap_err();
        let EmulateError::Unbuildable(unbuildable) = &error else { panic!("{error}") };
        assert_eq!(unbuildable.key, key, "{error}");
        assert!(unbuildable.problem.contains(" is not emulated"), "{error}");
    }
}

/// The mean of the queue towards h0 in the last second, where two flows of `kind` send without end; none if skipped.
fn mean_queue_of_two_flows(kind: &str) -> Option<f64> {
    let text = format!(
        "[topology]\nkind = 'rack'\nhosts = 3\nrate = '50Mbps'\ndelay = '500us'\n\
         [transport]\nkind = '{kind}'\nmin_rto = '200ms'\n[run]\nduration = '1.5s'\nwarmup = '500ms'\n\
         [port.switch]\nbuffer = '200KB'\necn = {{ threshold = '30KB' }}\n\
         [workload.bulk]\nkind = 'flows'\nfrom = ['h1', 'h2']\nto = 'h0'\n\
         [observe.queue.q]\nport = 'h0'\nevery = '100ms'\n"
    );
    match check(&model(&text), &options()) {
        Err(EmulateError::NoCongestionControl(lacks)) => {
            plimsoll_testing::skipped!("{lacks}");
            return None;
        }
        _ => run(&text, &[]),
    }
    .map(|emulated| {
        let outcome = emulated.outcome;
        let suspect = outcome.warnings.iter().find(|warning| warning.contains("guard"));
        assert_eq!(suspect, None, "no callback is passed over");
        // 50 Mb/s for 1.5 s are 9 MB.
        let delivered: u64 = outcome.connections.iter().map(|connection| connection.delivered).sum();
        assert!(delivered > 2_000_000, "{delivered} B");
        let means = &outcome.queues[0].mean_bytes;
        means.iter().sum::<f64>() / means.len() as f64
    })
}

/// DCTCP keeps the queue near the threshold at which it is marked; Reno, which does not ask for ECN, fills the buffer.
#[test]
fn dctcp_keeps_the_queue_near_its_threshold() {
    let Some(dctcp) = mean_queue_of_two_flows("dctcp") else { return };
    let Some(reno) = mean_queue_of_two_flows("tcp") else { return };
    eprintln!("mean queue: DCTCP {dctcp:.0} B, Reno {reno:.0} B; marked from 30 kB, room for 200 kB");
    assert!((3_000.0..60_000.0).contains(&dctcp), "DCTCP: {dctcp} B");
    assert!(reno > 2.0 * dctcp && reno > 60_000.0, "Reno: {reno} B, DCTCP: {dctcp} B");
}

/// Sources that react to what arrives, all in one run: the simulator's own, over sockets.
#[test]
fn applications_run_over_sockets() {
    let text = format!(
        "{RACK}[workload.echo]\nkind = 'ping'\nto = 'h1'\ninterval = '5ms'\ncount = 20\n\
         [workload.echo-tcp]\nkind = 'ping'\nto = 'h1'\ninterval = '5ms'\ncount = 20\nover = 'tcp'\n\
         [workload.cache]\nkind = 'closed-loop'\noutstanding = 4\ncount = 40\nservice = '100us'\n\
         [workload.rounds]\nkind = 'barrier'\nrounds = 10\n\
         [workload.all]\nkind = 'barrier'\nrounds = 10\npattern = 'all-to-all'\n\
         [workload.vote]\nkind = 'commit'\ncount = 10\n\
         [workload.vote-udp]\nkind = 'commit'\ncount = 10\nover = 'datagram'\n\
         [workload.job]\nkind = 'shuffle'\nsize = '20KB'\nwaves = 2\n\
         [workload.pages]\nkind = 'pages'\npages_per_second = 100\nretrievals = 3\ncount = 10\n\
         [workload.clock]\nkind = 'ptp'\ninterval = '10ms'\ncount = 10\n"
    );
    let Some(emulated) = run(&text, &[]) else { return };
    let outcome = &emulated.outcome;
    let number = |name: &str| {
        let found = outcome.workloads.iter().position(|workload| workload.name == name);
        found.unwrap_or_else(|| panic!("no workload {name}")) as u16
    };
    // There and back over two links of 1 ms each way.
    let there_and_back = Span::from_ms(4);
    for (name, count) in [("echo", 20), ("echo-tcp", 20), ("cache", 40), ("pages", 30), ("job", 12)] {
        let workload = number(name);
        let messages: Vec<_> =
            outcome.messages.iter().filter(|message| message.workload == workload).collect();
        assert_eq!(messages.len(), count, "{name}");
        for message in messages {
            let latency = message.latency().unwrap_or_else(|| panic!("{name}: {message:?}"));
            assert!(latency >= there_and_back && message.ideal >= there_and_back, "{name}: {message:?}");
            assert_eq!(message.split.total(), Span::ZERO, "where the time went is not known");
        }
    }
    for (name, count, trips) in [
        ("rounds", 10, 1),
        ("all", 10, 0),
        ("vote", 10, 2),
        ("vote-udp", 10, 2),
        ("pages", 10, 1),
        ("job", 1, 2),
    ] {
        let workload = number(name);
        let queries: Vec<_> = outcome.queries.iter().filter(|query| query.workload == workload).collect();
        assert_eq!(queries.len(), count, "{name}");
        for query in queries {
            let took = query.completed.unwrap_or_else(|| panic!("{name}: {query:?}")) - query.created;
            // In an all-to-all round the messages take one way.
            let least = if trips == 0 { there_and_back / 2 } else { there_and_back * trips };
            assert!(took >= least, "{name}: {query:?}");
        }
    }
    let clock = number("clock");
    let offsets = outcome.observations.iter().filter(|seen| seen.workload == clock).count();
    assert_eq!(offsets, 20, "two clients");
    let kept = outcome.connections.iter().filter(|connection| connection.workload == number("cache")).count();
    // Each of four slots has one connection to each of two servers, from its own first request to that server on.
    assert!((4..=8).contains(&kept), "{kept} connections");
}

/// Single packets leave at the simulator's times and are as long on the wire as the scenario says.
#[test]
fn packets_are_datagrams_at_the_simulators_times() {
    let text = format!(
        "{RACK}[workload.raw]\nkind = 'packets'\nfrom = ['h1', 'h2']\nto = 'h0'\nsize = '500B'\nload = '1Mbps'\n\
         arrivals = 'constant'\ncount = 50\n[observe.queue.q]\nport = 'h0'\nevery = '10ms'\n"
    );
    let Some(emulated) = run(&text, &[]) else { return };
    let outcome = &emulated.outcome;
    assert_eq!((outcome.messages.len(), outcome.queues[0].bytes), (100, 100 * 500));
    for message in &outcome.messages {
        // 500 B at 1 Mb/s take 4 ms; the low half of the index counts a sender's packets.
        let number = (message.index & 0xffff_ffff) + 1;
        assert_eq!(message.created, Time::ZERO + Span::from_ms(4) * number, "{message:?}");
        let took = message.latency().unwrap();
        assert!(took >= Span::from_ms(2) && message.ideal >= Span::from_ms(2), "{message:?}");
        assert!(message.bytes == 500 && message.ideal <= took, "{message:?}");
    }
}

/// A connection for each of more requests than there could be threads for.
#[test]
fn requests_beyond_a_thousand_have_their_connections() {
    let text = format!(
        "{RACK}connections = 'per-message'\n\
         [workload.ask]\nkind = 'rpc'\nclient = 'h0'\nrequest = '100B'\nresponse = '100B'\nload = '1Mbps'\n\
         count = 1300\n"
    );
    let Some(emulated) = run(&text, &[]) else { return };
    let outcome = &emulated.outcome;
    assert_eq!((outcome.messages.len(), outcome.connections.len()), (1300, 1300));
    let latencies = outcome.messages.iter().map(|message| message.latency().unwrap());
    // 2 ms one way, for SYN, SYN-ACK, request and answer.
    let shortest = latencies.min().unwrap();
    assert!(shortest >= Span::from_ms(8), "{shortest}");
    assert!(outcome.connections.iter().all(|connection| connection.delivered == 200));
}

/// Losses of single packets are reported to their source, and the run ends.
#[test]
fn lost_packets_end_nothing() {
    let text = format!(
        "{RACK}[run]\nduration = '500ms'\ndrain = '5s'\n[port.switch]\nbuffer = '3 packets'\n\
         [workload.echo]\nkind = 'ping'\nto = 'h1'\ninterval = '2ms'\n\
         [workload.bulk]\nkind = 'flows'\nfrom = ['h1', 'h2']\nto = 'h0'\nsize = '2MB'\n"
    );
    let Some(emulated) = run(&text, &[]) else { return };
    let outcome = &emulated.outcome;
    let pings: Vec<_> = outcome.messages.iter().filter(|message| message.workload == 0).collect();
    assert_eq!(pings.len(), 250);
    let lost = pings.iter().filter(|ping| ping.completed.is_none()).count();
    assert!((1..200).contains(&lost), "{lost} lost");
    assert!(outcome.end.as_secs_f64() < 5.4, "{}: the last ones are given up after a second", outcome.end);
}

/// An emulated run sends the messages that the sources of its scenario generate by themselves, at their times.
#[test]
fn flows_are_those_of_their_sources() {
    let text = format!(
        "{RACK}[run]\nduration = '400ms'\ndrain = '10s'\n\
         [workload.chain]\nkind = 'stride'\nstride = 2\nsize = '20KB'\nstart_within = '50ms'\n\
         [workload.unison]\nkind = 'pstride'\nperiod = '100ms'\nload = '1Mbps'\n\
         [workload.slow]\nkind = 'hstride'\nflows = 3\nsize = '2KB'\nload = '500kbps'\n\
         [workload.any]\nkind = 'all-to-all'\nsize = '5KB'\nload = '500kbps'\n\
         [workload.cast]\nkind = 'incast'\nto = 'h1'\nsize = '10KB'\nevery = '100ms'\nrounds = 3\n"
    );
    let Some(emulated) = run(&text, &[]) else { return };
    let outcome = &emulated.outcome;
    let model = model(&text);
    let traffic = Traffic::new(&model.traffic_spec(), &Streams::new(model.run.seed)).unwrap();
    for (number, mut source) in traffic.sources.into_iter().enumerate() {
        let (mut connections, mut expected) = (Vec::new(), Vec::new());
        while source.next_due() < Time::MAX {
            let at = source.next_due();
            let mut actions = Actions { next_connection: connections.len() as u32, ..Actions::default() };
            source.on_due(at, &mut actions);
            connections.append(&mut actions.opened);
            expected.extend(actions.writes.iter().map(|write| {
                let Opened { client, server } = connections[write.connection as usize];
                (at, client.0, server.0, write.bytes)
            }));
        }
        let name = &outcome.workloads[number].name;
        let of_workload = |workload: u16| usize::from(workload) == number;
        let sent = outcome.messages.iter().filter(|message| of_workload(message.workload));
        let sent = sent.map(|message| (message.created, message.source, message.destination, message.bytes));
        assert_eq!(sent.collect::<Vec<_>>(), expected, "{name}");
        let opened = outcome.connections.iter().filter(|connection| of_workload(connection.workload));
        assert_eq!(opened.count(), connections.len(), "{name}");
    }
    assert!(outcome.messages.iter().all(|message| message.completed.is_some()));
}
