//! The measurements of the studies, computed from an [`Outcome`] as their scripts computed them.

use std::collections::BTreeSet;

use plimsoll_results::outcome::{
    CircuitUse, Connection, GoodputInterval, Message, Observation, Outcome, Query, Queue,
};
use plimsoll_results::stats::{Estimate, Interval, Samples, Statistic};
use plimsoll_units::{Span, Time};
use serde::Deserialize;

use crate::bursts::{
    ack_ratio, bursts, days_filled_percent, pair_bursts, path_cache_percent, path_changes_per_mb,
};
use crate::{circuits, host_stacks, link_use, windows};

/// A measurement: a statistic of a population.
#[derive(Clone, PartialEq, Debug)]
pub struct Metric {
    /// The name that rows have for it.
    pub name: String,
    /// The unit of the number.
    pub unit: String,
    pub(crate) of: Population,
    pub(crate) statistic: Of,
}

/// The samples that a statistic is of.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", rename_all_fields = "kebab-case")]
pub(crate) enum Population {
    /// Means over intervals of the watched queue, as delay in us.
    Queue,
    /// The same, of all intervals until the last message was complete, empty ones as well.
    QueueUntilDone,
    /// Means over intervals of the watched queue of that name, as delay in us.
    QueueOf(String),
    /// Megabits per second that passed the watched queue of that name: one number.
    Throughput(String),
    /// Percent of the time in which at most so many bytes waited in the watched queue of that name: one number.
    TimeUpTo(String, u64),
    /// Megabits per second sent for the first time, by interval.
    Goodput,
    /// Bursts of the watched queue of that name, in us: packets with less than 40 ns between them (BulletTrains). It
    /// needs packets captured there.
    BurstUs(String),
    /// The same bursts, in packets of full size: bytes over the size of the largest packet.
    BurstPackets(String),
    /// Lengths in packets of the bursts from one host to another on the link of the watched queue of that name
    /// (BulletTrains). It needs packets captured there.
    PairBurstPackets(String),
    /// The same bursts of packets with data alone.
    PairDataBurstPackets(String),
    /// The kilobytes that a pure acknowledgement on the link of the watched queue of that name acknowledges anew, in
    /// the mean: one number. It needs packets captured there.
    AckRatioKb(String),
    /// How many percent of the packets on the link of the watched queue of that name are to one of the destinations
    /// that a cache of that many entries holds, which forgets the one used longest ago: one number. It needs packets
    /// captured there.
    PathCachePercent {
        /// The name of the watched queue.
        queue: String,
        /// The number of entries.
        entries: usize,
    },
    /// How many pauses of connections longer than `gap` there are in each megabyte of data on the link of the watched
    /// queue of that name, where flowlets may change their path: one number. It needs packets captured there.
    PathChangesPerMb {
        /// The name of the watched queue.
        queue: String,
        /// The gap between flowlets.
        gap: Span,
    },
    /// The bytes of the most used link of a tier, such as `leaf -> spine`, over the mean of the tier's links: one
    /// number. It needs `observe.links`.
    MostUsedLink(String),
    /// How far each day of a circuit would be filled by data to one destination, in percent, if a day began with the
    /// first packet after the day before, on the link of the watched queue of that name. It needs packets captured
    /// there.
    DayFilledPercent {
        /// The name of the watched queue.
        queue: String,
        /// How long the circuit of a day stands.
        day: Span,
    },
    /// Percent of a workload's messages that had to wait for a segment sent again: one number.
    RecoveredPercent(String),
    /// How busy each core of a host's processor was, in percent: one number, that of the busiest.
    ProcessorPercent(u32),
    /// The time in ns that all cores of a host's processor worked for each kilobyte of payload that was delivered after
    /// the warm-up, of all workloads: one number. It needs `observe.goodput_every`.
    ProcessorNsPerKb(u32),
    /// Packets that found no room in the receive ring of their host, of all hosts: one number.
    RingDrops,
    /// Payload delivered after the warm-up in Gb/s, of all workloads together, over the number of hosts that send: one
    /// number. It needs `observe.goodput_every`.
    DeliveredGbpsEach(u32),
    /// The most kilobytes that waited in the watched queue of that name, by interval.
    QueueMaxKb(String),
    /// What circuits from one host to another carried in each week, in percent of a circuit that stands all the week.
    CircuitPercent {
        /// The number of the sending host.
        sender: u32,
        /// The number of the receiving host.
        receiver: u32,
    },
    /// How far circuits were filled, in percent of what they could have carried while they stood: one number.
    CircuitsFilledPercent,
    /// The percent of the circuits' time that was in circuits filled to less than 90 %: one number.
    CircuitsWastedPercent,
    /// Megabytes that passed the packet switch of a hybrid network between racks: one number.
    PacketSwitchMb,
    /// The demand for which each week of circuits was scheduled, of all hosts, in KB.
    DemandKnownKb,
    /// How much of that demand had been sent by the end of its week, in percent: one number.
    DemandSentPercent,
    /// Segments of a workload's connections that were sent again: one number.
    Retransmissions(String),
    /// Segments that all connections together retransmitted: one number.
    AllRetransmissions,
    /// Retransmission timeouts of all connections together: one number.
    AllTimeouts,
    /// How often the congestion window of each connection of a workload was cut. It needs `observe.flow_series`.
    WindowCuts(String),
    /// The percent of its largest congestion window so far that the window of each connection of a workload fell to.
    WindowKeptPercent(String),
    /// The congestion windows of a workload's connections in segments of so many bytes, at the samples of
    /// `observe.flow_series` while a message is under way.
    WindowSegments(String, u32),
    /// Completion times of a workload in us.
    CompletionUs(String),
    /// Completion times of a workload in ms.
    CompletionMs(String),
    /// Query completion in ms.
    Query,
    /// Query completion of a workload in ms.
    QueryOf(String),
    /// For each query 100 if it is not complete at the end, else 0.
    QueryUnfinished,
    /// Mean over servers in ms, by query.
    Response,
    /// Fastest server in ms, by query.
    FastestResponse,
    /// Servers within the deadline, by query.
    InDeadline,
    /// Clock offsets of a workload in us.
    OffsetUs(String),
    /// Completion times of a workload's rounds or transactions in us.
    RoundUs(String),
    /// Requests, rounds or transactions of a workload completed per second: one number.
    PerSecond(String),
    /// Payload of a workload's completed messages, in Gb/s: one number.
    Gbps(String),
    /// A part of the reaction of a hybrid network's control loop, in ms: from the first data of a pair of hosts after
    /// it was idle to the first packet by a circuit that did not stand before.
    ReactionMs {
        /// The part of the reaction that counts.
        part: ReactionPart,
        /// The week of the loop.
        week: Span,
        /// How long before a week its demand is read.
        lead: Span,
    },
    /// Megabits per second by circuits to the host of that number, in each whole week of those from the first to before
    /// the second: one number.
    CircuitMbps {
        /// The number of the receiver.
        to: u32,
        /// The week of the loop.
        week: Span,
        /// The first week, and the first that does not count.
        weeks: (u64, u64),
    },
    /// Completion time over the one of idle links, of messages larger than `over` packets and of at most
    /// `up_to`.
    Slowdown {
        /// The size in packets that a message exceeds.
        over: u64,
        /// The largest size in packets; without it, there is none.
        #[serde(default = "no_limit")]
        up_to: u64,
    },
}

