//! Hybrid networks at size: a packet network that is a topology of its own.

use std::collections::BTreeSet;

use plimsoll_results::summary::Options;
use plimsoll_results::{Digest, PointKey, PointOutcome, Summary};
use plimsoll_units::{Span, Time};

use crate::truth::lab::run;

/// Eight hosts in four racks. Each rack has two uplinks; those of racks 0 and 1 lead to one leaf.
const LEAF_SPINE: &str = "
    version = 1
    title = 'hybrid'
    [run]
    drain = '200ms'
    [topology]
    kind = 'hybrid'
    racks = 4
    hosts_per_rack = 2
    rate = '10Gbps'
    packet_rate = '1Gbps'
    delay = '1us'
    [topology.packet]
    kind = 'leaf-spine'
    leaves = 2
    spines = 2
    hosts_per_leaf = 4
    rate = '1Gbps'
    fabric_rate = '2Gbps'
    delay = '3us'
    [host]
    backpressure = true
    [port.host]
    buffer = '256KB'
    [transport]
    kind = 'cubic'
    segment = '1448B'
    header = '52B'
    handshake = false
    ";

fn flow(name: &str, from: &str, to: &str, size: &str) -> String {
    format!("[workload.{name}]\nkind = 'flows'\nfrom = ['{from}']\nto = '{to}'\nsize = '{size}'\n")
}

/// A packet passes the leaves and a spine between its ToRs. The uplinks have `packet_rate` and the hosts' delay, the
/// links to the spines their own.
#[test]
fn a_request_passes_the_tiers_of_the_packet_network() {
    let far = run(&format!("{LEAF_SPINE}{}", flow("small", "h0", "h7", "1448B")));
    let near = run(&format!("{LEAF_SPINE}{}", flow("small", "h0", "h2", "1448B")));
    // 1500 B at 10, 1, 2, 2, 1 and 10 Gb/s: 1.2, 12, 6, 6, 12 and 1.2 us; four links of 1 us, two of 3 us.
    let expected = Span::from_ns(38_400) + Span::from_us(10);
    let message = far.of("small").next().unwrap();
    assert_eq!((message.latency(), message.ideal), (Some(expected), expected));
    // Racks 0 and 1 have a leaf in common.
    let message = near.of("small").next().unwrap();
    assert_eq!(message.latency(), Some(Span::from_ns(30_400)));
}

/// All tiers of the packet network are one part of a message's time, beside the wait for a circuit, and the parts sum
/// to the whole, as a run asserts.
#[test]
fn waits_in_all_tiers_of_the_packet_network_are_one_part() {
    let incast: String =
        (1..7).map(|host| flow(&format!("from{host}"), &format!("h{host}"), "h7", "30KB")).collect();
    let outcome = run(&format!("{LEAF_SPINE}{incast}")).outcome.clone();
    assert_eq!(outcome.tiers, ["tor", "eps", "ocs"]);
    let digest = Digest::of(&outcome);
    let key = PointKey { variant: "one".to_owned(), sweep: Vec::new(), replicate: 0 };
    let summary = Summary::of(&[PointOutcome { key, seed: 1, digest, outcome }], &Options::default());
    let first = summary.cells[0].workload("from1").unwrap().time.as_ref().unwrap();
    let waited = first.parts.iter().position(|part| part == "eps queue").unwrap();
    // Six senders share the uplink of h7.
    assert!(first.mean_us[waited] > 100.0, "{:?}", first.mean_us);
}

/// Queues, faults and counts of links know the tiers and switches of the packet network by their names.
#[test]
fn tiers_and_switches_of_the_packet_network_have_their_names() {
    let text = format!(
        "{LEAF_SPINE}{}[circuits]\npacket_only = ['bulk']\n[port.leaf]\nbuffer = '20 packets'\n\
         [observe]\nlinks = true\n[observe.queue.up]\nport = 'tier:leaf'\nevery = '100us'\n\
         [[fault]]\nfrom = 'leaf0'\nto = 'spine0'\ndown = true\nat = '0s'\n",
        flow("bulk", "h0", "h7", "400KB")
    );
    let run = run(&text);
    assert!(run.of("bulk").all(|message| message.completed.is_some()));
    assert!(!run.queues.is_empty());
    let tiers: BTreeSet<&str> = run.links.iter().map(|link| link.tier.as_str()).collect();
    for tier in ["tor -> leaf", "leaf -> spine", "spine -> leaf", "leaf -> tor", "tor -> ocs", "ocs -> tor"] {
        assert!(tiers.contains(tier), "{tier} of {tiers:?}");
    }
    let bytes = |from: &str, to: &str| {
        run.links
            .iter()
            .filter(|link| (link.from.as_str(), link.to.as_str()) == (from, to))
            .map(|link| link.bytes)
            .sum::<u64>()
    };
    assert_eq!(bytes("leaf0", "spine0"), 0, "the link is dead");
    assert!(bytes("leaf0", "spine1") > 400_000 && bytes("spine1", "leaf1") > 400_000);
}

/// Every flow has a path of its own through the packet network, and with spraying every packet has one.
#[test]
fn flows_have_several_paths_through_the_packet_network() {
    let flows: String =
        (0..6).map(|flow_number| flow(&format!("f{flow_number}"), "h0", "h7", "60KB")).collect();
    for paths in ["", "[paths]\nspray = {}\n"] {
        let run = run(&format!(
            "{LEAF_SPINE}{flows}{paths}[circuits]\npacket_only = ['f0', 'f1', 'f2', 'f3', 'f4', 'f5']\n\
             [observe]\nlinks = true\n"
        ));
        assert!(run.messages.iter().all(|message| message.completed.is_some()));
        for spine in ["spine0", "spine1"] {
            let up = run.links.iter().find(|link| (link.from.as_str(), link.to.as_str()) == ("leaf0", spine));
            assert!(up.unwrap().bytes > 50_000, "{paths} {spine}");
        }
    }
}

/// A leaf that has lost both spines reaches the other leaf no more: what needs the packet network waits for it, and
/// circuits carry the rest.
#[test]
fn racks_without_the_packet_network_have_circuits() {
    let fault = |spine: &str| {
        format!("[[fault]]\nfrom = 'leaf0'\nto = '{spine}'\ndown = true\nat = '3ms'\nuntil = '12ms'\n")
    };
    let run = run(&format!(
        "{LEAF_SPINE}{}{}start = '4ms'\n{}{}[circuits]\nscheduler = 'rotor'\nacks = 'circuit'\n\
         circuit_only = ['bulk']\npacket_only = ['request']\n",
        flow("bulk", "h0", "h7", "3MB"),
        flow("request", "h1", "h6", "3KB"),
        fault("spine0"),
        fault("spine1")
    ));
    assert!(run.messages.iter().all(|message| message.completed.is_some()));
    let request = run.of("request").next().and_then(|message| message.completed).unwrap();
    assert!(request > Time::ZERO + Span::from_ms(12), "{request:?}");
    // The fault lasts from week 2 to week 8.
    let carried: u64 = run
        .circuits
        .iter()
        .filter(|circuit| (3..8).contains(&circuit.week))
        .map(|circuit| circuit.bytes)
        .sum();
    assert!(carried > 100_000, "{carried}");
}
