use proptest::prelude::*;

use super::*;
use crate::redundancy::CopyPolicy;

fn once(law: Law) -> Redundant {
    Redundant::new(law, CopyPolicy::Once).expect("there is no parameter")
}

fn near(a: f64, b: f64, by: f64) -> bool {
    (a - b).abs() <= by * b.abs()
}

#[test]
fn the_talks_150_retrievals_take_200_ms() {
    let rtts = once(page_rtts());
    assert!(near(rtts.quantile(0.5), 334.0, 1e-9) && near(rtts.above(2_000.0), 0.06, 1e-9));
    let page = Chain::new(&rtts, 150, 1);
    assert!(near(page.quantile(0.999), 200e3, 0.05), "{}", page.quantile(0.999));
    assert!(near(page.mean(), 150.0 * rtts.mean(), 1e-6), "{}", page.mean());
    // Seed 002 says that 100 to 150 is all that a page can have.
    let most = longest(&rtts, 1, 200e3, 0.999);
    assert!((140..=160).contains(&most), "{most}");
}

/// The sum of L exponential times is Erlang's distribution.
#[test]
fn a_chain_of_exponential_steps_is_erlang() {
    for (steps, at_99, at_999) in [(10, 18.783_12, 22.657_39), (100, 124.722_6, 133.775_8)] {
        let chain = Chain::new(&once(Law::Exponential { mean: 1.0 }), steps, 1);
        assert!(near(chain.mean(), f64::from(steps), 1e-5), "{}", chain.mean());
        assert!(near(chain.quantile(0.99), at_99, 1e-3), "{steps}: {}", chain.quantile(0.99));
        assert!(near(chain.quantile(0.999), at_999, 1e-3), "{steps}: {}", chain.quantile(0.999));
        assert!((chain.within(at_99) - 0.99).abs() < 2e-4, "{}", chain.within(at_99));
    }
}

/// Many steps are nearly normal: the sum of 10,000 has the percentiles of the central limit theorem.
#[test]
fn a_long_chain_is_normal() {
    let chain = Chain::new(&once(Law::Exponential { mean: 1.0 }), STEPS_MAX, 1);
    for (share, sds) in [(0.01, -2.326_35), (0.5, 0.0), (0.99, 2.326_35)] {
        // 100 is the standard deviation; the skewness shifts these by less than 1.5.
        let found = chain.quantile(share);
        assert!((found - (10_000.0 + 100.0 * sds)).abs() < 5.0, "{share}: {found}");
    }
    assert!(near(chain.mean(), 10_000.0, 1e-5), "{}", chain.mean());
}

/// The larger of two dice, twice.
#[test]
fn a_chain_of_dice() {
    let dice = once(Law::Empirical(Empirical::of_samples((1..=6).map(f64::from).collect())));
    let chain = Chain::new(&dice, 2, 2);
    assert!(near(chain.mean(), 2.0 * 161.0 / 36.0, 1e-9), "{}", chain.mean());
    assert!(near(chain.within(11.5), 1.0 - 11.0 * 11.0 / (36.0 * 36.0), 1e-9), "{}", chain.within(11.5));
}

#[test]
fn constant_steps_add_up() {
    let constant = once(Law::Empirical(Empirical::of_samples(vec![7.0])));
    let chain = Chain::new(&constant, 10, 3);
    assert_eq!((chain.mean(), chain.quantile(0.5), chain.quantile(0.999)), (70.0, 70.0, 70.0));
    assert_eq!((chain.within(69.9), chain.within(70.0)), (0.0, 1.0));
    assert_eq!(longest(&constant, 1, 100.0, 0.999), 14);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// One step is the last of its replies.
    #[test]
    fn one_step_is_a_fan_out(mean in 1.0f64..1e3, width in 1u32..50, share in 0.1f64..0.999) {
        let law = once(Law::Lognormal { mean, sd: mean });
        let chain = Chain::new(&law, 1, width);
        let exact = law.quantile_of_last(width, share);
        prop_assert!(near(chain.quantile(share), exact, 0.02), "{} {exact}", chain.quantile(share));
    }

    #[test]
    fn shares_are_a_distribution(steps in 1u32..40, samples in prop::collection::vec(0.0f64..1e3, 1..20)) {
        let law = once(Law::Empirical(Empirical::of_samples(samples)));
        let chain = Chain::new(&law, steps, 1);
        let sum: f64 = chain.sums.shares.iter().sum();
        prop_assert!((sum - 1.0).abs() < 1e-9, "{sum}");
        let time = |point: usize| chain.low + chain.step * (chain.sums.from + point) as f64;
        let shares = chain.sums.shares.iter().enumerate();
        let on_lattice: f64 = shares.map(|(point, share)| share * time(point)).sum();
        prop_assert!(near(on_lattice, chain.mean(), 1e-6) || chain.mean() < 1e-6, "{on_lattice} {}", chain.mean());
    }
}
