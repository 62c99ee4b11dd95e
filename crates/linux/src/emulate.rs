//! A scenario's model, run between namespaces: from the check to the [`Outcome`].

use std::io;
use std::sync::Arc;

use plimsoll_fabric::engine::Streams;
use plimsoll_fabric::net::PortId;
use plimsoll_mechanisms::tcp::{Config, Recovery, TransportParams};
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::model::words;
use plimsoll_scenario::model::{Completion, Model, Rank};
use plimsoll_units::{Span, Time};
use plimsoll_wiring::Unbuildable;
use plimsoll_workloads::Traffic;

use crate::agent::plan::Plan;
use crate::agent::{Agents, Counts, Place, Settings, Shares};
use crate::capture::{Capture, CaptureTo};
use crate::cgroups;
use crate::clock::Clock;
use crate::congestion::{CongestionControl, NoCongestionControl};
use crate::edge::Edge;
use crate::features;
use crate::lateness::Spread;
use crate::live::{LiveFabric, replay};
use crate::machine::Machine;
use crate::multipath::{self, MultipathCounts};
use crate::namespaces::{HostSettings, Namespaces};
use crate::programs::{Program, ProgramEnd, Programs};
use crate::qjump::{self, Excess, Limiters};
use crate::shell::Shell;
use crate::suspect;
use crate::taps::Taps;
use crate::urgent::Urgent;

mod observed;

use observed::{connections, listed, messages, of_congestion, of_program, take, warnings};

/// How to emulate.
#[derive(Clone, Default, Debug)]
pub struct Options {
    /// How long before an event the edge stops sleeping.
    pub spin: Span,
    /// Keep what comes in, and see that its replay gives the digest of the run.
    pub verify: bool,
    /// Programs to run in hosts.
    pub programs: Vec<Program>,
    /// The congestion control of this kernel to use in place of the scenario's.
    pub congestion_control: Option<String>,
    /// Connections of the agent are of MPTCP, with up to so many subflows ([`crate::SUBFLOWS`]).
    pub mptcp: Option<u8>,
    /// A host in which a shell opens, until whose end the run goes on.
    pub shell: Option<u32>,
    /// Where to keep the frames of all hosts.
    pub capture: Option<CaptureTo>,
}

/// What came of it.
#[derive(Debug)]
pub struct Emulated {
    /// As of a simulated run.
    pub outcome: Outcome,
    /// How long after its time each frame was handed to its host.
    pub lateness: Spread,
    /// How long each waited in queues and pacers of the fabric.
    pub waited: Spread,
    /// Frames that were not for the fabric, such as those to groups, and no question that the edge answers.
    pub foreign: u64,
    /// From the first step to the first frame that could pass.
    pub startup: Span,
    /// Whether the replay gave the same digest, where it was asked for.
    pub verified: Option<bool>,
    /// Packets beyond their level's share, where hosts have QJump's limiter.
    pub excess: Option<Excess>,
    /// What the hosts have counted of MPTCP, where connections are of it.
    pub multipath: Option<MultipathCounts>,
    /// How the programs ended.
    pub programs: Vec<ProgramEnd>,
}

