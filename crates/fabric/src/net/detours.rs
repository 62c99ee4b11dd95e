//! [`Detours`]: next hops of a network some of whose links are dead.
//!
//! Shortest paths by hop count over the remaining links, from a breadth-first search towards every switch that has
//! hosts, as a link-state protocol computes them. Only the differences from the whole network's next hops are kept, so
//! one dead link of a large network takes little room. The detours depend on the network and the dead links alone, so
//! that every logical process computes the same.

mod uplinks;

use std::collections::{BTreeSet, VecDeque};

pub(crate) use uplinks::UplinkDetours;

use super::{HostId, Network, PortId};

/// The next hops that differ from the ones of the whole network.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Detours {
    /// Hosts that no switch can deliver to, in ascending order.
    cut_off: Vec<HostId>,
    /// The place of each switch's first entry; one more at the end.
    first: Vec<u32>,
    /// The entries, by switch, then destination.
    entries: Vec<DetourEntry>,
    /// The next hops of all entries.
    ports: Vec<PortId>,
    /// The detours between the racks of a hybrid network, which has no entries of its own.
    uplinks: Option<Box<UplinkDetours>>,
}

/// The next hops from a switch to the hosts of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct DetourEntry {
    to: u32,
    start: u32,
    count: u32,
}

impl Detours {
    /// Computes the next hops of `network` without the links that the ports `dead` send on.
    pub fn around(network: &Network, dead: &BTreeSet<PortId>) -> Detours {
        let switches = network.switches() as usize;
        let all = || (0..network.links().len() as u32).map(PortId);
        let hosts = || (0..network.hosts()).map(HostId);
        let cut_off = hosts().filter(|host| dead.contains(&network.port_towards(*host))).collect();
        if let Some(hops) = network.hybrid() {
            let uplinks = Some(Box::new(UplinkDetours::around(hops, dead)));
            return Detours { uplinks, ..Detours::flat(cut_off, vec![Vec::new(); switches]) };
        }
        let ports = || all().filter(|port| !dead.contains(port));
        let mut into: Vec<Vec<u32>> = vec![Vec::new(); switches];
        let mut from: Vec<Vec<(PortId, u32)>> = vec![Vec::new(); switches];
        for port in ports() {
            if let (Some(a), Some(b)) = (network.near_switch(port), network.far_switch(port)) {
                into[b as usize].push(a);
                from[a as usize].push((port, b));
            }
        }
        let mut of_switch: Vec<Vec<(u32, Vec<PortId>)>> = vec![Vec::new(); switches];
        let mut done = vec![false; switches];
        for host in hosts() {
            let Some(to) = network.switch_of(host) else { continue };
            if std::mem::replace(&mut done[to as usize], true) {
                continue;
            }
            let distance = distances_to(to, &into);
            for switch in (0..network.switches()).filter(|switch| *switch != to) {
                let closer = |next: u32| distance[next as usize] < distance[switch as usize];
                let hops = from[switch as usize].iter().filter(|(_, next)| closer(*next));
                let hops: Vec<PortId> = hops.map(|(port, _)| *port).collect();
                let choices = network.choices(switch, host);
                if !(0..choices.count).map(|index| network.choice(choices, index)).eq(hops.iter().copied()) {
                    of_switch[switch as usize].push((to, hops));
                }
            }
        }
        Detours::flat(cut_off, of_switch)
    }

    fn flat(cut_off: Vec<HostId>, of_switch: Vec<Vec<(u32, Vec<PortId>)>>) -> Detours {
        let mut detours =
            Detours { cut_off, first: vec![0], entries: Vec::new(), ports: Vec::new(), uplinks: None };
        for mut entries in of_switch {
            entries.sort_unstable_by_key(|(to, _)| *to);
            for (to, hops) in entries {
                let start = detours.ports.len() as u32;
                detours.entries.push(DetourEntry { to, start, count: hops.len() as u32 });
                detours.ports.extend(hops);
            }
            detours.first.push(detours.entries.len() as u32);
        }
        detours
    }

    /// Returns whether no switch can deliver to `host`.
    pub(crate) fn is_cut_off(&self, host: HostId) -> bool {
        self.cut_off.binary_search(&host).is_ok()
    }

    /// Returns the detours between the racks of a hybrid network.
    pub(crate) fn of_uplinks(&self) -> Option<&UplinkDetours> {
        self.uplinks.as_deref()
    }

    /// Returns the ports by which `switch` may pass on a packet to `dst`, an empty list if `dst` cannot be reached;
    /// `None` if they are the same as in the whole network.
    pub fn next_hops(&self, network: &Network, switch: u32, dst: HostId) -> Option<&[PortId]> {
        if self.is_cut_off(dst) {
            return Some(&[]);
        }
        let to = network.switch_of(dst)?;
        let range = self.first[switch as usize] as usize..self.first[switch as usize + 1] as usize;
        let entries = &self.entries[range];
        let entry = entries.binary_search_by_key(&to, |entry| entry.to).ok().map(|index| entries[index])?;
        Some(&self.ports[entry.start as usize..(entry.start + entry.count) as usize])
    }
}

