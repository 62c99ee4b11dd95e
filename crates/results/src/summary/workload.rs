//! One workload in one cell.

use plimsoll_units::{Span, Time};

use super::{
    ConnectionTotals, Distribution, ExtraTotals, Observed, QuerySummary, Slowdown, TimeSplit, WorkloadSummary,
};
use crate::outcome::{MessageRecord, Observation, Outcome, QueryRecord, Supply};
use crate::stats::{self, Estimate, Samples, Statistic};

/// A workload in the replicates of a cell: each outcome with the workload's index in it.
pub(super) struct WorkloadReplicates<'a> {
    name: &'a str,
    kind: &'a str,
    outcomes: Vec<(&'a Outcome, u16)>,
}

impl<'a> WorkloadReplicates<'a> {
    pub(super) fn new(name: &'a str, outcomes: &[&'a Outcome]) -> WorkloadReplicates<'a> {
        let mut kind = "";
        let outcomes = outcomes
            .iter()
            .filter_map(|outcome| {
                let index = outcome.workloads.iter().position(|workload| workload.name == name)?;
                kind = &outcome.workloads[index].kind;
                Some((*outcome, index as u16))
            })
            .collect();
        WorkloadReplicates { name, kind, outcomes }
    }

    /// The messages that count, by replicate.
    pub(super) fn messages(&self) -> impl Iterator<Item = impl Iterator<Item = &'a MessageRecord>> {
        self.outcomes.iter().map(|&(outcome, index)| {
            outcome
                .messages
                .iter()
                .filter(move |message| message.workload == index && counts(outcome, message.created))
        })
    }

    /// The queries that count, by replicate.
    pub(super) fn queries(&self) -> impl Iterator<Item = impl Iterator<Item = &'a QueryRecord>> {
        self.outcomes.iter().map(|&(outcome, index)| {
            outcome
                .queries
                .iter()
                .filter(move |query| query.workload == index && counts(outcome, query.created))
        })
    }

    /// The observations that count, by replicate.
    pub(super) fn observations(&self) -> impl Iterator<Item = impl Iterator<Item = &'a Observation>> {
        self.outcomes.iter().map(|&(outcome, index)| {
            outcome
                .observations
                .iter()
                .filter(move |seen| seen.workload == index && counts(outcome, seen.begun))
        })
    }

    /// Returns the quantity that the workload exists to observe, in words.
    pub(super) fn observes(&self) -> Option<&'a str> {
        self.outcomes.iter().find_map(|&(outcome, index)| {
            outcome.workloads.get(usize::from(index)).and_then(|info| info.observed.as_deref())
        })
    }

    pub(super) fn has_queries(&self) -> bool {
        self.queries().any(|mut queries| queries.next().is_some())
    }

    pub(super) fn summarise(&self) -> WorkloadSummary {
        let (mut messages, mut unfinished) = (0, 0);
        for message in self.messages().flatten() {
            messages += 1;
            unfinished += u64::from(message.completed.is_none());
        }
        let [goodput_mbps, sent_mbps] = self.goodput();
        WorkloadSummary {
            name: self.name.to_owned(),
            kind: self.kind.to_owned(),
            messages,
            unfinished,
            completion_us: distribution(&self.message_samples(|m| Some(m.latency()?.as_us_f64()))),
            slowdown: self.slowdown(),
            goodput_mbps,
            sent_mbps,
            time: self.time_split(),
            queries: self.has_queries().then(|| self.query_summary()),
            observed: self.observed(),
            extra: self.extra(),
            fairness: self.fairness(),
            connections: self.connection_totals(),
        }
    }

    fn observed(&self) -> Option<Observed> {
        let what = self.observes()?.to_owned();
        let values = self.observations().map(|seen| seen.map(|seen| seen.value.as_us_f64()).collect());
        let samples = Samples::new(values.collect());
        Some(Observed { what, us: distribution(&samples)? })
    }

    fn extra(&self) -> Option<ExtraTotals> {
        let mut mine = self
            .outcomes
            .iter()
            .flat_map(|&(outcome, index)| outcome.extra.iter().filter(move |extra| extra.workload == index))
            .peekable();
        mine.peek()?;
        Some(mine.fold(ExtraTotals::default(), |sum, extra| ExtraTotals {
            retries: sum.retries + extra.retries,
            replicas: sum.replicas + extra.replicas,
            bytes: sum.bytes + extra.bytes,
        }))
    }

    fn message_samples(&self, f: impl Fn(&MessageRecord) -> Option<f64>) -> Samples {
        Samples::new(self.messages().map(|messages| messages.filter_map(&f).collect()).collect())
    }

    fn query_samples(&self, f: impl Fn(&QueryRecord) -> Option<f64>) -> Samples {
        Samples::new(self.queries().map(|queries| queries.filter_map(&f).collect()).collect())
    }

    fn slowdown(&self) -> Option<Slowdown> {
        let samples = self.message_samples(|message| {
            let latency = message.latency()?;
            (!message.ideal.is_zero()).then(|| latency.as_us_f64() / message.ideal.as_us_f64())
        });
        Some(Slowdown {
            mean: samples.estimate(Statistic::Mean)?,
            p99: samples.estimate(Statistic::Percentile(0.99))?,
        })
    }

    /// Returns delivered and sent payload per second: from the recorded intervals between the first and the last that
    /// is not zero, or else (delivered only) completed bytes over the time between the first creation and the last
    /// completion. Flows without an end complete none: their goodput is the bytes that their connections have delivered
    /// over the time from the first delivery to the last, the warm-up included.
    pub(super) fn goodput(&self) -> [Option<Estimate>; 2] {
        let recorded = |pick: fn(&crate::outcome::GoodputInterval) -> u64| {
            let rates: Vec<Vec<f64>> = self
                .outcomes
                .iter()
                .map(|&(outcome, workload)| interval_rates(outcome, workload, pick))
                .collect();
            Samples::new(rates).estimate(Statistic::Mean)
        };
        let sent = recorded(|interval| interval.sent.get());
        let delivered = recorded(|interval| interval.delivered.get()).or_else(|| {
            let rates = self.messages().map(|messages| completed_rate(messages).into_iter().collect());
            Samples::new(rates.collect()).estimate(Statistic::Mean)
        });
        let delivered = delivered.or_else(|| {
            let rate = |&(outcome, workload): &(&Outcome, u16)| {
                endless_rate(outcome, workload).into_iter().collect()
            };
            Samples::new(self.outcomes.iter().map(rate).collect()).estimate(Statistic::Mean)
        });
        [delivered, sent]
    }

    pub(super) fn tiers(&self) -> &'a [String] {
        self.outcomes.first().map(|&(outcome, _)| outcome.tiers.as_slice()).unwrap_or_default()
    }

    /// The completed messages, slowest first.
    pub(super) fn slowest_first(&self) -> Vec<&'a MessageRecord> {
        let mut done: Vec<&MessageRecord> =
            self.messages().flatten().filter(|m| m.completed.is_some()).collect();
        // The sort is stable, so that ties keep the order of creation.
        done.sort_by_key(|message| std::cmp::Reverse(message.latency()));
        done
    }

    fn time_split(&self) -> Option<TimeSplit> {
        let tiers = self.tiers();
        let done = self.slowest_first();
        let slowest_count = done.len().div_ceil(100);
        // Every message takes time: where all parts are zero, they are unknown.
        if done.iter().all(|message| message.split.total().is_zero()) {
            return None;
        }
        let mean_us = mean_parts(&done, tiers.len());
        let slowest_us = mean_parts(&done[..slowest_count], tiers.len());
        Some(TimeSplit { parts: part_names(tiers), mean_us, slowest_us, slowest_count: slowest_count as u64 })
    }

    fn query_summary(&self) -> QuerySummary {
        let (mut queries, mut unfinished) = (0, 0);
        for query in self.queries().flatten() {
            queries += 1;
            unfinished += u64::from(query.completed.is_none());
        }
        let done = |query: &QueryRecord| query.completed.map(|completed| completed - query.created);
        let met = self.query_samples(|query| {
            done(query)?;
            (query.servers > 0).then(|| f64::from(query.in_deadline) / f64::from(query.servers))
        });
        let worst = &met.sorted()[..met.len().div_ceil(100)];
        QuerySummary {
            queries,
            unfinished,
            completion_us: distribution(&self.query_samples(|query| Some(done(query)?.as_us_f64()))),
            response_us: distribution(
                &self.query_samples(|query| done(query).map(|_| query.response_mean.as_us_f64())),
            ),
            fastest_us: distribution(
                &self.query_samples(|query| done(query).map(|_| query.response_min.as_us_f64())),
            ),
            in_deadline: met.estimate(Statistic::Mean),
            in_deadline_worst: stats::mean(worst),
        }
    }

    /// Jain's index over the connections' bytes per second between first and last delivery; the mean
    /// over replicates.
    fn fairness(&self) -> Option<f64> {
        let by_replicate: Vec<f64> = self
            .outcomes
            .iter()
            .filter_map(|&(outcome, index)| {
                let mine = outcome.connections.iter().filter(|connection| connection.workload == index);
                let rates: Vec<f64> = mine
                    .filter_map(|connection| {
                        let (first, last) = connection.active?;
                        (last > first).then(|| connection.delivered as f64 / (last - first).as_secs_f64())
                    })
                    .collect();
                stats::jain(&rates)
            })
            .collect();
        stats::mean(&by_replicate)
    }

    fn connection_totals(&self) -> ConnectionTotals {
        let mut totals = ConnectionTotals::default();
        for &(outcome, index) in &self.outcomes {
            for connection in outcome.connections.iter().filter(|c| c.workload == index) {
                totals.connections += 1;
                totals.delivered += connection.delivered;
                totals.segments += connection.segments;
                totals.retransmissions += connection.retransmissions;
                totals.timeouts += connection.timeouts;
                totals.marked += connection.marked;
                totals.pacer_associations += connection.pacer_associations;
                totals.pacer_renewals += connection.pacer_renewals;
                totals.pacer_dissociations += connection.pacer_dissociations;
            }
        }
        totals
    }
}

