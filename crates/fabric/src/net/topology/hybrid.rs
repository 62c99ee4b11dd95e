//! Racks with a packet network and a circuit switch above them (REACToR, Kapoor's thesis, section 7.2).
//!
//! ```text
//!      packet network (eps)         circuit switches (ocs): no buffer, a matching of hosts each
//!        │ p uplinks a rack            │ an uplink to each a host
//!        └──────────── ToR ────────────┘
//!                       │ n hosts
//! ```
//!
//! The packet network is one switch, or a topology of its own, whose hosts are the uplinks of the racks: rack by rack.
//! Switches are numbered so: ToRs, the switches of the packet network, the circuit switches. [`next_hops`] has the
//! numbers of ports.

pub(super) mod next_hops;

use plimsoll_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kind::{Inside, Kind, TopologyCheck, TopologyCut, hosts, product, switches};
use super::link::{LinkClass, Node};
use super::{HostNics, Network, PacketNetwork};
use crate::Unbuildable;
use next_hops::NextHops;

/// Racks whose switches have uplinks to a packet network and to a circuit switch. Tier names: `tor`, `eps`, `ocs`; with
/// `packet`, the tiers of that network in place of `eps`. A circuit leads from one host to another; the table
/// `circuits` says how they are scheduled.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Hybrid {
    /// Number of racks.
    pub racks: u32,
    /// Hosts of a rack, each with uplinks of its own to the circuit switches; 1 by default.
    #[serde(default = "one")]
    pub hosts_per_rack: u32,
    /// Uplinks of a rack to the packet network; default: as many as it has hosts.
    #[serde(default)]
    pub packet_uplinks: Option<u32>,
    /// The network between the racks' uplinks in place of one packet switch: a table with the `kind` `leaf-spine`,
    /// `fat-tree`, `clos` or `file` and the keys of that topology. Its hosts are the uplinks, rack by rack, and have
    /// `packet_rate` and `packet_delay`; its other links have the table's own rates and delays.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub packet: Option<PacketNetwork>,
    /// Uplinks of a host to circuit switches, 1 to 16; default 1. Each leads to a switch of its own, `ocs0`, `ocs1` and
    /// so on, so that a host has as many circuits at a time, to different hosts or to one. Together with the packet
    /// switch's they share the rate of a host's link.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub circuit_uplinks: u32,
    /// Rate of a host's link.
    pub rate: Rate,
    /// Rate of an uplink to the packet network.
    pub packet_rate: Rate,
    /// Rate of a circuit; default: `rate`.
    #[serde(default)]
    pub circuit_rate: Option<Rate>,
    /// One-way propagation of a host's link.
    pub delay: Span,
    /// One-way propagation of an uplink to the packet network; default: `delay`.
    #[serde(default)]
    pub packet_delay: Option<Span>,
    /// One-way propagation of an uplink to the circuit switch; default: `delay`.
    #[serde(default)]
    pub circuit_delay: Option<Span>,
}

fn one() -> u32 {
    1
}

/// A scenario without `circuit_uplinks` has the digest that it had before there was this key.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_one(uplinks: &u32) -> bool {
    *uplinks == 1
}

impl Hybrid {
    pub(super) const TIERS: &[&str] = &["tor", "eps", "ocs"];

