//! Quantiles of measured and modelled latencies with their intervals, and the intervals of differences and ratios.
//!
//! A measured quantile is between two order statistics: the share of `n` latencies below the quantile `q` has the
//! standard deviation `sqrt(q (1 - q) / n)`, which holds for independent latencies. The bounds of a bucket, where the
//! file has no finer data, widen the interval. The intervals of a difference and of a ratio keep the distances of each
//! side from its ends and add them in quadrature (Zou and Donner, Statistics in Medicine 27, 2008), so they may be
//! skewed.

use plimsoll_models::measured::MeasuredLatencies;
use plimsoll_stats::{Estimate, Interval, samples_needed};

/// The compared quantiles.
pub const SHARES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// Standard deviations of an interval: four intervals hold together with 95 %, by Bonferroni's inequality.
pub const DEVIATIONS: f64 = 2.5;

/// Standard deviations of a 95 % interval, as in the intervals of a run.
const DEVIATIONS_OF_RUN: f64 = 1.96;

/// Returns a measured quantile; `None` above the last bound of a histogram. It has an interval if the file states its
/// number of latencies, and if there are enough of them.
pub fn measured(latencies: &MeasuredLatencies, share: f64) -> Option<Estimate> {
    if share > latencies.bounded {
        return None;
    }
    let value = latencies.distribution.quantile(share);
    let samples = latencies.samples.unwrap_or(0);
    let is_enough = samples >= samples_needed(share.max(1.0 - share));
    let interval = is_enough.then(|| {
        let half = DEVIATIONS * (share * (1.0 - share) / samples as f64).sqrt();
        let low = latencies.distribution.bracket((share - half).max(0.0)).0;
        let high = latencies.distribution.bracket((share + half).min(1.0)).1;
        Interval { low: low.min(value), high: high.max(value) }
    });
    Some(Estimate { value, interval, samples })
}

/// Returns an estimate of a run whose 95 % interval is widened to [`DEVIATIONS`].
pub fn widened(estimate: Estimate) -> Estimate {
    let wider = DEVIATIONS / DEVIATIONS_OF_RUN;
    let interval = estimate.interval.map(|interval| Interval {
        low: estimate.value - (estimate.value - interval.low) * wider,
        high: estimate.value + (interval.high - estimate.value) * wider,
    });
    Estimate { interval, ..estimate }
}

/// Returns `one - other`.
pub fn difference(one: &Estimate, other: &Estimate) -> Estimate {
    let value = one.value - other.value;
    let interval = one.interval.zip(other.interval).map(|(a, b)| Interval {
        low: value - (one.value - a.low).hypot(b.high - other.value),
        high: value + (a.high - one.value).hypot(other.value - b.low),
    });
    Estimate { value, interval, samples: one.samples.min(other.samples) }
}

/// Returns `one / other`, both above 0; its interval is that of the difference of the logarithms.
pub fn ratio(one: &Estimate, other: &Estimate) -> Estimate {
    let logarithm = |estimate: &Estimate| Estimate {
        value: estimate.value.ln(),
        // A lower end of 0 has no logarithm; one part in a thousand is far below any tolerance.
        interval: estimate.interval.map(|interval| Interval {
            low: interval.low.max(estimate.value * 1e-3).ln(),
            high: interval.high.ln(),
        }),
        samples: estimate.samples,
    };
    let of_logarithms = difference(&logarithm(one), &logarithm(other));
    let interval = of_logarithms.interval.map(|i| Interval { low: i.low.exp(), high: i.high.exp() });
    Estimate { value: one.value / other.value, interval, samples: of_logarithms.samples }
}

#[cfg(test)]
mod tests {
    use plimsoll_models::Empirical;

    use super::*;

    fn latencies(samples: Option<u64>, bounded: f64) -> MeasuredLatencies {
        let distribution = Empirical::of_points(vec![(0.0, 0.0), (1_000.0, 1.0)]);
        MeasuredLatencies { distribution, samples, bounded, suspect: Vec::new() }
    }

    #[test]
    fn a_measured_quantile_has_the_error_of_its_count() {
        assert!(measured(&latencies(None, 1.0), 0.5).is_some_and(|found| found.interval.is_none()));
        assert!(measured(&latencies(Some(900), 1.0), 0.99).is_some_and(|found| found.interval.is_none()));
        assert!(measured(&latencies(Some(9_000), 0.98), 0.99).is_none());
        // In a list, the interval is that of the order statistics.
        let list = Empirical::of_samples((1..=10_000).map(f64::from).collect());
        let list = MeasuredLatencies { distribution: list, ..latencies(Some(10_000), 1.0) };
        let found = measured(&list, 0.5).expect("a median");
        let interval = found.interval.expect("it has enough latencies");
        assert_eq!((found.value, interval.low, interval.high), (5_000.0, 4_875.0, 5_125.0));
    }

    #[test]
    fn errors_of_both_sides_add_in_quadrature() {
        let side = |value: f64, half: f64| Estimate {
            value,
            interval: Some(Interval { low: value - half, high: value + half }),
            samples: 100,
        };
        let found = difference(&side(120.0, 3.0), &side(100.0, 4.0));
        assert_eq!((found.value, found.interval), (20.0, Some(Interval { low: 15.0, high: 25.0 })));
        let found = ratio(&side(200.0, 0.0), &side(100.0, 0.0));
        assert!(
            (found.value - 2.0).abs() < 1e-9 && found.interval.is_some_and(|i| (i.low - i.high).abs() < 1e-9)
        );
    }
}
