//! [`Fabric`]: the network between the hosts, with everything that moves in it.
//!
//! ```text
//! send ──> gate ──> NIC ──> link ──> switch: which port? ──> port ──> link ──> ... ──> Handled::Delivered
//! ```
//!
//! The gate is random loss and the pacer, where hosts have them. The fabric owns the event queue, and its caller owns
//! the loop over it. One total order covers the fabric's links, ports, pacers and pauses and the events that the caller
//! schedules:
//!
//! ```text
//! while let Some((now, owner)) = fabric.next_event(last) {
//!     match fabric.on_event(now, owner, &mut arrived) {
//!         Handled::Delivered(packet) => the host at packet.dst receives it
//!         Handled::Done              => nothing is left to do
//!         Handled::NotMine           => the caller's own event
//!     }
//! }
//! ```

mod logical_process;
mod look_ahead;
mod pauses;
mod read_out;

pub use look_ahead::LeadsTo;
pub use read_out::LinkReading;

use plimsoll_mechanisms::pfc::Priorities;
use plimsoll_units::Time;

use crate::circuits::{CIRCUITS_CLOCK, Circuits, Passage};
use crate::engine::{FoundHop, Owner, OwnerKind};
use crate::faults::FAULTS_CLOCK;
use crate::host_gate::HostGate;
use crate::links::{Hooks, Links};
use crate::net::port::Admitted;
use crate::net::{HostId, Network, Node, Packet, PathClass, PathSelector, Port, PortId, Sink, Slot};
use crate::nights::NIGHTS_CLOCK;
use crate::observed::WatchedQueue;

/// The network between the hosts.
///
/// ```
/// use plimsoll_fabric::net::topology::LinkClass;
/// use plimsoll_fabric::net::{HostId, Network, Packet};
/// use plimsoll_fabric::{Fabric, FabricSpec, Handled};
/// use plimsoll_units::{Rate, Span, Streams, Time};
///
/// let link = LinkClass { rate: Rate::from_gbps(1), propagation: Span::from_us(1) };
/// let spec = FabricSpec::new(Network::rack(2, link));
/// let mut fabric = Fabric::build(spec, &Streams::new(1), ())?;
/// fabric.send(Time::ZERO, Packet::new(HostId(0), HostId(1), 7, 1_000));
/// let (mut arrived, mut delivered) = (Packet::default(), None);
/// while let Some((now, owner)) = fabric.next_event(Time::MAX) {
///     if let Handled::Delivered(packet) = fabric.on_event(now, owner, &mut arrived) {
///         delivered = Some((now, packet.flow));
///     }
/// }
/// // Two links of 8 us and 1 us each.
/// assert_eq!(delivered, Some((Time::ZERO + Span::from_us(18), 7)));
/// # Ok::<(), plimsoll_fabric::Unbuildable>(())
/// ```
#[derive(Debug)]
pub struct Fabric<H> {
    pub(crate) network: Network,
    /// The output ports by number; the first are the hosts' NICs.
    pub(crate) ports: Vec<Port>,
    /// The gates in front of the NICs, by host; empty where no host has one.
    pub(crate) gates: Vec<HostGate>,
    /// The ports of each shared buffer.
    pub(crate) sharing: Vec<Vec<PortId>>,
    /// Chooses paths where the flow's hash does not.
    pub(crate) selector: Option<Box<PathSelector>>,
    /// Everything behind the ports.
    pub(crate) links: Links<H>,
    pub(crate) watched: Vec<WatchedQueue>,
    /// Something inspects each packet at the end of each link: links that change, flow control, circuits, a meter or a
    /// hook.
    pub(crate) inspects_hops: bool,
    /// Flow control alone does so, and no selector chooses paths.
    pub(crate) controls_alone: bool,
    /// Senders wait for room in their NIC.
    pub(crate) backpressure: bool,
    /// Present in a hybrid network.
    pub(crate) circuits: Option<Box<Circuits>>,
}

/// Outcome of handling an event.
#[derive(Clone, Copy, Debug)]
pub enum Handled<'a> {
    /// A packet has reached its host.
    Delivered(&'a Packet),
    /// The caller need not do anything more for the event.
    Done,
    /// The controller of circuits has acted: other queues may send, and it may need the hosts' demand
    /// ([`Fabric::wants_demand`]).
    Circuits,
    /// The event has an owner outside the fabric.
    NotMine,
}

