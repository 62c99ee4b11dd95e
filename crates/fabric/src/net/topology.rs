//! [`Topology`]: the parameters of a network, and [`Network`]: its hosts, switches and links, and the path of a packet.
//!
//! Each kind of topology is one file, which holds its parameters, implements [`Kind`] for them, and has its links and
//! next hops; the table in this file lists it.
//!
//! Ports are numbered so that the common questions are arithmetic: host `h`'s NIC is port `h`, the port towards host
//! `h` is `hosts + h`, and the ports that generated topologies add follow. Their next hops are computed; only a graph
//! from a file keeps a table.

mod arithmetic;
mod clos;
mod dragonfly;
mod dumbbell;
mod fat_tree;
pub mod file;
mod graph;
mod hybrid;
mod kind;
mod leaf_spine;
mod link;
mod nics;
mod rack;
mod registry;
mod waits;

use plimsoll_mechanisms::transports::entropy::{PathChoices, PathLabel};
use plimsoll_memory::prefetch_for_later;
use plimsoll_units::{Rate, Span, mix64};

use super::{Flags, HostId, Packet, PortId};
pub(crate) use arithmetic::choose;
use arithmetic::place_of;
pub use clos::ClosShape;
pub use graph::{GraphLink, GraphNode, Unreachable};
pub(crate) use hybrid::next_hops::NextHops as HybridHops;
pub use kind::{Inside, InvalidValue, Kind, Racks, TopologyCheck, TopologyCut};
pub use link::{Choices, Link, LinkClass, Node};
pub use nics::{HostNics, NicChoice};

registry::topologies! {
    Rack "rack" in rack;
    LeafSpine "leaf-spine" in leaf_spine;
    FatTree "fat-tree" in fat_tree;
    Clos "clos" in clos;
    Dumbbell "dumbbell" in dumbbell;
    Dragonfly "dragonfly" in dragonfly;
    Hybrid "hybrid" in hybrid;
    File "file" in file;
}

registry::kinds! {
    /// The network between the racks' uplinks of a hybrid network.
    PacketNetwork read_as PacketNetworkInFile "PacketNetwork";
    LeafSpine "leaf-spine";
    FatTree "fat-tree";
    Clos "clos";
    File "file";
}

/// The shape of a network.
#[derive(Clone, Debug)]
pub struct Network {
    hosts: u32,
    switches: u32,
    links: Vec<Link>,
    /// By port: the switch at the far end, or [`A_HOST`]. This is all that forwarding needs of a link, in a tenth of
    /// its room.
    far_ends: Vec<u32>,
    tiers: Vec<&'static str>,
    paths: Paths,
    hashing: Hashing,
    nics: HostNics,
    /// Ports that lead upwards from the first tier add to the account of pacers, as there are none.
    upward_is_apart: bool,
}

/// Marks a far end that is a host, not a switch.
const A_HOST: u32 = u32::MAX;

#[derive(Clone, Debug)]
enum Paths {
    Rack,
    LeafSpine(leaf_spine::NextHops),
    Clos(clos::NextHops),
    Dumbbell(dumbbell::NextHops),
    Dragonfly(dragonfly::NextHops),
    Hybrid(HybridHops),
    Graph(graph::NextHops),
}

/// The choice among equal-cost paths: by a hash of the packet's addresses and connection, salted so that switches
/// choose independently.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Hashing {
    /// Changes every choice; from the run's seed.
    pub salt: u64,
    /// Both directions of a connection choose alike: the addresses are sorted before they are
    /// hashed, and switches of one tier share a salt.
    pub symmetric: bool,
}

impl Network {
    fn new(hosts: u32, switches: u32, links: Vec<Link>, tiers: &[&'static str], paths: Paths) -> Network {
        let far_ends = links.iter().map(|link| match link.to {
            Node::Host(_) => A_HOST,
            Node::Switch(switch) => switch,
        });
        Network {
            hosts,
            switches,
            far_ends: far_ends.collect(),
            links,
            tiers: tiers.to_vec(),
            paths,
            hashing: Hashing::default(),
            nics: HostNics::One,
            upward_is_apart: false,
        }
    }

    /// Returns the same network with the NICs of other hosts.
    pub(crate) fn with_nics(mut self, nics: HostNics) -> Network {
        self.nics = nics;
        self
    }

    /// Returns which NICs each host has. Everywhere else a `HostId` of a network, its ports and its packets is a NIC.
    pub fn nics(&self) -> &HostNics {
        &self.nics
    }

    /// Returns the same network with another choice among equal-cost paths.
    pub fn with_hashing(mut self, hashing: Hashing) -> Network {
        self.hashing = hashing;
        self
    }

    /// Gives the link that `port` sends on another rate.
    pub fn set_rate(&mut self, port: PortId, rate: Rate) {
        self.links[port.0 as usize].rate = rate;
    }

    /// Returns the ports that send on links from one node to another, in ascending order.
    pub fn ports_between(&self, from: Node, to: Node) -> impl Iterator<Item = PortId> + '_ {
        let links = (0..).map(PortId).zip(&self.links);
        links.filter(move |(_, link)| (link.from, link.to) == (from, to)).map(|(port, _)| port)
    }

