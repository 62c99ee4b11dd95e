//! Partition/aggregate: a request to each of S servers at the same time, answered when the last answer is there
//! (dissertation, section 4.1, Eq. 4.1).
//!
//! ```text
//! P(max <= x) = F(x)^S        E max = integral of 1 - F^S over x > 0, less that of F^S over x < 0
//! ```
//!
//! The dissertation draws: five repetitions for each S ([`draw`]). The integral is the expected value of these draws.
//! The dissertation says that the maximum of 100 draws of N(90, 50) *approaches the 99th percentile value of 254.25
//! us*: the 99th percentile is 206.3 us and 254.25 us the 99.95th; the expected maximum of 100 is 215 us.

use plimsoll_units::Streams;
use rand::Rng;

use crate::law::Law;

/// Computes the latency up to which the last answer is there with probability `share`, 0 < `share` < 1, in us.
pub fn quantile(law: &Law, servers: u32, share: f64) -> f64 {
    // Close to 1, the share of one server is nearer to 1 than a double could represent the power.
    law.quantile(libm::exp(libm::log(share) / f64::from(servers)))
}

/// Computes the expected latency of the last answer, in us.
pub fn expected(law: &Law, servers: u32) -> f64 {
    if let Law::Empirical(empirical) = law {
        return empirical.expected_max(servers);
    }
    let (low, high) = (law.quantile(BEYOND), law.quantile(1.0 - BEYOND));
    // Beyond `low` with certainty, and above it by the integral, by Simpson's rule.
    let step = (high - low) / f64::from(PIECES);
    let above = |x: f64| {
        let share = law.cdf(x);
        if share > 0.0 { -libm::expm1(f64::from(servers) * libm::log(share)) } else { 1.0 }
    };
    let inner: f64 =
        (1..PIECES).map(|piece| f64::from(2 + 2 * (piece % 2)) * above(low + step * f64::from(piece))).sum();
    low + step / 3.0 * (above(low) + inner + above(high))
}

/// Computes the share of requests to `servers` servers that meet a slow one, where a server is slow with probability
/// `slow`, and each request has `copies` copies of which the fastest counts: 1 - (1 - slow^copies)^servers.
pub fn stragglers(slow: f64, servers: u32, copies: u32) -> f64 {
    let all_slow = libm::pow(slow, f64::from(copies));
    -libm::expm1(f64::from(servers) * libm::log1p(-all_slow))
}

/// Draws the largest of `servers` latencies, `repetitions` times, in us. Every number of servers has its own random
/// stream.
pub fn draw(law: &Law, servers: u32, repetitions: u32, seed: u64) -> Vec<f64> {
    let mut random = Streams::new(seed).stream(&format!("fan-out/{servers}"));
    // Between 0 and 1, never either: the middle of one of 2^53 pieces.
    let mut share = || ((random.next_u64() >> 11) as f64 + 0.5) / (1u64 << 53) as f64;
    let mut largest =
        || (0..servers).map(|_| law.quantile(share())).fold(f64::NEG_INFINITY, |max, x| max.max(x));
    (0..repetitions).map(|_| largest()).collect()
}

/// The share of latencies that the integral leaves out at either end.
const BEYOND: f64 = 1e-13;
/// Pieces of the integral, an even number.
const PIECES: u32 = 20_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::law::Empirical;

    const N: Law = Law::Normal { mean: 90.0, sd: 50.0 };

    /// The expected maximum of S standard normal draws: tables of order statistics (Teichroew 1956 and later).
    #[test]
    fn the_expected_maximum_of_normal_draws() {
        for (servers, standard) in
            [(1, 0.0), (2, 0.564_189_6), (10, 1.538_752_7), (24, 1.947_67), (100, 2.507_593_6)]
        {
            let exact = 90.0 + 50.0 * standard;
            assert!((expected(&N, servers) - exact).abs() < 1e-3, "{servers}: {}", expected(&N, servers));
        }
    }

    /// With exponential answers, the expected maximum is the mean times the harmonic number.
    #[test]
    fn the_expected_maximum_of_exponential_draws() {
        for servers in [1, 5, 100] {
            let harmonic: f64 = (1..=servers).map(|k| 1.0 / f64::from(k)).sum();
            let measured = expected(&Law::Exponential { mean: 10.0 }, servers);
            assert!((measured / (10.0 * harmonic) - 1.0).abs() < 1e-4, "{servers}: {measured}");
        }
    }

    #[test]
    fn the_expected_maximum_of_a_sample_and_of_points_is_exact() {
        let dice = Law::Empirical(Empirical::of_samples((1..=6).map(f64::from).collect()));
        assert!((expected(&dice, 2) - 161.0 / 36.0).abs() < 1e-12);
        // Uniform between 0 and 1: S / (S + 1).
        let uniform = Law::Empirical(Empirical::parse("0,0\n0.3,0.3\n1,1\n").expect("it is a distribution"));
        assert!((expected(&uniform, 9) - 0.9).abs() < 1e-12);
    }

    #[test]
    fn percentiles_of_the_maximum_are_the_largest_of_one() {
        assert!((quantile(&N, 1, 0.99) - N.quantile(0.99)).abs() < 1e-9);
        let p99 = quantile(&N, 100, 0.99);
        assert!((libm::pow(N.cdf(p99), 100.0) - 0.99).abs() < 1e-9);
    }

    /// One straggler among 10,000 machines, and 2,000 of them in a request: the 18 % of QJump's paper.
    #[test]
    fn rare_stragglers_are_met_by_many() {
        assert!((stragglers(1e-4, 2_000, 1) - 0.1813).abs() < 1e-4);
        assert!((stragglers(0.01, 100, 1) - 0.634).abs() < 1e-3);
        assert!((stragglers(0.01, 100, 2) - 0.00995).abs() < 1e-5);
    }

    #[test]
    fn draws_agree_with_the_integral() {
        let draws = draw(&N, 20, 4_000, 1);
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        assert!((mean / expected(&N, 20) - 1.0).abs() < 0.01, "{mean}");
    }
}
