//! [`SwitchMemory`]: the memory of a switch with lossless priorities, and its links.

use std::collections::{HashMap, VecDeque};

use plimsoll_mechanisms::lossless::{BufferPeaks, IngressBuffers, LosslessParams, Refusal};
use plimsoll_mechanisms::pfc::PausedLink;
use plimsoll_units::Bytes;

use crate::faults::Schedule;
use crate::net::topology::Link;
use crate::net::{Node, Packet, PortId};
use crate::observed::port_name;
use crate::spec::FabricSpec;
use crate::unbuildable::Unbuildable;

/// The memory of a switch with lossless priorities.
#[derive(Debug)]
pub struct SwitchMemory {
    /// The switch, by its number in the network.
    pub switch: u32,
    /// The tier of the switch: 0 is next to the hosts.
    pub tier: u8,
    /// The links into the switch, in the order in which the memory numbers them.
    pub links: Vec<PortId>,
    /// The bytes that each link and priority holds.
    pub buffers: IngressBuffers,
    /// A headroom is smaller than its link needs: the link and the missing bytes.
    pub too_small: Option<String>,
    /// Packets that found no room.
    pub refused: Refused,
}

/// The number of packets that found no room in memories, by the reason.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Refused {
    /// Lossless packets, for which a headroom was too small.
    pub lossless: u64,
    /// The most bytes that a lossless packet did not find.
    pub missing: u64,
    /// Packets of other priorities, above the threshold of their ingress link or their egress queue.
    pub lossy: u64,
}

/// The kind of buffer whose senders are paused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BufferKind {
    /// A buffer of each link, with fixed thresholds: `pfc`.
    Link,
    /// The memory of a switch: `lossless`.
    Memory,
}

/// The use of all buffers of one kind in a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct BufferUse {
    /// The kind of buffer that these totals are of.
    pub kind: BufferKind,
    /// The number of pauses sent.
    pub pauses: u64,
    /// The highest use of a buffer.
    pub peaks: BufferPeaks,
    /// The packets that found no room.
    pub refused: Refused,
}

impl BufferUse {
    pub(super) fn none(kind: BufferKind) -> BufferUse {
        BufferUse { kind, pauses: 0, peaks: BufferPeaks::default(), refused: Refused::default() }
    }

    fn merge(&mut self, other: &BufferUse) {
        self.pauses += other.pauses;
        self.peaks.merge(other.peaks);
        self.refused.lossless += other.refused.lossless;
        self.refused.missing = self.refused.missing.max(other.refused.missing);
        self.refused.lossy += other.refused.lossy;
    }
}

/// Adds a use to `uses`, which has one for each kind of buffer.
pub(super) fn merge_use(uses: &mut Vec<BufferUse>, of: &BufferUse) {
    match uses.iter_mut().find(|known| known.kind == of.kind) {
        Some(known) => known.merge(of),
        None => uses.push(*of),
    }
}

impl SwitchMemory {
    /// Returns the use of the memory so far; its pauses are counted by link.
    pub(super) fn used(&self) -> BufferUse {
        let peaks = self.buffers.peaks();
        BufferUse { peaks, refused: self.refused, ..BufferUse::none(BufferKind::Memory) }
    }

    /// Returns whether `packet`, which is to leave by the port that is opposite to the link `egress`, finds room.
    pub(super) fn admit(&mut self, egress: u16, packet: &Packet) -> bool {
        let (priority, bytes) = (packet.priority & 7, u64::from(packet.size));
        match self.buffers.admit(packet.ingress, usize::from(egress), priority, bytes) {
            Ok(()) => return true,
            Err(Refusal::Headroom { missing }) => {
                self.refused.lossless += 1;
                self.refused.missing = self.refused.missing.max(missing);
            }
            Err(Refusal::Ingress | Refusal::Egress) => self.refused.lossy += 1,
        }
        false
    }
}

/// Returns the memories of all switches that have lossless priorities, empty, in the order of the switches. Problems
/// speak of a node by the `name` that it has.
///
/// # Errors
/// Fails if a memory cannot be divided, or a headroom is too small where nothing may be dropped.
pub fn lossless_memories(
    spec: &FabricSpec,
    name: &dyn Fn(Node) -> String,
) -> Result<Vec<SwitchMemory>, Unbuildable> {
    if !spec.tiers.iter().any(|tier| tier.lossless().is_some()) {
        return Ok(Vec::new());
    }
    let network = &spec.network;
    let opposite = opposites(spec);
    let schedule = Schedule::new(&spec.faults, spec.convergence_delay);
    let mut into: Vec<Vec<(PortId, PausedLink)>> = vec![Vec::new(); network.switches() as usize];
    let mut params_of: Vec<Option<(u8, &LosslessParams)>> = vec![None; network.switches() as usize];
    for (port, link) in (0..).map(PortId).zip(network.links()) {
        let (Node::Switch(switch), Some(back)) = (link.to, opposite[port.0 as usize]) else { continue };
        let out = network.link(back);
        params_of[switch as usize] = spec.port(out).lossless().map(|params| (out.tier, params));
        let back_rate = schedule.slowest(back, network.link(back).rate);
        let (rate, propagation, mtu) = (link.rate, link.propagation, Bytes::new(spec.largest_packet));
        let priorities = spec.priorities_in_use.count();
        let paused = PausedLink { rate, back_rate, propagation, mtu, buffer: Bytes::ZERO, priorities };
        into[switch as usize].push((port, paused));
    }
    let mut memories = Vec::new();
    for ((switch, links), params) in (0..).zip(into).zip(params_of) {
        let Some((tier, params)) = params else { continue };
        let build_error = |problem: String| {
            let key = format!("port.{}.lossless", network.tiers()[usize::from(tier)]);
            Unbuildable::new(key, problem)
        };
        let (links, paused): (Vec<PortId>, Vec<PausedLink>) = links.into_iter().unzip();
        let plan = params.resolve(&paused, spec.priorities_in_use);
        let plan = plan.map_err(|error| build_error(format!("{}: {error}", name(Node::Switch(switch)))))?;
        let too_small = plan
            .too_small()
            .map(|(link, shortage)| format!("{}: {shortage}", port_name(network, links[link], name)));
        if let Some(problem) = too_small.as_ref().filter(|_| !params.may_drop) {
            return Err(build_error(problem.clone()));
        }
        let buffers = IngressBuffers::new(plan, links.len());
        memories.push(SwitchMemory { switch, tier, links, buffers, too_small, refused: Refused::default() });
    }
    Ok(memories)
}

/// Returns the port that sends in the opposite direction of each port's link; of several links between two nodes the
/// first belongs to the first.
pub(super) fn opposites(spec: &FabricSpec) -> Vec<Option<PortId>> {
    let network = &spec.network;
    let mut between: HashMap<(Node, Node), VecDeque<PortId>> = HashMap::new();
    for (port, link) in (0..).map(PortId).zip(network.links()) {
        between.entry((link.from, link.to)).or_default().push_back(port);
    }
    let back = |link: &Link| between.get_mut(&(link.to, link.from))?.pop_front();
    network.links().iter().map(back).collect()
}
