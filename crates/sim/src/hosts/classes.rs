//! [`PacketClasses`]: priority and rank of the packets of hosts, and QJump's limiters.

use plimsoll_fabric::net::{Flags, HostId, Packet, PathClass};
use plimsoll_mechanisms::pfabric::data_rank;
use plimsoll_mechanisms::qjump::{Excess, Levels, Limiter, PeriodicLimiter, QjumpParams, Refill, Verdict};
use plimsoll_mechanisms::transports::Feature;
use plimsoll_scenario::model::{AckPath, Model, Rank};
use plimsoll_units::{Bytes, Time};

use crate::error::RunError;
use plimsoll_traffic::ConnectionEnd as End;

/// The priorities, ranks and limits of a run's packets.
#[derive(Debug)]
pub(super) struct PacketClasses {
    /// The priority of each workload, where the scenario gives one.
    priority: Vec<Option<u8>>,
    /// The sizes up to which a message has priority 7, 6, and so on.
    by_size: Vec<Bytes>,
    ack: Option<u8>,
    /// The priority of congestion notification packets, where it is not that of acknowledgements.
    notification: Option<u8>,
    /// By which switches of a hybrid network the packets of each workload may travel.
    path: Vec<[PathClass; 2]>,
    /// By which switches pure acknowledgements may travel; as data does where this says nothing.
    ack_path: Option<PathClass>,
    /// What gives a packet its rank, where some queue sorts by rank.
    rank: Option<Rank>,
    qjump: Option<Qjump>,
}

#[derive(Debug)]
struct Qjump {
    levels: Levels,
    excess: Excess,
    refill: Refill,
    /// The limiter of each guest of each host, by host; empty where every connection has its own.
    limiters: Vec<Limiter>,
    /// The number of guests of each host.
    guests: usize,
    /// The guest of each workload.
    guest: Vec<u8>,
}

impl PacketClasses {
    /// Builds the classes of `model`; none where all packets are alike, unless they are asked for `anyway`.
    pub(super) fn new(model: &Model, anyway: bool) -> Result<Option<Box<PacketClasses>>, RunError> {
        let host = &model.host;
        let ports = model.topology.tiers().iter().map(|tier| model.port.of_tier(tier));
        let outside = !model.outside.disciplines.is_empty() && model.excludes(Feature::Rank).is_none();
        let ranked = outside || ports.chain([&model.port.host]).any(|port| port.pfabric().is_some());
        let qjump = host.qjump().map(|params| Qjump::new(params, model)).transpose()?;
        let priority: Vec<Option<u8>> = model.workload.keys().map(|name| model.priority_of(name)).collect();
        let plain = priority.iter().all(Option::is_none)
            && host.priority_by_size.is_empty()
            && host.ack_priority.is_none()
            && host.cnp_priority.is_none();
        let paths = HybridPaths::of(model);
        if !anyway && plain && !ranked && qjump.is_none() && paths.are_free() {
            return Ok(None);
        }
        Ok(Some(Box::new(PacketClasses {
            priority,
            by_size: host.priority_by_size.clone(),
            ack: host.ack_priority,
            notification: host.cnp_priority,
            path: paths.workload,
            ack_path: paths.acks,
            rank: ranked.then_some(host.rank),
            qjump,
        })))
    }

    /// Returns the priority of a message of `bytes` bytes.
    pub(super) fn priority(&self, workload: u16, bytes: u64) -> u8 {
        self.priority[usize::from(workload)].unwrap_or_else(|| {
            let larger_than = self.by_size.iter().filter(|size| bytes > size.get()).count();
            if self.by_size.is_empty() { 0 } else { 7u8.saturating_sub(larger_than as u8) }
        })
    }

    /// Returns by which switches of a hybrid network the packets may travel that an end of a workload's connections
    /// sends.
    pub(super) fn path_class(&self, workload: u16, end: End) -> PathClass {
        self.path[usize::from(workload)][end as usize]
    }

    /// Returns the limiter of a connection on which a message of `priority` starts, where connections have limiters.
    pub(super) fn connection_limiter(&self, now: Time, priority: u8) -> Option<PeriodicLimiter> {
        let qjump = self.qjump.as_ref().filter(|qjump| qjump.refill == Refill::Periodic)?;
        let mut limiter = PeriodicLimiter::new(qjump.levels.epoch, qjump.excess);
        let level = qjump.levels.levels.get(usize::from(priority));
        limiter.activate(now, level.map_or(Bytes::ZERO, |level| level.bucket));
        Some(limiter)
    }

    /// Returns by which switches a packet of a connection of `path` may travel; one without data if `is_control`.
    #[inline]
    pub(super) fn path_of(&self, path: PathClass, is_control: bool) -> PathClass {
        self.ack_path.filter(|_| is_control).unwrap_or(path)
    }