    /// Returns the tiers of a hybrid network with a packet network of that kind.
    pub(super) fn tiers_with(packet: &str) -> Option<&'static [&'static str]> {
        TIERS_WITH.iter().find(|(kind, _)| *kind == packet).map(|(_, tiers)| *tiers)
    }

    fn uplinks(&self) -> u32 {
        self.packet_uplinks.unwrap_or(self.hosts_per_rack)
    }

    /// Returns the number of uplinks of all racks.
    fn all_uplinks(&self) -> u64 {
        product([self.racks, self.uplinks()])
    }

    fn classes(&self) -> [LinkClass; 3] {
        let class = |rate, delay: Option<Span>| LinkClass { rate, propagation: delay.unwrap_or(self.delay) };
        [
            class(self.rate, None),
            class(self.packet_rate, self.packet_delay),
            class(self.circuit_rate.unwrap_or(self.rate), self.circuit_delay),
        ]
    }

    /// Returns how many switches the packet network has.
    fn packet_switches(&self) -> u32 {
        self.packet.as_ref().map_or(1, |packet| packet.params().switches().iter().sum())
    }

    /// Checks the table `packet`, and that it has a host for each uplink.
    fn check_packet(&self, packet: &dyn Kind, check: &mut TopologyCheck) {
        let mut of_packet = TopologyCheck::default();
        packet.check(&mut of_packet);
        check.errors_of("packet", of_packet);
        let (hosts, uplinks) = (packet.hosts(), self.all_uplinks());
        if packet.nics() != HostNics::One {
            check.error(
                "packet",
                "a host with several links",
                "one link for each host of the packet network",
            );
        } else if hosts != uplinks {
            let problem = format!("{hosts} hosts for {uplinks} uplinks");
            let (racks, each) = (self.racks, self.uplinks());
            check.error("packet", problem, format!("{uplinks} hosts: {racks} racks x {each} uplinks"));
        }
        let taken = |name: &String| self.host(name).is_some() || self.own_switch(name).is_some();
        let names = (0..self.packet_switches()).map(|switch| packet.switch_name(switch));
        if let Some(name) = names.into_iter().find(taken) {
            let problem = format!("a switch with the name `{name}`, which another node has");
            check.error("packet", problem, "names other than those of hosts, racks and circuit switches");
        }
    }

    /// Returns the number of the rack or circuit switch of that name.
    fn own_switch(&self, name: &str) -> Option<u32> {
        let number = |tier: &str| name.strip_prefix(tier)?.parse::<u32>().ok();
        let rack = number("tor").filter(|rack| *rack < self.racks);
        let circuits = number("ocs").filter(|circuit| *circuit < self.circuit_uplinks);
        rack.or_else(|| circuits.map(|circuit| self.first_circuit_switch() + circuit))
    }

    fn first_circuit_switch(&self) -> u32 {
        self.racks + self.packet_switches()
    }
}

/// The tiers with each kind of packet network.
const TIERS_WITH: &[(&str, &[&str])] = &[
    ("leaf-spine", &["tor", "leaf", "spine", "ocs"]),
    ("fat-tree", &["tor", "edge", "aggregation", "core", "ocs"]),
    ("clos", &["tor", "edge", "aggregation", "core", "ocs"]),
    ("file", &["tor", "switch", "ocs"]),
];

impl Kind for Hybrid {
    fn check(&self, check: &mut TopologyCheck) {
        check.at_least("racks", self.racks, 2);
        check.at_least("hosts_per_rack", self.hosts_per_rack, 1);
        check.at_least("packet_uplinks", self.uplinks(), 1);
        if !(1..=CIRCUIT_UPLINKS_MAX).contains(&self.circuit_uplinks) {
            let problem = format!("{} uplinks of a host to circuit switches", self.circuit_uplinks);
            check.error("circuit_uplinks", problem, format!("1 to {CIRCUIT_UPLINKS_MAX}"));
        }
        check.rate("rate", self.rate);
        check.rate("packet_rate", self.packet_rate);
        check.rate("circuit_rate", self.circuit_rate.unwrap_or(self.rate));
        let most = HOSTS_MAX;
        if self.hosts() > most {
            check.error("racks", format!("more than {most} hosts"), format!("at most {most} hosts in all"));
        } else if let Some(packet) = &self.packet {
            self.check_packet(packet.params(), check);
        }
    }

