use super::arithmetic::Divisor;
use super::*;
use proptest::prelude::*;

fn class() -> LinkClass {
    LinkClass { rate: Rate::from_gbps(10), propagation: Span::from_us(1) }
}

fn hops(network: &Network, src: u32, dst: u32, flow: u32) -> Vec<PortId> {
    let ports: Vec<_> = network.path(&Packet::new(HostId(src), HostId(dst), flow, 1500)).take(20).collect();
    let last = network.link(*ports.last().expect("a path has its NIC")).to;
    assert_eq!(last, Node::Host(HostId(dst)), "{src} -> {dst} by {ports:?}");
    for pair in ports.windows(2) {
        assert_eq!(network.link(pair[0]).to, network.link(pair[1]).from, "a gap in {ports:?}");
    }
    ports
}

#[test]
fn fat_tree_has_six_classes_of_ports_and_the_right_diameters() {
    let network = Network::fat_tree(8, class());
    assert_eq!((network.hosts(), network.switches(), network.links().len()), (128, 80, 768));
    assert_eq!(hops(&network, 0, 1, 3).len(), 2);
    assert_eq!(hops(&network, 0, 4, 3).len(), 4);
    assert_eq!(hops(&network, 0, 127, 3).len(), 6);
}

#[test]
fn every_pair_is_connected_in_every_topology() {
    let graph = [
        (Node::Host(HostId(0)), Node::Switch(0)),
        (Node::Host(HostId(1)), Node::Switch(1)),
        (Node::Host(HostId(2)), Node::Switch(2)),
        (Node::Switch(0), Node::Switch(1)),
        (Node::Switch(2), Node::Switch(1)),
        (Node::Switch(0), Node::Switch(3)),
        (Node::Switch(2), Node::Switch(3)),
    ]
    .map(|(a, b)| GraphLink { a, b, rate: Rate::from_gbps(1), propagation: Span::from_us(5) });
    let networks = [
        Network::rack(4, class()),
        Network::leaf_spine(3, 2, 4, class(), class()),
        Network::fat_tree(4, class()),
        Network::clos(
            ClosShape { pods: 3, edges: 2, aggregations: 4, cores: 1, hosts_per_edge: 3 },
            class(),
            class(),
            class(),
        ),
        Network::dumbbell(3, 2, class(), class()),
        dragonfly(5, 2, 2).network().unwrap(),
        dragonfly(3, 3, 2).network().unwrap(),
        dragonfly(2, 1, 3).network().unwrap(),
        Network::graph(3, 4, &graph).expect("connected"),
    ];
    for network in networks {
        let hosts = network.hosts();
        for (src, dst) in (0..hosts).flat_map(|s| (0..hosts).map(move |d| (s, d))).filter(|(s, d)| s != d) {
            hops(&network, src, dst, src * 7 + dst);
        }
    }
}

fn dragonfly(groups: u32, routers: u32, global_links: u32) -> Dragonfly {
    let (rate, delay) = (Rate::from_gbps(10), Span::from_us(1));
    Dragonfly {
        groups,
        routers,
        hosts_per_router: 2,
        global_links,
        rate,
        local_rate: None,
        global_rate: None,
        delay,
        local_delay: None,
        global_delay: None,
    }
}

#[test]
fn a_dragonfly_has_one_global_hop_between_groups() {
    for (groups, routers, global_links, between) in [(5, 2, 2, 1), (3, 3, 2, 3), (9, 4, 2, 1), (4, 3, 2, 2)] {
        let topology = dragonfly(groups, routers, global_links);
        let mut check = TopologyCheck::default();
        topology.check(&mut check);
        let network = topology.network().unwrap();
        let group = |node: Node| match node {
            Node::Switch(router) => router / routers,
            Node::Host(host) => host.0 / 2 / routers,
        };
        assert_eq!(network.links().len() as u64, 2 * topology.links());
        for link in network.links() {
            let back = network.ports_between(link.to, link.from).count();
            assert_eq!(back, network.ports_between(link.from, link.to).count(), "{link:?} has no way back");
            assert!(topology.neighbours(link.from).contains(&link.to) || matches!(link.from, Node::Host(_)));
        }
        let is_global = |link: &&Link, other| (group(link.from), group(link.to)) == (0, other);
        for other in 1..groups {
            assert_eq!(network.links().iter().filter(|link| is_global(link, other)).count(), between);
        }
        let hosts = network.hosts();
        for (src, dst) in (0..hosts).flat_map(|s| (0..hosts).map(move |d| (s, d))).filter(|(s, d)| s != d) {
            let links: Vec<&Link> =
                hops(&network, src, dst, src + dst).iter().map(|port| network.link(*port)).collect();
            let crossed = links.iter().filter(|link| group(link.from) != group(link.to)).count();
            let is_away = group(links[0].from) != group(Node::Host(HostId(dst)));
            assert_eq!(crossed, usize::from(is_away), "{src} -> {dst}");
            assert!(links.len() <= 2 + crossed + 1 + usize::from(is_away), "{src} -> {dst}: {links:?}");
        }
    }
    let mut check = TopologyCheck::default();
    dragonfly(6, 2, 2).check(&mut check);
    assert!(format!("{check:?}").contains("4 global links of a group"), "{check:?}");
}

