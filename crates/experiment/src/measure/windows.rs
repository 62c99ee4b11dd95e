//! Measures of the congestion windows and the rates of a workload's connections, by the samples of
//! `observe.flow_series`. Of windows, only samples between a message's beginning and its end count: an idle
//! connection's window is cut without a loss.
//!
//! ```text
//! cwnd ──────╮                 a cut: a sample of less than 9 / 10 of the one before
//!            ╰──╮   ╭───       kept: the least share of the largest window before that a window fell to
//!               ╰───╯
//! ```

use std::collections::BTreeMap;

use plimsoll_results::outcome::{ConnectionRecord, Outcome};
use plimsoll_units::Time;

use super::asked::QuantityQuestion;

/// A window that is less than this share of the sample before has been cut; CUBIC cuts to 7 / 10.
const CUT: f64 = 0.9;

/// Returns how often the windows of each connection of a workload were cut, all subflows together.
pub(super) fn cuts(of: &QuantityQuestion<'_>) -> Vec<f64> {
    let cuts = |windows: &Vec<f64>| windows.windows(2).filter(|pair| pair[1] < CUT * pair[0]).count();
    by_connection(of, |of| of.values().map(cuts).sum::<usize>() as f64)
}

/// Returns how many percent of the largest window so far the windows of each connection of a workload have fallen to,
/// that of the subflow that fell most.
pub(super) fn kept(of: &QuantityQuestion<'_>) -> Vec<f64> {
    let kept = |windows: &Vec<f64>| {
        let (mut largest, mut kept) = (0.0_f64, 1.0_f64);
        for &window in windows {
            largest = largest.max(window);
            kept = kept.min(window / largest.max(1.0));
        }
        100.0 * kept
    };
    by_connection(of, |of| of.values().map(kept).fold(100.0, f64::min))
}

pub(super) fn segments(of: &QuantityQuestion<'_>) -> Vec<f64> {
    let segment = of.bytes(0) as f64;
    let all = |of: &BTreeMap<u8, Vec<f64>>| of.values().flatten().copied().collect::<Vec<f64>>();
    by_connection(of, all).into_iter().flatten().map(|window| window / segment).collect()
}

/// Returns the rates in Mb/s at which the bytes of the connections of a workload were acknowledged, in each interval
/// after the warm-up. The subflows of a connection count together.
pub(super) fn rates(of: &QuantityQuestion<'_>) -> Vec<f64> {
    let outcome = of.outcome;
    let mut rates: BTreeMap<(Time, u32), f64> = BTreeMap::new();
    let points = outcome.series.iter().filter(|point| point.time.as_ps() > of.warmup.as_ps());
    for point in points {
        let connection = outcome.connections.get(point.connection as usize);
        if connection.is_some_and(|connection| of.has(connection.workload)) {
            *rates.entry((point.time, point.connection)).or_default() += point.rate.as_mbps_f64();
        }
    }
    rates.into_values().collect()
}

/// Returns something of each connection of a workload, made of the windows of its subflows.
fn by_connection<T>(asked: &QuantityQuestion<'_>, number: impl Fn(&BTreeMap<u8, Vec<f64>>) -> T) -> Vec<T> {
    let outcome = asked.outcome;
    let mut windows: BTreeMap<u32, BTreeMap<u8, Vec<f64>>> = BTreeMap::new();
    for point in &outcome.series {
        let of = outcome.connections.get(point.connection as usize);
        if of.is_some_and(|connection| asked.has(connection.workload)) {
            let subflows = windows.entry(point.connection).or_default();
            let samples = subflows.entry(point.subflow).or_default();
            if of.is_some_and(|connection| has_message(outcome, connection, point.time)) {
                samples.push(point.cwnd as f64);
            }
        }
    }
    windows.values().map(number).collect()
}

/// Returns whether a message of a connection is under way at `now`.
fn has_message(outcome: &Outcome, connection: &ConnectionRecord, now: Time) -> bool {
    let ends = [connection.client, connection.server];
    outcome.messages.iter().any(|message| {
        message.workload == connection.workload
            && (ends == [message.source, message.destination]
                || ends == [message.destination, message.source])
            && message.created <= now
            && message.completed.is_none_or(|completed| now < completed)
    })
}

#[cfg(test)]
mod tests {
    use plimsoll_results::outcome::{MessageRecord, SeriesPoint, Split, Supply, WorkloadInfo};
    use plimsoll_units::{Rate, Span};

    use super::*;
    use crate::Measure;

    #[test]
    fn cuts_and_what_is_kept_are_by_connection() {
        let samples = [
            // Cut twice, and grown again; samples after the message do not count.
            (0, 0, [100, 200, 140, 98, 150, 10]),
            // Another workload's.
            (1, 0, [900, 100, 900, 100, 900, 900]),
            // A subflow that is cut once beside one that keeps its window but for little.
            (2, 0, [100, 100, 95, 100, 100, 100]),
            (2, 1, [50, 100, 50, 60, 70, 20]),
        ];
        let point = |connection, subflow, step: usize, cwnd| SeriesPoint {
            time: Time::ZERO + Span::from_ms(step as u64),
            connection,
            cwnd,
            ssthresh: SeriesPoint::NO_SSTHRESH,
            alpha: 0.0,
            rate: Rate::from_bps(1_000_000 * cwnd),
            retransmissions: 0,
            subflow,
        };
        let points = samples.into_iter().flat_map(|(connection, subflow, windows)| {
            (0..).zip(windows).map(move |(step, cwnd)| point(connection, subflow, step, cwnd))
        });
        let connection =
            |workload, server| ConnectionRecord { workload, server, ..ConnectionRecord::default() };
        let connections = vec![connection(3, 1), connection(4, 1), connection(3, 2)];
        let message = |workload, source, destination| MessageRecord {
            workload,
            index: 0,
            query: None,
            source,
            destination,
            bytes: 1,
            created: Time::ZERO,
            completed: Some(Time::ZERO + Span::from_ms(5)),
            ideal: Span::ZERO,
            split: Split::default(),
        };
        let messages = vec![message(3, 0, 1), message(4, 0, 1), message(3, 2, 0)];
        let workload = |number| WorkloadInfo {
            name: format!("w{number}"),
            kind: String::new(),
            deadline: None,
            observed: None,
            supply: Supply::Duration,
            groups: Vec::new(),
        };
        let workloads = (0..5).map(workload).collect();
        let outcome =
            Outcome { workloads, series: points.collect(), connections, messages, ..Outcome::default() };
        let of = |text: &str| Measure::parse(text).unwrap().samples(&outcome, Span::ZERO);
        assert_eq!(of("window_cuts.mean(w3)"), [2.0, 1.0]);
        assert_eq!(of("window_kept.mean(w3)"), [49.0, 50.0]);
        assert_eq!(of("window.mean(w3, 50B)").first(), Some(&2.0));
        assert!(of("window_cuts.mean(none)").is_empty());
        // Of each interval the two connections, the second with both of its subflows.
        assert_eq!(of("flow_rate.min(w3)")[..4], [200.0, 200.0, 140.0, 145.0]);
        let late = Measure::parse("flow_rate.min(w4)").unwrap().samples(&outcome, Span::from_ms(4));
        assert_eq!(late, [900.0]);
    }
}
