//! [`World`]: one run, from the first event to the last.

use std::collections::VecDeque;

use plimsoll_fabric::engine::{EventQueue, Lanes, Owner, OwnerKind};
use plimsoll_fabric::net::{Flags, HostId, Network, Packet, PathSelector, Port, PortId, Sink};
use plimsoll_mechanisms::nic_burst::SegmentationOffload;
use plimsoll_mechanisms::shared_buffer::SharedBuffer;
use plimsoll_mechanisms::tcp;
use plimsoll_results::outcome::Counters;
use plimsoll_units::{Span, Time};
use plimsoll_wiring::faults::Faults;
use plimsoll_wiring::flow_control::FlowControl;
use plimsoll_wiring::{Window, ideal_time};

use crate::classes::Classes;
use crate::connection::{Connection, End, acknowledged, split_of, transit_of};
use crate::host::HostPacer;
use crate::look_ahead::LookAhead;
use crate::observe::Recorder;
use crate::parallel::{Border, Letter};
use crate::receive::{ReceiveOffload, prepend};
use crate::tap::Tap;
use crate::wire::{Address, packet_of, segment_of};
use crate::workload::{Actions, Arrival, Reach, Workload, Write, workload_of_raw};
use crate::{Progress, RunError};

/// Everything that exists in a run.
pub(crate) struct World {
    pub(crate) network: Network,
    pub(crate) transport: tcp::Config,
    /// Output ports by number; the first are the hosts' NICs.
    pub(crate) ports: Vec<Port>,
    /// By host, where the scenario has the paper's pacer.
    pub(crate) pacers: Vec<HostPacer>,
    /// Where hosts receive in batches.
    pub(crate) receive_offload: Option<Box<ReceiveOffload>>,
    /// By number; `None` once closed.
    pub(crate) connections: Vec<Option<Box<Connection>>>,
    pub(crate) workloads: Vec<Box<dyn Workload>>,
    pub(crate) workload_armed: Vec<Time>,
    pub(crate) recorder: Recorder,
    /// Where packets are captured.
    pub(crate) tap: Option<Box<Tap>>,
    pub(crate) wires: Wires,
    pub(crate) rules: Rules,
    pub(crate) actions: Actions,
    /// By host: ends that wait for room in its NIC queue, in the order of their turns.
    pub(crate) waiting_for_room: Vec<VecDeque<(u32, End)>>,
    /// The time of the last event.
    pub(crate) now: Time,
    /// A workload has acted since the last look at whether all have finished.
    pub(crate) acted: bool,
    /// When all workloads had finished.
    pub(crate) finished: Option<Time>,
    /// Priorities and limits, where packets differ in them.
    pub(crate) classes: Option<Box<Classes>>,
    /// Where a flow's hash does not choose its path.
    pub(crate) selector: Option<Box<PathSelector>>,
    /// Where the network is too large for the cache.
    pub(crate) ahead: Option<Box<LookAhead>>,
    /// Where this is a part of a network: letters about connections that are yet to be opened.
    pub(crate) early_letters: Vec<Letter>,
    /// Events that every part with hosts has.
    pub(crate) replicated_events: u64,
}

/// What the scenario says about the run as a whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// The run ends here at the latest.
    pub(crate) horizon: Time,
    /// The run ends when every workload has finished.
    pub(crate) stop_when_finished: bool,
    /// How long the run goes on then: the shortest propagation of a link. No switch hears sooner that it is over,
    /// so parts of a network that run beside each other end as the whole does.
    pub(crate) grace: Span,
    /// The transport waits for room in the NIC queue.
    pub(crate) backpressure: bool,
    /// Connections are closed when they fall idle.
    pub(crate) close_when_idle: bool,
    /// A message is complete when its sender knows of its delivery.
    pub(crate) completes_acknowledged: bool,
    /// Packets of a flow may take several paths at a time.
    pub(crate) spreads: bool,
    /// Senders wait for a piece worth handing to the NIC.
    pub(crate) segmentation: Option<SegmentationOffload>,
}

impl Rules {
    /// All workloads have `finished`.
    pub(crate) fn end_after(&mut self, finished: Time) {
        self.horizon = self.horizon.min(finished + self.grace);
    }
}