/// Why there is no outcome.
#[derive(Debug, thiserror::Error)]
pub enum EmulateError {
    /// The system lacks something.
    #[error("emulating needs {}; run it as root. `plimsoll check` lists all", .0.join(", "))]
    Missing(Vec<&'static str>),
    /// The kernel lacks the congestion control.
    #[error(transparent)]
    NoCongestionControl(#[from] NoCongestionControl),
    /// The model cannot be emulated.
    #[error(transparent)]
    Unbuildable(#[from] Unbuildable),
    /// The system refused something.
    #[error("cannot emulate: {0}")]
    System(#[from] io::Error),
    /// A program of the hosts failed.
    #[error("{0}")]
    Agent(String),
}

/// Time for connections to be opened before workloads begin.
const LEAD: Span = Span::from_ms(500);
const LEAD_PER_CONNECTION: Span = Span::from_ms(1);

/// How often to look whether the shell has ended.
const SHELL_LOOKED_AFTER: Span = Span::from_ms(20);

/// TCP's header and IPv4's, without options; and with the timestamps option.
const PLAIN_HEADER: u64 = 40;
const TIMESTAMPS_HEADER: u64 = 52;
const ETHERNET_HEADER: u64 = 14;
/// Smallest and largest MTU that hosts get (RFC 791; a frame is read whole).
const MTU: std::ops::RangeInclusive<u64> = 576..=65_500;

/// Whether `model` can be emulated here as `options` say. Makes nothing.
///
/// # Errors
/// Says what the system or the model lacks.
pub fn check(model: &Model, options: &Options) -> Result<(), EmulateError> {
    let missing = features::missing();
    if !missing.is_empty() {
        return Err(EmulateError::Missing(missing.iter().map(|feature| feature.name).collect()));
    }
    let refuse = |key: &str, problem: &str| {
        Err(Unbuildable { key: key.to_owned(), problem: format!("{problem} is not emulated") }.into())
    };
    let host = &model.host;
    if host.bursts().is_some() {
        return refuse("host.bursts", "a model of offloads, where real hosts are,");
    }
    qjump::check(model)?;
    if let Some(program) = options.programs.iter().find(|program| words(&program.command).is_none()) {
        let problem = format!("`{}` is no program with arguments: a quote may have no end", program.command);
        return Err(Unbuildable { key: "program".to_owned(), problem }.into());
    }
    if options.programs.iter().any(|program| program.level.is_some())
        && let Some(problem) = cgroups::lacks(host.qjump().is_some())
    {
        return Err(Unbuildable { key: "program.level".to_owned(), problem }.into());
    }
    if !host.priority_by_size.is_empty() || host.ack_priority.is_some() {
        return refuse("host", "a priority by size or of acknowledgements");
    }
    let ports = model.topology.tiers().iter().map(|tier| model.port.of_tier(tier));
    if ports.chain([&model.port.host]).any(|port| port.pfabric().is_some()) && host.rank != Rank::Priority {
        return refuse("host.rank", "a rank that only the transport knows (only `priority`)");
    }
    let transport = resolved(model)?;
    if transport.recovery == Recovery::Sack
        && model.transport.dup_ack_threshold != TransportParams::default().dup_ack_threshold
    {
        let problem = "with selective acknowledgements Linux finds losses by time (RACK), not by so many duplicate \
                       acknowledgements; `transport.recovery = \"newreno\"` has it count them";
        let key = "transport.dup_ack_threshold".to_owned();
        return Err(Unbuildable { key, problem: problem.to_owned() }.into());
    }
    if model.observe.completion != Completion::Delivered {
        return refuse("observe.completion", "completion by acknowledgement");
    }
    CongestionControl::find(&transport, options.congestion_control.as_deref())?;
    Plan::new(model)?;
    let fabric = LiveFabric::new(model)?;
    options.mptcp.map_or(Ok(()), |subflows| multipath::check(fabric.network(), subflows))?;
    Ok(())
}

/// Runs `model` between namespaces. It ends when its work is done, at its latest time, or when `stops` says so.
///
/// # Errors
/// As [`check`], and if the system refuses something, or a program fails. Nothing stays behind.
pub fn emulate(
    model: &Model,
    options: &Options,
    mut stops: impl FnMut() -> bool,
) -> Result<Emulated, EmulateError> {
    check(model, options)?;
    let begun = Clock::start();
    let plan = Arc::new(Plan::new(model)?);
    let transport = resolved(model)?;
    let congestion = CongestionControl::find(&transport, options.congestion_control.as_deref())?;
    let sources = Traffic::new(model, &Streams::new(model.run.seed))?.workloads;
    let driven = plan.driven.iter().map(|driven| &sources[usize::from(driven.number)]);
    let kept: usize = driven.map(|source| source.kept_connections().len()).sum();
    let lead = LEAD + LEAD_PER_CONNECTION * (plan.lanes.len() + kept) as u64;
    let shifted = shifted(model, lead);
    let fabric = LiveFabric::new(&shifted)?;
    let timestamps = u64::from(transport.header_bytes) >= TIMESTAMPS_HEADER;
    let header = if timestamps { TIMESTAMPS_HEADER } else { PLAIN_HEADER };
    let mtu = (transport.segment + header).clamp(*MTU.start(), *MTU.end()) as u32;
    let hosts = fabric.hosts();
    let (namespaces, taps) = Namespaces::create(
        hosts,
        &HostSettings {
            mtu,
            ecn: transport.ecn || congestion.needs_ecn(),
            congestion_control: congestion.name().to_owned(),
            timestamps,
            min_rto_ms: (model.transport.min_rto.as_ms_f64() as u64).max(1),
            selective_acks: transport.recovery == Recovery::Sack,
            reordering: transport.dup_ack_threshold,
            initial_window: model.transport.initial_window,
            single_segments: model.host.qjump().is_some(),
            subflows: options.mptcp,
        },
    )?;
    let limiters = Limiters::attach(model, &namespaces)?;
    let startup = begun.now().saturating_since(Time::ZERO);
    let clock = Clock::start();
    let names: Vec<String> = (0..hosts).map(|host| namespaces.name(host).to_owned()).collect();
    let congestion_control = congestion.name().to_owned();
    let place = Arc::new(Place {
        settings: Settings {
            congestion_control,
            multipath: options.mptcp.is_some(),
            origin: lead,
            clock,
            shares: Arc::new(match options.mptcp {
                // Its sockets have no pace of their own.
                Some(_) => Shares::default(),
                None => Shares::new(model, transport.segment, ETHERNET_HEADER + header)?,
            }),
        },
        names,
        network: fabric.network().clone(),
        transport,
    });
    let agents = Agents::start(&plan, &place, sources.into_iter().map(Some).collect());
    let programs = Programs::start(&options.programs, &place.names, &place.settings, model.run.duration)?;
    let mut edge = Edge::new(fabric, Taps::new(taps, clock)?, mtu, options.spin);
    if options.verify {
        edge.keep_log();
    }
    if let Some(to) = &options.capture {
        edge.capture(Capture::start(to, hosts)?);
    }
    let mut shell = options.shell.map(|host| Shell::open(&place.names[host as usize])).transpose()?;
    let mut shell_looked = Time::ZERO;
    let origin = Time::ZERO + lead;
    let latest = if shell.is_some() { Time::MAX } else { plan.horizon.saturating_add(lead) };
    let mut late = None;
    let mut began = false;
    let urgent = Urgent::begin()?;
    let machine = Machine::watch();
    let end = edge.run(|now| {
        if now >= origin && !std::mem::replace(&mut began, true) {
            late = Some(agents.missing(&plan)).filter(|missing| *missing > 0);
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
    let programs = programs.finish()?;
    let failure = agents.failure();
    let (done, delivered, records) = agents.finish();
    if let Some(failure) = failure {
        return Err(EmulateError::Agent(failure));
    }
    if let Some(missing) = late {
        let text = format!("{missing} connections were not open after {lead}; this machine is too busy");
        return Err(EmulateError::Agent(text));
    }
    let mut counts = Counts::default();
    let mut multipath = options.mptcp.map(|_| MultipathCounts::default());
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
    let excess = limiters.excess()?;
    drop(namespaces);
    let (mut fabric, mut seen) = edge.finish();
    let left_out = seen.capture.take().map_or(Ok(0), Capture::finish)?;
    let verified = match &seen.log {
        Some(log) => Some(replay(&shifted, log, end)? == fabric.digest()),
        None => None,
    };
    let mut outcome = Outcome {
        workloads: plan.workloads.clone(),
        tiers: fabric.network().tiers().iter().map(|&tier| tier.to_owned()).collect(),
        end: Time::ZERO + end.saturating_since(origin),
        warmup: model.run.warmup,
        queues: fabric.take_queues(lead, end),
        counters: fabric.counters(),
        faults: model.fault.iter().map(listed).collect(),
        ..Outcome::default()
    };
    outcome.counters.retransmissions = counts.retransmissions;
    outcome.counters.timeouts = counts.timeouts;
    outcome.connections = connections(&plan, &delivered);
    (outcome.messages, outcome.queries) =
        messages(model, &plan, &place.transport, &fabric, &done, outcome.end);
    take(records, &mut outcome);
    outcome.warnings = warnings(model, &seen, counts, verified);
    outcome.warnings.extend(programs.iter().filter_map(of_program));
    outcome.warnings.extend(of_congestion(options, congestion.guarded()));
    let of_multipath =
        options.mptcp.zip(multipath).map(|(subflows, counts)| multipath::said(subflows, counts));
    outcome.warnings.extend(of_multipath.into_iter().flatten());
    let fastest = (0..hosts).map(|host| fabric.network().link(PortId(host)).rate).max();
    outcome.warnings.extend(fastest.and_then(|rate| suspect::lateness(&seen, taken, rate)));
    if left_out > 0 {
        outcome.warnings.push(format!("the captures lack {left_out} frames, which were not written in time"));
    }
    if end >= latest && !plan.endless && outcome.messages.iter().any(|message| message.completed.is_none()) {
        let text =
            format!("the run ended at {} with messages unfinished; `run.drain` allows longer", outcome.end);
        outcome.warnings.push(text);
    }
    Ok(Emulated {
        outcome,
        lateness: seen.lateness,
        waited: seen.waited,
        foreign: seen.foreign,
        startup,
        verified,
        excess,
        multipath,
        programs,
    })
}

fn resolved(model: &Model) -> Result<Config, Unbuildable> {
    model.transport.resolve().map_err(|invalid| Unbuildable {
        key: format!("transport.{}", invalid.key),
        problem: invalid.to_string(),
    })
}

/// The model on the fabric's clock, which starts `lead` before the workloads.
fn shifted(model: &Model, lead: Span) -> Model {
    let mut model = model.clone();
    model.run.warmup += lead;
    model.run.duration = model.run.duration.map(|duration| duration + lead);
    for fault in model.fault.iter_mut().filter(|fault| fault.is_scheduled()) {
        fault.at += lead;
        fault.until = fault.until.map(|until| until + lead);
    }
    model
}
