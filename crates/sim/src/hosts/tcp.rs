//! The transports of all hosts: what arrives goes to an end of a connection, which sends in turn.
//!
//! ```text
//! on_host ──> receive ──> Endpoint::on_segment ──> send ──> limits ──> pacer ──> NIC
//!                 └──> on_delivered, on_acknowledged ──> the workload
//! ```

use plimsoll_fabric::Fabric;
use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{Flags, Packet, ideal_time};
use plimsoll_traffic::{Arrival, Reach, workload_of_raw};
use plimsoll_units::Time;

use crate::hosts::classes::Classes;
use crate::hosts::connection::{Connection, End, Half, acknowledged, split_of, transit_of};
use crate::hosts::receive_offload::prepend;
use crate::hosts::stack::HostStacks;
use crate::hosts::wire::{Address, packet_of, segment_of};
use crate::observe::connection_record;
use crate::parallel::process::Process;
use crate::sim_hooks::SimHooks;
use crate::world::World;

impl World {
    /// A packet has reached its host.
    pub(crate) fn on_host(&mut self, now: Time, packet: &Packet) {
        if self.rules.holds_received {
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
            let split = transit_of(self.fabric.network(), packet);
            self.act(now, usize::from(workload), |workload, actions| {
                workload.on_packet(now, packet, split, actions);
            });
            return;
        }
        let number = packet.flow;
        let Some(connection) = self.hosts.connections.get_mut(number) else {
            return self.receive_multipath(now, packet, before);
        };
        let end = End::receiving(packet);
        let endpoint = &mut connection.half(end).endpoint;
        let mut segment = segment_of(packet, endpoint.received(), endpoint.sent());
        if !before.is_empty() {
            prepend(&mut segment, before);
        }
        let delivered = endpoint.on_segment(&self.hosts.transport, now, &segment);
        let received = endpoint.received();
        let workload = connection.workload;
        let completes = delivered.new_bytes > 0 && connection.half(end).messages.has_whole(received);
        if delivered.new_bytes > 0 {
            connection.active = Some((connection.active.map_or(now, |(first, _)| first), now));
            self.recorder.on_delivered(now, workload, delivered.new_bytes);
        }
        // The acknowledgement leaves before whatever the application answers.
        self.send(now, number, end);
        if self.rules.completes_acknowledged && delivered.acked > 0 {
            self.on_acknowledged(now, number, end, packet);
        }
        if completes {
            if self.rules.holds_received && self.defers_delivery(now, number, end, received, packet, before) {
                return;
            }
            self.on_delivered(now, number, end, received, packet, before);
        }
    }

    /// The application at `end` receives the messages that have become whole.
    pub(crate) fn on_delivered(
        &mut self,
        now: Time,
        number: u32,
        end: End,
        received: u64,
        packet: &Packet,
        before: &[Packet],
    ) {
        loop {
            let Some(connection) = self.hosts.connections.get_mut(number) else { return };
            let workload = usize::from(connection.workload);
            let Some(message) = connection.half(end).messages.take_received(received) else { return };
            let packet = message.ends_in(before).unwrap_or(packet);
            let (network, transport) = (self.fabric.network(), &self.hosts.transport);
            let split = split_of(network, now, packet, &message);
            let ideal = ideal_time(network, transport, message.bytes, *packet, self.rules.spreads);
            let arrival = Arrival { now, tag: message.tag, split, ideal };
            if self.rules.completes_acknowledged
                && self.sources.workloads[workload].reach() == Reach::Receiver
            {
                connection.half(end.other()).messages.await_acknowledgement(&message, arrival);
                continue;
            }
            self.act(now, workload, |workload, actions| workload.on_message(arrival, actions));
            self.close_if_idle(number);
        }
    }

    /// The acknowledgement `packet` has told the sender at `end` that more was delivered.
    pub(crate) fn on_acknowledged(&mut self, now: Time, number: u32, end: End, packet: &Packet) {
        loop {
            let Some(connection) = self.hosts.connections.get_mut(number) else { return };
            let workload = usize::from(connection.workload);
            let half = connection.half(end);
            let acknowledged_bytes = half.endpoint.acknowledged();
            let Some(arrival) = half.messages.take_acknowledged(acknowledged_bytes) else { return };
            let (network, transport) = (self.fabric.network(), &self.hosts.transport);
            let arrival = acknowledged(network, transport, now, packet, arrival, self.rules.spreads);
            self.act(now, workload, |workload, actions| workload.on_message(arrival, actions));
            self.close_if_idle(number);
        }
    }

    fn close_if_idle(&mut self, number: u32) {
        if self.rules.close_when_idle
            && let Some(connection) = self.hosts.connections.get(number)
            && connection.is_idle()
        {
            self.recorder.on_closed(number, connection_record(connection));
            if let Some(pool) = &mut self.hosts.pool {
                pool.close(connection.client, connection.server);
            }
            self.hosts.connections.close(number);
        }
    }

