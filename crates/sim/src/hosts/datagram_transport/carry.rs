//! Packets of the datagram family that arrive, and packets that an end sends in turn.

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{Flags, Network, Packet, ideal_time};
use plimsoll_mechanisms::transports::datagram::{DatagramPacket, DatagramSizes};
use plimsoll_traffic::{Arrival, ConnectionEnd as End, Opened, Write};
use plimsoll_units::Time;

use super::expect;
use crate::hosts::Hosts;
use crate::hosts::agenda::Step;
use crate::hosts::connection::{message_waits, split_of};
use crate::hosts::messages::{Announced, Announcement};
use crate::sim_hooks::SimFabric;

impl Hosts {
    /// Opens a connection of the datagram family, if `workload` is carried by it.
    pub(in crate::hosts) fn open_datagrams(
        &mut self,
        network: &Network,
        number: u32,
        workload: u16,
        opened: Opened,
    ) -> bool {
        let transport = self.transports.number(workload);
        let config = self.transports.get(transport);
        if !config.is_datagram() {
            return false;
        }
        let nics = self.nics_of(network, [opened.client, opened.server], number);
        self.datagrams.open(config, network, number, (workload, transport), nics);
        true
    }

    /// A workload writes a message to a connection of the datagram family.
    pub(in crate::hosts) fn write_datagrams(&mut self, now: Time, fabric: &mut SimFabric, write: Write) {
        let Write { connection: number, end, bytes, tag, created } = write;
        let Some(open) = self.datagrams.connections.get_mut(&number) else { return };
        if self.process.as_ref().is_some_and(|process| !process.has(open.nics[end as usize])) {
            return;
        }
        let half = &mut open.halves[end as usize];
        if let Some(classes) = &self.classes {
            half.priority = classes.priority(open.workload, bytes);
            half.path_class = classes.path_class(open.workload, end);
            half.limiter = classes.connection_limiter(now, half.priority).map(Box::new);
        }
        half.messages.write(bytes, tag, created);
        half.sender.write(bytes);
        self.send_datagrams(now, fabric, number, end);
    }

    /// Sends the packets that an end may send now, and arms its timer.
    pub(in crate::hosts) fn send_datagrams(
        &mut self,
        now: Time,
        fabric: &mut SimFabric,
        number: u32,
        end: End,
    ) {
        let Some(open) = self.datagrams.connections.get_mut(&number) else { return };
        let [src, dst] = [end, end.other()].map(|end| open.nics[end as usize]);
        let config = self.transports.get(open.transport);
        let sizes = DatagramSizes { segment: config.segment, header: config.header_bytes };
        let full_size = sizes.segment + u64::from(sizes.header);
        let [client, server] = &mut open.halves;
        let (half, peer) = if end == End::Client { (client, server) } else { (server, client) };
        let mut wake = None;
        while half.sender.deadline() <= now {
            if self.rules.backpressure && !fabric.class_has_room(now, src, dst, half.path_class, full_size) {
                if !std::mem::replace(&mut half.blocked, true) {
                    self.waiting_for_room[src.0 as usize].push_back((number, end));
                }
                return;
            }
            if let Some(classes) = &self.classes
                && let Some(until) = classes.waits_until(
                    now,
                    src,
                    open.workload,
                    half.priority,
                    full_size,
                    half.limiter.as_deref(),
                )
            {
                wake = Some(until);
                break;
            }
            let Some(part) = half.sender.poll_transmit(sizes, now, half.pace) else { break };
            let mut packet = Packet::new(src, dst, number, (part.len + sizes.header) as u16);
            (packet.seq, packet.ack, packet.len) = (part.left, part.message, part.len as u16);
            packet.flags = Flags::NONE
                .with_if(part.is_first, Flags::SYN)
                .with_if(end == End::Server, Flags::FROM_SERVER);
            half.packets += 1;
            self.goodput.on_sent(now, open.workload, part.len.into());
            half.messages.on_bytes_sent(part.len.into());
            while let Some(message) = half.messages.take_sent(now) {
                match &mut self.process {
                    Some(process) if !process.has(dst) => {
                        let what = Announced::Message(message);
                        process.announce(dst, Announcement { connection: number, to: end.other(), what });
                    }
                    _ => expect(peer, message),
                }
            }
            if let Some(classes) = &mut self.classes {
                classes.label(&mut packet, half.priority, half.path_class, || half.sender.unsent());
                if !classes.passes(now, &packet, open.workload, half.limiter.as_deref_mut()) {
                    fabric.refuse(now, &packet);
                    continue;
                }
            }
            fabric.send(now, packet);
        }
        // A limiter that never lets the packet pass gives no time at all.
        let deadline = wake.unwrap_or_else(|| half.sender.deadline());
        if deadline < half.armed {
            half.armed = deadline;
            fabric.schedule(deadline, Owner::new(OwnerKind::Endpoint, number * 2 + end as u32));
        }
    }

