//! A scenario's model, run between namespaces: from the check to the [`Outcome`].

use std::sync::Arc;

use plimsoll_circuits::Estimator;
use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::PortId;
use plimsoll_fabric::net::topology::HostNics;
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::words;
use plimsoll_scenario::model::{Completion, Model, Rank, Topology};
use plimsoll_units::{Span, Time};

use crate::agents::agent::{AgentContext, AgentPlan, AgentThreads, Counts};
use crate::agents::cgroups;
use crate::agents::programs::{ProgramEnd, Programs};
use crate::agents::shell::Shell;
use crate::clock::Clock;
use crate::edge::capture::FrameCapture;
use crate::edge::live::{LiveFabric, replay};
use crate::edge::taps::Taps;
use crate::edge::{Edge, EdgeCounts};
use crate::features;
use crate::net::multipath::{self, ActiveSubflows, MultipathCounts};
use crate::net::namespaces::Namespaces;
use crate::net::qjump::{self, ExcessPackets, Limiters};
use crate::read_outs::control;
use crate::read_outs::demand::{Readings, SocketReader};
use crate::read_outs::hints::{Announcements, SourceHints};
use crate::read_outs::lateness::Spread;
use crate::read_outs::machine::{MachineStart, TakenShares};
use crate::read_outs::series::WindowSeries;
use crate::read_outs::suspect;
use crate::urgent::Urgent;

mod laid_out;
mod observed;
mod options;
mod transports;

use laid_out::LaidOut;
use observed::{of_circuits, of_congestion, of_program, take, warnings};
pub use options::{EmulateError, Options};
use transports::KernelTransports;

/// The result of an emulated run.
#[derive(Debug)]
pub struct Emulated {
    /// The outcome, in the form of a simulated run's.
    pub outcome: Outcome,
    /// Lateness of the frames handed to their hosts.
    pub lateness: Spread,
    /// The time that each frame waited in queues and pacers of the fabric.
    pub waited: Spread,
    /// The number of frames that were not for the fabric, such as frames to groups, and that the edge does not answer.
    pub foreign: u64,
    /// The time from the first step to the first frame that could pass.
    pub startup: Span,
    /// True if the replay gave the same digest; `None` if no replay was requested.
    pub verified: Option<bool>,
    /// The packets beyond their level's share, where hosts have QJump's limiter.
    pub excess: Option<ExcessPackets>,
    /// The hosts' counters of MPTCP, where connections use it.
    pub multipath: Option<MultipathCounts>,
    /// The exit of each program.
    pub programs: Vec<ProgramEnd>,
    /// The readings of the hosts' sockets, where the controller of circuits takes its demand from them.
    pub readings: Option<Readings>,
}

/// The interval at which the shell is checked for its end.
const SHELL_LOOKED_AFTER: Span = Span::from_ms(20);

