//! The numbers that an objective needs of one run's outcome, and verdicts from several runs.
//!
//! *The rule.* Every run gives one number an objective: the share of its messages that were over the
//! limit (for a percentile: `p99 < 1ms` holds where less than 1 % are over), or its mean, or its
//! goodput; [`plimsoll_stats::verdict`] judges by them. A share is estimated far better than a percentile: it
//! has no jumps, and a message that never completed is simply over the limit. Neighbouring messages of one run
//! are not independent, but runs with different seeds are.

use plimsoll_experiment::slo::{Metric, Slo};
use plimsoll_results::outcome::Outcome;
use plimsoll_results::stats::{self, Estimate, Interval};
use plimsoll_results::summary::one_run::OneRun;
use plimsoll_stats::search::{Objectives, Search};
use plimsoll_stats::verdict::{self, MessageShare, Verdict};
use serde::{Deserialize, Serialize};

/// The measurements of one run, for every objective.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Run {
    /// The digest of the run's outcome, in hexadecimal digits.
    pub digest: String,
    /// A workload of which more than one message in a hundred was still open when the run ended, long
    /// after the last was sent: the network does not carry this load.
    pub undrained: Option<String>,
    /// The measurements of each objective, in their order.
    pub samples: Vec<SloSample>,
    /// The names of the components of a completion time.
    pub parts: Vec<String>,
    /// Facts that the reader must know before trusting the run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The measurements of one run for one objective.
#[derive(Clone, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct SloSample {
    /// The number of messages (or responses of queries) that count.
    pub messages: u64,
    /// The number of them that were over the limit, or missed their deadline.
    pub over: u64,
    /// Mean completion time in us, or goodput in Mb/s, if the objective limits one of these.
    pub value: Option<f64>,
    /// Completion times: how many in each `bin`, in ascending order; open messages are in `OPEN`.
    pub bins: Vec<(i32, u64)>,
    /// The number that is compared with the limit, were all messages as fast as on idle links: above 1 no load meets
    /// the objective. `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_strain: Option<f64>,
    /// Mean of each part of the completion time in us over the messages that the objective is about: the slowest 1 %
    /// for a p99, all for a mean.
    pub parts_us: Vec<f64>,
}

/// The share of a workload's messages that may be open at the end of a run that drains.
const OPEN_TOLERATED: f64 = 0.01;
/// The number of messages that a valid `max` needs: then, with 95 % probability, at most
/// one in a thousand is over the limit (the rule of three).
const MAX_MESSAGES: u64 = 3_000;
/// The strain of a run whose number differs from the one that it has to be; above 1, so that it violates the objective.
const DIFFERS: f64 = 2.0;
/// The number of runs with messages that a verdict needs.
const SPEAKING: usize = 4;
/// The probability that a verdict about all loads, which ends a search, is not chance.
const SURE: f64 = 0.999;
/// The bin of messages that did not complete.
const OPEN: i32 = i32::MAX;
/// There are two bins to a per cent, so a percentile from them is right to a quarter of a per cent.
const BINS_PER_E: f64 = 200.0;

/// Returns the bin of a completion time in us.
fn bin(us: f64) -> i32 {
    (us.max(1e-6).ln() * BINS_PER_E).floor() as i32
}

/// Returns the middle of a bin in us.
fn middle(bin: i32) -> f64 {
    if bin == OPEN { f64::INFINITY } else { ((f64::from(bin) + 0.5) / BINS_PER_E).exp() }
}

impl Run {
    /// Measures every objective in the outcome of a run.
    pub fn of(outcome: &Outcome, slos: &[Slo], endless: bool) -> Run {
        let mut parts = Vec::new();
        let mut undrained = None;
        for workload in &outcome.workloads {
            let Some(observed) = OneRun::new(&workload.name, outcome) else { continue };
            let (open, done) = (observed.open_us().len() as f64, observed.completion_us().len() as f64);
            // Beside endless flows a run ends at its duration, and the last messages are still open.
            if !endless && open > OPEN_TOLERATED * (open + done) {
                undrained.get_or_insert_with(|| workload.name.clone());
            }
            parts = observed.part_names();
        }
        let samples = slos.iter().map(|slo| SloSample::of(outcome, slo)).collect();
        let digest = plimsoll_results::Digest::of(outcome).to_string();
        Run { digest, undrained, samples, parts, warnings: outcome.warnings.clone() }
    }
}