/// A part of the time from the first data of a pair of hosts to its first packet by a circuit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ReactionPart {
    /// All of the reaction.
    All,
    /// Until the demand was read of which the circuit's week was scheduled.
    Reading,
    /// From the beginning of that week until the circuit stood: nights, and days of other circuits.
    Night,
    /// From then until the packet had reached the circuit switch.
    Packet,
}

fn no_limit() -> u64 {
    u64::MAX
}

/// The statistic of the samples.
#[derive(Clone, Copy, PartialEq, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Of {
    Mean,
    /// The root of the mean square.
    Rms,
    /// The root of the mean square of the samples that are at most so large.
    RmsUpTo(f64),
    /// A percentile, as a share.
    Percentile(f64),
    P99,
    /// The mean over the smallest 1 %.
    WorstPercent,
    /// `sorted[ceil(0.99 (N - 1))]`: the order statistic above, where `P99` interpolates.
    P99Above,
    Max,
    /// How many percent are at most so large.
    PercentUpTo(f64),
    /// How many of a million are larger.
    PerMillionOver(f64),
}

impl Metric {
    /// Measures; `warmup` is cut from the beginning.
    pub fn measure(&self, outcome: &Outcome, warmup: Span) -> Option<Estimate> {
        let samples = samples(&self.of, outcome, warmup);
        match self.statistic {
            Of::Mean => Samples::new(vec![samples]).estimate(Statistic::Mean),
            Of::Rms => rms(samples),
            Of::RmsUpTo(most) => rms(samples.into_iter().filter(|&sample| sample <= most).collect()),
            Of::Percentile(share) => Samples::new(vec![samples]).estimate(Statistic::Percentile(share)),
            Of::P99 => Samples::new(vec![samples]).estimate(Statistic::Percentile(0.99)),
            Of::WorstPercent => worst_percent(samples),
            Of::P99Above => p99_above(samples),
            Of::Max => {
                let max = samples.iter().copied().max_by(f64::total_cmp)?;
                Some(Estimate::bare(max, samples.len() as u64))
            }
            Of::PercentUpTo(most) => of_so_many(&samples, 100.0, |sample| sample <= most),
            Of::PerMillionOver(most) => of_so_many(&samples, 1e6, |sample| sample > most),
        }
    }
}

