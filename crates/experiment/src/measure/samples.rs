//! The samples of workloads and of watched queues.

use std::collections::BTreeMap;

use plimsoll_results::outcome::{
    ConnectionRecord, Delivered, GoodputInterval, IterationRecord, MessageRecord, Outcome, PriorityCounters,
    QueryRecord, QueueObservation, RankRecord, Supply,
};
use plimsoll_results::summary::one_run::OneRun;
use plimsoll_units::{Span, Time};

use super::asked::{LOSSLESS, QuantityQuestion, Value};

pub(super) fn time(of: &QuantityQuestion<'_>) -> Vec<f64> {
    let outcome = of.outcome;
    let observes = |info: &plimsoll_results::outcome::WorkloadInfo| info.observed.is_some();
    if of.workload().is_some_and(|number| observes(&outcome.workloads[number])) {
        let counts =
            |one: &&plimsoll_results::outcome::Observation| of.has(one.workload) && of.counts(one.begun);
        return outcome.observations.iter().filter(counts).map(|one| of.time(one.value)).collect();
    }
    if outcome.queries.iter().any(|query| of.has(query.workload)) {
        queries(of, |query| Some(of.time(query.completed? - query.created)))
    } else {
        message(of)
    }
}

pub(super) fn message(of: &QuantityQuestion<'_>) -> Vec<f64> {
    let counts = |message: &&MessageRecord| of.has(message.workload) && of.counts(message.created);
    let latencies = of.outcome.messages.iter().filter(counts).filter_map(MessageRecord::latency);
    latencies.map(|latency| of.time(latency)).collect()
}

pub(super) fn response(of: &QuantityQuestion<'_>) -> Vec<f64> {
    queries(of, |query| query.completed.map(|_| of.time(query.response_mean)))
}

pub(super) fn fastest(of: &QuantityQuestion<'_>) -> Vec<f64> {
    queries(of, |query| query.completed.map(|_| of.time(query.response_min)))
}

/// Returns how long after its first rank each iteration of a job ended, or each query after its fastest server.
pub(super) fn skew(of: &QuantityQuestion<'_>) -> Vec<f64> {
    queries(of, |query| {
        let took = query.completed? - query.created;
        Some(of.time(took.saturating_sub(query.response_min)))
    })
}

/// Returns the time of each iteration of a job over that with idle links.
pub(super) fn stretch(of: &QuantityQuestion<'_>) -> Vec<f64> {
    iterations(of, |iteration| iteration.took.as_ps() as f64 / iteration.ideal.as_ps().max(1) as f64)
}

pub(super) fn algbw(of: &QuantityQuestion<'_>) -> Vec<f64> {
    iterations(of, |iteration| iteration.bytes as f64 / iteration.took.as_ns_f64())
}

pub(super) fn busbw(of: &QuantityQuestion<'_>) -> Vec<f64> {
    iterations(of, |iteration| iteration.bus_bytes as f64 / iteration.took.as_ns_f64())
}

fn iterations(of: &QuantityQuestion<'_>, value: impl Fn(&IterationRecord) -> f64) -> Vec<f64> {
    let counts = |iteration: &&IterationRecord| of.has(iteration.workload);
    of.outcome.iterations.iter().filter(counts).map(value).collect()
}

/// Returns the exposed communication of each rank and iteration, of all groups or of the one that is named.
pub(super) fn exposed(of: &QuantityQuestion<'_>) -> Vec<f64> {
    let group = |workload: u16| match of.arguments.first() {
        None => Some(0),
        Some(Value::Name(name)) => {
            let groups = &of.outcome.workloads[usize::from(workload)].groups;
            groups.iter().position(|group| group == name)
        }
        Some(other) => unreachable!("an argument is {other:?}"),
    };
    let counts =
        |rank: &&RankRecord| of.has(rank.workload) && group(rank.workload) == Some(rank.group.into());
    of.outcome.ranks.iter().filter(counts).map(|rank| of.time(rank.exposed)).collect()
}

