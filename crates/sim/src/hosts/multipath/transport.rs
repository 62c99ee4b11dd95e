//! The world's part in MPTCP: packets that arrive, messages that are whole, and what an end sends in turn.
//!
//! ```text
//! receive_multipath ──> mptcp::Endpoint::on_segment ──> send_multipath ──> limits ──> pacer ──> NIC
//!                                                  └──> on_multipath_delivered, _acknowledged ──> the workload
//! ```

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{Flags, HostId, Packet, PathClass, ideal_time};
use plimsoll_mechanisms::mptcp::{Endpoint, PathState, Scheduler};
use plimsoll_traffic::{Arrival, Reach, Write};
use plimsoll_units::Time;

use super::{Multipath, MultipathConnection};
use crate::hosts::connection::{End, acknowledged, split_of};
use crate::hosts::receive_offload::prepend;
use crate::hosts::wire::{Address, packet_of, segment_of, unwrap};
use crate::world::World;

impl World {
    /// Returns the path class that the scheduler `active-path` uses from `host` to `dst`: circuits in the weeks that
    /// have one.
    fn active_class(&self, host: HostId, dst: HostId) -> PathClass {
        if self.fabric.has_circuit(host, dst) { PathClass::Circuit } else { PathClass::Packet }
    }

    /// The circuits of `host` have changed: its ends of MPTCP connections may have another active path.
    pub(crate) fn on_circuits_changed(&mut self, now: Time, host: HostId) {
        let Some(multipath) = &self.hosts.multipath else { return };
        let ends = multipath.connections().flat_map(|(number, connection)| {
            let ends = [End::Client, End::Server].into_iter().filter(|end| connection.host(*end) == host);
            ends.map(move |end| (number, end))
        });
        for (number, end) in ends.collect::<Vec<_>>() {
            self.send_multipath(now, number, end);
        }
    }

    /// A workload writes a message to a connection of MPTCP.
    pub(crate) fn write_multipath(&mut self, now: Time, write: Write) {
        let Write { connection: number, end, bytes, tag, created } = write;
        let hosts = &mut self.hosts;
        let multipath = hosts.multipath.as_deref_mut().expect("the caller has seen it");
        let connection = multipath.connections.get_mut(&number);
        let connection = connection.expect("a workload writes to connections that it has open");
        if let Some(classes) = &hosts.classes {
            let priority = classes.priority(connection.workload, bytes);
            connection.halves.iter_mut().for_each(|half| half.priority = priority);
            connection.halves[end as usize].limiter = classes.connection_limiter(now, priority).map(Box::new);
        }
        let half = &mut connection.halves[end as usize];
        half.messages.write(bytes, tag, created);
        half.endpoint.write(&multipath.config, now, bytes);
        self.send_multipath(now, number, end);
    }

    /// A packet of no plain TCP connection has reached its host: one of a subflow, or of a connection that is closed.
    #[cold]
    pub(crate) fn receive_multipath(&mut self, now: Time, packet: &Packet, before: &[Packet]) {
        let Some(multipath) = self.hosts.multipath.as_deref_mut() else { return };
        let Some((number, subflow)) = multipath.subflow_of(packet.flow) else { return };
        let Some(connection) = multipath.connections.get_mut(&number) else { return };
        let end = End::receiving(packet);
        let [client, server] = &mut connection.halves;
        let (half, peer) = if end == End::Client { (client, server) } else { (server, client) };
        let endpoint = &mut half.endpoint;
        let tcp = endpoint.subflow(subflow);
        let mut segment = segment_of(packet, tcp.received(), tcp.sent());
        if !before.is_empty() {
            prepend(&mut segment, before);
        }
        let sent = endpoint.sent();
        let data_acks = before.iter().chain([packet]).map(|packet| unwrap(packet.rank, sent));
        let data_ack = data_acks.max().unwrap_or_default();
        let mappings = peer.endpoint.mappings(subflow, segment.seq, segment.len);
        let delivered = endpoint.on_segment(&multipath.config, now, subflow, &segment, data_ack, mappings);
        let received = endpoint.received();
        if delivered.new_bytes > 0 {
            connection.active = Some((connection.active.map_or(now, |(first, _)| first), now));
            self.recorder.on_delivered(now, connection.workload, delivered.new_bytes);
        }
        let completes = delivered.new_bytes > 0 && half.messages.has_whole(received);
        // Where the packets lie in the data sequence, before the sender forgets it.
        let pieces = if completes {
            let near = endpoint.subflow(subflow).received();
            before
                .iter()
                .chain([packet])
                .map(|packet| in_data(packet, near, &peer.endpoint, subflow))
                .collect()
        } else {
            Vec::new()
        };
        self.send_multipath(now, number, end);
        if self.rules.completes_acknowledged && delivered.acked > 0 {
            self.on_multipath_acknowledged(now, number, end, packet);
        }
        if let Some((last, before)) = pieces.split_last() {
            self.on_multipath_delivered(now, number, end, received, last, before);
        }
    }