/// Checks that `model` can be emulated on this system with `options`. Nothing is created.
///
/// # Errors
/// Names the feature that the system lacks, or the part of the model that cannot be emulated.
pub fn check(model: &Model, options: &Options) -> Result<(), EmulateError> {
    let missing = features::missing()?;
    if !missing.is_empty() {
        return Err(EmulateError::Missing(missing.iter().map(|feature| feature.name).collect()));
    }
    let refuse = |key: &str, problem: &str| {
        Err(Unbuildable { key: key.to_owned(), problem: format!("{problem} is not emulated") }.into())
    };
    if model.run.approximate().is_some() {
        return refuse("run.approximate", "a sample of links");
    }
    let host = &model.host;
    if host.bursts().is_some() {
        return refuse("host.bursts", "a model of offloads, where real hosts are,");
    }
    if host.processor().is_some() {
        return refuse("host.processor", "a model of a processor, where real hosts have one,");
    }
    if host.reorder_buffer().is_some() {
        return refuse("host.reorder_buffer", "a buffer before the kernel's TCP");
    }
    if model.topology.nics() != HostNics::One {
        return refuse("topology", "a host with several NICs");
    }
    if let Topology::Hybrid(hybrid) = &model.topology {
        if hybrid.packet.is_some() {
            return refuse("topology.packet", "a packet network of its own beside circuits");
        }
        if hybrid.circuit_uplinks > 1 {
            return refuse("topology.circuit_uplinks", "a host with several circuits at a time");
        }
    }
    let has_dscp = !(host.dscp.is_empty() && host.dscp_to_priority.is_empty());
    if has_dscp && (host.qjump().is_some() || control::control(model).is_some()) {
        return refuse("host.dscp", "a DSCP beside QJump's limiter or circuits, which use its bits,");
    }
    qjump::check(model)?;
    check_circuits(model)?;
    if let Some(program) = options.programs.iter().find(|program| words(&program.command).is_none()) {
        let problem = format!("`{}` is no program with arguments: a quote may have no end", program.command);
        return Err(Unbuildable { key: "program".to_owned(), problem }.into());
    }
    if options.programs.iter().any(|program| program.level.is_some())
        && let Some(problem) = cgroups::lacks(host.qjump().is_some())
    {
        return Err(Unbuildable { key: "program.level".to_owned(), problem }.into());
    }
    if let Some(key) = key_of_telemetry(model) {
        return refuse(&key, "telemetry, which the kernel's transports neither read nor return,");
    }
    if !host.priority_by_size.is_empty() {
        return refuse("host.priority_by_size", "a priority by the size of a message");
    }
    let ports = model.topology.tiers().iter().map(|tier| model.port.of_tier(tier));
    if ports.chain([&model.port.host]).any(|port| port.pfabric().is_some()) && host.rank != Rank::Priority {
        return refuse("host.rank", "a rank that only the transport knows (only `priority`)");
    }
    if let Some((name, _)) = model.workload.iter().find(|(_, workload)| workload.params().repeats()) {
        return refuse(&format!("workload.{name}.run.repeat"), "a round that is replayed");
    }
    if model.observe.completion != Completion::Delivered {
        return refuse("observe.completion", "completion by acknowledgement");
    }
    let transports = KernelTransports::new(model, options)?;
    AgentPlan::new(model)?;
    let fabric = LiveFabric::new(model)?;
    let is_hybrid = control::control(model).is_some();
    let check = |subflows| multipath::check(fabric.network(), is_hybrid, subflows);
    transports.subflows.map_or(Ok(()), check)?;
    Ok(())
}

/// Returns the key of the first table by which ports write telemetry into packets.
fn key_of_telemetry(model: &Model) -> Option<String> {
    let tiers = model.topology.tiers().iter().map(|tier| (*tier, model.port.of_tier(tier)));
    let all = [("host", &model.port.host), ("switch", &model.port.switch)].into_iter().chain(tiers);
    all.filter(|(_, port)| port.int().is_some()).map(|(name, _)| format!("port.{name}.int")).next()
}

/// Checks that the control loop of a hybrid network's circuits can be emulated.
fn check_circuits(model: &Model) -> Result<(), Unbuildable> {
    let Some(control) = control::control(model) else { return Ok(()) };
    let refuse = |key: &str, problem: &str| {
        Err(Unbuildable { key: format!("circuits.{key}"), problem: problem.to_owned() })
    };
    if control.estimator == Estimator::SendCalls {
        let problem = "what programs have passed to `send` is not known beyond what their sockets hold: \
                       `socket_buffers` counts that";
        return refuse("estimator", problem);
    }
    if model.host.qjump().is_some() && !(control.packet_only.is_empty() && control.circuit_only.is_empty()) {
        let problem =
            "QJump's limiter writes the DSCP, which would have to say by which switches a workload travels";
        return refuse("packet_only", problem);
    }
    Ok(())
}

