//! `ptp`: clocks compared by two-way timestamps.
//!
//! ```text
//! server ──sync──> client ──delay request──> server ──delay response──> client
//!        forward                    backward            offset = (forward - backward) / 2
//! ```
//!
//! The formula is in IEEE 1588-2008, 11.3 (the delay request-response mechanism). Clocks are perfect, or steered by a
//! servo: `clock_servo.rs`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use plimsoll_fabric::Unbuildable;
use plimsoll_fabric::net::HostId;
use plimsoll_units::{Bytes, Span, Time};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::check::{WorkloadCheck, WorkloadDemand};
use crate::clock_servo::{ClockServo, ClockServoParams};
use crate::facts::NetworkFacts;
use crate::hosts::{HostName, HostSet};
use crate::kind::{Context, ExpectedRecords, Kind, host_count, number};
use crate::record::{Observation, Supply};
use crate::source::{Actions, Arrival, Datagram, Source, SourceReach};

/// Clocks compared by two-way timestamps, as the Precision Time Protocol does (IEEE 1588). Without `servo` all clocks
/// are perfect, so that the estimated offset is the asymmetry of the two directions: `(forward - backward) / 2`. With
/// it the result is the error of a client's clock when its exchange ends. Timestamps are taken by software: the waits
/// in NICs count.
///
/// The server sends `sync`; the client answers with a delay request as soon as it has it; the server's delay response
/// contains the time at which that came. All three are single packets, and a lost one is a lost exchange.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Ptp {
    /// The host whose clock is right; default `client`, the first host.
    #[serde(default)]
    pub server: HostName,
    /// The hosts that follow it; default: all others.
    #[serde(default)]
    pub clients: HostSet,
    /// Payload of each of the three packets; `transport.header` is added to it.
    #[serde(default = "Ptp::default_size")]
    pub size: Bytes,
    /// Time from one `sync` to the next. Clients take turns within it, in equal steps.
    #[serde(default = "Ptp::default_interval")]
    pub interval: Span,
    /// Stop after this many exchanges of each client.
    #[serde(default)]
    pub count: Option<u64>,
    /// The time at which the first `sync` is sent.
    #[serde(default)]
    pub start: Span,
    /// Steers the clients' clocks by the results of their exchanges.
    #[serde(default)]
    pub servo: Option<ClockServoParams>,
}

impl Ptp {
    /// Returns the size of sync and delay request over UDP, 44 B (IEEE 1588-2008, 13.6).
    fn default_size() -> Bytes {
        Bytes::new(44)
    }

    /// Returns the protocol's default of one a second (IEEE 1588-2008, J.3.2).
    fn default_interval() -> Span {
        Span::from_secs(1)
    }
}

impl Kind for Ptp {
    fn check(&mut self, check: &mut WorkloadCheck<'_>) -> WorkloadDemand {
        let server = check.host("server", &self.server);
        check.members("clients", &self.clients, server.as_slice());
        check.one_packet("size", self.size);
        check.interval("interval", self.interval);
        if let Some(servo) = &self.servo {
            servo.check(check);
        }
        WorkloadDemand { ends: self.count.is_some(), start: self.start, ..WorkloadDemand::default() }
    }

    fn source(&self, context: &Context<'_>) -> Result<Box<dyn Source>, Unbuildable> {
        let server = context.host(&self.server, "server")?;
        let config = PtpConfig {
            workload: context.index,
            server,
            clients: context.hosts(&self.clients, &[server], "clients")?,
            packet: context.packet(self.size, "size")?,
            interval: self.interval,
            count: self.count,
            start: Time::ZERO + self.start,
            until: context.until,
            warmup: context.warmup,
            servo: self.servo,
        };
        Ok(Box::new(PtpSource::new(config)))
    }

    fn supply(&self) -> Supply {
        Supply::counted(self.count)
    }

    fn observed(&self) -> Option<&'static str> {
        Some("clock offset")
    }

    fn uses_transport(&self) -> bool {
        false
    }

    fn largest_packet(&self, header: Bytes) -> Bytes {
        self.size + header
    }

    fn expected_records(&self, facts: &dyn NetworkFacts, _: bool) -> Option<ExpectedRecords> {
        let clients = host_count(facts, &self.clients, &[&self.server]);
        let per_second = clients / self.interval.as_secs_f64().max(1e-12);
        let limit = number(self.count).map(|count| count * clients);
        let records = ExpectedRecords::new("interval", self.start).per_second(per_second).limit(limit);
        Some(ExpectedRecords { messages: 0.0, observations: 1.0, ..records })
    }
}

/// The hosts whose clocks are compared, the packets and the interval.
#[derive(Debug)]
struct PtpConfig {
    workload: u16,
    server: HostId,
    clients: Vec<HostId>,
    /// The size of a packet on the wire.
    packet: u16,
    interval: Span,
    /// The number of exchanges of each client.
    count: Option<u64>,
    start: Time,
    until: Time,
    warmup: Time,
    servo: Option<ClockServoParams>,
}

/// An exchange in progress.
#[derive(Clone, Copy, Debug)]
struct Open {
    begun: Time,
    forward: Span,
    /// Lead of the client's clock when `sync` came, in picoseconds.
    ahead: i128,
    /// The time at which the delay request was sent.
    asked: Time,
    backward: Span,
}

