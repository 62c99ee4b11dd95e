//! Runs a scenario with TCP Vegas at all ends of its connections, by the library.

use plimsoll_examples::vegas::{Vegas, VegasParams};
use plimsoll_examples::{percentile_us, with_and_without};
use plimsoll_process::outln;
use plimsoll_scenario::Registry;

fn main() {
    let registry = Registry::new()
        .congestion_controller("vegas", "1", |params: &VegasParams| Box::new(Vegas::new(params)));
    let scenario = include_str!("../../beside-bulk.toml");
    let (reno, vegas) = with_and_without(&registry, scenario, "transport.kind=vegas");
    let (before, after) = (percentile_us(&reno, 1, 0.99), percentile_us(&vegas, 1, 0.99));
    outln!("p99 of requests beside bulk TCP: {before:.0} us with Reno, {after:.0} us with Vegas");
    assert!(after < before / 4.0);
}
