//! [`Links`]: everything behind the ports of a fabric, and the [`Sink`] of all of them.
//!
//! ```text
//! Port ── transmit ───────> lane of the link ──> event: its first packet reaches the far end
//!                     └───> outbox, where the link leaves the logical process
//!      ── call_at ────────> event
//!      ── entered, left ──> flow control, which decides on pauses
//!      ── dropped, room ──> counters, and the hooks of the world
//! ```
//!
//! It is separate from the ports, so that a port and its sink can be borrowed at the same time.

use plimsoll_mechanisms::pfc::Signal;
use plimsoll_mechanisms::shared_buffer::SharedBuffer;
use plimsoll_mechanisms::telemetry::{IntParams, Written};
use plimsoll_units::Time;

use crate::boundary::Boundary;
use crate::engine::{EventQueue, Lanes, Owner, OwnerKind};
use crate::faults::Faults;
use crate::flow_control::FlowControl;
use crate::net::{HostId, Notes, Packet, PortId, Sink, Slot};
use crate::nights::NightClock;
use crate::observed::{Counters, LinkMeter, PriorityCounters, PriorityPorts};
use crate::telemetry::Telemetry;

/// The calls in which one world differs from another when something happens to a packet. A fabric is monomorphised over
/// its hooks, so that a hook that does nothing costs nothing.
pub trait Hooks {
    /// Returns whether [`Hooks::on_hop`] is to be called.
    fn observes_hops(&self) -> bool {
        false
    }

    /// A packet has completed the link of `port`, which its last bit left at `left`.
    fn on_hop(&mut self, _left: Time, _port: PortId, _packet: &Packet) {}

    /// A host hands a packet to its gate. Called where hosts have gates, as all have where hops are observed.
    fn on_sent(&mut self, _now: Time, _packet: &Packet) {}

    /// A packet was lost by its host, was dropped by a port, was lost on a dead link, or found no route.
    fn on_lost(&mut self, _now: Time, _at: LostAt, _packet: &Packet) {}

    /// The far end of the link of `port` pauses or resumes priorities.
    fn on_signal(&mut self, _now: Time, _port: PortId, _signal: Signal) {}

    /// A packet has left the queue of a NIC for which senders wait.
    fn on_room(&mut self, _nic: PortId) {}
}

/// The place at which a packet is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LostAt {
    /// In its host, before the NIC.
    Host,
    /// In the queue of a port, which has no room for it.
    Port(PortId),
    /// On the link of a port, which is dead or leads to a circuit switch that does not pass it on.
    Link(PortId),
    /// At the switch at the far end of the link of a port, which it has completed.
    FarEnd(PortId),
}

/// A world that needs no hook.
impl Hooks for () {}

/// Everything behind the ports of a fabric.
#[derive(Debug)]
pub(crate) struct Links<H> {
    pub(crate) events: EventQueue,
    /// The packets in the network.
    pub(crate) lanes: Lanes,
    pub(crate) counters: Counters,
    /// The ports that count by priority as well.
    pub(crate) priority_ports: PriorityPorts,
    pub(crate) hooks: H,
    /// The buffers that ports of a switch share.
    pub(crate) shared_buffers: Vec<SharedBuffer>,
    /// Present where switches pause each other.
    pub(crate) flow_control: Option<Box<FlowControl>>,
    /// Present where links change during the run; the fabric then has a path selector.
    pub(crate) faults: Option<Box<Faults>>,
    /// Present where NICs have nights.
    pub(crate) nights: Option<Box<NightClock>>,
    /// Present where links are counted.
    pub(crate) meter: Option<Box<LinkMeter>>,
    /// Present where ports stamp packets.
    pub(crate) telemetry: Option<Box<Telemetry>>,
    /// Trimmed packets that a port sends back to their senders, each with the port; empty between events.
    pub(crate) bounced: Vec<(PortId, Slot)>,
    /// Present in a logical process of a parallel run.
    pub(crate) boundary: Option<Box<Boundary>>,
    /// The number of hosts, whose NICs are the first ports.
    pub(crate) hosts: u32,
}

