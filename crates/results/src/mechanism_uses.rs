//! The uses of the mechanisms of a run's ports: how often each acted, and how close its buffers came to acting.

use plimsoll_fabric::observed::Counters;
use plimsoll_fabric::{BufferKind, BufferUse, FabricSpec, PortSpec};
use plimsoll_mechanisms::classes::ClassesParams;
use plimsoll_mechanisms::ecn::EcnParams;
use plimsoll_mechanisms::lossless::LosslessParams;
use plimsoll_mechanisms::pfc::PfcParams;
use plimsoll_mechanisms::phantom_queue::PhantomQueueParams;
use plimsoll_mechanisms::shared_buffer::SharedBufferParams;
use plimsoll_mechanisms::trim::TrimParams;
use plimsoll_mechanisms::{Mechanism, Table};

use crate::outcome::MechanismUse;

/// The mechanisms of a run whose actions are counted, each once.
#[derive(Clone, Debug)]
pub struct Counted(Vec<(&'static str, CountedAction)>);

/// The counter that shows the actions of a mechanism.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CountedAction {
    Marks,
    /// Packets without ECN are dropped in place of marks.
    MarksOrDrops,
    Trims,
    Drops,
    /// Packets that find no room are trimmed at the same ports.
    DropsOrTrims,
    Pauses(BufferKind),
}

impl Counted {
    /// Lists the mechanisms of the ports of `spec`.
    pub fn of(spec: &FabricSpec) -> Counted {
        let ports = spec.tiers.iter().chain([&spec.nic]);
        let mut counted: Vec<(&'static str, CountedAction)> = Vec::new();
        let of_port = |port: &PortSpec| (port.mechanisms.trim.is_some(), port.mechanisms.active());
        for (trims, active) in
            ports.map(of_port).flat_map(|(trims, all)| all.into_iter().map(move |one| (trims, one)))
        {
            let is = |table: Table| active.table.key == table.key;
            let marks_only =
                is(EcnParams::TABLE) || is(PhantomQueueParams::TABLE) || is(ClassesParams::TABLE);
            let action = match () {
                () if active.marking.is_some() && marks_only => CountedAction::Marks,
                () if active.marking.is_some() => CountedAction::MarksOrDrops,
                () if is(TrimParams::TABLE) => CountedAction::Trims,
                () if is(SharedBufferParams::TABLE) && trims => CountedAction::DropsOrTrims,
                () if is(SharedBufferParams::TABLE) => CountedAction::Drops,
                () if is(PfcParams::TABLE) => CountedAction::Pauses(BufferKind::Link),
                () if is(LosslessParams::TABLE) => CountedAction::Pauses(BufferKind::Memory),
                () => continue,
            };
            // Classes schedule all packets; what may never act is their marking.
            let key = if is(ClassesParams::TABLE) { "classes.priority.*.ecn" } else { active.table.key };
            if !counted.contains(&(key, action)) {
                counted.push((key, action));
            }
        }
        Counted(counted)
    }

    /// Returns the use of each, from the counters of the run and the buffers of its flow control. Marks, trimmed
    /// packets and drops count all mechanisms of their kind together.
    pub fn uses(&self, counters: &Counters, buffers: &[BufferUse]) -> Vec<MechanismUse> {
        let used = |(key, action): &(&'static str, CountedAction)| {
            let (acted, action, buffer) = match action {
                CountedAction::Marks => (counters.marks, "marked a packet", None),
                CountedAction::MarksOrDrops => {
                    (counters.marks + counters.drops(), "marked or dropped a packet", None)
                }
                CountedAction::Trims => (counters.trimmed, "trimmed a packet", None),
                CountedAction::Drops => (counters.switch_drops, "dropped a packet", None),
                CountedAction::DropsOrTrims => {
                    (counters.switch_drops + counters.trimmed, "dropped or trimmed a packet", None)
                }
                CountedAction::Pauses(kind) => {
                    let buffer = buffers.iter().find(|buffer| buffer.kind == *kind);
                    match buffer.map_or((0, 0), |buffer| (buffer.pauses, buffer.refused.lossy)) {
                        (0, lossy @ 1..) => (lossy, "dropped a lossy packet", buffer),
                        (pauses, _) => (pauses, "paused a sender", buffer),
                    }
                }
            };
            let buffer = buffer.copied();
            MechanismUse {
                key: (*key).to_owned(),
                acted,
                action: action.to_owned(),
                peak: buffer.map(|buffer| buffer.peaks.share()),
                headroom_peak: buffer.map_or(0, |buffer| buffer.peaks.headroom),
                headroom: buffer.map_or(0, |buffer| buffer.peaks.headroom_size),
                dropped: buffer.map_or(0, |buffer| buffer.refused.lossless),
                missing: buffer.map_or(0, |buffer| buffer.refused.missing),
                refreshes: buffer.map_or(0, |buffer| buffer.refreshes),
                storms: buffer.map_or(0, |buffer| buffer.storms),
                dropped_lossy: buffer.map_or(0, |buffer| buffer.refused.lossy),
            }
        };
        self.0.iter().map(used).collect()
    }
}