/// The subject of a workload's numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum WorkloadSubject {
    /// Completion times of messages.
    Messages,
    /// Completion times of queries.
    Queries,
    /// The workload is judged by its observations.
    Observations,
}

impl WorkloadReplicates<'_> {
    /// Returns the subject by which the workload is judged.
    pub(super) fn subject(&self) -> WorkloadSubject {
        if self.observes().is_some() {
            WorkloadSubject::Observations
        } else if self.has_queries() {
            WorkloadSubject::Queries
        } else {
            WorkloadSubject::Messages
        }
    }

    /// Index and value in us of everything of a subject that counts and is complete.
    pub(super) fn values_us(&self, subject: WorkloadSubject) -> Vec<(u64, f64)> {
        let begun = self.begun_us(subject).into_iter();
        begun.filter_map(|(index, _, us)| Some((index, us?))).collect()
    }

    /// Index, beginning and value in us of everything of a subject that counts, by replicate; `None` did not complete.
    fn begun_us(&self, subject: WorkloadSubject) -> Vec<(u64, Time, Option<f64>)> {
        let us = |latency: Option<Span>| latency.map(Span::as_us_f64);
        match subject {
            WorkloadSubject::Messages => {
                self.messages().flatten().map(|m| (m.index, m.created, us(m.latency()))).collect()
            }
            WorkloadSubject::Queries => {
                let took = |query: &QueryRecord| us(Some(query.completed? - query.created));
                self.queries().flatten().map(|query| (query.index, query.created, took(query))).collect()
            }
            WorkloadSubject::Observations => self
                .observations()
                .flatten()
                .map(|seen| (seen.index, seen.begun, us(Some(seen.value))))
                .collect(),
        }
    }
}

