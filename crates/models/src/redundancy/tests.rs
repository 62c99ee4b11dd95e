use proptest::prelude::*;

use super::*;
use crate::law::Empirical;

fn redundant(law: Law, policy: CopyPolicy) -> Redundant {
    Redundant::new(law, policy).expect("the parameters are in their ranges")
}

fn exponential(policy: CopyPolicy) -> Redundant {
    redundant(Law::Exponential { mean: 100.0 }, policy)
}

fn dice() -> Law {
    Law::Empirical(Empirical::of_samples((1..=6).map(f64::from).collect()))
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-4 * b.abs().max(1e-9)
}

/// The shortest of r exponential latencies is exponential with an r-th of the mean.
#[test]
fn replicas_of_an_exponential_latency_divide_it() {
    for copies in [1, 2, 5] {
        let replicas = exponential(CopyPolicy::Replicas { copies });
        assert!(near(replicas.mean(), 100.0 / f64::from(copies)), "{}", replicas.mean());
        assert!(near(replicas.quantile(0.99), 100.0 * libm::log(100.0) / f64::from(copies)));
        assert_eq!(replicas.load(), f64::from(copies));
    }
}

/// An exponential latency has no memory: a copy after d halves the remaining time from there on.
#[test]
fn a_hedge_of_an_exponential_latency_halves_what_is_left() {
    let left = libm::exp(-1.0);
    let hedge = exponential(CopyPolicy::Hedge { after_us: 100.0, copies: 2 });
    assert!(near(hedge.mean(), 100.0 * (1.0 - left) + 50.0 * left), "{}", hedge.mean());
    assert!(near(hedge.load(), 1.0 + left));
    // Giving the first up instead leaves its mean as it was.
    let retry = exponential(CopyPolicy::Retry { timeout_us: 100.0, retries: 3 });
    assert!(near(retry.mean(), 100.0), "{}", retry.mean());
    assert!(near(retry.load(), 1.0 + left + left * left + left * left * left));
    assert!(near(retry.timed_out().expect("there is a timeout"), libm::exp(-4.0)));
}

#[test]
fn dice_are_exact() {
    // The smaller of two dice: (1 * 11 + 2 * 9 + ... + 6 * 1) / 36.
    let smaller = redundant(dice(), CopyPolicy::Replicas { copies: 2 });
    assert!((smaller.mean() - 91.0 / 36.0).abs() < 1e-12, "{}", smaller.mean());
    // A second die 3 after the first, where that is 4 or more: min(4, 3 + y) = 4, then the smaller of 5 and 3 + y.
    let hedge = redundant(dice(), CopyPolicy::Hedge { after_us: 3.0, copies: 2 });
    let of_five = (4.0 + 5.0 * 5.0) / 6.0;
    let of_six = (4.0 + 5.0 + 6.0 * 4.0) / 6.0;
    assert!(
        (hedge.mean() - (1.0 + 2.0 + 3.0 + 4.0 + of_five + of_six) / 6.0).abs() < 1e-12,
        "{}",
        hedge.mean()
    );
    assert!((hedge.load() - 1.5).abs() < 1e-12);
    // A latency above 3 is drawn again, once: 3 + 3.5.
    let retry = redundant(dice(), CopyPolicy::Retry { timeout_us: 3.0, retries: 1 });
    assert!((retry.mean() - (1.0 + 2.0 + 3.0 + 3.0 * 6.5) / 6.0).abs() < 1e-12, "{}", retry.mean());
    assert_eq!(retry.quantile(0.5), 3.0);
    assert_eq!(retry.quantile(0.999), 9.0);
}

/// A timeout that is shorter than every latency costs the timeouts without any gain.
#[test]
fn a_timeout_below_all_latencies_only_delays() {
    let constant = Law::Empirical(Empirical::of_samples(vec![10.0]));
    let retry = redundant(constant, CopyPolicy::Retry { timeout_us: 4.0, retries: 2 });
    assert_eq!((retry.mean(), retry.load(), retry.timed_out()), (18.0, 3.0, Some(1.0)));
}

