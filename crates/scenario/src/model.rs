//! The scenario as the file spells it: one struct is the schema, the documentation and the default.
//!
//! These types are what remains after variants, sweeps and `--set` have been merged: one concrete
//! run. Doc comments become the reference and the JSON Schema.

use std::fmt;

use indexmap::IndexMap;
pub use plimsoll_circuits::{AckPath, ControlParams};
pub use plimsoll_fabric::net::topology::file::{Graph, GraphLink};
pub use plimsoll_fabric::net::topology::{NicChoice, Topology};
use plimsoll_mechanisms::tcp::{Connections, TransportParams};
use plimsoll_mechanisms::telemetry::IntParams;
use plimsoll_mechanisms::transports::{Carrier, Family, Feature};
use plimsoll_mechanisms::{HostMechanisms, PathMechanisms, PortMechanisms};
pub use plimsoll_traffic::Workload;
use plimsoll_traffic::{TrafficSpec, WorkloadSpec};
use plimsoll_units::{Bytes, Rate, Span};
use schemars::JsonSchema;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize};

use crate::dscp::{self, DSCPS, DscpText};
pub use crate::program::{Program, words};
use crate::quantity::{MaybeOff, QueueLimit, on};
pub use crate::registry::{Outside, OutsideMechanisms};
pub use plimsoll_traffic::flow_list::ListedFlow;
pub use plimsoll_traffic::hosts::{HostName, HostSet};

/// One concrete run: the file with a variant and a sweep point applied.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// The version of the file format: 1.
    pub version: u32,
    /// The title of the experiment, one line.
    pub title: String,
    /// Description of the experiment, for the report.
    #[serde(default)]
    pub description: String,
    /// How long the run is and which random numbers it draws.
    #[serde(default)]
    pub run: Run,
    /// The topology: hosts, switches, links and their rates and delays.
    pub topology: Topology,
    /// Links that are slow or dead for a while, one table each.
    #[serde(default)]
    pub fault: Vec<Fault>,
    /// Which of several equally short paths a packet takes.
    #[serde(default)]
    pub paths: Paths,
    /// Queues: `port.host`, `port.switch`, or one tier by name (`port.tor`, `port.leaf`, ...); the
    /// most specific wins, key by key.
    #[serde(default)]
    pub port: Ports,
    /// What sits between the transport and the wire of a host.
    #[serde(default)]
    pub host: Host,
    /// The transport of all messages, except of workloads that name another one in `transports`.
    #[serde(default)]
    pub transport: TransportParams,
    /// Transports beside `transport`, by name, for workloads that name one: `workload.backup.transport = "bulk"`. Each
    /// has all keys of `transport` but `workload`, and `transport` gives the keys that it leaves out.
    #[serde(default, skip_serializing_if = "IndexMap::is_empty")]
    pub transports: IndexMap<String, TransportParams>,
    /// How the circuits of a `hybrid` topology are scheduled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circuits: Option<ControlParams>,
    /// Traffic, by name; metrics and objectives speak of it by that name.
    #[serde(default)]
    pub workload: IndexMap<String, Workload>,
    /// Programs that an emulated run has in its hosts, one table each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program: Vec<Program>,
    /// What to record beyond the messages themselves.
    #[serde(default)]
    pub observe: Observe,
    /// The mechanisms from outside, whose tables are in their sections.
    #[serde(skip)]
    pub outside: OutsideMechanisms,
    /// By workload: the name of its transport, where that is one of `transports`.
    #[serde(skip)]
    pub carried_by: IndexMap<String, String>,
}

