//! Two variants that saw the same arrivals, compared message by message.
//!
//! Arrivals, sizes and servers are keyed by workload and index and never by variant, so the n-th message of one variant
//! corresponds to the n-th of the other, and effects on both cancel out. The interval comes from leaving out one block
//! of successive messages after the other (the delete-a-group jackknife: for a mean it equals batch means, and for a
//! percentile it is consistent because the blocks grow with the sample; Shao and Wu, Annals of Statistics 17(3), 1989),
//! or from the spread over replicates where there are three or more.

use serde::{Deserialize, Serialize};

use crate::special::student_t;
use crate::{
    BATCHES, Estimate, Interval, LEVEL, REPLICATES_FOR_INTERVAL, Statistic, mean, percentile, samples_needed,
    section_interval,
};

/// One message (or query) as both variants carried it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Pair {
    /// Under the variant that is compared against.
    pub base: f64,
    /// The value under the other variant.
    pub other: f64,
}

/// Change of a statistic from the base to the other variant.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Change {
    /// Other less base, in the unit of the samples.
    pub difference: Estimate,
    /// Other divided by base; `None` where the base is zero.
    pub ratio: Option<Estimate>,
}

/// Direction of a change, once chance is ruled out.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChangeDirection {
    /// The other variant's value is lower.
    Lower,
    /// The other variant's value is higher.
    Higher,
    /// The interval includes 'no difference', or does not exist.
    NotSeen,
}

impl Change {
    /// Returns the direction that the interval of the difference shows.
    pub fn direction(&self) -> ChangeDirection {
        match self.difference.interval {
            Some(interval) if interval.high < 0.0 => ChangeDirection::Lower,
            Some(interval) if interval.low > 0.0 => ChangeDirection::Higher,
            _ => ChangeDirection::NotSeen,
        }
    }
}

/// Returns the change of `statistic`, from one list of pairs a replicate, each in order of creation. `None` without
/// pairs.
pub fn change(replicates: &[Vec<Pair>], statistic: Statistic) -> Option<Change> {
    let all: Vec<Pair> = replicates.iter().flatten().copied().collect();
    let whole = Sides::of(&all, statistic)?;
    let samples = all.len() as u64;
    let (difference, log_ratio) = if replicates.iter().filter(|r| !r.is_empty()).count()
        >= REPLICATES_FOR_INTERVAL
    {
        let sections: Vec<Sides> =
            replicates.iter().filter_map(|replicate| Sides::of(replicate, statistic)).collect();
        let differences: Vec<f64> = sections.iter().map(Sides::difference).collect();
        let ratios: Option<Vec<f64>> = sections.iter().map(Sides::log_ratio).collect();
        (
            section_interval(whole.difference(), &differences),
            whole.log_ratio().zip(ratios).and_then(|(centre, ratios)| section_interval(centre, &ratios)),
        )
    } else {
        let parts = left_out(&all, statistic);
        let differences: Vec<f64> = parts.iter().map(Sides::difference).collect();
        let ratios: Option<Vec<f64>> = parts.iter().map(Sides::log_ratio).collect();
        (
            jackknife_interval(whole.difference(), &differences),
            whole.log_ratio().zip(ratios).and_then(|(centre, ratios)| jackknife_interval(centre, &ratios)),
        )
    };
    let ratio = whole.log_ratio().map(|centre| Estimate {
        value: libm::exp(centre),
        interval: log_ratio.map(|i| Interval { low: libm::exp(i.low), high: libm::exp(i.high) }),
        samples,
    });
    Some(Change { difference: Estimate { value: whole.difference(), interval: difference, samples }, ratio })
}

/// A statistic of both sides.
struct Sides {
    base: f64,
    other: f64,
}

impl Sides {
    fn of(pairs: &[Pair], statistic: Statistic) -> Option<Sides> {
        let side = |pick: fn(&Pair) -> f64| {
            let mut values: Vec<f64> = pairs.iter().map(pick).collect();
            match statistic {
                Statistic::Mean => mean(&values),
                Statistic::Percentile(share) => {
                    values.sort_unstable_by(f64::total_cmp);
                    percentile(&values, share)
                }
            }
        };
        Some(Sides { base: side(|pair| pair.base)?, other: side(|pair| pair.other)? })
    }

    fn difference(&self) -> f64 {
        self.other - self.base
    }

    fn log_ratio(&self) -> Option<f64> {
        (self.base > 0.0 && self.other > 0.0).then(|| libm::log(self.other / self.base))
    }
}

