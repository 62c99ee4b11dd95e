//! [`Hosts`]: the transports of all hosts, and what lies between them and the NICs.
//!
//! ```text
//! World ──send, on_packet, on_due, on_room, on_circuits──> Hosts ──packets, deadlines──> Fabric
//! World <──next_arrival: a message is whole───────────────┘  └──> agenda: the steps left at this instant
//! ```
//!
//! Hosts call no workload. An event leaves its arrivals and the steps behind them on the agenda, and
//! [`Hosts::next_arrival`] takes these steps up to the next arrival, on which the world has the workload act. A
//! transport is found by the number of a connection: plain TCP's are in the table, those of MPTCP and of datagrams are
//! not.

mod active_queue_pairs;
mod agenda;
mod classes;
mod connection;
mod connection_pool;
mod connection_table;
mod credit;
mod datagram;
mod datagram_transport;
mod demand;
mod flow_number;
mod goodput;
mod homa;
mod homa_host;
mod host_credit;
mod messages;
mod multipath;
mod network_paths;
mod nic;
mod packet_lists;
mod read_outs;
mod receive_offload;
mod reorder;
mod stack;
mod tcp;
mod transports;
mod unfinished;
mod wire;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeInclusive;

use plimsoll_circuits::Demand;
use plimsoll_fabric::engine::{Owner, OwnerKind};
use plimsoll_fabric::net::topology::NicChoice;
use plimsoll_fabric::net::{Flags, HostId, Network, Packet, ideal_time};
use plimsoll_mechanisms::nic_burst::{NicBurstParams, SegmentationOffload};
use plimsoll_mechanisms::transports::PacketTypes;
use plimsoll_results::outcome;
use plimsoll_scenario::model::{Completion, Model, Topology};
use plimsoll_traffic::{Actions, Arrival, ConnectionEnd as End, Source, SourceReach};
use plimsoll_units::{Bytes, Streams, Time};

pub(crate) use flow_number::datagram_workload;
pub(crate) use messages::Announcement;

use crate::error::RunError;
use crate::parallel::process::Process;
use crate::sim_hooks::SimFabric;
use active_queue_pairs::ActiveQueuePairs;
use agenda::{Agenda, Delivery, Step};
use classes::PacketClasses;
use connection::{acknowledged, message_waits, request_time, split_of};
use connection_pool::ConnectionPool;
use connection_table::ConnectionTable;
use datagram_transport::DatagramTransport;
use demand::DemandReader;
use goodput::GoodputMeter;
use homa_host::HomaHost;
use host_credit::HostCredit;
use messages::{Announced, Stream};
use multipath::Multipath;
use network_paths::NetworkPaths;
use receive_offload::ReceiveOffload;
use reorder::ReorderBuffers;
use stack::HostStacks;
use transports::Transports;

