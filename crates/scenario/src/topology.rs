//! [`Topology`]: hosts, switches and links, generated or read from a graph file.

use std::sync::Arc;

use plimsoll_traffic::facts::{Cut, NetworkFacts};
use plimsoll_units::{Rate, Span};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

pub use crate::graph::{Graph, GraphLink};

/// Hosts, switches and links.
#[derive(Clone, PartialEq, Debug, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Topology {
    /// One switch; every host on a link of its own. Tier name: `tor`.
    Rack {
        /// Number of hosts, named `h0`, `h1`, ...; `client` is `h0`.
        hosts: u32,
        /// Rate of every link.
        rate: Rate,
        /// One-way propagation of every link.
        delay: Span,
    },
    /// Leaves with hosts, each connected to every spine. Tier names: `leaf`, `spine`.
    LeafSpine {
        /// Number of leaf switches.
        leaves: u32,
        /// Number of spine switches.
        spines: u32,
        /// Hosts on each leaf.
        hosts_per_leaf: u32,
        /// Rate of a host's link.
        rate: Rate,
        /// Rate of a leaf-spine link; default: `rate`.
        #[serde(default)]
        fabric_rate: Option<Rate>,
        /// One-way propagation of a host's link.
        delay: Span,
        /// One-way propagation of a leaf-spine link; default: `delay`.
        #[serde(default)]
        fabric_delay: Option<Span>,
    },
    /// The k-ary fat-tree: k^3/4 hosts on k pods. Tier names: `edge`, `aggregation`, `core`.
    FatTree {
        /// Ports of a switch; even, at least 2.
        k: u32,
        /// Rate of every link.
        rate: Rate,
        /// One-way propagation of every link.
        delay: Span,
    },
    /// Three tiers of switches in pods, with more or fewer links upwards than down: `edge`, `aggregation`,
    /// `core`. Each aggregation switch has cores of its own, which connect it with those of the same number in
    /// other pods.
    Clos {
        /// Number of pods.
        pods: u32,
        /// Edge switches of a pod, each connected to every aggregation switch of its pod.
        edges: u32,
        /// Aggregation switches of a pod.
        aggregations: u32,
        /// Cores that each aggregation switch is connected to.
        cores: u32,
        /// Hosts of an edge switch.
        hosts_per_edge: u32,
        /// Rate of every link.
        rate: Rate,
        /// One-way propagation of every link.
        delay: Span,
    },
    /// Two switches with hosts on both sides of one link. Tier name: `dumbbell`; the hosts of the
    /// left side come first.
    Dumbbell {
        /// Hosts on the left side.
        left: u32,
        /// Hosts on the right side.
        right: u32,
        /// Rate of a host's link.
        rate: Rate,
        /// One-way propagation of a host's link.
        delay: Span,
        /// Rate of the link between the switches.
        bottleneck_rate: Rate,
        /// One-way propagation of the link between the switches; default: `delay`.
        #[serde(default)]
        bottleneck_delay: Option<Span>,
    },
    /// Any graph, from a TOML file beside the scenario: `hosts` and `switches` are lists of names, and
    /// each `[[link]]` has `from`, `to`, `rate` and `delay`. A host has one link. Tier name: `switch`.
    File {
        /// Path of the file, relative to the scenario.
        path: String,
        /// What the file says, read when the scenario is checked.
        #[serde(skip)]
        graph: Option<Arc<Graph>>,
    },
}

/// The shape that the scenario's own deserialiser reads; see the module `de`.
#[derive(Deserialize)]
#[serde(remote = "Topology", rename_all = "kebab-case", deny_unknown_fields)]
enum InFile {
    Rack {
        hosts: u32,
        rate: Rate,
        delay: Span,
    },
    LeafSpine {
        leaves: u32,
        spines: u32,
        hosts_per_leaf: u32,
        rate: Rate,
        #[serde(default)]
        fabric_rate: Option<Rate>,
        delay: Span,
        #[serde(default)]
        fabric_delay: Option<Span>,
    },
    FatTree {
        k: u32,
        rate: Rate,
        delay: Span,
    },
    Clos {
        pods: u32,
        edges: u32,
        aggregations: u32,
        cores: u32,
        hosts_per_edge: u32,
        rate: Rate,
        delay: Span,
    },
    Dumbbell {
        left: u32,
        right: u32,
        rate: Rate,
        delay: Span,
        bottleneck_rate: Rate,
        #[serde(default)]
        bottleneck_delay: Option<Span>,
    },
    File {
        path: String,
        #[serde(skip)]
        graph: Option<Arc<Graph>>,
    },
}

