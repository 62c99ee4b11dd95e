//! Racks with a packet switch and a circuit switch above them (REACToR, Kapoor's thesis, section 7.2).
//!
//! ```text
//!      packet switch (eps)          circuit switch (ocs): no buffer, a matching of hosts
//!        │ p uplinks a rack            │ one uplink a host
//!        └──────────── ToR ────────────┘
//!                       │ n hosts
//! ```
//!
//! Ports after the NICs and the ports towards hosts: ToR to packet switch (rack by rack), packet switch to ToR, ToR to
//! circuit switch (host by host), circuit switch to ToR.

use plimsoll_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Inside, Kind, TopologyCheck, TopologyCut, hosts, product};
use super::link::{Choices, Link, LinkClass, Node, host_links};
use super::{Network, Paths};
use crate::Unbuildable;
use crate::net::{Packet, PathClass, PortId};

/// Racks whose switches have uplinks to a packet switch and to a circuit switch. Tier names: `tor`, `eps`, `ocs`. A
/// circuit leads from one host to another; the table `circuits` says how they are scheduled.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hybrid {
    /// Number of racks.
    pub racks: u32,
    /// Hosts of a rack, each with an uplink of its own to the circuit switch; 1 by default.
    #[serde(default = "one")]
    pub hosts_per_rack: u32,
    /// Uplinks of a rack to the packet switch; default: as many as it has hosts.
    #[serde(default)]
    pub packet_uplinks: Option<u32>,
    /// Rate of a host's link.
    pub rate: Rate,
    /// Rate of an uplink to the packet switch.
    pub packet_rate: Rate,
    /// Rate of a circuit; default: `rate`.
    #[serde(default)]
    pub circuit_rate: Option<Rate>,
    /// One-way propagation of a host's link.
    pub delay: Span,
    /// One-way propagation of an uplink to the packet switch; default: `delay`.
    #[serde(default)]
    pub packet_delay: Option<Span>,
    /// One-way propagation of an uplink to the circuit switch; default: `delay`.
    #[serde(default)]
    pub circuit_delay: Option<Span>,
}

fn one() -> u32 {
    1
}

impl Hybrid {
    pub(super) const TIERS: &[&str] = &["tor", "eps", "ocs"];

    fn hops(&self) -> NextHops {
        NextHops {
            racks: self.racks,
            hosts_per_rack: self.hosts_per_rack,
            packet_uplinks: self.packet_uplinks.unwrap_or(self.hosts_per_rack),
        }
    }

    fn classes(&self) -> [LinkClass; 3] {
        let class = |rate, delay: Option<Span>| LinkClass { rate, propagation: delay.unwrap_or(self.delay) };
        [
            class(self.rate, None),
            class(self.packet_rate, self.packet_delay),
            class(self.circuit_rate.unwrap_or(self.rate), self.circuit_delay),
        ]
    }
}

impl Kind for Hybrid {
    fn check(&self, check: &mut TopologyCheck) {
        check.at_least("racks", self.racks, 2);
        check.at_least("hosts_per_rack", self.hosts_per_rack, 1);
        check.at_least("packet_uplinks", self.hops().packet_uplinks, 1);
        check.rate("rate", self.rate);
        check.rate("packet_rate", self.packet_rate);
        check.rate("circuit_rate", self.circuit_rate.unwrap_or(self.rate));
        let most = HOSTS_MAX;
        if self.hosts() > most {
            check.error("racks", format!("more than {most} hosts"), format!("at most {most} hosts in all"));
        }
    }

    fn tiers(&self) -> &'static [&'static str] {
        Hybrid::TIERS
    }

    fn hosts(&self) -> u64 {
        product([self.racks, self.hosts_per_rack])
    }

    fn links(&self) -> u64 {
        let packet = product([self.racks, self.hops().packet_uplinks]);
        self.hosts().saturating_mul(2).saturating_add(packet)
    }

    fn switches(&self) -> Vec<u32> {
        vec![self.racks, 1, 1]
    }

    fn switch_ports(&self, tier: usize) -> u32 {
        let NextHops { racks, hosts_per_rack, packet_uplinks } = self.hops();
        match tier {
            0 => hosts_per_rack.saturating_mul(2).saturating_add(packet_uplinks),
            1 => racks.saturating_mul(packet_uplinks),
            _ => racks.saturating_mul(hosts_per_rack),
        }
    }

    fn host_rate(&self, _host: u32) -> Rate {
        self.rate
    }

    fn link_classes(&self) -> Vec<(Rate, Span)> {
        self.classes().iter().map(|class| (class.rate, class.propagation)).collect()
    }

    fn cuts(&self) -> Vec<TopologyCut> {
        let [_, packet, circuit] = self.classes();
        let NextHops { hosts_per_rack, packet_uplinks, .. } = self.hops();
        let circuits = circuit.rate.as_bps() as f64 * f64::from(hosts_per_rack);
        let bits_per_second = packet.rate.as_bps() as f64 * f64::from(packet_uplinks) + circuits;
        vec![TopologyCut {
            links: "the uplinks of a rack to both switches",
            inside: Inside::Groups(hosts_per_rack),
            bits_per_second,
        }]
    }

    fn neighbours(&self, node: Node) -> Vec<Node> {
        let NextHops { racks, hosts_per_rack, .. } = self.hops();
        match node {
            Node::Host(host) => vec![Node::Switch(host.0 / hosts_per_rack)],
            Node::Switch(rack) if rack < racks => {
                let own = hosts(rack * hosts_per_rack..(rack + 1) * hosts_per_rack);
                [Node::Switch(racks), Node::Switch(racks + 1)].into_iter().chain(own).collect()
            }
            Node::Switch(_) => (0..racks).map(Node::Switch).collect(),
        }
    }

    fn network(&self) -> Result<Network, Unbuildable> {
        let hops = self.hops();
        let links = hops.links(self.classes());
        Ok(Network::new(hops.hosts(), hops.racks + 2, links, Hybrid::TIERS, Paths::Hybrid(hops)))
    }
}

