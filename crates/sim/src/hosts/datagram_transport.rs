//! [`DatagramTransport`]: the connections of the datagram family, over which workloads send messages without repair.
//!
//! ```text
//! write_datagrams ──> DatagramSender ──pace──> send_datagrams ──> limits ──> pacer ──> NIC
//! agenda: Message ──> the workload <── DatagramReceiver <── receive_datagrams <── packet of the connection's number
//! ```
//!
//! A packet carries the number of its message in [`Packet::ack`], and in [`Packet::seq`] how many packets of it are left;
//! SYN marks the first one. When it has sent a message to its last byte, the sending end has the other expect it, as
//! TCP's does, so that the two ends may be in different logical processes.

use std::collections::BTreeMap;

use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::{Flags, HostId, Network, Packet, PathClass, ideal_time};
use plimsoll_mechanisms::qjump::PeriodicLimiter;
use plimsoll_mechanisms::tcp::TcpConfig;
use plimsoll_mechanisms::transports::datagram::{DatagramPacket, DatagramReceiver, DatagramSender};
use plimsoll_results::outcome;
use plimsoll_traffic::{Arrival, ConnectionEnd as End, Opened, Write};
use plimsoll_units::{ByteTime, Time};

use super::Hosts;
use super::agenda::Step;
use super::connection::split_of;
use super::demand::Unsent;
use super::messages::{Announcement, MessageStream, Outgoing};
use crate::sim_hooks::SimFabric;

/// The connections of the datagram family.
#[derive(Debug, Default)]
pub(super) struct DatagramTransport {
    /// The connections by number.
    connections: BTreeMap<u32, DatagramConnection>,
}

/// Two hosts that send each other messages.
#[derive(Debug)]
struct DatagramConnection {
    workload: u16,
    /// The number of its transport.
    transport: u16,
    /// The NICs of the client and of the server.
    nics: [HostId; 2],
    halves: [DatagramHalf; 2],
    active: Option<(Time, Time)>,
}

/// One end of a connection.
#[derive(Debug)]
struct DatagramHalf {
    sender: DatagramSender,
    receiver: DatagramReceiver,
    /// The rate at which packets leave: that of the transport, or that of the NIC.
    pace: ByteTime,
    /// The time of the event that the queue has for this end's deadline; [`Time::MAX`] if it has none.
    armed: Time,
    /// The end waits for room in its NIC queue.
    blocked: bool,
    priority: u8,
    path_class: PathClass,
    limiter: Option<Box<PeriodicLimiter>>,
    /// The messages that this end sends, in offsets of all their bytes.
    messages: MessageStream,
    /// By number, from `next_expected` down: the messages that the other end has sent and that are not whole here.
    expected: BTreeMap<u32, Outgoing>,
    next_expected: u32,
    /// Packets sent, and payload received.
    packets: u64,
    received: u64,
}

impl DatagramHalf {
    fn new(config: &TcpConfig, network: &Network, nic: HostId) -> DatagramHalf {
        let of_nic = network.link(plimsoll_fabric::net::PortId(nic.0)).rate;
        DatagramHalf {
            sender: DatagramSender::default(),
            receiver: DatagramReceiver::default(),
            pace: config.params.pacing_rate.unwrap_or(of_nic).byte_time(),
            armed: Time::MAX,
            blocked: false,
            priority: 0,
            path_class: PathClass::Either,
            limiter: None,
            messages: MessageStream::default(),
            expected: BTreeMap::new(),
            next_expected: 0,
            packets: 0,
            received: 0,
        }
    }
}

impl DatagramConnection {
    fn host(&self, network: &Network, end: End) -> HostId {
        network.nics().host_of(self.nics[end as usize])
    }

    /// Returns whether nothing is left to be sent, and no message is expected.
    fn is_idle(&self) -> bool {
        self.halves.iter().all(|half| half.sender.unsent() == 0 && half.expected.is_empty())
    }

    fn record(&self, network: &Network) -> outcome::ConnectionRecord {
        outcome::ConnectionRecord {
            workload: self.workload,
            client: self.host(network, End::Client).0,
            server: self.host(network, End::Server).0,
            active: self.active,
            delivered: self.halves.iter().map(|half| half.received).sum(),
            segments: self.halves.iter().map(|half| half.packets).sum(),
            ..outcome::ConnectionRecord::default()
        }
    }
}

impl DatagramTransport {
    /// Returns whether connection `number` is open here.
    pub(super) fn has(&self, number: u32) -> bool {
        self.connections.contains_key(&number)
    }

    /// Opens connection `number`.
    pub(super) fn open(
        &mut self,
        config: &TcpConfig,
        network: &Network,
        number: u32,
        (workload, transport): (u16, u16),
        nics: [HostId; 2],
    ) {
        let halves = nics.map(|nic| DatagramHalf::new(config, network, nic));
        let connection = DatagramConnection { workload, transport, nics, halves, active: None };
        self.connections.insert(number, connection);
    }