impl SloSample {
    fn of(outcome: &Outcome, slo: &Slo) -> SloSample {
        if matches!(slo.metric, Metric::Number | Metric::Exact) {
            let Some(estimate) = slo.number(outcome) else {
                return SloSample::default();
            };
            return SloSample {
                messages: estimate.samples,
                value: Some(estimate.value),
                ..SloSample::default()
            };
        }
        let Some(observed) = OneRun::new(&slo.workload, outcome) else { return SloSample::default() };
        let done = observed.completion_us();
        if slo.metric == Metric::Deadline {
            let late = observed.late().unwrap_or_default();
            let parts_us = observed.slowest_us(1.0 - slo.limit).unwrap_or_default();
            let idle_strain = idle_strain(slo, &observed);
            return SloSample {
                messages: late.of,
                over: late.missed,
                idle_strain,
                parts_us,
                ..SloSample::default()
            };
        }
        if slo.metric == Metric::Goodput {
            let (value, messages) = (observed.goodput_mbps(), done.len() as u64);
            let parts_us = observed.slowest_us(1.0).unwrap_or_default();
            return SloSample { messages, value, parts_us, ..SloSample::default() };
        }
        let is_over = |us: f64| slo.is_over(us);
        // Whether a younger message would have been in time cannot be known.
        let open = observed.open_us().into_iter().filter(|&us| is_over(us)).count() as u64;
        let tail = match slo.metric {
            Metric::Percentile(share) => 1.0 - share,
            Metric::Max => 0.0,
            _ => 1.0,
        };
        let mut bins = std::collections::BTreeMap::<i32, u64>::new();
        done.iter().for_each(|&us| *bins.entry(bin(us)).or_default() += 1);
        if open > 0 {
            bins.insert(OPEN, open);
        }
        SloSample {
            messages: done.len() as u64 + open,
            over: done.iter().filter(|&&us| is_over(us)).count() as u64 + open,
            value: if slo.metric == Metric::Mean { stats::mean(&done) } else { None },
            bins: bins.into_iter().collect(),
            idle_strain: idle_strain(slo, &observed),
            parts_us: observed.slowest_us(tail).unwrap_or_default(),
        }
    }

    /// The number that is compared with the limit: above 1 violates the objective, of any kind.
    fn strain(&self, slo: &Slo) -> Option<f64> {
        match slo.metric {
            Metric::Goodput => Some(slo.limit / self.value?.max(f64::MIN_POSITIVE)),
            Metric::Number if slo.operator.is_floor() => Some(slo.limit / self.value?.max(f64::MIN_POSITIVE)),
            Metric::Mean | Metric::Number => Some(self.value? / slo.limit),
            Metric::Max => Some(2.0 * self.over as f64),
            Metric::Exact => Some(if slo.operator.holds(self.value?, slo.limit) { 0.0 } else { DIFFERS }),
            Metric::Percentile(_) | Metric::Deadline => {
                let share = self.over as f64 / (self.messages > 0).then_some(self.messages as f64)?;
                Some(share / slo.budget()?)
            }
        }
    }
}

/// Returns the value of [`SloSample::strain`] if every message took its time on idle links.
fn idle_strain(slo: &Slo, observed: &OneRun<'_>) -> Option<f64> {
    let idle = observed.idle_us()?;
    let is_over = |us: &f64| match slo.metric {
        Metric::Deadline => observed.deadline_us().is_some_and(|deadline| *us >= deadline),
        _ => slo.is_over(*us),
    };
    let over = idle.iter().filter(|us| is_over(us)).count() as u64;
    let messages = idle.len() as u64;
    SloSample { messages, over, value: stats::mean(&idle), ..SloSample::default() }.strain(slo)
}

/// Returns the first objective that no load can meet, judged as a load is, by the runs of all loads with all messages
/// as fast as on idle links. Sizes are drawn, so a few runs decide only if chance is excluded ([`SURE`]).
pub(crate) fn slow_when_idle<O: Objectives<Run = Run>>(search: &Search<O>, slos: &[Slo]) -> Option<usize> {
    let runs: Vec<&Run> = search.loads().flat_map(|(_, _, runs)| runs).collect();
    (0..slos.len()).find(|&number| {
        let of_run = |run: &&Run| {
            let sample = run.samples.get(number)?;
            Some((sample.messages, sample.idle_strain?))
        };
        let idle: Vec<(u64, f64)> = runs.iter().filter_map(of_run).collect();
        let strains: Vec<f64> = idle.iter().map(|(_, strain)| *strain).collect();
        let share = slos[number].budget().map(|allowed| {
            let over = idle.iter().map(|(messages, strain)| strain * allowed * *messages as f64).sum::<f64>();
            MessageShare {
                messages: idle.iter().map(|(messages, _)| messages).sum(),
                over: over.round() as u64,
                allowed,
            }
        });
        strains.len() >= SPEAKING && verdict::judge(&strains, share, SURE) == Verdict::Breaks
    })
}