/// The links, and what ports want from the world: the simulated [`Sink`].
#[derive(Debug)]
pub(crate) struct Wires {
    pub(crate) events: EventQueue,
    pub(crate) lanes: Lanes,
    pub(crate) counters: Counters,
    /// NICs with room for a transport that waits.
    pub(crate) room: Vec<PortId>,
    /// Workloads whose raw packets were dropped, one entry a packet: nobody sends those again.
    lost: Vec<u16>,
    /// The buffers that ports of a switch share.
    pub(crate) pools: Vec<SharedBuffer>,
    /// Where switches pause each other.
    pub(crate) flow_control: Option<Box<FlowControl>>,
    /// Where this is a part of a network.
    pub(crate) border: Option<Box<Border>>,
    /// By port, where links are counted: packets dropped in the window.
    pub(crate) drops: Vec<u64>,
    pub(crate) window: Window,
    /// Where links change; then there is a selector, too.
    pub(crate) faults: Option<Box<Faults>>,
    hosts: u32,
}

impl Wires {
    pub(crate) fn new(network: &Network, window: Window) -> Wires {
        Wires {
            events: EventQueue::new(),
            lanes: Lanes::new(network.links().len()),
            counters: Counters::default(),
            room: Vec::new(),
            lost: Vec::new(),
            pools: Vec::new(),
            flow_control: None,
            border: None,
            drops: Vec::new(),
            window,
            faults: None,
            hosts: network.hosts(),
        }
    }

    /// `packet` was on a link that is dead.
    #[cold]
    fn lost_on_link(&mut self, packet: &Packet) {
        self.lost.extend(workload_of_raw(packet.flow));
        self.counters.link_drops += 1;
    }

    /// `packet` is at a switch that knows no way to its host.
    #[cold]
    fn no_route(&mut self, packet: &Packet) {
        self.lost.extend(workload_of_raw(packet.flow));
        self.counters.no_route_drops += 1;
    }
}

impl Wires {
    /// Whether `host` is in this part of the network.
    #[inline]
    fn has(&self, host: HostId) -> bool {
        self.border.as_ref().is_none_or(|border| border.has(host))
    }
}

impl Sink for Wires {
    #[inline(always)] // once a hop: a call would copy the packet
    fn transmit(&mut self, port: PortId, arrives: Time, packet: Packet) -> &mut Packet {
        match &mut self.border {
            Some(border) if border.is_crossed_by(port) => border.transmit(port, arrives, packet),
            _ => self.lanes.push(port, arrives, packet, &mut self.events),
        }
    }

    fn call_at(&mut self, port: PortId, at: Time) {
        self.events.push(at, Owner::new(OwnerKind::Port, port.0));
    }

    #[inline]
    fn marked(&mut self, _: PortId, _: &Packet) {
        self.counters.marks += 1;
    }

    fn dropped(&mut self, now: Time, port: PortId, packet: &Packet) {
        if let Some(drops) = self.drops.get_mut(port.0 as usize) {
            *drops += u64::from(self.window.has(now));
        }
        self.lost.extend(workload_of_raw(packet.flow));
        if self.faults.as_ref().is_some_and(|faults| faults.is_dead(port)) {
            self.counters.link_drops += 1;
        } else if port.0 < self.hosts {
            self.counters.nic_drops += 1;
        } else {
            self.counters.switch_drops += 1;
        }
    }

    fn room(&mut self, port: PortId) {
        self.room.push(port);
    }

    fn entered(&mut self, port: PortId, packet: &Packet) {
        if let Some(control) = &mut self.flow_control {
            control.entered(port, packet);
        }
    }

    fn left(&mut self, port: PortId, packet: &Packet) {
        if let Some(control) = &mut self.flow_control {
            control.left(port, packet);
        }
    }

    fn pool(&mut self, pool: u32) -> &mut SharedBuffer {
        &mut self.pools[pool as usize]
    }
}

impl World {
    /// Runs to the end, and says when that was. `progress` is called now and then, and may stop the run.
    pub(crate) fn run(&mut self, progress: &mut dyn FnMut(Progress) -> bool) -> Result<Time, RunError> {
        self.begin();
        self.run_until(self.rules.horizon, progress)?;
        if let Some(finished) = self.finished {
            self.rules.end_after(finished);
            self.run_until(self.rules.horizon, progress)?;
        } else if self.wires.flow_control.is_some() {
            self.on_flow_control(Time::MAX)?;
        }
        Ok(if self.wires.events.is_empty() { self.now } else { self.rules.horizon })
    }

