//! Conservation of everything that enters: packets, bytes, messages and time, however little room there is.

use std::collections::BTreeSet;

use plimsoll_results::outcome::LinkTotals;
use plimsoll_units::Span;
use proptest::prelude::*;

use crate::truth::arbitrary::{Scope, config, scenario};
use crate::truth::lab::{Run, run};

/// How many messages a workload of `arbitrary` makes in a run of `hosts` hosts; `None` for raw packets,
/// which no host sends again.
fn expected_messages(name: &str, hosts: u64) -> Option<u64> {
    match name {
        "rpc" => Some(60),
        "transfer" => Some(8),
        "incast" => Some(6 * (hosts - 1)),
        "all" => Some(100),
        "fan" => Some(20 * (hosts - 1)),
        _ => None,
    }
}

fn hosts(text: &str) -> u64 {
    let racks = (3..7).find(|hosts| text.contains(&format!("kind = 'rack'\nhosts = {hosts}")));
    racks.unwrap_or(if text.contains("fat-tree") { 16 } else { 6 })
}

fn check(run: &Run, hosts: u64) -> Result<(), TestCaseError> {
    let counters = run.counters;
    prop_assert_eq!(counters.packets_sent, counters.packets_accounted_for());
    prop_assert_eq!((counters.link_drops, counters.no_route_drops), (0, 0));
    prop_assert_eq!(&run.warnings, &Vec::<String>::new());
    for (number, info) in run.workloads.iter().enumerate() {
        let messages: Vec<_> = run.of(&info.name).collect();
        let indices: BTreeSet<u64> = messages.iter().map(|message| message.index).collect();
        prop_assert_eq!(indices.len(), messages.len(), "an index of {} is used twice", &info.name);
        let Some(expected) = expected_messages(&info.name, hosts) else { continue };
        prop_assert_eq!(messages.len() as u64, expected, "messages of {}", &info.name);
        let request = if matches!(info.kind.as_str(), "rpc" | "transfer" | "fan-out") { 100 } else { 0 };
        let written: u64 = messages.iter().map(|message| message.bytes + request).sum();
        let connections =
            run.connections.iter().filter(|connection| usize::from(connection.workload) == number);
        let delivered: u64 = connections.map(|connection| connection.delivered).sum();
        prop_assert_eq!(delivered, written, "bytes of {}", &info.name);
    }
    for message in &run.messages {
        let Some(latency) = message.latency() else {
            return Err(TestCaseError::fail(format!("{message:?}")));
        };
        prop_assert_eq!(message.split.total(), latency);
        prop_assert!(message.ideal <= latency || message.query.is_some(), "faster than light: {:?}", message);
    }
    for query in &run.queries {
        let parts: Vec<_> = run
            .messages
            .iter()
            .filter(|message| message.workload == query.workload && message.query == Some(query.index))
            .collect();
        let last = parts.iter().filter_map(|message| message.completed).max();
        prop_assert_eq!(query.completed, last);
        prop_assert_eq!(query.servers as usize, parts.len());
        let fastest = parts.iter().filter_map(|message| message.latency()).min();
        prop_assert_eq!(Some(query.response_min), fastest);
    }
    let sent: u64 = run.goodput.iter().map(|interval| interval.sent.get()).sum();
    let delivered: u64 = run.goodput.iter().map(|interval| interval.delivered.get()).sum();
    prop_assert_eq!(sent, delivered, "goodput as the senders and as the receivers see it");
    Ok(())
}

proptest! {
    #![proptest_config(config(200))]
    #[test]
    fn nothing_is_lost_but_what_is_dropped(text in scenario(Scope::All)) {
        let hosts = hosts(&text);
        check(&run(&text.replace("ENGINE", "")), hosts)?;
    }
}

fn shared_nic(order: &str) -> Run {
    run(&format!(
        "version = 1\ntitle = 'a bulk flow and small answers share a NIC'\n[run]\nduration = '200ms'\nwarmup = '50ms'\n\
         [topology]\nkind = 'rack'\nhosts = 3\nrate = '1Gbps'\ndelay = '5us'\n[port.host]\norder = '{order}'\n\
         [transport]\nmax_window = 1000\n\
         [workload.bulk]\nkind = 'flows'\nfrom = ['h1']\nto = 'h2'\n\
         [workload.small]\nkind = 'rpc'\nservers = ['h1']\nrequest = '100B'\nresponse = '900B'\nload = '2Mbps'\n"
    ))
}

#[test]
fn a_fair_nic_isolates_a_small_message() {
    // It waits for the packet in service, and for one turn of the bulk flow.
    let two_packets = Span::from_us(24);
    let fair = shared_nic("fair-per-flow");
    assert!(fair.of("small").count() > 30);
    for message in fair.of("small") {
        assert!(message.split.nic < two_packets, "{message:?}");
    }
    let fifo = shared_nic("fifo");
    for message in fifo.of("small").filter(|message| message.completed.is_some()) {
        assert!(
            message.split.nic > two_packets * 100,
            "a thousand packets stand in a shared queue: {message:?}"
        );
    }
}

