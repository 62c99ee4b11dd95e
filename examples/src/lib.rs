//! Three mechanisms and a scheduler of circuits from outside the workspace, one a module, and shared code of the
//! examples, which runs a scenario unchanged and with one of the mechanisms.

pub mod codel;
pub mod largest_first;
pub mod two_choices;
pub mod vegas;

use std::path::Path;

use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::{Overrides, Registry, Scenario};
use plimsoll_sim::run;

/// Runs the only point of a scenario unchanged and with `setting`, which names a mechanism of `registry`.
///
/// # Panics
/// Panics if the scenario is invalid, with its errors.
pub fn with_and_without(registry: &Registry, scenario: &str, setting: &str) -> (Outcome, Outcome) {
    let outcome = |set: Vec<String>| {
        let overrides = Overrides { set, ..Overrides::default() };
        let scenario = Scenario::parse_from(registry, "example", scenario, Path::new("."), &overrides)
            .unwrap_or_else(|errors| {
                panic!("{}", errors.iter().map(ToString::to_string).collect::<String>())
            });
        run(&scenario.points()[0].model, &mut |_| true).expect("the scenario can be run")
    };
    (outcome(Vec::new()), outcome(vec![setting.to_owned()]))
}

/// Returns a percentile of the completion times of the workload number `workload`, in us.
pub fn percentile_us(outcome: &Outcome, workload: u16, share: f64) -> f64 {
    let of = outcome.messages.iter().filter(|message| message.workload == workload);
    let mut times: Vec<f64> =
        of.filter_map(|message| message.latency()).map(|time| time.as_us_f64()).collect();
    times.sort_by(f64::total_cmp);
    times[((times.len() - 1) as f64 * share).round() as usize]
}

/// Compiles the code of the page as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../../docs/extending.md")]
pub struct ExtendingPage;

/// Compiles the code of the page as a doctest.
#[cfg(doctest)]
#[doc = include_str!("../../docs/circuits.md")]
pub struct CircuitsPage;