    /// Sends what the end may send now, and arms its timer.
    pub(crate) fn send(&mut self, now: Time, number: u32, end: End) {
        let hosts = &mut self.hosts;
        let Some(connection) = hosts.connections.get_mut(number) else {
            return self.send_multipath(now, number, end);
        };
        let (src, dst) = (connection.host(end), connection.host(end.other()));
        let address = Address { flow: number, src, dst, from_server: end == End::Server };
        let workload = connection.workload;
        let mut wake = Time::MAX;
        loop {
            let half = connection.half(end);
            if self.rules.holds_back {
                let full_size = hosts.transport.segment + u64::from(hosts.transport.header_bytes);
                let path = hosts.classes.as_ref().map_or(half.path_class, |classes| {
                    classes.path_of(half.path_class, half.endpoint.owes_ack())
                });
                if self.rules.backpressure && !self.fabric.class_has_room(now, src, dst, path, full_size) {
                    if !std::mem::replace(&mut half.blocked, true) {
                        hosts.waiting_for_room[src.0 as usize].push_back((number, end));
                    }
                    break;
                }
                if let Some(stacks) = &mut hosts.stacks
                    && stacks.holds_back(now, number, end, half)
                {
                    break;
                }
                if let Some(offload) = &self.rules.segmentation
                    && !half.may_send(offload, &hosts.transport)
                {
                    break;
                }
                if let Some(classes) = &hosts.classes
                    && let Some(until) =
                        classes.waits_until(now, src, half.priority, full_size, half.limiter.as_deref())
                {
                    wake = until;
                    break;
                }
            }
            let Some(segment) = half.endpoint.poll_transmit(&hosts.transport, now) else { break };
            let packet = packet_of(&segment, address, hosts.transport.wire_bytes(&segment));
            let new_bytes = half.messages.on_sent(&segment);
            if new_bytes > 0 {
                self.recorder.on_sent(now, workload, new_bytes);
                if half.messages.has_sent_message() {
                    announce(self.process.as_deref_mut(), now, number, connection, end);
                }
            }
            match &mut hosts.classes {
                None => self.fabric.send(now, packet),
                Some(classes) => {
                    let half = connection.half(end);
                    send_in_class(
                        &mut self.fabric,
                        classes,
                        hosts.stacks.as_deref_mut(),
                        now,
                        packet,
                        end,
                        half,
                    );
                }
            }
        }
        let half = connection.half(end);
        let deadline = half.endpoint.deadline().min(wake);
        if deadline < half.armed {
            half.armed = deadline;
            let owner = Owner::new(OwnerKind::Endpoint, number * 2 + end as u32);
            self.fabric.schedule(deadline, owner);
        }
    }

    /// The event of an end's timer has come; the deadline itself may have moved on since.
    pub(crate) fn on_endpoint_due(&mut self, now: Time, number: u32) {
        let (connection, end) = (number / 2, End::from_bit(number));
        let Some(open) = self.hosts.connections.get_mut(connection) else {
            return self.on_multipath_due(now, connection, end);
        };
        let half = open.half(end);
        if half.armed != now {
            return;
        }
        half.armed = Time::MAX;
        if half.endpoint.deadline() <= now {
            half.endpoint.on_deadline(&self.hosts.transport, now);
        }
        self.send(now, connection, end);
    }

    /// A packet with ECE has reached its host: the pacer may associate the connection, if that is still open.
    #[cold]
    pub(crate) fn on_ece(&mut self, now: Time, packet: &Packet) {
        let is_open = self.hosts.connections.get(packet.flow).is_some();
        if is_open || self.hosts.multipath.as_ref().is_some_and(|open| open.has_flow(packet.flow)) {
            self.fabric.on_ece(now, packet);
        }
    }

    /// Packets and ends that wait for room in a NIC get their turn: first what a pacer holds, then the ends, one
    /// after the other. In a hybrid network an end that finds no room stays ahead of those that have sent; elsewhere it
    /// falls behind them, as docs/internals/plan.md says.
    #[inline]
    pub(crate) fn offer_room(&mut self, now: Time) {
        let keeps_turns = self.hosts.demand.is_some();
        while let Some(nic) = self.fabric.hooks_mut().room.pop() {
            self.fabric.release_paced(now, nic);
            let waiting = self.hosts.waiting_for_room[nic.0 as usize].len();
            for _ in 0..waiting {
                let next = self.hosts.waiting_for_room[nic.0 as usize].pop_front();
                let Some((connection, end)) = next else { break };
                let before = self.fabric.counters().packets_sent;
                if let Some(open) = self.hosts.connections.get_mut(connection) {
                    open.half(end).blocked = false;
                    self.send(now, connection, end);
                } else {
                    self.unblock_multipath(now, connection, end);
                }
                let turns = &mut self.hosts.waiting_for_room[nic.0 as usize];
                let has_sent = before != self.fabric.counters().packets_sent;
                if keeps_turns && !has_sent && turns.back() == next.as_ref() {
                    turns.pop_back();
                    self.hosts.found_no_room.push((connection, end));
                }
            }
            for end in self.hosts.found_no_room.drain(..).rev() {
                self.hosts.waiting_for_room[nic.0 as usize].push_front(end);
            }
        }
    }
}

/// Sends a packet with its priority and rank, if its limiters let it pass.
#[inline(never)] // inlined, it would have packets without a class copied, too, as it takes their address
fn send_in_class(
    fabric: &mut Fabric<SimHooks>,
    classes: &mut Classes,
    stacks: Option<&mut HostStacks>,
    now: Time,
    mut packet: Packet,
    end: End,
    half: &mut Half,
) {
    classes.label(&mut packet, half.priority, half.path_class, || half.endpoint.remaining());
    if !classes.passes(now, &packet, half.limiter.as_deref_mut()) {
        fabric.refuse(now, &packet);
    } else if let Some(stacks) = stacks {
        stacks.on_packet(fabric, now, packet, end, half.piece_end);
    } else {
        fabric.send(now, packet);
    }
}

/// `end` of a connection has sent messages to their last byte: the other end learns what to expect, by a message
/// where another logical process simulates it.
#[inline(never)] // few segments end a message
fn announce(
    mut process: Option<&mut Process>,
    now: Time,
    number: u32,
    connection: &mut Connection,
    end: End,
) {
    let (to, host) = (end.other(), connection.host(end.other()));
    while let Some(message) = connection.half(end).messages.take_sent(now) {
        match &mut process {
            Some(process) if !process.has(host) => process.announce(host, number, to, message),
            _ => connection.half(to).messages.expect(message),
        }
    }
}