/// Returns the beginnings and the values in us by which a workload is judged over all outcomes, and their subject;
/// what did not complete has no value.
pub(crate) fn begun_us(name: &str, outcomes: &[&Outcome]) -> (Vec<(Time, Option<f64>)>, WorkloadSubject) {
    let runs = WorkloadReplicates::new(name, outcomes);
    let subject = runs.subject();
    (runs.begun_us(subject).into_iter().map(|(_, time, us)| (time, us)).collect(), subject)
}

/// Returns whether an event at `time` is after the warm-up.
pub(super) fn counts(outcome: &Outcome, time: Time) -> bool {
    time.as_ps() >= outcome.warmup.as_ps()
}

/// Returns all percentiles of a list of samples; `None` without samples.
pub(super) fn distribution(samples: &Samples) -> Option<Distribution> {
    let percentile = |share| samples.estimate(Statistic::Percentile(share));
    Some(Distribution {
        mean: samples.estimate(Statistic::Mean)?,
        min: *samples.sorted().first()?,
        p50: percentile(0.5)?,
        p90: percentile(0.9)?,
        p99: percentile(0.99)?,
        p999: percentile(0.999)?,
        max: *samples.sorted().last()?,
    })
}

/// The tier of a circuit switch, which has no queue: packets in this component have waited for a circuit in their host.
pub(crate) const CIRCUIT_TIER: &str = "ocs";