    /// Workloads say when they want to act first.
    pub(crate) fn begin(&mut self) {
        for workload in 0..self.workloads.len() {
            self.arm_workload(workload);
        }
        if self.is_finishing() {
            self.finished = Some(Time::ZERO);
        }
    }

    /// Handles all events up to `last`, or up to the one with which all workloads have finished.
    pub(crate) fn run_until(
        &mut self,
        last: Time,
        progress: &mut dyn FnMut(Progress) -> bool,
    ) -> Result<(), RunError> {
        while let Some((now, owner)) = self.wires.events.pop_until(last) {
            self.now = now;
            self.look_ahead();
            match owner.kind() {
                OwnerKind::Link => self.on_link(now, PortId(owner.number())),
                OwnerKind::Port => self.on_port_due(now, PortId(owner.number())),
                OwnerKind::Pacer => self.on_pacer_due(now, HostId(owner.number())),
                OwnerKind::Endpoint => self.on_endpoint_due(now, owner.number()),
                OwnerKind::Workload => self.on_workload_due(now, owner.number() as usize),
                OwnerKind::Clock if owner.number() == SAMPLING_CLOCK => self.on_sample(now),
                OwnerKind::Clock => self.on_faults_due(now),
                OwnerKind::Receive => self.on_receive_due(now, HostId(owner.number())),
                OwnerKind::Pause => self.on_pause_due(now, PortId(owner.number())),
            }
            if !self.wires.lost.is_empty() {
                self.on_lost(now);
            }
            if self.wires.flow_control.is_some() {
                self.on_flow_control(now)?;
            }
            self.wires.counters.events += 1;
            if self.wires.counters.events.is_multiple_of(PROGRESS_EVENTS) && !progress(self.progress(now)) {
                return Err(RunError::Cancelled);
            }
            if std::mem::take(&mut self.acted) && self.is_finishing() {
                self.finished = Some(now);
                break;
            }
        }
        Ok(())
    }

    fn progress(&self, now: Time) -> Progress {
        Progress {
            now,
            horizon: self.rules.horizon,
            packet_hops: self.wires.counters.packet_hops,
            events: self.wires.counters.events,
        }
    }

    /// Whether all workloads have finished, and had not before.
    fn is_finishing(&self) -> bool {
        self.rules.stop_when_finished
            && self.finished.is_none()
            && self.workloads.iter().all(|workload| workload.is_finished())
    }

    /// The first packet of a link has reached its far end.
    #[inline]
    fn on_link(&mut self, now: Time, port: PortId) {
        let mut packet = self.wires.lanes.pop(port, &mut self.wires.events);
        if self.selector.is_some() && !self.crosses(now, port, &mut packet) {
            return self.wires.lost_on_link(&packet);
        }
        self.wires.counters.packet_hops += 1;
        if let Some(tap) = &mut self.tap {
            tap.on_packet(now - self.network.link(port).propagation, port, &packet);
        }
        if let Some(control) = &mut self.wires.flow_control
            && !control.admit(now, port, &mut packet)
        {
            return self.wires.dropped(now, self.network.port_towards(packet.dst), &packet);
        }
        match self.network.far_switch(port) {
            Some(switch) => {
                let next = match &mut self.selector {
                    None => self.network.next_port(switch, &packet),
                    Some(selector) => {
                        let next = selector.next_port(now, &self.network, &self.ports, switch, &packet);
                        let Some(next) = next else { return self.wires.no_route(&packet) };
                        next
                    }
                };
                self.ports[next.0 as usize].on_arrival(next, now, packet, &mut self.wires);
            }
            None => self.on_host(now, &packet),
        }
    }

    fn on_port_due(&mut self, now: Time, port: PortId) {
        self.ports[port.0 as usize].on_due(port, now, &mut self.wires);
        self.offer_room(now);
    }

    /// A packet has reached its host.
    fn on_host(&mut self, now: Time, packet: &Packet) {
        self.wires.counters.packets_delivered += 1;
        if self.receive_offload.is_some() {
            return self.on_nic(now, packet);
        }
        if packet.flags.has(Flags::ECE) {
            self.on_ece(now, packet);
        }
        self.receive(now, packet, &[]);
    }