#[test]
fn planes_share_no_link() {
    let (rate, delay) = (Rate::from_gbps(10), Span::from_us(1));
    let topology = LeafSpine {
        leaves: 6,
        spines: 4,
        hosts_per_leaf: 3,
        nics: 2,
        planes: true,
        rate,
        fabric_rate: None,
        delay,
        fabric_delay: None,
    };
    let network = topology.network().unwrap().with_nics(topology.nics());
    assert_eq!((network.links().len() as u64, topology.links()), (2 * (18 + 6 * 2), 18 + 6 * 2));
    let plane = |node: Node| match node {
        Node::Host(nic) => network.nics().place_of(nic).1,
        Node::Switch(leaf) if leaf < 6 => leaf % 2,
        Node::Switch(spine) => (spine - 6) / 2,
    };
    assert!(network.links().iter().all(|link| plane(link.from) == plane(link.to)));
    for link in network.links() {
        assert!(topology.neighbours(link.from).contains(&link.to));
    }
    for (src, dst) in (0..18).flat_map(|s| (0..18).map(move |d| (s, d))).filter(|(s, d)| s / 6 != d / 6) {
        let [from, to] = [src, dst].map(|nic| network.nics().host_of(HostId(nic)));
        let path: Vec<PortId> =
            network.path(&Packet::new(HostId(src), HostId(dst), 0, 100)).take(9).collect();
        let Node::Host(last) = network.link(path[path.len() - 1]).to else { panic!("{path:?}") };
        assert_eq!((path.len(), network.nics().host_of(last)), (4, to), "{from:?}");
        assert_eq!(last == HostId(dst), plane(Node::Host(HostId(src))) == plane(Node::Host(HostId(dst))));
    }
}

#[test]
fn a_graph_without_a_path_names_the_host() {
    let link = |a, b| GraphLink { a, b, rate: Rate::from_gbps(1), propagation: Span::ZERO };
    let apart = [link(Node::Host(HostId(0)), Node::Switch(0)), link(Node::Host(HostId(1)), Node::Switch(1))];
    assert!(Network::graph(2, 2, &apart).is_err());
    assert_eq!(
        Network::graph(2, 1, &apart[..1]).map(|_| ()),
        Err(Unreachable { host: HostId(1), from_switch: None })
    );
}

#[test]
fn a_path_has_one_port_for_each_account_except_in_the_tier_of_aggregation() {
    use crate::net::WaitPlace::{Nic, Pacer, Tier0, Tier1, Tier2};
    let counts = |network: Network, to: u32| {
        let packet = Packet::new(HostId(0), HostId(to), 1, 100);
        [Nic, Pacer, Tier0, Tier1, Tier2].map(|account| network.ports_of(&packet, account).count())
    };
    let leaf_spine = Network::leaf_spine(2, 4, 4, class(), class());
    assert_eq!(counts(leaf_spine.clone(), 7), [1, 0, 2, 1, 0]);
    assert_eq!(counts(leaf_spine.clone().without_pacers(), 7), [1, 1, 1, 1, 0]);
    assert_eq!(counts(leaf_spine.without_pacers(), 1), [1, 0, 1, 0, 0]);
    assert_eq!(counts(Network::fat_tree(4, class()).without_pacers(), 15), [1, 1, 1, 2, 1]);
}

#[test]
fn flows_spread_evenly_over_equal_cost_paths() {
    let network = Network::leaf_spine(2, 4, 4, class(), class());
    let mut uses = [0; 4];
    for flow in 0..4000 {
        let up = hops(&network, 0, 7, flow)[1].0 - 2 * 8;
        uses[up as usize] += 1;
    }
    assert!(uses.iter().all(|&n| (900..1100).contains(&n)), "{uses:?}");
}

proptest! {
    #[test]
    fn symmetric_hashing_sends_both_directions_through_the_same_switches(
        src in 0u32..128, dst in 0u32..128, flow: u32, salt: u64
    ) {
        prop_assume!(src != dst);
        let network = Network::fat_tree(8, class()).with_hashing(Hashing { salt, symmetric: true });
        let switches = |src, dst| -> Vec<Node> {
            hops(&network, src, dst, flow).iter().skip(1).map(|&port| network.link(port).from).collect()
        };
        let mut back = switches(dst, src);
        back.reverse();
        prop_assert_eq!(switches(src, dst), back);
    }
}

#[test]
fn division_by_a_known_number_is_exact() {
    for d in (1..200).chain([255, 256, 257, 65_535, 65_536, 1 << 30]) {
        let divisor = Divisor::new(d);
        let near = |n: u64| n.saturating_sub(2)..(n + 3).min(1 << 31);
        for n in (0..50).flat_map(|q| near(q * u64::from(d))).chain(near(1 << 31)) {
            assert_eq!(divisor.divide(n as u32), n as u32 / d, "{n} / {d}");
        }
    }
}