/// The source: a server and the clients that follow its clock.
#[derive(Debug)]
struct PtpSource {
    config: PtpConfig,
    /// The number of exchanges begun, by client.
    begun: Vec<u64>,
    /// The time at which each client's next exchange begins.
    due: BinaryHeap<Reverse<(Time, u32)>>,
    /// The exchanges in progress, by client and sequence number.
    open: BTreeMap<(u32, u32), Open>,
    /// The clients' clocks, if they are steered.
    servos: Vec<ClockServo>,
    lost: usize,
}

/// The three packets, in the low bits of a tag; the bits above are the client, and the upper half is the exchange.
const SYNC: u32 = 0;
const DELAY_REQUEST: u32 = 1;
const DELAY_RESPONSE: u32 = 2;

impl PtpSource {
    fn new(config: PtpConfig) -> PtpSource {
        let clients = config.clients.len() as u64;
        let first = |client: u32| {
            let turn = config.interval.as_ps() as u128 * u128::from(client) / u128::from(clients);
            config.start.saturating_add(Span::from_ps(turn as u64))
        };
        let begins = config.count != Some(0);
        let due = (0..clients as u32).filter(|_| begins).map(|client| Reverse((first(client), client)));
        PtpSource {
            begun: vec![0; config.clients.len()],
            due: due.filter(|Reverse((at, _))| *at < config.until).collect(),
            open: BTreeMap::new(),
            servos: config
                .servo
                .iter()
                .flat_map(|params| (0..clients).map(|_| ClockServo::new(*params)))
                .collect(),
            lost: 0,
            config,
        }
    }

    fn begin(&mut self, now: Time, client: u32, actions: &mut Actions) {
        let begun = &mut self.begun[client as usize];
        let number = *begun as u32;
        *begun += 1;
        let next = now.saturating_add(self.config.interval);
        if next < self.config.until && self.config.count.is_none_or(|count| *begun < count) {
            self.due.push(Reverse((next, client)));
        }
        let open = Open { begun: now, forward: Span::ZERO, ahead: 0, asked: now, backward: Span::ZERO };
        self.open.insert((client, number), open);
        self.send(client, number, SYNC, actions);
    }

    /// Returns how far a client's clock is off when an exchange ends, and steers it; without a servo, how far the
    /// exchange has a perfect clock off.
    fn off(&mut self, now: Time, client: u32, [forward, backward]: [Span; 2], ahead: i128) -> Span {
        let Some(servo) = self.servos.get_mut(client as usize) else {
            return Span::from_ps(forward.as_ps().abs_diff(backward.as_ps()) / 2);
        };
        let (forward, backward) = (i128::from(forward.as_ps()), i128::from(backward.as_ps()));
        let off = servo.ahead(now).unsigned_abs();
        servo.steer(now, forward + ahead, (forward + backward) / 2, self.config.interval);
        Span::from_ps(u64::try_from(off).unwrap_or(u64::MAX))
    }

    fn send(&self, client: u32, number: u32, kind: u32, actions: &mut Actions) {
        let (server, host) = (self.config.server, self.config.clients[client as usize]);
        let (from, to) = if kind == DELAY_REQUEST { (host, server) } else { (server, host) };
        let tag = u64::from(number) << 32 | u64::from(client << 2 | kind);
        actions.datagrams.push(Datagram { from, to, size: self.config.packet, tag });
    }
}

impl Source for PtpSource {
    fn next_due(&self) -> Time {
        self.due.peek().map_or(Time::MAX, |Reverse((at, _))| *at)
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        while let Some(&Reverse((at, client))) = self.due.peek()
            && at <= now
        {
            self.due.pop();
            self.begin(now, client, actions);
        }
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        let (now, detail, number) = (arrival.now, arrival.tag as u32, (arrival.tag >> 32) as u32);
        let (client, kind) = (detail >> 2, detail & 3);
        let Some(open) = self.open.get_mut(&(client, number)) else { return };
        match kind {
            SYNC => {
                (open.forward, open.asked) = (now - open.begun, now);
                open.ahead = self.servos.get_mut(client as usize).map_or(0, |servo| servo.ahead(now));
                self.send(client, number, DELAY_REQUEST, actions);
            }
            DELAY_REQUEST => {
                open.backward = now - open.asked;
                self.send(client, number, DELAY_RESPONSE, actions);
            }
            _ => {
                let Open { begun, forward, backward, ahead, .. } = *open;
                self.open.remove(&(client, number));
                let off = self.off(now, client, [forward, backward], ahead);
                if begun >= self.config.warmup {
                    actions.records.observations.push(Observation {
                        workload: self.config.workload,
                        index: u64::from(number) * self.config.clients.len() as u64 + u64::from(client),
                        host: self.config.clients[client as usize].0,
                        begun,
                        value: off,
                    });
                }
            }
        }
    }

    fn on_lost(&mut self, _: Time) {
        self.lost += 1;
    }

    fn reach(&self) -> SourceReach {
        SourceReach::Network
    }

    fn is_finished(&self) -> bool {
        self.due.is_empty() && self.open.len() <= self.lost
    }

    fn on_end(&mut self, _: &mut Actions) {}
}
