//! Known values, and a test that nineteen of twenty intervals contain the true value.

use super::*;

/// SplitMix64: seeded noise for made-up sequences.
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Noise {
        Noise(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5851_F42D_4C95_7F2D)
    }

    pub(crate) fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub(crate) fn exponential(&mut self) -> f64 {
        -libm::log1p(-self.uniform())
    }
}

/// Independent exponential samples with mean 1.
fn independent(seed: u64, len: usize) -> Vec<f64> {
    let mut noise = Noise::new(seed);
    (0..len).map(|_| noise.exponential()).collect()
}

/// Waiting times of an M/M/1 queue at load 0.5, started in its steady state: correlated samples whose
/// distribution is known, P(W > x) = rho exp(-(1 - rho) x).
fn queue_waits(seed: u64, len: usize) -> Vec<f64> {
    let mut noise = Noise::new(seed);
    let mut wait = if noise.uniform() < 0.5 { noise.exponential() / 0.5 } else { 0.0 };
    (0..len)
        .map(|_| {
            let seen = wait;
            wait = (wait + noise.exponential() - noise.exponential() / 0.5).max(0.0);
            seen
        })
        .collect()
}

fn coverage(statistic: Statistic, truth: f64, runs: u64, mut draw: impl FnMut(u64) -> Vec<Vec<f64>>) -> f64 {
    let held = (0..runs)
        .filter(|&seed| {
            let estimate = Samples::new(draw(seed)).estimate(statistic).unwrap();
            estimate.interval.is_some_and(|interval| interval.contains(truth))
        })
        .count();
    held as f64 / runs as f64
}

#[test]
fn percentiles_are_those_of_numpy() {
    // numpy.percentile([1, 2, 3, 4], [0, 25, 50, 90, 100]) = [1, 1.75, 2.5, 3.7, 4]
    let sorted = [1.0, 2.0, 3.0, 4.0];
    for (share, expected) in [(0.0, 1.0), (0.25, 1.75), (0.5, 2.5), (0.9, 3.7), (1.0, 4.0)] {
        assert!((percentile(&sorted, share).unwrap() - expected).abs() < 1e-12);
    }
    // numpy.percentile(range(1, 1001), 99) = 990.01
    let long: Vec<f64> = (1..=1000).map(f64::from).collect();
    assert!((percentile(&long, 0.99).unwrap() - 990.01).abs() < 1e-9);
    assert_eq!(percentile(&[7.5], 0.99), Some(7.5));
    assert_eq!(percentile(&[], 0.5), None);
}

#[test]
fn jain_of_equal_and_of_greedy() {
    assert_eq!(jain(&[3.0, 3.0, 3.0]), Some(1.0));
    assert_eq!(jain(&[9.0, 0.0, 0.0]), Some(1.0 / 3.0));
    assert_eq!(jain(&[0.0, 0.0]), None);
    assert_eq!(jain(&[]), None);
}

#[test]
fn needed_samples() {
    assert_eq!(samples_needed(0.5), 20);
    assert_eq!(samples_needed(0.99), 1_000);
    assert_eq!(samples_needed(0.999), 10_000);
}

#[test]
fn names_of_statistics() {
    let names: Vec<String> = [0.5, 0.9, 0.99, 0.999].map(|p| Statistic::Percentile(p).name()).to_vec();
    assert_eq!(names, ["p50", "p90", "p99", "p99.9"]);
}

#[test]
fn few_samples_have_no_interval_and_none_has_no_value() {
    let few = Samples::new(vec![vec![1.0, 2.0, 3.0]]);
    assert_eq!(few.estimate(Statistic::Mean), Some(Estimate::bare(2.0, 3)));
    assert_eq!(Samples::new(vec![]).estimate(Statistic::Mean), None);
    assert_eq!(Samples::new(vec![vec![], vec![]]).estimate(Statistic::Percentile(0.5)), None);
}

#[test]
fn constant_samples_have_an_interval_of_no_width() {
    let constant = Samples::new(vec![vec![37.6; 5000]]);
    for statistic in [Statistic::Mean, Statistic::Percentile(0.5), Statistic::Percentile(0.99)] {
        let interval = constant.estimate(statistic).unwrap().interval.unwrap();
        assert!((interval.low - 37.6).abs() < 1e-9 && (interval.high - 37.6).abs() < 1e-9);
    }
}

#[test]
fn intervals_of_independent_samples_cover() {
    let ln = f64::ln;
    for (statistic, truth) in [
        (Statistic::Mean, 1.0),
        (Statistic::Percentile(0.5), ln(2.0)),
        (Statistic::Percentile(0.99), ln(100.0)),
    ] {
        let held = coverage(statistic, truth, 600, |seed| vec![independent(seed, 2_000)]);
        assert!((0.93..=0.995).contains(&held), "{}: {held}", statistic.name());
    }
}

#[test]
fn intervals_of_correlated_samples_cover() {
    // W is 0 with probability 1/2, otherwise exponential with mean 2: its mean is 1, and the
    // 99th percentile solves exp(-x/2)/2 = 0.01.
    for (statistic, truth) in [
        (Statistic::Mean, 1.0),
        (Statistic::Percentile(0.9), 2.0 * f64::ln(5.0)),
        (Statistic::Percentile(0.99), 2.0 * f64::ln(50.0)),
    ] {
        let held = coverage(statistic, truth, 300, |seed| vec![queue_waits(seed, 20_000)]);
        assert!((0.92..=0.995).contains(&held), "{}: {held}", statistic.name());
    }
}

#[test]
fn intervals_over_replicates_cover() {
    for (statistic, truth) in [(Statistic::Mean, 1.0), (Statistic::Percentile(0.99), f64::ln(100.0))] {
        let held = coverage(statistic, truth, 600, |seed| {
            (0..5).map(|replicate| independent(seed * 5 + replicate, 1_000)).collect()
        });
        assert!((0.92..=0.985).contains(&held), "{}: {held}", statistic.name());
    }
}

/// Seven values: one of 128 draws has all on one side, twice. Six give an interval, five do not, and from nine on it is
/// not the extremes.
#[test]
fn a_median_is_between_values_as_many_from_either_end() {
    let of = |count: usize| median(&(1..=count).rev().map(|value| value as f64).collect::<Vec<_>>());
    let interval = |count| of(count).and_then(|median| median.interval).map(|found| (found.low, found.high));
    assert_eq!(of(7).map(|median| (median.value, median.samples)), Some((4.0, 7)));
    assert_eq!(interval(5), None);
    assert_eq!(interval(6), Some((1.0, 6.0)));
    assert_eq!(interval(7), Some((1.0, 7.0)));
    assert_eq!(interval(9), Some((2.0, 8.0)));
    assert_eq!(interval(20), Some((6.0, 15.0)));
    assert_eq!(of(0), None);
}
