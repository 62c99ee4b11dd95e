//! [`Samples`]: the samples of one statistic, by replicate and in order of creation.

use crate::special::{incomplete_beta, student_t};
use crate::{
    BATCHES, Estimate, Interval, LEVEL, REPLICATES_FOR_INTERVAL, SAMPLES_FOR_INTERVAL, batch_range, mean,
    percentile, section_interval,
};

/// The statistics that can be estimated.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Statistic {
    /// The statistic is the arithmetic mean.
    Mean,
    /// A percentile, as a share: 0.99.
    Percentile(f64),
}

impl Statistic {
    /// `mean`, `p50`, `p99`, `p99.9`.
    pub fn name(self) -> String {
        match self {
            Statistic::Mean => "mean".to_owned(),
            Statistic::Percentile(share) => {
                // Rounded, since 0.999 * 100 is not 99.9 in binary.
                let percent = (share * 1e6).round() / 1e4;
                format!("p{percent}")
            }
        }
    }
}

/// Non-negative measurements of one quantity, by replicate and, inside one, in order of creation.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    /// All replicates one after the other.
    ordered: Vec<f64>,
    /// The end of each replicate in `ordered`.
    ends: Vec<usize>,
    sorted: Vec<f64>,
}

impl Samples {
    /// Takes one list a replicate.
    pub fn new(replicates: Vec<Vec<f64>>) -> Samples {
        let mut ordered = Vec::with_capacity(replicates.iter().map(Vec::len).sum());
        let mut ends = Vec::with_capacity(replicates.len());
        for replicate in replicates {
            ordered.extend(replicate);
            ends.push(ordered.len());
        }
        let mut sorted = ordered.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        Samples { ordered, ends, sorted }
    }

    /// Returns the number of samples.
    pub fn len(&self) -> usize {
        self.ordered.len()
    }

    /// Returns whether there are no samples.
    pub fn is_empty(&self) -> bool {
        self.ordered.is_empty()
    }

    /// Returns all samples, ascending.
    pub fn sorted(&self) -> &[f64] {
        &self.sorted
    }

    /// Returns the statistic over all samples with its interval; `None` without samples.
    pub fn estimate(&self, statistic: Statistic) -> Option<Estimate> {
        let value = match statistic {
            Statistic::Mean => mean(&self.ordered)?,
            Statistic::Percentile(share) => percentile(&self.sorted, share)?,
        };
        let interval = if self.filled_replicates() >= REPLICATES_FOR_INTERVAL {
            section_interval(value, &self.by_replicate(statistic))
        } else if self.len() < SAMPLES_FOR_INTERVAL {
            None
        } else {
            match statistic {
                Statistic::Mean => section_interval(value, &batch_values(&self.ordered, |&x| x)),
                Statistic::Percentile(share) => self.percentile_interval(share, value),
            }
        };
        // The measured quantities cannot be negative.
        let interval = interval.map(|i| Interval { low: i.low.max(0.0), high: i.high });
        Some(Estimate { value, interval, samples: self.len() as u64 })
    }

    /// The statistic of each replicate that has samples.
    pub fn by_replicate(&self, statistic: Statistic) -> Vec<f64> {
        self.replicates()
            .filter_map(|samples| match statistic {
                Statistic::Mean => mean(samples),
                Statistic::Percentile(share) => {
                    let mut sorted = samples.to_vec();
                    sorted.sort_unstable_by(f64::total_cmp);
                    percentile(&sorted, share)
                }
            })
            .collect()
    }

    fn replicates(&self) -> impl Iterator<Item = &[f64]> {
        self.ends.iter().enumerate().map(|(replicate, &end)| {
            let start = replicate.checked_sub(1).map_or(0, |before| self.ends[before]);
            &self.ordered[start..end]
        })
    }

    fn filled_replicates(&self) -> usize {
        self.replicates().filter(|samples| !samples.is_empty()).count()
    }

    /// The interval of order statistics, for as many independent samples as the correlated ones
    /// are worth.
    fn percentile_interval(&self, share: f64, value: f64) -> Option<Interval> {
        let len = self.len() as f64;
        let below = batch_values(&self.ordered, |&x| f64::from(x <= value));
        let centre = mean(&below)?;
        let spread: f64 = below.iter().map(|b| (b - centre) * (b - centre)).sum();
        let variance_of_mean = spread / (below.len() as f64 - 1.0) / below.len() as f64;
        let independent = share * (1.0 - share) / len;
        let inflation = (variance_of_mean / independent).max(1.0);
        // The inflation is itself an estimate with BATCHES - 1 degrees of freedom: where it is larger than chance alone
        // explains, Student's t takes the place of the normal distribution.
        let caution = if inflation > 1.0 {
            let ratio = student_t(below.len() as f64 - 1.0, LEVEL) / student_t(1e9, LEVEL);
            ratio * ratio
        } else {
            1.0
        };
        let worth = (len / (inflation * caution)).max(1.0);
        let (low, high) = order_statistic_shares(worth, share)?;
        Some(Interval {
            low: percentile(&self.sorted, low)?.min(value),
            high: percentile(&self.sorted, high)?.max(value),
        })
    }
}

/// Means of `f` over the batches of a sequence.
fn batch_values(ordered: &[f64], f: impl Fn(&f64) -> f64) -> Vec<f64> {
    let batches = BATCHES.min(ordered.len());
    (0..batches)
        .map(|batch| {
            let range = batch_range(batch, batches, ordered.len());
            let len = range.len() as f64;
            ordered[range].iter().map(&f).sum::<f64>() / len
        })
        .collect()
}

/// The ranks, as shares of the sample, between which the `share` percentile lies with 95 %
/// probability; `None` where even the largest sample is below it too often.
///
/// The `r`-th of `n` uniform order statistics is Beta(r, n + 1 - r), so it is below the percentile
/// with probability `incomplete_beta(r, n + 1 - r, share)`.
fn order_statistic_shares(n: f64, share: f64) -> Option<(f64, f64)> {
    let tail = (1.0 - LEVEL) / 2.0;
    let below = |rank: f64| incomplete_beta(rank, n + 1.0 - rank, share);
    if below(n) > tail {
        return None;
    }
    let crossing = |target: f64| {
        let (mut low, mut high) = (0.0, n);
        for _ in 0..60 {
            let middle = 0.5 * (low + high);
            if below(middle) > target {
                low = middle;
            } else {
                high = middle;
            }
        }
        0.5 * (low + high)
    };
    let low = crossing(1.0 - tail).floor();
    let high = crossing(tail).ceil().min(n);
    let as_share = |rank: f64| ((rank - 1.0) / (n - 1.0).max(1.0)).clamp(0.0, 1.0);
    Some((as_share(low), as_share(high)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn binomial_ranks_of_a_median() {
        // The textbook interval of the median of 100 independent samples is ranks 40 to 61.
        let (low, high) = order_statistic_shares(100.0, 0.5).unwrap();
        assert_eq!((low * 99.0 + 1.0).round(), 40.0);
        assert_eq!((high * 99.0 + 1.0).round(), 61.0);
    }

    #[test]
    fn the_99th_percentile_needs_367_samples_for_an_upper_end() {
        assert!(order_statistic_shares(366.0, 0.99).is_none());
        assert!(order_statistic_shares(368.0, 0.99).is_some());
    }
}