/// The transports of all hosts.
#[derive(Debug)]
pub(crate) struct Hosts {
    rules: HostRules,
    transports: Transports,
    /// By workload: a message that has arrived is complete only when its acknowledgement has, too.
    awaits_acknowledgement: Vec<bool>,
    /// By workload: its messages go one way, so that no answer follows once one is acknowledged.
    is_one_way: Vec<bool>,
    /// By workload: arrivals say where their messages waited.
    follows_waits: Vec<bool>,
    /// The connections by number.
    connections: ConnectionTable,
    /// The connections of MPTCP, where some workload has such.
    multipath: Option<Box<Multipath>>,
    /// The connections of the datagram family.
    datagrams: DatagramTransport,
    /// The open connections of each pair of hosts, where some stay open between messages.
    pool: Option<Box<ConnectionPool>>,
    goodput: GoodputMeter,
    /// The records of the connections that were closed before the end, by number.
    closed: BTreeMap<u32, outcome::ConnectionRecord>,
    /// The packets of closed RoCE connections, by type.
    closed_types: PacketTypes,
    /// The receiving NICs, where they coalesce packets.
    receive_offload: Option<Box<ReceiveOffload>>,
    /// The reorder buffers behind the receiving NICs, where hosts have them.
    reorder_buffers: Option<Box<ReorderBuffers>>,
    /// The stacks between applications, TCP and NICs, where they cost time or are limited. `classes` is present, too.
    stacks: Option<Box<HostStacks>>,
    /// The priorities and limits of packets, where they differ.
    classes: Option<Box<PacketClasses>>,
    /// The reader of the hosts' demand, in a hybrid network.
    demand: Option<Box<DemandReader>>,
    /// By host: the ends that wait for room in its NIC queue, in the order of their turns. Empty without
    /// backpressure.
    waiting_for_room: Vec<VecDeque<(u32, End)>>,
    /// The queue pairs that NICs send from, where their number is limited.
    active: ActiveQueuePairs,
    /// By host: the credit that it grants. Empty without Ultra Ethernet and NDP.
    credit: Vec<HostCredit>,
    /// By host: the messages of Homa that send, and those that are granted. Empty without Homa.
    homa: Vec<HomaHost>,
    /// The ends that found no room in this turn, to be asked first in the next.
    found_no_room: Vec<(u32, End)>,
    agenda: Agenda,
    /// Set where these hosts are part of one logical process of a parallel run.
    process: Option<Box<Process>>,
}

/// The settings of the scenario that apply to all hosts.
#[derive(Clone, Copy, Debug)]
struct HostRules {
    /// Something but the window keeps ends from sending: backpressure, segmentation offload, or limits.
    holds_back: bool,
    /// Something holds packets between the receiving NIC and the transport: coalescing, or a reorder buffer.
    holds_received: bool,
    /// Acknowledgements return stamps of ports.
    has_telemetry: bool,
    /// Receivers grant some transport what it sends.
    grants: bool,
    /// The transport waits for room in the NIC queue.
    backpressure: bool,
    /// An end that finds no room in the NIC stays ahead of ends that have sent.
    keeps_turns: bool,
    /// Only queue pairs wait for room in NICs, each for a packet of its priority.
    only_pairs_wait: bool,
    /// Some connections are closed when they fall idle.
    close_when_idle: bool,
    /// A message is complete when its delivery has been acknowledged to its sender.
    completes_acknowledged: bool,
    /// An end that has fallen idle may be the last to do so: its connection may be put away, or back into its pool.
    regards_idle: bool,
    /// Connections that rest stay open, as samples have all of them.
    keeps_open: bool,
    /// Packets of a flow may take several paths at a time.
    spreads: bool,
    /// Each packet takes the path of its flow and entropy.
    has_fixed_paths: bool,
    /// What senders that choose paths know of the network; `None` without any.
    paths: Option<NetworkPaths>,
    /// The choice among the NICs of hosts that have several, and the salt of a choice by hash.
    nic_choice: (NicChoice, u64),
    /// The reason why a family of the scenario keeps a run on one thread.
    one_thread: Option<&'static str>,
    /// Senders wait for a piece worth handing to the NIC.
    segmentation: Option<SegmentationOffload>,
}

