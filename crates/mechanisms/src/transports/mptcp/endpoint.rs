//! [`MptcpEndpoint`]: one end of an MPTCP connection.

use plimsoll_units::Time;

use super::config::MptcpConfig;
use super::mapping::{Mapping, Mappings};
use super::params::SubflowScheduler;
use super::reassembly::DataReceiver;
use super::sender::{DataChunk, DataSender};
use crate::transports::tcp::{self, SubflowWindow, TcpSegment};

/// One end of an MPTCP connection: the data sequence, and an end of each subflow.
///
/// After every [`write`](Endpoint::write), [`on_segment`](Endpoint::on_segment) and
/// [`on_deadline`](Endpoint::on_deadline), call [`poll_transmit`](Endpoint::poll_transmit) until it returns `None`, and
/// call `on_deadline` at [`deadline`](Endpoint::deadline).
#[derive(Debug)]
pub struct MptcpEndpoint {
    subflows: Vec<Subflow>,
    sender: DataSender,
    receiver: DataReceiver,
    /// This end opened the connection, and opens the further subflows.
    opens: bool,
    /// The subflow that sent data last.
    last: usize,
    /// Segments with data that another subflow had sent before.
    reinjections: u64,
    /// Kept for its memory; empty between calls.
    eligible: Vec<usize>,
    /// Kept for its memory.
    windows: Vec<SubflowWindow>,
}

#[derive(Debug)]
struct Subflow {
    tcp: tcp::Endpoint,
    /// Mappings that this end has sent and the other has not acknowledged.
    sent: Mappings,
    /// Mappings that have arrived ahead of the subflow's order.
    arrived: Mappings,
    /// The timer has fired, and no new data was acknowledged since.
    failed: bool,
    /// The stream offset below which everything was given to the other subflows.
    reinjected: u64,
}

/// The permission for segments of a subflow to leave now.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PathState {
    /// Segments may leave.
    Open,
    /// Segments may leave, but another path is the active one: the scheduler `active-path` gives it no data.
    Inactive,
    /// No segment may leave: the host's queue is full.
    Full,
}

/// A segment that a subflow sends, with MPTCP's data ACK.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transmit {
    /// The index of the subflow, from 0.
    pub subflow: usize,
    /// The segment of the subflow.
    pub segment: TcpSegment,
    /// The data ACK that travels with it (RFC 8684, section 3.3.2).
    pub data_ack: u64,
    /// The bytes of the data sequence that no subflow has sent before.
    pub new_bytes: u64,
    /// True if another subflow has sent its data before.
    pub reinjected: bool,
}

/// Changes that an arriving segment caused.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MptcpDelivery {
    /// Bytes handed to the application, in the order of the data sequence.
    pub new_bytes: u64,
    /// Bytes of the data sequence of this end newly acknowledged by the other.
    pub acked: u64,
}

impl MptcpEndpoint {
    /// A closed end that answers a SYN on each subflow; with `handshake = false` an established one.
    pub fn new(config: &MptcpConfig) -> MptcpEndpoint {
        let subflow = || Subflow {
            tcp: tcp::Endpoint::new(&config.tcp),
            sent: Mappings::default(),
            arrived: Mappings::default(),
            failed: false,
            reinjected: 0,
        };
        MptcpEndpoint {
            subflows: (0..config.subflows).map(|_| subflow()).collect(),
            sender: DataSender::default(),
            receiver: DataReceiver::default(),
            opens: false,
            last: config.subflows - 1,
            reinjections: 0,
            eligible: Vec::new(),
            windows: Vec::new(),
        }
    }

    /// The application appends `bytes` to the data sequence; the first write opens the connection.
    pub fn write(&mut self, config: &MptcpConfig, now: Time, bytes: u64) {
        self.sender.write(bytes);
        let first = &mut self.subflows[0].tcp;
        if first.is_closed() {
            first.open(&config.tcp, now);
            self.opens = true;
        }
    }