/// Computes the number of hops from every switch to `target`; `into` holds, for each switch, the switches with a link
/// to it.
fn distances_to(target: u32, into: &[Vec<u32>]) -> Vec<u32> {
    let mut distance = vec![UNREACHABLE; into.len()];
    distance[target as usize] = 0;
    let mut frontier = VecDeque::from([target]);
    while let Some(switch) = frontier.pop_front() {
        for &before in &into[switch as usize] {
            if distance[before as usize] == UNREACHABLE {
                distance[before as usize] = distance[switch as usize] + 1;
                frontier.push_back(before);
            }
        }
    }
    distance
}

const UNREACHABLE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use plimsoll_units::{Rate, Span};

    use super::*;
    use crate::net::Node;
    use crate::net::topology::{ClosShape, LinkClass};

    const CLASS: LinkClass = LinkClass { rate: Rate::from_gbps(1), propagation: Span::from_us(1) };

    fn dead(network: &Network, links: &[(Node, Node)]) -> BTreeSet<PortId> {
        let ports = (0u32..).map(PortId).zip(network.links());
        ports.filter(|(_, link)| links.contains(&(link.from, link.to))).map(|(port, _)| port).collect()
    }

    /// Returns every switch a packet visits, choosing the last next hop at each; `None` if it gets nowhere.
    fn walk(network: &Network, detours: &Detours, mut switch: u32, dst: HostId) -> Option<Vec<u32>> {
        let mut visited = vec![switch];
        while network.switch_of(dst) != Some(switch) {
            let choices = network.choices(switch, dst);
            let port = match detours.next_hops(network, switch, dst) {
                Some(hops) => *hops.last()?,
                None => network.choice(choices, choices.count - 1),
            };
            switch = network.far_switch(port).expect("a link between switches");
            visited.push(switch);
            assert!(visited.len() < 20, "a loop: {visited:?}");
        }
        Some(visited)
    }

    #[test]
    fn a_whole_network_has_none() {
        let fat_tree = Network::fat_tree(4, CLASS);
        let shape = ClosShape { pods: 3, edges: 2, aggregations: 2, cores: 3, hosts_per_edge: 2 };
        let leaf_spine = Network::leaf_spine(3, 2, 2, CLASS, CLASS);
        for network in [fat_tree, Network::clos(shape, CLASS, CLASS, CLASS), leaf_spine] {
            let detours = Detours::around(&network, &BTreeSet::new());
            assert!(detours.entries.is_empty() && detours.cut_off.is_empty(), "{detours:?}");
        }
    }

    /// Leaves 0, 1; spines 2, 3. Without leaf 0 -> spine 2 leaf 0 has one way left, and leaf 1 still two: the
    /// other direction is alive.
    #[test]
    fn one_direction_of_a_link() {
        let network = Network::leaf_spine(2, 2, 1, CLASS, CLASS);
        let dead = dead(&network, &[(Node::Switch(0), Node::Switch(2))]);
        let detours = Detours::around(&network, &dead);
        let hops = detours.next_hops(&network, 0, HostId(1)).unwrap();
        let far: Vec<_> = hops.iter().map(|port| network.far_switch(*port)).collect();
        assert_eq!(far, [Some(3)]);
        assert_eq!(detours.next_hops(&network, 1, HostId(0)), None);
    }

    /// A spine that has lost its link to a leaf reaches it by way of another leaf and spine; leaves no longer send it
    /// packets for that leaf.
    #[test]
    fn ways_around_are_found_and_free_of_loops() {
        let network = Network::leaf_spine(3, 2, 1, CLASS, CLASS);
        let dead = dead(&network, &[(Node::Switch(3), Node::Switch(0)), (Node::Switch(0), Node::Switch(3))]);
        let detours = Detours::around(&network, &dead);
        assert_eq!(walk(&network, &detours, 1, HostId(0)), Some(vec![1, 4, 0]));
        let around = walk(&network, &detours, 3, HostId(0)).unwrap();
        assert_eq!((around.len(), around[2], around[3]), (4, 4, 0), "{around:?}");
    }

    #[test]
    fn a_host_without_its_link_is_cut_off() {
        let network = Network::rack(3, CLASS);
        let dead = dead(&network, &[(Node::Switch(0), Node::Host(HostId(1)))]);
        let detours = Detours::around(&network, &dead);
        assert_eq!(detours.next_hops(&network, 0, HostId(1)), Some(&[][..]));
        assert_eq!(detours.next_hops(&network, 0, HostId(2)), None);
    }

    #[test]
    fn a_network_in_two_parts_has_no_way() {
        let network = Network::dumbbell(1, 1, CLASS, CLASS);
        let dead = dead(&network, &[(Node::Switch(0), Node::Switch(1))]);
        let detours = Detours::around(&network, &dead);
        assert_eq!(walk(&network, &detours, 0, HostId(1)), None);
        assert_eq!(walk(&network, &detours, 1, HostId(0)), Some(vec![1, 0]));
    }
}
