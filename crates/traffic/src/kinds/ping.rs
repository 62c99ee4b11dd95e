//! `ping`: small messages that come back at once.

use std::collections::BTreeMap;

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Span, Stream, Streams, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::arrivals::Arrivals;
use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::distribution::exponential;
use crate::draw::stretched;
use crate::exchange::{Exchanges, PendingRequest, WorkloadConnections};
use crate::facts::NetworkFacts;
use crate::hosts::HostName;
use crate::kind::{Context, ExpectedRecords, Kind, number};
use crate::record::{MessageRecord, Split, Supply};
use crate::source::{Actions, Arrival, Datagram, Opened, Source, SourceReach};

/// Small messages that come back at once; their round-trip time is measured.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ping {
    /// The host that sends the pings; default `client`.
    #[serde(default)]
    pub from: HostName,
    /// The host that sends the echoes.
    pub to: HostName,
    /// Payload each way; `transport.header` is added to every packet.
    #[serde(default = "Ping::default_size")]
    pub size: Bytes,
    /// Time from one ping to the next; the mean, where they are Poisson.
    pub interval: Span,
    /// The distribution of the intervals: equal, or exponential (Poisson).
    #[serde(default = "Ping::default_arrivals")]
    pub arrivals: Arrivals,
    /// The next ping waits for the echo of the last one (or its loss) where that is later. Default: pings are sent
    /// without waiting for earlier ones.
    #[serde(default)]
    pub one_at_a_time: bool,
    /// The carrier: single packets, or a connection of the scenario's transport.
    #[serde(default)]
    pub over: PingOver,
    /// The number of pings, after which the workload stops. Default: no limit but `run.duration`.
    #[serde(default)]
    pub count: Option<u64>,
    /// When the first ping may be sent; with equal intervals it is sent then.
    #[serde(default)]
    pub start: Span,
}

/// The carrier of a ping: single packets or a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PingOver {
    /// Single packets, as of ICMP: a lost one is a lost ping.
    #[default]
    Datagram,
    /// The scenario's transport.
    Tcp,
}

impl Ping {
    /// Returns what `ping` of Linux sends by default, with its ICMP header: 56 B + 8 B.
    fn default_size() -> Bytes {
        Bytes::new(64)
    }

    fn default_arrivals() -> Arrivals {
        Arrivals::Constant
    }
}

impl Kind for Ping {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let from = check.host("from", &self.from);
        let to = check.host("to", &self.to);
        if let Some(host) = from.filter(|_| from == to) {
            let problem = format!("host `{}` would talk to itself", check.facts().host_name(host));
            check.error("to", problem, "a host other than `from`");
        }
        match self.over {
            PingOver::Datagram => check.one_packet("size", self.size),
            PingOver::Tcp => check.some_bytes("size", self.size),
        }
        check.interval("interval", self.interval);
        WorkloadDemand { ends: self.count.is_some(), start: self.start, ..WorkloadDemand::default() }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let datagram = self.over == PingOver::Datagram;
        let config = PingConfig {
            workload: context.index,
            from: context.host(&self.from, "from")?,
            to: context.host(&self.to, "to")?,
            bytes: self.size.get(),
            packet: datagram.then(|| context.packet(self.size, "size")).transpose()?,
            interval: self.interval,
            poisson: self.arrivals == Arrivals::Poisson,
            one_at_a_time: self.one_at_a_time,
            count: self.count,
            start: Time::ZERO + self.start,
            until: context.until,
            warmup: context.warmup,
            connection_per_message: !context.keeps_connections,
        };
        Ok(Box::new(PingSource::new(config, context.streams, context.name)))
    }

    fn supply(&self) -> Supply {
        Supply::counted(self.count)
    }

    fn uses_transport(&self) -> bool {
        self.over == PingOver::Tcp
    }

    fn largest_packet(&self, header: Bytes) -> Bytes {
        if self.uses_transport() { Bytes::ZERO } else { self.size + header }
    }

    fn expected_records(&self, _: &dyn NetworkFacts, has_duration: bool) -> Option<ExpectedRecords> {
        if self.one_at_a_time && has_duration {
            return None;
        }
        let per_second = 1.0 / self.interval.as_secs_f64().max(1e-12);
        let records = ExpectedRecords::new("interval", self.start).per_second(per_second);
        Some(records.limit(number(self.count)))
    }
}

/// The hosts of a ping, its packets and its intervals.
#[derive(Debug)]
struct PingConfig {
    workload: u16,
    from: HostId,
    to: HostId,
    /// The payload in each direction.
    bytes: u64,
    /// The size of a single packet on the wire; `None` over the transport.
    packet: Option<u16>,
    interval: Span,
    /// True if intervals are exponential with that mean.
    poisson: bool,
    one_at_a_time: bool,
    count: Option<u64>,
    start: Time,
    until: Time,
    warmup: Time,
    connection_per_message: bool,
}

/// A ping in flight, as single packets.
#[derive(Clone, Copy, Debug)]
struct OpenPing {
    index: u64,
    created: Time,
    /// The components of the forward direction, once it has arrived.
    split: Split,
}

