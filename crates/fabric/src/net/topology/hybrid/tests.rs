use std::collections::BTreeSet;

use super::*;
use crate::net::topology::file::{Graph, GraphLink};
use crate::net::topology::{Clos, FatTree, File, LeafSpine};
use crate::net::{Detours, HostId, Packet, PathClass, PathSelector, PortId};
use plimsoll_units::Time;

const GIGABIT: Rate = Rate::from_gbps(1);
const MICROSECOND: Span = Span::from_us(1);

fn hybrid() -> Hybrid {
    Hybrid {
        racks: 3,
        hosts_per_rack: 2,
        packet_uplinks: Some(1),
        packet: None,
        circuit_uplinks: 1,
        rate: Rate::from_gbps(100),
        packet_rate: Rate::from_gbps(10),
        circuit_rate: None,
        delay: MICROSECOND,
        packet_delay: None,
        circuit_delay: Some(Span::from_ns(500)),
    }
}

fn leaf_spine(leaves: u32, hosts_per_leaf: u32) -> PacketNetwork {
    let (rate, delay) = (GIGABIT, MICROSECOND);
    let (fabric_rate, fabric_delay) = (None, None);
    PacketNetwork::LeafSpine(LeafSpine {
        leaves,
        spines: 2,
        hosts_per_leaf,
        nics: 1,
        planes: false,
        rate,
        fabric_rate,
        delay,
        fabric_delay,
    })
}

/// Two switches `left` and `right` with two links between them; uplinks 0 and 1, and 2 and 3.
fn two_switches() -> PacketNetwork {
    let link = |from, to| GraphLink { from, to, rate: GIGABIT, delay: MICROSECOND };
    let graph = Graph {
        hosts: ["a", "b", "c", "d"].map(str::to_owned).to_vec(),
        switches: ["left", "right"].map(str::to_owned).to_vec(),
        links: vec![link(0, 4), link(1, 4), link(2, 5), link(3, 5), link(4, 5), link(4, 5)],
    };
    PacketNetwork::File(File { path: "net".to_owned(), graph: Some(graph.into()) })
}

/// Hybrid networks with every kind of packet network, and one of each shape of uplinks.
fn hybrids() -> Vec<Hybrid> {
    let with = |racks, hosts_per_rack, packet_uplinks, packet| Hybrid {
        racks,
        hosts_per_rack,
        packet_uplinks: Some(packet_uplinks),
        packet: Some(packet),
        ..hybrid()
    };
    let (rate, delay) = (GIGABIT, MICROSECOND);
    let clos = Clos {
        pods: 2,
        edges: 2,
        aggregations: 2,
        cores: 1,
        hosts_per_edge: 1,
        rate,
        fabric_rate: None,
        delay,
    };
    vec![
        hybrid(),
        Hybrid { packet_uplinks: None, ..hybrid() },
        Hybrid { circuit_uplinks: 3, ..hybrid() },
        with(4, 2, 1, leaf_spine(2, 2)),
        with(4, 2, 2, leaf_spine(4, 2)),
        // The two uplinks of a rack lead to different leaves.
        with(2, 2, 2, leaf_spine(4, 1)),
        with(8, 1, 2, PacketNetwork::FatTree(FatTree { k: 4, rate, delay })),
        with(4, 3, 1, PacketNetwork::Clos(clos)),
        with(2, 3, 2, two_switches()),
    ]
}

/// The nodes of a packet's path.
fn path(src: u32, dst: u32, class: PathClass) -> Vec<Node> {
    let network = hybrid().network().expect("a hybrid network can be built");
    let mut packet = Packet::new(HostId(src), HostId(dst), 9, 1500);
    packet.set_path_class(class);
    network.path(&packet).map(|port| network.link(port).to).collect()
}

#[test]
fn packets_go_by_the_switch_of_their_class() {
    let switch = Node::Switch;
    let (to_5, to_1) = (Node::Host(HostId(5)), Node::Host(HostId(1)));
    assert_eq!(path(0, 5, PathClass::Packet), [switch(0), switch(3), switch(2), to_5]);
    assert_eq!(path(0, 5, PathClass::Either), [switch(0), switch(3), switch(2), to_5]);
    assert_eq!(path(0, 5, PathClass::Circuit), [switch(0), switch(4), switch(2), to_5]);
    assert_eq!(path(0, 1, PathClass::Circuit), [switch(0), to_1], "a rack needs no circuit");
}