impl<'de> Deserialize<'de> for Topology {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Topology, D::Error> {
        InFile::deserialize(deserializer)
    }
}

/// Names of the tiers of each kind, from the hosts upwards.
const TIERS: &[(&str, &[&str])] = &[
    ("rack", &["tor"]),
    ("leaf-spine", &["leaf", "spine"]),
    ("fat-tree", &["edge", "aggregation", "core"]),
    ("clos", &["edge", "aggregation", "core"]),
    ("dumbbell", &["dumbbell"]),
    ("file", &["switch"]),
];

impl Topology {
    /// The `kind` in a file.
    pub fn kind(&self) -> &'static str {
        match self {
            Topology::Rack { .. } => "rack",
            Topology::LeafSpine { .. } => "leaf-spine",
            Topology::FatTree { .. } => "fat-tree",
            Topology::Clos { .. } => "clos",
            Topology::Dumbbell { .. } => "dumbbell",
            Topology::File { .. } => "file",
        }
    }

    /// Names of the switch tiers, from the hosts upwards. The single tier of a graph file is called
    /// `switch`: its settings are `port.switch` itself.
    pub fn tiers(&self) -> &'static [&'static str] {
        Topology::tiers_of(self.kind()).unwrap_or(&[])
    }

    /// The tiers of a kind, if there is such a kind.
    pub(crate) fn tiers_of(kind: &str) -> Option<&'static [&'static str]> {
        TIERS.iter().find(|(name, _)| *name == kind).map(|(_, tiers)| *tiers)
    }

    /// Whether some topology has a tier of that name.
    pub(crate) fn is_tier(name: &str) -> bool {
        TIERS.iter().any(|(_, tiers)| tiers.contains(&name))
    }

    /// Number of hosts. Zero for a graph file that has not been read.
    pub fn host_count(&self) -> u32 {
        let count = match self {
            Topology::Rack { hosts, .. } => u64::from(*hosts),
            Topology::LeafSpine { leaves, hosts_per_leaf, .. } => {
                u64::from(*leaves) * u64::from(*hosts_per_leaf)
            }
            Topology::FatTree { k, .. } => u64::from(*k).saturating_pow(3) / 4,
            Topology::Clos { pods, edges, hosts_per_edge, .. } => {
                u64::from(*pods).saturating_mul(u64::from(*edges)).saturating_mul(u64::from(*hosts_per_edge))
            }
            Topology::Dumbbell { left, right, .. } => u64::from(*left) + u64::from(*right),
            Topology::File { graph, .. } => graph.as_ref().map_or(0, |graph| graph.hosts.len() as u64),
        };
        u32::try_from(count).unwrap_or(u32::MAX)
    }

    /// The most ports that a switch of a tier has; zero for a tier of another topology.
    pub fn switch_ports(&self, tier: &str) -> usize {
        let ports = match (self, tier) {
            (Topology::Rack { hosts, .. }, "tor") => *hosts,
            (Topology::LeafSpine { hosts_per_leaf, spines, .. }, "leaf") => {
                hosts_per_leaf.saturating_add(*spines)
            }
            (Topology::LeafSpine { leaves, .. }, "spine") => *leaves,
            (Topology::FatTree { k, .. }, "edge" | "aggregation" | "core") => *k,
            (Topology::Clos { hosts_per_edge, aggregations, .. }, "edge") => {
                hosts_per_edge.saturating_add(*aggregations)
            }
            (Topology::Clos { edges, cores, .. }, "aggregation") => edges.saturating_add(*cores),
            (Topology::Clos { pods, .. }, "core") => *pods,
            (Topology::Dumbbell { left, right, .. }, "dumbbell") => (*left).max(*right).saturating_add(1),
            (Topology::File { graph: Some(graph), .. }, "switch") => return graph.switch_ports(),
            _ => 0,
        };
        ports as usize
    }

    /// The number of the host of that name: `client` is 0, `h7` is 7, and a graph file has its own.
    pub fn host(&self, name: &str) -> Option<u32> {
        let count = self.host_count();
        if let Topology::File { graph: Some(graph), .. } = self {
            if let Some(index) = graph.hosts.iter().position(|host| host == name) {
                return u32::try_from(index).ok();
            }
        } else if let Some(digits) = name.strip_prefix('h') {
            let canonical = digits == "0" || !digits.starts_with(['0', '+']);
            return digits.parse().ok().filter(|index| canonical && *index < count);
        }
        (name == "client" && count > 0).then_some(0)
    }

    /// Returns the name of a host by its number.
    pub fn host_name(&self, host: u32) -> String {
        match self {
            Topology::File { graph: Some(graph), .. } => {
                graph.hosts.get(host as usize).cloned().unwrap_or_else(|| format!("h{host}"))
            }
            _ => format!("h{host}"),
        }
    }

    /// Rate of the link of a host.
    pub fn host_rate(&self, host: u32) -> Rate {
        match self {
            Topology::Rack { rate, .. }
            | Topology::LeafSpine { rate, .. }
            | Topology::FatTree { rate, .. }
            | Topology::Clos { rate, .. }
            | Topology::Dumbbell { rate, .. } => *rate,
            Topology::File { graph, .. } => {
                graph.as_ref().and_then(|graph| graph.host_rate(host)).unwrap_or(Rate::ZERO)
            }
        }
    }

    /// Rate and one-way propagation of every kind of link.
    pub fn link_classes(&self) -> Vec<(Rate, Span)> {
        match self {
            Topology::Rack { rate, delay, .. }
            | Topology::FatTree { rate, delay, .. }
            | Topology::Clos { rate, delay, .. } => {
                vec![(*rate, *delay)]
            }
            Topology::LeafSpine { rate, fabric_rate, delay, fabric_delay, .. } => {
                vec![(*rate, *delay), (fabric_rate.unwrap_or(*rate), fabric_delay.unwrap_or(*delay))]
            }
            Topology::Dumbbell { rate, delay, bottleneck_rate, bottleneck_delay, .. } => {
                vec![(*rate, *delay), (*bottleneck_rate, bottleneck_delay.unwrap_or(*delay))]
            }
            Topology::File { graph, .. } => {
                let links = graph.iter().flat_map(|graph| &graph.links);
                links.map(|link| (link.rate, link.delay)).collect()
            }
        }
    }

    /// Number of links, those of the hosts included; zero for a graph file that has not been read. Counts that
    /// no computer holds do not overflow.
    pub fn link_count(&self) -> u64 {
        let product = |counts: &[u32]| counts.iter().fold(1, |all: u64, &n| all.saturating_mul(n.into()));
        match self {
            Topology::Rack { hosts, .. } => product(&[*hosts]),
            Topology::LeafSpine { leaves, spines, hosts_per_leaf, .. } => {
                product(&[*leaves, *hosts_per_leaf]).saturating_add(product(&[*leaves, *spines]))
            }
            Topology::FatTree { k, .. } => product(&[*k, *k, *k]) / 4 * 3,
            Topology::Clos { pods, edges, aggregations, cores, hosts_per_edge, .. } => {
                let hosts = product(&[*pods, *edges, *hosts_per_edge]);
                let in_pods = product(&[*pods, *edges, *aggregations]);
                hosts.saturating_add(in_pods).saturating_add(product(&[*pods, *aggregations, *cores]))
            }
            Topology::Dumbbell { left, right, .. } => u64::from(*left) + u64::from(*right) + 1,
            Topology::File { graph, .. } => graph.as_ref().map_or(0, |graph| graph.links.len() as u64),
        }
    }

    /// How many ports the switches of a tier have together; zero for a tier of another topology.
    pub fn tier_ports(&self, tier: &str) -> u64 {
        let Some(number) = self.tiers().iter().position(|known| *known == tier) else { return 0 };
        match self {
            // A host has one port, and all others are of switches.
            Topology::File { .. } => (2 * self.link_count()).saturating_sub(self.host_count().into()),
            Topology::Dumbbell { .. } => u64::from(self.host_count()) + 2,
            _ => u64::from(self.switches()[number]) * self.switch_ports(tier) as u64,
        }
    }

    /// How many switches each tier has, from the hosts upwards. Those of a tier are named after it: `edge0`,
    /// `edge1`, ...; a graph file names its own.
    pub(crate) fn switches(&self) -> Vec<u32> {
        match self {
            Topology::Rack { .. } => vec![1],
            Topology::LeafSpine { leaves, spines, .. } => vec![*leaves, *spines],
            Topology::FatTree { k, .. } => vec![k * k / 2, k * k / 2, k * k / 4],
            Topology::Clos { pods, edges, aggregations, cores, .. } => {
                vec![pods * edges, pods * aggregations, aggregations * cores]
            }
            Topology::Dumbbell { .. } => vec![2],
            Topology::File { graph, .. } => {
                vec![graph.as_ref().map_or(0, |graph| graph.switches.len() as u32)]
            }
        }
    }

    /// The name of a switch.
    pub fn switch_name(&self, switch: u32) -> String {
        if let Topology::File { graph: Some(graph), .. } = self {
            return graph.switches.get(switch as usize).cloned().unwrap_or_else(|| format!("switch{switch}"));
        }
        let mut number = switch;
        for (tier, count) in self.tiers().iter().zip(self.switches()) {
            if number < count {
                return format!("{tier}{number}");
            }
            number -= count;
        }
        format!("switch{switch}")
    }

    /// The number of the switch of that name.
    pub fn switch(&self, name: &str) -> Option<u32> {
        if let Topology::File { graph: Some(graph), .. } = self {
            return graph.switches.iter().position(|switch| switch == name).map(|index| index as u32);
        }
        let mut before = 0;
        for (tier, count) in self.tiers().iter().zip(self.switches()) {
            if let Some(number) = name.strip_prefix(tier).and_then(|digits| digits.parse::<u32>().ok()) {
                return (number < count).then_some(before + number);
            }
            before += count;
        }
        None
    }
}

