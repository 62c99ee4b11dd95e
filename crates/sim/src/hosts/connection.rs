//! A connection: two TCP ends, and the messages that each has written.

use plimsoll_fabric::net::{Flags, HostId, Network, Packet, PathClass, PortId, WaitPlace, ideal_time};
use plimsoll_mechanisms::qjump::PeriodicLimiter;
use plimsoll_mechanisms::tcp::{Counters, TcpConfig};
use plimsoll_mechanisms::transports::PacketTypes;
use plimsoll_mechanisms::transports::{Endpoint, PathFacts};
use plimsoll_memory::prefetch_for_later;
use plimsoll_results::outcome::{self, Split};
use plimsoll_traffic::record::WaitedAt;
use plimsoll_traffic::{Arrival, ConnectionEnd as End, MessageWaits};
use plimsoll_units::{Span, Time, mix64};

use super::demand::Unsent;
use super::messages::{MessageStream, Outgoing, SegmentCounts, Stream};
use super::network_paths::NetworkPaths;

/// One end of a connection, and the messages that it has written.
#[derive(Debug)]
pub(super) struct Half {
    pub(super) endpoint: Endpoint,
    /// The time of the event that the queue has for this end's deadline; [`Time::MAX`] if it has none.
    pub(super) armed: Time,
    /// The end waits for room in its NIC queue.
    pub(super) blocked: bool,
    /// The stream offset up to which segmentation offload lets data leave.
    pub(super) piece_end: u64,
    /// The priority of what this end sends.
    pub(super) priority: u8,
    /// By which switches of a hybrid network its packets may travel.
    pub(super) path_class: PathClass,
    /// QJump's limiter, where each connection has its own.
    pub(super) limiter: Option<Box<PeriodicLimiter>>,
    /// The messages of the two byte streams.
    pub(super) messages: MessageStream,
}

impl Half {
    fn new(config: &TcpConfig) -> Half {
        Half {
            endpoint: Endpoint::new(config),
            armed: Time::MAX,
            blocked: false,
            piece_end: 0,
            priority: 0,
            path_class: PathClass::Either,
            limiter: None,
            messages: MessageStream::default(),
        }
    }

    /// Appends a message to the stream.
    pub(super) fn write(&mut self, config: &TcpConfig, now: Time, bytes: u64, tag: u64, created: Time) {
        self.messages.write(bytes, tag, created);
        self.endpoint.write(config, now, bytes);
    }

    /// Returns whether nothing that this end wrote is unacknowledged, and nothing that it received unread.
    pub(super) fn is_idle(&self) -> bool {
        self.messages.is_empty() && self.endpoint.is_idle()
    }

    /// Returns whether this end is idle, and no timer of it runs.
    pub(super) fn rests(&self, config: &TcpConfig) -> bool {
        // What may be sent at a later time is nothing, of an idle end: its timers do not depend on the time.
        self.is_idle() && self.endpoint.deadline(config, Time::ZERO) == Time::MAX
    }

    /// Returns the segments that this end has sent and received.
    pub(super) fn segments(&self) -> SegmentCounts {
        let counters = self.endpoint.counters();
        SegmentCounts { sent: counters.segments_sent, received: counters.segments_received }
    }
}

/// Extends `arrival` to the time `now` at which the acknowledgement `packet` reaches the sender: the time since the
/// delivery counts where the acknowledgement waited; what that does not explain, such as a lost acknowledgement,
/// counts as recovery.
pub(super) fn acknowledged(
    network: &Network,
    config: &TcpConfig,
    now: Time,
    packet: &Packet,
    arrival: Arrival,
    spread: bool,
) -> Arrival {
    let back = transit_of(network, packet);
    let since = now - arrival.now;
    let mut split = arrival.split;
    if back.total() <= since {
        split = split + back;
        split.recovery += since - back.total();
    } else {
        split.recovery += since;
    }
    // An empty message takes what an acknowledgement does.
    let ideal = arrival.ideal + ideal_time(network, config, 0, *packet, spread);
    Arrival { now, split, ideal, ..arrival }
}

/// Returns the time that a READ request takes on idle links, against the direction of the data `packet`.
pub(super) fn request_time(network: &Network, config: &TcpConfig, packet: &Packet) -> Span {
    let size = config.read_request_bytes() as u16;
    let mut request = Packet::new(packet.dst, packet.src, packet.flow, size);
    request.flags = Flags(packet.flags.and(Flags::FROM_SERVER).0 ^ Flags::FROM_SERVER.0);
    let (serialisation, propagation) = network.idle_transit(&request);
    serialisation + propagation
}

/// A connection of a workload.
#[derive(Debug)]
pub(super) struct HostConnection {
    pub(super) workload: u16,
    /// The number of its transport.
    pub(super) transport: u16,
    /// The NICs of the client and of the server.
    hosts: [HostId; 2],
    halves: [Half; 2],
    pub(super) active: Option<(Time, Time)>,
}