#[test]
fn circuits_go_by_the_circuit_switch_of_the_packet() {
    let network = Hybrid { circuit_uplinks: 3, ..hybrid() }.network().expect("a hybrid network can be built");
    for plane in 0..3 {
        let mut packet = Packet::new(HostId(0), HostId(5), 9, 1500);
        packet.set_path_class(PathClass::Circuit);
        packet.set_circuit_plane(plane);
        let nodes: Vec<Node> = network.path(&packet).map(|port| network.link(port).to).collect();
        let to_5 = Node::Host(HostId(5));
        assert_eq!(nodes, [Node::Switch(0), Node::Switch(4 + plane), Node::Switch(2), to_5]);
    }
}

#[test]
fn neighbours_are_the_ends_of_links() {
    for hybrid in hybrids() {
        let network = hybrid.network().expect("a hybrid network can be built");
        let hosts = (0..network.hosts()).map(|host| Node::Host(HostId(host)));
        for node in hosts.chain((0..network.switches()).map(Node::Switch)) {
            let links = network.links().iter().filter(|link| link.from == node);
            let ends: BTreeSet<Node> = links.map(|link| link.to).collect();
            assert_eq!(ends, hybrid.neighbours(node).into_iter().collect(), "{node:?} of {hybrid:?}");
        }
        assert_eq!(network.links().len() as u64, 2 * hybrid.links(), "both directions");
        assert_eq!(network.switches(), hybrid.switches().iter().sum::<u32>());
        for switch in 0..network.switches() {
            assert_eq!(hybrid.switch(&hybrid.switch_name(switch)), Some(switch));
        }
        let last = hybrid.circuit_uplinks - 1;
        assert_eq!(hybrid.switch_name(network.switches() - 1), format!("ocs{last}"));
        for (tier, count) in hybrid.switches().into_iter().enumerate() {
            let of_tier = |link: &&crate::net::topology::Link| {
                matches!(link.from, Node::Switch(_)) && usize::from(link.tier) == tier
            };
            let links = network.links().iter().filter(of_tier).count() as u64;
            assert!(hybrid.tier_ports(tier) >= links && count > 0, "tier {tier} of {hybrid:?}");
        }
    }
}

#[test]
fn tiers_are_the_ones_of_the_packet_network_between_racks_and_circuits() {
    for hybrid in hybrids().into_iter().filter(|hybrid| hybrid.packet.is_some()) {
        let packet = hybrid.packet.as_ref().map_or(&[][..], |packet| packet.params().tiers());
        let tiers = hybrid.tiers();
        assert_eq!((tiers[0], tiers[tiers.len() - 1]), ("tor", "ocs"));
        assert_eq!(&tiers[1..tiers.len() - 1], packet);
    }
}

/// Follows a packet through the network with the links `dead`; returns the nodes that it passes, and whether it
/// arrives.
fn follow(network: &Network, dead: &BTreeSet<PortId>, packet: &Packet) -> (Vec<Node>, bool) {
    let mut selector = PathSelector::hash();
    selector.set_detours((!dead.is_empty()).then(|| Detours::around(network, dead)));
    let (mut nodes, mut port) = (Vec::new(), PortId(packet.src.0));
    loop {
        nodes.push(network.link(port).to);
        assert!(nodes.len() < 20, "a circle: {nodes:?}");
        let Some(switch) = network.far_switch(port) else {
            return (nodes.clone(), nodes.last() == Some(&Node::Host(packet.dst)));
        };
        match selector.next_port(Time::ZERO, network, &[], switch, packet) {
            Some(next) => port = next,
            None => return (nodes, false),
        }
        assert_eq!(network.near_switch(port), Some(switch), "the port belongs to the switch");
    }
}

