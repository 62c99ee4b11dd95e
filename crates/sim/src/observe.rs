//! [`Recorder`]: what a run keeps of what it sees.

use std::collections::BTreeMap;

use plimsoll_mechanisms::mptcp::MptcpParams;
use plimsoll_mechanisms::tcp::Endpoint;
use plimsoll_results::outcome::{self, ExtraLoad, GoodputInterval, Message, Observation, Query, SeriesPoint};
use plimsoll_units::{Bytes, Rate, Span, Time};

use crate::hosts::connection::Connection;
use crate::hosts::connection_table::ConnectionTable;
use crate::hosts::multipath::Multipath;
use plimsoll_traffic::Actions;

/// Gathers the records of a run.
#[derive(Debug, Default)]
pub(crate) struct Recorder {
    pub(crate) messages: Vec<Message>,
    pub(crate) queries: Vec<Query>,
    pub(crate) observations: Vec<Observation>,
    pub(crate) extra: Vec<ExtraLoad>,
    pub(crate) series: Vec<SeriesPoint>,
    /// The connections that were closed before the end, by number.
    pub(crate) closed: BTreeMap<u32, outcome::Connection>,
    goodput_every: Option<Span>,
    /// The bytes sent for the first time and the bytes delivered, by interval, then workload.
    goodput: Vec<Vec<(u64, u64)>>,
    workloads: usize,
    series_every: Option<Span>,
    /// The bytes acknowledged at the last sample, by connection.
    acknowledged: Vec<u64>,
    /// The same by connection of MPTCP and subflow.
    acknowledged_by_subflow: BTreeMap<u32, [u64; MptcpParams::SUBFLOWS_MAX as usize]>,
}

impl Recorder {
    pub(crate) fn new(workloads: usize, goodput_every: Option<Span>, series_every: Option<Span>) -> Recorder {
        Recorder { goodput_every, series_every, workloads, ..Recorder::default() }
    }

    /// Takes what a workload has recorded.
    pub(crate) fn take(&mut self, actions: &mut Actions) {
        self.messages.append(&mut actions.messages);
        self.queries.append(&mut actions.queries);
        self.observations.append(&mut actions.observations);
        self.extra.append(&mut actions.extra);
    }

    /// Takes what another logical process has recorded.
    pub(crate) fn absorb(&mut self, other: Recorder) {
        let Recorder { mut messages, mut queries, mut observations, mut extra, goodput, .. } = other;
        self.messages.append(&mut messages);
        self.queries.append(&mut queries);
        self.observations.append(&mut observations);
        self.extra.append(&mut extra);
        if self.goodput.len() < goodput.len() {
            self.goodput.resize(goodput.len(), vec![(0, 0); self.workloads]);
        }
        for (own, other) in self.goodput.iter_mut().flatten().zip(goodput.iter().flatten()) {
            *own = (own.0 + other.0, own.1 + other.1);
        }
    }

    /// `bytes` of payload of `workload` were sent for the first time.
    #[inline]
    pub(crate) fn on_sent(&mut self, now: Time, workload: u16, bytes: u64) {
        if let Some(every) = self.goodput_every {
            self.interval(now, every, workload).0 += bytes;
        }
    }

    /// `bytes` of payload of `workload` were delivered in order.
    #[inline]
    pub(crate) fn on_delivered(&mut self, now: Time, workload: u16, bytes: u64) {
        if let Some(every) = self.goodput_every {
            self.interval(now, every, workload).1 += bytes;
        }
    }

    fn interval(&mut self, now: Time, every: Span, workload: u16) -> &mut (u64, u64) {
        let index = (now.as_ps() / every.as_ps()) as usize;
        if index >= self.goodput.len() {
            self.goodput.resize(index + 1, vec![(0, 0); self.workloads]);
        }
        &mut self.goodput[index][usize::from(workload)]
    }

    pub(crate) fn goodput(&self) -> Vec<GoodputInterval> {
        let every = self.goodput_every.unwrap_or(Span::ZERO);
        let intervals = self.goodput.iter().enumerate();
        intervals
            .flat_map(|(index, of_workload)| {
                let time = Time::ZERO + every * index as u64;
                of_workload.iter().enumerate().map(move |(workload, &(sent, delivered))| GoodputInterval {
                    time,
                    length: every,
                    workload: workload as u16,
                    sent: Bytes::new(sent),
                    delivered: Bytes::new(delivered),
                })
            })
            .collect()
    }

    /// Returns when the first sample of the per-connection series is due.
    pub(crate) fn first_sample(&self) -> Option<Time> {
        self.series_every.map(|every| Time::ZERO + every)
    }

    /// Samples the sending end of every open connection; returns when to sample next.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        connections: &ConnectionTable,
        multipath: Option<&Multipath>,
    ) -> Time {
        let every = self.series_every.unwrap_or(Span::from_secs(1));
        self.acknowledged.resize(connections.len(), 0);
        for (number, connection) in connections.iter().enumerate() {
            let Some(connection) = connection else { continue };
            // The end that has written more is the one whose window matters.
            let half = connection
                .halves()
                .iter()
                .max_by_key(|half| half.endpoint.written())
                .expect("a connection has two ends");
            let last = &mut self.acknowledged[number];
            self.series.push(sample(now, every, number as u32, 0, &half.endpoint, last));
        }
        for (number, connection) in multipath.into_iter().flat_map(Multipath::connections) {
            let acknowledged = self.acknowledged_by_subflow.entry(number).or_default();
            for (subflow, endpoint) in (0..).zip(connection.busier_end().subflows()) {
                let last = &mut acknowledged[usize::from(subflow)];
                self.series.push(sample(now, every, number, subflow, endpoint, last));
            }
        }
        now + every
    }

    /// Keeps the record of a connection that is closed.
    pub(crate) fn on_closed(&mut self, number: u32, record: outcome::Connection) {
        self.closed.insert(number, record);
    }
}

/// Returns the record that is kept of a connection.
pub(crate) fn connection_record(connection: &Connection) -> outcome::Connection {
    let mut record = outcome::Connection {
        workload: connection.workload,
        client: connection.client.0,
        server: connection.server.0,
        active: connection.active,
        ..outcome::Connection::default()
    };
    for half in connection.halves() {
        record.delivered += half.endpoint.received();
        count(&mut record, &half.endpoint);
    }
    record
}

/// Adds the counters of an end of a connection or subflow to a record.
pub(crate) fn count(record: &mut outcome::Connection, endpoint: &Endpoint) {
    let counters = endpoint.counters();
    record.segments += counters.data_segments;
    record.retransmissions += counters.retransmissions;
    record.timeouts += counters.timeouts;
    record.marked += counters.ce_received;
}

/// Samples the sending `endpoint` of a connection or subflow, which had so many bytes acknowledged at the sample
/// before.
fn sample(
    now: Time,
    every: Span,
    connection: u32,
    subflow: u8,
    endpoint: &Endpoint,
    acknowledged: &mut u64,
) -> SeriesPoint {
    let last = std::mem::replace(acknowledged, endpoint.acknowledged());
    let window = endpoint.window();
    let bits = acknowledged.saturating_sub(last) as f64 * 8.0;
    SeriesPoint {
        time: now,
        connection,
        cwnd: window.cwnd_bytes,
        ssthresh: window.ssthresh_bytes,
        alpha: window.alpha,
        rate: Rate::from_bps((bits / every.as_secs_f64()) as u64),
        retransmissions: endpoint.counters().retransmissions,
        subflow,
    }
}