    /// Has an end of a connection expect a message that another logical process has sent.
    pub(super) fn expect(&mut self, announcement: Announcement) {
        let Announcement { connection, to, message } = announcement;
        if let Some(open) = self.connections.get_mut(&connection) {
            expect(&mut open.halves[to as usize], message);
        }
    }

    /// Returns the bytes that each end has written and not yet sent.
    pub(super) fn unsent(&self, network: &Network) -> impl Iterator<Item = Unsent> {
        self.connections.values().flat_map(|open| {
            [End::Client, End::Server].into_iter().map(|end| Unsent {
                from: open.host(network, end),
                to: open.host(network, end.other()),
                bytes: open.halves[end as usize].sender.unsent(),
            })
        })
    }

    /// Returns the record of an open connection.
    pub(super) fn record(&self, network: &Network, number: u32) -> Option<outcome::ConnectionRecord> {
        self.connections.get(&number).map(|open| open.record(network))
    }

    /// Closes an open connection that is idle, and returns its record.
    pub(super) fn close_if_idle(
        &mut self,
        network: &Network,
        number: u32,
    ) -> Option<outcome::ConnectionRecord> {
        let record = self.connections.get(&number).filter(|open| open.is_idle())?.record(network);
        self.connections.remove(&number);
        Some(record)
    }

    /// Takes from the connections of another logical process the ends at the hosts that it simulated.
    pub(super) fn absorb(&mut self, other: DatagramTransport, simulated: impl Fn(HostId) -> bool) {
        for (number, mut other) in other.connections {
            let Some(own) = self.connections.get_mut(&number) else {
                self.connections.insert(number, other);
                continue;
            };
            for end in [0, 1].into_iter().filter(|end| simulated(own.nics[*end])) {
                std::mem::swap(&mut own.halves[end], &mut other.halves[end]);
            }
            own.active = match (own.active, other.active) {
                (Some(own), Some(other)) => Some((own.0.min(other.0), own.1.max(other.1))),
                (own, other) => own.or(other),
            };
        }
    }
}

/// The other end has sent `message` to its last byte, which no packet can have brought yet.
fn expect(half: &mut DatagramHalf, message: Outgoing) {
    half.expected.insert(half.next_expected, message);
    half.next_expected = half.next_expected.wrapping_add(1);
    if half.expected.len() > EXPECTED_MAX {
        half.expected.pop_first();
    }
}

/// How many messages an end expects; with more, the oldest are lost. A receiver gives messages up before.
const EXPECTED_MAX: usize = 4_096;

impl Hosts {
    /// Opens a connection of the datagram family, if `workload` is carried by it.
    pub(super) fn open_datagrams(
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
    pub(super) fn write_datagrams(&mut self, now: Time, fabric: &mut SimFabric, write: Write) {
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
    pub(super) fn send_datagrams(&mut self, now: Time, fabric: &mut SimFabric, number: u32, end: End) {
        let Some(open) = self.datagrams.connections.get_mut(&number) else { return };
        let [src, dst] = [end, end.other()].map(|end| open.nics[end as usize]);
        let config = self.transports.get(open.transport);
        let full_size = config.segment + u64::from(config.header_bytes);
        let [client, server] = &mut open.halves;
        let (half, peer) = if end == End::Client { (client, server) } else { (server, client) };
        let mut wake = Time::MAX;
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
                wake = until;
                break;
            }
            let Some(part) = half.sender.poll_transmit(config, now, half.pace) else { break };
            let mut packet = Packet::new(src, dst, number, (part.len + config.header_bytes) as u16);
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
                        process.announce(dst, Announcement { connection: number, to: end.other(), message });
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
        let deadline = if wake == Time::MAX { half.sender.deadline() } else { wake };
        if deadline < half.armed {
            half.armed = deadline;
            fabric.schedule(deadline, Owner::new(OwnerKind::Endpoint, number * 2 + end as u32));
        }
    }

    /// The event of an end's timer has come.
    pub(super) fn on_datagrams_due(&mut self, now: Time, fabric: &mut SimFabric, number: u32, end: End) {
        let Some(open) = self.datagrams.connections.get_mut(&number) else { return };
        let half = &mut open.halves[end as usize];
        if half.armed == now {
            half.armed = Time::MAX;
            self.send_datagrams(now, fabric, number, end);
        }
    }

    /// There is room in the NIC for which an end has waited.
    pub(super) fn unblock_datagrams(&mut self, now: Time, fabric: &mut SimFabric, number: u32, end: End) {
        let Some(open) = self.datagrams.connections.get_mut(&number) else { return };
        open.halves[end as usize].blocked = false;
        self.send_datagrams(now, fabric, number, end);
    }

    /// A packet of a connection of the datagram family has reached its host.
    pub(super) fn receive_datagrams(&mut self, now: Time, fabric: &mut SimFabric, packet: &Packet) {
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
    pub(super) fn deliver_datagrams(
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
        self.agenda.push(Step::Close(packet.flow));
        Some((open.workload, Arrival { now, tag: message.tag, from, bytes: message.bytes, split, ideal }))
    }
}