impl Model {
    /// Returns the specification of the run's traffic.
    pub fn traffic_spec(&self) -> TrafficSpec<'_> {
        TrafficSpec {
            workloads: self
                .workload
                .iter()
                .map(|(name, workload)| self.workload_spec(name, workload))
                .collect(),
            facts: &self.topology,
            duration: self.run.duration,
            warmup: self.run.warmup,
            drain: self.run.drain,
        }
    }

    fn workload_spec<'a>(&'a self, name: &'a str, workload: &'a Workload) -> WorkloadSpec<'a> {
        let transport = self.transport_of(name);
        let keeps_connections = transport.connections == Connections::LongLived;
        WorkloadSpec { name, workload, header: transport.header, keeps_connections }
    }

    /// Returns the parameters of the transport that carries a workload's messages.
    pub fn transport_of(&self, workload: &str) -> &TransportParams {
        let named = self.carried_by.get(workload).and_then(|name| self.transports.get(name));
        named.unwrap_or(&self.transport)
    }

    /// Returns the parameters of the transports that carry workloads; `transport` where there are none.
    pub fn carriers(&self) -> impl Iterator<Item = &TransportParams> {
        let base = self.workload.is_empty().then_some(&self.transport);
        self.workload.keys().map(|name| self.transport_of(name)).chain(base)
    }

    /// Returns the size of the transports' largest packet, header included.
    pub fn packet_bytes(&self) -> u64 {
        let packets = self.carriers().map(|of| of.segment.get().saturating_add(of.header.get()));
        packets.max().unwrap_or_default() + self.telemetry_bytes()
    }

    /// Returns the size of the largest packet of all: the transports', or a single packet without one.
    pub fn largest_packet(&self) -> u64 {
        let single = self
            .workload
            .iter()
            .map(|(name, workload)| workload.params().largest_packet(self.transport_of(name).header).get());
        self.packet_bytes().max(single.max().unwrap_or_default().saturating_add(self.telemetry_bytes()))
    }

    /// Returns whether some port writes telemetry into packets.
    pub fn has_telemetry(&self) -> bool {
        self.telemetry().next().is_some()
    }

    fn telemetry(&self) -> impl Iterator<Item = &IntParams> {
        let ports = self.topology.tiers().iter().map(|tier| self.port.of_tier(tier));
        ports.chain([&self.port.host]).filter_map(Port::int)
    }

    /// Returns the most bytes that ports' telemetry adds to a packet.
    fn telemetry_bytes(&self) -> u64 {
        let most = self.telemetry().copied().reduce(|one, other| IntParams {
            header: one.header.max(other.header),
            hop: one.hop.max(other.hop),
            ..one
        });
        most.map_or(0, |int| int.bytes_max())
    }

    /// Returns the number of senders that QJump limits on each host: its guests, or 1.
    pub fn guests(&self) -> u32 {
        u32::from(self.host.guest.values().copied().max().unwrap_or(0)) + 1
    }

    /// Returns the priority of a workload, where the scenario gives it one by its name or its transport's.
    pub fn priority_of(&self, workload: &str) -> Option<u8> {
        let of_dscp = || self.dscp_of(workload).map(|dscp| self.dscp_priorities()[usize::from(dscp)]);
        let given = self.host.priority.get(workload).copied().or_else(of_dscp);
        given.or(self.transport_of(workload).priority)
    }

    /// Returns the DSCP of a workload's packets, where the scenario gives it one.
    pub fn dscp_of(&self, workload: &str) -> Option<u8> {
        self.host.dscp.get(workload)?.code_point()
    }

    /// Returns the priority of every DSCP.
    pub fn dscp_priorities(&self) -> [u8; DSCPS] {
        dscp::priorities(&self.host.dscp_to_priority)
    }

    /// Returns the transport families of the run.
    pub fn families(&self) -> impl Iterator<Item = &'static Family> {
        self.carriers().flat_map(TransportParams::families)
    }

    /// Returns whether some transport waits for room in its NIC: with backpressure, or where NICs carry connections.
    pub fn waits_for_room(&self) -> bool {
        self.host.backpressure || self.families().any(|family| family.carrier.is_nic())
    }

    /// Returns a family of the run that excludes `feature`, with the reason.
    pub fn excludes(&self, feature: Feature) -> Option<(&'static Family, &'static str)> {
        self.families().find_map(|family| Some((family, family.excludes(feature)?)))
    }

    /// Whether some switch pauses its neighbours, so that every port may be paused.
    pub fn has_flow_control(&self) -> bool {
        let tiers = self.topology.tiers().iter();
        tiers
            .map(|tier| self.port.of_tier(tier))
            .any(|port| port.pfc().is_some() || port.lossless().is_some())
    }

    /// The setting by which a mechanism excludes the express engine at a port of `tier`, which is `host` for a NIC.
    pub fn general_engine_for(&self, tier: &str) -> Option<String> {
        let at_switch = tier != "host";
        let own = if at_switch { self.port.of_tier(tier) } else { &self.port.host };
        let here =
            own.mechanisms().active().into_iter().find(|active| active.engine.is_general(at_switch, true));
        if let Some(here) = here {
            return Some(here.engine_setting.to_owned());
        }
        let of_host = self.host.mechanisms().active();
        let at_nic = of_host.into_iter().find(|active| active.engine.is_general(at_switch, !at_switch));
        if let Some(at_nic) = at_nic {
            return Some(at_nic.table.path());
        }
        let tiers = self.topology.tiers().iter().map(|tier| self.port.of_tier(tier));
        let ports = tiers.flat_map(|port| port.mechanisms().active());
        let elsewhere = ports.chain(self.paths.mechanisms().active());
        let mut general = elsewhere.filter(|active| active.engine.is_general(at_switch, false));
        general.next().map(|active| active.table.path())
    }

    /// Whether links change during the run, or are dead.
    pub fn has_scheduled_faults(&self) -> bool {
        self.fault.iter().any(Fault::is_scheduled)
    }

    /// How many of the eight priorities packets may have.
    pub fn priorities_in_use(&self) -> u8 {
        self.used_priorities().len() as u8
    }

    /// The priorities that packets may have, in ascending order: the hosts', and the one of trimmed packets.
    pub fn used_priorities(&self) -> Vec<u8> {
        let host = &self.host;
        // A message has the priority of its size where its workload has none.
        let (lowest, highest) = match host.priority_by_size.len() {
            0 => (0, 0),
            sizes => (7 - sizes.min(7) as u8, 7),
        };
        let of_workloads = self.workload.keys().flat_map(|name| match self.priority_of(name) {
            Some(priority) => priority..=priority,
            None => lowest..=highest,
        });
        let of_others = self.program.iter().map(|program| program.level.unwrap_or(0));
        let of_others = of_others.chain(self.workload.is_empty().then_some(0));
        let of_others = of_others.chain(host.ack_priority).chain(host.cnp_priority);
        let tiers = self.topology.tiers().iter().map(|tier| self.port.of_tier(tier));
        let trimmed = tiers.filter_map(|port| port.trim().map(|trim| trim.priority));
        let has_homa = self.families().any(|family| family.carrier == Carrier::Homa);
        let of_homa = if has_homa { 0..8 } else { 0..0 };
        let mut used = [false; 8];
        for priority in of_workloads.chain(of_others).chain(trimmed).chain(of_homa) {
            used[usize::from(priority & 7)] = true;
        }
        (0..8).filter(|priority| used[usize::from(*priority)]).collect()
    }
}

