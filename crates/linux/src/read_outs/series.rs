//! [`WindowSeries`]: how the agent's connections send, sampled with the readings of the hosts' sockets.
//!
//! ```text
//! reading of a host's sockets ──TcpSocket──> this end's workload, peer and subflow ──> Sample, one each interval
//!                                            of the two ends, the one that sent more ──> SeriesPoint
//! ```
//!
//! A connection is found by its workload, whose server has its own port, and its two hosts. Where a workload has
//! several between the same hosts, their sockets cannot be distinguished, so they have no samples.

use std::collections::{BTreeMap, BTreeSet};

use plimsoll_fabric::net::HostId;
use plimsoll_results::outcome::{ConnectionRecord, SeriesPoint};
use plimsoll_units::{Rate, Span, Time};

use crate::agents::agent::DRIVER_PORT;
use crate::edge::frame;
use crate::read_outs::sock_diag::{SendWindow, TcpSocket};

/// The end of a connection, or of a subflow of it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct SeriesEnd {
    workload: u16,
    client: u32,
    server: u32,
    /// The number of the address: 0 is the first, others are aliases.
    subflow: u8,
    is_client: bool,
}

/// The samples of all connections of a run.
#[derive(Clone, Debug)]
pub(crate) struct WindowSeries {
    hosts: u32,
    every: Span,
    next: Time,
    /// The samples of an end, and the ports of its connection's client, by which several connections are detected.
    ends: BTreeMap<SeriesEnd, SeriesLimit>,
}

#[derive(Clone, Debug, Default)]
struct SeriesLimit {
    clients: BTreeSet<u16>,
    samples: Vec<(Time, SendWindow)>,
}

impl WindowSeries {
    /// Returns a series of `hosts` that has a sample in each `every`, and none before `origin`.
    pub(crate) fn new(hosts: u32, every: Span, origin: Time) -> WindowSeries {
        WindowSeries { hosts, every, next: origin, ends: BTreeMap::new() }
    }

    /// Returns whether a sample is due at `now`; the next is due an interval later.
    pub(crate) fn is_due(&mut self, now: Time) -> bool {
        let is_due = now >= self.next;
        if is_due {
            let passed = now.saturating_since(self.next).as_ps() / self.every.as_ps().max(1);
            self.next += self.every * (passed + 1);
        }
        is_due
    }

    /// Takes the sample of a socket of `host` at `at`, if it is one of the agent's.
    pub(crate) fn take(&mut self, at: Time, host: HostId, socket: &TcpSocket) {
        let ends = [socket.from, socket.to].map(|address| frame::end_at(address, self.hosts));
        let [Some((_, own_alias)), Some((peer, alias))] = ends else { return };
        // A further subflow has an alias at one end, or at both.
        let subflow = own_alias.max(alias);
        let [own, other] = socket.ports;
        let workload = |port: u16| port.checked_sub(DRIVER_PORT);
        // The kernel gives clients ports from 32,768 on.
        let is_client = other < own;
        let (server_port, client_port) = if is_client { (other, own) } else { (own, other) };
        let Some(workload) = workload(server_port) else { return };
        let (client, server) = if is_client { (host.0, peer.0) } else { (peer.0, host.0) };
        let end = self.ends.entry(SeriesEnd { workload, client, server, subflow, is_client }).or_default();
        end.clients.insert(client_port);
        end.samples.push((at, socket.window));
    }