/// The paper's pacer is behind the transport and before the NIC: it waits for room as well.
#[test]
fn a_pacer_before_a_full_nic_drops_nothing() {
    let run = run(
        "version = 1\ntitle = 'paced'\n[topology]\nkind = 'rack'\nhosts = 4\nrate = '1Gbps'\ndelay = '5us'\n\
         [port.host]\nbuffer = '2 packets'\n[port.switch]\necn = { threshold = '3 packets' }\n\
         [host]\nbackpressure = true\npacer = { form = 'paper', association_probability = 1.0 }\n\
         [transport]\nkind = 'dctcp'\ninitial_window = 60\n\
         [workload.bulk]\nkind = 'incast'\nsize = '300KB'\nfrom = ['h1', 'h1', 'h2']\nevery = '1s'\n",
    );
    assert_eq!((run.counters.nic_drops, run.counters.timeouts), (0, 0));
    assert!(run.messages.iter().all(|message| message.completed.is_some()));
    assert!(run.connections.iter().any(|connection| connection.pacer_associations > 0));
}

#[test]
fn backpressure_never_drops_at_the_nic_and_keeps_the_link_busy() {
    let transfer = |host: &str, nic: &str| {
        run(&format!(
            "version = 1\ntitle = 'a NIC with little room'\n[topology]\nkind = 'rack'\nhosts = 4\n\
             rate = '1Gbps'\ndelay = '5us'\n\
             [port.host]\n{nic}\n[host]\n{host}\n[transport]\nmin_rto = '10ms'\ninitial_window = 100\n\
             [workload.bulk]\nkind = 'incast'\nsize = '2MB'\nfrom = ['h1', 'h1']\nevery = '1s'\n"
        ))
    };
    for nic in [
        "buffer = '10 packets'",
        "buffer = '1 packets'",
        "buffer = '20KB'\norder = 'fair-per-flow'",
        "buffer = '2 packets'\ncounts = 'waiting-and-in-service'",
        "buffer = '1 packets'\ncounts = 'waiting-and-in-service'",
        "buffer = '1500B'\ncounts = 'waiting-and-in-service'",
        "buffer = '0 packets'",
    ] {
        let run = transfer("backpressure = true", nic);
        assert_eq!((run.counters.nic_drops, run.counters.timeouts), (0, 0), "{nic}");
        let last = run.messages.iter().filter_map(|message| message.completed).max().unwrap();
        // 4 MB in full segments at line rate, the handshake and the way there.
        let line_rate_ms = 4e6 * 1500.0 / 1460.0 * 8e-6;
        let took_ms = last.as_secs_f64() * 1e3;
        assert!((line_rate_ms..line_rate_ms + 0.2).contains(&took_ms), "{nic}: {took_ms} ms");
    }
    assert!(transfer("backpressure = false", "buffer = '10 packets'").counters.nic_drops > 0);
}

/// A limit on waiting packets does not concern a packet that need not wait.
#[test]
fn a_port_without_a_buffer_passes_what_finds_it_idle() {
    for engine in ["express", "general"] {
        let run = run(&format!(
            "version = 1\ntitle = 'no buffer'\n[topology]\nkind = 'rack'\nhosts = 5\nrate = '1Gbps'\ndelay = '5us'\n\
             [port.switch]\nbuffer = '0 packets'\nengine = '{engine}'\n\
             [workload.w]\nkind = 'packets'\nfrom = 'others'\nto = 'client'\nsize = '1000B'\nload = 0.1\n\
             arrivals = 'constant'\ncount = 100\n[observe]\nflow_series = '1ms'\n"
        ));
        // The run ends when the last packet has arrived or is lost, although a series is sampled.
        assert!(run.end.as_secs_f64() < 1.0, "{}", run.end);
        // Four arrive at the same instant; one is sent.
        let counters = run.counters;
        assert_eq!((counters.packets_sent, run.messages.len(), counters.switch_drops), (400, 100, 300));
        assert!(run.messages.iter().all(|message| message.split.tier[0].is_zero()));
    }
}

