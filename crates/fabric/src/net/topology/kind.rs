//! [`Kind`]: the interface that every kind of topology implements, each in its one file, and code that all kinds share.

use plimsoll_units::{Rate, Span};

use super::{File, HostNics, Hybrid, Network, Node, PacketNetwork, TIERS, Topology};
use crate::Unbuildable;
use crate::net::HostId;

/// The parameters of one kind of topology: the table `[topology]` of a scenario.
pub trait Kind {
    /// Checks the parameters.
    fn check(&self, check: &mut TopologyCheck);

    /// Returns the names of the switch tiers, from the hosts upwards.
    fn tiers(&self) -> &'static [&'static str];

    /// Returns the number of hosts; a number too large for any computer does not overflow.
    fn hosts(&self) -> u64;

    /// Returns which NICs each host has.
    fn nics(&self) -> HostNics {
        HostNics::One
    }

    /// Returns the number of links, including the links of the hosts; a number too large for any computer does not
    /// overflow.
    fn links(&self) -> u64;

    /// Returns how many switches each tier has, from the hosts upwards.
    fn switches(&self) -> Vec<u32>;

    /// Returns the most ports that a switch of tier number `tier` has.
    fn switch_ports(&self, tier: usize) -> u32;

    /// Returns how many ports the switches of tier number `tier` have together.
    fn tier_ports(&self, tier: usize) -> u64 {
        u64::from(self.switches()[tier]) * u64::from(self.switch_ports(tier))
    }

    /// Returns the rate of a host's links together.
    fn host_rate(&self, host: u32) -> Rate;

    /// Returns the rate and the one-way propagation of every kind of link.
    fn link_classes(&self) -> Vec<(Rate, Span)>;

    /// Returns the cuts of the network that traffic between all hosts may overload.
    fn cuts(&self) -> Vec<TopologyCut> {
        Vec::new()
    }

    /// Returns the equal racks or pods of which the network consists; `None` if it has none.
    fn racks(&self) -> Option<Racks> {
        None
    }

    /// Returns the setting of a scenario, `key=value`, that gives the network another number of racks, as
    /// [`Kind::racks`] counts them, and changes nothing else that a message meets.
    fn with_racks(&self, _count: u32) -> Option<String> {
        None
    }

    /// Returns the nodes that a node has a link to.
    fn neighbours(&self, node: Node) -> Vec<Node>;

    /// Builds the hosts, switches and links.
    ///
    /// # Errors
    /// Names the key whose value no network can be built from.
    fn network(&self) -> Result<Network, Unbuildable>;

    /// Returns the number of the host of that name: `client` is 0, and `h7` is 7.
    fn host(&self, name: &str) -> Option<u32> {
        let count = count(self.hosts());
        if let Some(digits) = name.strip_prefix('h') {
            let canonical = digits == "0" || !digits.starts_with(['0', '+']);
            return digits.parse().ok().filter(|index| canonical && *index < count);
        }
        (name == "client" && count > 0).then_some(0)
    }

    /// Returns the name of a host.
    fn host_name(&self, host: u32) -> String {
        format!("h{host}")
    }

    /// Returns the number of the switch of that name.
    fn switch(&self, name: &str) -> Option<u32> {
        let mut before = 0;
        for (tier, count) in self.tiers().iter().zip(self.switches()) {
            if let Some(number) = name.strip_prefix(tier).and_then(|digits| digits.parse::<u32>().ok()) {
                return (number < count).then_some(before + number);
            }
            before += count;
        }
        None
    }

    /// Returns the name of a switch, which is its tier's and its number there: `edge0`, `edge1`, ....
    fn switch_name(&self, switch: u32) -> String {
        let mut number = switch;
        for (tier, count) in self.tiers().iter().zip(self.switches()) {
            if number < count {
                return format!("{tier}{number}");
            }
            number -= count;
        }
        format!("switch{switch}")
    }
}

/// The equal groups of hosts of a network: racks, or pods where these have switches of their own between racks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Racks {
    /// The word for several: `leaves` or `pods`.
    pub name: &'static str,
    /// The number of groups.
    pub count: u32,
    /// The hosts of each.
    pub hosts: u32,
}

/// The links through which a group of hosts reaches all others.
#[derive(Clone, PartialEq, Debug)]
pub struct TopologyCut {
    /// Description of the links: `the links from a leaf to the spines`.
    pub links: &'static str,
    /// The hosts on one side.
    pub inside: Inside,
    /// The rate of the links together, in bits per second.
    pub bits_per_second: f64,
}

/// The hosts on one side of a cut.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Inside {
    /// Groups of this many consecutive hosts, from the first on: each such group has links of its own.
    Groups(u32),
    /// These hosts, in ascending order.
    Hosts(Vec<u32>),
}

impl Inside {
    /// Returns the number of hosts on that side.
    pub fn len(&self) -> usize {
        match self {
            Inside::Groups(hosts) => *hosts as usize,
            Inside::Hosts(hosts) => hosts.len(),
        }
    }