pub(crate) fn samples(of: &Population, outcome: &Outcome, warmup: Span) -> Vec<f64> {
    let messages = |name: &str| {
        let workload = outcome.workloads.iter().position(|info| info.name == name);
        let counts = move |message: &&Message| {
            Some(usize::from(message.workload)) == workload && message.created.as_ps() >= warmup.as_ps()
        };
        outcome.messages.iter().filter(counts).filter_map(Message::latency)
    };
    let queries = |value: fn(&Query) -> Option<f64>| {
        let counts = |query: &&Query| query.created.as_ps() >= warmup.as_ps();
        outcome.queries.iter().filter(counts).filter_map(value).collect()
    };
    let number = |name: &str| outcome.workloads.iter().position(|info| info.name == name);
    match of {
        Population::OffsetUs(name) => {
            let of = |one: &&Observation| Some(usize::from(one.workload)) == number(name);
            outcome.observations.iter().filter(of).map(|one| one.value.as_us_f64()).collect()
        }
        Population::RoundUs(name) => {
            let of = |query: &&Query| Some(usize::from(query.workload)) == number(name);
            let time = |query: &Query| Some((query.completed? - query.created).as_us_f64());
            outcome.queries.iter().filter(of).filter_map(time).collect()
        }
        Population::PerSecond(name) => {
            let index = number(name);
            let of = |workload: u16| Some(usize::from(workload)) == index;
            let queries = outcome.queries.iter().filter(|query| of(query.workload));
            let mut done: Vec<Option<Time>> = queries.map(|query| query.completed).collect();
            if done.is_empty() {
                let messages = outcome.messages.iter().filter(|message| of(message.workload));
                done = messages.map(|message| message.completed).collect();
            }
            per_second(outcome, done.into_iter().map(|done| (done, 1.0)))
        }
        Population::Gbps(name) => {
            let index = number(name);
            let of = |message: &&Message| Some(usize::from(message.workload)) == index;
            let bits = |message: &Message| (message.completed, message.bytes as f64 * 8e-9);
            per_second(outcome, outcome.messages.iter().filter(of).map(bits))
        }
        Population::ReactionMs { part, week, lead } => reactions(outcome, *part, *week, *lead),
        Population::CircuitMbps { to, week, weeks } => {
            let weekly = |circuit: &&CircuitUse| {
                circuit.receiver.0 == *to && (weeks.0..weeks.1).contains(&circuit.week)
            };
            let bytes: u64 = outcome.circuits.iter().filter(weekly).map(|circuit| circuit.bytes).sum();
            let us = week.as_us_f64() * weeks.1.saturating_sub(weeks.0) as f64;
            vec![bytes as f64 * 8.0 / us]
        }
        Population::Queue => queue_delays(outcome.queues.first(), warmup),
        Population::QueueUntilDone => queue_delays_until_done(outcome, warmup),
        Population::QueueOf(name) => queue_delays(queue_of(outcome, name), warmup),
        Population::Throughput(name) => throughput(outcome, name).into_iter().collect(),
        Population::TimeUpTo(name, bytes) => {
            queue_of(outcome, name).and_then(|queue| percent_up_to(queue, *bytes)).into_iter().collect()
        }
        Population::BurstUs(name) => bursts(outcome, name, warmup).map(|burst| burst.us).collect(),
        Population::BurstPackets(name) => bursts(outcome, name, warmup).map(|burst| burst.packets).collect(),
        Population::PairBurstPackets(name) | Population::PairDataBurstPackets(name) => {
            let data_only = matches!(of, Population::PairDataBurstPackets(_));
            pair_bursts(outcome, name, warmup, data_only).into_iter().map(|packets| packets as f64).collect()
        }
        Population::AckRatioKb(name) => {
            ack_ratio(outcome, name).map(|bytes| bytes * 1e-3).into_iter().collect()
        }
        Population::PathCachePercent { queue, entries } => {
            path_cache_percent(outcome, queue, *entries).into_iter().collect()
        }
        Population::PathChangesPerMb { queue, gap } => {
            path_changes_per_mb(outcome, queue, *gap).into_iter().collect()
        }
        Population::MostUsedLink(tier) => link_use::most_used(outcome, tier).into_iter().collect(),
        Population::DayFilledPercent { queue, day } => days_filled_percent(outcome, queue, *day),
        Population::RecoveredPercent(name) => {
            let of = |message: &&Message| Some(usize::from(message.workload)) == number(name);
            let messages: Vec<&Message> = outcome.messages.iter().filter(of).collect();
            let recovered = messages
                .iter()
                .filter(|message| message.completed.is_none() || message.split.recovery > Span::ZERO);
            let percent = 100.0 * recovered.count() as f64 / messages.len() as f64;
            if messages.is_empty() { Vec::new() } else { vec![percent] }
        }
        Population::ProcessorPercent(host) => {
            host_stacks::processor_percent(outcome, *host).into_iter().collect()
        }
        Population::ProcessorNsPerKb(host) => {
            host_stacks::processor_ns_per_kb(outcome, *host).into_iter().collect()
        }
        Population::RingDrops => host_stacks::ring_drops(outcome).into_iter().collect(),
        Population::DeliveredGbpsEach(senders) => {
            host_stacks::delivered_gbps(outcome, *senders).into_iter().collect()
        }
        Population::Goodput => goodput(outcome),
        Population::QueueMaxKb(name) => {
            let from = queue_of(outcome, name).map_or(Time::ZERO, |queue| queue.from);
            let skipped =
                |queue: &Queue| (Time::ZERO + warmup).saturating_since(from).as_ps() / queue.every.as_ps();
            let most = |queue: &Queue| -> Vec<f64> {
                let counted = queue.max_bytes.iter().skip(skipped(queue) as usize);
                counted.map(|bytes| *bytes as f64 * 1e-3).collect()
            };
            queue_of(outcome, name).map(most).unwrap_or_default()
        }
        Population::CircuitPercent { sender, receiver } => circuits::percent(outcome, *sender, *receiver),
        Population::CircuitsFilledPercent => circuits::share(outcome, |summary| summary.filled),
        Population::CircuitsWastedPercent => circuits::share(outcome, |summary| summary.wasted),
        Population::PacketSwitchMb => vec![circuits::packet_switch_mb(outcome)],
        Population::DemandKnownKb => circuits::known_kb(outcome),
        Population::DemandSentPercent => circuits::known_sent_percent(outcome),
        Population::Retransmissions(name) => {
            let of = |connection: &&Connection| Some(usize::from(connection.workload)) == number(name);
            let sent_again =
                outcome.connections.iter().filter(of).map(|connection| connection.retransmissions);
            vec![sent_again.sum::<u64>() as f64]
        }
        Population::AllRetransmissions => vec![outcome.counters.retransmissions as f64],
        Population::AllTimeouts => vec![outcome.counters.timeouts as f64],
        Population::WindowCuts(name) => windows::cuts(outcome, number(name)),
        Population::WindowKeptPercent(name) => windows::kept_percent(outcome, number(name)),
        Population::WindowSegments(name, bytes) => {
            let segments = |window: f64| window / f64::from(*bytes);
            windows::samples(outcome, number(name)).into_iter().map(segments).collect()
        }
        Population::CompletionUs(name) => messages(name).map(Span::as_us_f64).collect(),
        Population::CompletionMs(name) => messages(name).map(Span::as_ms_f64).collect(),
        Population::Query => queries(|query| Some((query.completed? - query.created).as_ms_f64())),
        Population::QueryOf(name) => {
            let workload = number(name);
            let counts = |query: &&Query| {
                Some(usize::from(query.workload)) == workload && query.created.as_ps() >= warmup.as_ps()
            };
            let completion = |query: &Query| Some((query.completed? - query.created).as_ms_f64());
            outcome.queries.iter().filter(counts).filter_map(completion).collect()
        }
        Population::QueryUnfinished => {
            queries(|query| Some(if query.completed.is_none() { 100.0 } else { 0.0 }))
        }
        Population::Response => queries(|query| query.completed.map(|_| query.response_mean.as_ms_f64())),
        Population::FastestResponse => {
            queries(|query| query.completed.map(|_| query.response_min.as_ms_f64()))
        }
        Population::InDeadline => queries(|query| query.completed.map(|_| f64::from(query.in_deadline))),
        Population::Slowdown { over, up_to } => slowdowns(outcome, *over, *up_to),
    }
}