impl<H: Hooks> Links<H> {
    /// Schedules the pacer of `host` at `due`, if that is a new time.
    #[inline]
    pub(crate) fn call_pacer_at(&mut self, host: HostId, due: Option<Time>) {
        if let Some(due) = due {
            self.events.push(due, Owner::new(OwnerKind::Pacer, host.0));
        }
    }

    /// Counts a packet that its host has lost before the NIC.
    #[cold]
    pub(crate) fn lost_at_host(&mut self, now: Time, packet: &Packet) {
        self.counters.host_drops += 1;
        self.hooks.on_lost(now, LostAt::Host, packet);
    }

    /// Counts a packet that was on the link of `port` while it was dead.
    #[cold]
    pub(crate) fn lost_on_link(&mut self, now: Time, port: PortId, slot: Slot) {
        self.counters.link_drops += 1;
        self.lost(now, LostAt::Link(port), slot);
    }

    /// Counts a packet that the circuit switch at the end of the link of `port` has lost.
    #[cold]
    pub(crate) fn lost_in_circuit_switch(&mut self, now: Time, port: PortId, slot: Slot) {
        self.counters.circuit_drops += 1;
        self.lost(now, LostAt::Link(port), slot);
    }

    /// Counts a packet at the switch at the end of the link of `port`, from which no live link leads to its host.
    #[cold]
    pub(crate) fn no_route(&mut self, now: Time, port: PortId, slot: Slot) {
        self.counters.no_route_drops += 1;
        self.lost(now, LostAt::FarEnd(port), slot);
    }

    /// Counts a packet that `port` does not send, and that is in no slot.
    #[cold]
    pub(crate) fn refused(&mut self, now: Time, port: PortId, packet: &Packet) {
        self.count_drop(now, port);
        self.hooks.on_lost(now, LostAt::Port(port), packet);
    }

    fn count_drop(&mut self, now: Time, port: PortId) {
        if let Some(meter) = &mut self.meter {
            meter.on_drop(now, port);
        }
        if self.faults.as_ref().is_some_and(|faults| faults.is_dead(port)) {
            self.counters.link_drops += 1;
        } else if port.0 < self.hosts {
            self.counters.nic_drops += 1;
        } else {
            self.counters.switch_drops += 1;
        }
    }

    /// Returns the counters by priority for the packet in `slot`, where `port` has some.
    #[inline]
    fn of_priority(&mut self, port: PortId, slot: Slot) -> Option<&mut PriorityCounters> {
        let Links { priority_ports, lanes, counters, .. } = self;
        priority_ports.counters(port, lanes.packet(slot), &mut counters.by_priority)
    }

    /// Reports a lost packet to the world, and frees its slot.
    fn lost(&mut self, now: Time, at: LostAt, slot: Slot) {
        let mut packet = Packet::default();
        self.lanes.release(slot, &mut packet);
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.forget(slot);
        }
        self.hooks.on_lost(now, at, &packet);
    }

    /// Observes a packet that has completed the link of `port`, which its last bit left at `left`.
    pub(crate) fn observe_hop(&mut self, left: Time, port: PortId, slot: Slot) {
        let packet = self.lanes.packet(slot);
        if let Some(meter) = &mut self.meter {
            meter.on_hop(left, port, packet);
        }
        if self.hooks.observes_hops() {
            self.hooks.on_hop(left, port, packet);
        }
    }

    /// Returns whether the link of `port` leads to another logical process.
    #[inline]
    pub(crate) fn leaves_process(&self, port: PortId) -> bool {
        self.boundary.as_ref().is_some_and(|boundary| boundary.is_crossed_by(port))
    }
    /// The packet in `slot` leaves the logical process by the link of `port`.
    #[inline(never)]
    fn cross(&mut self, port: PortId, arrives: Time, slot: Slot) {
        let mut packet = Packet::default();
        self.lanes.release(slot, &mut packet);
        let stamps = self.telemetry.as_mut().and_then(|telemetry| telemetry.take(slot));
        if let Some(boundary) = &mut self.boundary {
            boundary.transmit(port, arrives, packet, stamps);
        }
    }
}