    /// Returns whether no host is on that side.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the group of a host; `None` if it is on the other side of the only group.
    pub fn group_of(&self, host: u32) -> Option<u32> {
        match self {
            Inside::Groups(hosts) => host.checked_div(*hosts),
            Inside::Hosts(hosts) => hosts.binary_search(&host).is_ok().then_some(0),
        }
    }
}

/// A value of a topology's table that is invalid.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidValue {
    /// The key within the table; empty for the table itself.
    pub key: &'static str,
    /// The problem in words, with the value.
    pub problem: String,
    /// The values that are allowed.
    pub allowed: String,
}

/// Collects the invalid parameters of a topology.
#[derive(Default, Debug)]
pub struct TopologyCheck {
    errors: Vec<InvalidValue>,
}

impl TopologyCheck {
    /// Reports an invalid value.
    pub fn error(&mut self, key: &'static str, problem: impl Into<String>, allowed: impl Into<String>) {
        self.errors.push(InvalidValue { key, problem: problem.into(), allowed: allowed.into() });
    }

    /// Reports the errors of the table that is the value of `key`.
    pub fn errors_of(&mut self, key: &'static str, table: TopologyCheck) {
        for InvalidValue { key: within, problem, allowed } in table.errors {
            let problem = if within.is_empty() { problem } else { format!("`{within}`: {problem}") };
            self.error(key, problem, allowed);
        }
    }

    /// Reports a number below `least`.
    pub fn at_least(&mut self, key: &'static str, number: u32, least: u32) {
        if number < least {
            self.error(key, format!("{number} is too few"), format!("at least {least}"));
        }
    }

    /// Reports a rate of 0.
    pub fn rate(&mut self, key: &'static str, rate: Rate) {
        if rate == Rate::ZERO {
            self.error(key, "a link of rate 0 carries nothing", "more than 0bps");
        }
    }
}

/// The most hosts, of a fat-tree with k = 200: a host with its share of switches takes some three kilobytes.
const HOSTS_MAX: u32 = 2_000_000;

/// The most links: the largest fat-tree within [`HOSTS_MAX`] has six million, and a port at each end takes some
/// hundred bytes.
const LINKS_MAX: u64 = 8_000_000;

impl Topology {
    /// Returns the invalid parameters of the topology; a graph file must have been read.
    pub fn check(&self) -> Vec<InvalidValue> {
        let mut check = TopologyCheck::default();
        self.params().check(&mut check);
        if self.host_count() > HOSTS_MAX {
            let allowed = format!("at most {HOSTS_MAX} hosts in all");
            check.error("", format!("more than {HOSTS_MAX} hosts"), allowed);
        } else if self.link_count() > LINKS_MAX {
            let allowed = format!("at most {LINKS_MAX} links in all");
            check.error("", format!("more than {LINKS_MAX} links"), allowed);
        }
        check.errors
    }