/// Buffer limits, to the packet: senders hit a port at one instant with one packet each.
#[test]
fn a_full_buffer_holds_what_it_says() {
    for (limit, counts, sent) in [
        ("3 packets", "waiting", 4),
        ("3 packets", "waiting-and-in-service", 3),
        ("3000B", "waiting", 4),
        ("3999B", "waiting", 4),
        ("3000B", "waiting-and-in-service", 3),
        ("2999B", "waiting-and-in-service", 2),
        ("unlimited", "waiting", 8),
    ] {
        for engine in ["express", "general"] {
            let run = run(&format!(
                "version = 1\ntitle = 'a limit'\n[topology]\nkind = 'rack'\nhosts = 9\nrate = '1Gbps'\ndelay = '5us'\n\
                 [transport]\nsegment = '900B'\n[port.switch]\nbuffer = '{limit}'\ncounts = '{counts}'\n\
                 engine = '{engine}'\n\
                 [workload.w]\nkind = 'packets'\nfrom = 'others'\nto = 'client'\nsize = '1000B'\nload = 0.01\n\
                 arrivals = 'constant'\ncount = 50\n[run]\nduration = '1s'\n"
            ));
            assert_eq!(run.messages.len(), 50 * sent, "{limit} {counts}, {engine}");
            assert_eq!(run.counters.switch_drops as usize, 50 * (8 - sent));
        }
    }
}

/// A port that two names watch is under both of them, and the tier lacks none of its ports.
#[test]
fn a_port_is_watched_under_each_of_its_names() {
    let run =
        run("version = 1\ntitle = 'twice'\n[run]\nduration = '2ms'\n[topology]\nkind = 'rack'\nhosts = 3\n\
         rate = '1Gbps'\ndelay = '1us'\n[workload.w]\nkind = 'transfer'\nsize = '10KB'\nload = 0.5\n\
         [observe.queue]\nclient = { port = 'client', every = '1ms' }\nh0 = { port = 'h0', every = '1ms' }\n\
         tor = { port = 'tier:tor', every = '1ms' }\n");
    let of = |name: &str| run.queues.iter().filter(|queue| queue.name == name).collect::<Vec<_>>();
    assert_eq!((of("client").len(), of("h0").len(), of("tor").len()), (1, 1, 3));
    assert!(of("client")[0].packets > 0);
    assert_eq!(of("client")[0].mean_bytes, of("h0")[0].mean_bytes);
    assert_eq!(of("client")[0].packets, of("tor")[0].packets);
}

/// Eight hosts at once into one, whose link drops, or pauses the others, which then sends without a gap.
#[test]
fn links_add_up_to_the_whole() {
    let text = "version = 1\ntitle = 'links'\n[topology]\nkind = 'leaf-spine'\n\
                leaves = 2\nspines = 2\nhosts_per_leaf = 4\nrate = '10Gbps'\ndelay = '1us'\n\
                [transport]\nack_every = 1\nhandshake = false\ninitial_window = 100\nmin_rto = '1ms'\n\
                [port.switch]\nbuffer = '100KB'\n[observe]\nlinks = true\n\
                [workload.bulk]\nkind = 'incast'\nto = 'h0'\nsize = '150KB'\nevery = '1ms'\n";
    let dropping = run(text);
    let sum = |run: &Run, of: fn(&LinkTotals) -> u64| run.links.iter().map(of).sum::<u64>();
    let drops = dropping.counters.nic_drops + dropping.counters.switch_drops;
    assert!(drops > 50, "{drops}");
    assert_eq!((sum(&dropping, |link| link.drops), sum(&dropping, |link| link.pauses)), (drops, 0));
    assert_eq!(sum(&dropping, |link| link.packets), dropping.counters.packet_hops);
    let tiers: BTreeSet<&str> = dropping.links.iter().map(|link| link.tier.as_str()).collect();
    assert_eq!(tiers, ["host -> leaf", "leaf -> host", "leaf -> spine", "spine -> leaf"].into());
    let busiest = dropping.links.iter().max_by_key(|link| link.drops).unwrap();
    assert_eq!((busiest.from.as_str(), busiest.to.as_str()), ("leaf0", "h0"));

    let pausing = run(&text.replace("buffer = '100KB'", "buffer = '100KB'\npfc = {}"));
    assert_eq!(sum(&pausing, |link| link.drops), 0);
    let of = |from: &str, to: &str| pausing.links.iter().find(|link| link.from == from && link.to == to);
    // All of it goes over the one link, from the first byte to the last: 7 x 106 packets.
    let last = pausing.of("bulk").filter_map(|message| message.latency()).max().unwrap();
    let sent = Span::from_ps(of("leaf0", "h0").unwrap().bytes * 800);
    assert!(sent < last && sent > last.saturating_sub(Span::from_us(20)), "{sent} of {last}");
    // More than its buffer holds comes from each neighbour at once; no pause blocks the way to the receiver.
    let neighbour = of("h1", "leaf0").unwrap();
    assert!(neighbour.pauses > 0 && neighbour.paused > Span::from_us(100), "{neighbour:?}");
    assert!(neighbour.paused < last, "{neighbour:?}");
    assert_eq!(of("leaf0", "h0").map(|link| (link.pauses, link.paused)), Some((0, Span::ZERO)));
    assert_eq!(run(&text.replace("links = true", "links = false")).links, []);
}