pub(super) fn in_deadline(of: &QuantityQuestion<'_>) -> Vec<f64> {
    queries(of, |query| query.completed.map(|_| f64::from(query.in_deadline)))
}

/// Returns the percentage of the parts of each complete query that its answer has.
pub(super) fn shown(of: &QuantityQuestion<'_>) -> Vec<f64> {
    let percent = |query: &QueryRecord| {
        query.completed?;
        (query.servers > 0).then(|| 100.0 * f64::from(query.in_deadline) / f64::from(query.servers))
    };
    queries(of, percent)
}

/// Returns the time from the creation of each complete query until a percentage of its parts had come.
pub(super) fn paint(of: &QuantityQuestion<'_>) -> Vec<f64> {
    let parts = arrivals(of.outcome);
    queries(of, |query| {
        let wanted = (u64::from(query.servers) * of.count(0)).div_ceil(100).max(1);
        let painted = *parts_of(&parts, query)?.get(wanted as usize - 1)?;
        Some(of.time(painted - query.created))
    })
}

/// Returns the age of the oldest part of each complete query when the query completes, since that part has come.
pub(super) fn age(of: &QuantityQuestion<'_>) -> Vec<f64> {
    let parts = arrivals(of.outcome);
    queries(of, |query| Some(of.time(query.completed? - *parts_of(&parts, query)?.first()?)))
}

/// The arrivals of the parts of each query in ascending order, by workload and number of the query.
type PartArrivals = BTreeMap<(u16, u64), Vec<Time>>;

fn arrivals(outcome: &Outcome) -> PartArrivals {
    let mut arrivals = PartArrivals::new();
    for message in &outcome.messages {
        if let (Some(query), Some(completed)) = (message.query, message.completed) {
            arrivals.entry((message.workload, query)).or_default().push(completed);
        }
    }
    arrivals.values_mut().for_each(|times| times.sort_unstable());
    arrivals
}

/// Returns the arrivals of the parts that a query's answer has: those until it was complete.
fn parts_of<'a>(arrivals: &'a PartArrivals, query: &QueryRecord) -> Option<&'a [Time]> {
    let (completed, times) = (query.completed?, arrivals.get(&(query.workload, query.index))?);
    Some(&times[..times.partition_point(|time| *time <= completed)])
}

/// Flows without an end are no messages, and do not count.
pub(super) fn unfinished(of: &QuantityQuestion<'_>) -> Option<f64> {
    let Outcome { workloads, queries, messages, .. } = of.outcome;
    let ends = |workload: u16| {
        workloads.get(usize::from(workload)).is_some_and(|info| info.supply != Supply::Endless)
    };
    let is_open = |workload, created, completed: Option<Time>| {
        of.has(workload) && ends(workload) && of.counts(created) && completed.is_none()
    };
    let queries =
        queries.iter().filter(|query| is_open(query.workload, query.created, query.completed)).count();
    let alone = messages.iter().filter(|message| message.query.is_none());
    let alone = alone.filter(|message| is_open(message.workload, message.created, message.completed)).count();
    (of.is_all() || of.workload().is_some()).then_some((queries + alone) as f64)
}

pub(super) fn unfinished_queries(of: &QuantityQuestion<'_>) -> Vec<f64> {
    queries(of, |query| Some(if query.completed.is_none() { 100.0 } else { 0.0 }))
}

fn queries(of: &QuantityQuestion<'_>, value: impl Fn(&QueryRecord) -> Option<f64>) -> Vec<f64> {
    let counts = |query: &&QueryRecord| of.has(query.workload) && of.counts(query.created);
    of.outcome.queries.iter().filter(counts).filter_map(value).collect()
}

pub(super) fn slowdown(of: &QuantityQuestion<'_>) -> Vec<f64> {
    of.messages().into_iter().filter_map(MessageRecord::slowdown).collect()
}

/// Returns for each message that did not complete the slowdown that it had reached when the run ended.
pub(super) fn slowdown_so_far(of: &QuantityQuestion<'_>) -> Vec<f64> {
    let end = of.outcome.end;
    let is_open = |message: &&MessageRecord| message.completed.is_none() && !message.ideal.is_zero();
    let so_far = |message: &MessageRecord| message.slowdown_of(end.saturating_since(message.created));
    of.messages().into_iter().filter(is_open).map(so_far).collect()
}