/// The next hop of a packet at the end of a link.
enum NextHop {
    /// A port of the switch there sends it on.
    Port(PortId),
    /// It has reached its host.
    Host,
    /// It is lost and has been counted, or is on its next link already.
    Nowhere,
}

impl<H: Hooks> Fabric<H> {
    /// Schedules an event of an owner outside the fabric.
    #[inline]
    pub fn schedule(&mut self, at: Time, owner: Owner) {
        self.links.events.push(at, owner);
    }

    /// Takes the next event, if it is at `last` or before, and counts it. The caller then passes it to
    /// [`Fabric::on_event`].
    #[inline]
    pub fn next_event(&mut self, last: Time) -> Option<(Time, Owner)> {
        let event = self.links.events.pop_until(last)?;
        self.links.counters.events += 1;
        Some(event)
    }

    /// Handles the event of `owner` at `now`, if the owner belongs to the fabric. A packet that has reached its host is
    /// written to `arrived`, which is overwritten: returned by value, it would be copied twice more.
    #[inline(always)] // once an event
    pub fn on_event<'a>(&mut self, now: Time, owner: Owner, arrived: &'a mut Packet) -> Handled<'a> {
        let number = owner.number();
        match owner.kind() {
            OwnerKind::Link => return self.on_link(now, PortId(number), arrived),
            OwnerKind::Pacer => {
                self.on_pacer_due(now, HostId(number));
                return Handled::Done;
            }
            OwnerKind::Port => {
                // Whether a departure is an event depends on the threads of the run, and its counters must not.
                self.links.counters.events -= 1;
                self.ports[number as usize].on_due(PortId(number), now, &mut self.links);
                self.send_pauses(now);
                if number >= self.links.hosts {
                    return Handled::Done;
                }
            }
            OwnerKind::Pause => self.on_pause_due(now, PortId(number)),
            OwnerKind::Clock if number == FAULTS_CLOCK => self.on_faults_due(now),
            OwnerKind::Clock if number == CIRCUITS_CLOCK => {
                self.on_circuits_due(now);
                return Handled::Circuits;
            }
            OwnerKind::Clock if number == NIGHTS_CLOCK => self.on_night_due(now),
            OwnerKind::Endpoint | OwnerKind::Workload | OwnerKind::Clock | OwnerKind::Receive => {
                return Handled::NotMine;
            }
        }
        Handled::Done
    }

    /// The first packet of the link of `port` has reached the far end. It is moved to `arrived`.
    #[inline(always)]
    fn on_link<'a>(&mut self, now: Time, port: PortId, arrived: &'a mut Packet) -> Handled<'a> {
        let (slot, found, waits) = self.links.lanes.take_first(port, &mut self.links.events);
        if waits {
            self.settle_port(port, now);
        }
        if self.inspects_hops {
            return if self.controls_alone {
                self.on_controlled_link(now, port, slot, arrived)
            } else {
                self.on_inspected_link(now, port, slot, arrived)
            };
        }
        self.links.counters.packet_hops += 1;
        let next = match found {
            FoundHop::NONE if self.selector.is_some() => self.select_hop(now, port, slot),
            FoundHop::NONE => self.next_hop(port, self.links.lanes.packet(slot)),
            found => {
                if self.selector.is_some() {
                    self.add_transit(port, slot);
                }
                found.port().map_or(NextHop::Host, NextHop::Port)
            }
        };
        if let NextHop::Port(next) = next {
            self.forward(now, port, next, slot);
            return Handled::Done;
        }
        self.links.lanes.release(slot, arrived);
        self.links.counters.packets_delivered += 1;
        Handled::Delivered(arrived)
    }

    /// The packet in `slot` is to leave by `port`; `from` has sent it there, which is `port` itself in a host.
    #[inline(always)] // once a hop
    fn forward(&mut self, now: Time, from: PortId, port: PortId, slot: Slot) {
        let (links, next) = (&mut self.links, &mut self.ports[port.0 as usize]);
        if let Some(express) = next.as_express()
            && !links.leaves_process(port)
        {
            if let Some(Admitted { arrives, marked }) = express.admit(now, links.lanes.packet_mut(slot)) {
                links.counters.marks += u64::from(marked);
                links.lanes.append(port, arrives, slot, &mut links.events);
                return;
            }
            return links.dropped(now, port, slot);
        }
        self.hand_to_port(now, from, port, slot);
    }

    /// Returns whether the switch that the packet in `slot` has reached from `from` has room for it under flow control.
    /// The packet, which is to leave by `port`, is dropped there otherwise.
    #[inline]
    fn flow_control_admits(&mut self, now: Time, from: PortId, port: PortId, slot: Slot) -> bool {
        let Some(control) = &mut self.links.flow_control else { return true };
        let admits = control.admit(from, port, self.links.lanes.packet_mut(slot));
        if !admits {
            self.links.dropped(now, port, slot);
        }
        admits
    }

    /// Carries out the departures of `port` that are due at `now`.
    #[inline(never)]
    fn settle_port(&mut self, port: PortId, now: Time) {
        self.ports[port.0 as usize].settle(port, now, &mut self.links);
    }

    /// The packet in `slot` is to leave by `port`, which decides at each departure or leads to another logical process.
    #[inline(never)]
    fn hand_to_port(&mut self, now: Time, from: PortId, port: PortId, slot: Slot) {
        if !self.sharing.is_empty()
            && let Some(room) = self.ports[port.0 as usize].shared_room()
        {
            let size = u64::from(self.links.lanes.packet(slot).size);
            if !self.links.shared_buffers[room.pool as usize].has_room(room.port, size) {
                self.settle_shared(now, from, room.pool);
            }
        }
        let (links, next) = (&mut self.links, &mut self.ports[port.0 as usize]);
        match next.pass(now, links.lanes.packet(slot)) {
            Some(arrives) => links.transmit(port, arrives, slot),
            None => {
                next.on_arrival(port, now, slot, links);
                if !links.bounced.is_empty() {
                    self.send_back(now, from);
                }
            }
        }
    }

    /// Has the ports of the shared buffer `pool` carry out the departures that are due, as a packet finds no room
    /// there: the buffer may hold packets that have left. Departures of this very instant count if their events would
    /// be earlier than the arrival from `from`.
    #[cold]
    fn settle_shared(&mut self, now: Time, from: PortId, pool: u32) {
        let arrival = Owner::new(OwnerKind::Link, from.0);
        for member in &self.sharing[pool as usize] {
            let is_earlier = Owner::new(OwnerKind::Port, member.0).precedes(arrival, now);
            let until = if is_earlier { now } else { Time::from_ps(now.as_ps() - 1) };
            self.ports[member.0 as usize].settle(*member, until, &mut self.links);
        }
    }

    /// Sends packets that a port has addressed to their senders on from the switch of that port.
    #[cold]
    fn send_back(&mut self, now: Time, from: PortId) {
        while let Some((port, slot)) = self.links.bounced.pop() {
            let packet = self.links.lanes.packet_mut(slot);
            let Node::Switch(switch) = self.network.link(port).from else {
                unreachable!("only ports of switches trim")
            };
            let next = match &mut self.selector {
                None => Some(self.network.next_port(switch, packet)),
                Some(selector) => selector.next_port(now, &self.network, &self.ports, switch, packet),
            };
            match next {
                Some(next) => self.hand_to_port(now, from, next, slot),
                None => self.links.no_route(now, port, slot),
            }
        }
    }

    /// The packet in `slot` has reached the far end of the link of `port`, where something inspects every packet.
    #[cold] // so that the others' registers are not kept for it
    fn on_inspected_link<'a>(
        &mut self,
        now: Time,
        port: PortId,
        slot: Slot,
        arrived: &'a mut Packet,
    ) -> Handled<'a> {
        match self.inspect_hop(now, port, slot) {
            NextHop::Port(next) => {
                self.hand_to_port(now, port, next, slot);
                self.send_pauses(now);
                Handled::Done
            }
            NextHop::Host => {
                self.links.lanes.release(slot, arrived);
                if let Some(telemetry) = &mut self.links.telemetry {
                    telemetry.on_delivered(slot, arrived);
                }
                self.links.counters.packets_delivered += 1;
                Handled::Delivered(arrived)
            }
            NextHop::Nowhere => Handled::Done,
        }
    }

    /// The packet in `slot` has reached the far end of the link of `port`, where switches may pause their neighbours
    /// and nothing else inspects packets: [`Fabric::on_inspected_link`] without the rest.
    #[inline(never)]
    fn on_controlled_link<'a>(
        &mut self,
        now: Time,
        port: PortId,
        slot: Slot,
        arrived: &'a mut Packet,
    ) -> Handled<'a> {
        self.links.counters.packet_hops += 1;
        match self.next_hop(port, self.links.lanes.packet(slot)) {
            NextHop::Port(next) => {
                if self.flow_control_admits(now, port, next, slot) {
                    self.hand_to_port(now, port, next, slot);
                    self.send_pauses(now);
                }
                Handled::Done
            }
            _ => {
                self.links.lanes.release(slot, arrived);
                self.links.counters.packets_delivered += 1;
                Handled::Delivered(arrived)
            }
        }
    }

    /// Returns the next hop of `packet` at the end of the link of `port`.
    #[inline]
    fn next_hop(&self, port: PortId, packet: &Packet) -> NextHop {
        match self.network.far_switch(port) {
            Some(switch) => NextHop::Port(self.network.next_port(switch, packet)),
            None => NextHop::Host,
        }
    }

    /// Adds the transit time of the link of `port` to the packet in `slot`: its path is not the one that the flow's
    /// hash gives.
    #[inline]
    fn add_transit(&mut self, port: PortId, slot: Slot) {
        let packet = self.links.lanes.packet_mut(slot);
        packet.add_transit(self.network.link(port).transit(packet.size));
    }

    /// Returns the next hop of the packet in `slot` at the end of the link of `port`, where a selector chooses paths
    /// and no link changes. It adds the link's transit time to the packet.
    fn select_hop(&mut self, now: Time, port: PortId, slot: Slot) -> NextHop {
        self.add_transit(port, slot);
        let (Some(switch), Some(selector)) = (self.network.far_switch(port), &mut self.selector) else {
            return NextHop::Host;
        };
        let packet = self.links.lanes.packet(slot);
        let next = selector.next_port(now, &self.network, &self.ports, switch, packet);
        NextHop::Port(next.expect("a link leads to every host where none changes"))
    }

    /// Returns the next hop of the packet in `slot` at the end of the link of `port`, where something inspects every
    /// packet.
    #[inline]
    fn inspect_hop(&mut self, now: Time, port: PortId, slot: Slot) -> NextHop {
        let left = now - self.network.link(port).propagation;
        if self.selector.is_some() && !self.survives(left, now, port, slot) {
            self.links.lost_on_link(now, port, slot);
            return NextHop::Nowhere;
        }
        match self.passes_hybrid(now, port, slot) {
            Passage::OnPath => {}
            Passage::Through(out, arrives) => {
                self.links.counters.packet_hops += 1;
                self.links.observe_hop(left, port, slot);
                self.links.transmit(out, arrives, slot);
                return NextHop::Nowhere;
            }
            Passage::Lost => {
                self.links.lost_in_circuit_switch(now, port, slot);
                return NextHop::Nowhere;
            }
        }
        self.links.counters.packet_hops += 1;
        self.links.observe_hop(left, port, slot);
        let Some(switch) = self.network.far_switch(port) else { return NextHop::Host };
        let packet = self.links.lanes.packet_mut(slot);
        let next = match &mut self.selector {
            None => Some(self.network.next_port(switch, packet)),
            Some(selector) => selector.next_port(now, &self.network, &self.ports, switch, packet),
        };
        let Some(next) = next else {
            self.links.no_route(now, port, slot);
            return NextHop::Nowhere;
        };
        if self.flow_control_admits(now, port, next, slot) { NextHop::Port(next) } else { NextHop::Nowhere }
    }

    /// Returns whether the packet in `slot`, which left at `left`, was not lost on the link of `port`. It adds the
    /// link's transit time to the packet, because its path is not the one that the flow's hash gives; in a hybrid
    /// network [`Fabric::passes_hybrid`] does.
    fn survives(&mut self, left: Time, now: Time, port: PortId, slot: Slot) -> bool {
        match self.links.faults.as_ref().and_then(|faults| faults.link(port)) {
            // The port of a link that changes has added the time itself: it knew the rate.
            Some(scheduled) => !scheduled.loses(left, now),
            None if self.circuits.is_some() => true,
            None => {
                self.add_transit(port, slot);
                true
            }
        }
    }

    /// Handles the call that the pacer of `host` has requested.
    fn on_pacer_due(&mut self, now: Time, host: HostId) {
        let nic = &mut self.ports[host.0 as usize];
        let Some(pacer) = &mut self.gates[host.0 as usize].pacer else { return };
        let due = pacer.on_due(now, nic, &mut self.links);
        self.links.call_pacer_at(host, due);
    }

    /// `packet.src` sends a packet: through its gate, if it has one, to its NIC.
    #[inline(always)] // once a packet
    pub fn send(&mut self, now: Time, packet: Packet) {
        let host = packet.src;
        if let Some(circuits) = &mut self.circuits {
            circuits.on_sent(now, &packet);
        }
        self.links.counters.packets_sent += 1;
        let nic = &mut self.ports[host.0 as usize];
        match self.gates.get_mut(host.0 as usize) {
            Some(gate) => {
                let due = gate.on_packet(now, packet, nic, &mut self.links);
                self.links.call_pacer_at(host, due);
            }
            None => {
                let slot = self.links.lanes.hold(packet);
                self.forward(now, PortId(host.0), PortId(host.0), slot);
            }
        }
    }

    /// `packet.src` sends a packet that no pacer delays.
    pub fn send_unpaced(&mut self, now: Time, packet: Packet) {
        let nic = PortId(packet.src.0);
        if let Some(circuits) = &mut self.circuits {
            circuits.on_sent(now, &packet);
        }
        self.links.counters.packets_sent += 1;
        if let Some(gate) = self.gates.get_mut(nic.0 as usize) {
            self.links.hooks.on_sent(now, &packet);
            if gate.loses() {
                return self.links.lost_at_host(now, &packet);
            }
        }
        let slot = self.links.hold(packet);
        self.ports[nic.0 as usize].on_arrival(nic, now, slot, &mut self.links);
    }

    /// `packet.src` drops a packet instead of sending it, because a limiter in the host refuses it.
    pub fn refuse(&mut self, now: Time, packet: &Packet) {
        self.links.counters.packets_sent += 1;
        self.links.refused(now, PortId(packet.src.0), packet);
    }

    /// Returns whether `bytes` more would find room in the NIC of `host`.
    #[inline]
    pub fn has_room(&mut self, now: Time, host: HostId, bytes: u64) -> bool {
        self.ports[host.0 as usize].has_room(now, bytes)
    }

    /// Returns whether `bytes` more to `destination` would find room in their queue in the NIC of `host`: in a hybrid
    /// network each destination has one.
    #[inline]
    pub fn class_has_room(
        &mut self,
        now: Time,
        host: HostId,
        destination: HostId,
        class: PathClass,
        bytes: u64,
    ) -> bool {
        self.ports[host.0 as usize].class_has_room(now, destination.0, class, bytes)
    }

    /// Returns whether no packet waits in the NIC of `host` that a packet of `priority` would wait for in their queue;
    /// the link may be busy.
    #[inline]
    pub fn nic_is_clear(&self, host: HostId, priority: u8) -> bool {
        !self.ports[host.0 as usize].holds(priority)
    }

    /// Returns whether no packet waits in the NIC of `host`; the link may be busy.
    #[inline]
    pub fn nic_is_empty(&self, host: HostId) -> bool {
        !self.ports[host.0 as usize].holds_any()
    }

    /// Returns the first port on the shortest path of `packet` where packets of its priority wait and are paused.
    pub fn paused_port(&self, packet: &Packet) -> Option<PortId> {
        let priorities = Priorities::one(packet.priority);
        self.network.path(packet).find(|port| self.ports[port.0 as usize].holds_all(priorities))
    }

    /// Returns whether `bytes` more would find room in the NIC of `host` for every destination: in a hybrid network, in
    /// each of its queues.
    #[inline]
    pub fn classes_have_room(&mut self, now: Time, host: HostId, bytes: u64) -> bool {
        self.ports[host.0 as usize].classes_have_room(now, bytes)
    }

    /// Returns whether packets wait in the NIC of `host` and all of `priorities` are paused.
    pub fn is_paused(&self, host: HostId, priorities: Priorities) -> bool {
        self.ports[host.0 as usize].holds_all(priorities)
    }

    /// Hands the packets that a host's pacer holds to its NIC, as far as there is room.
    pub fn release_paced(&mut self, now: Time, nic: PortId) {
        if let Some(HostGate { pacer: Some(pacer), .. }) = self.gates.get_mut(nic.0 as usize) {
            let due = pacer.release(now, &mut self.ports[nic.0 as usize], &mut self.links);
            self.links.call_pacer_at(HostId(nic.0), due);
        }
    }

    /// `packet` has brought an ECN echo to its host, whose pacer may associate the connection.
    #[cold]
    pub fn on_ece(&mut self, now: Time, packet: &Packet) {
        let host = packet.dst.0 as usize;
        if let Some(HostGate { pacer: Some(pacer), .. }) = self.gates.get_mut(host) {
            pacer.on_ece(now, packet.flow);
        } else if let Some(pacer) = self.ports[host].head_pacer() {
            pacer.on_ece(packet.flow);
        }
    }
}
