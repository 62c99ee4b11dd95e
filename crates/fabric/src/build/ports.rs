//! The output ports of a fabric.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_mechanisms::ecn::Ecn;
use plimsoll_mechanisms::pacer::PacerForm;
use plimsoll_mechanisms::phantom_queue::PhantomQueue;
use plimsoll_units::{Span, Streams};

use super::shared_buffers::SharedBuffers;
use crate::circuits::HybridRates;
use crate::faults::Schedule;
use crate::net::port::{ClassQueues, Discipline, HeadPacer, Marker, PortConfig, PortRules, Stamper, Trimmer};
use crate::net::topology::Link;
use crate::net::{Node, Port, PortId, QueueMeter};
use crate::observed::QueueObservation;
use crate::spec::{FabricSpec, PortSpec};

/// Builds the ports of a fabric, one after the other.
pub(super) struct PortBuilder<'a> {
    pub(super) spec: &'a FabricSpec,
    pub(super) streams: &'a Streams,
    pub(super) shared: &'a SharedBuffers,
    pub(super) schedule: &'a Schedule,
    /// The kinds of port that have the general engine.
    general: GeneralPorts,
    /// The rates of hosts in a hybrid network.
    hybrid: Option<HybridRates>,
    /// The interval of each watched port.
    watched: HashMap<PortId, Span>,
    /// The rules made so far: as many as there are kinds of port.
    rules: Vec<Arc<PortRules>>,
}

/// The kinds of port that have the general engine, by choice or because a mechanism needs it.
struct GeneralPorts {
    nic: bool,
    tiers: Vec<bool>,
}

impl GeneralPorts {
    fn of(spec: &FabricSpec) -> GeneralPorts {
        let is_general =
            |port: &PortSpec, at_switch| port.general || spec.needs_general_engine(port, at_switch);
        GeneralPorts {
            nic: is_general(&spec.nic, false) || spec.tdma.is_some(),
            tiers: spec.tiers.iter().map(|tier| is_general(tier, true)).collect(),
        }
    }
}

impl<'a> PortBuilder<'a> {
    pub(super) fn new(
        spec: &'a FabricSpec,
        streams: &'a Streams,
        shared: &'a SharedBuffers,
        schedule: &'a Schedule,
    ) -> PortBuilder<'a> {
        PortBuilder {
            spec,
            streams,
            shared,
            schedule,
            general: GeneralPorts::of(spec),
            hybrid: HybridRates::of(
                &spec.network,
                spec.full_size,
                spec.circuits.as_ref().map(|circuits| circuits.control.classify).unwrap_or_default(),
            ),
            watched: spec.watched.iter().map(|watched| (watched.port, watched.every)).collect(),
            rules: Vec::new(),
        }
    }

    /// Builds every port of the network, by number.
    pub(super) fn ports(mut self) -> Vec<Port> {
        let spec = self.spec;
        (0..).map(PortId).zip(spec.network.links()).map(|(port, link)| self.port(port, link)).collect()
    }

    fn port(&mut self, port: PortId, link: &Link) -> Port {
        let spec = self.spec;
        let settings = spec.port(link);
        let is_host = matches!(link.from, Node::Host(_));
        let phantom_queue =
            settings.mechanisms.phantom_queue.as_ref().map(|params| PhantomQueue::new(params, link.rate));
        // A phantom queue marks in place of the port.
        let marks = phantom_queue.is_none();
        let stream = |name| self.streams.stream(&format!("port/{}/{name}", port.0));
        let is_last = spec.network.far_switch(port).is_none();
        let marker = if marks { Marker::of(&settings.mechanisms, link.rate, is_last, stream) } else { None };
        let ecn = settings.mechanisms.ecn.as_ref().filter(|_| marks && marker.is_none()).map(Ecn::new);
        let head_pacer = spec.pacer.as_ref().filter(|params| is_host && params.form == PacerForm::Source);
        let looks_at_ports = spec.paths.adaptive.is_some() || spec.path_selector.is_some();
        Port::new(PortConfig {
            rules: self.shared_rules(PortRules {
                byte_time: link.rate.byte_time(),
                rate: link.rate,
                propagation: link.propagation,
                wait: spec.network.wait_of(link),
                limit: settings.limit,
                ecn,
            }),
            marker,
            shared: self.shared.room(port),
            trimmer: settings
                .mechanisms
                .trim
                .as_ref()
                .map(|params| Trimmer::new(params, is_last, || stream("trim"))),
            stamper: settings.mechanisms.int.map(Stamper::new),
            phantom_queue,
            meter: self
                .watched
                .get(&port)
                .map(|every| QueueMeter::new(spec.window.from, *every, QueueObservation::BIN_BYTES)),
            discipline: self.classes(port, link).unwrap_or_else(|| self.discipline(settings, link)),
            pacer: head_pacer
                .map(|params| HeadPacer::new(params, self.streams.stream(&format!("host/{}/pacer", port.0)))),
            announces_room: is_host && spec.backpressure,
            accounts: spec.has_flow_control(),
            counts_drain_bytes: !is_host && looks_at_ports,
            changes: self.schedule.link(port).is_some(),
            general: if is_host { self.general.nic } else { self.general.tiers[usize::from(link.tier)] },
            settles: !(settings.explicit_departures || is_host && spec.tdma.is_some()),
        })
    }

    /// Makes the queues by destination of a NIC in a hybrid network.
    fn classes(&self, port: PortId, link: &Link) -> Option<Discipline> {
        let rates = self.hybrid.filter(|_| matches!(link.from, Node::Host(_)))?;
        let hosts = self.spec.network.hosts();
        Some(Discipline::Classes(Box::new(ClassQueues::new(port.0, hosts, rates.classes))))
    }

    fn discipline(&self, settings: &PortSpec, link: &Link) -> Discipline {
        match &settings.discipline {
            Some(factory) => Discipline::custom(factory, link),
            None => {
                let quantum = self.spec.full_size;
                Discipline::of(settings.order, &settings.mechanisms, quantum, settings.limit)
            }
        }
    }

    /// Returns `rules`, kept once however many ports have them.
    fn shared_rules(&mut self, rules: PortRules) -> Arc<PortRules> {
        if let Some(known) = self.rules.iter().find(|known| ***known == rules) {
            return Arc::clone(known);
        }
        let rules = Arc::new(rules);
        self.rules.push(Arc::clone(&rules));
        rules
    }
}
