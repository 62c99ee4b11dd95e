//! Captured packets, paths that both directions share, and starts drawn at random.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;

use plimsoll_results::Digest;
use plimsoll_results::capture::{Capture, Flags, pcapng};
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::Scenario;
use plimsoll_units::Span;

fn run(text: &str) -> Outcome {
    let scenario = Scenario::parse("inline", text, Path::new("."))
        .unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]));
    plimsoll_sim::run(&scenario.points()[0].model, &mut |_| true).unwrap()
}

fn one_flow(observe: &str) -> Outcome {
    run(&format!(
        "version = 1\ntitle = 'capture'\n[topology]\nkind = 'rack'\nhosts = 3\nrate = '1Gbps'\ndelay = '5us'\n\
         [transport]\nsegment = '1000B'\n[workload.w]\nkind = 'flows'\nfrom = 'h1'\nto = 'client'\nsize = '5KB'\n\
         [observe]\n{observe}\n"
    ))
}

/// Source, sequence number, payload.
fn seen(capture: &Capture) -> Vec<(u32, u64, u32)> {
    capture.packets.iter().map(|packet| packet.record()).map(|p| (p.source, p.seq, p.payload)).collect()
}

#[test]
fn every_port_is_captured_where_none_is_watched() {
    let outcome = one_flow("packets = 1000");
    let capture = &outcome.capture;
    assert_eq!(capture.ports.len(), 6);
    assert_eq!(capture.packets.len() as u64, outcome.counters.packet_hops);
    assert!(capture.packets.is_sorted_by_key(|packet| packet.record().time));
    let first = capture.packets[0].record();
    assert!(first.flags.has(Flags::SYN) && first.ack.is_none());
    assert_eq!(capture.ports[first.interface as usize], "h1 -> switch 0");
    // 40 B at 1 Gb/s.
    assert_eq!(first.time - plimsoll_units::Time::ZERO, Span::from_ns(320));
}

#[test]
fn watched_ports_are_captured_alone_and_up_to_a_number() {
    let outcome = one_flow("packets = 4\nqueue.client = { port = 'client', every = '1ms' }");
    assert_eq!(outcome.capture.ports, ["switch 0 -> h0"]);
    // The SYN and the acknowledgement of its answer, then data.
    assert_eq!(seen(&outcome.capture), [(1, 0, 0), (1, 0, 0), (1, 0, 1000), (1, 1000, 1000)]);
}

#[test]
fn a_capture_changes_nothing_and_can_be_written() {
    let (plain, captured) = (one_flow(""), one_flow("packets = 50"));
    assert!(plain.capture.packets.is_empty());
    assert_eq!(Digest::of(&plain), Digest::of(&captured));
    let mut file = Vec::new();
    pcapng::write(&captured.capture, &mut file).unwrap();
    assert!(file.len() > captured.capture.packets.len() * 60);
}

/// Which spine each captured packet of a flow crosses, forth and back.
fn spines(symmetric: bool) -> Vec<(Option<String>, Option<String>)> {
    let outcome = run(&format!(
        "version = 1\ntitle = 'symmetric paths'\n[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 8\n\
         hosts_per_leaf = 16\nrate = '1Gbps'\ndelay = '5us'\n[paths]\nsymmetric = {symmetric}\n[workload.w]\n\
         kind = 'flows'\nfrom = 'h16..h31'\nto = 'h0'\nsize = '1KB'\n[observe]\npackets = 100000\n\
         queue.leaf = {{ port = 'tier:leaf', every = '1ms' }}\n"
    ));
    let capture = &outcome.capture;
    let up = |to_client: bool, flow: u64| {
        let records = capture.packets.iter().map(|packet| packet.record());
        let mut over = records.filter_map(|packet| {
            let wanted = packet.flow == flow && (packet.destination == 0) == to_client;
            let (_, spine) = capture.ports[packet.interface as usize].split_once("-> switch ")?;
            wanted.then(|| spine.to_owned())
        });
        over.next()
    };
    (0..16).map(|flow| (up(true, flow), up(false, flow))).collect()
}

#[test]
fn both_directions_take_one_path_if_asked() {
    let symmetric = spines(true);
    assert!(symmetric.iter().all(|(there, back)| there.is_some() && there == back), "{symmetric:?}");
    assert!(symmetric.iter().any(|(there, _)| *there != symmetric[0].0), "several spines are used");
    let independent = spines(false);
    assert!(independent.iter().any(|(there, back)| there != back), "{independent:?}");
}

#[test]
fn starts_are_drawn_within_their_span() {
    let starts = |more: &str| -> Vec<Span> {
        let outcome = run(&format!(
            "version = 1\ntitle = 'starts'\n[topology]\nkind = 'rack'\nhosts = 10\nrate = '1Gbps'\ndelay = '5us'\n\
             [workload.w]\nkind = 'flows'\nfrom = 'h1..h9'\nto = 'client'\nsize = '1KB'\nstart = '1ms'\n{more}\n"
        ));
        let mut starts: Vec<(u32, Span)> = outcome
            .messages
            .iter()
            .map(|message| (message.source, message.created - plimsoll_units::Time::ZERO))
            .collect();
        starts.sort_unstable();
        starts.into_iter().map(|(_, start)| start).collect()
    };
    assert_eq!(starts(""), [Span::from_ms(1); 9]);
    let drawn = starts("start_within = '2ms'");
    assert!(drawn.iter().all(|start| (Span::from_ms(1)..Span::from_ms(3)).contains(start)), "{drawn:?}");
    assert!(drawn.iter().collect::<std::collections::BTreeSet<_>>().len() == 9, "{drawn:?}");
    // A flow's draw is its own: the stagger moves it, and changes nothing else.
    let staggered = starts("start_within = '2ms'\nstagger = '1us'");
    for (index, (start, moved)) in drawn.iter().zip(&staggered).enumerate() {
        assert_eq!(*moved, *start + Span::from_us(1) * index as u64);
    }
}
