//! A model becomes a world.

use std::collections::BTreeMap;

use plimsoll_fabric::engine::{Owner, OwnerKind, Streams};
use plimsoll_fabric::net::{MeterReading, Network, PortId};
use plimsoll_fabric::{self as fabric, Parts, WatchedQueue, port_name};
use plimsoll_mechanisms::nic_burst::SegmentationOffload;
use plimsoll_mechanisms::tcp::Connections;
use plimsoll_results::outcome::{self, Outcome, WorkloadInfo};
use plimsoll_scenario::model::{Completion, Model};
use plimsoll_units::{Bytes, Span, Time};

use crate::classes::Classes;
use crate::faults;
use crate::look_ahead::LOOK_AHEAD_PORTS;
use crate::observe::{Recorder, connection_record};
use crate::pool::ConnectionPool;
use crate::receive::ReceiveOffload;
use crate::tap::Tap;
use crate::wires::Wires;
use crate::world::{Rules, SAMPLING_CLOCK, World};
use crate::{Extensions, RunError};
use plimsoll_workloads::{Actions, Traffic};

mod links;

/// A world ready to run, and what is needed to read it afterwards.
pub(crate) struct Build {
    pub(crate) world: World,
    workloads: Vec<WorkloadInfo>,
    watched: Vec<WatchedQueue>,
    /// The ends of every link and its tier, where links are counted.
    named: Vec<links::Named>,
    warmup: Span,
    horizon: Time,
    endless: bool,
    faults: Vec<outcome::Fault>,
    /// Programs of the scenario, which only an emulated run has.
    programs: usize,
}

pub(crate) fn build(model: &Model, extensions: Extensions) -> Result<Build, RunError> {
    let streams = Streams::new(model.run.seed);
    let mut transport = model.transport_config()?;
    transport.custom = extensions.congestion_control;
    let spec = model.fabric_spec()?;
    let window = spec.window;
    let traffic = Traffic::new(model, &streams)?;
    let of_fabric = fabric::Extensions {
        queue_discipline: extensions.queue_discipline,
        path_selector: extensions.path_selector,
    };
    let Parts { network, ports, pacers, selector, events, shared_buffers, flow_control, faults, watched } =
        Parts::build(spec, &streams, of_fabric)?;
    let looks_ahead = ports.len() >= LOOK_AHEAD_PORTS;
    let mut wires = Wires::new(&network, window, events);
    wires.pools = shared_buffers;
    wires.flow_control = flow_control;
    wires.has_aftermath = wires.flow_control.is_some();
    wires.faults = faults;
    let recorder =
        Recorder::new(model.workload.len(), model.observe.goodput_every, model.observe.flow_series);
    if let Some(first) = recorder.first_sample() {
        wires.events.push(first, Owner::new(OwnerKind::Clock, SAMPLING_CLOCK));
    }
    let horizon = traffic.horizon();
    let hosts = network.hosts();
    let grace = network.links().iter().map(|link| link.propagation).min().unwrap_or_default();
    let mut tap = model.observe.packets.map(|room| tap(room, &network, &watched));
    let mut named = Vec::new();
    if model.observe.links {
        named = links::named(&model.topology, &network);
        let every = network.links().len();
        tap = Some(tap.unwrap_or_else(|| Tap::new(0, every, std::iter::empty())).counting(window));
        wires.drops = vec![0; every];
    }
    let bursts = model.host.bursts();
    let segmentation =
        bursts.filter(|params| params.segmentation > Bytes::ZERO).map(SegmentationOffload::new);
    let classes = Classes::new(model)?;
    let workloads = traffic.workloads;
    let pool = model.transport.pool;
    let pool = (pool > 0).then(|| Box::new(ConnectionPool::new(pool, &transport)));
    let rules = Rules {
        horizon,
        stop_when_finished: !traffic.endless,
        grace,
        looks_at_hops: selector.is_some() || tap.is_some() || wires.flow_control.is_some(),
        holds_back: model.host.backpressure || segmentation.is_some() || classes.is_some(),
        backpressure: model.host.backpressure,
        completes_acknowledged: model.observe.completion == Completion::Acknowledged,
        spreads: selector.as_ref().is_some_and(|selector| selector.spreads()),
        close_when_idle: model.transport.connections == Connections::PerMessage,
        segmentation,
    };
    let world = World {
        network,
        transport,
        ports,
        pacers,
        receive_offload: bursts.and_then(|params| ReceiveOffload::new(params, hosts)).map(Box::new),
        connections: Vec::new(),
        pool,
        workload_armed: vec![Time::MAX; workloads.len()],
        workloads,
        recorder,
        tap: tap.map(Box::new),
        wires,
        rules,
        actions: Actions::default(),
        waiting_for_room: vec![Default::default(); if model.host.backpressure { hosts as usize } else { 0 }],
        now: Time::ZERO,
        acted: false,
        finished: None,
        classes,
        early_letters: Vec::new(),
        replicated_events: 0,
        ahead: (looks_ahead && selector.is_none()).then(Box::default),
        selector,
    };
    let workloads = traffic.infos;
    let endless = traffic.endless;
    let faults = faults::listed(model);
    let programs = model.program.len();
    Ok(Build {
        world,
        workloads,
        watched,
        named,
        warmup: model.run.warmup,
        horizon,
        endless,
        faults,
        programs,
    })
}