/// How long a run is and which random numbers it draws.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Run {
    /// Seed of every random stream; the same file and seed give the same bytes.
    pub seed: u64,
    /// When traffic stops being generated. Without it a run ends when its workloads have sent all
    /// they have to send (`count`, `size`), and after ten minutes at the latest: messages that are still open then are
    /// reported as unfinished.
    pub duration: Option<Span>,
    /// Messages created before this time are carried but not counted; queues are observed from
    /// then on.
    pub warmup: Span,
    /// After `duration` the run continues until every message is answered, but no longer than this. Messages that are
    /// still open then are reported as unfinished.
    pub drain: Span,
    /// An approximate run: a sample of links is simulated in place of the network, each by itself, and the delays of
    /// flows there are added up. For networks that are too large for a whole run; docs/approximate.md has its errors.
    /// Default `"off"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approximate: Option<MaybeOff<Approximate>>,
}

impl Default for Run {
    fn default() -> Run {
        let drain = Span::from_secs(10);
        Run { seed: 1, duration: None, warmup: Span::ZERO, drain, approximate: None }
    }
}

impl Run {
    /// The parameters of an approximate run, where it is one.
    pub fn approximate(&self) -> Option<&Approximate> {
        on(&self.approximate)
    }
}

/// How much an approximate run simulates.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Approximate {
    /// The most links of each class, such as those between leaves and spines: 10 or more. Both directions of a link are
    /// simulated. Default 200.
    pub links: u32,
    /// The most messages whose completion times are composed, drawn from those after the warm-up: 1000 or more.
    /// Default 200000.
    pub messages: u32,
}