    /// The application at `end` receives the messages that have become whole. The packets have sequence numbers of the
    /// data sequence.
    fn on_multipath_delivered(
        &mut self,
        now: Time,
        number: u32,
        end: End,
        received: u64,
        packet: &Packet,
        before: &[Packet],
    ) {
        while let Some(connection) = self.multipath_connection(number) {
            let workload = usize::from(connection.workload);
            let Some(message) = connection.halves[end as usize].messages.take_received(received) else {
                return;
            };
            let several = connection.flows.len() > 1;
            let packet = message.ends_in(before).unwrap_or(packet);
            let (network, transport) = (self.fabric.network(), &self.hosts.transport);
            let split = split_of(network, now, packet, &message);
            let ideal = ideal_time(network, transport, message.bytes, *packet, several || self.rules.spreads);
            let arrival = Arrival { now, tag: message.tag, split, ideal };
            if self.rules.completes_acknowledged
                && self.sources.workloads[workload].reach() == Reach::Receiver
            {
                if let Some(connection) = self.multipath_connection(number) {
                    let sender = &mut connection.halves[end.other() as usize];
                    sender.messages.await_acknowledgement(&message, arrival);
                }
                continue;
            }
            self.act(now, workload, |workload, actions| workload.on_message(arrival, actions));
            self.close_multipath_if_idle(number);
        }
    }

    /// The data ACK of `packet` has told the sender at `end` that more was delivered.
    fn on_multipath_acknowledged(&mut self, now: Time, number: u32, end: End, packet: &Packet) {
        while let Some(connection) = self.multipath_connection(number) {
            let workload = usize::from(connection.workload);
            let several = connection.flows.len() > 1;
            let half = &mut connection.halves[end as usize];
            let Some(arrival) = half.messages.take_acknowledged(half.endpoint.acknowledged()) else { return };
            let (network, transport) = (self.fabric.network(), &self.hosts.transport);
            let spread = several || self.rules.spreads;
            let arrival = acknowledged(network, transport, now, packet, arrival, spread);
            self.act(now, workload, |workload, actions| workload.on_message(arrival, actions));
            self.close_multipath_if_idle(number);
        }
    }

    fn multipath_connection(&mut self, number: u32) -> Option<&mut MultipathConnection> {
        Some(self.hosts.multipath.as_deref_mut()?.connections.get_mut(&number)?)
    }

    fn close_multipath_if_idle(&mut self, number: u32) {
        if !self.rules.close_when_idle {
            return;
        }
        let Some(connection) = self.multipath_connection(number) else { return };
        if connection.is_idle() {
            let (record, client, server) = (connection.record(), connection.client, connection.server);
            self.recorder.on_closed(number, record);
            if let Some(pool) = &mut self.hosts.pool {
                pool.close(client, server);
            }
            if let Some(multipath) = &mut self.hosts.multipath {
                multipath.connections.remove(&number);
            }
        }
    }

