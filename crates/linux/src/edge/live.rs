//! [`LiveFabric`]: the simulator's fabric between real hosts, driven by a caller that has a clock.
//!
//! Sans-IO. A frame that arrives at `now` is stamped with the first picosecond that is neither past nor handled yet,
//! and is a packet from then on; everything that follows happens at times that the ports compute, and is carried out
//! when a call of [`LiveFabric::advance`] reaches these times. So departures and their times are a function of arrivals
//! and their times: [`replay`] of the log of [`Entry`]s gives the same [`Digest64`].
//!
//! In a hybrid network the bytes that wait in the hosts' sockets are an input as well
//! ([`LiveFabric::on_socket_demand`]), and count from their time on: the controller's next reading gets the last such
//! input before it, and the bytes that wait in the NICs' queues by destination, which are part of the fabric.

use plimsoll_circuits::{AckPath, Demand};
use plimsoll_fabric::net::{EcnField, Flags, HostId, Network, Packet, PathClass, WaitPlace};
use plimsoll_fabric::{
    CircuitLosses, CircuitUse, CircuitWeek, Fabric, Handled, Hooks, LostAt, ScheduleTimes, Unbuildable,
};
use plimsoll_mechanisms::pfc::Priorities;
use plimsoll_results::mechanism_uses::Counted;
use plimsoll_results::outcome::{Counters, MechanismUse, QueueObservation};
use plimsoll_scenario::DSCPS;
use plimsoll_scenario::model::Model;
use plimsoll_units::{Span, Streams, Time};

use crate::edge::frame::{CIRCUIT_ONLY, ETHERNET, Header, PACKET_ONLY, VLAN_TAG};
use crate::read_outs::control;

mod frames;

pub use frames::{Digest64, Egress, FrameEntry, Ingress, Nowhere, Out};

/// A fabric whose packets are frames of real hosts.
#[derive(Debug)]
pub struct LiveFabric {
    fabric: Fabric<LostFrames>,
    /// The mechanisms whose actions are counted.
    counted: Counted,
    /// Hosts wait for room in their NIC.
    backpressure: bool,
    /// The priorities of the scenario's workloads and programs.
    priorities: Priorities,
    /// The priority of TCP segments without payload, where it is not that of their connection.
    ack_priority: Option<u8>,
    /// The priority of the frames of each DSCP that have no VLAN tag.
    dscp_priorities: [u8; DSCPS],
    /// The wire size of a full segment in bytes.
    full_size: u64,
    /// The state that only hybrid networks need.
    hybrid: Option<LiveHybrid>,
    /// Everything up to here has happened.
    done: Time,
    /// The number of frames that have come in.
    entries: u32,
    digest: Digest64,
}

/// The switches of a hybrid network by which frames travel, and the demand for its circuits.
#[derive(Debug)]
struct LiveHybrid {
    /// The week of its control loop.
    week: Span,
    /// The switch by which TCP segments without payload travel, where it differs from the data's.
    acks: Option<PathClass>,
    /// Frames between first addresses travel by the packet switch, and frames of an alias by circuits.
    binds_subflows: bool,
    /// The bytes that waited in the hosts' sockets at the last reading.
    sockets: Demand,
    /// Whether the week's schedule has circuits for each host as the sender.
    has_circuits: Vec<bool>,
}

/// The packets that were lost in the current event, whose frames go back to the caller.
#[derive(Debug, Default)]
struct LostFrames(Vec<(Time, Packet)>);

impl Hooks for LostFrames {
    fn on_lost(&mut self, now: Time, _: LostAt, packet: &Packet) {
        self.0.push((now, *packet));
    }
}

