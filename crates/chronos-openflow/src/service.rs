//! [`OpenFlow`]: the learning-switch controller as a [`Service`]. A partition has the datapaths whose numbers hash to
//! it.

use std::os::fd::BorrowedFd;
use std::time::Duration;

use indexmap::IndexMap;
use plimsoll_chronos::{KeyHash, Now, PartitionId, Service, SessionTransport, Step};

use plimsoll_openflow::{
    ERROR_DATA_BYTES, Ethernet, FlowChange, HEADER_BYTES, Header, Match, NO_BUFFER, Output, PacketIn,
    PortStatus, Version, Versions, Writer,
};

use crate::addresses::Limits;
use crate::datapath::{Datapath, Verdict};
use crate::message;
use crate::session::{DatapathEvent, Outcome, Peer, Session};

/// The settings of chronos-openflow, which its options set: versions, flows, stations and limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OpenFlowSettings {
    /// Versions that may be agreed upon.
    pub versions: Versions,
    /// Seconds without a packet after which a switch drops a flow; 0 for never.
    pub flow_idle_seconds: u16,
    /// Seconds after which a switch drops a flow; 0 for never.
    pub flow_hard_seconds: u16,
    /// Flows' priority, 1 or more: a table-miss flow has 0.
    pub flow_priority: u16,
    /// Bytes of a packet in a packet-in whose packet the switch keeps; 65535 for whole packets, which it need not keep.
    pub miss_send_bytes: u16,
    /// The longest accepted message, 128 to 65535 bytes.
    pub message_bytes_max: usize,
    /// Stations of one switch.
    pub addresses: Limits,
    /// Switches in one partition whose stations are remembered, 1 or more.
    pub datapaths_max: usize,
    /// Seconds that a connection has for its hello and its features reply; 0 for any number.
    pub hello_seconds: u16,
    /// Seconds without a message after which a switch gets an echo request, and after as many again is disconnected; 0
    /// for never.
    pub echo_seconds: u16,
}

impl Default for OpenFlowSettings {
    fn default() -> OpenFlowSettings {
        OpenFlowSettings {
            versions: Versions::ALL,
            flow_idle_seconds: 60,
            flow_hard_seconds: 0,
            flow_priority: 0x8000,
            miss_send_bytes: u16::MAX,
            message_bytes_max: usize::from(u16::MAX),
            addresses: Limits { entries: 1 << 20, age_seconds: 300 },
            datapaths_max: 256,
            hello_seconds: 10,
            echo_seconds: 15,
        }
    }
}

impl OpenFlowSettings {
    /// In 1.3 a packet without a flow is dropped unless a flow of priority 0 says otherwise (1.3.5, section 5.4).
    pub(crate) fn write_table_miss(&self, writer: &mut Writer<'_>) {
        if writer.version == Version::V13 {
            let output = Output::Controller(self.miss_send_bytes);
            let (idle_seconds, hard_seconds, priority, buffer) = (0, 0, 0, NO_BUFFER);
            let add = FlowChange::Add { idle_seconds, hard_seconds, priority, buffer, output };
            writer.flow_mod(Match::Any, add);
        }
    }
}

/// The controller as a service.
pub struct OpenFlow {
    settings: OpenFlowSettings,
    hash: KeyHash,
    partitions: u32,
}

impl OpenFlow {
    /// Creates a controller of `partitions` partitions, 1 or more; `secret` is random, so that an attacker cannot
    /// choose datapath numbers that collide.
    pub fn new(settings: OpenFlowSettings, partitions: u32, secret: u64) -> OpenFlow {
        OpenFlow { settings, hash: KeyHash::new(secret), partitions }
    }

    fn partition_of(&self, datapath: u64) -> PartitionId {
        KeyHash::partition(self.hash.hash(&datapath.to_be_bytes()), self.partitions)
    }

