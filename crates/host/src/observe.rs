//! Reads the counts of an applied policy's programs from their pinned maps.

use std::path::Path;

use plimsoll_bpf::LimiterProgram;
use plimsoll_bpf::pinned::{self, Pinned};
use plimsoll_bpf::shared::{
    DctcpCounts, PacerCounts, PacerFeedbackCounts, PacerState, PhantomQueue as PhantomState, QjumpCounts,
    Shared,
};
use plimsoll_mechanisms::phantom_queue::PhantomQueue as Twin;
use rustix::time::{ClockId, clock_gettime};

use crate::journal::Applied;
use crate::kernel::LINK;
use crate::levels;
use crate::names::MacAddress;
use crate::policy::{Pacer, PhantomQueuePolicy, QjumpPolicy, Subject};
use crate::status::{
    AssignmentStatus, DctcpStatus, LevelStatus, PacerStatus, PhantomQueueStatus, PolicyStatus,
};
use crate::step::{Hold, PortProgram, Step};
use crate::{Error, Host, HostFacts};

/// Reads the present state of `applied`.
///
/// # Errors
/// Returns an error if a map cannot be read, as without privileges. A program that was never attached, or is gone, is
/// not an error.
pub fn observe(applied: &Applied) -> Result<PolicyStatus, Error> {
    let plan = &applied.plan;
    applied.here.check_mounts(plan.policy.name())?;
    let is_attached = |step: &Step| is_attached(step, applied);
    let mut status = PolicyStatus {
        policy: plan.policy.name().clone(),
        network: applied.here.other_network(),
        complete: applied.is_complete(),
        confirmed: applied.confirmed,
        device: None,
        epoch_ns: None,
        limiting: None,
        levels: Vec::new(),
        assignments: Vec::new(),
        phantom_queues: Vec::new(),
        pacer: None,
        dctcp: None,
    };
    let mut level_pins = None;
    for step in applied.steps() {
        match step {
            Step::Program { program: PortProgram::Limiter(qjump), pins, .. } => {
                status.device = Some(qjump.device.clone());
                status.limiting = Some(is_attached(step)?);
                let levels = qjump.levels().map_err(plimsoll_bpf::Error::from)?;
                status.epoch_ns = Some(LimiterProgram::epoch(&levels).as_ps() / PS_PER_NS);
                status.levels = counted(qjump, pins)?;
            }
            Step::Program { program: PortProgram::Ports(ports), .. } => {
                let attached = is_attached(step)?;
                let given = |(port, level): &(u16, u8)| AssignmentStatus {
                    who: Subject::Port(*port).to_string(),
                    level: *level,
                    attached,
                };
                status.assignments.extend(ports.iter().map(given));
            }
            Step::Level { level, members, pins, .. } => {
                for (index, member) in members.iter().enumerate() {
                    let cgroup = || format!("cgroup {}", member.cgroup.display());
                    status.assignments.push(AssignmentStatus {
                        who: member.unit.as_ref().map_or_else(cgroup, |unit| Subject::Unit(unit).to_string()),
                        level: *level,
                        attached: levels::is_given(pins, &levels::name_of(index, member))?,
                    });
                }
                level_pins = Some(pins);
            }
            // This step lists the units of a level that were not running when it was applied.
            Step::DropIn { unit, level, .. } => {
                let who = Subject::Unit(unit).to_string();
                if !status.assignments.iter().any(|one| one.who == who)
                    && let Some(pins) = level_pins
                {
                    let attached = levels::is_given(pins, &levels::name_of_unit(unit))?;
                    status.assignments.push(AssignmentStatus { who, level: *level, attached });
                }
            }
            Step::Program { program: PortProgram::PhantomQueue(queue), pins, .. } => {
                status.phantom_queues.push(marked(queue, pins, is_attached(step)?)?);
            }
            Step::Program { program: PortProgram::Pacer { pacer, .. }, pins, .. } => {
                status.pacer = Some(paced(pacer, pins, is_attached(step)?)?);
            }
            Step::Program { program: PortProgram::PacerFeedback { .. }, pins, .. } => {
                let counts = counts_of(pins)?;
                let feedback = PacerFeedbackCounts::sum(&counts);
                if let Some(pacer) = &mut status.pacer {
                    pacer.attached &= is_attached(step)?;
                    (pacer.draws, pacer.associations) = (feedback.draws, feedback.associations);
                }
            }
            Step::Dctcp { pins } => status.dctcp = connected(pins)?,
            Step::Cgroup { .. }
            | Step::Segments { .. }
            | Step::Clsact { .. }
            | Step::Departures { .. }
            | Step::Shaper { .. }
            | Step::Route { .. }
            | Step::Sysctl { .. } => {}
        }
    }
    Ok(status)
}

