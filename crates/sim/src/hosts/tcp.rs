//! Plain TCP: what arrives goes to an end of a connection, which sends in turn.
//!
//! ```text
//! on_packet ──> receive ──> Endpoint::on_segment ──> send ──> limits ──> pacer ──> NIC
//!                   └──> agenda: Acknowledged, Whole ──> the workload
//! ```

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{Flags, HostId, Network, Packet};
use plimsoll_mechanisms::tcp::{TcpConfig, TcpSegment};
use plimsoll_mechanisms::transports::Endpoint;
use plimsoll_traffic::{ConnectionEnd as End, Opened, Write};
use plimsoll_units::Time;

use super::Hosts;
use super::agenda::{Delivery, Step};
use super::classes::PacketClasses;
use super::connection::{Half, HostConnection};
use super::flow_number::datagram_workload;
use super::messages::{Announced, Announcement};
use super::receive_offload::prepend;
use super::stack::HostStacks;
use super::wire::{PacketAddress, packet_of, segment_of};
use crate::parallel::process::Process;
use crate::sim_hooks::SimFabric;

impl Hosts {
    /// Opens a connection, at the ends that this world simulates.
    pub(super) fn open(&mut self, fabric: &SimFabric, workload: u16, opened: Opened) {
        let Opened { client, server } = opened;
        let network = fabric.network();
        let is_open = self.pool.as_mut().is_some_and(|pool| pool.open(workload, client, server));
        let number = self.connections.len() as u32;
        if self.open_datagrams(network, number, workload, opened) {
            return self.connections.push(None);
        }
        if let Some(multipath) = &mut self.multipath
            && multipath.is_for(workload)
        {
            multipath.open(network, number, workload, opened, is_open);
            return self.connections.push(None);
        }
        let is_here = is_here(&self.process, client) || is_here(&self.process, server);
        let mut connection = is_here.then(|| {
            let of_workload = self.transports.number(workload);
            let transport = self.transports.get(of_workload);
            let established = is_open.then(|| transport.established());
            let transport = established.as_ref().unwrap_or(transport);
            let nics = self.nics_of(network, [client, server], number);
            HostConnection::new(transport, workload, of_workload, nics)
        });
        if let Some(connection) = &mut connection {
            let config = self.transports.of_workload(workload);
            connection.set_paths(network, number, config, self.rules.paths);
        }
        self.connections.push(connection);
    }

    /// Returns the NICs of two hosts that flow number `flow` takes.
    pub(super) fn nics_of(&self, network: &Network, ends: [HostId; 2], flow: u32) -> [HostId; 2] {
        let (choice, salt) = self.rules.nic_choice;
        network.nics().of_flow(choice, ends, flow, salt)
    }

    /// A workload writes a message to a connection.
    pub(super) fn write(&mut self, now: Time, fabric: &mut SimFabric, write: Write) {
        let Write { connection, end, bytes, tag, created } = write;
        let Some(open) = self.connections.get_mut(connection) else {
            if self.datagrams.has(connection) {
                return self.write_datagrams(now, fabric, write);
            }
            if self.multipath.is_some() {
                return self.write_multipath(now, fabric, write);
            }
            assert!(self.process.is_some(), "a workload writes to connections that it has open");
            return;
        };
        if let Some(classes) = &self.classes {
            let priority = classes.priority(open.workload, bytes);
            for end in [end, end.other()] {
                let path_class = classes.path_class(open.workload, end);
                let half = open.half(end);
                (half.priority, half.path_class) = (priority, path_class);
            }
            let half = open.half(end);
            half.limiter = classes.connection_limiter(now, priority).map(Box::new);
        }
        let requester = end.other();
        let transport = self.transports.get(open.transport);
        let is_requested_here = transport.reads() && is_here(&self.process, open.host(requester));
        if is_requested_here {
            open.half(requester).endpoint.read(transport, now, bytes);
        }
        if is_here(&self.process, open.host(end)) {
            if let Some(stacks) = &mut self.stacks
                && stacks.keeps_written(connection, end, bytes)
            {
                open.half(end).messages.write(bytes, tag, created);
                return self.write_on(now, fabric, connection, end);
            }
            open.half(end).write(transport, now, bytes, tag, created);
            self.send_from(now, fabric, connection, end);
        }
        if is_requested_here {
            self.send_from(now, fabric, connection, requester);
        }
    }

