//! `ptp`: clocks compared by two-way timestamps.
//!
//! ```text
//! server ──sync──> client ──delay request──> server ──delay response──> client
//!        forward                    backward            offset = (forward - backward) / 2
//! ```
//!
//! That is IEEE 1588-2008, 11.3 (the delay request-response mechanism) with perfect clocks.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use plimsoll_fabric::net::{HostId, Packet};
use plimsoll_results::outcome::{Observation, Split};
use plimsoll_units::{Span, Time};

use super::raw::raw_packet;
use super::{Actions, Arrival, Reach, Workload};

/// Whose clocks are compared, and how often.
#[derive(Debug)]
pub(crate) struct PtpConfig {
    pub(crate) workload: u16,
    pub(crate) server: HostId,
    pub(crate) clients: Vec<HostId>,
    /// A packet on the wire.
    pub(crate) packet: u16,
    pub(crate) interval: Span,
    /// Exchanges of each client.
    pub(crate) count: Option<u64>,
    pub(crate) start: Time,
    pub(crate) until: Time,
    pub(crate) warmup: Time,
}

/// An exchange under way.
#[derive(Clone, Copy, Debug)]
struct Open {
    begun: Time,
    forward: Span,
    /// When the delay request was sent.
    asked: Time,
    backward: Span,
}

/// A server and the clients that follow its clock.
#[derive(Debug)]
pub(crate) struct Ptp {
    config: PtpConfig,
    /// Exchanges begun, by client.
    begun: Vec<u64>,
    /// When which client's next exchange begins.
    due: BinaryHeap<Reverse<(Time, u32)>>,
    /// By client and sequence number.
    open: BTreeMap<(u32, u32), Open>,
    lost: usize,
}

/// The three packets, in the low bits of the acknowledgement field; above them stands the client.
const SYNC: u32 = 0;
const DELAY_REQUEST: u32 = 1;
const DELAY_RESPONSE: u32 = 2;

impl Ptp {
    pub(crate) fn new(config: PtpConfig) -> Ptp {
        let clients = config.clients.len() as u64;
        let first = |client: u32| {
            let turn = config.interval.as_ps() as u128 * u128::from(client) / u128::from(clients);
            config.start.saturating_add(Span::from_ps(turn as u64))
        };
        let begins = config.count != Some(0);
        let due = (0..clients as u32).filter(|_| begins).map(|client| Reverse((first(client), client)));
        Ptp {
            begun: vec![0; config.clients.len()],
            due: due.filter(|Reverse((at, _))| *at < config.until).collect(),
            open: BTreeMap::new(),
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
        let open = Open { begun: now, forward: Span::ZERO, asked: now, backward: Span::ZERO };
        self.open.insert((client, number), open);
        self.send(client, number, SYNC, actions);
    }

    fn send(&self, client: u32, number: u32, kind: u32, actions: &mut Actions) {
        let (server, host) = (self.config.server, self.config.clients[client as usize]);
        let (from, to) = if kind == DELAY_REQUEST { (host, server) } else { (server, host) };
        let mut packet = raw_packet(self.config.workload, from, to, self.config.packet);
        (packet.seq, packet.ack) = (number, client << 2 | kind);
        actions.packets.push(packet);
    }
}

impl Workload for Ptp {
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

    fn on_message(&mut self, _: Arrival, _: &mut Actions) {
        unreachable!("clocks are compared by single packets")
    }

    fn on_packet(&mut self, now: Time, packet: &Packet, _: Split, actions: &mut Actions) {
        let (client, number, kind) = (packet.ack >> 2, packet.seq, packet.ack & 3);
        let Some(open) = self.open.get_mut(&(client, number)) else { return };
        match kind {
            SYNC => {
                (open.forward, open.asked) = (now - open.begun, now);
                self.send(client, number, DELAY_REQUEST, actions);
            }
            DELAY_REQUEST => {
                open.backward = now - open.asked;
                self.send(client, number, DELAY_RESPONSE, actions);
            }
            _ => {
                let Open { begun, forward, backward, .. } = *open;
                self.open.remove(&(client, number));
                if begun >= self.config.warmup {
                    let apart = forward.as_ps().abs_diff(backward.as_ps());
                    actions.observations.push(Observation {
                        workload: self.config.workload,
                        index: u64::from(number) * self.config.clients.len() as u64 + u64::from(client),
                        host: self.config.clients[client as usize].0,
                        begun,
                        value: Span::from_ps(apart / 2),
                    });
                }
            }
        }
    }

    fn on_lost(&mut self, _: Time) {
        self.lost += 1;
    }

    fn reach(&self) -> Reach {
        Reach::Network
    }

    fn is_finished(&self) -> bool {
        self.due.is_empty() && self.open.len() <= self.lost
    }

    fn on_end(&mut self, _: &mut Actions) {}
}