/// The statistic with each of [`BATCHES`] successive blocks left out; empty where the pairs are too
/// few for the statistic to have an interval.
fn left_out(pairs: &[Pair], statistic: Statistic) -> Vec<Sides> {
    let needed = match statistic {
        Statistic::Mean => BATCHES as u64,
        Statistic::Percentile(share) => samples_needed(share).max(BATCHES as u64),
    };
    if (pairs.len() as u64) < needed {
        return Vec::new();
    }
    let base = leave_out_side(pairs, statistic, |pair| pair.base);
    let other = leave_out_side(pairs, statistic, |pair| pair.other);
    base.into_iter().zip(other).map(|(base, other)| Sides { base, other }).collect()
}

/// One side of [`left_out`]. Sorted once; each block is then filtered out of the sorted list.
fn leave_out_side(pairs: &[Pair], statistic: Statistic, pick: fn(&Pair) -> f64) -> Vec<f64> {
    let len = pairs.len();
    let block_of = |position: usize| (position * BATCHES + BATCHES - 1) / len;
    let mut sorted: Vec<(f64, usize)> =
        pairs.iter().enumerate().map(|(position, pair)| (pick(pair), block_of(position))).collect();
    match statistic {
        Statistic::Mean => {
            let mut sums = [(0.0, 0.0); BATCHES];
            for &(value, block) in &sorted {
                let (sum, count) = &mut sums[block.min(BATCHES - 1)];
                *sum += value;
                *count += 1.0;
            }
            let (sum, count) = sums.iter().fold((0.0, 0.0), |(s, c), (bs, bc)| (s + bs, c + bc));
            sums.iter().map(|(block_sum, block_count)| (sum - block_sum) / (count - block_count)).collect()
        }
        Statistic::Percentile(share) => {
            sorted.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            let mut rest = Vec::with_capacity(len);
            (0..BATCHES)
                .filter_map(|left| {
                    rest.clear();
                    rest.extend(
                        sorted
                            .iter()
                            .filter(|(_, block)| (*block).min(BATCHES - 1) != left)
                            .map(|(value, _)| *value),
                    );
                    percentile(&rest, share)
                })
                .collect()
        }
    }
}

fn jackknife_interval(centre: f64, left_out: &[f64]) -> Option<Interval> {
    let middle = mean(left_out)?;
    let blocks = left_out.len() as f64;
    let spread: f64 = left_out.iter().map(|value| (value - middle) * (value - middle)).sum();
    let error = ((blocks - 1.0) / blocks * spread).sqrt();
    Some(Interval::around(centre, student_t(blocks - 1.0, LEVEL) * error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::Noise;

    /// Both sides share a heavy common part; the other side is `factor` times slower on top.
    fn pairs(noise: &mut Noise, len: usize, factor: f64) -> Vec<Pair> {
        (0..len)
            .map(|_| {
                let common = 50.0 + 400.0 * noise.exponential();
                Pair { base: common + noise.uniform(), other: common * factor + noise.uniform() }
            })
            .collect()
    }

    #[test]
    fn a_small_change_is_seen_through_common_noise() {
        let sample = pairs(&mut Noise::new(3), 2_000, 1.02);
        let change = change(&[sample], Statistic::Mean).unwrap();
        assert_eq!(change.direction(), ChangeDirection::Higher);
        assert!(change.ratio.unwrap().interval.unwrap().contains(1.02), "{change:?}");
        // Without pairing the interval of either mean alone is ten times wider than the change.
    }

    #[test]
    fn no_change_is_called_so_nineteen_times_in_twenty() {
        for statistic in [Statistic::Mean, Statistic::Percentile(0.5), Statistic::Percentile(0.99)] {
            let mut wrong = 0;
            for seed in 0..400 {
                let sample = pairs(&mut Noise::new(seed), 2_000, 1.0);
                wrong +=
                    i32::from(change(&[sample], statistic).unwrap().direction() != ChangeDirection::NotSeen);
            }
            assert!(wrong <= 36, "{}: {wrong} of 400 called a difference", statistic.name());
        }
    }

    #[test]
    fn a_percentile_of_too_few_pairs_has_no_interval() {
        let sample = pairs(&mut Noise::new(5), 900, 2.0);
        let seen = change(&[sample], Statistic::Percentile(0.99)).unwrap();
        assert_eq!(seen.difference.interval, None);
        assert_eq!(seen.direction(), ChangeDirection::NotSeen);
        assert!(change(&[], Statistic::Mean).is_none());
    }

    #[test]
    fn replicates_give_the_interval_when_there_are_three() {
        let mut noise = Noise::new(8);
        let replicates: Vec<_> = (0..4).map(|_| pairs(&mut noise, 300, 2.0)).collect();
        let change = change(&replicates, Statistic::Percentile(0.9)).unwrap();
        assert_eq!(change.direction(), ChangeDirection::Higher);
        assert!(change.ratio.unwrap().interval.unwrap().contains(2.0), "{change:?}");
    }
}
