//! A scenario's model becomes the specification of a fabric: [`Model::fabric_spec`].

use plimsoll_fabric::faults::LinkFault;
use plimsoll_fabric::net::port::{self, BufferLimit, DisciplineFactory};
use plimsoll_fabric::net::{Network, Node, PortId};
use plimsoll_fabric::{CircuitSpec, FabricSpec, MeasurementWindow, PortSpec, Unbuildable, WatchedQueue};
use plimsoll_mechanisms::mptcp;
use plimsoll_mechanisms::pfc::Priorities;
use plimsoll_mechanisms::qjump::{Levels, QjumpParams};
use plimsoll_mechanisms::tcp::{Kind, MakeController, TcpConfig, TransportParams};
use plimsoll_mechanisms::transports::Carrier;
use plimsoll_mechanisms::transports::homa::cutoffs;
use plimsoll_traffic::kind::Input;
use plimsoll_units::Time;

use crate::keys::TRANSPORTS;
use crate::model::{BufferCounts, Direction, Fault, Model, Port, PortEngine, QueueOrder, Topology};
use crate::quantity;
use crate::registry::Outside;

impl Model {
    /// Describes the network between the hosts. The specification names no host and no tier: a fabric is built from
    /// numbers.
    ///
    /// # Errors
    /// Fails if a graph file was not read, or if a fault or a watched queue names a host or a tier that the topology
    /// lacks.
    pub fn fabric_spec(&self) -> Result<FabricSpec, Unbuildable> {
        let mut network = self.topology.network()?;
        let faults = self.link_faults(&mut network)?;
        let watched = self.watched_queues(&network)?;
        let outside = &self.outside;
        let tier = |name: &&str| port_spec(self.port.of_tier(name), outside.disciplines.get(*name));
        Ok(FabricSpec {
            nic: port_spec(&self.port.host, outside.disciplines.get("host")),
            tiers: network.tiers().iter().map(tier).collect(),
            network,
            pacer: self.host.pacer().copied(),
            host_loss: self.host.loss,
            tdma: self.host.tdma().cloned(),
            backpressure: self.waits_for_room(),
            pacers_wait: true,
            full_size: self.packet_bytes(),
            largest_packet: self.largest_packet(),
            priorities_in_use: self
                .used_priorities()
                .into_iter()
                .fold(Priorities::default(), |set, priority| set.with(priority)),
            paths: self.paths.mechanisms(),
            path_selector: outside.selector.as_ref().map(|outside| outside.factory.clone()),
            symmetric_paths: self.paths.symmetric,
            convergence_delay: self.paths.convergence_delay,
            faults,
            watched,
            counts_links: self.observe.links,
            window: self.measurement_window(),
            circuits: self.circuits.clone().map(CircuitSpec::new),
        })
    }

    /// Resolves the parameters of the transport that carries a workload.
    ///
    /// # Errors
    /// Fails at the first key of the transport's table that is out of range.
    pub fn transport_config(&self, workload: &str) -> Result<TcpConfig, Unbuildable> {
        let (kind, outside) = self.controller_of(workload);
        let params = TransportParams { kind, ..self.transport_of(workload).clone() };
        let mut config = params.resolve().map_err(|invalid| {
            Unbuildable::new(format!("{}.{}", self.transport_section(workload), invalid.key), invalid)
        })?;
        config.custom = outside.map(|outside| outside.factory.clone());
        if config.carrier() == Carrier::Homa && config.homa.params.cutoffs.is_none() {
            config.homa.cutoffs = cutoffs(&config.homa, &self.sizes_of(workload));
        }
        Ok(config)
    }

    /// Returns the sizes of a workload's messages with their shares, where a distribution of points gives them.
    fn sizes_of(&self, workload: &str) -> Vec<(u64, f64)> {
        let inputs =
            self.workload.get(workload).map(|workload| workload.params().inputs()).unwrap_or_default();
        let tables = inputs.iter().filter_map(|input| match input {
            Input::Cdf(table) => Some(table.masses()),
            _ => None,
        });
        tables.flatten().map(|(size, share)| (size as u64, share)).collect()
    }

    /// Returns the name of the table with the parameters of a workload's transport.
    pub fn transport_section(&self, workload: &str) -> String {
        let name = self.carried_by.get(workload);
        name.map_or_else(|| "transport".to_owned(), |name| format!("{TRANSPORTS}.{name}"))
    }

    /// Returns the kind of a workload's congestion controller, and the controller from outside that takes its place.
    pub fn controller_of(&self, workload: &str) -> (Kind, Option<&Outside<MakeController>>) {
        let (params, outside) = (self.transport_of(workload), &self.outside);
        if let Some(name) = self.carried_by.get(workload) {
            return (params.kind, outside.transport_controllers.get(name));
        }
        match (outside.workload_controllers.get(workload), params.workload.get(workload)) {
            (None, None) => (params.kind, outside.controller.as_ref()),
            (own, kind) => (kind.copied().unwrap_or(params.kind), own),
        }
    }