impl LiveFabric {
    /// Builds the fabric of `model`.
    ///
    /// # Errors
    /// Fails if the model cannot be built.
    pub fn new(model: &Model) -> Result<LiveFabric, Unbuildable> {
        let mut spec = model.fabric_spec()?;
        // The pacer's queue is in the host, which does not see how much room the NIC has.
        spec.pacers_wait = false;
        spec.counts_links = false;
        let control = control::control(model);
        if control.is_some() || spec.has_flow_control() {
            // Frames in flight when circuits are paused must have passed before the circuits are taken down, and a
            // headroom must have room for them.
            spec.full_size = spec.full_size.max(frame_max(model));
            spec.largest_packet = spec.largest_packet.max(spec.full_size);
        }
        // The kernel's own packets, such as packets that open or reset connections, have priority 0.
        spec.priorities_in_use = spec.priorities_in_use.with(0);
        let (backpressure, full_size, counted) = (spec.backpressure, spec.full_size, Counted::of(&spec));
        let streams = Streams::new(model.run.seed);
        let hybrid = control.map(|control| LiveHybrid {
            week: control.week,
            acks: match control.acks {
                AckPath::AsData => None,
                AckPath::Packet => Some(PathClass::Packet),
                AckPath::Circuit => Some(PathClass::Circuit),
            },
            binds_subflows: false,
            sockets: Demand::new(model.topology.host_count() as usize),
            has_circuits: vec![false; model.topology.host_count() as usize],
        });
        Ok(LiveFabric {
            fabric: Fabric::build(spec, &streams, LostFrames::default())?,
            counted,
            backpressure,
            priorities: priorities(model),
            ack_priority: model.host.ack_priority,
            dscp_priorities: model.dscp_priorities(),
            full_size,
            hybrid,
            done: Time::ZERO,
            entries: 0,
            digest: Digest64(0x243f_6a88_85a3_08d3),
        })
    }

    /// In a hybrid network, binds frames between first addresses to the packet switch, and frames of an alias address
    /// to circuits: subflows of MPTCP.
    pub fn bind_subflows(&mut self) {
        if let Some(hybrid) = &mut self.hybrid {
            hybrid.binds_subflows = true;
        }
    }

    /// Returns the number of hosts.
    pub fn hosts(&self) -> u32 {
        self.network().hosts()
    }

    /// Returns hosts, switches and links.
    pub fn network(&self) -> &Network {
        self.fabric.network()
    }

    /// Returns when something happens next.
    pub fn next_event(&self) -> Option<Time> {
        self.fabric.next_event_time()
    }

    /// Returns whether the data of `host` must wait: its NIC is paused for all priorities of workloads and programs, or
    /// its queue is full and the scenario has senders wait for room. The caller then leaves unread the frames of the
    /// host. In a hybrid network one full queue, of the queues by destination, is enough: the destination of the next
    /// frame is unknown before it is read.
    pub fn holds(&mut self, now: Time, host: HostId) -> bool {
        self.fabric.is_paused(host, self.priorities)
            || self.backpressure && !self.fabric.classes_have_room(now.max(self.done), host, self.full_size)
    }

    /// Takes a reading of the hosts' sockets, made at `now` or later: the bytes that were written and not sent, from
    /// each host to each other. Returns its entry for the log.
    pub fn on_socket_demand(&mut self, now: Time, demand: Demand, out: &mut impl Out) -> FrameEntry {
        let at = now.max(self.done + TICK);
        self.advance(at - TICK, out);
        if let Some(hybrid) = &mut self.hybrid {
            hybrid.sockets.clone_from(&demand);
        }
        FrameEntry::SocketDemand { at, demand }
    }

    /// Gives the controller of circuits the demand that it has requested, if any.
    #[cold]
    fn give_demand(&mut self) {
        if self.fabric.wants_demand()
            && let Some(hybrid) = &self.hybrid
        {
            self.fabric.set_demand(hybrid.sockets.clone());
        }
    }

    /// Reports for which hosts the schedule has changed.
    #[cold]
    fn compare_circuits(&mut self, out: &mut impl Out) {
        let Some(hybrid) = self.hybrid.as_mut().filter(|hybrid| hybrid.binds_subflows) else { return };
        let hosts = || (0..self.fabric.network().hosts()).map(HostId);
        for (host, had_some) in hosts().zip(&mut hybrid.has_circuits) {
            let has_some = hosts().any(|to| self.fabric.has_circuit(host, to));
            if std::mem::replace(had_some, has_some) != has_some {
                out.circuits_changed(host, has_some);
            }
        }
    }