    fn on_packet(
        &self,
        datapath: &mut Datapath,
        packet: &PacketIn<'_>,
        now_seconds: u32,
        writer: &mut Writer<'_>,
    ) {
        let settings = &self.settings;
        let Some(frame) = Ethernet::read(packet.data) else { return };
        let decision = datapath.on_packet(&frame, packet.port, now_seconds, settings.addresses);
        if decision.moved {
            let (source, destination) = (frame.destination, frame.source);
            writer.flow_mod(Match::To(Ethernet { source, destination, ..frame }), FlowChange::Delete(None));
        }
        let output = match decision.verdict {
            Verdict::Drop => return,
            Verdict::Flood => Output::Flood,
            Verdict::Forward(port) => {
                let add = FlowChange::Add {
                    idle_seconds: settings.flow_idle_seconds,
                    hard_seconds: settings.flow_hard_seconds,
                    priority: settings.flow_priority,
                    buffer: packet.buffer,
                    output: Output::Port(port),
                };
                writer.flow_mod(Match::Pair(packet.port, frame), add);
                Output::Port(port)
            }
        };
        // A packet that the switch kept leaves with the flow, by the flow's port.
        let goes_with_flow = packet.buffer != NO_BUFFER && matches!(decision.verdict, Verdict::Forward(_));
        if packet.is_whole() && !goes_with_flow {
            writer.packet_out(packet.buffer, packet.port, output, packet.data);
        }
    }
}

/// The switches of one partition.
#[derive(Default)]
pub struct Datapaths {
    switches: IndexMap<u64, Datapath>,
    next_sweep_seconds: u32,
    /// The switch that is being swept, and the number of its stations still to be examined.
    sweep: Option<(usize, usize)>,
}

impl Datapaths {
    /// Returns the number of switches with state.
    pub fn len(&self) -> usize {
        self.switches.len()
    }

    /// Reports whether no switch has state.
    pub fn is_empty(&self) -> bool {
        self.switches.is_empty()
    }

    /// Returns the state of a switch.
    pub fn get(&self, datapath: u64) -> Option<&Datapath> {
        self.switches.get(&datapath)
    }

    fn entry(&mut self, datapath: u64, datapaths_max: usize) -> &mut Datapath {
        if self.switches.len() >= datapaths_max && !self.switches.contains_key(&datapath) {
            let oldest = (0..self.switches.len()).min_by_key(|&index| self.switches[index].heard_seconds);
            self.switches.swap_remove_index(oldest.expect("there is at least one"));
        }
        self.switches.entry(datapath).or_default()
    }

    /// Removes a few expired stations, and switches that have none left; true if there is more to do now.
    fn sweep(&mut self, now_seconds: u32, limits: Limits) -> bool {
        /// Few enough to keep a request from waiting long.
        const STATIONS: usize = 64;
        if self.sweep.is_none() && now_seconds >= self.next_sweep_seconds {
            self.next_sweep_seconds = now_seconds.saturating_add((limits.age_seconds / 4).max(1));
            self.sweep = self.sweep_of(0);
        }
        let Some((index, left)) = self.sweep else { return false };
        let Some((_, datapath)) = self.switches.get_index_mut(index) else {
            self.sweep = None;
            return false;
        };
        datapath.addresses.sweep(left.min(STATIONS), now_seconds, limits);
        self.sweep = if left > STATIONS {
            Some((index, left - STATIONS))
        } else if datapath.addresses.is_empty() {
            self.switches.swap_remove_index(index);
            self.sweep_of(index)
        } else {
            self.sweep_of(index + 1)
        };
        self.sweep.is_some()
    }

    fn sweep_of(&self, index: usize) -> Option<(usize, usize)> {
        self.switches.get_index(index).map(|(_, datapath)| (index, datapath.addresses.len()))
    }
}

/// A message for a datapath's partition.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Request<'a> {
    /// The connection by which it arrived.
    pub peer: Peer,
    /// The message's transaction, which the answers repeat.
    pub transaction: u32,
    /// The event that the message reports.
    pub event: DatapathEvent<'a>,
}