impl<H: Hooks> Sink for Links<H> {
    #[inline]
    fn hold(&mut self, packet: Packet) -> Slot {
        let slot = self.lanes.hold(packet);
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.on_sent(slot, self.lanes.packet_mut(slot));
        }
        slot
    }

    #[inline]
    fn packet(&self, slot: Slot) -> &Packet {
        self.lanes.packet(slot)
    }

    #[inline]
    fn packet_mut(&mut self, slot: Slot) -> &mut Packet {
        self.lanes.packet_mut(slot)
    }

    #[inline]
    fn notes(&self) -> &Notes {
        self.lanes.notes()
    }

    #[inline]
    fn notes_mut(&mut self) -> &mut Notes {
        self.lanes.notes_mut()
    }

    #[inline]
    fn transmit(&mut self, port: PortId, arrives: Time, slot: Slot) {
        if self.leaves_process(port) {
            self.cross(port, arrives, slot);
        } else {
            self.lanes.append(port, arrives, slot, &mut self.events);
        }
    }

    fn call_at(&mut self, port: PortId, at: Time) {
        self.events.push(at, Owner::new(OwnerKind::Port, port.0));
    }

    #[inline]
    fn waits(&mut self, port: PortId) {
        self.lanes.note_waiting(port);
    }

    #[inline]
    fn marked(&mut self, port: PortId, slot: Slot) {
        self.counters.marks += 1;
        if let Some(counters) = self.of_priority(port, slot) {
            counters.marked += 1;
        }
    }

    fn stamp(&mut self, slot: Slot, written: Written, params: &IntParams) {
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.stamp(slot, self.lanes.packet_mut(slot), written, params);
        }
    }

    #[cold]
    fn trims(&mut self, port: PortId, slot: Slot) {
        self.counters.trimmed += 1;
        let payload = u64::from(self.lanes.packet(slot).len);
        if let Some(counters) = self.of_priority(port, slot) {
            counters.trimmed += 1;
            counters.trimmed_bytes += payload;
        }
        // The stamps were behind the header that is left.
        if let Some(telemetry) = &mut self.telemetry {
            telemetry.forget(slot);
        }
    }

    #[cold]
    fn bounced(&mut self, port: PortId, slot: Slot) {
        self.counters.bounced += 1;
        if let Some(counters) = self.of_priority(port, slot) {
            counters.bounced += 1;
        }
        self.bounced.push((port, slot));
    }

    #[cold]
    fn dropped(&mut self, now: Time, port: PortId, slot: Slot) {
        self.count_drop(now, port);
        let size = u64::from(self.lanes.packet(slot).size);
        if let Some(counters) = self.of_priority(port, slot) {
            counters.dropped += 1;
            counters.dropped_bytes += size;
        }
        self.lost(now, LostAt::Port(port), slot);
    }

    fn room(&mut self, port: PortId) {
        self.hooks.on_room(port);
    }

    fn entered(&mut self, now: Time, port: PortId, slot: Slot) {
        if let Some(control) = &mut self.flow_control {
            control.entered(port, self.lanes.packet(slot));
            control.observe_entered(now, port, slot, self.lanes.packet(slot));
        }
    }

    fn left(&mut self, port: PortId, slot: Slot) {
        if let Some(control) = &mut self.flow_control {
            control.left(port, self.lanes.packet(slot));
            control.observe_left(port, slot, self.lanes.packet(slot));
        }
    }

    fn passed(&mut self, _now: Time, port: PortId, slot: Slot) {
        // It does not wait, so that no pause blocks it: nothing is observed.
        if let Some(control) = &mut self.flow_control {
            control.passed(port, self.lanes.packet(slot));
        }
    }

    fn pool(&mut self, pool: u32) -> &mut SharedBuffer {
        &mut self.shared_buffers[pool as usize]
    }
}