/// Returns a part of each reaction of a control loop, in ms.
fn reactions(outcome: &Outcome, part: ReactionPart, week: Span, lead: Span) -> Vec<f64> {
    let mut known = BTreeSet::new();
    let reaction = |circuit: &CircuitUse| {
        let (first, onset) = circuit.first.zip(circuit.onset)?;
        let is_new = known.insert((circuit.sender.0, circuit.receiver.0, onset));
        // A circuit that stood before had no reaction.
        if !is_new || circuit.from < onset {
            return None;
        }
        let ms = |time: Time| time.as_ps() as f64 * 1e-9;
        let begins = ms(Time::ZERO + week * circuit.week);
        Some(match part {
            ReactionPart::All => ms(first) - ms(onset),
            ReactionPart::Reading => begins - lead.as_ms_f64() - ms(onset),
            ReactionPart::Night => ms(circuit.from) - begins,
            ReactionPart::Packet => ms(first) - ms(circuit.from),
        })
    };
    outcome.circuits.iter().filter_map(reaction).collect()
}

fn queue_of<'a>(outcome: &'a Outcome, name: &str) -> Option<&'a Queue> {
    outcome.queues.iter().find(|queue| queue.name == name)
}

fn throughput(outcome: &Outcome, name: &str) -> Option<f64> {
    let queue = queue_of(outcome, name)?;
    let seconds = outcome.end.saturating_since(queue.from).as_secs_f64();
    (seconds > 0.0).then(|| queue.bytes as f64 * 8e-6 / seconds)
}