/// Runs `model` between namespaces. The run ends when its work is done, at its latest time, or when `stops` returns
/// true.
///
/// # Errors
/// Fails as [`check`] does, and if the system refuses an operation, or a program fails. Nothing is left behind.
pub fn emulate(
    model: &Model,
    options: &Options,
    mut stops: impl FnMut() -> bool,
) -> Result<Emulated, EmulateError> {
    check(model, options)?;
    let begun = Clock::start();
    let (laid_out, sources) = LaidOut::of(model, options)?;
    let LaidOut { plan, lead, .. } = &laid_out;
    let fabric = laid_out.fabric()?;
    let hosts = fabric.hosts();
    let (namespaces, taps) = Namespaces::create(hosts, &laid_out.host_settings(model))?;
    let limiters = Limiters::attach(model, &namespaces)?;
    let startup = begun.now().saturating_since(Time::ZERO);
    let clock = Clock::start();
    let names = (0..hosts).map(|host| namespaces.name(host).to_owned()).collect();
    let settings = laid_out.agent_settings(model, clock)?;
    let (network, transports) = (fabric.network().clone(), laid_out.transports.of_workloads.clone());
    let hints = laid_out.takes_hints().then(Arc::<SourceHints>::default);
    let place = Arc::new(AgentContext { settings, names, network, transports, hints: hints.clone() });
    let agents = AgentThreads::start(plan, &place, sources)?;
    let programs = Programs::start(&options.programs, &place.names, &place.settings, model.run.duration)?;
    let mut edge = Edge::new(fabric, Taps::new(taps, clock)?, laid_out.transports.mtu(), options.spin);
    if options.verify {
        edge.keep_log();
    }
    if laid_out.keeps_one_active() {
        edge.activate_subflows(ActiveSubflows::start(&namespaces, hosts)?);
    }
    // With other rules a flow has no path of its own.
    let subflows = laid_out.transports.subflows;
    if subflows.is_some() && control::control(model).is_none() && model.paths.mechanisms().active().is_empty()
    {
        edge.keep_flows();
    }
    if let Some(to) = &options.capture {
        edge.capture(FrameCapture::start(to, hosts)?);
    }
    let series = model.observe.flow_series;
    let series = series.map(|every| WindowSeries::new(hosts, every, Time::ZERO + *lead));
    let announced = hints.map(|hints| Announcements::open(hints, &namespaces, hosts)).transpose()?;
    let reader = laid_out
        .read_by()
        .map(|control| SocketReader::start(control, &namespaces, hosts, clock, series, announced));
    let reader = reader.transpose()?.map(|(reader, readings)| {
        edge.read_sockets(readings);
        reader
    });
    let shell = options.shell.map(|host| Shell::open(&place.names[host as usize])).transpose()?;
    let carried = carry(&mut edge, &laid_out, &agents, &programs, shell, &mut stops)?;
    edge.keep_subflows()?;
    let programs = programs.finish()?;
    let mut readings = reader.map(SocketReader::finish).transpose()?;
    let failure = agents.failure();
    let records = agents.finish();
    if let Some(failure) = failure {
        return Err(EmulateError::Agent(failure));
    }
    if let Some(missing) = carried.late {
        let text = format!(
            "the connections of {missing} workloads were not open after {lead}; this machine is too busy"
        );
        return Err(EmulateError::Agent(text));
    }
    let (counts, multipath) = counted(&namespaces, hosts, subflows.is_some())?;
    let excess = limiters.excess()?;
    drop(namespaces);

    let (mut fabric, mut seen) = edge.finish();
    let left_out = seen.capture.take().map_or(Ok(0), FrameCapture::finish)?;
    let verified = match &seen.log {
        Some(log) => Some(replay(laid_out.fabric()?, log, carried.end) == fabric.digest()),
        None => None,
    };
    let mut outcome = laid_out.outcome(model, &mut fabric, carried.end);
    outcome.counters.retransmissions = counts.retransmissions;
    outcome.counters.timeouts = counts.timeouts;
    take(records, &mut outcome);
    let series = readings.as_mut().and_then(|readings| readings.series.take());
    let is_sampled = series.is_some();
    outcome.series =
        series.map_or_else(Vec::new, |series| series.of(&outcome.connections, Time::ZERO + *lead));
    outcome.warnings = warnings(model, &seen, counts, verified, is_sampled);
    outcome.warnings.extend(laid_out.transports.mtu_warnings());
    outcome.warnings.extend(programs.iter().filter_map(of_program));
    outcome.warnings.extend(of_congestion(options, laid_out.transports.guarded()));
    let whom = laid_out.multipath_connections();
    let of_multipath =
        subflows.zip(multipath).map(|(subflows, counts)| multipath::said(&whom, subflows, counts));
    outcome.warnings.extend(of_multipath.into_iter().flatten());
    let flows = seen.flows.take().unwrap_or_default();
    outcome.warnings.extend(multipath::shared_paths(fabric.network(), &flows));
    outcome.warnings.extend(readings.iter().filter_map(Readings::suspect));
    outcome.warnings.extend(readings.iter_mut().filter_map(|readings| readings.hints_rejected.take()));
    outcome.warnings.extend(of_circuits(fabric.circuit_losses()));
    let fastest = (0..hosts).map(|host| fabric.network().link(PortId(host)).rate).max();
    outcome.warnings.extend(fastest.and_then(|rate| suspect::lateness(&seen, carried.taken, rate)));
    // A level of QJump holds messages back in their hosts.
    if let Some(rate) = fastest.filter(|_| model.host.qjump().is_none()) {
        let segment = |workload: usize| laid_out.transports.of_workloads[workload].config.segment;
        outcome.warnings.extend(suspect::slowdown(&outcome, &seen.waited, segment, rate));
    }
    if left_out > 0 {
        outcome.warnings.push(format!("the captures lack {left_out} frames, which were not written in time"));
    }
    if carried.is_latest && outcome.messages.iter().any(|message| message.completed.is_none()) {
        let text =
            format!("the run ended at {} with messages unfinished; `run.drain` allows longer", outcome.end);
        outcome.warnings.push(text);
    }
    let EdgeCounts { lateness, waited, foreign, .. } = seen;
    Ok(Emulated {
        outcome,
        lateness,
        waited,
        foreign,
        startup,
        verified,
        excess,
        multipath,
        programs,
        readings,
    })
}