/// Returns whether the program of `step` is still attached to its device.
fn is_attached(step: &Step, applied: &Applied) -> Result<bool, Error> {
    let Step::Program { device, side, hold, pins, .. } = step else { return Ok(false) };
    match hold {
        Hold::Link => link_is_attached(pins),
        Hold::Filter { priority } => {
            let _there = applied.here.enter(applied.plan.policy.name())?;
            let there = Host.device(device)?.is_some_and(|device| device.clsact);
            Ok(there && Host.filters(device, *side)?.contains(priority))
        }
    }
}

fn link_is_attached(pins: &Path) -> Result<bool, Error> {
    let link = pins.join(LINK);
    Ok(link.exists() && pinned::still_attached(&link)?)
}

/// Returns the map `name`; none where the step was interrupted.
fn map(pins: &Path, name: &str) -> Result<Option<Pinned>, Error> {
    let path = pins.join(name);
    if path.exists() { Ok(Some(Pinned::open(&path)?)) } else { Ok(None) }
}

fn counted(qjump: &QjumpPolicy, pins: &Path) -> Result<Vec<LevelStatus>, Error> {
    let levels = qjump.levels().map_err(plimsoll_bpf::Error::from)?;
    let counts = map(pins, "counts")?;
    let guests = qjump.guest.iter().map(|guest| Some(&guest.address));
    let status = |guest: usize, address: Option<&MacAddress>, number: usize| {
        let (level, index) = (&levels.levels[number], LimiterProgram::place(guest, number as u8));
        let by_processor = counts.as_ref().map(|counts| counts.read_per_processor(index)).transpose()?;
        let sum = QjumpCounts::sum(&by_processor.unwrap_or_default());
        Ok(LevelStatus {
            guest: address.cloned(),
            level: number as u8,
            budget_bytes: level.latency_bound.map(|_| level.bucket.get()),
            rate_bps: level.rate.as_bps(),
            passed_packets: sum.passed,
            passed_bytes: sum.bytes,
            refused_packets: sum.refused,
        })
    };
    let all = std::iter::once(None).chain(guests).enumerate();
    let numbers = 0..levels.levels.len();
    all.flat_map(|(guest, address)| numbers.clone().map(move |number| (guest, address, number)))
        .map(|(guest, address, number)| status(guest, address, number))
        .collect()
}

fn marked(queue: &PhantomQueuePolicy, pins: &Path, attached: bool) -> Result<PhantomQueueStatus, Error> {
    let state: PhantomState = map(pins, "state")?.map_or(Ok(PhantomState::default()), |map| map.read(0))?;
    let now = clock_gettime(ClockId::Monotonic);
    let now_ns = now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64;
    let drained_ps = now_ns.saturating_sub(state.last_ns).saturating_mul(PS_PER_NS);
    let level = (state.level >> FRACTION_BITS).saturating_sub(drained_ps) << FRACTION_BITS;
    Ok(PhantomQueueStatus {
        device: queue.device.clone(),
        side: queue.direction,
        attached,
        length_bytes: level / Twin::new(&queue.params(), queue.rate).byte_cost(),
        threshold_bytes: queue.threshold.get(),
        marked_packets: state.marked,
        not_capable_packets: state.not_capable,
    })
}

fn paced(pacer: &Pacer, pins: &Path, attached: bool) -> Result<PacerStatus, Error> {
    let state: PacerState = map(pins, "state")?.map_or(Ok(PacerState::default()), |map| map.read(0))?;
    let counts = PacerCounts::sum(&counts_of(pins)?);
    Ok(PacerStatus {
        device: pacer.device.clone(),
        attached,
        rate_bps: state.rate,
        paced_packets: counts.paced,
        bypassed_packets: counts.bypassed,
        held_ns: counts.held_ns,
        draws: 0,
        associations: 0,
    })
}

/// Returns the counts of every processor; none where the step was interrupted.
fn counts_of<T: Shared>(pins: &Path) -> Result<Vec<T>, Error> {
    let counts = map(pins, "counts")?.map(|counts| counts.read_per_processor(0)).transpose()?;
    Ok(counts.unwrap_or_default())
}

fn connected(pins: &Path) -> Result<Option<DctcpStatus>, Error> {
    let Some(map) = map(pins, "state")? else { return Ok(None) };
    let counts: DctcpCounts = map.read(0)?;
    Ok(Some(DctcpStatus {
        connections: counts.connections,
        updates: counts.updates,
        last_alpha: counts.last_alpha as f64 / ALPHA_ONE,
        cuts: counts.cuts,
        losses: counts.losses,
        guarded: counts.guarded,
    }))
}

const PS_PER_NS: u64 = 1_000;
/// The fractional bits of a phantom queue's level.
const FRACTION_BITS: u32 = 16;
/// The fixed-point value of DCTCP's alpha of 1.
const ALPHA_ONE: f64 = (1u64 << 30) as f64;