#[test]
fn parameters_outside_their_ranges_are_named() {
    let error = |policy| Redundant::new(dice(), policy).expect_err("it cannot be").to_string();
    assert_eq!(error(CopyPolicy::Replicas { copies: 0 }), "copies 0: expected 1 to 64");
    assert_eq!(error(CopyPolicy::Hedge { after_us: -1.0, copies: 2 }), "after -1: expected 0 us or more");
    assert_eq!(
        error(CopyPolicy::Retry { timeout_us: 0.0, retries: 1 }),
        "timeout 0: expected more than 0 us"
    );
    assert_eq!(error(CopyPolicy::Retry { timeout_us: 1.0, retries: 99 }), "retries 99: expected 0 to 64");
}

fn laws() -> impl Strategy<Value = Law> {
    let samples = prop::collection::vec(0.0f64..1e4, 1..40);
    prop_oneof![
        (1.0f64..1e3).prop_map(|mean| Law::Exponential { mean }),
        (1.0f64..1e3, 0.1f64..3.0).prop_map(|(mean, ratio)| Law::Lognormal { mean, sd: ratio * mean }),
        samples.prop_map(|samples| Law::Empirical(Empirical::of_samples(samples))),
    ]
}

proptest! {
    /// A policy that never sends a second copy is rejected.
    #[test]
    fn one_copy_changes_nothing(law in laws(), share in 0.01f64..0.999) {
        let once = redundant(law.clone(), CopyPolicy::Once);
        let longest = law.quantile(1.0 - 1e-13);
        let (at_share, mean) = (once.quantile(share), once.mean());
        for policy in [
            CopyPolicy::Replicas { copies: 1 },
            CopyPolicy::Hedge { after_us: 7.0, copies: 1 },
            CopyPolicy::Retry { timeout_us: 7.0, retries: 0 },
            CopyPolicy::Hedge { after_us: longest + 1.0, copies: 3 },
            CopyPolicy::Retry { timeout_us: longest + 1.0, retries: 3 },
        ] {
            let same = redundant(law.clone(), policy);
            prop_assert!((same.load() - 1.0).abs() < 1e-9);
            let (one, other) = (at_share, same.quantile(share));
            prop_assert!((one - other).abs() <= 1e-6 * one.abs(), "{:?}: {one} {other}", policy);
            let (one, other) = (mean, same.mean());
            prop_assert!((one - other).abs() <= 1e-5 * one.abs() + 1e-9, "{:?}: {one} {other}", policy);
        }
    }

    /// A hedge at the 95th percentile adds 5 % of load, and at most that where latencies are a sample.
    #[test]
    fn a_hedge_at_a_percentile_adds_what_is_above_it(law in laws(), share in 0.5f64..0.99) {
        let after_us = law.quantile(share);
        let added = redundant(law.clone(), CopyPolicy::Hedge { after_us, copies: 2 }).load() - 1.0;
        prop_assert!(added <= 1.0 - share + 1e-9);
        if !matches!(law, Law::Empirical(_)) {
            prop_assert!((added - (1.0 - share)).abs() < 1e-6, "{added}");
        }
    }

    /// Latencies get shorter with every copy, and a hedge is between one copy and two at once.
    #[test]
    fn copies_shorten_and_waiting_for_them_less_so(law in laws(), x in 0.0f64..1e4, after_us in 0.0f64..1e3) {
        let above = |policy| redundant(law.clone(), policy).above(x);
        let two = above(CopyPolicy::Replicas { copies: 2 });
        let hedged = above(CopyPolicy::Hedge { after_us, copies: 2 });
        prop_assert!(two <= hedged + 1e-12 && hedged <= above(CopyPolicy::Once) + 1e-12);
        let at_once = above(CopyPolicy::Hedge { after_us: 0.0, copies: 2 });
        prop_assert!((at_once - two).abs() < 1e-12);
    }

    /// The quantile is the least latency with that share.
    #[test]
    fn quantiles_are_the_least(law in laws(), timeout_us in 1.0f64..1e3, share in 0.01f64..0.999) {
        for policy in [
            CopyPolicy::Hedge { after_us: timeout_us, copies: 3 },
            CopyPolicy::Retry { timeout_us, retries: 2 },
        ] {
            let one = redundant(law.clone(), policy);
            let x = one.quantile(share);
            prop_assert!(one.cdf(x) >= share - 1e-12);
            prop_assert!(one.cdf(x * (1.0 - 1e-9) - 1e-9) <= share + 1e-6);
        }
    }
}
