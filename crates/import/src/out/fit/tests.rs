//! Fits of known processes and distributions.

use plimsoll_units::{Span, Streams};
use rand::Rng as _;

use super::*;

/// Returns the starts of a Poisson process of 1,000 arrivals a second.
fn poisson(count: usize) -> Vec<Span> {
    let mut stream = Streams::new(7).stream("starts");
    let mut now = 0.0;
    let next = |_| {
        let uniform = (stream.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
        now -= (1.0 - uniform).ln() / 1e3;
        Span::from_secs_f64(now)
    };
    (0..count).map(next).collect()
}

fn judged(starts: &[Span]) -> ModelFit {
    let mut fit = ModelFit::new("w");
    fit.arrivals(starts, starts[starts.len() - 1]);
    fit
}

#[test]
fn a_poisson_process_is_a_good_fit() {
    let fit = judged(&poisson(20_000));
    assert_eq!(fit.problems, Vec::<String>::new());
    assert!((0.9..1.1).contains(&fit.burstiness.unwrap()), "{fit:?}");
    assert!((fit.in_bursts.unwrap() - POISSON_IN_BURSTS).abs() < 0.01, "{fit:?}");
}

#[test]
fn bursts_and_clocks_are_no_good_fit() {
    // Four at once.
    let bursts: Vec<Span> = poisson(20_000).into_iter().flat_map(|start| [start; 4]).collect();
    let fit = judged(&bursts);
    assert_eq!(fit.problems.len(), 2, "{fit:?}");
    let clock: Vec<Span> = (0..20_000).map(|number| Span::from_ms(1) * number).collect();
    let fit = judged(&clock);
    assert!(fit.problems[0].starts_with("burstiness 0.0"), "{fit:?}");
    assert!(!judged(&poisson(50)).problems.is_empty(), "too few to judge");
}

#[test]
fn tables_keep_values_and_quantiles() {
    let few = [100.0, 100.0, 100.0, 9_000.0];
    let table = FittedTable::of(&few);
    assert!(table.steps);
    assert_eq!(table.text("bytes"), "bytes,cdf\n100,0.75\n9000,1\n");
    assert_eq!((table.mean(), table.quantile(0.75), table.quantile(0.76)), (2_325.0, 100.0, 9_000.0));
    let many: Vec<f64> = (1..=100_000).map(f64::from).collect();
    let table = FittedTable::of(&many);
    assert!(!table.steps && table.points.len() < 300);
    assert!((table.mean() / 50_000.5 - 1.0).abs() < 1e-3, "{}", table.mean());
    for share in SHARES {
        assert!((table.quantile(share) / (share * 1e5) - 1.0).abs() < 1e-3);
    }
    let mut fit = ModelFit::new("w");
    fit.distribution("size", &many, |share| table.quantile(share));
    assert_eq!((fit.problems.len(), fit.quantiles[0].rows.len()), (0, 4));
    // A constant in place of the distribution.
    fit.distribution("size", &many, |_| table.mean());
    assert_eq!(fit.problems.len(), 1);
}