    /// The transport gets a packet, which receive offload may have merged with those `before` it.
    #[inline(always)] // it has a caller for each, and single packets are all that most runs have
    pub(super) fn receive(&mut self, now: Time, fabric: &mut SimFabric, packet: &Packet, before: &[Packet]) {
        if let Some(workload) = datagram_workload(packet.flow) {
            return self.leave_datagram(fabric, workload, packet);
        }
        let number = packet.flow;
        let Some(connection) = self.connections.get_mut(number) else {
            return self.receive_elsewhere(now, fabric, packet, before);
        };
        let end = End::receiving(packet);
        let transport = self.transports.get(connection.transport);
        let endpoint = &mut connection.half(end).endpoint;
        if self.rules.has_telemetry && matches!(endpoint, Endpoint::Tcp(_)) {
            // They are counted; only RoCE steers by them.
            fabric.take_returned_stamps(packet);
        }
        let mut segment = segment_of(packet, endpoint.received(), endpoint.sent());
        if packet.is_trimmed_last() {
            segment.flags = segment.flags.with(Flags::ECE);
        }
        if !before.is_empty() {
            prepend(&mut segment, before);
        }
        let delivered = endpoint.on_segment(transport, now, &segment, || fabric.take_returned_stamps(packet));
        let received = endpoint.received();
        let workload = connection.workload;
        let half = connection.half(end);
        let falls_idle = self.rules.regards_idle && delivered.acked > 0 && half.endpoint.is_idle();
        let completes = delivered.new_bytes > 0 && half.messages.has_whole(received)
            || delivered.is_ahead && completes_ahead(transport, half, &segment);
        if delivered.new_bytes > 0 {
            match &mut connection.active {
                Some((_, last)) => *last = now,
                never => *never = Some((now, now)),
            }
            self.goodput.on_delivered(now, workload, delivered.new_bytes);
        }
        // The acknowledgement leaves before whatever the application answers.
        self.send_from(now, fabric, number, end);
        if completes {
            self.leave_whole(fabric, received, packet, before);
        }
        if self.rules.completes_acknowledged && delivered.acked > 0 {
            self.leave_acknowledged(fabric, number, end, packet);
        }
        if falls_idle {
            self.on_idle(fabric, number, end);
        }
    }

    /// A packet of no plain TCP connection has reached its host: one of another family, or of a connection that is
    /// closed.
    #[cold]
    fn receive_elsewhere(&mut self, now: Time, fabric: &mut SimFabric, packet: &Packet, before: &[Packet]) {
        if self.rules.has_telemetry {
            fabric.take_returned_stamps(packet);
        }
        if let Some(closed) = self.closed.get(&packet.flow)
            && self.is_carried_by_nics(closed.workload)
        {
            self.closed_types.of(packet.len.into(), packet.flags).received += 1;
            return;
        }
        if self.datagrams.has(packet.flow) {
            before.iter().chain([packet]).for_each(|packet| self.receive_datagrams(now, fabric, packet));
        } else {
            self.receive_multipath(now, fabric, packet, before);
        }
    }

    /// Leaves messages that `packet` has completed for the application.
    #[inline(never)] // it takes the packet by reference, so that `receive` copies none
    fn leave_whole(&mut self, fabric: &mut SimFabric, received: u64, packet: &Packet, before: &[Packet]) {
        let (number, end, packet, before) = (packet.flow, End::receiving(packet), *packet, before.to_vec());
        self.leave(fabric, Step::Whole(Delivery { number, end, received, packet, before }));
    }

