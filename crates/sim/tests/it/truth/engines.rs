//! The express port engine foresees departures, the general one waits for them. Wherever both apply a run
//! must not tell which it was: everything observed has the same digest.

use plimsoll_results::outcome::{Counters, QueueObservation};
use proptest::prelude::*;

use crate::truth::arbitrary::{Scope, config, scenario};
use crate::truth::lab::{Run, run};

proptest! {
    #![proptest_config(config(200))]
    #[test]
    fn both_engines_see_the_same(text in scenario(Scope::Express)) {
        let express = run(&text.replace("ENGINE", "engine = 'express'"));
        let general = run(&text.replace("ENGINE", "engine = 'general'"));
        assert_same(&express, &general)?;
    }

    /// Departures that are decided late equal the departures of a run with an event for each.
    #[test]
    fn late_departures_are_those_in_time(text in scenario(Scope::All)) {
        let general = run(&text.replace("ENGINE", "engine = 'general'"));
        let explicit = run(&text.replace("ENGINE", "engine = 'explicit'"));
        assert_same(&general, &explicit)?;
        prop_assert_eq!(general.counters, explicit.counters);
    }
}

/// Compares parts first, so that a failure names the part that differs.
fn assert_same(one: &Run, other: &Run) -> Result<(), TestCaseError> {
    if one.digest() == other.digest() {
        return Ok(());
    }
    prop_assert_eq!(one.counters, Counters { events: one.counters.events, ..other.counters });
    for (one, other) in one.messages.iter().zip(&other.messages) {
        prop_assert_eq!(one, other);
    }
    for (one, other) in one.queues.iter().zip(&other.queues) {
        let counts = |queue: &QueueObservation| (queue.drops, queue.marks, queue.packets, queue.bytes);
        prop_assert_eq!(counts(one), counts(other), "drops, marks, packets, bytes of {}", one.port);
        let interval =
            |queue: &QueueObservation, index: usize| (queue.mean_bytes[index], queue.max_bytes[index]);
        let same = |index: &usize| interval(one, *index) == interval(other, *index);
        let different = (0..one.mean_bytes.len().min(other.mean_bytes.len())).find(|index| !same(index));
        if let Some(index) = different {
            prop_assert_eq!(
                interval(one, index),
                interval(other, index),
                "interval {} of {}",
                index,
                one.port
            );
        }
        prop_assert!(one == other, "{} differs, as a histogram or in length", one.port);
    }
    prop_assert_eq!(&one.connections, &other.connections);
    prop_assert_eq!(&one.series, &other.series);
    prop_assert_eq!(&one.goodput, &other.goodput);
    prop_assert_eq!(one.digest(), other.digest());
    Ok(())
}

/// An event that the express engine foresees does not count before it happens. These runs end with packets waiting.
fn assert_same_at_the_end(host: &str, switch: &str, transport: &str, seed: u64, size: &str) {
    let text = format!(
        r#"
        version = 1
        title = 'packets waiting at the end'
        run = {{ seed = {seed}, drain = '60s', duration = '1s' }}
        topology = {{ kind = 'fat-tree', k = 4, rate = '1Gbps', delay = '0s' }}
        {host}
        [port.switch]
        buffer = 'unlimited'
        {switch}
        ENGINE
        [transport]
        {transport}
        connections = 'per-message'
        recovery = 'reno'
        min_rto = '200us'
        initial_rto = '5ms'
        max_rto = '20ms'
        ack_every = 1
        handshake = false
        rto_granularity = '10us'
        [workload.incast]
        kind = 'incast'
        size = '{size}'
        every = '300us'
        rounds = 6
        [observe]
        queue.client = {{ port = 'client', every = '10us' }}
        "#
    );
    let express = run(&text.replace("ENGINE", "engine = 'express'"));
    let general = run(&text.replace("ENGINE", "engine = 'general'"));
    assert!(express.counters.packets_in_flight > 0, "{:?}", express.counters);
    assert_eq!(express.counters.marks, general.counters.marks);
    assert_eq!(express.queues[0].marks, general.queues[0].marks);
    assert_eq!(express.connections, general.connections);
    assert_eq!(express.digest(), general.digest());
}

#[test]
fn marks_that_the_end_forestalls() {
    assert_same_at_the_end(
        "port.host = { buffer = '6 packets' }\nhost = { backpressure = false }",
        "phantom_queue = { drain = 0.8, threshold = '3KB' }",
        "kind = 'tcp'\necn = 'on'\necn_on_acks = true\ninitial_window = 7",
        274_323_804,
        "9KB",
    );
}

#[test]
fn associations_that_the_end_forestalls() {
    assert_same_at_the_end(
        "[port.host]\nbuffer = '8 packets'\norder = 'fifo'\nENGINE\n\
         [host]\nbackpressure = false\npacer = { form = 'source', association_probability = 1.0 }",
        "ecn = { threshold = '1 packets', at = 'enqueue', compare = 'more' }",
        "kind = 'dctcp'\ninitial_window = 8",
        606_208_598,
        "11KB",
    );
}