/// The source: the host that pings and the host that echoes.
#[derive(Debug)]
struct PingSource {
    config: PingConfig,
    gaps: Stream,
    /// The time of the next ping, if it does not wait for an echo.
    next: Time,
    created: u64,
    pool: WorkloadConnections,
    exchanges: Exchanges,
    /// The pings in flight as single packets, by sequence number.
    open: BTreeMap<u32, OpenPing>,
    lost: usize,
    /// True if the next ping waits for the echo of the last one.
    waits: bool,
}

/// The bit in the tag of an echo; the upper half of a tag is the number of the ping.
const ECHO: u64 = 1;

impl PingSource {
    fn new(config: PingConfig, streams: &Streams, name: &str) -> PingSource {
        let mut pings = PingSource {
            gaps: streams.stream(&format!("workload/{name}/gaps")),
            next: config.start,
            created: 0,
            pool: WorkloadConnections::new(config.connection_per_message),
            exchanges: Exchanges::new(config.workload, 1, 1),
            open: BTreeMap::new(),
            lost: 0,
            waits: false,
            config,
        };
        let first = if pings.config.poisson { pings.gap() } else { Span::ZERO };
        pings.schedule(pings.config.start.saturating_add(first));
        pings
    }

    fn gap(&mut self) -> Span {
        if !self.config.poisson {
            return self.config.interval;
        }
        stretched(self.config.interval.as_secs_f64(), exponential(&mut self.gaps))
    }

    fn schedule(&mut self, next: Time) {
        let enough = self.config.count.is_some_and(|count| self.created >= count);
        self.next = if enough || next >= self.config.until { Time::MAX } else { next };
    }

    fn send(&mut self, now: Time, actions: &mut Actions) {
        let PingConfig { from, to, bytes, packet, one_at_a_time, .. } = self.config;
        let index = self.created;
        self.created += 1;
        self.waits = one_at_a_time;
        if let Some(size) = packet {
            self.open.insert(index as u32, OpenPing { index, created: now, split: Split::default() });
            actions.datagrams.push(Datagram { from, to, size, tag: u64::from(index as u32) << 32 });
        } else {
            let ask = PendingRequest {
                index,
                query: None,
                owner: 0,
                client: from,
                server: to,
                queue: 0,
                connection: self.pool.connection(from, to, 0, actions),
                request_bytes: bytes,
                response_bytes: bytes,
                service: Span::ZERO,
            };
            self.exchanges.ask(now, ask, actions);
        }
        let gap = self.gap();
        self.schedule(now.saturating_add(gap));
    }

    /// Handles the arrival of a ping, which is echoed, or of an echo, as a datagram of `size` bytes.
    fn on_datagram(&mut self, arrival: Arrival, size: u16, actions: &mut Actions) {
        let Arrival { now, tag, split, .. } = arrival;
        let number = (tag >> 32) as u32;
        let Some(open) = self.open.get_mut(&number) else { return };
        open.split = open.split + split;
        if tag & ECHO != 0 {
            let open = *open;
            self.open.remove(&number);
            self.resume(now);
            actions.records.messages.extend(self.record(&open, Some(now)));
        } else {
            let PingConfig { from, to, .. } = self.config;
            actions.datagrams.push(Datagram { from: to, to: from, size, tag: tag | ECHO });
        }
    }

    /// Schedules the ping that waited for an echo, which has arrived or is lost.
    fn resume(&mut self, now: Time) {
        self.waits = false;
        self.schedule(self.next.max(now));
    }

    fn record(&self, open: &OpenPing, completed: Option<Time>) -> Option<MessageRecord> {
        let OpenPing { index, created, split } = *open;
        (created >= self.config.warmup).then_some(MessageRecord {
            workload: self.config.workload,
            index,
            query: None,
            source: self.config.from.0,
            destination: self.config.to.0,
            bytes: self.config.bytes,
            created,
            completed,
            ideal: split.serialisation + split.propagation,
            split,
        })
    }
}

impl Source for PingSource {
    fn next_due(&self) -> Time {
        if self.waits { Time::MAX } else { self.next }
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        while self.next_due() <= now {
            self.send(now, actions);
        }
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        if let Some(size) = self.config.packet {
            return self.on_datagram(arrival, size, actions);
        }
        if let Some(done) = self.exchanges.on_message(arrival, actions) {
            self.resume(arrival.now);
            actions.records.messages.extend(Some(done.message).filter(|m| m.created >= self.config.warmup));
        }
    }

    fn on_lost(&mut self, now: Time) {
        self.lost += 1;
        self.resume(now);
    }

    fn kept_connections(&self) -> Vec<Opened> {
        let PingConfig { from, to, packet, connection_per_message, .. } = self.config;
        let kept = packet.is_none() && !connection_per_message;
        kept.then_some(Opened { client: from, server: to }).into_iter().collect()
    }

    fn reach(&self) -> SourceReach {
        SourceReach::Network
    }

    fn is_finished(&self) -> bool {
        self.next == Time::MAX && self.exchanges.is_empty() && self.open.len() <= self.lost
    }

    fn on_end(&mut self, actions: &mut Actions) {
        let lost = self.open.values().map(|open| OpenPing { split: Split::default(), ..*open });
        actions.records.messages.extend(lost.filter_map(|open| self.record(&open, None)));
        let counted = self.exchanges.unfinished().map(|done| done.message);
        actions.records.messages.extend(counted.filter(|message| message.created >= self.config.warmup));
    }
}
