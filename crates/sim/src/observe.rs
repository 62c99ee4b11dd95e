//! [`RunRecorder`]: the records that a run keeps for its outcome.

use std::collections::BTreeMap;

use plimsoll_mechanisms::tcp::WindowState;
use plimsoll_results::outcome::SeriesPoint;
use plimsoll_traffic::record::Records;
use plimsoll_units::{Rate, Span, Time};

/// Gathers the records of a run.
#[derive(Debug, Default)]
pub(crate) struct RunRecorder {
    pub(crate) records: Records,
    pub(crate) series: Vec<SeriesPoint>,
    series_every: Option<Span>,
    /// The bytes acknowledged at the last sample, by connection.
    acknowledged: Vec<u64>,
    /// The same by connection and subflow, for all subflows but the first.
    acknowledged_by_subflow: BTreeMap<(u32, u8), u64>,
}

impl RunRecorder {
    pub(crate) fn new(series_every: Option<Span>) -> RunRecorder {
        RunRecorder { series_every, ..RunRecorder::default() }
    }

    /// Takes the records of a workload's actions, or of another logical process.
    pub(crate) fn take(&mut self, records: &mut Records) {
        self.records.append(records);
    }

    /// Returns when the first sample of the per-connection series is due.
    pub(crate) fn first_sample(&self) -> Option<Time> {
        self.series_every.map(|every| Time::ZERO + every)
    }

    /// Samples the `senders`, each with the number of its connection and of its subflow; returns when to sample next.
    pub(crate) fn sample(
        &mut self,
        now: Time,
        senders: impl Iterator<Item = (u32, u8, SenderState)>,
    ) -> Time {
        let every = self.series_every.unwrap_or(Span::from_secs(1));
        for (connection, subflow, sender) in senders {
            let last = if subflow == 0 {
                let place = connection as usize;
                if place >= self.acknowledged.len() {
                    self.acknowledged.resize(place + 1, 0);
                }
                &mut self.acknowledged[place]
            } else {
                self.acknowledged_by_subflow.entry((connection, subflow)).or_default()
            };
            self.series.push(sample(now, every, connection, subflow, sender, last));
        }
        now + every
    }
}

/// The state of the sending end of a connection or subflow.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SenderState {
    /// The bytes that the other end has acknowledged.
    pub(crate) acknowledged: u64,
    pub(crate) window: WindowState,
    pub(crate) retransmissions: u64,
}

/// Samples the sending end of a connection or subflow, which had this number of bytes acknowledged at the sample
/// before.
fn sample(
    now: Time,
    every: Span,
    connection: u32,
    subflow: u8,
    sender: SenderState,
    acknowledged: &mut u64,
) -> SeriesPoint {
    let last = std::mem::replace(acknowledged, sender.acknowledged);
    let window = sender.window;
    let bits = acknowledged.saturating_sub(last) as f64 * 8.0;
    SeriesPoint {
        time: now,
        connection,
        cwnd: window.cwnd_bytes,
        ssthresh: window.ssthresh_bytes,
        alpha: window.alpha,
        rate: Rate::from_bps((bits / every.as_secs_f64()) as u64),
        retransmissions: sender.retransmissions,
        subflow,
    }
}