    /// The event of an end's timer has come.
    pub(in crate::hosts) fn on_datagrams_due(
        &mut self,
        now: Time,
        fabric: &mut SimFabric,
        number: u32,
        end: End,
    ) {
        let Some(open) = self.datagrams.connections.get_mut(&number) else { return };
        let half = &mut open.halves[end as usize];
        if half.armed == now {
            half.armed = Time::MAX;
            self.send_datagrams(now, fabric, number, end);
        }
    }

    /// There is room in the NIC for which an end has waited.
    pub(in crate::hosts) fn unblock_datagrams(
        &mut self,
        now: Time,
        fabric: &mut SimFabric,
        number: u32,
        end: End,
    ) {
        let Some(open) = self.datagrams.connections.get_mut(&number) else { return };
        open.halves[end as usize].blocked = false;
        self.send_datagrams(now, fabric, number, end);
    }

    /// A packet of a connection of the datagram family has reached its host.
    pub(in crate::hosts) fn receive_datagrams(&mut self, now: Time, fabric: &mut SimFabric, packet: &Packet) {
        let Some(open) = self.datagrams.connections.get_mut(&packet.flow) else { return };
        let half = &mut open.halves[End::receiving(packet) as usize];
        half.received += u64::from(packet.len);
        open.active = Some((open.active.map_or(now, |(first, _)| first), now));
        self.goodput.on_delivered(now, open.workload, packet.len.into());
        let part = DatagramPacket {
            message: packet.ack,
            left: packet.seq,
            len: packet.len.into(),
            is_first: packet.flags.has(Flags::SYN),
        };
        if half.receiver.on_packet(&part) {
            self.leave(fabric, Step::Message(*packet));
        }
    }

    /// The application receives the message that `packet` has made whole.
    pub(in crate::hosts) fn deliver_datagrams(
        &mut self,
        now: Time,
        network: &Network,
        mut packet: Packet,
    ) -> Option<(u16, Arrival)> {
        let open = self.datagrams.connections.get_mut(&packet.flow)?;
        let message = open.halves[End::receiving(&packet) as usize].expected.remove(&packet.ack)?;
        // The last packet of the message ends where the message does; any other one ends before.
        let is_last = packet.seq == 1;
        packet.seq = (message.end as u32).wrapping_sub(u32::from(packet.len) + u32::from(!is_last));
        let split = split_of(network, now, &packet, &message);
        let config = self.transports.get(open.transport);
        let ideal = ideal_time(network, config, message.bytes, packet, self.rules.spreads);
        let from = network.nics().host_of(packet.src);
        let waits = self.follows_waits[usize::from(open.workload)]
            .then(|| message_waits(network, &packet, &split, self.rules.has_fixed_paths));
        let waits = waits.unwrap_or_default();
        self.agenda.push(Step::Close(packet.flow));
        Some((
            open.workload,
            Arrival { now, tag: message.tag, from, bytes: message.bytes, split, ideal, waits },
        ))
    }
}
