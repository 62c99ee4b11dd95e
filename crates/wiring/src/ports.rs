//! The output ports of a network.

use std::collections::HashMap;
use std::sync::Arc;

use plimsoll_fabric::engine::Streams;
use plimsoll_fabric::net::port::{
    BufferLimit, Discipline, HeadPacer, PortConfig, PortRules, QueueDiscipline, RedMarker, WredMarker,
};
use plimsoll_fabric::net::topology::Link;
use plimsoll_fabric::net::{Network, Node, Port, PortId, QueueMeter};
use plimsoll_mechanisms::ecn::Ecn;
use plimsoll_mechanisms::pacer::PacerForm;
use plimsoll_mechanisms::phantom_queue::PhantomQueue;
use plimsoll_mechanisms::red::Red;
use plimsoll_mechanisms::tcp::Config;
use plimsoll_mechanisms::wred::Wred;
use plimsoll_scenario::model::{self, Model};
use plimsoll_scenario::quantity;
use plimsoll_units::{Span, Time};

use crate::faults::Schedule;
use crate::on;
use crate::pools::Pools;
use crate::watched::Watched;

/// Makes the queue discipline of the port that sends on a link.
pub type MakeDiscipline<'a> = dyn Fn(&Link) -> Option<Box<dyn QueueDiscipline>> + 'a;

/// What ports get from outside the scenario.
#[derive(Default)]
pub struct PortExtensions<'a> {
    /// Makes the queue discipline of a switch port; where it gives `None`, the scenario's own stays.
    pub queue_discipline: Option<&'a MakeDiscipline<'a>>,
    /// A path selector from outside wants to know what leaves before a packet.
    pub counts_drain_bytes: bool,
}

/// Width of the bins in which a watched queue's lengths are counted, in bytes.
pub const BIN_BYTES: u64 = 1_000;

/// Every port of `network`, by number.
pub fn build(
    model: &Model,
    network: &Network,
    transport: &Config,
    streams: &Streams,
    watched: &[Watched],
    pools: &Pools,
    schedule: &Schedule,
    extensions: &PortExtensions,
) -> Vec<Port> {
    let watched = watched.iter().map(|watched| (watched.port, watched.every)).collect();
    let pausable = model.has_flow_control();
    let mut builder = Builder {
        model,
        network,
        transport,
        streams,
        watched,
        pools,
        pausable,
        schedule,
        extensions,
        rules: Vec::new(),
    };
    (0..network.links().len() as u32).map(|port| builder.port(PortId(port))).collect()
}

struct Builder<'a> {
    model: &'a Model,
    network: &'a Network,
    transport: &'a Config,
    streams: &'a Streams,
    watched: HashMap<PortId, Span>,
    pools: &'a Pools,
    /// Some switch pauses its neighbours.
    pausable: bool,
    schedule: &'a Schedule,
    extensions: &'a PortExtensions<'a>,
    /// Those made so far; as many as there are kinds of port.
    rules: Vec<Arc<PortRules>>,
}

impl Builder<'_> {
    fn port(&mut self, port: PortId) -> Port {
        let (model, link) = (self.model, self.network.link(port));
        let settings = settings(model, self.network, port);
        let is_host = matches!(link.from, Node::Host(_));
        let phantom_queue = on(&settings.phantom_queue).map(|params| PhantomQueue::new(params, link.rate));
        // A phantom queue marks in place of the port.
        let marks = phantom_queue.is_none();
        let red = on(&settings.red).filter(|_| marks).map(|params| {
            let stream = self.streams.stream(&format!("port/{}/red", port.0));
            RedMarker::new(Red::new(params, link.rate), stream)
        });
        let wred = settings.wred().filter(|_| marks).map(|params| {
            let stream = self.streams.stream(&format!("port/{}/wred", port.0));
            WredMarker::new(Wred::new(params, link.rate), stream)
        });
        let ecn = on(&settings.ecn).filter(|_| marks && red.is_none() && wred.is_none()).map(Ecn::new);
        let head_pacer = on(&model.host.pacer).filter(|params| is_host && params.form == PacerForm::Source);
        Port::new(PortConfig {
            rules: self.shared_rules(PortRules {
                byte_time: link.rate.byte_time(),
                propagation: link.propagation,
                wait: link.wait(),
                limit: buffer_limit(settings),
                ecn,
            }),
            red,
            wred,
            shared: self.pools.room(port),
            phantom_queue,
            meter: self.watched.get(&port).map(|every| {
                let from = Time::ZERO + model.run.warmup;
                QueueMeter::new(from, *every, BIN_BYTES)
            }),
            discipline: self.custom_discipline(link).unwrap_or_else(|| self.discipline(settings)),
            pacer: head_pacer
                .map(|params| HeadPacer::new(params, self.streams.stream(&format!("host/{}/pacer", port.0)))),
            announces_room: is_host && model.host.backpressure,
            accounts: self.pausable,
            counts_drain_bytes: !is_host
                && (model.paths.adaptive().is_some() || self.extensions.counts_drain_bytes),
            changes: self.schedule.link(port).is_some(),
            general: settings.engine == model::PortEngine::General,
        })
    }

    /// The discipline from outside, if there is one for the port that sends on `link`.
    fn custom_discipline(&self, link: &Link) -> Option<Discipline> {
        let make = self.extensions.queue_discipline.filter(|_| matches!(link.from, Node::Switch(_)))?;
        make(link).map(Discipline::Custom)
    }

    fn discipline(&self, settings: &model::Port) -> Discipline {
        if let Some(params) = settings.pfabric() {
            return Discipline::pfabric(params);
        }
        match settings.order {
            model::ServiceOrder::Priorities => Discipline::priorities(),
            model::ServiceOrder::Fifo => Discipline::fifo(),
            model::ServiceOrder::FairPerFlow => {
                let full_size = self.transport.segment + u64::from(self.transport.header_bytes);
                Discipline::fair_per_flow(full_size)
            }
        }
    }

    /// `rules`, kept once however many ports have them.
    fn shared_rules(&mut self, rules: PortRules) -> Arc<PortRules> {
        if let Some(known) = self.rules.iter().find(|known| ***known == rules) {
            return Arc::clone(known);
        }
        let rules = Arc::new(rules);
        self.rules.push(Arc::clone(&rules));
        rules
    }
}

/// The settings of the tier that `port` belongs to.
pub fn settings<'a>(model: &'a Model, network: &Network, port: PortId) -> &'a model::Port {
    let link = network.link(port);
    match link.from {
        Node::Host(_) => &model.port.host,
        Node::Switch(_) => {
            let tier = network.tiers()[usize::from(link.tier)];
            model.port.tier.get(tier).unwrap_or(&model.port.switch)
        }
    }
}

fn buffer_limit(settings: &model::Port) -> BufferLimit {
    let counts_in_service = settings.counts == model::BufferCounts::WaitingAndInService;
    let limit = BufferLimit { counts_in_service, ..BufferLimit::UNLIMITED };
    if settings.pfabric().is_some() || settings.pfc().is_some() {
        return limit;
    }
    match settings.buffer {
        quantity::BufferLimit::Unlimited => limit,
        quantity::BufferLimit::Packets(packets) => BufferLimit { packets, ..limit },
        quantity::BufferLimit::Bytes(bytes) => BufferLimit { bytes: bytes.get(), ..limit },
    }
}