/// Captures the watched ports; all, where none is watched.
fn tap(room: u64, network: &Network, watched: &[WatchedQueue]) -> Tap {
    let links = network.links().len();
    let named = |port| (port, port_name(network, port));
    if watched.is_empty() {
        Tap::new(room, links, (0..links as u32).map(PortId).map(named))
    } else {
        Tap::new(room, links, watched.iter().map(|watched| named(watched.port)))
    }
}

impl Build {
    /// Reads the world when its run has ended.
    pub(crate) fn finish(mut self, end: Time) -> Outcome {
        self.world.settle(end);
        self.finish_settled(end)
    }

    /// Reads the settled world, which may have been put together.
    pub(crate) fn finish_settled(mut self, end: Time) -> Outcome {
        self.world.assert_conservation();
        let connections = self.connections(end);
        let queues = self.queues(end);
        let links = links::totals(std::mem::take(&mut self.named), &self.world, end);
        let world = self.world;
        let mut recorder = world.recorder;
        let goodput = recorder.goodput();
        recorder.messages.sort_unstable_by_key(|message| (message.workload, message.index));
        recorder.queries.sort_unstable_by_key(|query| (query.workload, query.index));
        recorder.observations.sort_unstable_by_key(|seen| (seen.workload, seen.index));
        let mut counters = world.wires.counters;
        counters.retransmissions = connections.iter().map(|connection| connection.retransmissions).sum();
        counters.timeouts = connections.iter().map(|connection| connection.timeouts).sum();
        let mut warnings = Vec::new();
        if self.programs > 0 {
            let programs = self.programs;
            let text = "not simulated, and neither is what it sends: `plimsoll emulate` runs it";
            warnings.push(format!("`program`: {programs} in the scenario, {text}"));
        }
        if end >= self.horizon && !self.endless {
            warnings
                .push(format!("the run ended at {end} with messages unfinished; `run.drain` allows longer"));
        }
        Outcome {
            workloads: self.workloads,
            tiers: world.network.tiers().iter().map(|&tier| tier.to_owned()).collect(),
            end,
            warmup: self.warmup,
            messages: recorder.messages,
            queries: recorder.queries,
            observations: recorder.observations,
            extra: recorder.extra,
            queues,
            links,
            connections,
            series: recorder.series,
            goodput,
            counters,
            faults: self.faults,
            capture: world.tap.map(|tap| tap.into_capture()).unwrap_or_default(),
            warnings,
        }
    }

    fn connections(&mut self, end: Time) -> Vec<outcome::Connection> {
        let closed = std::mem::take(&mut self.world.recorder.closed);
        let world = &mut self.world;
        let mut records = Vec::with_capacity(world.connections.len());
        for number in 0..world.connections.len() {
            let record = match &world.connections[number] {
                Some(connection) => connection_record(connection),
                None => closed.get(&(number as u32)).cloned().unwrap_or_default(),
            };
            records.push(record);
        }
        for host in 0..world.network.hosts() as usize {
            let counts = match world.pacers.get(host) {
                Some(pacer) => Some(pacer.flows().counts(end).collect()),
                None => world.ports[host].head_pacer().map(|pacer| pacer.counts(end)),
            };
            for (flow, counts) in counts.into_iter().flatten() {
                let record = &mut records[flow as usize];
                record.pacer_associations += counts.associations - counts.renewals;
                record.pacer_renewals += counts.renewals;
                record.pacer_dissociations += counts.dissociations;
            }
        }
        records
    }

    fn queues(&mut self, end: Time) -> Vec<outcome::Queue> {
        let mut queues = Vec::new();
        // A port may be watched under several names.
        let mut readings: BTreeMap<PortId, MeterReading> = BTreeMap::new();
        for watched in &self.watched {
            let link = *self.world.network.link(watched.port);
            let read = self.world.ports[watched.port.0 as usize].take_meter(end);
            let Some(reading) = read.or_else(|| readings.get(&watched.port).cloned()) else { continue };
            readings.entry(watched.port).or_insert_with(|| reading.clone());
            queues.push(outcome::Queue {
                name: watched.name.clone(),
                port: port_name(&self.world.network, watched.port),
                rate: link.rate,
                every: watched.every,
                from: reading.from,
                mean_bytes: reading.mean_bytes,
                max_bytes: reading.max_bytes,
                time_at: reading.time_at,
                drops: reading.drops,
                marks: reading.marks,
                packets: reading.packets,
                bytes: reading.bytes,
            });
        }
        queues
    }
}
