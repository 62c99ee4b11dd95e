//! The links and next hops of a hybrid network.
//!
//! ```text
//! ports     NICs, ports towards hosts, all ports of the packet network, ToR to circuit switch (host by host), back,
//!                                      │                                and the same for each other circuit switch
//!                                      └ ToR to packet network (rack by rack), back, between its switches
//! switches  ToRs, the switches of the packet network, the circuit switches
//! ```
//!
//! A host's packets leave its rack by one uplink, and reach it by the same one: an uplink belongs to one host, or to
//! several where a rack has fewer uplinks than hosts. So within the packet network a destination is an uplink, and the
//! packet network is a [`Network`] of its own, whose hosts are the uplinks.

use crate::net::topology::link::{Choices, Link, LinkClass, Node, host_links};
use crate::net::topology::{Network, Paths};
use crate::net::{HostId, Packet, PathClass, PortId};

/// The next hops between racks, packet network and circuit switch.
#[derive(Clone, Debug)]
pub(crate) struct NextHops {
    racks: u32,
    hosts_per_rack: u32,
    packet_uplinks: u32,
    /// The number of circuit switches.
    planes: u32,
    /// The packet network; its hosts are the uplinks.
    packet: Box<Network>,
}

impl NextHops {
    /// Returns the next hops for the given counts of racks with hosts, with uplinks to the network `packet` and, of
    /// each host, to circuit switches.
    pub(super) fn new(counts: [u32; 4], packet: Network) -> NextHops {
        let [racks, hosts_per_rack, packet_uplinks, planes] = counts;
        NextHops { racks, hosts_per_rack, packet_uplinks, planes, packet: Box::new(packet) }
    }

