//! `ping`: small messages that come back at once.

use std::collections::BTreeMap;

use plimsoll_fabric::engine::{Stream, Streams};
use plimsoll_fabric::net::{HostId, Packet};
use plimsoll_results::outcome::{Message, Split};
use plimsoll_scenario::distribution::exponential;
use plimsoll_units::{Span, Time};

use super::exchange::{Ask, Exchanges, Pool};
use super::raw::raw_packet;
use super::{Actions, Arrival, Opened, Reach, Workload, stretched};

/// Who pings whom, and how often.
#[derive(Debug)]
pub(crate) struct PingConfig {
    pub(crate) workload: u16,
    pub(crate) from: HostId,
    pub(crate) to: HostId,
    /// Payload each way.
    pub(crate) bytes: u64,
    /// A single packet on the wire; `None` over the transport.
    pub(crate) packet: Option<u16>,
    pub(crate) interval: Span,
    /// Exponential intervals of that mean.
    pub(crate) poisson: bool,
    pub(crate) one_at_a_time: bool,
    pub(crate) count: Option<u64>,
    pub(crate) start: Time,
    pub(crate) until: Time,
    pub(crate) warmup: Time,
    pub(crate) connection_per_message: bool,
}

/// A ping on its way, as single packets.
#[derive(Clone, Copy, Debug)]
struct Open {
    index: u64,
    created: Time,
    /// Of the way there, once it is known.
    split: Split,
}

/// The pinging host and the echoing one.
#[derive(Debug)]
pub(crate) struct Pings {
    config: PingConfig,
    gaps: Stream,
    /// When the next one goes, if it does not wait for an echo.
    next: Time,
    created: u64,
    pool: Pool,
    exchanges: Exchanges,
    /// By sequence number.
    open: BTreeMap<u32, Open>,
    lost: usize,
    /// The last one is still out, and the next waits for it.
    waits: bool,
}

/// In the acknowledgement field of a packet: it comes back.
const ECHO: u32 = 1;

impl Pings {
    pub(crate) fn new(config: PingConfig, streams: &Streams, name: &str) -> Pings {
        let mut pings = Pings {
            gaps: streams.stream(&format!("workload/{name}/gaps")),
            next: config.start,
            created: 0,
            pool: Pool::new(config.connection_per_message),
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
        let PingConfig { workload, from, to, bytes, packet, one_at_a_time, .. } = self.config;
        let index = self.created;
        self.created += 1;
        self.waits = one_at_a_time;
        if let Some(size) = packet {
            self.open.insert(index as u32, Open { index, created: now, split: Split::default() });
            let mut packet = raw_packet(workload, from, to, size);
            packet.seq = index as u32;
            actions.packets.push(packet);
        } else {
            let ask = Ask {
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

    /// The last ping is back, or lost: one that waits for it may go.
    fn go_on(&mut self, now: Time) {
        self.waits = false;
        self.schedule(self.next.max(now));
    }

    fn record(&self, open: &Open, completed: Option<Time>) -> Option<Message> {
        let Open { index, created, split } = *open;
        (created >= self.config.warmup).then_some(Message {
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

impl Workload for Pings {
    fn next_due(&self) -> Time {
        if self.waits { Time::MAX } else { self.next }
    }

    fn on_due(&mut self, now: Time, actions: &mut Actions) {
        while self.next_due() <= now {
            self.send(now, actions);
        }
    }

    fn on_message(&mut self, arrival: Arrival, actions: &mut Actions) {
        if let Some(done) = self.exchanges.on_message(arrival, actions) {
            self.go_on(arrival.now);
            actions.messages.extend(Some(done.message).filter(|m| m.created >= self.config.warmup));
        }
    }

    fn on_packet(&mut self, now: Time, packet: &Packet, split: Split, actions: &mut Actions) {
        let Some(open) = self.open.get_mut(&packet.seq) else { return };
        open.split = open.split + split;
        if packet.ack == ECHO {
            let open = *open;
            self.open.remove(&packet.seq);
            self.go_on(now);
            actions.messages.extend(self.record(&open, Some(now)));
        } else {
            let mut echo = raw_packet(self.config.workload, packet.dst, packet.src, packet.size);
            (echo.seq, echo.ack) = (packet.seq, ECHO);
            actions.packets.push(echo);
        }
    }

    fn on_lost(&mut self, now: Time) {
        self.lost += 1;
        self.go_on(now);
    }

    fn kept_connections(&self) -> Vec<Opened> {
        let PingConfig { from, to, packet, connection_per_message, .. } = self.config;
        let kept = packet.is_none() && !connection_per_message;
        kept.then_some(Opened { client: from, server: to }).into_iter().collect()
    }

    fn reach(&self) -> Reach {
        Reach::Network
    }

    fn is_finished(&self) -> bool {
        self.next == Time::MAX && self.exchanges.is_empty() && self.open.len() <= self.lost
    }

    fn on_end(&mut self, actions: &mut Actions) {
        let lost = self.open.values().map(|open| Open { split: Split::default(), ..*open });
        actions.messages.extend(lost.filter_map(|open| self.record(&open, None)));
        let counted = self.exchanges.unfinished().map(|done| done.message);
        actions.messages.extend(counted.filter(|message| message.created >= self.config.warmup));
    }
}