/// Computes in how many percent of the time at most `bytes` waited, rounded up to a bin.
fn percent_up_to(queue: &Queue, bytes: u64) -> Option<f64> {
    let time = |bins: &[u64]| bins.iter().sum::<u64>() as f64;
    let within = bytes.div_ceil(Queue::BIN_BYTES) as usize + 1;
    let all = time(&queue.time_at);
    (all > 0.0).then(|| 100.0 * time(&queue.time_at[..within.min(queue.time_at.len())]) / all)
}

/// Returns interval means of a watched queue as delay, without the empty intervals before the first packet and after
/// the last: the study's scripts trim those and keep empty ones between.
fn queue_delays(queue: Option<&Queue>, warmup: Span) -> Vec<f64> {
    queue.map_or_else(Vec::new, |queue| trimmed(all_queue_delays(queue, warmup)))
}

/// Returns interval means of the first watched queue as delay, until the last message was complete.
fn queue_delays_until_done(outcome: &Outcome, warmup: Span) -> Vec<f64> {
    let Some(queue) = outcome.queues.first() else { return Vec::new() };
    let done = outcome.messages.iter().filter_map(|message| message.completed).max();
    let from = queue.from.max(Time::ZERO + warmup);
    let busy = done.map_or(Span::ZERO, |done| done.saturating_since(from));
    let mut delays = all_queue_delays(queue, warmup);
    // An interval that the recorder did not keep was empty.
    delays.resize(busy.as_ps().div_ceil(queue.every.as_ps().max(1)) as usize, 0.0);
    delays
}

/// Returns interval means of a queue as delay in us.
fn all_queue_delays(queue: &Queue, warmup: Span) -> Vec<f64> {
    let us_per_byte = 8e6 / queue.rate.as_bps() as f64;
    let skipped = (warmup.as_ps() / queue.every.as_ps().max(1)) as usize;
    queue.mean_bytes.iter().skip(skipped).map(|bytes| bytes * us_per_byte).collect()
}