impl Hosts {
    /// Builds the transports of all hosts, for the workloads of `sources`.
    pub(crate) fn new(
        model: &Model,
        fabric: &SimFabric,
        sources: &[Box<dyn Source>],
    ) -> Result<Hosts, RunError> {
        let network = fabric.network();
        let count = network.hosts();
        let stacks = HostStacks::new(model, network);
        let transports = Transports::new(model)?;
        let bursts = model.host.bursts().copied().unwrap_or(NicBurstParams::off());
        let receive_offload = ReceiveOffload::new(&bursts, count, stacks.is_some());
        let reorder_buffers =
            model.host.reorder_buffer().map(|params| Box::new(ReorderBuffers::new(*params)));
        let classes = PacketClasses::new(model, stacks.is_some())?;
        let segmentation = (bursts.segmentation > Bytes::ZERO).then(|| SegmentationOffload::new(&bursts));
        let backpressure = model.host.backpressure;
        let completes_acknowledged = model.observe.completion == Completion::Acknowledged;
        let is_hybrid = matches!(model.topology, Topology::Hybrid(_));
        let control = || model.circuits.clone().unwrap_or_default();
        let paths = NetworkPaths::of(model, network, &transports);
        let homa = HomaHost::all(&transports, count);
        let is_one_way: Vec<bool> =
            sources.iter().map(|source| source.reach() == SourceReach::Receiver).collect();
        Ok(Hosts {
            rules: HostRules {
                holds_back: model.waits_for_room() || segmentation.is_some() || classes.is_some(),
                holds_received: receive_offload.is_some() || reorder_buffers.is_some(),
                has_telemetry: model.has_telemetry(),
                grants: model.families().any(|family| family.carrier.grants()),
                backpressure,
                keeps_turns: is_hybrid || model.families().any(|family| family.carrier.is_nic()),
                only_pairs_wait: !is_hybrid && !backpressure,
                close_when_idle: transports.close_when_idle(),
                completes_acknowledged,
                regards_idle: transports.close_when_idle() && !completes_acknowledged,
                keeps_open: model.observe.flow_series.is_some(),
                paths,
                nic_choice: (model.paths.nics, Streams::new(model.run.seed).word("nics")),
                spreads: fabric.selector().is_some_and(|selector| selector.spreads()),
                has_fixed_paths: fabric.has_fixed_paths(),
                one_thread: model.families().find_map(|family| family.one_thread),
                segmentation,
            },
            awaits_acknowledgement: (0..)
                .zip(&is_one_way)
                .map(|(workload, is_one_way)| {
                    // A READ is complete at the end that has asked for it.
                    completes_acknowledged && *is_one_way && !transports.of_workload(workload).reads()
                })
                .collect(),
            is_one_way,
            follows_waits: sources.iter().map(|source| source.follows_waits()).collect(),
            transports,
            connections: ConnectionTable::default(),
            multipath: Multipath::new(model)?,
            datagrams: DatagramTransport::default(),
            pool: ConnectionPool::new(model),
            goodput: GoodputMeter::new(
                model.workload.len(),
                model.observe.goodput_every,
                model.measurement_window(),
            ),
            closed: BTreeMap::new(),
            closed_types: PacketTypes::default(),
            receive_offload: receive_offload.map(Box::new),
            reorder_buffers,
            classes,
            stacks,
            demand: is_hybrid.then(|| Box::new(DemandReader::new(&control()))),
            waiting_for_room: vec![
                Default::default();
                if model.waits_for_room() { count as usize } else { 0 }
            ],
            active: ActiveQueuePairs::default(),
            credit: std::iter::repeat_with(HostCredit::default)
                .take(if paths.is_some() { count as usize } else { 0 })
                .collect(),
            homa,
            found_no_room: Vec::new(),
            agenda: Agenda::new(),
            process: None,
        })
    }

    /// Returns the number that the next connection gets.
    pub(crate) fn next_connection(&self) -> u32 {
        self.connections.len() as u32
    }

    /// Sends the packets and messages of a workload's actions, and leaves the lists of its actions empty.
    pub(crate) fn send(&mut self, now: Time, fabric: &mut SimFabric, workload: u16, actions: &mut Actions) {
        // List by list: all of them together are 200 bytes, and most are empty.
        actions.opened.drain(..).for_each(|opened| self.open(fabric, workload, opened));
        actions.writes.drain(..).for_each(|write| self.write(now, fabric, write));
        actions.datagrams.drain(..).for_each(|datagram| self.send_datagram(now, fabric, workload, datagram));
    }

    /// A packet has reached its host.
    #[inline]
    pub(crate) fn on_packet(&mut self, now: Time, fabric: &mut SimFabric, packet: &Packet) {
        if self.rules.holds_received {
            self.on_nic(now, fabric, packet);
            return self.leave_steps(fabric);
        }
        if packet.flags.has(Flags::ECE) {
            self.on_ece(now, fabric, packet);
        }
        self.receive(now, fabric, packet, &[]);
    }