impl NetworkFacts for Topology {
    fn host_count(&self) -> u32 {
        self.host_count()
    }

    fn host(&self, name: &str) -> Option<u32> {
        self.host(name)
    }

    fn host_name(&self, host: u32) -> String {
        self.host_name(host)
    }

    fn host_rate(&self, host: u32) -> Rate {
        self.host_rate(host)
    }

    fn cuts(&self) -> Vec<Cut> {
        let cut = |links, hosts: f64, bits_per_second| Cut { links, hosts, bits_per_second };
        match self {
            Topology::LeafSpine { leaves, spines, hosts_per_leaf, rate, fabric_rate, .. } if *leaves > 1 => {
                let fabric = fabric_rate.unwrap_or(*rate).as_bps() as f64 * f64::from(*spines);
                vec![cut("the links from a leaf to the spines", f64::from(*hosts_per_leaf), fabric)]
            }
            Topology::Clos { pods, edges, aggregations, cores, hosts_per_edge, rate, .. } => {
                let (rate, below) = (rate.as_bps() as f64, f64::from(*hosts_per_edge));
                let up = rate * f64::from(*aggregations);
                let edge = cut("the links from an edge switch to its pod", below, up);
                let in_pod = below * f64::from(*edges);
                let pod = cut("the links from a pod to the cores", in_pod, up * f64::from(*cores));
                [edge].into_iter().chain((*pods > 1).then_some(pod)).collect()
            }
            Topology::Dumbbell { left, bottleneck_rate, .. } => {
                let rate = bottleneck_rate.as_bps() as f64;
                vec![cut("the link between the switches", f64::from(*left), rate)]
            }
            Topology::File { graph: Some(graph), .. } => {
                let links = "the links from a switch with hosts to the others";
                graph.switches_with_hosts().into_iter().map(|(below, up)| cut(links, below, up)).collect()
            }
            _ => Vec::new(),
        }
    }
}