fn goodput(outcome: &Outcome) -> Vec<f64> {
    let mbps = |interval: &GoodputInterval| interval.sent.get() as f64 * 8e-6 / interval.length.as_secs_f64();
    trimmed(outcome.goodput.iter().map(mbps).collect())
}

/// Divides the sum of what was done from the warm-up to the last creation of any message by that time.
fn per_second(outcome: &Outcome, done: impl Iterator<Item = (Option<Time>, f64)>) -> Vec<f64> {
    let Some(end) = outcome.messages.iter().map(|message| message.created).max() else { return Vec::new() };
    let length = end.as_ps().saturating_sub(outcome.warmup.as_ps()) as f64 * 1e-12;
    let amount: f64 = done.filter(|(done, _)| done.is_some_and(|done| done <= end)).map(|(_, one)| one).sum();
    if length > 0.0 { vec![amount / length] } else { Vec::new() }
}

fn slowdowns(outcome: &Outcome, over: u64, up_to: u64) -> Vec<f64> {
    let is_of_class = |message: &&Message| {
        let packets = message.bytes.div_ceil(SEGMENT_BYTES);
        over < packets && packets <= up_to
    };
    let slowdown = |message: &Message| Some(message.latency()?.as_ps() as f64 / message.ideal.as_ps() as f64);
    outcome.messages.iter().filter(is_of_class).filter_map(slowdown).collect()
}

/// Payload of a full packet of 1500 B.
pub(crate) const SEGMENT_BYTES: u64 = 1460;

/// Computes the root of the mean square, with the interval of the mean square.
fn rms(samples: Vec<f64>) -> Option<Estimate> {
    let squares = samples.iter().map(|sample| sample * sample).collect();
    let Estimate { value, interval, samples } = Samples::new(vec![squares]).estimate(Statistic::Mean)?;
    let root = |i: Interval| Interval { low: i.low.max(0.0).sqrt(), high: i.high.max(0.0).sqrt() };
    Some(Estimate { value: value.sqrt(), interval: interval.map(root), samples })
}

/// Counts the samples that fit, of `whole` of them.
fn of_so_many(samples: &[f64], whole: f64, fits: impl Fn(f64) -> bool) -> Option<Estimate> {
    let fitting = samples.iter().filter(|&&sample| fits(sample)).count() as f64;
    let all = samples.len() as u64;
    (all > 0).then(|| Estimate::bare(whole * fitting / all as f64, all))
}

fn p99_above(samples: Vec<f64>) -> Option<Estimate> {
    let samples = Samples::new(vec![samples]);
    let estimate = samples.estimate(Statistic::Percentile(0.99))?;
    // 99 (N - 1) / 100 in whole numbers: no rounding decides which sample it is.
    let rank = (99 * (samples.len() - 1)).div_ceil(100);
    let value = samples.sorted()[rank];
    let around = |i: Interval| Interval { low: i.low.min(value), high: i.high.max(value) };
    Some(Estimate { value, interval: estimate.interval.map(around), samples: estimate.samples })
}

fn trimmed(values: Vec<f64>) -> Vec<f64> {
    let first = values.iter().position(|&value| value > 0.0).unwrap_or(values.len());
    let last = values.iter().rposition(|&value| value > 0.0).map_or(first, |last| last + 1);
    values[first..last].to_vec()
}