impl Service for OpenFlow {
    type Partition = Datapaths;
    type Session = Session;
    type Request<'a> = Request<'a>;

    const TICKS: bool = true;

    fn partition(&self, _id: PartitionId) -> Datapaths {
        Datapaths::default()
    }

    fn open(&self, _transport: SessionTransport) -> Session {
        Session::new(Duration::ZERO)
    }

    fn connected(&self, session: &mut Session, _socket: BorrowedFd<'_>, now: Now) {
        *session = Session::new(now.since_start);
    }

    fn tick(&self, session: &mut Session, now: Now, reply: &mut Vec<u8>) -> bool {
        session.tick(&self.settings, now.since_start, reply)
    }

    fn parse<'a>(
        &self,
        session: &mut Session,
        now: Now,
        input: &'a [u8],
        reply: &mut Vec<u8>,
    ) -> Step<Request<'a>> {
        let Some(header) = Header::read(input) else {
            return Step::Incomplete { total: HEADER_BYTES };
        };
        if session.is_refused(header) {
            session.refuse(&self.settings, header, reply);
            return Step::Close;
        }
        let length = usize::from(header.length);
        if length < HEADER_BYTES {
            // The begin of the next message is unknown.
            session.on_refused(&self.settings, header, &input[..HEADER_BYTES], reply);
            return Step::Close;
        }
        if length > self.settings.message_bytes_max {
            // The error repeats the message's beginning.
            let Some(head) = input.get(..ERROR_DATA_BYTES) else {
                return Step::Incomplete { total: ERROR_DATA_BYTES };
            };
            session.on_refused(&self.settings, header, head, reply);
            return Step::Skip { bytes: length };
        }
        let Some(message) = input.get(..length) else {
            return Step::Incomplete { total: length };
        };
        let outcome = session.on_message(&self.settings, header, message, reply);
        session.heard(now.since_start);
        match outcome {
            Outcome::Done => Step::Done { consumed: length },
            Outcome::Close => Step::Close,
            Outcome::Event(peer, transaction, event) => Step::Run {
                consumed: length,
                partition: self.partition_of(peer.datapath),
                request: Request { peer, transaction, event },
            },
        }
    }

    fn execute(&self, partition: &mut Datapaths, request: &Request<'_>, now: Now, reply: &mut Vec<u8>) {
        let now_seconds = now.since_start.as_secs() as u32;
        let Peer { version, datapath } = request.peer;
        let datapath = partition.entry(datapath, self.settings.datapaths_max);
        let mut writer = Writer { version, transaction: request.transaction, out: reply };
        match &request.event {
            // The ports of stations may have changed while the switch was away.
            DatapathEvent::Join => *datapath = Datapath { heard_seconds: now_seconds, ..Datapath::default() },
            DatapathEvent::Packet(packet) => self.on_packet(datapath, packet, now_seconds, &mut writer),
            DatapathEvent::Port(PortStatus { port, gone: true }) => {
                datapath.addresses.forget_port(*port);
                writer.flow_mod(Match::Any, FlowChange::Delete(Some(*port)));
            }
            DatapathEvent::Port(PortStatus { gone: false, .. }) => {}
        }
    }

    fn encode(&self, request: &Request<'_>, message: &mut Vec<u8>) {
        message::encode(request, message);
    }

    fn decode<'a>(&self, message: &'a [u8]) -> Request<'a> {
        message::decode(message).expect("a message that encode wrote")
    }

    fn merge(
        &self,
        _session: &mut Session,
        _request: &Request<'_>,
        _replies: &[Vec<u8>],
        _now: Now,
        _reply: &mut Vec<u8>,
    ) {
        // A datapath is in one partition, so nothing goes everywhere.
    }

    fn housekeeping(&self, partition: &mut Datapaths, now: Now) -> bool {
        partition.sweep(now.since_start.as_secs() as u32, self.settings.addresses)
    }
}
