//! A model becomes a world, and a world that has run becomes an outcome.

use std::collections::BTreeMap;

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::PortId;
use plimsoll_fabric::{BlockedFlow, CircuitLosses, Fabric, FabricSpec, number_name, port_name};
use plimsoll_results::mechanism_uses::Counted;
use plimsoll_results::outcome::{self, BlockedTraffic, BlockedWorkload, Outcome, WorkloadInfo};
use plimsoll_results::replay::ReplayWindow;
use plimsoll_scenario::model::{Fault, Model};
use plimsoll_traffic::Traffic;
use plimsoll_units::{Rate, Span, Streams, Time};

use crate::capacity;
use crate::error::RunError;
use crate::hosts::Hosts;
use crate::hosts::datagram_workload;
use crate::link_names::LinkNames;
use crate::look_ahead::LookAhead;
use crate::observe::RunRecorder;
use crate::packet_capture::PacketCapture;
use crate::packet_recorder::PacketRecorder;
use crate::progress::Progress;
use crate::rules::Rules;
use crate::sim_hooks::{SimFabric, SimHooks};
use crate::sources::Sources;
use crate::world::{SAMPLING_CLOCK, World};

/// A world that is ready to run, and the facts that its outcome needs afterwards.
pub(crate) struct BuiltWorld {
    pub(crate) world: World,
    workloads: Vec<WorkloadInfo>,
    /// The names of links, where links are counted or messages say where they waited.
    link_names: Option<LinkNames>,
    /// The highest rate that a fault gives a link, which may be above the link's own.
    fastest_fault: Rate,
    warmup: Span,
    horizon: Time,
    endless: bool,
    faults: Vec<outcome::FaultRecord>,
    /// The number of the scenario's programs, which only an emulated run has.
    programs: usize,
    /// The mechanisms whose actions are counted.
    counted: Counted,
    /// Hosts have processors, whose totals are in the outcome.
    has_processors: bool,
}

pub(crate) fn build(model: &Model) -> Result<BuiltWorld, RunError> {
    build_with(model, None)
}