    /// Returns the samples of `connections`, by time from `origin` on.
    pub(crate) fn of(self, connections: &[ConnectionRecord], origin: Time) -> Vec<SeriesPoint> {
        let mut found: BTreeMap<_, (SeriesEnd, SeriesLimit)> = BTreeMap::new();
        for (key, end) in self.ends {
            let acknowledged =
                |end: &SeriesLimit| end.samples.last().map_or(0, |(_, window)| window.acknowledged);
            let of_subflow = (key.workload, key.client, key.server, key.subflow);
            let other = found.get(&of_subflow).map_or(0, |(_, other)| acknowledged(other) + 1);
            if acknowledged(&end) + 1 > other {
                found.insert(of_subflow, (key, end));
            }
        }
        let mut points = Vec::new();
        for (key, end) in found.into_values() {
            let is_its = |connection: &&ConnectionRecord| {
                (connection.workload, connection.client, connection.server)
                    == (key.workload, key.client, key.server)
            };
            let is_alone = connections.iter().filter(is_its).count() == 1 && end.clients.len() == 1;
            let Some(number) =
                connections.iter().position(|connection| is_its(&connection)).filter(|_| is_alone)
            else {
                continue;
            };
            let mut last: Option<(Time, u64)> = None;
            for (at, window) in end.samples {
                let passed =
                    last.map(|(before, bytes)| (at.saturating_since(before), window.acknowledged - bytes));
                let bps =
                    passed.map_or(0.0, |(span, bytes)| bytes as f64 * 8.0 / span.as_secs_f64().max(1e-9));
                last = Some((at, window.acknowledged));
                points.push(SeriesPoint {
                    time: Time::ZERO + at.saturating_since(origin),
                    connection: number as u32,
                    cwnd: window.cwnd,
                    ssthresh: window.ssthresh.unwrap_or(SeriesPoint::NO_SSTHRESH),
                    alpha: 0.0,
                    rate: Rate::from_bps(bps as u64),
                    retransmissions: window.retransmissions,
                    subflow: key.subflow,
                });
            }
        }
        points.sort_by_key(|point| (point.time, point.connection, point.subflow));
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(ms: u64) -> Time {
        Time::ZERO + Span::from_ms(ms)
    }

    /// A socket with an alias at its own end, as the client of a further subflow has.
    fn socket(to: u32, alias: u8, ports: [u16; 2], acknowledged: u64) -> TcpSocket {
        let (from, to) = (frame::alias(HostId(5), alias), frame::ipv4(HostId(to)));
        let window =
            SendWindow { cwnd: 14_480 + acknowledged, ssthresh: None, retransmissions: 2, acknowledged };
        TcpSocket { from, to, unsent: 0, token: None, ports, window }
    }

    #[test]
    fn samples_are_of_the_end_that_sends_by_workload_and_subflow() {
        let connection = |workload, client, server| ConnectionRecord {
            workload,
            client,
            server,
            ..ConnectionRecord::default()
        };
        let connections =
            [connection(0, 1, 0), connection(1, 2, 3), connection(1, 2, 3), connection(2, 4, 0)];
        let mut series = WindowSeries::new(8, Span::from_ms(10), ms(100));
        for step in 1..=2_u64 {
            let at = ms(100 + 10 * step);
            // The first workload has a subflow of its second address; its client sends.
            series.take(at, HostId(1), &socket(0, 0, [40_000, 20_000], 1_000 * step));
            series.take(at, HostId(0), &socket(1, 0, [20_000, 40_000], 0));
            series.take(at, HostId(1), &socket(0, 1, [40_001, 20_000], 500));
            // The second workload has two connections between the same hosts.
            series.take(at, HostId(2), &socket(3, 0, [40_000, 20_001], 70));
            series.take(at, HostId(2), &socket(3, 0, [40_001, 20_001], 80));
            // The server of the third sends. Sockets of a program, and sockets to elsewhere, belong to no workload.
            series.take(at, HostId(0), &socket(4, 0, [20_002, 50_000], 9 * step));
            series.take(at, HostId(4), &socket(0, 0, [50_000, 20_002], 1));
            series.take(at, HostId(4), &socket(0, 0, [50_001, 80], 1));
            series.take(at, HostId(4), &socket(9, 0, [50_001, 20_000], 1));
        }
        let points = series.of(&connections, ms(100));
        let told =
            |point: &SeriesPoint| (point.time, point.connection, point.subflow, point.cwnd, point.rate);
        let rate = Rate::from_bps;
        let expected = [
            (ms(10), 0, 0, 15_480, rate(0)),
            (ms(10), 0, 1, 14_980, rate(0)),
            (ms(10), 3, 0, 14_489, rate(0)),
            (ms(20), 0, 0, 16_480, rate(800_000)),
            (ms(20), 0, 1, 14_980, rate(0)),
            (ms(20), 3, 0, 14_498, rate(7_200)),
        ];
        assert_eq!(points.iter().map(told).collect::<Vec<_>>(), expected);
        assert!(
            points
                .iter()
                .all(|point| point.ssthresh == SeriesPoint::NO_SSTHRESH && point.retransmissions == 2)
        );
    }

    #[test]
    fn a_sample_is_due_once_in_an_interval_from_the_origin_on() {
        let mut series = WindowSeries::new(2, Span::from_ms(10), ms(100));
        let due = [90, 100, 104, 111, 119, 145, 149, 150].map(|at| series.is_due(ms(at)));
        assert_eq!(due, [false, true, false, true, false, true, false, true]);
    }
}