    /// Returns the names of the switch tiers, from the hosts upwards. The single tier of a graph file is called
    /// `switch`: its settings are `port.switch` itself.
    pub fn tiers(&self) -> &'static [&'static str] {
        self.params().tiers()
    }

    /// Returns the tiers of a kind, if there is such a kind. In a hybrid network they depend on the kind of its
    /// `packet` network, if it has one.
    pub fn tiers_of(kind: &str, packet: Option<&str>) -> Option<&'static [&'static str]> {
        match packet {
            Some(packet) if kind == "hybrid" => Hybrid::tiers_with(packet),
            _ => TIERS.iter().find(|(name, _)| *name == kind).map(|(_, tiers)| *tiers),
        }
    }

    /// Returns the graph file of the topology, or of its packet network, and its table within `[topology]`, which is
    /// empty for the topology itself.
    pub fn file(&self) -> Option<(&File, &'static str)> {
        match self {
            Topology::File(file) => Some((file, "")),
            Topology::Hybrid(Hybrid { packet: Some(PacketNetwork::File(file)), .. }) => {
                Some((file, "packet"))
            }
            _ => None,
        }
    }

    /// Returns the same file, to be given its graph.
    pub fn file_mut(&mut self) -> Option<&mut File> {
        match self {
            Topology::File(file) => Some(file),
            Topology::Hybrid(Hybrid { packet: Some(PacketNetwork::File(file)), .. }) => Some(file),
            _ => None,
        }
    }

    /// Returns whether some topology has a tier of that name.
    pub fn is_tier(name: &str) -> bool {
        TIERS.iter().any(|(_, tiers)| tiers.contains(&name))
    }

    fn tier_number(&self, tier: &str) -> Option<usize> {
        self.tiers().iter().position(|known| *known == tier)
    }

    /// Returns the number of hosts: zero for a graph file that has not been read.
    pub fn host_count(&self) -> u32 {
        count(self.params().hosts())
    }

    /// Returns the number of links, including the links of the hosts: zero for a graph file that has not been read.
    /// Numbers too large for any computer do not overflow.
    pub fn link_count(&self) -> u64 {
        self.params().links()
    }

    /// Returns the most ports that a switch of a tier has: zero for a tier of another topology.
    pub fn switch_ports(&self, tier: &str) -> usize {
        self.tier_number(tier).map_or(0, |tier| self.params().switch_ports(tier) as usize)
    }

    /// Returns how many ports the switches of a tier have together: zero for a tier of another topology.
    pub fn tier_ports(&self, tier: &str) -> u64 {
        self.tier_number(tier).map_or(0, |tier| self.params().tier_ports(tier))
    }

    /// Returns the number of the host of that name: `client` is 0, `h7` is 7, and a graph file has its own.
    pub fn host(&self, name: &str) -> Option<u32> {
        self.params().host(name)
    }

    /// Returns the name of a host.
    pub fn host_name(&self, host: u32) -> String {
        self.params().host_name(host)
    }

    /// Returns which NICs each host has.
    pub fn nics(&self) -> HostNics {
        self.params().nics()
    }

    /// Returns the NICs of all hosts, host by host.
    pub fn all_nics(&self) -> impl Iterator<Item = HostId> + '_ {
        let nics = self.nics();
        (0..self.host_count()).map(HostId).flat_map(move |host| {
            let nics = nics.clone();
            (0..nics.count(host)).map(move |number| nics.nic(host, number))
        })
    }

    /// Returns the name of a NIC: that of its host, and with several NICs its number there, as in `h3.1`.
    pub fn nic_name(&self, nic: HostId) -> String {
        let nics = self.nics();
        let (host, number) = nics.place_of(nic);
        let name = self.host_name(host.0);
        if nics.count(host) == 1 { name } else { format!("{name}.{number}") }
    }

    /// Returns the NIC of that name.
    pub fn nic(&self, name: &str) -> Option<HostId> {
        let nics = self.nics();
        if let Some(host) = self.host(name).map(HostId) {
            return (nics.count(host) == 1).then(|| nics.nic(host, 0));
        }
        let (host, number) = name.rsplit_once('.')?;
        let (host, number) = (HostId(self.host(host)?), number.parse().ok()?);
        let is_there = number < nics.count(host) && nics.count(host) > 1;
        is_there.then(|| nics.nic(host, number))
    }

    /// Returns the rate of a host's links together.
    pub fn host_rate(&self, host: u32) -> Rate {
        self.params().host_rate(host)
    }

    /// Returns the rate and the one-way propagation of every kind of link.
    pub fn link_classes(&self) -> Vec<(Rate, Span)> {
        self.params().link_classes()
    }

    /// Returns the name of a switch.
    pub fn switch_name(&self, switch: u32) -> String {
        self.params().switch_name(switch)
    }

    /// Returns the number of the switch of that name.
    pub fn switch(&self, name: &str) -> Option<u32> {
        self.params().switch(name)
    }

    /// Returns the node of that name.
    pub fn node(&self, name: &str) -> Option<Node> {
        self.nic(name).map(Node::Host).or_else(|| self.switch(name).map(Node::Switch))
    }

    /// Returns the name of a node.
    pub fn node_name(&self, node: Node) -> String {
        match node {
            Node::Host(nic) => self.nic_name(nic),
            Node::Switch(switch) => self.switch_name(switch),
        }
    }

    /// Returns the names of all nodes, switches first.
    pub fn node_names(&self) -> impl Iterator<Item = String> + '_ {
        let switches = (0..self.params().switches().iter().sum()).map(|switch| self.switch_name(switch));
        switches.chain(self.all_nics().map(|nic| self.nic_name(nic)))
    }

    /// Returns the name of the first switch of a tier, if the tier has any.
    pub fn first_of_tier(&self, tier: &str) -> Option<String> {
        let place = self.tier_number(tier)?;
        let counts = self.params().switches();
        (counts[place] > 0).then(|| self.switch_name(counts[..place].iter().sum()))
    }

    /// Returns the nodes that a node has a link to.
    pub fn neighbours(&self, node: Node) -> Vec<Node> {
        self.params().neighbours(node)
    }

    /// Builds the hosts, switches and links.
    ///
    /// # Errors
    /// Fails if a graph file was not read, or if a host of it cannot be reached.
    pub fn network(&self) -> Result<Network, Unbuildable> {
        Ok(self.params().network()?.with_nics(self.nics()))
    }
}

/// Returns a count as the number that it is, or the largest.
fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// Returns the product of counts, or the largest number.
pub(super) fn product<const N: usize>(counts: [u32; N]) -> u64 {
    counts.into_iter().fold(1, |all: u64, count| all.saturating_mul(count.into()))
}

/// Returns the nodes of consecutive hosts.
pub(super) fn hosts(range: std::ops::Range<u32>) -> impl Iterator<Item = Node> {
    range.map(|host| Node::Host(HostId(host)))
}

/// Returns the nodes of consecutive switches.
pub(super) fn switches(range: std::ops::Range<u32>) -> impl Iterator<Item = Node> {
    range.map(Node::Switch)
}
