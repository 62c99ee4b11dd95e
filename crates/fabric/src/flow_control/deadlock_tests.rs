use plimsoll_mechanisms::pfc::{PauseScope, PfcParams};
use plimsoll_units::{Bytes, Rate, Span};

use super::*;
use crate::faults::Schedule;
use crate::net::topology::LinkClass;
use crate::spec::FabricSpec;

/// The packets of a line: for each the switch that it came from, or none for a host, its priority, and its bytes.
type Line = &'static [(Option<u32>, u8, u64)];

/// The scope of pauses, the lines of the first port, and the links that are found.
type Case<'a> = (PauseScope, &'a [Line], &'a Option<Vec<String>>);

/// Two leaves with a host each, and a spine.
fn network() -> Network {
    let link = LinkClass { rate: Rate::from_gbps(10), propagation: Span::from_us(1) };
    Network::leaf_spine(2, 1, 1, link, link)
}

/// Senders are paused from 6 kB on, and resumed at 3 kB.
fn control(scope: PauseScope) -> Box<FlowControl> {
    let mut spec = FabricSpec::new(network());
    spec.priorities_in_use = Priorities::ALL;
    for tier in &mut spec.tiers {
        let (xoff, xon) = (Some(Bytes::new(6_000)), Some(Bytes::new(3_000)));
        tier.mechanisms.pfc = Some(PfcParams { scope, xoff, xon, ..PfcParams::default() });
        tier.link_buffer = Some(Bytes::new(200_000));
    }
    FlowControl::new(&spec, &Schedule::default()).unwrap().unwrap()
}

fn port(from: u32, to: u32) -> PortId {
    let (from, to) = (Node::Switch(from), Node::Switch(to));
    let place = network().links().iter().position(|link| (link.from, link.to) == (from, to)).unwrap();
    PortId(place as u32)
}

/// A port that is paused at 10 us for `priority`, and its waiting packets.
fn held(from: u32, to: u32, priority: u8, lines: &[Line]) -> HeldPort {
    let packet = |&(came_from, priority, bytes): &(Option<u32>, u8, u64)| HeldPacket {
        entered_by: came_from.map(|other| port(other, from)),
        priority,
        bytes,
    };
    HeldPort {
        port: port(from, to),
        paused: Priorities::one(priority),
        last_pause: Time::ZERO + Span::from_us(10),
        lines: lines.iter().map(|line| line.iter().map(packet).collect()).collect(),
    }
}

/// Leaves 0 and 1 and spine 2 wait for each other; `first` waits at the port of the leaf 0.
fn circle(first: &[Line]) -> Vec<HeldPort> {
    vec![
        held(0, 2, 0, first),
        held(2, 1, 0, &[&[(Some(0), 0, 3_001)]]),
        held(1, 2, 0, &[&[(Some(2), 0, 3_001)]]),
        held(2, 0, 0, &[&[(Some(1), 0, 3_001)]]),
    ]
}

fn links_found(scope: PauseScope, ports: Vec<HeldPort>) -> Option<Vec<String>> {
    let deadlock = control(scope).find_deadlock(&network(), ports)?;
    assert_eq!(deadlock.at, Time::ZERO + Span::from_us(10));
    Some(deadlock.links)
}

#[test]
fn a_circle_is_stuck_by_more_than_the_resume_threshold() {
    let all = Some(["s0 -> s2", "s2 -> s1", "s1 -> s2", "s2 -> s0"].map(str::to_owned).to_vec());
    let (priority, link) = (PauseScope::Priority, PauseScope::Link);
    let cases: [Case<'_>; 7] = [
        (priority, &[&[(Some(2), 0, 1_501), (Some(2), 0, 1_500)]], &all),
        (priority, &[&[(Some(2), 0, 1_500), (Some(2), 0, 1_500)]], &None),
        // Packets from the host do not block any switch.
        (priority, &[&[(None, 0, 9_000), (Some(2), 0, 3_000)]], &None),
        // The packet in front leaves, and the one behind counts for its own priority, which nothing keeps paused.
        (priority, &[&[(Some(2), 1, 9_000), (Some(2), 0, 3_000), (Some(2), 1, 9_000)]], &None),
        (link, &[&[(Some(2), 1, 9_000), (Some(2), 0, 3_000)]], &None),
        // It counts where the pause is the link's, if it is in the same line.
        (link, &[&[(Some(2), 0, 3_000), (Some(2), 1, 1)]], &all),
        (link, &[&[(Some(2), 0, 3_000)], &[(Some(2), 1, 1)]], &None),
    ];
    for (scope, first, expected) in cases {
        assert_eq!(&links_found(scope, circle(first)), expected, "{scope:?} {first:?}");
    }
}

#[test]
fn only_what_waits_for_itself_is_stuck() {
    let lasting: &[Line] = &[&[(Some(2), 0, 4_000)]];
    let mut chain = circle(lasting);
    chain.remove(2);
    assert_eq!(links_found(PauseScope::Priority, chain), None, "a port that may send resumes all behind it");
    let mut resumed = circle(lasting);
    resumed[1].paused = Priorities::default();
    assert_eq!(links_found(PauseScope::Priority, resumed), None, "a signal is under way to a port");
    let mut other = circle(lasting);
    other[1].paused = Priorities::one(1);
    assert_eq!(links_found(PauseScope::Priority, other), None, "another priority of the port is paused");
    assert_eq!(links_found(PauseScope::Priority, Vec::new()), None);
}