/// Judges an objective by runs that differ in their seed. `level` is the probability that a verdict
/// other than [`Verdict::Open`] is not chance.
pub fn judge(slo: &Slo, samples: &[&SloSample], level: f64) -> Verdict {
    let (messages, over) = totals(samples);
    if slo.metric == Metric::Max {
        return match (over, messages) {
            (1.., _) => Verdict::Breaks,
            (0, MAX_MESSAGES..) => Verdict::Keeps,
            _ => Verdict::Open,
        };
    }
    let strains = strains(slo, samples);
    if slo.metric == Metric::Exact && strains.contains(&DIFFERS) {
        return Verdict::Breaks;
    }
    // At a low load a run may have no message of a rare workload; the other runs are judged.
    let enough = strains.len() >= SPEAKING.min(samples.len());
    if !enough {
        return Verdict::Open;
    }
    let share = slo.budget().map(|allowed| MessageShare { messages, over, allowed });
    verdict::judge(&strains, share, level)
}

/// Returns whether runs that meet an objective do so for certain ([`verdict::confirms`]). Only shares have rare runs
/// that are far over a limit, and counts rare runs that differ from theirs.
pub fn confirms(slo: &Slo, samples: &[&SloSample], level: f64) -> bool {
    let has_rare_runs = slo.metric == Metric::Exact || slo.budget().is_some();
    !has_rare_runs || verdict::confirms(&strains(slo, samples), level)
}

/// Returns whether `most` runs may still decide an objective that these leave open ([`verdict::may_decide`]).
pub fn may_decide(slo: &Slo, samples: &[&SloSample], most: u32, level: f64) -> bool {
    // The longest of all messages is known ever better with each run.
    slo.metric == Metric::Max || verdict::may_decide(&strains(slo, samples), most, level)
}

fn strains(slo: &Slo, samples: &[&SloSample]) -> Vec<f64> {
    samples.iter().filter_map(|sample| sample.strain(slo)).collect()
}

fn totals(samples: &[&SloSample]) -> (u64, u64) {
    samples.iter().fold((0, 0), |(of, over), sample| (of + sample.messages, over + sample.over))
}

/// Computes how close an objective is to its limit: the mean over runs of 'measured over allowed' (shares of
/// messages over the limit for a percentile). 1 is the limit, more violates it. `None` where nothing
/// completed.
pub fn strain(slo: &Slo, samples: &[&SloSample]) -> Option<f64> {
    stats::mean(&strains(slo, samples))
}

/// Estimates the number that the objective names, with its 95 % interval over runs, in its own unit (us, Mb/s, or
/// a share). `None` where there is none, such as a percentile that lies among open messages.
pub fn estimate(slo: &Slo, samples: &[&SloSample]) -> Option<Estimate> {
    let (messages, over) = totals(samples);
    match slo.metric {
        Metric::Mean | Metric::Goodput | Metric::Number | Metric::Exact => {
            let values: Vec<f64> = samples.iter().filter_map(|sample| sample.value).collect();
            let interval = stats::mean_interval(&values, stats::LEVEL);
            Some(Estimate {
                value: stats::mean(&values)?,
                interval: interval.map(positive),
                samples: messages,
            })
        }
        Metric::Deadline => {
            let met = |sample: &&SloSample| 1.0 - sample.over as f64 / sample.messages.max(1) as f64;
            let values: Vec<f64> = samples.iter().map(met).collect();
            let interval = stats::mean_interval(&values, stats::LEVEL);
            let value = 1.0 - over as f64 / messages.max(1) as f64;
            Some(Estimate { value, interval: interval.map(positive), samples: messages })
        }
        Metric::Max => {
            let last = samples.iter().filter_map(|sample| sample.bins.last()).map(|(bin, _)| *bin).max()?;
            Some(middle(last)).filter(|us| us.is_finite()).map(|us| Estimate::bare(us, messages))
        }
        Metric::Percentile(share) => percentile(samples, share, messages),
    }
}

fn positive(interval: Interval) -> Interval {
    Interval { low: interval.low.max(0.0), high: interval.high }
}