    /// Resolves the parameters of MPTCP for the connections of `workload`; `None` if they are plain TCP's.
    ///
    /// # Errors
    /// Fails at the first key of the transport's table that is out of range.
    pub fn mptcp_config(&self, workload: &str) -> Result<Option<mptcp::MptcpConfig>, Unbuildable> {
        let params = self.transport_of(workload).mptcp.as_ref().filter(|params| params.is_for(workload));
        params.map(|params| Ok(params.resolve(self.transport_config(workload)?))).transpose()
    }

    /// Returns the part of the run that is measured: from the warm-up to the end of the sending.
    pub fn measurement_window(&self) -> MeasurementWindow {
        let until = self.run.duration.map_or(Time::MAX, |duration| Time::ZERO + duration);
        MeasurementWindow { from: Time::ZERO + self.run.warmup, until }
    }

    /// Computes QJump's levels of `host` from the rate of its link.
    ///
    /// # Errors
    /// Fails at the first key of `host.qjump` that is out of range.
    pub fn qjump_levels(&self, params: &QjumpParams, host: u32) -> Result<Levels, Unbuildable> {
        let senders = self.topology.host_count() * self.guests();
        let levels = params.resolve(senders, self.topology.host_rate(host));
        levels.map_err(|invalid| Unbuildable::new(format!("host.qjump.{}", invalid.key), invalid))
    }

    /// Lists the faults that happen during the run. A link that is only slow all the time gets its rate in `network`.
    fn link_faults(&self, network: &mut Network) -> Result<Vec<LinkFault>, Unbuildable> {
        let mut faults = Vec::new();
        for (index, fault) in self.fault.iter().enumerate() {
            let pairs = ports_of(&self.topology, network, fault);
            if pairs.is_empty() {
                let problem = format!("there is no link between `{}` and `{}`", fault.from, fault.to);
                return Err(Unbuildable::new(format!("fault.{index}"), problem));
            }
            for (port, back) in pairs {
                match fault.rate.filter(|_| !fault.is_scheduled()) {
                    Some(rate) => network.set_rate(port, rate),
                    None => faults.push(LinkFault {
                        port,
                        back,
                        at: Time::ZERO + fault.at,
                        until: fault.until.map(|until| Time::ZERO + until),
                        rate: fault.rate,
                    }),
                }
            }
        }
        Ok(faults)
    }

    fn watched_queues(&self, network: &Network) -> Result<Vec<WatchedQueue>, Unbuildable> {
        let mut watched = Vec::new();
        for (name, queue) in &self.observe.queue {
            let host = |text: &str| {
                let unknown =
                    || Unbuildable::new(format!("observe.queue.{name}.port"), format!("no host `{text}`"));
                self.topology.nic(text).ok_or_else(unknown)
            };
            let watch = |port| WatchedQueue { name: name.clone(), port, every: queue.every };
            if let Some(nic) = queue.port.strip_prefix("nic:") {
                watched.push(watch(PortId(host(nic)?.0)));
            } else if let Some(tier) = queue.port.strip_prefix("tier:") {
                let ports = (0..).map(PortId).zip(network.links()).filter(|(_, link)| {
                    matches!(link.from, Node::Switch(_)) && network.tiers()[usize::from(link.tier)] == tier
                });
                watched.extend(ports.map(|(port, _)| watch(port)));
            } else {
                watched.push(watch(network.port_towards(host(&queue.port)?)));
            }
        }
        Ok(watched)
    }
}

/// Describes a queue. Under flow control and in pFabric's queue the buffer limits something else.
fn port_spec(port: &Port, discipline: Option<&Outside<DisciplineFactory>>) -> PortSpec {
    PortSpec {
        limit: buffer_limit(port),
        order: match port.order {
            QueueOrder::Fifo => port::ServiceOrder::Fifo,
            QueueOrder::Priorities => port::ServiceOrder::Priorities,
            QueueOrder::FairPerFlow => port::ServiceOrder::FairPerFlow,
        },
        discipline: discipline.map(|outside| outside.factory.clone()),
        mechanisms: port.mechanisms(),
        link_buffer: match port.buffer {
            quantity::QueueLimit::Bytes(buffer) => Some(buffer),
            quantity::QueueLimit::Unlimited | quantity::QueueLimit::Packets(_) => None,
        },
        general: matches!(port.engine, PortEngine::General | PortEngine::Explicit),
        explicit_departures: port.engine == PortEngine::Explicit,
    }
}

fn buffer_limit(port: &Port) -> BufferLimit {
    let counts_in_service = port.counts == BufferCounts::WaitingAndInService;
    let limit = BufferLimit { counts_in_service, ..BufferLimit::UNLIMITED };
    if port.mechanisms().active().iter().any(|active| active.table.limits_queue) {
        return limit;
    }
    match port.buffer {
        quantity::QueueLimit::Unlimited => limit,
        quantity::QueueLimit::Packets(packets) => BufferLimit { packets, ..limit },
        quantity::QueueLimit::Bytes(bytes) => BufferLimit { bytes: bytes.get(), ..limit },
    }
}

