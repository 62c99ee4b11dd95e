//! The first stage: a few short runs of every candidate at one load, paired by their seeds.

use std::collections::BTreeMap;

use plimsoll_experiment::{Metric, Slo};
use plimsoll_line::measure::{Run, SloSample, estimate, judge, strain};
use plimsoll_stats::verdict::Verdict;
use plimsoll_stats::{Interval, LEVEL, mean, mean_interval};

use crate::advice::CandidateCost;

/// The strain of a run that the network does not carry, or that has no message to judge.
const OVERLOADED: f64 = 1_000.0;

/// The runs of one variant at the load of the trials, by replicate.
#[derive(Clone, PartialEq, Debug, Default)]
pub(crate) struct Trials(pub(crate) Vec<Option<Run>>);

/// The number of a violated objective, in us.
pub(crate) struct Violated {
    pub(crate) us: f64,
    /// The part of it that no candidate changes, with the largest component of that part.
    pub(crate) fixed: (f64, &'static str),
    /// The largest component of the latency.
    pub(crate) largest: (String, f64),
}

/// The components of a latency that no candidate changes: they depend on links, sizes and servers.
const FIXED: [&str; 3] = ["serialisation", "propagation", "service"];

impl Trials {
    /// Returns how close a run is to its limits, by the objective that is closest.
    fn score(run: &Run, slos: &[Slo]) -> f64 {
        if run.undrained.is_some() {
            return OVERLOADED;
        }
        let strains = slos.iter().zip(&run.samples).map(|(slo, sample)| strain(slo, &[sample]));
        strains.map(|strain| strain.unwrap_or(OVERLOADED).min(OVERLOADED)).fold(0.0, f64::max)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.iter().flatten().count()
    }

    /// Returns the mean of the runs' distances from the limit.
    pub(crate) fn strain(&self, slos: &[Slo]) -> Option<f64> {
        mean(&self.0.iter().flatten().map(|run| Trials::score(run, slos)).collect::<Vec<f64>>())
    }

    fn pairs<'a>(&'a self, other: &'a Trials) -> impl Iterator<Item = (&'a Run, &'a Run)> {
        self.0.iter().zip(&other.0).filter_map(|(mine, theirs)| Some((mine.as_ref()?, theirs.as_ref()?)))
    }

    /// Returns the paired difference from `other`, with its interval where there are two pairs.
    pub(crate) fn change(&self, other: &Trials, slos: &[Slo]) -> Option<(f64, Option<Interval>)> {
        let differences: Vec<f64> = self
            .pairs(other)
            .map(|(mine, theirs)| Trials::score(mine, slos) - Trials::score(theirs, slos))
            .collect();
        Some((mean(&differences)?, mean_interval(&differences, LEVEL)))
    }

    /// Returns whether the runs equal the runs of `other`, event by event.
    pub(crate) fn is_same(&self, other: &Trials) -> bool {
        let mut pairs = self.pairs(other).peekable();
        pairs.peek().is_some() && pairs.all(|(mine, theirs)| mine.digest == theirs.digest)
    }

    /// Returns whether `best` is significantly better, and this variant violates an objective.
    pub(crate) fn is_clearly_worse(&self, best: &Trials, slos: &[Slo]) -> bool {
        let is_violated = self.strain(slos).is_some_and(|strain| strain > 1.0);
        // Runs that are all overloaded to the same degree have an interval without width.
        let change = self.change(best, slos).and_then(|(_, interval)| interval);
        is_violated && change.is_some_and(|interval| interval.low > 0.0)
    }

    /// Judges all objectives: met, violated, or undecided.
    pub(crate) fn verdict(&self, slos: &[Slo]) -> Verdict {
        let runs: Vec<&Run> = self.0.iter().flatten().collect();
        if runs.is_empty() {
            return Verdict::Open;
        }
        if runs.iter().any(|run| run.undrained.is_some()) {
            return Verdict::Breaks;
        }
        let verdicts: Vec<Verdict> = (0..slos.len())
            .map(|number| {
                let samples: Vec<&SloSample> =
                    runs.iter().filter_map(|run| run.samples.get(number)).collect();
                judge(&slos[number], &samples, LEVEL)
            })
            .collect();
        if verdicts.contains(&Verdict::Breaks) {
            Verdict::Breaks
        } else if verdicts.iter().all(|verdict| *verdict == Verdict::Keeps) {
            Verdict::Keeps
        } else {
            Verdict::Open
        }
    }