    /// Handles a frame that has arrived at `now` or later; returns its entry for the log. `frame` is returned with its
    /// [`Egress`].
    pub fn on_frame(
        &mut self,
        now: Time,
        from: HostId,
        header: Header,
        size: u16,
        frame: u32,
        out: &mut impl Out,
    ) -> Ingress {
        let at = now.max(self.done + TICK);
        self.advance(at - TICK, out);
        let mut packet = Packet::new(from, header.to, header.flow, size);
        packet.seq = self.entries;
        packet.ack = frame;
        packet.len = header.payload;
        let of_acks = self.ack_priority.filter(|_| header.is_control);
        let of_dscp = || self.dscp_priorities[usize::from(header.dscp & 63)];
        packet.priority = of_acks.or(header.tag_priority).unwrap_or_else(of_dscp) & 7;
        packet.rank = u32::from(7 - packet.priority);
        packet.ecn = header.ecn;
        if let Some(hybrid) = &self.hybrid {
            packet.set_path_class(hybrid.path_class(&header));
        }
        if header.from_larger {
            packet.flags = packet.flags.with(Flags::FROM_SERVER);
        }
        if header.ece {
            packet.flags = packet.flags.with(Flags::ECE);
        }
        self.entries = self.entries.wrapping_add(1);
        self.fabric.send(at, packet);
        self.report_lost(out);
        Ingress { at, from, header, size }
    }

    /// Carries out everything up to `now`.
    pub fn advance(&mut self, now: Time, out: &mut impl Out) {
        let mut arrived = Packet::default();
        while let Some((at, owner)) = self.fabric.next_event(now) {
            match self.fabric.on_event(at, owner, &mut arrived) {
                Handled::Delivered(packet) => self.on_host(at, packet, out),
                Handled::Circuits => {
                    self.give_demand();
                    self.compare_circuits(out);
                }
                Handled::Done => {}
                Handled::NotMine => unreachable!("a live fabric schedules no other events"),
            }
            self.report_lost(out);
        }
        self.done = self.done.max(now);
    }

    /// Reports the frames that were lost in an event.
    fn report_lost(&mut self, out: &mut impl Out) {
        for (at, packet) in self.fabric.hooks_mut().0.drain(..) {
            self.digest.take(!at.as_ps());
            self.digest.take(u64::from(packet.seq));
            out.dropped(packet.ack);
        }
    }

    /// A packet has reached its host.
    fn on_host(&mut self, now: Time, packet: &Packet, out: &mut impl Out) {
        if packet.is_trimmed() {
            // The kernel would drop it for its checksum.
            self.fabric.hooks_mut().0.push((now, *packet));
            return;
        }
        if packet.flags.has(Flags::ECE) {
            self.fabric.on_ece(now, packet);
        }
        self.digest.take(now.as_ps());
        self.digest.take(u64::from(packet.seq) << 8 | packet.ecn as u64);
        let places = [WaitPlace::Nic, WaitPlace::Pacer].into_iter().chain(WaitPlace::TIERS);
        out.delivered(Egress {
            at: now,
            to: packet.dst,
            frame: packet.ack,
            marked: packet.ecn == EcnField::Ce,
            waited: places.map(|place| packet.wait(place)).sum(),
        });
    }

    /// Returns the digest of everything that has left or was lost so far.
    pub fn digest(&self) -> Digest64 {
        self.digest
    }

    /// Returns the counters so far; packets that are still under way count as in flight.
    pub fn counters(&self) -> Counters {
        Counters { packets_in_flight: self.fabric.packets_inside(), ..*self.fabric.counters() }
    }

    /// Returns how often each mechanism of the ports has acted so far.
    pub fn mechanism_uses(&self) -> Vec<MechanismUse> {
        self.counted.uses(self.fabric.counters(), &self.fabric.buffer_uses())
    }

    /// Returns how many packets the circuit switch has lost, by cause; `None` in a network without one.
    pub fn circuit_losses(&self) -> Option<CircuitLosses> {
        self.fabric.circuit_losses()
    }

