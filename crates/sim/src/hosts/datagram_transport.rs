//! [`DatagramTransport`]: the connections of the datagram family, over which workloads send messages without repair.
//!
//! ```text
//! write_datagrams ──> DatagramSender ──pace──> send_datagrams ──> limits ──> pacer ──> NIC
//! agenda: Message ──> the workload <── DatagramReceiver <── receive_datagrams <── packet of the connection's number
//! ```
//!
//! A packet carries the number of its message in `ack`, and in `seq` how many packets of it are left; SYN marks the
//! first one. When it has sent a message to its last byte, the sending end has the other expect it, as TCP's does, so
//! that the two ends may be in different logical processes.

mod carry;

use std::collections::BTreeMap;

use plimsoll_fabric::net::{HostId, Network, PathClass, PortId};
use plimsoll_mechanisms::qjump::PeriodicLimiter;
use plimsoll_mechanisms::tcp::TcpConfig;
use plimsoll_mechanisms::transports::datagram::{DatagramReceiver, DatagramSender};
use plimsoll_results::outcome;
use plimsoll_traffic::ConnectionEnd as End;
use plimsoll_units::{ByteTime, Time};

use super::demand::Unsent;
use super::messages::{MessageStream, Outgoing};

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
        let of_nic = network.link(PortId(nic.0)).rate;
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

    /// Returns the NIC at an end of connection `number`, if it is open here.
    pub(super) fn nic(&self, number: u32, end: End) -> Option<HostId> {
        self.connections.get(&number).map(|open| open.nics[end as usize])
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
    pub(super) fn expect(&mut self, connection: u32, to: End, message: Outgoing) {
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