    /// Returns the number of hosts: of their NICs, where a host has several.
    pub fn hosts(&self) -> u32 {
        self.hosts
    }

    /// Returns the number of switches.
    pub fn switches(&self) -> u32 {
        self.switches
    }

    /// Returns every port's link, by port number.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns the link that `port` sends on.
    pub fn link(&self, port: PortId) -> &Link {
        &self.links[port.0 as usize]
    }

    /// Prefetches what [`Network::link`] returns for `port`.
    #[inline]
    pub(crate) fn prefetch_link(&self, port: PortId) {
        prefetch_for_later(self.link(port));
    }

    /// Prefetches the memory that [`Network::far_switch`] reads, after many other events.
    #[inline]
    pub fn prefetch_far_end(&self, port: PortId) {
        if let Some(far_end) = self.far_ends.get(port.0 as usize) {
            prefetch_for_later(far_end);
        }
    }

    /// Returns the switch at the far end of `port`'s link; `None` if a host is there.
    #[inline]
    pub fn far_switch(&self, port: PortId) -> Option<u32> {
        let switch = self.far_ends[port.0 as usize];
        (switch != A_HOST).then_some(switch)
    }

    /// Returns the switch that `port` belongs to; `None` for a host's NIC.
    pub fn near_switch(&self, port: PortId) -> Option<u32> {
        match self.link(port).from {
            Node::Host(_) => None,
            Node::Switch(switch) => Some(switch),
        }
    }

    /// Returns the switch that `host` is connected to; `None` without one.
    #[inline]
    pub fn switch_of(&self, host: HostId) -> Option<u32> {
        self.far_switch(PortId(host.0))
    }

    /// Returns the next hops of a network with a circuit switch.
    pub(crate) fn hybrid(&self) -> Option<&HybridHops> {
        match &self.paths {
            Paths::Hybrid(hops) => Some(hops),
            _ => None,
        }
    }

    /// Returns the names of the switch tiers, from the hosts upwards.
    pub fn tiers(&self) -> &[&'static str] {
        &self.tiers
    }

    /// Returns the names of the places where packets wait in switches, in the order of
    /// [`WaitPlace::TIERS`](super::WaitPlace::TIERS): the tiers, but in a hybrid network all tiers of the packet
    /// network are one place.
    pub fn wait_places(&self) -> &[&'static str] {
        if self.hybrid().is_some() { Hybrid::TIERS } else { &self.tiers }
    }

    /// Returns the switch port towards `host`.
    #[inline]
    pub fn port_towards(&self, host: HostId) -> PortId {
        PortId(self.hosts + host.0)
    }

    /// Returns the port by which `switch` passes `packet` on; of several ports, the one that its flow's hash chooses.
    #[inline]
    pub fn next_port(&self, switch: u32, packet: &Packet) -> PortId {
        if let Paths::Rack = self.paths {
            return self.port_towards(packet.dst);
        }
        self.hashed_port(switch, packet)
    }

    /// [`Network::next_port`] where there may be several.
    fn hashed_port(&self, switch: u32, packet: &Packet) -> PortId {
        if let Paths::Hybrid(hops) = &self.paths
            && let Some(own) = hops.own_port(switch, packet)
        {
            return own;
        }
        let choices = self.choices(switch, packet.dst);
        let hash = if choices.count > 1 { self.flow_hash(packet, switch, choices) } else { 0 };
        self.choice(choices, choose(hash, choices.count))
    }

    /// Returns whether one port alone leads from `switch` towards `dst`. In a hybrid network that depends on more.
    #[inline]
    pub(crate) fn has_one_way(&self, switch: u32, dst: HostId) -> bool {
        self.hybrid().is_none() && self.choices(switch, dst).count == 1
    }

    /// Returns the ports by which `switch` may pass on a packet to `dst`: the next hops of the shortest paths.
    #[inline(always)] // for every packet at every switch; a call costs a seventh of it
    pub fn choices(&self, switch: u32, dst: HostId) -> Choices {
        match &self.paths {
            Paths::Rack => Choices::one(self.hosts + dst.0),
            Paths::LeafSpine(hops) => hops.choices(switch, dst.0),
            Paths::Clos(hops) => hops.choices(switch, dst.0),
            Paths::Dumbbell(hops) => hops.choices(switch, dst.0),
            Paths::Dragonfly(hops) => hops.choices(switch, dst.0),
            Paths::Hybrid(hops) => hops.choices(switch, dst.0),
            Paths::Graph(hops) => hops.choices(switch, dst.0),
        }
    }

    /// Choice number `index` of `choices`.
    #[inline]
    pub fn choice(&self, choices: Choices, index: u32) -> PortId {
        self.port_at(choices.first + index)
    }

    /// Returns the port at a place among the ports of choices.
    #[inline]
    fn port_at(&self, place: u32) -> PortId {
        match &self.paths {
            Paths::Graph(hops) => PortId(hops.port(place)),
            Paths::Dragonfly(hops) => PortId(hops.port(place)),
            Paths::Hybrid(hops) => hops.port(place),
            _ => PortId(place),
        }
    }