    /// The transport gets a packet, which receive offload may have merged with those `before` it.
    #[inline(always)] // it has a caller for each, and single packets are all that most runs have
    pub(crate) fn receive(&mut self, now: Time, packet: &Packet, before: &[Packet]) {
        if let Some(workload) = workload_of_raw(packet.flow) {
            let split = transit_of(&self.network, packet);
            self.act(now, usize::from(workload), |workload, actions| {
                workload.on_packet(now, packet, split, actions);
            });
            return;
        }
        let number = packet.flow;
        let Some(connection) = self.connections[number as usize].as_deref_mut() else { return };
        let end = End::receiving(packet);
        let endpoint = &mut connection.half(end).endpoint;
        let mut segment = segment_of(packet, endpoint.received(), endpoint.sent());
        if !before.is_empty() {
            prepend(&mut segment, before);
        }
        let delivered = endpoint.on_segment(&self.transport, now, &segment);
        let received = endpoint.received();
        let workload = connection.workload;
        let completes = delivered.new_bytes > 0 && connection.half(end).has_whole(received);
        if delivered.new_bytes > 0 {
            connection.active = Some((connection.active.map_or(now, |(first, _)| first), now));
            self.recorder.on_delivered(now, workload, delivered.new_bytes);
        }
        // The acknowledgement leaves before whatever the application answers.
        self.send(now, number, end);
        if delivered.acked > 0 && self.rules.completes_acknowledged {
            self.on_acknowledged(now, number, end, packet);
        }
        if completes {
            self.on_delivered(now, number, end, received, packet, before);
        }
    }

    /// The application at `end` gets what has become whole.
    fn on_delivered(
        &mut self,
        now: Time,
        number: u32,
        end: End,
        received: u64,
        packet: &Packet,
        before: &[Packet],
    ) {
        loop {
            let Some(connection) = self.connections[number as usize].as_deref_mut() else { return };
            let workload = usize::from(connection.workload);
            let Some(message) = connection.half(end).take_received(received) else { return };
            let packet = message.ends_in(before).unwrap_or(packet);
            let split = split_of(&self.network, now, packet, &message);
            let ideal =
                ideal_time(&self.network, &self.transport, message.bytes, *packet, self.rules.spreads);
            let arrival = Arrival { now, tag: message.tag, split, ideal };
            if self.rules.completes_acknowledged && self.workloads[workload].reach() == Reach::Receiver {
                connection.half(end.other()).await_acknowledgement(&message, arrival);
                continue;
            }
            self.act(now, workload, |workload, actions| workload.on_message(arrival, actions));
            self.close_if_idle(number);
        }
    }

    /// The sender at `end` has learnt from `packet` of more that was delivered.
    fn on_acknowledged(&mut self, now: Time, number: u32, end: End, packet: &Packet) {
        loop {
            let Some(connection) = self.connections[number as usize].as_deref_mut() else { return };
            let workload = usize::from(connection.workload);
            let Some(arrival) = connection.half(end).take_acknowledged() else { return };
            let arrival =
                acknowledged(&self.network, &self.transport, now, packet, arrival, self.rules.spreads);
            self.act(now, workload, |workload, actions| workload.on_message(arrival, actions));
            self.close_if_idle(number);
        }
    }

    #[cold]
    fn on_lost(&mut self, now: Time) {
        while let Some(workload) = self.wires.lost.pop() {
            self.act(now, usize::from(workload), |workload, _| workload.on_lost(now));
        }
    }

    fn close_if_idle(&mut self, number: u32) {
        if self.rules.close_when_idle
            && let Some(connection) = self.connections[number as usize].as_deref()
            && connection.is_idle()
        {
            self.recorder.on_closed(number, connection);
            self.connections[number as usize] = None;
        }
    }

