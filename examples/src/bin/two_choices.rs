//! Runs a scenario with a path selector that compares two random ports, by the library.

use plimsoll_examples::two_choices::{TwoChoices, TwoChoicesParams};
use plimsoll_examples::{percentile_us, with_and_without};
use plimsoll_process::outln;
use plimsoll_scenario::Registry;

const SCENARIO: &str = r#"
    version = 1
    title = "flows across a leaf-spine"
    [topology]
    kind = "leaf-spine"
    leaves = 4
    spines = 4
    hosts_per_leaf = 8
    rate = "10Gbps"
    fabric_rate = "10Gbps"
    delay = "1us"
    [transport]
    dup_ack_threshold = 0      # packets overtake each other
    handshake = false
    connections = "per-message"
    min_rto = "1ms"
    initial_rto = "1ms"
    ack_every = 1
    [workload.flows]
    kind = "all-to-all"
    size = { kind = "cdf", cdf = "websearch" }
    load = 0.3
    count = 1000
    "#;

fn main() {
    let registry =
        Registry::new().path_selector("two-choices", "1", |_: &TwoChoicesParams| Box::new(TwoChoices));
    let (hashed, spread) = with_and_without(&registry, SCENARIO, "paths.two-choices={}");
    let (before, after) = (percentile_us(&hashed, 0, 0.9), percentile_us(&spread, 0, 0.9));
    outln!("p90 of flows: {before:.0} us with hashed paths, {after:.0} us with two choices a packet");
    assert!(after < before);
}