impl HostConnection {
    pub(super) fn new(
        config: &TcpConfig,
        workload: u16,
        transport: u16,
        hosts: [HostId; 2],
    ) -> HostConnection {
        HostConnection {
            workload,
            transport,
            hosts,
            halves: [Half::new(config), Half::new(config)],
            active: None,
        }
    }

    /// Tells the controllers that take account of it the shortest path of their packets.
    pub(super) fn set_paths(
        &mut self,
        network: &Network,
        number: u32,
        config: &TcpConfig,
        paths: Option<NetworkPaths>,
    ) {
        for end in [End::Client, End::Server] {
            if !self.half(end).endpoint.regards_path() {
                return;
            }
            let mut packet = Packet::new(self.host(end), self.host(end.other()), number, 0);
            if end == End::Server {
                packet.flags = Flags::FROM_SERVER;
            }
            let switches = network.path(&packet).count() as u32 - 1;
            let nic_rate = network.link(PortId(packet.src.0)).rate;
            packet.size = (config.segment + u64::from(config.header_bytes)) as u16;
            let round_trip = network.idle_round_trip(&packet, config.ack_bytes as u16);
            let place = u64::from(number) * 2 + end as u64;
            let facts = PathFacts {
                switches,
                nic_rate,
                round_trip,
                choices: paths.and_then(|_| network.path_choices(packet.src, packet.dst)),
                longest_round_trip: paths.map_or(Span::ZERO, |paths| paths.round_trip),
                entropy_seed: paths.map_or(0, |paths| mix64(paths.seed.wrapping_add(place))),
            };
            self.half(end).endpoint.set_path(config, facts);
        }
    }

    #[inline]
    pub(super) fn half(&mut self, end: End) -> &mut Half {
        &mut self.halves[end as usize]
    }

    pub(super) fn half_of(&self, end: End) -> &Half {
        &self.halves[end as usize]
    }

    /// Prefetches the memory that a segment at `end` will use.
    #[inline]
    pub(super) fn prefetch(&self, end: End) {
        prefetch_for_later(&self.halves[end as usize]);
        prefetch_for_later(&self.active);
    }

    /// Asks memory for what that refers to.
    #[inline]
    pub(super) fn prefetch_behind(&self, end: End) {
        self.halves[end as usize].endpoint.prefetch();
    }

    /// Returns the messages at an end.
    pub(super) fn stream(&mut self, end: End) -> Stream<'_> {
        let [client, server] = &mut self.halves;
        let (own, peer) = if end == End::Client { (client, server) } else { (server, client) };
        Stream {
            workload: self.workload,
            acknowledged: own.endpoint.acknowledged(),
            own: &mut own.messages,
            peer: &mut peer.messages,
            has_subflows: false,
        }
    }

    /// Returns the end that has written more: its window is the one that matters.
    pub(super) fn busier_end(&self) -> &Endpoint {
        let [client, server] = &self.halves;
        let is_server = server.endpoint.written() >= client.endpoint.written();
        if is_server { &server.endpoint } else { &client.endpoint }
    }

    /// Returns the record that is kept of the connection.
    pub(super) fn record(&self, network: &Network) -> outcome::ConnectionRecord {
        let [client, server] = self.hosts.map(|nic| network.nics().host_of(nic).0);
        let mut record = outcome::ConnectionRecord {
            workload: self.workload,
            client,
            server,
            active: self.active,
            ..outcome::ConnectionRecord::default()
        };
        for half in &self.halves {
            record.delivered += half.endpoint.received();
            count(&mut record, half.endpoint.counters());
        }
        record
    }

    /// Returns the packets of both ends by type, of RoCE's.
    pub(super) fn packet_types(&self) -> PacketTypes {
        let mut types = PacketTypes::default();
        self.halves.iter().for_each(|half| types += half.endpoint.counters().types);
        types
    }

    /// Takes the ends of `other` whose hosts were simulated there.
    pub(super) fn absorb(&mut self, mut other: HostConnection, simulated: impl Fn(HostId) -> bool) {
        for end in [End::Client, End::Server] {
            if simulated(other.host(end)) {
                std::mem::swap(self.half(end), other.half(end));
            }
        }
        self.active = spanning(self.active, other.active);
    }

    #[inline]
    pub(super) fn host(&self, end: End) -> HostId {
        self.hosts[end as usize]
    }

    /// Returns what each end has written and not yet sent.
    pub(super) fn unsent(&self) -> impl Iterator<Item = Unsent> + '_ {
        [End::Client, End::Server].into_iter().map(|end| {
            let endpoint = &self.halves[end as usize].endpoint;
            let bytes = endpoint.written().saturating_sub(endpoint.sent());
            Unsent { from: self.host(end), to: self.host(end.other()), bytes }
        })
    }

    /// Returns whether nothing written is unacknowledged and nothing unread: the connection could be closed.
    pub(super) fn is_idle(&self) -> bool {
        self.halves.iter().all(Half::is_idle)
    }

    /// Returns whether both ends rest, and none of their packets is under way or was lost.
    pub(super) fn is_quiet(&self, config: &TcpConfig) -> bool {
        let [client, server] = &self.halves;
        self.halves.iter().all(|half| half.rests(config))
            && client.segments().seen_by_peer() == server.segments()
    }
}