pub(super) fn deadline(of: &QuantityQuestion<'_>) -> Option<f64> {
    let late = OneRun::new(of.subject, of.outcome)?.late()?;
    (late.of > 0).then(|| 100.0 * (1.0 - late.missed as f64 / late.of as f64))
}

pub(super) fn goodput(of: &QuantityQuestion<'_>) -> Option<f64> {
    OneRun::new(of.subject, of.outcome)?.goodput_mbps()
}

pub(super) fn payload(of: &QuantityQuestion<'_>) -> Option<f64> {
    let bits = |message: &MessageRecord| (message.completed, message.bytes as f64 * 8e-9);
    let messages = of.outcome.messages.iter().filter(|message| of.has(message.workload));
    until_last_creation(of.outcome, messages.map(bits))
}

pub(super) fn per_second(of: &QuantityQuestion<'_>) -> Option<f64> {
    let queries = of.outcome.queries.iter().filter(|query| of.has(query.workload));
    let mut done: Vec<Option<Time>> = queries.map(|query| query.completed).collect();
    if done.is_empty() {
        let messages = of.outcome.messages.iter().filter(|message| of.has(message.workload));
        done = messages.map(|message| message.completed).collect();
    }
    until_last_creation(of.outcome, done.into_iter().map(|done| (done, 1.0)))
}

/// Divides the sum over the time from the warm-up to the last creation of any message by that time.
fn until_last_creation(outcome: &Outcome, done: impl Iterator<Item = (Option<Time>, f64)>) -> Option<f64> {
    let end = outcome.messages.iter().map(|message| message.created).max()?;
    let length = end.as_ps().saturating_sub(outcome.warmup.as_ps()) as f64 * 1e-12;
    let amount: f64 = done.filter(|(done, _)| done.is_some_and(|done| done <= end)).map(|(_, one)| one).sum();
    (length > 0.0).then(|| amount / length)
}

pub(super) fn recovered(of: &QuantityQuestion<'_>) -> Option<f64> {
    let messages: Vec<&MessageRecord> =
        of.outcome.messages.iter().filter(|message| of.has(message.workload)).collect();
    let waited =
        |message: &&&MessageRecord| message.completed.is_none() || message.split.recovery > Span::ZERO;
    let percent = 100.0 * messages.iter().filter(waited).count() as f64 / messages.len() as f64;
    (!messages.is_empty()).then_some(percent)
}

pub(super) fn retransmissions(of: &QuantityQuestion<'_>) -> Option<f64> {
    Some(of_connections(of, of.outcome.counters.retransmissions, |connection| connection.retransmissions))
}

pub(super) fn timeouts(of: &QuantityQuestion<'_>) -> Option<f64> {
    Some(of_connections(of, of.outcome.counters.timeouts, |connection| connection.timeouts))
}

/// Returns the sum over the connections of a workload, or the count `of_all` of the whole run.
fn of_connections(of: &QuantityQuestion<'_>, of_all: u64, count: fn(&ConnectionRecord) -> u64) -> f64 {
    if of.is_all() {
        return of_all as f64;
    }
    let connections = of.outcome.connections.iter().filter(|connection| of.has(connection.workload));
    connections.map(count).sum::<u64>() as f64
}

/// Without the empty intervals before the first packet and after the last: HULL's scripts trim those and keep empty
/// ones between.
pub(super) fn delay(of: &QuantityQuestion<'_>) -> Vec<f64> {
    of.queue().map_or_else(Vec::new, |queue| without_outer_zeros(all_queue_delays(of, queue)))
}