    /// Returns the circuits up to `end` and the weeks of their control loop, of a run whose times and weeks count from
    /// `origin` on; earlier ones are left out.
    pub fn take_circuits(&mut self, origin: Span, end: Time) -> (Vec<CircuitUse>, Vec<CircuitWeek>) {
        let (Some(hybrid), Some(log)) = (&self.hybrid, self.fabric.take_circuit_log(end)) else {
            return (Vec::new(), Vec::new());
        };
        let before = origin.as_ps() / hybrid.week.as_ps().max(1);
        let origin = Time::ZERO + origin;
        let counted = |at: Time| Time::ZERO + at.saturating_since(origin);
        let (mut circuits, mut weeks) = (log.circuits, log.weeks);
        circuits.retain(|circuit| circuit.until > origin);
        weeks.retain(|week| week.ends > origin);
        let first = circuits.first().map_or(0, |first| first.configuration);
        for circuit in &mut circuits {
            circuit.week = circuit.week.saturating_sub(before);
            circuit.configuration -= first;
            circuit.from = counted(circuit.from);
            circuit.until = counted(circuit.until);
            circuit.first = circuit.first.map(counted);
            circuit.onset = circuit.onset.map(counted);
        }
        for week in &mut weeks {
            week.week = week.week.saturating_sub(before);
            (week.begins, week.ends) = (counted(week.begins), counted(week.ends));
            week.made = week.made.map(|made| ScheduleTimes {
                read: counted(made.read),
                gathered: counted(made.gathered),
                ready: counted(made.ready),
            });
        }
        (circuits, weeks)
    }

    /// Stops watching queues, and returns the observations up to `end`, of a run whose times count from `origin` on.
    pub fn take_queues(&mut self, origin: Span, end: Time) -> Vec<QueueObservation> {
        let mut queues = self.fabric.take_queues(end);
        for queue in &mut queues {
            queue.from = Time::ZERO + queue.from.saturating_since(Time::ZERO + origin);
        }
        queues
    }
}

impl LiveHybrid {
    /// Returns the switches by which a frame may travel.
    fn path_class(&self, header: &Header) -> PathClass {
        match (self.acks, header.pool()) {
            (Some(acks), _) if header.is_control => acks,
            (_, PACKET_ONLY) => PathClass::Packet,
            (_, CIRCUIT_ONLY) => PathClass::Circuit,
            _ if !self.binds_subflows => PathClass::Either,
            _ if header.alias == 0 => PathClass::Packet,
            _ => PathClass::Circuit,
        }
    }
}

/// Returns the bytes of the longest frame that TCP sends: a segment with IP's and TCP's headers, the timestamps among
/// them, and Ethernet's with a tag.
fn frame_max(model: &Model) -> u64 {
    let segments = model.carriers().map(|transport| transport.segment.get());
    segments.fold(model.transport.segment.get(), u64::max) + 52 + (ETHERNET + VLAN_TAG) as u64
}

/// Returns the priorities of the scenario's workloads, programs and acknowledgements.
fn priorities(model: &Model) -> Priorities {
    let of_workload = |name: &String| model.priority_of(name).unwrap_or(0);
    let of_programs = model.program.iter().map(|program| program.level.unwrap_or(0));
    let all = model.workload.keys().map(of_workload).chain(of_programs).chain(model.host.ack_priority);
    all.fold(Priorities::default(), Priorities::with)
}

/// Replays the arrivals of `log` to a new `fabric` in simulated time, until `end`.
pub fn replay(mut fabric: LiveFabric, log: &[FrameEntry], end: Time) -> Digest64 {
    for entry in log {
        match entry {
            FrameEntry::Frame(Ingress { at, from, header, size }) => {
                fabric.on_frame(*at, *from, *header, *size, 0, &mut Nowhere);
            }
            FrameEntry::SocketDemand { at, demand } => {
                fabric.on_socket_demand(*at, demand.clone(), &mut Nowhere);
            }
        }
    }
    fabric.advance(end, &mut Nowhere);
    fabric.digest()
}

/// The least time between two entries of the log.
const TICK: Span = Span::from_ps(1);

#[cfg(test)]
mod tests;
