//! Runs a scenario with CoDel at the ports of its switch, by the library.

use plimsoll_examples::codel::{CoDel, CoDelParams};
use plimsoll_examples::{percentile_us, with_and_without};
use plimsoll_process::outln;
use plimsoll_scenario::Registry;

fn main() {
    let registry = Registry::new()
        .queue_discipline("codel", "1", |params: &CoDelParams, _| Box::new(CoDel::new(params)));
    let scenario = include_str!("../../beside-bulk.toml");
    let (fifo, codel) = with_and_without(&registry, scenario, "port.switch.discipline={ codel = {} }");
    let (before, after) = (percentile_us(&fifo, 1, 0.99), percentile_us(&codel, 1, 0.99));
    outln!(
        "p99 of requests beside bulk TCP: {before:.0} us first come first served, {after:.0} us with CoDel"
    );
    assert!(after < before / 2.0);
}
