//! A whole fabric, without a scenario: its deliveries, its losses, and the joint work of its two halves.

use plimsoll_fabric::net::port::{BufferLimit, DisciplineFactory, QueueDiscipline, Queued};
use plimsoll_fabric::net::topology::LinkClass;
use plimsoll_fabric::net::{HostId, Network, Node, Packet, PortId};
use plimsoll_fabric::{Fabric, FabricSpec, Handled, Hooks, LostAt};
use plimsoll_mechanisms::pfc::PauseState;
use plimsoll_units::{Rate, Span, Streams, Time};

/// A rack of 1 Gb/s: a packet of 1000 B takes 8 us a link, and 1 us to cross it.
fn rack(hosts: u32) -> FabricSpec {
    let link = LinkClass { rate: Rate::from_gbps(1), propagation: Span::from_us(1) };
    FabricSpec::new(Network::rack(hosts, link))
}

fn build<H: Hooks>(spec: FabricSpec, hooks: H) -> Fabric<H> {
    Fabric::build(spec, &Streams::new(1), hooks).unwrap()
}

fn packet(src: u32, dst: u32, flow: u32) -> Packet {
    Packet::new(HostId(src), HostId(dst), flow, 1_000)
}

fn us(us: u64) -> Time {
    Time::ZERO + Span::from_us(us)
}

/// Handles all events up to `last`; returns when each flow's packet was delivered.
fn run<H: Hooks>(fabric: &mut Fabric<H>, last: Time) -> Vec<(Time, u32)> {
    let (mut arrived, mut delivered) = (Packet::default(), Vec::new());
    while let Some((now, owner)) = fabric.next_event(last) {
        if let Handled::Delivered(packet) = fabric.on_event(now, owner, &mut arrived) {
            delivered.push((now, packet.flow));
        }
    }
    delivered
}

/// The flows of lost packets.
#[derive(Default)]
struct Lost(Vec<u32>);

impl Hooks for Lost {
    fn on_lost(&mut self, _: Time, _: LostAt, packet: &Packet) {
        self.0.push(packet.flow);
    }
}

#[test]
fn what_finds_no_room_reaches_the_hook_and_the_counters() {
    let mut spec = rack(3);
    spec.tiers[0].limit = BufferLimit { packets: 1, ..BufferLimit::UNLIMITED };
    spec.counts_links = true;
    let mut fabric = build(spec, Lost::default());
    for flow in 0..3 {
        fabric.send(Time::ZERO, packet(1, 0, flow));
        fabric.send(Time::ZERO, packet(2, 0, 3 + flow));
    }
    fabric.refuse(Time::ZERO, &packet(1, 0, 6));
    let delivered = run(&mut fabric, Time::MAX);
    fabric.settle(us(100));
    fabric.assert_conservation();
    assert_eq!(fabric.hooks().0.len() + delivered.len(), 7);
    let counters = *fabric.counters();
    assert_eq!((counters.packets_sent, counters.nic_drops), (7, 1));
    assert_eq!(counters.switch_drops as usize + 1, fabric.hooks().0.len());
    assert!(counters.switch_drops > 0);
    let to_host = fabric.link_readings(us(100))[3];
    assert_eq!(
        (to_host.carried.packets, to_host.carried.drops),
        (counters.packets_delivered, counters.switch_drops)
    );
}

/// One logical process has the hosts, the other the switch. Packets that cross are handed over, and all arrive as in
/// one.
#[test]
fn two_logical_processes_deliver_what_one_fabric_does() {
    let send = |fabric: &mut Fabric<()>| {
        for flow in 0..4 {
            fabric.send(Time::ZERO, packet(0, 1, flow));
        }
    };
    let mut whole = build(rack(2), ());
    send(&mut whole);
    let expected = run(&mut whole, Time::MAX);
    assert_eq!(expected.first(), Some(&(us(18), 0)));

    let (mut hosts, mut switch) = (build(rack(2), ()), build(rack(2), ()));
    let (host_process, switch_process) = (0, 1);
    let links = hosts.network().links().iter();
    let ends_in: Vec<u8> = links
        .map(|link| match link.to {
            Node::Host(_) => host_process,
            Node::Switch(_) => switch_process,
        })
        .collect();
    switch.set_boundary(switch_process, 2, ends_in.clone());
    hosts.set_boundary(host_process, 2, ends_in);
    send(&mut hosts);
    let mut delivered = Vec::new();
    // The lookahead is the propagation of a link.
    for bound in 1..=60 {
        delivered.extend(run(&mut hosts, us(bound)));
        assert!(run(&mut switch, us(bound)).is_empty());
        let leave = |fabric: &mut Fabric<()>, to| std::mem::take(&mut fabric.outbox(to).unwrap().packets);
        let (up, down) = (leave(&mut hosts, switch_process), leave(&mut switch, host_process));
        assert!(up.iter().chain(&down).all(|crossing| crossing.arrives > us(bound)));
        up.iter().for_each(|crossing| switch.receive(crossing, None));
        down.iter().for_each(|crossing| hosts.receive(crossing, None));
    }
    assert_eq!(delivered, expected);
    let is_of_switch = |port: PortId| port.0 >= 2;
    hosts.absorb(switch, 0, us(60), is_of_switch);
    hosts.settle(us(60));
    whole.settle(us(60));
    assert_eq!(hosts.counters(), whole.counters());
    hosts.assert_conservation();
}

/// Keeps no packet that it is given.
#[derive(Debug)]
struct Forgetful;

impl QueueDiscipline for Forgetful {
    fn push(&mut self, _: Queued, _: &mut dyn FnMut(Queued)) {}

    fn pop(&mut self, _: Time, _: PauseState, _: &mut dyn FnMut(Queued)) -> Option<Queued> {
        None
    }

    fn len(&self) -> usize {
        0
    }
}

#[test]
#[should_panic(expected = "packets are conserved")]
fn a_discipline_that_forgets_packets_is_found_out() {
    let mut spec = rack(2);
    spec.tiers[0].discipline = Some(DisciplineFactory::new(|_| Box::new(Forgetful)));
    let mut fabric = Fabric::build(spec, &Streams::new(1), ()).unwrap();
    fabric.send(Time::ZERO, packet(0, 1, 0));
    assert!(run(&mut fabric, Time::MAX).is_empty());
    fabric.settle(us(100));
    fabric.assert_conservation();
}
