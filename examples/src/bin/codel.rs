//! Runs a scenario with CoDel at the ports of its switch, by the library.

use plimsoll_examples::codel::{CoDel, CoDelParams};
use plimsoll_examples::{percentile_us, with_and_without};
use plimsoll_fabric::net::port::QueueDiscipline;
use plimsoll_process::outln;
use plimsoll_sim::Extensions;

fn main() {
    let discipline = |_: &_| Some(Box::new(CoDel::new(&CoDelParams::default())) as Box<dyn QueueDiscipline>);
    let extensions = Extensions { queue_discipline: Some(&discipline), ..Extensions::default() };
    let (fifo, codel) = with_and_without(include_str!("../../beside-bulk.toml"), extensions);
    let (before, after) = (percentile_us(&fifo, 1, 0.99), percentile_us(&codel, 1, 0.99));
    outln!(
        "p99 of requests beside bulk TCP: {before:.0} us first come first served, {after:.0} us with CoDel"
    );
    assert!(after < before / 2.0);
}