/// Returns the ports of a fault's link in the directions that it concerns, each with the one that sends the other way.
fn ports_of(topology: &Topology, network: &Network, fault: &Fault) -> Vec<(PortId, Option<PortId>)> {
    let Some((from, to)) = topology.node(&fault.from).zip(topology.node(&fault.to)) else {
        return Vec::new();
    };
    let forward: Vec<PortId> = network.ports_between(from, to).collect();
    let backward: Vec<PortId> = network.ports_between(to, from).collect();
    // Of several links between two nodes the first port belongs to the first port back.
    let with_back = |ports: &[PortId], backs: &[PortId]| -> Vec<(PortId, Option<PortId>)> {
        ports.iter().enumerate().map(|(index, port)| (*port, backs.get(index).copied())).collect()
    };
    let mut pairs = Vec::new();
    if fault.direction != Direction::Backward {
        pairs.extend(with_back(&forward, &backward));
    }
    if fault.direction != Direction::Forward {
        pairs.extend(with_back(&backward, &forward));
    }
    pairs
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Scenario;

    const TOPOLOGIES: [&str; 8] = [
        "kind = 'rack'\nhosts = 3\nrate = '1Gbps'\ndelay = '1us'",
        "kind = 'leaf-spine'\nleaves = 3\nspines = 2\nhosts_per_leaf = 2\nrate = '1Gbps'\ndelay = '1us'",
        "kind = 'fat-tree'\nk = 4\nrate = '1Gbps'\ndelay = '1us'",
        "kind = 'clos'\npods = 3\nedges = 2\naggregations = 3\ncores = 2\nhosts_per_edge = 1\nrate = '1Gbps'\n\
         delay = '1us'",
        "kind = 'dumbbell'\nleft = 2\nright = 1\nrate = '1Gbps'\ndelay = '1us'\nbottleneck_rate = '1Gbps'",
        "kind = 'file'\npath = 'leaf-spine.toml'",
        "kind = 'file'\npath = 'two-nics.toml'",
        "kind = 'leaf-spine'\nleaves = 4\nspines = 2\nhosts_per_leaf = 2\nnics = 2\nrate = '1Gbps'\ndelay = '1us'",
    ];

    fn parse(topology: &str, faults: &str) -> Option<Model> {
        let text = format!(
            "version = 1\ntitle = 'links'\n[topology]\n{topology}\n{faults}\
             [workload.all]\nkind = 'all-to-all'\nsize = '1KB'\nload = 0.1\ncount = 1\n"
        );
        let files = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../sim/tests/files"));
        let scenario = Scenario::parse("links", &text, files).ok()?;
        Some(scenario.points()[0].model.clone())
    }

    /// The scenario accepts exactly those links that the network has.
    #[test]
    fn scenario_and_network_have_the_same_links() {
        for topology in TOPOLOGIES {
            let whole = parse(topology, "").unwrap();
            let network = whole.topology.network().unwrap();
            let hosts = whole.topology.all_nics().map(Node::Host);
            let nodes: Vec<Node> = hosts.chain((0..network.switches()).map(Node::Switch)).collect();
            for from in &nodes {
                for to in &nodes {
                    let (a, b) = (whole.topology.node_name(*from), whole.topology.node_name(*to));
                    let fault = format!("[[fault]]\nfrom = '{a}'\nto = '{b}'\ndown = true\nat = '1us'\n");
                    let there = network.ports_between(*from, *to).next().is_some();
                    assert_eq!(parse(topology, &fault).is_some(), there, "{a} and {b} of {topology}");
                }
            }
        }
    }

    /// A fault reaches the specification with its ports, and a link that is slow all the time with its rate.
    #[test]
    fn a_specification_has_the_faults_of_the_model() {
        let slow = "[[fault]]\nfrom = 'h0'\nto = 'tor0'\nrate = '1Mbps'\ndirection = 'forward'\n";
        let dead = "[[fault]]\nfrom = 'h1'\nto = 'tor0'\ndown = true\nat = '20us'\nuntil = '30us'\n";
        let spec = parse(TOPOLOGIES[0], &format!("{slow}{dead}")).unwrap().fabric_spec().unwrap();
        assert_eq!(spec.network.link(PortId(0)).rate, plimsoll_units::Rate::from_mbps(1));
        assert_eq!(spec.network.link(PortId(3)).rate, plimsoll_units::Rate::from_gbps(1));
        let us = |us| Time::ZERO + plimsoll_units::Span::from_us(us);
        let fault =
            |port, back| LinkFault { port, back: Some(back), at: us(20), until: Some(us(30)), rate: None };
        assert_eq!(spec.faults, [fault(PortId(1), PortId(4)), fault(PortId(4), PortId(1))]);
    }
}