    /// Writes priority, path class and rank into a packet of a connection of `priority` and `path` that has
    /// `remaining` bytes to send. A READ request has the priority of the data that it asks for: service level and
    /// traffic class are properties of a queue pair, for all that it sends as requester (`ah_attr` of
    /// `ibv_modify_qp`).
    #[inline]
    pub(super) fn label(
        &self,
        packet: &mut Packet,
        priority: u8,
        path: PathClass,
        remaining: impl FnOnce() -> u64,
    ) {
        let is_control = packet.len == 0 && !packet.is_read_request();
        packet.set_path_class(self.path_of(path, is_control));
        packet.priority = if !is_control {
            priority
        } else {
            let is_notification = !packet.flags.has(Flags::ACK);
            self.notification.filter(|_| is_notification).or(self.ack).unwrap_or(priority)
        };
        packet.rank = match self.rank {
            None => 0,
            Some(_) if is_control => 0,
            Some(Rank::Remaining) => u32::try_from(data_rank(remaining())).unwrap_or(u32::MAX),
            Some(Rank::Priority) => u32::from(7 - (priority & 7)),
        };
    }

    /// Returns when the host may send `bytes` of `workload` at `priority`, if a limiter that refuses makes it wait.
    /// `None` if it may now; [`Time::MAX`] if never.
    pub(super) fn waits_until(
        &self,
        now: Time,
        host: HostId,
        workload: u16,
        priority: u8,
        bytes: u64,
        own: Option<&PeriodicLimiter>,
    ) -> Option<Time> {
        let qjump = self.qjump.as_ref().filter(|qjump| qjump.excess == Excess::Refuse)?;
        let ready = match own {
            Some(limiter) => limiter.ready_at(now, bytes),
            None => qjump.limiters.get(qjump.place(host, workload))?.ready_at(now, priority, bytes),
        };
        match ready {
            Some(at) if at <= now => None,
            Some(at) => Some(at),
            None => Some(Time::MAX),
        }
    }

    /// Returns whether the limiter lets a packet of `workload` pass; a connection's own limiter counts data only.
    pub(super) fn passes(
        &mut self,
        now: Time,
        packet: &Packet,
        workload: u16,
        own: Option<&mut PeriodicLimiter>,
    ) -> bool {
        let Some(qjump) = &mut self.qjump else { return true };
        let bytes = u64::from(packet.size);
        let verdict = match (own, qjump.refill) {
            (_, Refill::Periodic) if packet.len == 0 => Verdict::Send,
            (Some(limiter), Refill::Periodic) => limiter.on_packet(now, bytes),
            (None, Refill::Periodic) => Verdict::Send,
            (_, Refill::OnPacket) => {
                let place = qjump.place(packet.src, workload);
                qjump.limiters[place].on_packet(now, packet.priority & 7, bytes)
            }
        };
        verdict == Verdict::Send
    }
}

/// Returns whether `listed` means what `end` of the connections of the workload `name` sends: `NAME` or `NAME.END`.
fn names_end(listed: &str, name: &str, end: &str) -> bool {
    listed.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.strip_prefix('.') == Some(end))
}

/// By which switches of a hybrid network packets may travel.
struct HybridPaths {
    workload: Vec<[PathClass; 2]>,
    acks: Option<PathClass>,
}

impl HybridPaths {
    fn of(model: &Model) -> HybridPaths {
        let control = model.circuits.clone().unwrap_or_default();
        let class = |name: &str, end: &str| {
            let names = |list: &[String]| list.iter().any(|listed| names_end(listed, name, end));
            if names(&control.packet_only) {
                PathClass::Packet
            } else if names(&control.circuit_only) {
                PathClass::Circuit
            } else {
                PathClass::Either
            }
        };
        let workload = model.workload.keys().map(|name| ["client", "server"].map(|end| class(name, end)));
        let acks = match control.acks {
            AckPath::AsData => None,
            AckPath::Packet => Some(PathClass::Packet),
            AckPath::Circuit => Some(PathClass::Circuit),
        };
        HybridPaths { workload: workload.collect(), acks }
    }

    /// Returns whether every packet may travel by either switch.
    fn are_free(&self) -> bool {
        self.acks.is_none() && self.workload.iter().flatten().all(|class| *class == PathClass::Either)
    }
}

impl Qjump {
    fn new(params: &QjumpParams, model: &Model) -> Result<Qjump, RunError> {
        let guests = model.guests();
        let limiters =
            if params.refill == Refill::Periodic { 0 } else { model.topology.host_count() * guests };
        let limiter = |place| Ok(Limiter::new(&model.qjump_levels(params, place / guests)?, params.excess));
        let guest = model.workload.keys().map(|name| model.host.guest.get(name).copied().unwrap_or(0));
        Ok(Qjump {
            levels: model.qjump_levels(params, 0)?,
            excess: params.excess,
            refill: params.refill,
            limiters: (0..limiters).map(limiter).collect::<Result<_, RunError>>()?,
            guests: guests as usize,
            guest: guest.collect(),
        })
    }

    /// Returns the place of the limiter of the guest that sends a workload's packets at `host`.
    fn place(&self, host: HostId, workload: u16) -> usize {
        host.0 as usize * self.guests + usize::from(self.guest[usize::from(workload)])
    }
}