/// The name of the part of a completion time that was waited for a circuit.
pub const WAITING_FOR_CIRCUIT: &str = "waiting for a circuit";

/// Names of the parts of a [`crate::outcome::Split`], in the order of [`mean_parts`].
pub(super) fn part_names(tiers: &[String]) -> Vec<String> {
    let mut names: Vec<String> =
        ["window", "recovery", "NIC queue", "pacer"].iter().map(|&name| name.to_owned()).collect();
    names.extend(tiers.iter().map(|tier| {
        if tier == CIRCUIT_TIER { WAITING_FOR_CIRCUIT.to_owned() } else { format!("{tier} queue") }
    }));
    names.extend(["serialisation", "propagation", "service"].iter().map(|&name| name.to_owned()));
    names
}

/// The mean of each part in us.
pub(super) fn mean_parts(messages: &[&MessageRecord], tiers: usize) -> Vec<f64> {
    let count = messages.len() as f64;
    let mut sums = vec![0u128; 7 + tiers];
    for message in messages {
        let split = &message.split;
        let parts = [split.window, split.recovery, split.nic, split.pacer]
            .into_iter()
            .chain(split.tier.into_iter().take(tiers))
            .chain([split.serialisation, split.propagation, split.service]);
        for (sum, part) in sums.iter_mut().zip(parts) {
            *sum += u128::from(part.as_ps());
        }
    }
    sums.iter().map(|&sum| sum as f64 / 1e6 / count).collect()
}

/// Mb/s in each recorded interval between the first and the last that is not zero.
fn interval_rates(
    outcome: &Outcome,
    workload: u16,
    pick: fn(&crate::outcome::GoodputInterval) -> u64,
) -> Vec<f64> {
    let mine: Vec<_> = outcome
        .goodput
        .iter()
        .filter(|interval| interval.workload == workload && counts(outcome, interval.time))
        .collect();
    // A single interval is rarely whole; it is less precise than the completed messages.
    if mine.len() < 2 {
        return Vec::new();
    }
    trimmed(&mine, |interval| pick(interval) == 0)
        .iter()
        .map(|interval| pick(interval) as f64 * 8.0 / interval.length.as_us_f64())
        .collect()
}

/// Mb/s that the connections of a workload without an end have delivered together.
fn endless_rate(outcome: &Outcome, workload: u16) -> Option<f64> {
    (outcome.workloads.get(usize::from(workload))?.supply == Supply::Endless).then_some(())?;
    let mine = outcome.connections.iter().filter(|connection| connection.workload == workload);
    let mut times: Option<(Time, Time)> = None;
    let mut bytes = 0;
    for connection in mine {
        let Some((first, last)) = connection.active else { continue };
        times = Some(times.map_or((first, last), |(least, most)| (least.min(first), most.max(last))));
        bytes += connection.delivered;
    }
    let (first, last) = times?;
    let active = last.saturating_since(first);
    (!active.is_zero()).then(|| bytes as f64 * 8.0 / active.as_us_f64())
}

/// A list without the leading and trailing entries that are `idle`.
pub(super) fn trimmed<T>(list: &[T], idle: impl Fn(&T) -> bool) -> &[T] {
    let first = list.iter().position(|item| !idle(item)).unwrap_or(list.len());
    let last = list.iter().rposition(|item| !idle(item)).map_or(first, |last| last + 1);
    &list[first..last]
}

fn completed_rate<'a>(messages: impl Iterator<Item = &'a MessageRecord>) -> Option<f64> {
    let (mut bytes, mut first, mut last) = (0u64, None, None);
    for message in messages {
        first = first.or(Some(message.created)).min(Some(message.created));
        if let Some(completed) = message.completed {
            bytes += message.bytes;
            last = last.max(Some(completed));
        }
    }
    let active = last?.saturating_since(first?);
    (!active.is_zero()).then(|| bytes as f64 * 8.0 / active.as_us_f64())
}