    fn tiers(&self) -> &'static [&'static str] {
        let with = self.packet.as_ref().and_then(|packet| Hybrid::tiers_with(packet.kind()));
        with.unwrap_or(Hybrid::TIERS)
    }

    fn hosts(&self) -> u64 {
        product([self.racks, self.hosts_per_rack])
    }

    fn links(&self) -> u64 {
        let packet = self.packet.as_ref().map_or(self.all_uplinks(), |packet| packet.params().links());
        let of_hosts = self.hosts().saturating_mul(u64::from(self.circuit_uplinks) + 1);
        of_hosts.saturating_add(packet)
    }

    fn switches(&self) -> Vec<u32> {
        let packet = self.packet.as_ref().map_or(vec![1], |packet| packet.params().switches());
        [self.racks].into_iter().chain(packet).chain([self.circuit_uplinks]).collect()
    }

    fn switch_ports(&self, tier: usize) -> u32 {
        match (tier, &self.packet) {
            (0, _) => {
                let of_host = self.circuit_uplinks.saturating_add(1);
                self.hosts_per_rack.saturating_mul(of_host).saturating_add(self.uplinks())
            }
            (tier, _) if tier + 1 == self.tiers().len() => count(self.hosts()),
            (_, None) => count(self.all_uplinks()),
            (tier, Some(packet)) => packet.params().switch_ports(tier - 1),
        }
    }

    fn tier_ports(&self, tier: usize) -> u64 {
        match &self.packet {
            Some(packet) if (1..self.tiers().len() - 1).contains(&tier) => {
                packet.params().tier_ports(tier - 1)
            }
            _ => u64::from(self.switches()[tier]) * u64::from(self.switch_ports(tier)),
        }
    }

    fn host_rate(&self, _host: u32) -> Rate {
        self.rate
    }

    fn link_classes(&self) -> Vec<(Rate, Span)> {
        let own = self.classes().map(|class| (class.rate, class.propagation));
        let packet = self.packet.iter().flat_map(|packet| packet.params().link_classes());
        own.into_iter().chain(packet).collect()
    }

    fn cuts(&self) -> Vec<TopologyCut> {
        let [_, packet, circuit] = self.classes();
        let circuits =
            circuit.rate.as_bps() as f64 * f64::from(self.hosts_per_rack) * f64::from(self.circuit_uplinks);
        let bits_per_second = packet.rate.as_bps() as f64 * f64::from(self.uplinks()) + circuits;
        vec![TopologyCut {
            links: "the uplinks of a rack to both switches",
            inside: Inside::Groups(self.hosts_per_rack),
            bits_per_second,
        }]
    }

    fn neighbours(&self, node: Node) -> Vec<Node> {
        let &Hybrid { racks, hosts_per_rack, .. } = self;
        let in_packet = |node: Node| match (&self.packet, node) {
            (Some(packet), node) => packet.params().neighbours(node),
            (None, Node::Host(_)) => vec![Node::Switch(0)],
            (None, Node::Switch(_)) => hosts(0..count(self.all_uplinks())).collect(),
        };
        let own = |node: Node| match node {
            Node::Host(uplink) => Node::Switch(uplink.0 / self.uplinks()),
            Node::Switch(switch) => Node::Switch(racks + switch),
        };
        let mut all: Vec<Node> = match node {
            Node::Host(host) => vec![Node::Switch(host.0 / hosts_per_rack)],
            Node::Switch(rack) if rack < racks => {
                let uplinks = hosts(rack * self.uplinks()..(rack + 1) * self.uplinks());
                let above = uplinks.flat_map(in_packet).map(own);
                let below = hosts(rack * hosts_per_rack..(rack + 1) * hosts_per_rack);
                let first = self.first_circuit_switch();
                above.chain(switches(first..first + self.circuit_uplinks)).chain(below).collect()
            }
            Node::Switch(switch) if switch >= self.first_circuit_switch() => switches(0..racks).collect(),
            Node::Switch(switch) => in_packet(Node::Switch(switch - racks)).into_iter().map(own).collect(),
        };
        let mut seen = std::collections::BTreeSet::new();
        all.retain(|node| seen.insert(*node));
        all
    }

    fn network(&self) -> Result<Network, Unbuildable> {
        let [host, packet, circuit] = self.classes();
        let above = match &self.packet {
            Some(packet) => packet.params().network()?,
            None => Network::rack(count(self.all_uplinks()), packet),
        };
        let counts = [self.racks, self.hosts_per_rack, self.uplinks(), self.circuit_uplinks];
        let hops = NextHops::new(counts, above);
        Ok(hops.network([host, packet, circuit], self.tiers()))
    }

    fn switch(&self, name: &str) -> Option<u32> {
        let in_packet = || match &self.packet {
            Some(packet) => packet.params().switch(name),
            None => (name == "eps0").then_some(0),
        };
        self.own_switch(name).or_else(|| in_packet().map(|switch| self.racks + switch))
    }

    fn switch_name(&self, switch: u32) -> String {
        match switch.checked_sub(self.racks) {
            None => format!("tor{switch}"),
            Some(above) if above >= self.packet_switches() => {
                format!("ocs{}", above - self.packet_switches())
            }
            Some(above) => match &self.packet {
                Some(packet) => packet.params().switch_name(above),
                None => "eps0".to_owned(),
            },
        }
    }
}

/// The most circuit switches: a packet has room for the number of one of these.
const CIRCUIT_UPLINKS_MAX: u32 = 16;

/// Returns a count as the number that it is, or the largest.
fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The most hosts: a demand matrix has as many rows and columns.
const HOSTS_MAX: u64 = 4_096;

#[cfg(test)]
mod tests;