impl Default for Approximate {
    fn default() -> Approximate {
        Approximate { links: 200, messages: 200_000 }
    }
}

/// A link that is slow or dead for a while. A packet that is being sent when its link gets another rate ends at
/// the old one. A link that fails loses the packets on it, all that wait for it, and all that are sent to
/// it until routing has converged (`paths.convergence_delay`); they are counted as `link_drops`. After that every
/// switch takes the shortest paths, by hops, over the links that are alive; a packet to a host that none leads to
/// is dropped there and counted as `no_route_drops`. A host still sends to its own dead link; one with
/// `host.backpressure` waits. Pauses of a link that fails, or comes back, are forgotten at both ends: flow control
/// promises no losslessness then. A fault from the beginning of the run on is known to routing from the beginning.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Fault {
    /// One end: a host such as `h3`, or a switch by its tier and number, such as `core0`.
    pub from: String,
    /// The other end of the link: a host such as `h3`, or a switch such as `core0`.
    pub to: String,
    /// The time at which the fault begins, since the start of the run. Default `"0s"`.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub at: Span,
    /// When the link is as before again: after `at`. Default never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<Span>,
    /// The remaining rate of the link. Routing does not know of it. Either this or `down`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Whether the link is dead. Default false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub down: bool,
    /// Which direction of the link is concerned. Default both.
    #[serde(default, skip_serializing_if = "Direction::is_both")]
    pub direction: Direction,
}

impl Fault {
    /// Whether the link changes during the run, or is dead: one that is only slow all the time is a slower
    /// link.
    pub fn is_scheduled(&self) -> bool {
        self.down || !self.at.is_zero() || self.until.is_some()
    }

    /// The link as results name it: `leaf0 - spine1`, or `leaf0 -> spine1` if only that direction is concerned.
    pub fn link_name(&self) -> String {
        let (from, to) = (&self.from, &self.to);
        match self.direction {
            Direction::Both => format!("{from} - {to}"),
            Direction::Forward => format!("{from} -> {to}"),
            Direction::Backward => format!("{to} -> {from}"),
        }
    }
}

/// For serde, which hands over a reference.
fn is_rail(choice: &NicChoice) -> bool {
    *choice == NicChoice::Rail
}

/// For serde, which hands over a reference.
fn is_zero(span: &Span) -> bool {
    span.is_zero()
}

/// For serde, which hands over a reference.
fn is_no_loss(probability: &f64) -> bool {
    *probability == 0.0
}

/// The direction of a link, from the ends that the fault names.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Both directions of the link.
    #[default]
    Both,
    /// The direction from `from` to `to`.
    Forward,
    /// The direction from `to` to `from`.
    Backward,
}

impl Direction {
    fn is_both(&self) -> bool {
        *self == Direction::Both
    }
}