fn worst_percent(mut samples: Vec<f64>) -> Option<Estimate> {
    samples.sort_unstable_by(f64::total_cmp);
    let count = (samples.len() / 100).max(1).min(samples.len());
    let worst = Samples::new(vec![samples[..count].to_vec()]);
    let all = samples.len() as u64;
    worst.estimate(Statistic::Mean).map(|estimate| Estimate::bare(estimate.value, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_outer_zeros_are_cut() {
        assert_eq!(trimmed(vec![0.0, 0.0, 1.0, 0.0, 2.0, 0.0]), [1.0, 0.0, 2.0]);
        assert!(trimmed(vec![0.0; 3]).is_empty());
    }

    /// A pair that was idle until 8 ms has its first packet by the circuit of week 1, which stands from 15.5 ms on; one
    /// that finds a circuit standing has no reaction, and a second circuit of the same onset has none either.
    #[test]
    fn a_reaction_is_from_the_onset_to_the_first_circuit() {
        let at = |us: u64| Time::ZERO + Span::from_us(us);
        let circuit = |week, receiver, from, first: Option<u64>, onset: Option<u64>| CircuitUse {
            week,
            configuration: week,
            from: at(from),
            until: at(15_000 * (week + 1)),
            sender: plimsoll_fabric::net::HostId(0),
            receiver: plimsoll_fabric::net::HostId(receiver),
            first: first.map(at),
            onset: onset.map(at),
            packets: 10,
            bytes: 15_000,
            rate: plimsoll_units::Rate::from_mbps(180),
        };
        let circuits = vec![
            circuit(1, 1, 15_500, Some(15_600), Some(8_000)),
            circuit(2, 1, 30_500, Some(30_700), Some(8_000)),
            circuit(2, 2, 30_500, Some(36_000), Some(35_000)),
            circuit(3, 3, 45_500, None, None),
        ];
        let outcome = Outcome { circuits, ..Outcome::default() };
        let (week, lead) = (Span::from_ms(15), Span::from_ms(4));
        let parts = [ReactionPart::All, ReactionPart::Reading, ReactionPart::Night, ReactionPart::Packet];
        let parts =
            parts.map(|part| samples(&Population::ReactionMs { part, week, lead }, &outcome, Span::ZERO));
        let rounded = parts.map(|of| of.iter().map(|ms| (ms * 1_000.0).round() as i64).collect::<Vec<_>>());
        assert_eq!(rounded, [[7_600], [3_000], [500], [100]]);
        let to_1 = Population::CircuitMbps { to: 1, week, weeks: (1, 3) };
        assert_eq!(samples(&to_1, &outcome, Span::ZERO), [8.0]);
    }

    #[test]
    fn a_watched_queue_is_found_by_its_name() {
        let mut queue = synthetic_queue();
        queue.bytes = 1_250_000;
        queue.from = Time::ZERO + Span::from_secs(1);
        // 1 s at 0 B, at up to 1 kB and at up to 3 kB, 2 s at more.
        queue.time_at = vec![1, 1, 0, 1, 2];
        let outcome =
            Outcome { queues: vec![queue], end: Time::ZERO + Span::from_secs(3), ..Outcome::default() };
        let one = |of| samples(&of, &outcome, Span::ZERO);
        let receiver = || "receiver".to_owned();
        assert_eq!(one(Population::Throughput(receiver())), [5.0]);
        assert_eq!(one(Population::TimeUpTo(receiver(), 0)), [20.0]);
        assert_eq!(one(Population::TimeUpTo(receiver(), 2_500)), [60.0]);
        assert_eq!(one(Population::TimeUpTo(receiver(), 9_000)), [100.0]);
        assert!(one(Population::Throughput("sender".to_owned())).is_empty());
    }

    fn synthetic_queue() -> Queue {
        Queue {
            name: "receiver".to_owned(),
            port: "switch 0 -> h0".to_owned(),
            rate: plimsoll_units::Rate::from_bps(50_000_000),
            every: Span::from_ms(10),
            from: Time::ZERO,
            mean_bytes: Vec::new(),
            max_bytes: Vec::new(),
            time_at: Vec::new(),
            drops: 0,
            marks: 0,
            packets: 0,
            bytes: 0,
        }
    }

    #[test]
    fn the_99th_percentile_above_is_a_sample() {
        let value = |count: u32| p99_above((0..count).map(f64::from).collect()).map(|e| e.value);
        assert_eq!(value(0), None);
        assert_eq!(value(1), Some(0.0));
        assert_eq!(value(101), Some(99.0));
        assert_eq!(value(102), Some(100.0));
    }

    #[test]
    fn the_root_mean_square_weighs_the_large() {
        assert_eq!(rms(vec![3.0, 4.0, 5.0, 0.0]).map(|estimate| estimate.value), Some(12.5f64.sqrt()));
        assert_eq!(rms(Vec::new()), None);
    }

    #[test]
    fn the_worst_percent_is_the_mean_of_the_smallest() {
        let samples = (0..200).map(f64::from).collect();
        assert_eq!(worst_percent(samples).map(|estimate| estimate.value), Some(0.5));
    }
}