    /// Returns the number of a violated objective about times, where it has one; `number` is that of the objective.
    pub(crate) fn violated(&self, number: usize, slo: &Slo) -> Option<Violated> {
        let is_time = matches!(slo.metric, Metric::Mean | Metric::Percentile(_) | Metric::Max);
        let runs: Vec<(&Run, &SloSample)> =
            self.0.iter().flatten().filter_map(|run| Some((run, run.samples.get(number)?))).collect();
        let samples: Vec<&SloSample> = runs.iter().map(|(_, sample)| *sample).collect();
        if !is_time || judge(slo, &samples, LEVEL) != Verdict::Breaks {
            return None;
        }
        let us = estimate(slo, &samples)?.value;
        let mut parts: BTreeMap<&str, f64> = BTreeMap::new();
        for (name, part) in runs.iter().flat_map(|(run, sample)| run.parts.iter().zip(&sample.parts_us)) {
            *parts.entry(name).or_default() += part;
        }
        let all: f64 = parts.values().sum();
        // The parts are means of the slowest messages, of which the number has the same shares.
        let share = |part: f64| us * part / all.max(f64::MIN_POSITIVE);
        let part = |name: &&str| parts.get(*name).copied().unwrap_or(0.0);
        let fixed = FIXED.iter().map(part).sum();
        let most = FIXED.into_iter().max_by(|one, other| part(one).total_cmp(&part(other)))?;
        let (name, largest) = parts.iter().max_by(|one, other| one.1.total_cmp(other.1))?;
        Some(Violated { us, fixed: (share(fixed), most), largest: ((*name).to_owned(), share(*largest)) })
    }

    /// Returns the factors by which numbers of other workloads change from `base`. The samples of `others` follow those
    /// of the objectives.
    pub(crate) fn paid(&self, base: &Trials, slos: &[Slo], others: &[Slo]) -> Vec<CandidateCost> {
        let cost = |(number, other): (usize, &Slo)| {
            let value = |run: &Run| run.samples.get(slos.len() + number)?.value.filter(|value| *value > 0.0);
            let factors: Vec<f64> =
                self.pairs(base).filter_map(|(mine, base)| Some(value(mine)? / value(base)?)).collect();
            let interval = mean_interval(&factors, LEVEL);
            Some(CandidateCost { measure: other.subject().to_owned(), factor: mean(&factors)?, interval })
        };
        others.iter().enumerate().filter_map(cost).collect()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn of(shares: &[u64]) -> Trials {
        let run = |over: &u64| {
            let sample = SloSample { messages: 10_000, over: *over, ..SloSample::default() };
            Some(Run { digest: over.to_string(), samples: vec![sample], ..Run::default() })
        };
        Trials(shares.iter().map(run).collect())
    }

    #[test]
    fn pairs_decide_where_single_runs_do_not() {
        let slos = [Slo::parse("p99(w) < 1ms").unwrap()];
        // Seeds differ more than variants do: 100 messages over the limit are a strain of 1.
        let (best, worse) = (of(&[200, 900, 400, 1_600]), of(&[260, 970, 455, 1_665]));
        assert!(worse.is_clearly_worse(&best, &slos));
        assert!(!best.is_clearly_worse(&worse, &slos));
        let (change, interval) = worse.change(&best, &slos).unwrap();
        assert!((change - 0.625).abs() < 1e-9 && interval.unwrap().low > 0.4);
        // What meets its objectives is not dropped, however much better another is.
        assert!(!of(&[50, 51, 52, 50]).is_clearly_worse(&of(&[1, 1, 2, 1]), &slos));
        // One pair decides nothing.
        assert!(!of(&[900]).is_clearly_worse(&of(&[1]), &slos));
        assert!(best.is_same(&best) && !best.is_same(&worse));
    }

    #[test]
    fn runs_that_are_not_carried_are_far_over_the_limit() {
        let slos = [Slo::parse("p99(w) < 1ms").unwrap()];
        let mut trials = of(&[10, 10, 10, 10]);
        assert_eq!(trials.verdict(&slos), Verdict::Keeps);
        trials.0[0].as_mut().unwrap().undrained = Some("w".to_owned());
        assert_eq!(trials.verdict(&slos), Verdict::Breaks);
        assert!(trials.strain(&slos).unwrap() > 200.0);
    }
}