/// Result of the live phase of a run.
struct LivePhase {
    end: Time,
    /// The run ended because it had taken as long as it may.
    is_latest: bool,
    /// The number of workloads whose connections were not open when they were to begin.
    late: Option<usize>,
    /// The time that the machine has taken from the fabric's thread.
    taken: TakenShares,
}

/// Lets the fabric carry frames until the work is done, the shell has ended, or `stops` returns true.
fn carry(
    edge: &mut Edge<Taps>,
    laid_out: &LaidOut,
    agents: &AgentThreads,
    programs: &Programs,
    mut shell: Option<Shell>,
    stops: &mut dyn FnMut() -> bool,
) -> Result<LivePhase, EmulateError> {
    let LaidOut { plan, lead, .. } = laid_out;
    let mut shell_looked = Time::ZERO;
    let origin = Time::ZERO + *lead;
    let latest = if shell.is_some() { Time::MAX } else { plan.horizon.saturating_add(*lead) };
    let mut late = None;
    let mut began = false;
    let urgent = Urgent::begin()?;
    let machine = MachineStart::watch();
    let end = edge.run(|now| {
        if now >= origin && !std::mem::replace(&mut began, true) {
            late = Some(agents.missing()).filter(|missing| *missing > 0);
        }
        if let Some(shell) = &mut shell {
            // Asking the system takes longer than a frame.
            let looks = now.saturating_since(shell_looked) > SHELL_LOOKED_AFTER;
            return stops()
                || agents.has_failed()
                || looks && {
                    shell_looked = now;
                    shell.has_ended()
                };
        }
        let finished = agents.is_done() && !plan.endless && programs.are_over();
        stops() || now >= latest || finished || agents.has_failed() || late.is_some()
    })?;
    let taken = machine.taken();
    drop((urgent, shell));
    Ok(LivePhase { end, is_latest: end >= latest && !plan.endless, late, taken })
}

/// Returns the counters of all hosts' kernels.
fn counted(
    namespaces: &Namespaces,
    hosts: u32,
    has_multipath: bool,
) -> Result<(Counts, Option<MultipathCounts>), EmulateError> {
    let mut counts = Counts::default();
    let mut multipath = has_multipath.then(MultipathCounts::default);
    for host in 0..hosts {
        if let Some(counts) = &mut multipath {
            *counts += namespaces.inside(host, MultipathCounts::read)?;
        }
        let of_host = namespaces.inside(host, Counts::read)?;
        counts.retransmissions += of_host.retransmissions;
        counts.timeouts += of_host.timeouts;
        counts.lost += of_host.lost;
        counts.unread += of_host.unread;
    }
    Ok((counts, multipath))
}