    /// The event of one of the hosts' timers has come.
    pub(crate) fn on_due(&mut self, now: Time, fabric: &mut SimFabric, owner: Owner) {
        match owner.kind() {
            OwnerKind::Endpoint => self.on_endpoint_due(now, fabric, owner.number()),
            _ => self.on_receive_event(now, fabric, owner.number()),
        }
        self.leave_steps(fabric);
    }

    /// Packets and ends that wait for room in a NIC get their turn: first the packets of a pacer, then the ends, one
    /// after the other. In a hybrid network, and with RoCE, an end that finds no room stays ahead of the ends that have
    /// sent; elsewhere it falls behind them, as docs/internals/plan.md says.
    #[inline]
    pub(crate) fn on_room(&mut self, now: Time, fabric: &mut SimFabric) {
        let keeps_turns = self.rules.keeps_turns;
        while let Some(nic) = fabric.hooks_mut().room.pop() {
            fabric.release_paced(now, nic);
            if !self.homa.is_empty() {
                self.send_data(now, fabric, HostId(nic.0));
            }
            let waiting = self.waiting_for_room[nic.0 as usize].len();
            for _ in 0..waiting {
                let next = self.waiting_for_room[nic.0 as usize].pop_front();
                let Some((number, end)) = next else { break };
                if self.rules.only_pairs_wait
                    && let Some(open) = self.connections.get_mut(number)
                    && !fabric.nic_is_clear(HostId(nic.0), open.half(end).priority)
                {
                    self.found_no_room.push((number, end));
                    // Without classes all pairs have one priority, so none of the others would find room.
                    match self.classes.is_none() {
                        true => break,
                        false => continue,
                    }
                }
                let before = fabric.counters().packets_sent;
                if let Some(open) = self.connections.get_mut(number) {
                    open.half(end).blocked = false;
                    self.send_from(now, fabric, number, end);
                } else {
                    self.unblock_multipath(now, fabric, number, end);
                    self.unblock_datagrams(now, fabric, number, end);
                }
                let turns = &mut self.waiting_for_room[nic.0 as usize];
                let has_sent = before != fabric.counters().packets_sent;
                if keeps_turns && !has_sent && turns.back() == next.as_ref() {
                    turns.pop_back();
                    self.found_no_room.push((number, end));
                }
            }
            for end in self.found_no_room.drain(..).rev() {
                self.waiting_for_room[nic.0 as usize].push_front(end);
            }
        }
    }

    /// The controller of circuits has acted: it gets the demand that it wants, to which `add_hints` adds the data that
    /// applications announce to be ready within a time at the hosts that are simulated here, and senders may find
    /// other queues open.
    #[cold]
    pub(crate) fn on_circuits(
        &mut self,
        now: Time,
        fabric: &mut SimFabric,
        add_hints: impl FnOnce(&mut Demand, RangeInclusive<Time>, &dyn Fn(HostId) -> bool),
    ) {
        let count = fabric.network().hosts();
        if fabric.wants_demand()
            && let Some(reader) = &mut self.demand
        {
            let unsent = self.connections.iter().flatten().flat_map(|connection| connection.unsent());
            let multipath = self.multipath.iter().flat_map(|multipath| multipath.connections());
            let unsent = unsent.chain(multipath.flat_map(|(_, connection)| connection.unsent()));
            let unsent = unsent.chain(self.datagrams.unsent(fabric.network()));
            let here = |host: HostId| self.process.as_ref().is_none_or(|process| process.has(host));
            let mut demand = reader.read(now, count as usize, unsent.filter(|unsent| here(unsent.from)));
            if let Some(within) = reader.hints_within(now) {
                add_hints(&mut demand, within, &here);
            }
            fabric.set_demand(demand);
        }
        if self.multipath.is_some() {
            (0..count).for_each(|host| self.on_circuits_changed(now, fabric, HostId(host)));
        }
        self.on_room(now, fabric);
    }