    /// Sends what the end may send now, and sees to its timer.
    fn send(&mut self, now: Time, number: u32, end: End) {
        let Some(connection) = self.connections[number as usize].as_deref_mut() else { return };
        let (src, dst) = (connection.host(end), connection.host(end.other()));
        let address = Address { flow: number, src, dst, from_server: end == End::Server };
        let workload = connection.workload;
        let nic = &mut self.ports[src.0 as usize];
        let (half, other) = connection.both(end);
        let full_size = self.transport.segment + u64::from(self.transport.header_bytes);
        let mut wake = Time::MAX;
        loop {
            if self.rules.backpressure && !nic.has_room(now, full_size) {
                if !std::mem::replace(&mut half.blocked, true) {
                    self.waiting_for_room[src.0 as usize].push_back((number, end));
                }
                break;
            }
            if let Some(offload) = &self.rules.segmentation
                && !half.may_send(offload, &self.transport)
            {
                break;
            }
            if let Some(classes) = &self.classes
                && let Some(until) =
                    classes.waits_until(now, src, half.priority, full_size, half.limiter.as_deref())
            {
                wake = until;
                break;
            }
            let Some(segment) = half.endpoint.poll_transmit(&self.transport, now) else { break };
            let mut packet = packet_of(&segment, address, self.transport.wire_bytes(&segment));
            self.wires.counters.packets_sent += 1;
            let new_bytes = half.on_sent(&segment);
            if new_bytes > 0 {
                self.recorder.on_sent(now, workload, new_bytes);
                while let Some(message) = half.take_sent(now) {
                    match &mut self.wires.border {
                        Some(border) if !border.has(dst) => {
                            border.announce(dst, number, end.other(), message)
                        }
                        _ => other.expect(message),
                    }
                }
            }
            if let Some(classes) = &mut self.classes {
                classes.label(&mut packet, half.priority, || half.endpoint.remaining());
                if !classes.passes(now, &packet, half.limiter.as_deref_mut()) {
                    self.wires.dropped(now, PortId(src.0), &packet);
                    continue;
                }
            }
            match self.pacers.get_mut(src.0 as usize) {
                Some(pacer) => pacer.on_packet(now, packet, nic, &mut self.wires),
                None => nic.on_arrival(PortId(src.0), now, packet, &mut self.wires),
            }
        }
        let deadline = half.endpoint.deadline().min(wake);
        if deadline < half.armed {
            half.armed = deadline;
            let owner = Owner::new(OwnerKind::Endpoint, number * 2 + end as u32);
            self.wires.events.push(deadline, owner);
        }
    }

    /// The event of an end's timer; the deadline itself may have moved on since.
    fn on_endpoint_due(&mut self, now: Time, number: u32) {
        let (connection, end) = (number / 2, End::from_bit(number));
        let Some(open) = self.connections[connection as usize].as_deref_mut() else { return };
        let half = open.half(end);
        if half.armed != now {
            return;
        }
        half.armed = Time::MAX;
        if half.endpoint.deadline() <= now {
            half.endpoint.on_deadline(&self.transport, now);
        }
        self.send(now, connection, end);
    }

    /// A packet with ECE has reached its host: the pacer may associate the connection.
    #[cold]
    pub(crate) fn on_ece(&mut self, now: Time, packet: &Packet) {
        let (host, connection) = (packet.dst, packet.flow);
        if self.connections.get(connection as usize).is_none_or(Option::is_none) {
            return;
        }
        if let Some(pacer) = self.pacers.get_mut(host.0 as usize) {
            pacer.on_ece(now, connection);
        } else if let Some(pacer) = self.ports[host.0 as usize].head_pacer() {
            pacer.on_ece(connection);
        }
    }

    fn on_pacer_due(&mut self, now: Time, host: HostId) {
        let nic = &mut self.ports[host.0 as usize];
        self.pacers[host.0 as usize].on_due(now, nic, &mut self.wires);
    }

    /// What waited for room gets its turn: what a pacer holds, then the transports, one after the other.
    pub(crate) fn offer_room(&mut self, now: Time) {
        while let Some(nic) = self.wires.room.pop() {
            if let Some(pacer) = self.pacers.get_mut(nic.0 as usize) {
                pacer.release(now, &mut self.ports[nic.0 as usize], &mut self.wires);
            }
            let waiting = self.waiting_for_room[nic.0 as usize].len();
            for _ in 0..waiting {
                let next = self.waiting_for_room[nic.0 as usize].pop_front();
                let Some((connection, end)) = next else { break };
                if let Some(open) = self.connections[connection as usize].as_deref_mut() {
                    open.half(end).blocked = false;
                    self.send(now, connection, end);
                }
            }
        }
    }