    /// A segment of `subflow` arrived, with the data ACK that it carries and the mappings of its payload.
    pub fn on_segment(
        &mut self,
        config: &MptcpConfig,
        now: Time,
        subflow: usize,
        segment: &TcpSegment,
        data_ack: u64,
        mappings: impl Iterator<Item = Mapping>,
    ) -> MptcpDelivery {
        self.couple(subflow);
        let tcp = &mut self.subflows[subflow].tcp;
        let (was_established, before) = (tcp.is_established(), tcp.received());
        let at_subflow = tcp.on_segment(&config.tcp, now, segment);
        let (is_established, received) = (tcp.is_established(), tcp.received());
        let own = &mut self.subflows[subflow];
        if at_subflow.acked > 0 {
            own.failed = false;
            own.sent.drop_below(own.tcp.acknowledged());
        }
        let mut delivered = MptcpDelivery::default();
        if segment.len > 0 && is_established {
            mappings.filter(|mapping| mapping.subflow_end() > before).for_each(|new| own.arrived.insert(new));
            for Mapping { data, len, .. } in own.arrived.between(before, received) {
                delivered.new_bytes += self.receiver.on_data(data, data + len);
            }
            own.arrived.drop_below(received);
        }
        delivered.acked = self.sender.on_data_ack(data_ack);
        if subflow == 0 && is_established && !was_established && self.opens {
            // RFC 8684, section 3.2: further subflows join a connection that is established.
            self.subflows[1..].iter_mut().for_each(|other| other.tcp.open(&config.tcp, now));
        }
        delivered
    }

    /// Passes the windows of all subflows to the controller of one.
    fn couple(&mut self, subflow: usize) {
        if !self.subflows[subflow].tcp.regards_path() {
            return;
        }
        let mut windows = std::mem::take(&mut self.windows);
        windows.clear();
        let established = self.subflows.iter().map(|other| {
            let window = other.tcp.window();
            let srtt = if other.tcp.is_established() { window.srtt } else { plimsoll_units::Span::ZERO };
            SubflowWindow { cwnd: window.cwnd_bytes, srtt }
        });
        windows.extend(established);
        self.subflows[subflow].tcp.couple(&windows, subflow);
        self.windows = windows;
    }

    /// The next segment that leaves now. `path(i, ack)` is the state of subflow i's path, for an ACK without data if
    /// `ack`.
    pub fn poll_transmit(
        &mut self,
        config: &MptcpConfig,
        now: Time,
        path: &mut dyn FnMut(usize, bool) -> PathState,
    ) -> Option<Transmit> {
        let mut eligible = std::mem::take(&mut self.eligible);
        eligible.clear();
        let mut found = None;
        let has_data = self.sender.has_data();
        // First the segments that need no scheduler: subflows that take no data send their ACKs and repairs.
        for index in 0..self.subflows.len() {
            let own = &mut self.subflows[index];
            let state = path(index, own.tcp.owes_ack());
            let takes_data = has_data
                && state != PathState::Full
                && (state == PathState::Open || config.scheduler != SubflowScheduler::ActivePath)
                && !own.failed
                && own.tcp.takes_new_data();
            if takes_data {
                eligible.push(index);
            } else if state != PathState::Full && found.is_none() {
                found = own.tcp.poll_transmit(&config.tcp, now).map(|segment| (index, segment, None));
            }
        }
        if found.is_none() {
            let srtt = |index: usize| self.subflows[index].tcp.window().srtt;
            config.scheduler.order(&mut eligible, srtt, self.last);
            found = eligible.iter().find_map(|&index| {
                let (segment, chunk) = self.poll_subflow(config, now, index)?;
                Some((index, segment, chunk))
            });
        }
        self.eligible = eligible;
        let (subflow, segment, chunk) = found?;
        let is_new = chunk.is_some_and(|chunk| !chunk.again);
        Some(Transmit {
            subflow,
            segment,
            data_ack: self.receiver.nxt(),
            new_bytes: if is_new { u64::from(segment.len) } else { 0 },
            reinjected: chunk.is_some_and(|chunk| chunk.again),
        })
    }

