//! A switch whose ports share one buffer.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;

use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::Scenario;

/// `congested` hosts each receive raw packets of 1000 B from three others, three times what their link
/// carries; the switch has 300 KB for all ports.
fn run(congested: u32, switch: &str) -> Outcome {
    let workloads: String = (0..congested)
        .map(|host| {
            let first = 4 + 3 * host;
            format!(
                "[workload.w{host}]\nkind = 'packets'\nfrom = 'h{first}..h{}'\nto = 'h{host}'\nsize = '1000B'\n\
                 load = 0.999\narrivals = 'constant'\n[observe.queue.q{host}]\nport = 'h{host}'\nevery = '1ms'\n",
                first + 2
            )
        })
        .collect();
    let text = format!(
        "version = 1\ntitle = 'one pool'\n[run]\nduration = '20ms'\n[topology]\nkind = 'rack'\nhosts = 16\n\
         rate = '1Gbps'\ndelay = '5us'\n[port.switch]\n{switch}\n{workloads}"
    );
    let scenario = Scenario::parse("inline", &text, Path::new("."))
        .unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]));
    plimsoll_sim::run(&scenario.points()[0].model, &mut |_| true).unwrap()
}

#[test]
fn ports_settle_at_the_dynamic_threshold() {
    for (alpha, congested) in [(1.0, 1), (1.0, 2), (1.0, 4), (0.5, 2), (4.0, 3)] {
        let outcome = run(congested, &format!("shared_buffer = {{ total = '300KB', alpha = {alpha} }}"));
        let share = alpha / (1.0 + f64::from(congested) * alpha) * 300_000.0;
        assert!(outcome.counters.switch_drops > 0);
        for queue in &outcome.queues {
            // The last interval with everyone at work.
            let mean = queue.mean_bytes[15];
            assert!(
                (mean - share).abs() < 2_500.0,
                "alpha {alpha}, {congested} ports: {mean:.0} of {share:.0} B"
            );
        }
    }
}

#[test]
fn a_pool_nobody_fills_changes_nothing() {
    let calm = |switch: &str| {
        let text = format!(
            "version = 1\ntitle = 'room enough'\n[topology]\nkind = 'leaf-spine'\nleaves = 2\nspines = 2\n\
             hosts_per_leaf = 3\nrate = '1Gbps'\ndelay = '5us'\n[port.switch]\n{switch}\n[workload.w]\n\
             kind = 'all-to-all'\nsize = '20KB'\nload = 0.3\ncount = 300\n"
        );
        let scenario = Scenario::parse("inline", &text, Path::new(".")).unwrap();
        plimsoll_results::Digest::of(&plimsoll_sim::run(&scenario.points()[0].model, &mut |_| true).unwrap())
    };
    let unlimited = calm("engine = 'general'");
    assert_eq!(calm("shared_buffer = { total = '1GB' }"), unlimited);
    assert_eq!(calm("shared_buffer = { total = '1GB' }\ncounts = 'waiting-and-in-service'"), unlimited);
}

#[test]
fn the_express_engine_cannot_share() {
    let text = "version = 1\ntitle = 'express'\n[topology]\nkind = 'rack'\nhosts = 2\nrate = '1Gbps'\ndelay = '5us'\n\
                [port.switch]\nengine = 'express'\nshared_buffer = {}\n[workload.w]\nkind = 'flows'\nfrom = 'h1'\n\
                to = 'client'\nsize = '1MB'\n";
    let errors = Scenario::parse("inline", text, Path::new(".")).unwrap_err();
    assert!(errors[0].to_string().contains("cannot do shared_buffer"), "{}", errors[0]);
}
