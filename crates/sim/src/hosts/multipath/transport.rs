//! Packets of MPTCP that arrive, and what an end sends in turn.
//!
//! ```text
//! receive_multipath ──> mptcp::Endpoint::on_segment ──> send_multipath ──> limits ──> pacer ──> NIC
//!                                                  └──> agenda: Deliver, Acknowledged ──> the workload
//! ```

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{Flags, HostId, Packet, PathClass};
use plimsoll_mechanisms::mptcp::{MptcpEndpoint, PathState, SubflowScheduler};
use plimsoll_mechanisms::transports::nearest;
use plimsoll_traffic::{ConnectionEnd as End, Write};
use plimsoll_units::Time;

use super::{MultipathConnection, path_class};
use crate::hosts::Hosts;
use crate::hosts::agenda::{Delivery, Step};
use crate::hosts::receive_offload::prepend;
use crate::hosts::wire::{PacketAddress, packet_of, segment_of};
use crate::sim_hooks::SimFabric;

impl Hosts {
    /// The circuits of `host` have changed: its ends of MPTCP connections may have another active path.
    pub(in crate::hosts) fn on_circuits_changed(&mut self, now: Time, fabric: &mut SimFabric, host: HostId) {
        let Some(multipath) = &self.multipath else { return };
        let ends = multipath.connections().flat_map(|(number, connection)| {
            let ends = [End::Client, End::Server].into_iter().filter(|end| connection.host(*end) == host);
            ends.map(move |end| (number, end))
        });
        for (number, end) in ends.collect::<Vec<_>>() {
            self.send_multipath(now, fabric, number, end);
        }
    }

    /// A workload writes a message to a connection of MPTCP.
    pub(in crate::hosts) fn write_multipath(&mut self, now: Time, fabric: &mut SimFabric, write: Write) {
        let Write { connection: number, end, bytes, tag, created } = write;
        let multipath = self.multipath.as_deref_mut().expect("the caller has seen it");
        let open = multipath.with_config(number);
        let (config, connection) = open.expect("a workload writes to connections that it has open");
        if let Some(classes) = &self.classes {
            let priority = classes.priority(connection.workload, bytes);
            connection.halves.iter_mut().for_each(|half| half.priority = priority);
            connection.halves[end as usize].limiter = classes.connection_limiter(now, priority).map(Box::new);
        }
        let half = &mut connection.halves[end as usize];
        half.messages.write(bytes, tag, created);
        half.endpoint.write(config, now, bytes);
        self.send_multipath(now, fabric, number, end);
    }

    /// A packet has reached its host that may be one of a subflow.
    pub(in crate::hosts) fn receive_multipath(
        &mut self,
        now: Time,
        fabric: &mut SimFabric,
        packet: &Packet,
        before: &[Packet],
    ) {
        let Some(multipath) = self.multipath.as_deref_mut() else { return };
        let Some((number, subflow)) = multipath.subflow_of(packet.flow) else { return };
        let Some((config, connection)) = multipath.with_config(number) else { return };
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
        let data_acks = before.iter().chain([packet]).map(|packet| nearest::<32>(packet.rank.into(), sent));
        let data_ack = data_acks.max().unwrap_or_default();
        let mappings = peer.endpoint.mappings(subflow, segment.seq, segment.len);
        let delivered = endpoint.on_segment(config, now, subflow, &segment, data_ack, mappings);
        let received = endpoint.received();
        if delivered.new_bytes > 0 {
            match &mut connection.active {
                Some((_, last)) => *last = now,
                never => *never = Some((now, now)),
            }
            self.goodput.on_delivered(now, connection.workload, delivered.new_bytes);
        }
        let completes = delivered.new_bytes > 0 && half.messages.has_whole(received);
        // Where the packets lie in the data sequence, before the sender forgets it.
        let mut pieces: Vec<Packet> = if completes {
            let near = endpoint.subflow(subflow).received();
            before
                .iter()
                .chain([packet])
                .map(|packet| in_data(packet, near, &peer.endpoint, subflow))
                .collect()
        } else {
            Vec::new()
        };
        self.send_multipath(now, fabric, number, end);
        if let Some(packet) = pieces.pop() {
            self.leave(fabric, Step::Deliver(Delivery { number, end, received, packet, before: pieces }));
        }
        if self.rules.completes_acknowledged && delivered.acked > 0 {
            self.leave_acknowledged(fabric, number, end, packet);
        }
    }

    fn multipath_connection(&mut self, number: u32) -> Option<&mut MultipathConnection> {
        Some(self.multipath.as_deref_mut()?.connections.get_mut(&number)?)
    }