    fn on_workload_due(&mut self, now: Time, workload: usize) {
        if self.workload_armed[workload] != now {
            return;
        }
        self.workload_armed[workload] = Time::MAX;
        self.replicated_events += 1;
        self.act(now, workload, |workload, actions| workload.on_due(now, actions));
    }

    fn arm_workload(&mut self, workload: usize) {
        let due = self.workloads[workload].next_due();
        if due < self.workload_armed[workload] {
            self.workload_armed[workload] = due;
            self.wires.events.push(due, Owner::new(OwnerKind::Workload, workload as u32));
        }
    }

    /// Lets a workload act and does what it wants.
    fn act(&mut self, now: Time, number: usize, act: impl FnOnce(&mut dyn Workload, &mut Actions)) {
        let mut actions = std::mem::take(&mut self.actions);
        actions.next_connection = self.connections.len() as u32;
        act(self.workloads[number].as_mut(), &mut actions);
        for opened in actions.opened.drain(..) {
            let is_here = self.wires.has(opened.client) || self.wires.has(opened.server);
            self.connections.push(is_here.then(|| {
                Box::new(Connection::new(&self.transport, number as u16, opened.client, opened.server))
            }));
        }
        for write in actions.writes.drain(..) {
            self.write(now, write);
        }
        for mut packet in actions.packets.drain(..) {
            self.wires.counters.packets_sent += 1;
            if let Some(classes) = &mut self.classes {
                let priority = classes.priority(number as u16, u64::from(packet.size));
                let bytes = u64::from(packet.len);
                classes.label(&mut packet, priority, || bytes);
                if !classes.passes(now, &packet, None) {
                    self.wires.dropped(now, PortId(packet.src.0), &packet);
                    continue;
                }
            }
            self.ports[packet.src.0 as usize].on_arrival(PortId(packet.src.0), now, packet, &mut self.wires);
        }
        self.recorder.take(&mut actions);
        self.actions = actions;
        self.acted = true;
        self.arm_workload(number);
    }

    fn write(&mut self, now: Time, write: Write) {
        let Write { connection, end, bytes, tag, created } = write;
        let Some(open) = self.connections[connection as usize].as_deref_mut() else {
            assert!(self.wires.border.is_some(), "a workload writes to connections that it has open");
            return;
        };
        if let Some(classes) = &self.classes {
            let priority = classes.priority(open.workload, bytes);
            open.half(end.other()).priority = priority;
            let half = open.half(end);
            half.priority = priority;
            half.limiter = classes.connection_limiter(now, priority).map(Box::new);
        }
        if self.wires.has(open.host(end)) {
            open.half(end).write(&self.transport, now, bytes, tag, created);
            self.send(now, connection, end);
        }
    }

    fn on_sample(&mut self, now: Time) {
        let next = self.recorder.sample(now, &self.connections);
        self.wires.events.push(next, Owner::new(OwnerKind::Clock, SAMPLING_CLOCK));
    }

    /// Has workloads record what is open at the end of the run, and counts the packets still on the way.
    pub(crate) fn settle(&mut self) {
        let mut actions = Actions::default();
        for workload in &mut self.workloads {
            workload.on_end(&mut actions);
        }
        self.recorder.take(&mut actions);
        let held: usize = self.ports.iter().map(Port::held).sum::<usize>()
            + self.pacers.iter().map(HostPacer::held).sum::<usize>();
        self.wires.counters.packets_in_flight = (held + self.wires.lanes.in_flight()) as u64;
    }

    /// Packets in = packets out + dropped + still on the way.
    ///
    /// # Panics
    /// If not.
    pub(crate) fn assert_conservation(&self) {
        let counters = &self.wires.counters;
        assert_eq!(
            counters.packets_sent,
            counters.packets_delivered
                + counters.nic_drops
                + counters.switch_drops
                + counters.link_drops
                + counters.no_route_drops
                + counters.packets_in_flight,
            "packets are conserved: {counters:?}"
        );
    }
}

/// The number of the clock that samples time series.
pub(crate) const SAMPLING_CLOCK: u32 = 0;

/// Events between two calls of a progress callback.
const PROGRESS_EVENTS: u64 = 1 << 20;