    /// Returns the next arrival at this instant, when the workload has acted on the one before and its actions have
    /// been sent.
    pub(crate) fn next_arrival(&mut self, now: Time, fabric: &mut SimFabric) -> Option<(u16, Arrival)> {
        while let Some(step) = self.agenda.pop() {
            let mut arrived = None;
            match step {
                Step::Datagram(workload, packet) => {
                    self.goodput.on_datagram(now, workload, packet.len.into());
                    arrived = Some((workload, datagram::arrival_of(fabric.network(), now, &packet)));
                }
                Step::Message(packet) => arrived = self.deliver_datagrams(now, fabric.network(), packet),
                Step::Piece(packets) => self.on_piece(now, fabric, packets),
                Step::Receive(packets) => self.receive_piece(now, fabric, packets),
                Step::Released(place) => self.on_released(fabric, place),
                Step::Segment(number, end) => self.on_segment(now, fabric, number, end),
                Step::Acknowledged(number, end, packet) => {
                    arrived = self.acknowledge(now, fabric, number, end, packet);
                }
                Step::Whole(delivery) => arrived = self.copy_or_deliver(now, fabric, delivery),
                Step::Deliver(delivery) => arrived = self.deliver(now, fabric, delivery),
                Step::Close(number) => self.close_if_idle(fabric.network(), number),
            }
            if arrived.is_some() {
                return arrived;
            }
        }
        None
    }

    /// Has the world ask for arrivals after this event, if there are steps that may lead to some.
    #[inline]
    fn leave_steps(&self, fabric: &mut SimFabric) {
        fabric.hooks_mut().has_aftermath |= !self.agenda.is_empty();
    }

    /// Leaves the acknowledgement `packet` for the sender at `end`, if it completes a message.
    #[cold]
    fn leave_acknowledged(&mut self, fabric: &mut SimFabric, number: u32, end: End, packet: &Packet) {
        let stream = stream(&mut self.connections, &mut self.multipath, number, end);
        if stream.is_some_and(|stream| stream.own.has_acknowledged(stream.acknowledged)) {
            self.leave(fabric, Step::Acknowledged(number, end, *packet));
        }
    }

    /// Leaves a step for after this event.
    fn leave(&mut self, fabric: &mut SimFabric, step: Step) {
        fabric.hooks_mut().has_aftermath = true;
        self.agenda.push(step);
    }

    /// The application receives the next of the messages that have become whole.
    fn deliver(&mut self, now: Time, fabric: &SimFabric, delivery: Delivery) -> Option<(u16, Arrival)> {
        let (number, end) = (delivery.number, delivery.end);
        loop {
            let stream = stream(&mut self.connections, &mut self.multipath, number, end)?;
            let message = stream.own.take_received(delivery.received)?;
            let packet = message.ends_in(&delivery.before).unwrap_or(&delivery.packet);
            let network = fabric.network();
            let split = split_of(network, now, packet, &message);
            let workload = stream.workload;
            let transport = self.transports.of_workload(workload);
            let spreads = stream.has_subflows || self.rules.spreads || transport.spreads();
            let mut ideal = ideal_time(network, transport, message.bytes, *packet, spreads);
            if transport.reads() {
                ideal += request_time(network, transport, packet);
            }
            let from = network.nics().host_of(packet.src);
            let waits = self.follows_waits[usize::from(workload)]
                .then(|| message_waits(network, packet, &split, self.rules.has_fixed_paths));
            let waits = waits.unwrap_or_default();
            let arrival = Arrival { now, tag: message.tag, from, bytes: message.bytes, split, ideal, waits };
            if self.awaits_acknowledgement[usize::from(workload)] {
                stream.peer.await_acknowledgement(&message, arrival);
                continue;
            }
            self.agenda.extend([Step::Deliver(delivery), Step::Close(number)]);
            return Some((workload, arrival));
        }
    }