    /// Returns the ports that `packet` passes, its sender's NIC first.
    pub fn path(&self, packet: &Packet) -> impl Iterator<Item = PortId> + '_ {
        let packet = *packet;
        let mut next = Some(PortId(packet.src.0));
        std::iter::from_fn(move || {
            let port = next?;
            next = self.far_switch(port).map(|switch| self.next_port(switch, &packet));
            Some(port)
        })
    }

    /// Returns the hops from `src` to `dst`: for each, the fastest link and the number of links on all shortest paths
    /// together.
    pub fn tiers_between(&self, src: HostId, dst: HostId) -> impl Iterator<Item = (&Link, u64)> + '_ {
        let mut ports = vec![PortId(src.0)];
        std::iter::from_fn(move || {
            let link = ports.iter().map(|port| self.link(*port)).max_by_key(|link| link.rate)?;
            let links = ports.len() as u64;
            let mut switches: Vec<u32> = ports.iter().filter_map(|port| self.far_switch(*port)).collect();
            switches.sort_unstable();
            switches.dedup();
            let next = switches.into_iter().flat_map(|switch| {
                let choices = self.choices(switch, dst);
                (0..choices.count).map(move |index| self.choice(choices, index))
            });
            ports = next.collect();
            Some((link, links))
        })
    }

    /// Returns the serialisation and propagation times of `packet` on its path when nothing is in its way.
    pub fn idle_transit(&self, packet: &Packet) -> (Span, Span) {
        self.path(packet).fold((Span::ZERO, Span::ZERO), |(serialisation, propagation), port| {
            let link = self.link(port);
            let span = link.rate.byte_time().span(u64::from(packet.size));
            (serialisation + span, propagation + link.propagation)
        })
    }

    /// Returns the time that `packet`, and its answer of `answer` bytes on the wire, take when nothing is in their way.
    pub fn idle_round_trip(&self, packet: &Packet, answer: u16) -> Span {
        let mut back = Packet::new(packet.dst, packet.src, packet.flow, answer);
        back.flags = Flags(packet.flags.0 ^ Flags::FROM_SERVER.0);
        let transit = |packet| {
            let (serialisation, propagation) = self.idle_transit(packet);
            serialisation + propagation
        };
        transit(packet) + transit(&back)
    }

    /// Returns the longest time that a packet of `size` bytes, and its answer of `answer` bytes, take when nothing is
    /// in their way, among the paths of the first and the last host: in regular topologies, of all.
    pub fn longest_round_trip(&self, size: u16, answer: u16) -> Span {
        let last = self.hosts - 1;
        let pairs = (0..last).flat_map(|host| [(0, host + 1), (last, host)]);
        let of_pair = |(src, dst)| {
            let packet = Packet::new(HostId(src), HostId(dst), 0, size);
            self.idle_round_trip(&packet, answer)
        };
        pairs.map(of_pair).max().unwrap_or_default()
    }

    /// Returns the links among which packets from `src` to `dst` choose at the tiers on their way, where labels can
    /// name all of these paths (`PathLabel`); `None` elsewhere.
    pub fn path_choices(&self, src: HostId, dst: HostId) -> Option<PathChoices> {
        if matches!(self.paths, Paths::Graph(_) | Paths::Dragonfly(_) | Paths::Hybrid(_)) {
            return None;
        }
        let mut links = [1_u16; 2];
        for port in self.path(&Packet::new(src, dst, 0, 0)) {
            let Some(switch) = self.far_switch(port) else { break };
            let choices = self.choices(switch, dst);
            if choices.count > PathLabel::LINKS {
                return None;
            }
            if choices.count > 1 {
                *links.get_mut(choices.tier as usize)? = choices.count as u16;
            }
        }
        Some(PathChoices(links))
    }

    /// 32 well mixed bits that are the same for every packet of a connection's direction with one entropy value; for a
    /// packet with a label of its path those by which [`choose`] finds the link that it names.
    #[inline]
    pub(crate) fn flow_hash(&self, packet: &Packet, switch: u32, choices: Choices) -> u32 {
        let (entropy, tier) = (packet.entropy(), choices.tier);
        if let Some(label) = PathLabel::of(entropy) {
            return place_of(label.link(tier) % choices.count, choices.count);
        }
        let Hashing { salt, symmetric } = self.hashing;
        let (mut a, mut b) = (packet.src.0, packet.dst.0);
        let mut place = switch;
        if symmetric {
            (a, b) = (a.min(b), a.max(b));
            place = tier;
        }
        let addresses = u64::from(a) << 32 | u64::from(b);
        let mixed = mix64(addresses ^ salt).wrapping_add(u64::from(packet.flow) << 32 | u64::from(place));
        let mixed = mixed ^ u64::from(entropy).wrapping_mul(ENTROPY_SPREAD);
        (mix64(mixed) >> 32) as u32
    }
}

/// An odd number whose multiples differ in all bits.
const ENTROPY_SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

#[cfg(test)]
mod tests;