    /// Sends all segments that the end may send now, and arms its timer.
    pub(super) fn send_from(&mut self, now: Time, fabric: &mut SimFabric, number: u32, end: End) {
        if self.rules.grants && self.prepare_grants(now, fabric, number, end) {
            return;
        }
        let Some(connection) = self.connections.get_mut(number) else {
            self.send_multipath(now, fabric, number, end);
            return self.send_datagrams(now, fabric, number, end);
        };
        let takes_credit =
            self.rules.grants && matches!(connection.half(end).endpoint, Endpoint::Uet(_) | Endpoint::Ndp(_));
        let (src, dst) = (connection.host(end), connection.host(end.other()));
        let address = PacketAddress { flow: number, src, dst, from_server: end == End::Server };
        let (workload, transport) = (connection.workload, self.transports.get(connection.transport));
        let mut wake = Time::MAX;
        let mut successor = None;
        let is_quiet = takes_credit && self.classes.is_none() && connection.half(end).endpoint.is_quiet();
        loop {
            if is_quiet {
                break;
            }
            let half = connection.half(end);
            if self.rules.holds_back {
                let full_size = transport.segment + u64::from(transport.header_bytes);
                let path = self.classes.as_ref().map_or(half.path_class, |classes| {
                    classes.path_of(half.path_class, half.endpoint.owes_ack())
                });
                let has_room = match &half.endpoint {
                    Endpoint::Tcp(_) => {
                        !self.rules.backpressure || fabric.class_has_room(now, src, dst, path, full_size)
                    }
                    Endpoint::Uet(_) | Endpoint::Ndp(_) => {
                        fabric.nic_is_clear(src, half.priority) || !half.endpoint.awaits_nic(transport, now)
                    }
                    // Its own queue of the host holds it back.
                    Endpoint::Homa(_) => true,
                    Endpoint::Roce(_) => {
                        if let Some(limit) = transport.roce.params.nic.active
                            && half.endpoint.awaits_nic(transport, now)
                            && !self.active.admits(src, limit, (number, end))
                        {
                            half.blocked = true;
                            break;
                        }
                        fabric.nic_is_clear(src, half.priority) || !half.endpoint.awaits_nic(transport, now)
                    }
                };
                if !has_room {
                    if !std::mem::replace(&mut half.blocked, true) {
                        self.waiting_for_room[src.0 as usize].push_back((number, end));
                    }
                    break;
                }
                if let Some(stacks) = &mut self.stacks
                    && stacks.holds_back(now, number, end, half)
                {
                    break;
                }
                if let Some(offload) = &self.rules.segmentation
                    && !half.may_send(offload, transport)
                {
                    break;
                }
                if let Some(classes) = &self.classes
                    && let Some(until) = classes.waits_until(
                        now,
                        src,
                        workload,
                        half.priority,
                        full_size,
                        half.limiter.as_deref(),
                    )
                {
                    wake = until;
                    break;
                }
            }
            let Some(segment) = half.endpoint.poll_transmit(transport, now) else { break };
            if let Endpoint::Roce(pair) = &half.endpoint
                && transport.roce.params.nic.active.is_some()
                && segment.len > 0
            {
                let (sender, turn) = ((number, end), transport.roce.params.nic.turn);
                let is_over = self.active.ends_turn(src, sender, segment.len, turn);
                if is_over || pair.has_ended_message() {
                    successor = self.active.leave(src, sender);
                }
            }
            let packet = packet_of(&segment, address, transport.wire_bytes(&segment));
            let new_bytes = half.messages.on_sent(&segment);
            if new_bytes > 0 {
                self.goodput.on_sent(now, workload, new_bytes);
                if half.messages.has_sent_message() {
                    announce(self.process.as_deref_mut(), now, number, connection, end);
                }
            }
            match &mut self.classes {
                None => fabric.send(now, packet),
                Some(classes) => {
                    let (stacks, half) = (self.stacks.as_deref_mut(), connection.half(end));
                    let sender = (workload, end);
                    send_in_class(fabric, classes, stacks, now, packet, sender, half);
                }
            }
        }
        let half = connection.half(end);
        if let Endpoint::Roce(pair) = &half.endpoint
            && transport.roce.params.nic.active.is_some()
            && !pair.has_data()
        {
            successor = successor.or(self.active.leave(src, (number, end)));
        }
        let deadline = half.endpoint.deadline(transport, now).min(wake);
        if deadline < half.armed {
            half.armed = deadline;
            let owner = Owner::new(OwnerKind::Endpoint, number * 2 + end as u32);
            fabric.schedule(deadline, owner);
        }
        if takes_credit {
            self.settle_credit(now, fabric, number, end);
        }
        while let Some((number, end)) = successor {
            let Some(open) = self.connections.get_mut(number) else {
                // It was closed: what it was to repeat has been acknowledged.
                successor = self.active.leave(src, (number, end));
                continue;
            };
            open.half(end).blocked = false;
            self.send_from(now, fabric, number, end);
            break;
        }
    }

    /// The event of an end's timer has come; the deadline itself may have moved on since.
    pub(super) fn on_endpoint_due(&mut self, now: Time, fabric: &mut SimFabric, place: u32) {
        let (number, end) = (place / 2, End::from_bit(place));
        let Some(open) = self.connections.get_mut(number) else {
            self.on_multipath_due(now, fabric, number, end);
            return self.on_datagrams_due(now, fabric, number, end);
        };
        let transport = self.transports.get(open.transport);
        let half = open.half(end);
        if half.armed != now {
            return;
        }
        half.armed = Time::MAX;
        if half.endpoint.deadline(transport, now) <= now {
            half.endpoint.on_deadline(transport, now);
        }
        self.send_from(now, fabric, number, end);
    }
}

/// Returns whether `segment`, which is behind a gap, has completed its message, and has that one be the next.
#[cold]
fn completes_ahead(transport: &TcpConfig, half: &mut Half, segment: &TcpSegment) -> bool {
    let Endpoint::Uet(pdc) = &half.endpoint else { return false };
    half.messages.advance_whole(segment.seq, |start, end| pdc.has_whole(&transport.uet, segment, start, end))
}

/// Returns whether `host` is simulated here, which another logical process may do.
fn is_here(process: &Option<Box<Process>>, host: HostId) -> bool {
    process.as_ref().is_none_or(|process| process.has(host))
}

/// Sends a packet with its priority and rank, if its limiters let it pass.
#[inline(never)] // inlined, it would have packets without a class copied, too, as it takes their address
fn send_in_class(
    fabric: &mut SimFabric,
    classes: &mut PacketClasses,
    stacks: Option<&mut HostStacks>,
    now: Time,
    mut packet: Packet,
    (workload, end): (u16, End),
    half: &mut Half,
) {
    classes.label(&mut packet, half.priority, half.path_class, || half.endpoint.remaining());
    if !classes.passes(now, &packet, workload, half.limiter.as_deref_mut()) {
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
pub(super) fn announce(
    mut process: Option<&mut Process>,
    now: Time,
    number: u32,
    connection: &mut HostConnection,
    end: End,
) {
    let (to, host) = (end.other(), connection.host(end.other()));
    while let Some(message) = connection.half(end).messages.take_sent(now) {
        match &mut process {
            Some(process) if !process.has(host) => {
                let what = Announced::Message(message);
                process.announce(host, Announcement { connection: number, to, what });
            }
            _ => connection.half(to).messages.expect(message),
        }
    }
}
