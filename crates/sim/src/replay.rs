//! [`record`]: a run repeated with an observer of its packets.
//!
//! The observer is off in every other run, and costs nothing there. It changes nothing either: a run with it has the
//! digest of the run without it, so a recording is of the same packets.

use plimsoll_fabric::net::{HostId, Network, Node};
use plimsoll_results::outcome::{CircuitUse, Outcome};
use plimsoll_results::replay::{
    HOPS_MAX, HopColumns, LinkOfReplay, NodeOfReplay, PacketColumns, Recording, ReplayWindow, relative,
};
use plimsoll_scenario::model::{Model, Topology};
use plimsoll_units::{Span, Time};

use crate::build::{BuiltWorld, build_recording};
use crate::error::RunError;
use crate::packet_recorder::PacketRecorder;
use crate::progress::Progress;
use crate::world::World;

/// How much of a run is repeated to record its packets.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extent {
    /// Up to the end of the window and of the packets that are then on their way: what follows changes none of them.
    Window,
    /// The whole run, which then has an outcome.
    Whole,
}

/// The reasons why there is no recording.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The run failed or was cancelled.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The window has too many packets.
    #[error(
        "the window of {length} has more than {HOPS_MAX} packet-hops, the most of a recording; a window of {fits} may \
         have fewer"
    )]
    TooMany {
        /// The length of the window.
        length: Span,
        /// A length that is likely to fit.
        fits: Span,
    },
    /// The run is over before the window begins.
    #[error("the run ends at {end}, before the window begins")]
    TooLate {
        /// The time at which the run ends.
        end: Time,
    },
    /// Packets grow with telemetry on their way, so that a recording cannot follow them.
    #[error("a replay does not follow packets that grow on their way: turn `int` off in `port`")]
    Stamps,
    /// Packets change on their way, so that a recording cannot follow them.
    #[error("a replay does not follow packets that switches trim: turn `trim` off in `port`")]
    Trims,
    /// An approximate run has no packets of the whole network.
    #[error("a replay is of a whole run: set `run.approximate` to \"off\"")]
    Approximate,
}