/// Runs `model` on one thread, whole.
pub(crate) fn run_whole(
    model: &Model,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Outcome, RunError> {
    let mut build = build(model)?;
    let end = build.world.run(progress)?;
    Ok(build.finish(end))
}

/// Builds the run of `model` with an observer of its packets.
pub(crate) fn build_recording(model: &Model, window: ReplayWindow) -> Result<BuiltWorld, RunError> {
    build_with(model, Some(window))
}

fn build_with(model: &Model, window: Option<ReplayWindow>) -> Result<BuiltWorld, RunError> {
    let streams = Streams::new(model.run.seed);
    let spec = model.fabric_spec()?;
    let hooks = SimHooks {
        capture: model.observe.packets.map(|room| Box::new(packet_capture(room, &spec))),
        recorder: window.map(|window| Box::new(PacketRecorder::new(window, &spec.network))),
        lost_types: model.families().any(|family| family.carrier.is_nic()).then(BTreeMap::new),
        ..SimHooks::default()
    };
    let counted = Counted::of(&spec);
    let mut fabric = Fabric::build(spec, &streams, hooks)?;
    let recorder = RunRecorder::new(model.observe.flow_series);
    if let Some(first) = recorder.first_sample() {
        fabric.schedule(first, Owner::new(OwnerKind::Clock, SAMPLING_CLOCK));
    }
    let traffic = Traffic::new(&model.traffic_spec(), &streams)?;
    let hosts = Hosts::new(model, &fabric, &traffic.sources)?;
    let ahead = LookAhead::for_network(fabric.ports().len());
    let names_links = fabric.counts_links() || traffic.sources.iter().any(|source| source.follows_waits());
    Ok(BuiltWorld {
        link_names: names_links.then(|| LinkNames::new(&model.topology, fabric.network())),
        fastest_fault: model.fault.iter().filter_map(|fault| fault.rate).max().unwrap_or(Rate::ZERO),
        warmup: model.run.warmup,
        horizon: traffic.horizon(),
        endless: traffic.endless,
        faults: model.fault.iter().map(listed).collect(),
        programs: model.program.len(),
        counted,
        has_processors: model.host.processor().is_some(),
        world: World {
            rules: rules(&fabric, &traffic),
            fabric,
            hosts,
            sources: Sources::new(traffic.sources),
            recorder,
            now: Time::ZERO,
            finished: None,
            ahead,
        },
        workloads: traffic.infos,
    })
}

fn rules(fabric: &SimFabric, traffic: &Traffic) -> Rules {
    let propagations = fabric.network().links().iter().map(|link| link.propagation);
    Rules {
        horizon: traffic.horizon(),
        stop_when_finished: !traffic.endless,
        grace: propagations.min().unwrap_or_default(),
    }
}

/// Captures the packets of the watched ports; of all ports, where none is watched.
fn packet_capture(room: u64, spec: &FabricSpec) -> PacketCapture {
    let links = spec.network.links().len();
    let named = |port| (port, port_name(&spec.network, port, &number_name));
    if spec.watched.is_empty() {
        PacketCapture::new(room, links, (0..links as u32).map(PortId).map(named))
    } else {
        PacketCapture::new(room, links, spec.watched.iter().map(|watched| named(watched.port)))
    }
}

/// Lists a fault as the outcome has it.
fn listed(fault: &Fault) -> outcome::FaultRecord {
    outcome::FaultRecord {
        link: fault.link_name(),
        from: Time::ZERO + fault.at,
        until: fault.until.map(|until| Time::ZERO + until),
        rate: fault.rate,
    }
}

impl BuiltWorld {
    /// Reads the world when its run has ended.
    pub(crate) fn finish(mut self, end: Time) -> Outcome {
        self.world.settle(end);
        self.finish_settled(end)
    }

    /// Reads the settled world, which logical processes may have been merged into.
    pub(crate) fn finish_settled(mut self, end: Time) -> Outcome {
        self.world.fabric.assert_conservation();
        let connections = self.world.hosts.records(&mut self.world.fabric, end);
        let warnings = self.warnings(end);
        let readings = self.world.fabric.link_readings(end);
        let blocked = BlockedTraffic {
            tiers: self.link_names.as_ref().map_or_else(Vec::new, |names| names.blocked(&readings)),
            workloads: self.blocked_workloads(),
        };
        let World { mut fabric, mut recorder, hosts, .. } = self.world;
        let goodput = hosts.goodput();
        let delivered = hosts.delivered(end);
        recorder.records.sort();
        let mut counters = *fabric.counters();
        counters.retransmissions = connections.iter().map(|connection| connection.retransmissions).sum();
        counters.timeouts = connections.iter().map(|connection| connection.timeouts).sum();
        counters.set_types(&hosts.packet_types(&fabric));
        capacity::check(fabric.network(), self.fastest_fault, &connections, &readings, end);
        let mechanisms = self.counted.uses(&counters, &fabric.buffer_uses());
        let circuits = fabric.take_circuit_log(end).unwrap_or_default();
        let waits = &recorder.records.path_waits;
        let tiers = fabric.network().wait_places();
        let path_waits = self.link_names.as_ref().map(|names| names.path_waits(waits, tiers));
        let links = self.link_names.map(|names| names.totals(readings));
        Outcome {
            workloads: self.workloads,
            tiers: fabric.network().wait_places().iter().map(|&tier| tier.to_owned()).collect(),
            end,
            warmup: self.warmup,
            messages: recorder.records.messages,
            queries: recorder.records.queries,
            observations: recorder.records.observations,
            extra: recorder.records.extra,
            iterations: recorder.records.iterations,
            ranks: recorder.records.ranks,
            operations: recorder.records.operations,
            path_waits: path_waits.unwrap_or_default(),
            repeats: recorder.records.repeats,
            queues: fabric.take_queues(end),
            links: links.unwrap_or_default(),
            processors: hosts.processors(self.has_processors, end),
            circuits: circuits.circuits,
            circuit_weeks: circuits.weeks,
            connections,
            series: recorder.series,
            goodput,
            delivered,
            counters,
            faults: self.faults,
            capture: fabric.hooks_mut().capture.take().map(|kept| kept.into_capture()).unwrap_or_default(),
            warnings,
            mechanisms,
            blocked,
            approximation: None,
        }
    }

    /// Adds up the blocked flows of each workload, in the order of the workloads; only workloads with such flows.
    fn blocked_workloads(&self) -> Vec<BlockedWorkload> {
        let mut by_workload: BTreeMap<u16, (u64, Span, u64, Span)> = BTreeMap::new();
        for BlockedFlow { flow, blocked, is_victim } in self.world.fabric.blocked_flows() {
            let (flows, all, victims, of_victims) = by_workload.entry(self.workload_of(flow)).or_default();
            (*flows, *all) = (*flows + 1, *all + blocked);
            if is_victim {
                (*victims, *of_victims) = (*victims + 1, *of_victims + blocked);
            }
        }
        let named =
            |(workload, (flows, all, victims, of_victims)): (u16, (u64, Span, u64, Span))| BlockedWorkload {
                workload: self.workloads[usize::from(workload)].name.clone(),
                flows,
                victims,
                blocked_ns: all.as_ps() / 1_000,
                victims_blocked_ns: of_victims.as_ps() / 1_000,
            };
        by_workload.into_iter().map(named).collect()
    }

    /// Returns the caveats that a reader needs before trusting the outcome.
    fn warnings(&self, end: Time) -> Vec<String> {
        let mut warnings = Vec::new();
        if self.programs > 0 {
            let programs = self.programs;
            let text = "not simulated, and neither is what it sends: `plimsoll emulate` runs it";
            warnings.push(format!("`program`: {programs} in the scenario, {text}"));
        }
        warnings.extend(self.circuit_warning());
        let sources = self.workloads.iter().zip(&self.world.sources.workloads);
        warnings.extend(
            sources.filter_map(|(info, source)| Some(format!("`{}`: {}", info.name, source.caveat()?))),
        );
        if self.endless {
            return warnings;
        }
        if end >= self.horizon {
            warnings
                .push(format!("the run ended at {end} with messages unfinished; `run.drain` allows longer"));
        }
        warnings.extend(self.waiting_jobs(end));
        // Also of a run in which nothing was left to happen.
        let World { hosts, fabric, recorder, .. } = &self.world;
        let unfinished = hosts.unfinished(fabric);
        if unfinished.count() > 0 {
            let of_nics =
                recorder.records.messages.iter().filter(|message| hosts.is_carried_by_nics(message.workload));
            let (all, count) = (of_nics.count(), unfinished.count());
            warnings.push(format!("{count} of {all} messages that NICs carry did not finish: {unfinished}"));
        }
        warnings
    }

    /// Returns a warning of each job with operations that have not ended, although nothing is left to happen.
    fn waiting_jobs(&self, end: Time) -> impl Iterator<Item = String> + '_ {
        let jobs = self.workloads.iter().zip(&self.world.sources.workloads);
        let waiting = jobs.filter(move |(info, source)| {
            end < self.horizon && !info.groups.is_empty() && !source.is_finished()
        });
        waiting.map(|(info, _)| {
            format!(
                "`{}` has an iteration that never ended: messages were lost for good, or operations wait for each \
                 other, such as receives of any sender, and sends larger than `run.costs.eager`",
                info.name
            )
        })
    }

    /// Returns the warning of packets that the circuit switch has lost: a controller that works loses none.
    fn circuit_warning(&self) -> Option<String> {
        let losses = self.world.fabric.circuit_losses().filter(|losses| losses.total() > 0)?;
        let CircuitLosses { dark, unmatched } = losses;
        Some(format!(
            "the circuit switch lost {} packets: {dark} while it was dark, {unmatched} by a circuit to another host; \
             a longer `circuits.drain` gives what is on its way time to pass",
            losses.total()
        ))
    }

    /// Returns the name of workload number `workload`.
    pub(crate) fn workload_name(&self, workload: usize) -> &str {
        &self.workloads[workload].name
    }

    /// Returns the number of the workload that a flow belongs to; of a flow that is unknown, the first.
    pub(crate) fn workload_of(&self, flow: u32) -> u16 {
        datagram_workload(flow)
            .unwrap_or_else(|| self.world.hosts.workload_of(self.world.fabric.network(), flow))
    }
}