/// The most hosts: a demand matrix has as many rows and columns.
const HOSTS_MAX: u64 = 4_096;

/// The next hops between racks, packet switch and circuit switch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NextHops {
    racks: u32,
    hosts_per_rack: u32,
    packet_uplinks: u32,
}

impl NextHops {
    fn hosts(&self) -> u32 {
        self.racks * self.hosts_per_rack
    }

    /// Returns the number of the packet switch.
    pub(crate) fn packet_switch(&self) -> u32 {
        self.racks
    }

    /// Returns the number of the circuit switch.
    pub(crate) fn circuit_switch(&self) -> u32 {
        self.racks + 1
    }

    /// Returns the port to the circuit switch by which `host` sends.
    pub(crate) fn circuit_from(&self, host: u32) -> PortId {
        PortId(self.first_circuit() + host)
    }

    /// Returns the port of the circuit switch towards `host`.
    pub(crate) fn circuit_to(&self, host: u32) -> PortId {
        PortId(self.first_circuit() + self.hosts() + host)
    }

    /// Returns the first port from a ToR to the packet switch.
    fn first_up(&self) -> u32 {
        2 * self.hosts()
    }

    /// Returns the first port from the packet switch to a ToR.
    fn first_down(&self) -> u32 {
        self.first_up() + self.racks * self.packet_uplinks
    }

    /// Returns the first port from a ToR to the circuit switch.
    fn first_circuit(&self) -> u32 {
        self.first_down() + self.racks * self.packet_uplinks
    }

    fn links(&self, [host, packet, circuit]: [LinkClass; 3]) -> Vec<Link> {
        let (packet_switch, circuit_switch) =
            (Node::Switch(self.packet_switch()), Node::Switch(self.circuit_switch()));
        let rack_of = |host: u32| host / self.hosts_per_rack;
        let mut links: Vec<Link> = host_links(self.hosts(), host, rack_of).collect();
        let uplinks = || (0..self.racks * self.packet_uplinks).map(|uplink| uplink / self.packet_uplinks);
        links.extend(uplinks().map(|rack| packet.link(Node::Switch(rack), packet_switch, 0)));
        links.extend(uplinks().map(|rack| packet.link(packet_switch, Node::Switch(rack), 1)));
        let racks = || (0..self.hosts()).map(|host| Node::Switch(rack_of(host)));
        links.extend(racks().map(|rack| circuit.link(rack, circuit_switch, 0)));
        links.extend(racks().map(|rack| circuit.link(circuit_switch, rack, 2)));
        links
    }

    /// Returns the port by which `switch` passes `packet` on, whose path class is known. An uplink to the packet switch
    /// belongs to one host, or to several where there are fewer uplinks than hosts.
    pub(crate) fn next_port(&self, switch: u32, packet: &Packet) -> PortId {
        let (src, dst) = (packet.src.0, packet.dst.0);
        let (rack, uplink) = (dst / self.hosts_per_rack, dst % self.hosts_per_rack % self.packet_uplinks);
        if switch == self.circuit_switch() {
            return self.circuit_to(dst);
        }
        if switch == self.packet_switch() {
            return PortId(self.first_down() + rack * self.packet_uplinks + uplink);
        }
        if switch == rack {
            return PortId(self.hosts() + dst);
        }
        if packet.path_class() == PathClass::Circuit {
            return self.circuit_from(src);
        }
        let uplink = src % self.hosts_per_rack % self.packet_uplinks;
        PortId(self.first_up() + switch * self.packet_uplinks + uplink)
    }

    /// Returns the ports by the packet switch; a circuit is not a choice of a switch.
    pub(super) fn choices(&self, switch: u32, dst: u32) -> Choices {
        let rack = dst / self.hosts_per_rack;
        let first = if switch == self.circuit_switch() {
            return Choices::one(self.circuit_to(dst).0);
        } else if switch == self.packet_switch() {
            self.first_down() + rack * self.packet_uplinks
        } else if switch == rack {
            return Choices::one(self.hosts() + dst);
        } else {
            self.first_up() + switch * self.packet_uplinks
        };
        Choices { first, count: self.packet_uplinks, tier: 0 }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::net::HostId;

    fn hybrid() -> Hybrid {
        Hybrid {
            racks: 3,
            hosts_per_rack: 2,
            packet_uplinks: Some(1),
            rate: Rate::from_gbps(100),
            packet_rate: Rate::from_gbps(10),
            circuit_rate: None,
            delay: Span::from_us(1),
            packet_delay: None,
            circuit_delay: Some(Span::from_ns(500)),
        }
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
    fn neighbours_are_the_ends_of_links() {
        let network = hybrid().network().expect("a hybrid network can be built");
        let hosts = (0..network.hosts()).map(|host| Node::Host(HostId(host)));
        for node in hosts.chain((0..network.switches()).map(Node::Switch)) {
            let links = network.links().iter().filter(|link| link.from == node);
            let ends: BTreeSet<Node> = links.map(|link| link.to).collect();
            assert_eq!(ends, hybrid().neighbours(node).into_iter().collect(), "{node:?}");
        }
        assert_eq!(network.links().len() as u64, 2 * hybrid().links(), "both directions");
        assert_eq!(hybrid().switch_name(4), "ocs0");
    }
}