/// Adds what another logical process recorded at the other end of a connection.
pub(super) fn add(record: &mut outcome::ConnectionRecord, other: &outcome::ConnectionRecord) {
    record.active = spanning(record.active, other.active);
    record.delivered += other.delivered;
    record.segments += other.segments;
    record.retransmissions += other.retransmissions;
    record.timeouts += other.timeouts;
    record.marked += other.marked;
}

/// Returns the time from the first to the last of two pairs.
fn spanning(one: Option<(Time, Time)>, other: Option<(Time, Time)>) -> Option<(Time, Time)> {
    match (one, other) {
        (Some(one), Some(other)) => Some((one.0.min(other.0), one.1.max(other.1))),
        (one, other) => one.or(other),
    }
}

/// Adds the counters of an end of a connection or subflow to a record.
pub(super) fn count(record: &mut outcome::ConnectionRecord, counters: Counters) {
    record.segments += counters.data_segments;
    record.retransmissions += counters.retransmissions;
    record.timeouts += counters.timeouts;
    record.marked += counters.ce_received;
}

/// Returns the component of a split that waiting at `place` belongs to.
fn part_of<'a>(network: &Network, split: &'a mut Split, place: WaitPlace) -> &'a mut Span {
    match place {
        _ if network.upward_account() == Some(place) => &mut split.tier[0],
        WaitPlace::Nic => &mut split.nic,
        WaitPlace::Pacer => &mut split.pacer,
        WaitPlace::Tier0 => &mut split.tier[0],
        WaitPlace::Tier1 => &mut split.tier[1],
        WaitPlace::Tier2 => &mut split.tier[2],
    }
}

/// Splits the time that an arrived packet took.
pub(super) fn transit_of(network: &Network, packet: &Packet) -> Split {
    let (mut serialisation, mut propagation) = network.idle_transit(packet);
    if !packet.transit().is_zero() {
        // The hash did not choose its path, so the packet carries the sum over its links.
        propagation = propagation.min(packet.transit());
        serialisation = packet.transit() - propagation;
    }
    Split {
        nic: packet.wait(WaitPlace::Nic),
        pacer: network.paced(packet),
        tier: network.waited_in_tiers(packet),
        serialisation,
        propagation,
        ..Split::default()
    }
}

/// Splits the completion time of `message`, which `packet` has completed by arriving at `now`.
///
/// The packet carries where it waited; its serialisation and propagation follow from its path; so the
/// moment it was sent is known without having been written down. For a packet that was sent once
/// and ends the message that moment must be the one that the sender noted.
///
/// # Panics
/// If it is not: then a delay has been counted twice or not at all.
pub(super) fn split_of(network: &Network, now: Time, packet: &Packet, message: &Outgoing) -> Split {
    let mut split = transit_of(network, packet);
    let total = now - message.created;
    let transit = split.total();
    if transit > total {
        // Sent before the message was written: bytes ahead of it were overtaken by the message.
        return Split { recovery: total, ..Split::default() };
    }
    let mut sent = now - transit;
    let ends_message = packet.seq.wrapping_add(u32::from(packet.len)) == message.end as u32;
    let is_first = ends_message && !packet.flags.has(Flags::RETRANSMISSION);
    if is_first && let Some(place) = packet.saturated() {
        // It waited there longer than its field can hold: the rest of the time belongs there.
        *part_of(network, &mut split, place) += sent.saturating_since(message.first_sent);
        sent = sent.min(message.first_sent);
    }
    let first_sent = message.first_sent.min(sent);
    split.window = first_sent - message.created;
    split.recovery = sent.saturating_since(message.first_sent);
    if is_first {
        assert_eq!(sent, message.first_sent, "a packet's delays are those it was told of");
    }
    assert_eq!(split.total(), total, "the parts of a completion time sum to the whole");
    split
}

/// Returns where a message waited that `packet` has completed. Ports are known where packets have fixed paths; of a
/// tier that a path passes twice, without accounts of their own, two are. The parts sum to those of `split`.
pub(super) fn message_waits(
    network: &Network,
    packet: &Packet,
    split: &Split,
    has_fixed_paths: bool,
) -> MessageWaits {
    let at = |account: WaitPlace, tier: u8| {
        let ports: Vec<u32> = network.ports_of(packet, account).map(|port| port.0).collect();
        match ports[..] {
            [port] if has_fixed_paths => WaitedAt::Link(port),
            [one, other] if has_fixed_paths => WaitedAt::Links(one, other),
            _ => WaitedAt::Tier(tier),
        }
    };
    let upward = network.upward_account();
    let upwards = upward.map_or(Span::ZERO, |account| packet.wait(account)).min(split.tier[0]);
    let [first, second, third] = split.tier;
    let [place, next, top] = WaitPlace::TIERS;
    MessageWaits([
        (WaitedAt::Link(packet.src.0), split.nic),
        (upward.map_or(WaitedAt::Tier(0), |account| at(account, 0)), upwards),
        (at(place, 0), first - upwards),
        (at(next, 1), second),
        (at(top, 2), third),
    ])
}