/// Defines a table of a scenario that has the keys of a section's mechanisms among its own. The mechanisms come from
/// the registry of crate `mechanisms`, each with its documentation and the type of its parameters.
macro_rules! table_with_mechanisms {
    (
        {
            $(#[$table:meta])* $Table:ident, $Active:ident,
            { $($(#[$before_meta:meta])* $before:ident: $Before:ty,)* }
            { $($(#[$after_meta:meta])* $after:ident: $After:ty,)* }
        }
        { $($(#[$doc:meta])* $key:ident: $Params:ty,)+ }
    ) => {
        $(#[$table])*
        #[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
        #[serde(default, deny_unknown_fields)]
        pub struct $Table {
            $($(#[$before_meta])* pub $before: $Before,)*
            $($(#[$doc])* pub $key: Option<MaybeOff<$Params>>,)+
            $($(#[$after_meta])* pub $after: $After,)*
        }

        impl $Table {
            $(
                #[doc = concat!("The parameters of `", stringify!($key), "`, where it is on.")]
                pub fn $key(&self) -> Option<&$Params> {
                    on(&self.$key)
                }
            )+

            /// The mechanisms that are on.
            pub fn mechanisms(&self) -> $Active {
                $Active { $($key: self.$key().cloned(),)+ }
            }
        }
    };
}

plimsoll_mechanisms::with_path_mechanisms! { table_with_mechanisms! {
    /// Which of several equally short paths a packet takes. Without more (ECMP) it is the one that a hash of the
    /// packet's hosts and connection chooses, anew at every switch, so that packets of a connection keep their
    /// order. At most one of the others is on.
    Paths, PathMechanisms,
    {
        /// Both directions of a connection take the same path. Every switch of a tier then hashes alike;
        /// otherwise each has a salt of its own, and the two directions choose independently. Default
        /// false.
        symmetric: bool,
        /// How long after a link has failed or come back all switches choose their paths accordingly, all at once.
        /// Default `"0s"`. See `fault`.
        #[serde(skip_serializing_if = "is_zero")]
        convergence_delay: Span,
        /// Which NICs a connection takes where hosts have several: `"rail"`, both ends that of the same number, one
        /// number after the other; `"hash"`, each end one by a hash of the connection. The subflows of MPTCP take the
        /// NICs in turn. Default `"rail"`.
        #[serde(skip_serializing_if = "is_rail")]
        nics: NicChoice,
    }
    {}
} }

/// Queue settings after the most specific table has won: the host's NIC and each switch tier.
#[derive(Clone, PartialEq, Debug, Default, Serialize, JsonSchema)]
pub struct Ports {
    /// The queue of every host's NIC.
    #[serde(default)]
    pub host: Port,
    /// Every switch port, unless its tier says otherwise.
    #[serde(default)]
    pub switch: Port,
    /// One tier of the topology by its name, over `switch`. In a checked scenario every tier is
    /// here, complete.
    #[serde(flatten)]
    pub tier: IndexMap<String, Port>,
}

impl Ports {
    /// The queue of a switch port of a tier.
    pub fn of_tier(&self, tier: &str) -> &Port {
        self.tier.get(tier).unwrap_or(&self.switch)
    }
}

/// By hand, because serde's `flatten` buffers and so loses the places of errors.
impl<'de> Deserialize<'de> for Ports {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ports, D::Error> {
        struct Tables;
        impl<'de> Visitor<'de> for Tables {
            type Value = Ports;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Ports, A::Error> {
                let mut ports = Ports::default();
                while let Some(name) = map.next_key::<String>()? {
                    let port = map.next_value()?;
                    match name.as_str() {
                        "host" => ports.host = port,
                        "switch" => ports.switch = port,
                        _ => {
                            ports.tier.insert(name, port);
                        }
                    }
                }
                Ok(ports)
            }
        }
        deserializer.deserialize_map(Tables)
    }
}

plimsoll_mechanisms::with_port_mechanisms! { table_with_mechanisms! {
    /// One kind of output queue.
    Port, PortMechanisms,
    {
        /// Most that may wait: `"500 packets"`, `"512KB"`, or `"unlimited"` (the default).
        buffer: QueueLimit,
        /// Whether `buffer` counts the packet in service.
        counts: BufferCounts,
        /// First come first served, by priority, or one queue per flow served in turn (hosts only). The default is
        /// `fifo` at switches and `fair-per-flow` at hosts, as Linux's hosts have a queue for each flow; a host with
        /// `pfabric`, a `discipline` or `engine = "express"`, or in a hybrid network, has `fifo`.
        order: QueueOrder,
    }
    {
        /// Which of the two port engines; both give the same result wherever both apply.
        engine: PortEngine,
    }
} }

/// Whether a buffer limit counts the packet being sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum BufferCounts {
    /// Packets that wait; the one in service is not counted.
    #[default]
    Waiting,
    /// Packets that wait and the one in service.
    WaitingAndInService,
}

/// In which order a queue is served.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum QueueOrder {
    /// First come, first served.
    #[default]
    Fifo,
    /// Eight strict priorities (802.1p): the highest that has a packet goes first.
    Priorities,
    /// One queue per flow, deficit round robin with a quantum of one full-size packet.
    FairPerFlow,
}

/// The engine that computes the departures of a port.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PortEngine {
    /// Express where it applies, general elsewhere.
    #[default]
    Auto,
    /// Departures known at admission; an error where the port needs more.
    Express,
    /// The port keeps its packets until they leave. Departures are decided late where nothing can tell the difference.
    General,
    /// As `general`, and every departure is an event: slower, for comparisons.
    Explicit,
}

plimsoll_mechanisms::with_host_mechanisms! { table_with_mechanisms! {
    /// What sits between the transport and the wire of a host.
    Host, HostMechanisms,
    {
        /// The transport, and a pacer behind it, wait while the NIC queue is full, instead of losing the packet
        /// there.
        backpressure: bool,
        /// The probability with which a host loses each packet that it sends, before its NIC: 0 (the default) to 1.
        /// Losses are independent of each other, and the same at all hosts; acknowledgements are lost as well.
        #[serde(skip_serializing_if = "is_no_loss")]
        loss: f64,
    }
    {
        /// The 802.1p priority of a workload's packets, by its name: 0 (the default, the lowest) to 7.
        priority: IndexMap<String, u8>,
        /// The DSCP of a workload's packets, by its name, in place of a priority: 0 to 63, or a name such as `"EF"`,
        /// `"CS1"` or `"AF41"`. Packets of an emulated run carry it.
        #[serde(skip_serializing_if = "IndexMap::is_empty")]
        dscp: IndexMap<String, DscpText>,
        /// The priority of packets with a DSCP, such as `"EF" = 7`, or with one of several, such as `"8..15" = 1`, the
        /// last one included; one map for the whole network. Default the upper three bits of the DSCP.
        #[serde(skip_serializing_if = "IndexMap::is_empty")]
        dscp_to_priority: IndexMap<String, u8>,
        /// Priority by the size of a message, for workloads without one in `priority` or `dscp`: up to the first size
        /// it is 7, up to the second 6, and so on; at most 7 sizes, each larger than the one before. Default none.
        priority_by_size: Vec<Bytes>,
        /// The priority of packets without data, 0 to 7. Default that of their connection.
        ack_priority: Option<u8>,
        /// The priority of RoCE's congestion notification packets, 0 to 7. Default `ack_priority`.
        #[serde(skip_serializing_if = "Option::is_none")]
        cnp_priority: Option<u8>,
        /// The guest of the sending host that sends a workload's packets, such as a virtual machine, by the workload's
        /// name: 0 (the default, the host itself) to 63. The guests of a host share its NIC and its queue; each has
        /// QJump's limiters of its own.
        #[serde(skip_serializing_if = "IndexMap::is_empty")]
        guest: IndexMap<String, u8>,
        /// What pFabric's queues sort by. Packets without data come before all others.
        rank: Rank,
    }
} }

/// The source of a packet's rank, by which pFabric's queues sort.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Rank {
    /// The bytes written to its connection that were not known to be received when it was sent (pFabric).
    #[default]
    Remaining,
    /// The packet's priority.
    Priority,
}

/// What to record beyond the messages themselves.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Observe {
    /// Queues to watch, by a name of your choice.
    pub queue: IndexMap<String, ObserveQueue>,
    /// Per-flow series of cwnd, ssthresh, alpha, rate and retransmissions, sampled this often.
    pub flow_series: Option<Span>,
    /// The event at which a message counts as complete. Default `"delivered"`.
    pub completion: Completion,
    /// The length of the intervals in which each workload's goodput is recorded, all connections together.
    /// Default none.
    pub goodput_every: Option<Span>,
    /// Keep this number of packets, the first that complete a link, for a capture that Wireshark reads: at
    /// most 10 million. Only links of the queues watched by `queue`; of every queue if none is
    /// watched.
    pub packets: Option<u64>,
    /// Count for every link, from the warm-up to the end of the sending, its packets, bytes and drops, and how
    /// long it was paused: for the report's utilisation by tier and its maps of drops and pauses.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub links: bool,
}

/// The event at which a message counts as complete.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Completion {
    /// When its last byte has been delivered.
    #[default]
    Delivered,
    /// When the sender has its acknowledgement (the completion times of the pFabric and
    /// QJump studies). For flows (`flows`, `all-to-all`, `permutation`, `incast`, `flow-list`); what
    /// is answered is complete when it is delivered.
    Acknowledged,
}

/// A queue whose length is recorded over time.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ObserveQueue {
    /// The queue: `"client"` or a host's name (the switch port towards that host), `"nic:h3"` (that
    /// host's NIC), or `"tier:leaf"` (every port of a tier, pooled).
    pub port: String,
    /// Length of the intervals whose means are recorded.
    pub every: Span,
}