/// Without a fault a selector takes the paths that the network has. With one dead link between switches, in one
/// direction, a packet arrives wherever another way is left, without a circle, and never by the dead link.
#[test]
fn packets_arrive_around_any_dead_link_of_the_packet_network() {
    for hybrid in hybrids() {
        let network = hybrid.network().expect("a hybrid network can be built");
        let hops = network.hybrid().expect("it is hybrid");
        let links = (0..network.links().len() as u32).map(PortId);
        let inner = links.filter(|port| hops.in_packet_network(*port).is_some());
        for dead in std::iter::once(None).chain(inner.map(Some)) {
            let gone: BTreeSet<PortId> = dead.into_iter().collect();
            let pairs = (0..network.hosts()).flat_map(|src| (0..network.hosts()).map(move |dst| (src, dst)));
            for (src, dst) in pairs.filter(|(src, dst)| src != dst) {
                let packet = Packet::new(HostId(src), HostId(dst), src * 31 + dst, 1500);
                let (nodes, arrives) = follow(&network, &gone, &packet);
                let whole: Vec<Node> = network.path(&packet).map(|port| network.link(port).to).collect();
                if gone.is_empty() {
                    assert_eq!((nodes, arrives), (whole, true), "{src} to {dst} of {hybrid:?}");
                    continue;
                }
                let only_way = |port: PortId| {
                    let inner = hops.in_packet_network(port).expect("it is of the packet network");
                    let of = |uplink: u32| uplink / hybrid.uplinks();
                    let (hosts, rack) = (hops.packet_network().hosts(), |host| host / hybrid.hosts_per_rack);
                    hybrid.uplinks() == 1
                        && (inner.0 == rack(src) || inner.0.checked_sub(hosts).map(of) == Some(rack(dst)))
                };
                // One link between two switches is left of two; a Clos network of one core each has other cores.
                let dead = dead.expect("a link is dead");
                assert_eq!(
                    arrives,
                    rack_is_same(&hybrid, src, dst) || !only_way(dead),
                    "{dead:?} {src} {dst}"
                );
            }
        }
    }
}

fn rack_is_same(hybrid: &Hybrid, src: u32, dst: u32) -> bool {
    src / hybrid.hosts_per_rack == dst / hybrid.hosts_per_rack
}

/// The two uplinks of a rack lead to different leaves: without a way to the one, packets for its hosts take the other.
#[test]
fn another_uplink_of_the_rack_takes_over() {
    let hybrid = &hybrids()[5];
    let network = hybrid.network().expect("a hybrid network can be built");
    let switch = |name: &str| Node::Switch(hybrid.switch(name).expect("it has such a switch"));
    let packet = Packet::new(HostId(0), HostId(3), 5, 1500);
    let (nodes, _) = follow(&network, &BTreeSet::new(), &packet);
    assert!(nodes.contains(&switch("leaf0")) && nodes.contains(&switch("leaf3")), "{nodes:?}");
    let dead: BTreeSet<PortId> = network.ports_between(switch("leaf3"), switch("tor1")).collect();
    let (nodes, arrives) = follow(&network, &dead, &packet);
    assert!(arrives && nodes.contains(&switch("leaf2")), "{nodes:?}");
}

#[test]
fn a_packet_network_has_a_host_for_each_uplink() {
    let errors = |hybrid: Hybrid| {
        let mut check = TopologyCheck::default();
        hybrid.check(&mut check);
        format!("{check:?}")
    };
    for hybrid in hybrids() {
        assert_eq!(errors(hybrid.clone()), format!("{:?}", TopologyCheck::default()), "{hybrid:?}");
    }
    let of = |packet| errors(Hybrid { racks: 4, packet: Some(packet), ..hybrid() });
    assert!(of(leaf_spine(4, 2)).contains("8 hosts for 4 uplinks"));
    assert!(of(leaf_spine(0, 2)).contains("`leaves`: 0 is too few"));
    let PacketNetwork::File(mut file) = two_switches() else { panic!("it is a file") };
    let graph = file.graph.as_deref().cloned().expect("it has a graph");
    file.graph = Some(Graph { switches: vec!["tor0".to_owned(), "right".to_owned()], ..graph }.into());
    assert!(of(PacketNetwork::File(file)).contains("`tor0`, which another node has"));
}
