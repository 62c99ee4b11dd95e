use super::*;
use crate::{CopyPolicy, Law, Redundant};

/// Returns servers of exponential service times with a mean of 100 us, at a load of each without copies.
fn exponential_servers(load: f64, sending: Sending) -> ClusterModel {
    ClusterModel {
        servers: 20,
        rate: load * 20.0 * 1e4,
        service: TimeDistribution::Exponential { mean: Span::from_us(100) },
        outside: TimeDistribution::Constant(Span::ZERO),
        sending,
        requests: 200_000,
        warmup: 20_000,
    }
}

fn mean(model: &ClusterModel) -> f64 {
    let outcome = run(model, 1).expect("the values fit");
    outcome.latencies_us.iter().sum::<f64>() / outcome.latencies_us.len() as f64
}

fn near(a: f64, b: f64, by: f64) -> bool {
    (a - b).abs() <= by * b
}

/// A queue's latency is exponential with 1 / (1 - load) of the service time, and the shorter of two is half of that; so
/// replicas help below a load of a third.
#[test]
fn two_replicas_help_below_a_third() {
    for load in [0.1, 0.3, 0.4] {
        let once = mean(&exponential_servers(load, Sending::Once));
        let twice = mean(&exponential_servers(load, Sending::Replicas(2)));
        assert!(near(once, 100.0 / (1.0 - load), 0.02), "{load}: {once}");
        assert!(near(twice, 50.0 / (1.0 - 2.0 * load), 0.06), "{load}: {twice}");
        assert_eq!(twice < once, load < 1.0 / 3.0, "{load}: {twice} {once}");
    }
}

/// Where nothing waits, the model is the formula.
#[test]
fn idle_servers_are_as_the_formula_has_them() {
    let after = Span::from_us(150);
    for (sending, policy) in [
        (Sending::Once, CopyPolicy::Once),
        (Sending::Replicas(3), CopyPolicy::Replicas { copies: 3 }),
        (Sending::Hedge { after, copies: 2 }, CopyPolicy::Hedge { after_us: 150.0, copies: 2 }),
        (Sending::Retry { timeout: after, retries: 2 }, CopyPolicy::Retry { timeout_us: 150.0, retries: 2 }),
    ] {
        let outcome = run(&exponential_servers(0.0005, sending), 1).expect("the values fit");
        let formula = Redundant::new(Law::Exponential { mean: 100.0 }, policy).expect("the values fit");
        assert!(near(outcome.load(), formula.load(), 0.01), "{sending:?}: {}", outcome.load());
        let mut sorted = outcome.latencies_us.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        for share in [0.5, 0.9, 0.99] {
            let found = sorted[(share * sorted.len() as f64) as usize];
            assert!(near(found, formula.quantile(share), 0.04), "{sending:?} at {share}: {found}");
        }
    }
}

/// Timeouts near the latency send more copies than the servers can serve.
#[test]
fn tight_timeouts_overload_servers_that_carry_their_load_without() {
    let loose = exponential_servers(0.7, Sending::Once);
    let timeout = Span::from_us(200);
    let tight = exponential_servers(0.7, Sending::Retry { timeout, retries: 3 });
    let [loose, tight] = [loose, tight].map(|model| run(&model, 1).expect("the values fit"));
    assert!(near(loose.utilisation(20), 0.7, 0.02), "{}", loose.utilisation(20));
    assert!(tight.utilisation(20) > 0.98 && tight.load() > 3.0, "{} {}", tight.utilisation(20), tight.load());
}

#[test]
fn the_same_seed_is_the_same_run_and_another_is_not() {
    let hedge = exponential_servers(0.5, Sending::Hedge { after: Span::from_us(300), copies: 2 });
    let of = |seed| {
        run(&ClusterModel { requests: 5_000, warmup: 0, ..hedge.clone() }, seed).expect("the values fit")
    };
    assert_eq!(of(1), of(1));
    assert_ne!(of(1), of(2));
}

/// A request's first copy is the same under every policy.
#[test]
fn policies_meet_the_same_requests() {
    let of = |sending| {
        let model = ClusterModel { requests: 1, warmup: 0, ..exponential_servers(0.5, sending) };
        run(&model, 3).expect("the values fit").latencies_us[0]
    };
    let once = of(Sending::Once);
    assert_eq!(of(Sending::Hedge { after: Span::from_secs(1), copies: 2 }), once);
    assert!(of(Sending::Replicas(2)) <= once);
}

#[test]
fn what_does_not_fit_is_named() {
    let error = |change: &dyn Fn(&mut ClusterModel)| {
        let mut model = exponential_servers(0.5, Sending::Once);
        change(&mut model);
        run(&model, 1).expect_err("it does not fit").key
    };
    assert_eq!(error(&|model| model.servers = 0), "servers");
    assert_eq!(error(&|model| model.rate = 0.0), "rate");
    assert_eq!(error(&|model| model.sending = Sending::Replicas(21)), "copies");
    assert_eq!(error(&|model| model.sending = Sending::Hedge { after: Span::ZERO, copies: 2 }), "timeout");
    assert_eq!(error(&|model| model.warmup = model.requests), "warmup");
}