/// Repeats the run of `model` and records the packets of `window`. A whole run has an outcome, whose digest is that of
/// every other run of the model.
///
/// # Errors
/// Fails as [`run`](crate::run) does, if the window has too many packets, and if the run ends before it.
///
/// # Panics
/// Panics as [`run`](crate::run) does.
pub fn record(
    model: &Model,
    window: ReplayWindow,
    extent: Extent,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<(Recording, Option<Outcome>), RecordError> {
    if model.run.approximate().is_some() {
        return Err(RecordError::Approximate);
    }
    if model.topology.tiers().iter().any(|tier| model.port.of_tier(tier).trim().is_some()) {
        return Err(RecordError::Trims);
    }
    if model.has_telemetry() {
        return Err(RecordError::Stamps);
    }
    let mut build = build_recording(model, window)?;
    let end = match extent {
        Extent::Whole => build.world.run(progress)?,
        Extent::Window => run_through(&mut build.world, window, progress)?,
    };
    let recorder = build.world.fabric.hooks_mut().recorder.take();
    let mut recorder = *recorder.expect("the run was built with a recorder");
    if let Some(full) = recorder.full() {
        // Hops are known when they end, and a shorter window has only the hops that began in it: some are left out.
        let fits = Span::from_us(full.saturating_since(window.from).as_ps() * 3 / 4 / 1_000_000);
        let fits = fits.max(Span::from_us(1)).min(Span::from_ps(window.length.as_ps() / 2));
        return Err(RecordError::TooMany { length: window.length, fits });
    }
    if end < window.from {
        return Err(RecordError::TooLate { end });
    }
    recorder.settle(end);
    let mut recording = recording(&build, model, recorder, window);
    let (circuits, outcome) = match extent {
        Extent::Whole => {
            let outcome = build.finish(end);
            (outcome.circuits.clone(), Some(outcome))
        }
        Extent::Window => (build.world.fabric.take_circuit_log(end).unwrap_or_default().circuits, None),
    };
    let overlaps = |circuit: &&CircuitUse| circuit.until >= window.from && circuit.from <= window.until();
    let circuits = circuits.iter().filter(overlaps);
    recording.circuits = circuits
        .map(|circuit| {
            let (from, until) =
                (relative(window, circuit.from), relative(window, circuit.until.min(window.until())));
            (circuit.sender.0, circuit.receiver.0, from, until)
        })
        .collect();
    Ok((recording, outcome))
}

/// Runs `world` as [`World::run`] does, but no further than until all packets whose hop began in `window` have ended
/// it. Returns the time that the run has reached.
fn run_through(
    world: &mut World,
    window: ReplayWindow,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<Time, RunError> {
    world.begin();
    let mut until = window.from;
    let step = Span::from_ps((window.length.as_ps() / STEPS).max(1));
    loop {
        if world.finished.is_none() {
            world.run_until(until.min(world.rules.horizon), progress, &mut None)?;
        }
        if let Some(finished) = world.finished {
            world.rules.end_after(finished);
            world.run_until(until.min(world.rules.horizon), progress, &mut None)?;
        }
        let is_over = world.fabric.next_event_time().is_none_or(|next| next > world.rules.horizon);
        if is_over {
            return Ok(world.now);
        }
        let recorder = world.fabric.hooks().recorder.as_deref();
        let needs_more = recorder.is_some_and(|recorder| recorder.full().is_none() && recorder.is_open());
        if until >= window.until() && !needs_more
            || recorder.is_some_and(|recorder| recorder.full().is_some())
        {
            return Ok(until);
        }
        until = until.saturating_add(step);
    }
}

/// The steps in which a window is run, after each of which the run may end.
const STEPS: u64 = 16;

/// Names and arranges the recorded packets.
fn recording(build: &BuiltWorld, model: &Model, recorder: PacketRecorder, window: ReplayWindow) -> Recording {
    let network = build.world.fabric.network();
    let hosts = network.hosts();
    let number = |node: Node| match node {
        Node::Host(host) => host.0,
        Node::Switch(switch) => hosts + switch,
    };
    let links = network.links().iter().map(|link| LinkOfReplay {
        from: number(link.from),
        to: number(link.to),
        rate: link.rate.as_bps(),
        delay: link.propagation.as_ps(),
    });
    let PacketRecorder { mut packets, mut hops, pauses, .. } = recorder;
    // Packets are numbered as their first hops end; a reader wants them as these began.
    let mut order: Vec<u32> = vec![u32::MAX; packets.len()];
    hops.sort_by_key(|hop| (hop.entered, hop.packet, hop.link));
    let mut next = 0;
    for hop in &mut hops {
        let number = &mut order[hop.packet as usize];
        if *number == u32::MAX {
            *number = next;
            next += 1;
        }
        hop.packet = *number;
    }
    let mut by_number: Vec<(u32, _)> = order.into_iter().zip(packets.drain(..)).collect();
    by_number.sort_by_key(|(number, _)| *number);
    let mut columns = PacketColumns::default();
    for (_, packet) in by_number {
        let header = packet.header;
        columns.workload.push(build.workload_of(header.flow));
        columns.flow.push(header.flow);
        columns.source.push(header.src.0);
        columns.destination.push(header.dst.0);
        columns.size.push(header.size);
        columns.seq.push(header.seq);
        columns.kind.push(packet.kind as u8);
        columns.priority.push(header.priority);
    }
    let pauses = pauses.into_iter();
    Recording {
        from: window.from.as_ps(),
        length: window.length.as_ps(),
        tiers: ["host"].iter().chain(network.tiers()).map(|&tier| tier.to_owned()).collect(),
        nodes: nodes(&model.topology, network),
        links: links.collect(),
        workloads: model.workload.keys().cloned().collect(),
        packets: columns,
        hops: HopColumns::new(hops, window),
        pauses: pauses
            .map(|(port, from, until)| (port.0, relative(window, from), relative(window, until)))
            .collect(),
        circuits: Vec::new(),
    }
}

/// Lists the hosts and the switches, each with its tier.
fn nodes(topology: &Topology, network: &Network) -> Vec<NodeOfReplay> {
    let mut tier_of_switch = vec![0; network.switches() as usize];
    for link in network.links() {
        if let Node::Switch(switch) = link.from {
            tier_of_switch[switch as usize] = usize::from(link.tier);
        }
    }
    let name = |nic| topology.nic_name(HostId(nic));
    let hosts = (0..network.hosts()).map(|nic| NodeOfReplay { name: name(nic), tier: 0 });
    let switches = (0..).zip(tier_of_switch);
    let switches =
        switches.map(|(switch, tier)| NodeOfReplay { name: topology.switch_name(switch), tier: tier + 1 });
    hosts.chain(switches).collect()
}