    /// The acknowledgement `packet` has completed the next message of the sender at `end`, if it has.
    fn acknowledge(
        &mut self,
        now: Time,
        fabric: &SimFabric,
        number: u32,
        end: End,
        packet: Packet,
    ) -> Option<(u16, Arrival)> {
        let stream = stream(&mut self.connections, &mut self.multipath, number, end)?;
        let arrival = stream.own.take_acknowledged(stream.acknowledged)?;
        let workload = stream.workload;
        let transport = self.transports.of_workload(workload);
        let spreads = stream.has_subflows || self.rules.spreads || transport.spreads();
        let arrival = acknowledged(fabric.network(), transport, now, &packet, arrival, spreads);
        self.agenda.extend([Step::Acknowledged(number, end, packet), Step::Close(number)]);
        Some((workload, arrival))
    }

    /// The sender at `end` of a connection has fallen idle. A connection of a pool is free again. Another one, of one
    /// message, is put away if no packet of it is under way, as many were received as sent: nothing can happen to it
    /// any more, and its memory is free. Where the other end is in another logical process, that one compares, when it
    /// hears of it.
    #[cold]
    fn on_idle(&mut self, fabric: &mut SimFabric, number: u32, end: End) {
        let Some(connection) = self.connections.get(number) else { return };
        let (workload, config) = (connection.workload, self.transports.get(connection.transport));
        if !self.is_one_way[usize::from(workload)] {
            return;
        }
        if config.params.pool > 0 {
            return self.leave(fabric, Step::Close(number));
        }
        if self.rules.keeps_open || !self.transports.puts_away(workload) {
            return;
        }
        if self.is_divided(connection) {
            let half = connection.half_of(end);
            if half.rests(config) {
                let (peer, what) = (connection.host(end.other()), Announced::Rests(half.segments()));
                self.announce(peer, Announcement { connection: number, to: end.other(), what });
            }
        } else if connection.is_quiet(config) {
            self.put_away(fabric.network(), number);
        }
    }

    /// Closes a connection, and keeps its record.
    fn put_away(&mut self, network: &Network, number: u32) {
        if let Some(connection) = self.connections.get(number) {
            self.closed.insert(number, connection.record(network));
            self.closed_types += connection.packet_types();
            self.connections.close(number);
        }
    }

    /// Has the logical process of `host` know.
    fn announce(&mut self, host: HostId, announcement: Announcement) {
        self.process.iter_mut().for_each(|process| process.announce(host, announcement));
    }

    fn close_if_idle(&mut self, network: &Network, number: u32) {
        if !self.rules.close_when_idle {
            return;
        }
        let record = match self.connections.get(number) {
            // The sender's end is not idle, which is not seen here.
            Some(connection) if self.is_divided(connection) => return,
            Some(connection) if self.transports.closes(connection.workload) && connection.is_idle() => {
                let record = connection.record(network);
                self.closed_types += connection.packet_types();
                self.connections.close(number);
                record
            }
            Some(_) => return,
            None => {
                let closed = self.multipath.as_mut().and_then(|multipath| multipath.close_if_idle(number));
                let closed = closed.or_else(|| self.datagrams.close_if_idle(network, number));
                let Some(record) = closed else { return };
                record
            }
        };
        if let Some(pool) = &mut self.pool {
            pool.close(record.workload, HostId(record.client), HostId(record.server));
        }
        self.closed.insert(number, record);
    }
}

/// Returns the messages at `end` of an open connection, whichever transport has it.
fn stream<'a>(
    connections: &'a mut ConnectionTable,
    multipath: &'a mut Option<Box<Multipath>>,
    number: u32,
    end: End,
) -> Option<Stream<'a>> {
    match connections.get_mut(number) {
        Some(connection) => Some(connection.stream(end)),
        None => multipath.as_mut()?.stream(number, end),
    }
}
