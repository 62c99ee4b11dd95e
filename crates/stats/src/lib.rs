//! Estimates and how far they can be trusted.
//!
//! * Percentiles interpolate linearly between order statistics, as NumPy does by default.
//! * With three or more replicates an interval comes from their spread (Student's t, centred on the
//!   pooled value: *sectioning*, Asmussen and Glynn, Stochastic Simulation, 2007, III.5).
//! * Inside one run successive messages are correlated: they met the same queue. The interval of a
//!   mean therefore comes from batch means (Schmeiser, Operations Research 30(3), 1982: beyond some
//!   30 batches there is little to gain), and that of a percentile from the spread of 'is it below?'
//!   over the same batches, turned back into ranks (Woodruff, JASA 47, 1952; for dependent
//!   sequences Heidelberger and Lewis, Operations Research 32(1), 1984). With independent samples
//!   the latter is the usual binomial interval of order statistics.
//! * Two variants that saw the same arrivals are compared message by message ([`paired`]).
//!
//! All intervals cover 95 %; `tests` checks the coverage on made-up sequences whose true value is known.
//!
//! [`expression`] is the grammar of texts that name a number: `p99(small)`.
//! [`verdict`] judges a limit by repeated runs, and [`search`] finds the highest load that meets every limit.

#![forbid(unsafe_code)]

pub mod expression;
mod line;
pub mod paired;
mod samples;
pub mod search;
pub mod special;
pub mod verdict;

use serde::{Deserialize, Serialize};

pub use samples::{Samples, Statistic};

/// The share of intervals that hold the true value.
pub const LEVEL: f64 = 0.95;
/// Batches that one run is cut into.
pub const BATCHES: usize = 20;
/// Replicates from which on their spread gives the interval.
pub const REPLICATES_FOR_INTERVAL: usize = 3;
/// Samples below which one run gives no interval.
pub const SAMPLES_FOR_INTERVAL: usize = 10;

/// A number and how far it can be trusted.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Estimate {
    /// The value is the point estimate.
    pub value: f64,
    /// The 95 % interval; `None` where there are too few samples for one.
    pub interval: Option<Interval>,
    /// The number of samples behind the estimate.
    pub samples: u64,
}

/// A 95 % confidence interval.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub struct Interval {
    /// The lower end of the interval.
    pub low: f64,
    /// The upper end of the interval.
    pub high: f64,
}

impl Estimate {
    /// A number without an interval.
    pub fn bare(value: f64, samples: u64) -> Estimate {
        Estimate { value, interval: None, samples }
    }

    /// Returns the estimate with every number times `factor`: a change of unit.
    pub fn scaled(&self, factor: f64) -> Estimate {
        let interval = self.interval.map(|i| Interval { low: i.low * factor, high: i.high * factor });
        Estimate { value: self.value * factor, interval, samples: self.samples }
    }
}

impl Interval {
    /// Returns whether `value` is inside, the ends included.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    fn around(centre: f64, half: f64) -> Interval {
        Interval { low: centre - half, high: centre + half }
    }
}

/// The `share` percentile (0..=1) of an ascending list, linear between order statistics, bit for bit
/// as `numpy.percentile` computes it; `None` for an empty list.
pub fn percentile(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let rank = share.clamp(0.0, 1.0) * last as f64;
    let below = rank.floor() as usize;
    let (low, high) = (sorted[below], sorted[(below + 1).min(last)]);
    let t = rank - below as f64;
    let step = high - low;
    Some(if t >= 0.5 { high - step * (1.0 - t) } else { low + step * t })
}

/// The arithmetic mean; `None` for an empty list.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Computes the median of independent values, and the interval between two of them that are equally far from the ends:
/// the probability that the true median is outside is that of coin tosses (the sign test, David and Nagaraja, Order
/// Statistics, 2003, 7.1). Fewer than six values give no interval; none give no median.
pub fn median(values: &[f64]) -> Option<Estimate> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let value = percentile(&sorted, 0.5)?;
    let count = sorted.len();
    // The chance that the true median is beyond the value at this place from one end, for ever more inner places.
    let (mut beyond, mut ways) = (0.0, libm::exp2(-(count as f64)));
    let mut within = None;
    for place in 0..count / 2 {
        beyond += ways;
        if 2.0 * beyond > 1.0 - LEVEL {
            break;
        }
        within = Some(Interval { low: sorted[place], high: sorted[count - 1 - place] });
        ways *= (count - place) as f64 / (place + 1) as f64;
    }
    Some(Estimate { value, interval: within, samples: count as u64 })
}

/// Computes Jain's fairness index of shares (Jain, Chiu and Hawe, DEC-TR-301, 1984): 1 when all are equal, 1/n when one
/// has everything; `None` where nothing was shared.
pub fn jain(shares: &[f64]) -> Option<f64> {
    let sum: f64 = shares.iter().sum();
    let squares: f64 = shares.iter().map(|share| share * share).sum();
    (squares > 0.0).then(|| sum * sum / (shares.len() as f64 * squares))
}

/// Samples that a percentile needs before it should be believed: ten beyond it. 1,000 for the 99th,
/// 10,000 for the 99.9th.
pub fn samples_needed(share: f64) -> u64 {
    (10.0 / (1.0 - share)).round() as u64
}

/// Student's t interval of the mean of independent values, such as one a replicate, which covers the
/// true mean with probability `level` (0..1); `None` for fewer than two values.
pub fn mean_interval(values: &[f64], level: f64) -> Option<Interval> {
    interval_around(mean(values)?, values, level)
}

/// Computes Student's t interval of a statistic from its values on independent sections, centred on the value over all
/// of them.
fn section_interval(centre: f64, sections: &[f64]) -> Option<Interval> {
    interval_around(centre, sections, LEVEL)
}

fn interval_around(centre: f64, sections: &[f64], level: f64) -> Option<Interval> {
    let count = sections.len();
    if count < 2 {
        return None;
    }
    let squares: f64 = sections.iter().map(|value| (value - centre) * (value - centre)).sum();
    let error = (squares / (count - 1) as f64 / count as f64).sqrt();
    Some(Interval::around(centre, special::student_t((count - 1) as f64, level) * error))
}

/// Returns the begin and the end of batch `batch` of `batches` over `len` samples; sizes differ by at most one.
fn batch_range(batch: usize, batches: usize, len: usize) -> std::ops::Range<usize> {
    batch * len / batches..(batch + 1) * len / batches
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests;
