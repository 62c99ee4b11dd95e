//! Hybrid networks at size: a packet network that is a topology of its own, and hosts with several circuits at a time.

use std::collections::BTreeSet;

use plimsoll_results::summary::Options;
use plimsoll_results::{Digest, PointKey, PointOutcome, Summary};
use plimsoll_units::{Span, Time};

use crate::truth::lab::{Run, run};

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

/// Eight hosts, whose links carry two circuits of 4 Gb/s beside the packet switch.
const UPLINKS: &str = "
    version = 1
    title = 'uplinks'
    [run]
    drain = '200ms'
    [topology]
    kind = 'hybrid'
    racks = 8
    rate = '10Gbps'
    circuit_rate = '4Gbps'
    packet_rate = '1Gbps'
    delay = '1us'
    circuit_uplinks = 2
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

/// Returns the bytes that circuits of week 4 carried from h0.
fn of_week_4(run: &Run) -> u64 {
    let circuits = run.circuits.iter().filter(|circuit| circuit.week == 4 && circuit.sender.0 == 0);
    circuits.map(|circuit| circuit.bytes).sum()
}

/// One flow has both circuits to its receiver: a whole week at 4 Gb/s is 750,000 bytes, or 500 packets, by each.
#[test]
fn two_uplinks_carry_a_flow_by_two_circuits() {
    let text = format!("{UPLINKS}{}", flow("bulk", "h0", "h1", "20MB"));
    let two = run(&text);
    let one = run(&text.replace("circuit_uplinks = 2", "circuit_uplinks = 1"));
    assert_eq!((of_week_4(&one) / 1_500, of_week_4(&two) / 1_500), (500, 1_000));
    assert_eq!(two.counters.circuit_drops, 0);
    // Together they are no faster than the host's link beside the packet switch: 4.5 Gb/s each.
    let fast = run(&text.replace("circuit_rate = '4Gbps'", "circuit_rate = '10Gbps'"));
    assert_eq!(of_week_4(&fast) / 1_500, 1_687_500 / 1_500);
}

/// Two flows of a host have circuits to their receivers at once, and no port has more circuits than uplinks.
#[test]
fn a_host_has_as_many_circuits_at_a_time_as_uplinks() {
    let to_two = format!("{UPLINKS}{}{}", flow("a", "h0", "h1", "8MB"), flow("b", "h0", "h2", "8MB"));
    let busy =
        format!("{UPLINKS}[workload.all]\nkind = 'all-to-all'\nload = 0.6\nsize = '300KB'\ncount = 40\n");
    for (text, is_pair) in [(to_two, true), (busy, false)] {
        let run = run(&text);
        assert_eq!((run.counters.circuit_drops, run.outcome.warnings.len()), (0, 0));
        let mut both = 0;
        for circuit in &run.circuits {
            let at_once =
                run.circuits.iter().filter(|other| other.from <= circuit.from && circuit.from < other.until);
            let (mut sends, mut receives) = (0, 0);
            for other in at_once {
                sends += u32::from(other.sender == circuit.sender);
                receives += u32::from(other.receiver == circuit.receiver);
                both += u32::from(other.sender == circuit.sender && other.receiver != circuit.receiver);
            }
            assert!(sends <= 2 && receives <= 2, "{sends} and {receives} at {}", circuit.from);
        }
        assert!(!is_pair || both > 5, "{both}");
    }
}

/// Data is not resent because its packets travel by two circuits, and a failed circuit switch costs its hosts circuits.
#[test]
fn two_circuits_to_one_host_keep_the_order_of_packets() {
    let text = format!("{UPLINKS}{}", flow("bulk", "h0", "h1", "20MB"));
    let whole = run(&text);
    assert_eq!(whole.counters.retransmissions, 0);
    let dead =
        run(&format!("{text}[[fault]]\nfrom = 'tor0'\nto = 'ocs1'\ndown = true\nat = '0s'\nuntil = '9ms'\n"));
    assert_eq!(of_week_4(&dead), 0, "a host with a dead uplink has no circuits");
    assert!(dead.messages.iter().all(|message| message.completed.is_some()));
}