    /// Returns the network whose next hops these are, with links of hosts, of uplinks to the packet network and of
    /// circuits.
    pub(super) fn network(self, classes: [LinkClass; 3], tiers: &[&'static str]) -> Network {
        let links = self.links(classes, tiers.len() as u8 - 1);
        Network::new(
            self.hosts(),
            self.first_circuit_switch() + self.planes,
            links,
            tiers,
            Paths::Hybrid(self),
        )
    }

    fn hosts(&self) -> u32 {
        self.racks * self.hosts_per_rack
    }

    /// Returns the packet network, whose hosts are the racks' uplinks.
    pub(crate) fn packet_network(&self) -> &Network {
        &self.packet
    }

    /// Returns the number of the first switch of the packet network.
    pub(crate) fn first_packet_switch(&self) -> u32 {
        self.racks
    }

    /// Returns the number of circuit switches.
    pub(crate) fn planes(&self) -> u32 {
        self.planes
    }

    fn first_circuit_switch(&self) -> u32 {
        self.racks + self.packet.switches()
    }

    /// Returns the plane of `switch`, if it is a circuit switch.
    pub(crate) fn plane_of(&self, switch: u32) -> Option<u32> {
        switch.checked_sub(self.first_circuit_switch())
    }

    /// Returns the port to the circuit switch of `plane` by which `host` sends.
    pub(crate) fn circuit_from(&self, host: u32, plane: u32) -> PortId {
        PortId(self.first_circuit() + 2 * self.hosts() * plane + host)
    }

    /// Returns the port of the circuit switch of `plane` towards `host`.
    pub(crate) fn circuit_to(&self, host: u32, plane: u32) -> PortId {
        PortId(self.circuit_from(host, plane).0 + self.hosts())
    }

    /// Returns whether `port` sends from a rack to the packet network.
    pub(crate) fn is_packet_uplink(&self, port: PortId) -> bool {
        self.in_packet_network(port).is_some_and(|port| port.0 < self.packet.hosts())
    }

    /// Returns the number of `port` in the packet network, if it belongs to that or leads there.
    pub(crate) fn in_packet_network(&self, port: PortId) -> Option<PortId> {
        let within = port.0.checked_sub(self.first_packet())?;
        (within < self.packet.links().len() as u32).then_some(PortId(within))
    }

    /// Returns the number of a port of the packet network in this network.
    pub(crate) fn of_packet_network(&self, port: PortId) -> PortId {
        PortId(self.first_packet() + port.0)
    }

    /// Returns the number of `switch` in the packet network, if it belongs to that.
    pub(crate) fn packet_switch(&self, switch: u32) -> Option<u32> {
        switch.checked_sub(self.racks).filter(|within| *within < self.packet.switches())
    }

    /// Returns the first port of the packet network.
    fn first_packet(&self) -> u32 {
        2 * self.hosts()
    }

    /// Returns the first port from a ToR to the circuit switch.
    fn first_circuit(&self) -> u32 {
        self.first_packet() + self.packet.links().len() as u32
    }

    /// Returns the number of ports.
    fn ports(&self) -> u32 {
        self.first_circuit() + 2 * self.hosts() * self.planes
    }

    fn rack_of(&self, host: u32) -> u32 {
        host / self.hosts_per_rack
    }

    /// Returns the uplink by which packets reach `host` and leave it.
    pub(crate) fn uplink_of(&self, host: u32) -> HostId {
        let place = host % self.hosts_per_rack % self.packet_uplinks;
        HostId(self.rack_of(host) * self.packet_uplinks + place)
    }

    /// Returns the uplinks of the rack of `host`.
    pub(crate) fn uplinks_of_rack(&self, host: u32) -> impl Iterator<Item = HostId> + Clone + use<> {
        let first = self.rack_of(host) * self.packet_uplinks;
        (first..first + self.packet_uplinks).map(HostId)
    }

    fn links(&self, [host, packet, circuit]: [LinkClass; 3], circuit_tier: u8) -> Vec<Link> {
        let mut links: Vec<Link> = host_links(self.hosts(), host, |host| self.rack_of(host)).collect();
        let node = |node: Node| match node {
            Node::Host(uplink) => Node::Switch(uplink.0 / self.packet_uplinks),
            Node::Switch(switch) => Node::Switch(self.racks + switch),
        };
        let uplinks = 2 * self.packet.hosts() as usize;
        links.extend(self.packet.links().iter().enumerate().map(|(number, link)| {
            let tier = if matches!(link.from, Node::Host(_)) { 0 } else { link.tier + 1 };
            let class = LinkClass { rate: link.rate, propagation: link.propagation };
            let class = if number < uplinks { packet } else { class };
            class.link(node(link.from), node(link.to), tier)
        }));
        let racks = || (0..self.hosts()).map(|host| Node::Switch(self.rack_of(host)));
        for plane in 0..self.planes {
            let circuit_switch = Node::Switch(self.first_circuit_switch() + plane);
            links.extend(racks().map(|rack| circuit.link(rack, circuit_switch, 0)));
            links.extend(racks().map(|rack| circuit.link(circuit_switch, rack, circuit_tier)));
        }
        links
    }

    /// Returns the port by which `switch` passes `packet` on, whose path class is known, if only one is possible: at a
    /// ToR, at a circuit switch, and from the packet network down to a rack.
    pub(crate) fn own_port(&self, switch: u32, packet: &Packet) -> Option<PortId> {
        let (src, dst) = (packet.src.0, packet.dst.0);
        if let Some(plane) = self.plane_of(switch) {
            return Some(self.circuit_to(dst, plane));
        }
        if let Some(within) = self.packet_switch(switch) {
            let uplink = self.uplink_of(dst);
            let is_below = self.packet.switch_of(uplink) == Some(within);
            return is_below.then(|| self.of_packet_network(self.packet.port_towards(uplink)));
        }
        Some(if switch == self.rack_of(dst) {
            PortId(self.hosts() + dst)
        } else if packet.path_class() == PathClass::Circuit {
            self.circuit_from(src, packet.circuit_plane())
        } else {
            self.of_packet_network(PortId(self.uplink_of(src).0))
        })
    }

    /// Returns the ports by the packet network; a circuit is not a choice of a switch.
    pub(in crate::net::topology) fn choices(&self, switch: u32, dst: u32) -> Choices {
        if let Some(plane) = self.plane_of(switch) {
            return Choices::one(self.circuit_to(dst, plane).0);
        }
        if let Some(within) = self.packet_switch(switch) {
            let mut uplinks = self.uplinks_of_rack(dst);
            if uplinks.all(|uplink| self.packet.switch_of(uplink) == Some(within)) {
                let first = self.packet.port_towards(HostId(self.rack_of(dst) * self.packet_uplinks));
                return self.parallel(self.of_packet_network(first));
            }
            return self.choices_to(within, self.uplink_of(dst));
        }
        if switch == self.rack_of(dst) {
            return Choices::one(self.hosts() + dst);
        }
        self.parallel(self.of_packet_network(PortId(switch * self.packet_uplinks)))
    }

    /// Returns the choice among all uplinks of a rack, the first of which is `first`.
    fn parallel(&self, first: PortId) -> Choices {
        Choices { first: first.0, count: self.packet_uplinks, tier: 0 }
    }

    /// Returns the ports on the shortest paths through the packet network from its switch `within` to an uplink.
    pub(crate) fn choices_to(&self, within: u32, uplink: HostId) -> Choices {
        let Choices { first, count, tier } = self.packet.choices(within, uplink);
        Choices { first: self.ports() + first, count, tier: tier + 1 }
    }

    /// Returns the port at a place that the choices gave: places after the ports are places of the packet network.
    pub(in crate::net::topology) fn port(&self, place: u32) -> PortId {
        match place.checked_sub(self.ports()) {
            Some(within) => self.of_packet_network(self.packet.port_at(within)),
            None => PortId(place),
        }
    }
}
