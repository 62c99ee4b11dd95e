//! Runs a scenario with TCP Vegas at all ends of its connections, by the library.

use plimsoll_examples::vegas::{Vegas, VegasParams};
use plimsoll_examples::{percentile_us, with_and_without};
use plimsoll_mechanisms::tcp::MakeController;
use plimsoll_process::outln;
use plimsoll_sim::Extensions;

fn main() {
    let vegas = MakeController::new(|| Box::new(Vegas::new(&VegasParams::default())));
    let extensions = Extensions { congestion_control: Some(vegas), ..Extensions::default() };
    let (reno, vegas) = with_and_without(include_str!("../../beside-bulk.toml"), extensions);
    let (before, after) = (percentile_us(&reno, 1, 0.99), percentile_us(&vegas, 1, 0.99));
    outln!("p99 of requests beside bulk TCP: {before:.0} us with Reno, {after:.0} us with Vegas");
    assert!(after < before / 4.0);
}
