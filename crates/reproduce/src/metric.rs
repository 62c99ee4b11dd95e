//! The measurements of the HULL study, computed from an [`Outcome`] as its scripts computed them.

use plimsoll_results::outcome::{GoodputInterval, Message, Outcome, Query};
use plimsoll_results::stats::{Estimate, Samples, Statistic};
use plimsoll_units::Span;

/// What is measured: a population, and a statistic of it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Metric {
    /// The published column.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    pub(crate) of: Population,
    pub(crate) statistic: Of,
}

/// Which samples.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Population {
    /// Means over intervals of the watched queue, as delay in us.
    Queue,
    /// Megabits per second sent for the first time, by interval.
    Goodput,
    /// Completion times of a workload in us.
    CompletionUs(&'static str),
    /// Completion times of a workload in ms.
    CompletionMs(&'static str),
    /// Query completion in ms.
    Query,
    /// Mean over servers in ms, by query.
    Response,
    /// Fastest server in ms, by query.
    FastestResponse,
    /// Servers within the deadline, by query.
    InDeadline,
}

/// Which statistic of them.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(crate) enum Of {
    Mean,
    P99,
    /// The mean over the smallest 1 %.
    WorstPercent,
}

impl Metric {
    pub(crate) const fn new(name: &'static str, unit: &'static str, of: Population, statistic: Of) -> Metric {
        Metric { name, unit, of, statistic }
    }

    /// Measures; `warmup` is cut from the beginning.
    pub fn measure(&self, outcome: &Outcome, warmup: Span) -> Option<Estimate> {
        let samples = samples(self.of, outcome, warmup);
        match self.statistic {
            Of::Mean => Samples::new(vec![samples]).estimate(Statistic::Mean),
            Of::P99 => Samples::new(vec![samples]).estimate(Statistic::Percentile(0.99)),
            Of::WorstPercent => worst_percent(samples),
        }
    }
}

fn samples(of: Population, outcome: &Outcome, warmup: Span) -> Vec<f64> {
    let messages = |name: &'static str| {
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
    match of {
        Population::Queue => queue_delays(outcome, warmup),
        Population::Goodput => goodput(outcome),
        Population::CompletionUs(name) => messages(name).map(Span::as_us_f64).collect(),
        Population::CompletionMs(name) => messages(name).map(Span::as_ms_f64).collect(),
        Population::Query => queries(|query| Some((query.completed? - query.created).as_ms_f64())),
        Population::Response => queries(|query| query.completed.map(|_| query.response_mean.as_ms_f64())),
        Population::FastestResponse => {
            queries(|query| query.completed.map(|_| query.response_min.as_ms_f64()))
        }
        Population::InDeadline => queries(|query| query.completed.map(|_| f64::from(query.in_deadline))),
    }
}

/// Interval means of the first watched queue as delay, without the empty intervals before the first
/// packet and after the last: the study's scripts trim those and keep empty ones between.
fn queue_delays(outcome: &Outcome, warmup: Span) -> Vec<f64> {
    let Some(queue) = outcome.queues.first() else { return Vec::new() };
    let us_per_byte = 8e6 / queue.rate.as_bps() as f64;
    let skipped = (warmup.as_ps() / queue.every.as_ps().max(1)) as usize;
    let delays = queue.mean_bytes.iter().skip(skipped).map(|bytes| bytes * us_per_byte);
    trimmed(delays.collect())
}

fn goodput(outcome: &Outcome) -> Vec<f64> {
    let mbps = |interval: &GoodputInterval| interval.sent.get() as f64 * 8e-6 / interval.length.as_secs_f64();
    trimmed(outcome.goodput.iter().map(mbps).collect())
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

    #[test]
    fn the_worst_percent_is_the_mean_of_the_smallest() {
        let samples = (0..200).map(f64::from).collect();
        assert_eq!(worst_percent(samples).map(|estimate| estimate.value), Some(0.5));
    }
}