/// Estimates the pooled percentile; its interval is that of 'is it below?' over runs, turned back into ranks.
fn percentile(samples: &[&SloSample], share: f64, messages: u64) -> Option<Estimate> {
    let mut pooled = std::collections::BTreeMap::<i32, u64>::new();
    for (bin, count) in samples.iter().flat_map(|sample| &sample.bins) {
        *pooled.entry(*bin).or_default() += count;
    }
    let at = |share: f64| {
        let wanted = share.clamp(0.0, 1.0) * messages as f64;
        let mut below = 0.0;
        let found = pooled.iter().find(|(_, count)| {
            below += **count as f64;
            below >= wanted
        });
        found.map(|(bin, _)| *bin)
    };
    let bin = at(share)?;
    let below: Vec<f64> = samples
        .iter()
        .filter(|sample| sample.messages > 0)
        .map(|sample| {
            let count: u64 = sample.bins.iter().filter(|(b, _)| *b <= bin).map(|(_, count)| count).sum();
            count as f64 / sample.messages as f64
        })
        .collect();
    let value = Some(middle(bin)).filter(|us| us.is_finite())?;
    let half =
        stats::mean_interval(&below, stats::LEVEL).map(|interval| (interval.high - interval.low) / 2.0);
    let interval = half.and_then(|half| {
        let (low, high) = (middle(at(share - half)?), middle(at(share + half)?));
        // Beyond the largest sample, or among open messages, the interval has no upper end.
        (share + half < 1.0 && high.is_finite()).then_some(Interval { low, high })
    });
    Some(Estimate { value, interval, samples: messages })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn slo(text: &str) -> Slo {
        Slo::parse(text).unwrap()
    }

    fn shares(over: &[u64], of: u64) -> Vec<SloSample> {
        over.iter().map(|&over| SloSample { messages: of, over, ..SloSample::default() }).collect()
    }

    fn judged(slo: &Slo, samples: &[SloSample]) -> Verdict {
        judge(slo, &samples.iter().collect::<Vec<_>>(), 0.99)
    }

    #[test]
    fn a_percentile_is_judged_by_the_share_over_its_limit() {
        let p99 = slo("p99(w) < 1ms");
        for (over, of, verdict) in [
            (&[50, 52, 48, 51][..], 10_000, Verdict::Keeps),
            (&[150, 152, 148, 151], 10_000, Verdict::Breaks),
            (&[50, 250, 48, 51], 10_000, Verdict::Open),
            // None of 400 may be over by chance where one in a hundred is; none of 4,000 may not.
            (&[0, 0, 0, 0], 100, Verdict::Open),
            (&[0, 0, 0, 0], 1_000, Verdict::Keeps),
            (&[0], 100_000, Verdict::Open),
        ] {
            assert_eq!(judged(&p99, &shares(over, of)), verdict, "{over:?} of {of}");
        }
    }

    #[test]
    fn a_mean_is_judged_by_the_spread_between_runs() {
        let mean = slo("mean(w) < 1ms");
        let samples = |values: &[f64]| -> Vec<SloSample> {
            values
                .iter()
                .map(|&us| SloSample { messages: 9, value: Some(us), ..SloSample::default() })
                .collect()
        };
        assert_eq!(judged(&mean, &samples(&[900.0, 905.0, 895.0, 900.0])), Verdict::Keeps);
        assert_eq!(judged(&mean, &samples(&[1100.0, 1105.0, 1095.0, 1100.0])), Verdict::Breaks);
        assert_eq!(judged(&mean, &samples(&[700.0, 1200.0, 900.0, 1000.0])), Verdict::Open);
        let mut with_silent = samples(&[900.0, 905.0, 895.0]);
        with_silent.push(SloSample::default());
        assert_eq!(judged(&mean, &with_silent), Verdict::Open, "three runs speak");
        with_silent.extend(samples(&[902.0]));
        assert_eq!(judged(&mean, &with_silent), Verdict::Keeps);
        let goodput = slo("goodput(w) > 800Mbps");
        assert_eq!(judged(&goodput, &samples(&[900.0, 905.0, 895.0, 900.0])), Verdict::Keeps);
        assert_eq!(judged(&goodput, &samples(&[700.0, 705.0, 695.0, 700.0])), Verdict::Breaks);
    }

    #[test]
    fn a_maximum_speaks_of_the_messages_that_it_saw() {
        let max = slo("max(w) < 1ms");
        assert_eq!(judged(&max, &shares(&[0, 0], 1_000)), Verdict::Open);
        assert_eq!(judged(&max, &shares(&[0, 0], 2_000)), Verdict::Keeps);
        assert_eq!(judged(&max, &shares(&[0, 1], 2_000)), Verdict::Breaks);
    }

    #[test]
    fn a_pooled_percentile_is_right_to_a_quarter_of_a_per_cent() {
        let bins: Vec<(i32, u64)> = (1..=10_000).map(|i| (bin(f64::from(i)), 1)).collect();
        let samples: Vec<SloSample> = (0..4)
            .map(|_| SloSample { messages: 10_000, bins: bins.clone(), ..SloSample::default() })
            .collect();
        let p99 = estimate(&slo("p99(w) < 1ms"), &samples.iter().collect::<Vec<_>>()).unwrap();
        assert!((p99.value / 9_900.0 - 1.0).abs() < 0.0026, "{p99:?}");
    }

    #[test]
    fn a_percentile_among_open_messages_is_none() {
        let open =
            SloSample { messages: 100, over: 2, bins: vec![(0, 98), (OPEN, 2)], ..SloSample::default() };
        assert_eq!(estimate(&slo("p99(w) < 1ms"), &[&open, &open]), None);
    }
}
