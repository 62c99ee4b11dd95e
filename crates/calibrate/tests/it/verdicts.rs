//! The verdict names the layer that was changed.

use plimsoll_calibrate::{Comparison, LatencyLayer, Verdict};

use crate::{measured, modelled};

/// Compares a run with a measurement that has a change; without and with times from inside the server.
fn verdicts(set: &[&str]) -> [Verdict; 2] {
    let modelled = modelled(&[]);
    let [latencies, server] = measured(set);
    [None, Some(&server)].map(|server| {
        let found = Comparison::of("get", "run", &latencies, server, &modelled, 10_000.0);
        found.verdict
    })
}

#[test]
fn the_same_model_has_no_significant_difference() {
    assert_eq!(verdicts(&[]), [Verdict::NotSignificant, Verdict::NotSignificant]);
}

#[test]
fn a_slower_stack_is_the_host() {
    let found = verdicts(&["host.processor={ interrupt = '5us' }"]);
    assert_eq!(found, [Verdict::Layer(LatencyLayer::Host), Verdict::Layer(LatencyLayer::Host)]);
}

#[test]
fn a_slower_server_is_the_service() {
    let found = verdicts(&["workload.get.service.mean=20us"]);
    assert_eq!(found, [Verdict::Layer(LatencyLayer::Service), Verdict::Layer(LatencyLayer::Service)]);
}

#[test]
fn a_measurement_faster_than_an_idle_run_is_a_model_that_is_too_slow() {
    let slow = modelled(&["topology.delay=7us"]);
    let [latencies, _] = measured(&[]);
    let found = Comparison::of("get", "run", &latencies, None, &slow, 10_000.0);
    assert!(
        matches!(&found.verdict, Verdict::ModelTooSlow(layers) if layers.contains(&LatencyLayer::Host)),
        "{found:?}"
    );
    assert!(found.sentence.starts_with("the model is too slow, in the layer host"), "{}", found.sentence);
    assert!(found.sentence.contains("without queueing"), "{}", found.sentence);
}

#[test]
fn more_load_is_the_queue_once_the_server_is_excluded() {
    let [without, with] = verdicts(&["workload.bulk.load=0.6"]);
    assert_eq!(without, Verdict::CannotTell(vec![LatencyLayer::Queue, LatencyLayer::Service]));
    assert_eq!(with, Verdict::Layer(LatencyLayer::Queue));
}

#[test]
fn timeouts_of_a_small_buffer_are_losses() {
    let found = verdicts(&["port.switch.buffer=6KB"]);
    assert_eq!(found, [Verdict::Layer(LatencyLayer::Loss), Verdict::Layer(LatencyLayer::Loss)]);
}

#[test]
fn without_a_count_nothing_can_be_told() {
    let [mut latencies, _] = measured(&["workload.get.service.mean=20us"]);
    latencies.samples = None;
    let found = Comparison::of("get", "run", &latencies, None, &modelled(&[]), 10_000.0);
    assert_eq!(found.verdict, Verdict::NoIntervals);
    assert!(found.sentence.starts_with("cannot tell: the file does not state"));
}