pub(super) fn delay_until_done(of: &QuantityQuestion<'_>) -> Vec<f64> {
    let Some(queue) = of.queue() else { return Vec::new() };
    let done = of.outcome.messages.iter().filter_map(|message| message.completed).max();
    let from = queue.from.max(Time::ZERO + of.warmup);
    let busy = done.map_or(Span::ZERO, |done| done.saturating_since(from));
    let mut delays = all_queue_delays(of, queue);
    // An interval that the recorder did not keep was empty.
    delays.resize(busy.as_ps().div_ceil(queue.every.as_ps().max(1)) as usize, 0.0);
    delays
}

/// Returns interval means of a queue as delay.
fn all_queue_delays(of: &QuantityQuestion<'_>, queue: &QueueObservation) -> Vec<f64> {
    let us_per_byte = 8e6 / queue.rate.as_bps() as f64;
    let skipped = (of.warmup.as_ps() / queue.every.as_ps().max(1)) as usize;
    queue.mean_bytes.iter().skip(skipped).map(|bytes| of.us(bytes * us_per_byte)).collect()
}

pub(super) fn throughput(of: &QuantityQuestion<'_>) -> Vec<f64> {
    if of.is_all() {
        let mbps =
            |interval: &GoodputInterval| interval.sent.get() as f64 * 8e-6 / interval.length.as_secs_f64();
        return without_outer_zeros(of.outcome.goodput.iter().map(mbps).collect());
    }
    if let Some(workload) = of.workload() {
        let Delivered { observed, bytes } = &of.outcome.delivered;
        let mbps = |bytes: &u64| *bytes as f64 * 8e-6 / observed.as_secs_f64();
        return bytes.get(workload).filter(|_| !observed.is_zero()).map(mbps).into_iter().collect();
    }
    let Some(queue) = of.queue() else { return Vec::new() };
    let seconds = of.outcome.end.saturating_since(queue.from).as_secs_f64();
    if seconds > 0.0 { vec![queue.bytes as f64 * 8e-6 / seconds] } else { Vec::new() }
}

pub(super) fn drops(of: &QuantityQuestion<'_>) -> Option<f64> {
    if of.subject == LOSSLESS {
        return of.outcome.lossless_drops().map(|drops| drops as f64);
    }
    Some(of.queue()?.drops as f64)
}

pub(super) fn marks(of: &QuantityQuestion<'_>) -> Option<f64> {
    Some(of.queue()?.marks as f64)
}

pub(super) fn trimmed(of: &QuantityQuestion<'_>) -> Option<f64> {
    Some(of_priorities(of, |counters| counters.trimmed))
}

pub(super) fn bounced(of: &QuantityQuestion<'_>) -> Option<f64> {
    Some(of_priorities(of, |counters| counters.bounced))
}

/// Returns the sum of a count over the priorities, of the ports that count by priority.
fn of_priorities(of: &QuantityQuestion<'_>, count: fn(&PriorityCounters) -> u64) -> f64 {
    of.outcome.counters.by_priority.iter().map(count).sum::<u64>() as f64
}

pub(super) fn time_up_to(of: &QuantityQuestion<'_>) -> Option<f64> {
    percent_up_to(of.queue()?, of.bytes(0))
}

/// Computes in how many percent of the time at most `bytes` waited, rounded up to a bin.
fn percent_up_to(queue: &QueueObservation, bytes: u64) -> Option<f64> {
    let time = |bins: &[u64]| bins.iter().sum::<u64>() as f64;
    let within = bytes.div_ceil(QueueObservation::BIN_BYTES) as usize + 1;
    let all = time(&queue.time_at);
    (all > 0.0).then(|| 100.0 * time(&queue.time_at[..within.min(queue.time_at.len())]) / all)
}

fn without_outer_zeros(values: Vec<f64>) -> Vec<f64> {
    let first = values.iter().position(|&value| value > 0.0).unwrap_or(values.len());
    let last = values.iter().rposition(|&value| value > 0.0).map_or(first, |last| last + 1);
    values[first..last].to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_outer_zeros_are_cut() {
        assert_eq!(without_outer_zeros(vec![0.0, 0.0, 1.0, 0.0, 2.0, 0.0]), [1.0, 0.0, 2.0]);
        assert!(without_outer_zeros(vec![0.0; 3]).is_empty());
    }
}