    /// Returns the segment that `subflow` sends if it is given the next chunk, and the chunk if the segment carries it.
    fn poll_subflow(
        &mut self,
        config: &MptcpConfig,
        now: Time,
        subflow: usize,
    ) -> Option<(TcpSegment, Option<DataChunk>)> {
        let own = &mut self.subflows[subflow];
        let Some(chunk) = self.sender.next_chunk(subflow, config.tcp.segment, config.tcp.max_window) else {
            return Some((own.tcp.poll_transmit(&config.tcp, now)?, None));
        };
        let start = own.tcp.written();
        own.tcp.write(&config.tcp, now, chunk.len);
        let segment = own.tcp.poll_transmit(&config.tcp, now);
        match segment {
            Some(segment) if segment.len > 0 && segment.seq == start => {
                assert_eq!(u64::from(segment.len), chunk.len, "a chunk is a segment");
                own.sent.push(Mapping { subflow: start, data: chunk.start, len: chunk.len });
                self.sender.on_sent(subflow, &chunk);
                self.reinjections += u64::from(chunk.again);
                self.last = subflow;
                Some((segment, Some(chunk)))
            }
            _ => {
                // Its window is full, or something else comes first.
                own.tcp.retract(chunk.len);
                segment.map(|segment| (segment, None))
            }
        }
    }

    /// Returns the mappings of the bytes from stream offset `seq` on that `subflow` of this end sends, as on the wire.
    /// Mappings of bytes that the other end has acknowledged are not kept.
    pub fn mappings(&self, subflow: usize, seq: u64, len: u32) -> impl Iterator<Item = Mapping> + '_ {
        self.subflows[subflow].sent.between(seq, seq + u64::from(len))
    }

    /// Returns when [`on_deadline`](Endpoint::on_deadline) must be called: the earliest deadline of a subflow.
    pub fn deadline(&self) -> Time {
        self.subflows.iter().map(|subflow| subflow.tcp.deadline()).min().unwrap_or(Time::MAX)
    }

    /// Handles the timers of all subflows whose deadlines are at or before `now`.
    pub fn on_deadline(&mut self, config: &MptcpConfig, now: Time) {
        for index in 0..self.subflows.len() {
            let own = &mut self.subflows[index];
            if own.tcp.deadline() > now {
                continue;
            }
            let before = own.tcp.counters().timeouts;
            own.tcp.on_deadline(&config.tcp, now);
            if own.tcp.counters().timeouts > before && own.tcp.is_established() {
                self.reinject(index);
            }
        }
    }

    /// Sends the outstanding data of `subflow` on the others as well, as its timer has fired.
    fn reinject(&mut self, subflow: usize) {
        let own = &mut self.subflows[subflow];
        own.failed = true;
        let from = own.reinjected.max(own.tcp.acknowledged());
        for mapping in own.sent.between(from, u64::MAX) {
            self.sender.reinject(mapping.data, mapping.data_end(), subflow);
        }
        own.reinjected = own.tcp.sent();
    }

    /// Returns the ends of the subflows, in the order of their numbers.
    pub fn subflows(&self) -> impl Iterator<Item = &tcp::Endpoint> {
        self.subflows.iter().map(|subflow| &subflow.tcp)
    }

    /// Returns subflow `subflow`, so that the caller can describe its path to it.
    pub fn subflow_mut(&mut self, subflow: usize) -> &mut tcp::Endpoint {
        &mut self.subflows[subflow].tcp
    }

    /// Returns the TCP endpoint of a subflow, by its index from 0.
    pub fn subflow(&self, subflow: usize) -> &tcp::Endpoint {
        &self.subflows[subflow].tcp
    }

    /// Returns the bytes handed to the application, which is the data ACK.
    pub fn received(&self) -> u64 {
        self.receiver.nxt()
    }

    /// Returns the bytes of this end's data sequence that the other has acknowledged.
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// Returns the bytes of the data sequence that were sent at least once.
    pub fn sent(&self) -> u64 {
        self.sender.sent()
    }

    /// Returns the bytes that the application wrote.
    pub fn written(&self) -> u64 {
        self.sender.written()
    }

    /// Returns the segments with data that another subflow had sent before.
    pub fn reinjections(&self) -> u64 {
        self.reinjections
    }

    /// Returns whether everything written is acknowledged, and no subflow has anything pending.
    pub fn is_idle(&self) -> bool {
        self.sender.acknowledged() == self.sender.written() && self.subflows().all(tcp::Endpoint::is_idle)
    }
}