    /// Sends what an end of a connection of MPTCP may send now, and arms its timer.
    #[cold]
    pub(in crate::hosts) fn send_multipath(
        &mut self,
        now: Time,
        fabric: &mut SimFabric,
        number: u32,
        end: End,
    ) {
        let Some(connection) = self.multipath_connection(number) else { return };
        // The scheduler `active-path` uses circuits in the weeks that have one.
        let has_circuit = fabric.has_circuit(connection.host(end), connection.host(end.other()));
        let active = if has_circuit { PathClass::Circuit } else { PathClass::Packet };
        let Some(multipath) = self.multipath.as_deref_mut() else { return };
        let Some((config, connection)) = multipath.with_config(number) else { return };
        let classes: [PathClass; 8] = std::array::from_fn(|subflow| path_class(config.paths, subflow));
        let full_size = config.tcp.segment + u64::from(config.tcp.header_bytes);
        let flows = &connection.flows;
        let nics = |subflow: usize| {
            let (_, nics) = flows[subflow];
            (nics[end as usize], nics[end.other() as usize])
        };
        let [client, server] = &mut connection.halves;
        let (half, peer) = if end == End::Client { (client, server) } else { (server, client) };
        let (mut wake, mut waits) = (Time::MAX, None);
        loop {
            let mut path = |subflow: usize, is_ack: bool| {
                let class = classes[subflow];
                let (src, dst) = nics(subflow);
                let queue = self.classes.as_ref().map_or(class, |limits| limits.path_of(class, is_ack));
                if self.rules.backpressure && !fabric.class_has_room(now, src, dst, queue, full_size) {
                    waits.get_or_insert(src);
                    return PathState::Full;
                }
                if let Some(limits) = &self.classes
                    && let Some(until) = limits.waits_until(
                        now,
                        src,
                        connection.workload,
                        half.priority,
                        full_size,
                        half.limiter.as_deref(),
                    )
                {
                    wake = until;
                    return PathState::Full;
                }
                let is_other = config.scheduler == SubflowScheduler::ActivePath
                    && class != PathClass::Either
                    && class != active;
                if is_other { PathState::Inactive } else { PathState::Open }
            };
            let Some(transmit) = half.endpoint.poll_transmit(config, now, &mut path) else { break };
            let (flow, _) = connection.flows[transmit.subflow];
            let (src, dst) = nics(transmit.subflow);
            let address = PacketAddress { flow, src, dst, from_server: end == End::Server };
            let mut packet = packet_of(&transmit.segment, address, config.wire_bytes(&transmit.segment));
            packet.flags = packet.flags.with_if(transmit.reinjected, Flags::RETRANSMISSION);
            packet.set_path_class(classes[transmit.subflow]);
            if transmit.new_bytes > 0 {
                self.goodput.on_sent(now, connection.workload, transmit.new_bytes);
                half.messages.on_bytes_sent(transmit.new_bytes);
                while let Some(message) = half.messages.take_sent(now) {
                    peer.messages.expect(message);
                }
            }
            let mut passes = true;
            if let Some(limits) = &mut self.classes {
                limits.label(&mut packet, half.priority, classes[transmit.subflow], || 0);
                passes = limits.passes(now, &packet, connection.workload, half.limiter.as_deref_mut());
            }
            packet.rank = transmit.data_ack as u32;
            if passes {
                fabric.send(now, packet);
            } else {
                fabric.refuse(now, &packet);
            }
        }
        if let Some(nic) = waits
            && !std::mem::replace(&mut half.blocked, true)
        {
            self.waiting_for_room[nic.0 as usize].push_back((number, end));
        }
        let deadline = half.endpoint.deadline().min(wake);
        if deadline < half.armed {
            half.armed = deadline;
            fabric.schedule(deadline, Owner::new(OwnerKind::Endpoint, number * 2 + end as u32));
        }
    }

    /// The event of an end's timer has come; the deadline itself may have moved on since.
    #[cold]
    pub(in crate::hosts) fn on_multipath_due(
        &mut self,
        now: Time,
        fabric: &mut SimFabric,
        number: u32,
        end: End,
    ) {
        let Some(multipath) = self.multipath.as_deref_mut() else { return };
        let Some((config, connection)) = multipath.with_config(number) else { return };
        let half = &mut connection.halves[end as usize];
        if half.armed != now {
            return;
        }
        half.armed = Time::MAX;
        half.endpoint.on_deadline(config, now);
        self.send_multipath(now, fabric, number, end);
    }

    /// There is room in the NIC for which an end of a connection has waited.
    #[cold]
    pub(in crate::hosts) fn unblock_multipath(
        &mut self,
        now: Time,
        fabric: &mut SimFabric,
        number: u32,
        end: End,
    ) {
        let Some(connection) = self.multipath_connection(number) else { return };
        connection.halves[end as usize].blocked = false;
        self.send_multipath(now, fabric, number, end);
    }
}

/// Returns `packet` with the sequence number that makes it end where its last byte is in the data sequence of `sender`.
/// `near` is a stream offset of the subflow in the neighbourhood.
fn in_data(packet: &Packet, near: u64, sender: &MptcpEndpoint, subflow: usize) -> Packet {
    let mut packet = *packet;
    let seq = nearest::<32>(packet.seq.into(), near);
    if let Some(last) = sender.mappings(subflow, seq, u32::from(packet.len)).last() {
        packet.seq = (last.data_end() as u32).wrapping_sub(u32::from(packet.len));
    }
    packet
}