    /// Sends what an end of a connection of MPTCP may send now, and arms its timer.
    #[cold]
    pub(crate) fn send_multipath(&mut self, now: Time, number: u32, end: End) {
        let Some(connection) = self.multipath_connection(number) else { return };
        let (src, dst) = (connection.host(end), connection.host(end.other()));
        let active = self.active_class(src, dst);
        let hosts = &mut self.hosts;
        let Some(multipath) = hosts.multipath.as_deref_mut() else { return };
        let classes: [PathClass; 8] = std::array::from_fn(|subflow| multipath.class(subflow));
        let Multipath { config, connections, .. } = multipath;
        let Some(connection) = connections.get_mut(&number) else { return };
        let full_size = config.tcp.segment + u64::from(config.tcp.header_bytes);
        let [client, server] = &mut connection.halves;
        let (half, peer) = if end == End::Client { (client, server) } else { (server, client) };
        let (mut wake, mut waits) = (Time::MAX, false);
        loop {
            let mut path = |subflow: usize, is_ack: bool| {
                let class = classes[subflow];
                let queue = hosts.classes.as_ref().map_or(class, |limits| limits.path_of(class, is_ack));
                if self.rules.backpressure && !self.fabric.class_has_room(now, src, dst, queue, full_size) {
                    waits = true;
                    return PathState::Full;
                }
                if let Some(limits) = &hosts.classes
                    && let Some(until) =
                        limits.waits_until(now, src, half.priority, full_size, half.limiter.as_deref())
                {
                    wake = until;
                    return PathState::Full;
                }
                let is_other = config.scheduler == Scheduler::ActivePath
                    && class != PathClass::Either
                    && class != active;
                if is_other { PathState::Inactive } else { PathState::Open }
            };
            let Some(transmit) = half.endpoint.poll_transmit(config, now, &mut path) else { break };
            let flow = connection.flows[transmit.subflow];
            let address = Address { flow, src, dst, from_server: end == End::Server };
            let mut packet = packet_of(&transmit.segment, address, config.wire_bytes(&transmit.segment));
            packet.flags = packet.flags.with_if(transmit.reinjected, Flags::RETRANSMISSION);
            packet.set_path_class(classes[transmit.subflow]);
            if transmit.new_bytes > 0 {
                self.recorder.on_sent(now, connection.workload, transmit.new_bytes);
                half.messages.on_bytes_sent(transmit.new_bytes);
                while let Some(message) = half.messages.take_sent(now) {
                    peer.messages.expect(message);
                }
            }
            let mut passes = true;
            if let Some(limits) = &mut hosts.classes {
                limits.label(&mut packet, half.priority, classes[transmit.subflow], || 0);
                passes = limits.passes(now, &packet, half.limiter.as_deref_mut());
            }
            packet.rank = transmit.data_ack as u32;
            if passes {
                self.fabric.send(now, packet);
            } else {
                self.fabric.refuse(now, &packet);
            }
        }
        if waits && !std::mem::replace(&mut half.blocked, true) {
            hosts.waiting_for_room[src.0 as usize].push_back((number, end));
        }
        let deadline = half.endpoint.deadline().min(wake);
        if deadline < half.armed {
            half.armed = deadline;
            self.fabric.schedule(deadline, Owner::new(OwnerKind::Endpoint, number * 2 + end as u32));
        }
    }

    /// The event of an end's timer has come; the deadline itself may have moved on since.
    #[cold]
    pub(crate) fn on_multipath_due(&mut self, now: Time, number: u32, end: End) {
        let Some(multipath) = self.hosts.multipath.as_deref_mut() else { return };
        let Some(connection) = multipath.connections.get_mut(&number) else { return };
        let half = &mut connection.halves[end as usize];
        if half.armed != now {
            return;
        }
        half.armed = Time::MAX;
        half.endpoint.on_deadline(&multipath.config, now);
        self.send_multipath(now, number, end);
    }

    /// There is room in the NIC for which an end of a connection has waited.
    #[cold]
    pub(crate) fn unblock_multipath(&mut self, now: Time, number: u32, end: End) {
        let Some(connection) = self.multipath_connection(number) else { return };
        connection.halves[end as usize].blocked = false;
        self.send_multipath(now, number, end);
    }
}

/// Returns `packet` with the sequence number that makes it end where its last byte is in the data sequence of `sender`.
/// `near` is a stream offset of the subflow in the neighbourhood.
fn in_data(packet: &Packet, near: u64, sender: &Endpoint, subflow: usize) -> Packet {
    let mut packet = *packet;
    let seq = unwrap(packet.seq, near);
    if let Some(last) = sender.mappings(subflow, seq, u32::from(packet.len)).last() {
        packet.seq = (last.data_end() as u32).wrapping_sub(u32::from(packet.len));
    }
    packet
}
