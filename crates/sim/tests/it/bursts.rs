//! Hosts whose NICs have offloads: trains leave, batches arrive, and the parts still sum.
#![allow(clippy::unwrap_used, reason = "a test")]

use std::path::Path;

use plimsoll_results::Digest;
use plimsoll_results::outcome::Outcome;
use plimsoll_scenario::{Overrides, Scenario};
use plimsoll_units::Span;

/// One flow of 2 MB on a rack of 10 Gb/s, with `more` at the end.
fn run(more: &str) -> Outcome {
    let text = format!(
        "version = 1\ntitle = 'offloads'\n[topology]\nkind = 'rack'\nhosts = 4\nrate = '10Gbps'\ndelay = '5us'\n\
         [transport]\nkind = 'dctcp'\n[workload.bulk]\nkind = 'flows'\nfrom = 'h1..h2'\nto = 'client'\n\
         size = '2MB'\n[port.switch]\necn = {{ threshold = '30KB' }}\n{more}\n"
    );
    let scenario = Scenario::parse("inline", &text, Path::new("."))
        .unwrap_or_else(|errors| panic!("{}\n{text}", errors[0]));
    plimsoll_sim::run(&scenario.points()[0].model, &mut |_| true).unwrap()
}

fn acks(outcome: &Outcome) -> u64 {
    let data: u64 = outcome.connections.iter().map(|connection| connection.segments).sum();
    outcome.counters.packets_sent - data
}

#[test]
fn receive_offload_saves_acknowledgements() {
    let plain = run("");
    let merged = run("[host]\nbursts = { segmentation = '0B' }");
    let coalesced = run("[host]\nbursts = { segmentation = '0B', receive_offload = '0B' }");
    // One for two segments; one for a batch; and again one for two.
    assert!(acks(&merged) * 3 < acks(&plain), "{} {}", acks(&merged), acks(&plain));
    assert!(acks(&coalesced) * 10 > acks(&plain) * 9, "{} {}", acks(&coalesced), acks(&plain));
    for outcome in [&plain, &merged, &coalesced] {
        assert!(outcome.messages.iter().all(|message| message.completed.is_some()));
        assert_eq!(outcome.counters.timeouts, 0);
    }
}

#[test]
fn marks_are_counted_whole_whatever_is_merged() {
    let merged = run("[host]\nbursts = {}");
    let arrived: u64 = merged.connections.iter().map(|connection| connection.marked).sum();
    assert!(arrived > 0);
    assert_eq!(arrived, merged.counters.marks);
}

#[test]
fn the_time_in_a_batch_is_time_in_the_nic() {
    // A request and a response of one packet each wait for nothing but the two interrupts.
    let text = "version = 1\ntitle = 'interrupts'\n[topology]\nkind = 'rack'\nhosts = 2\nrate = '10Gbps'\n\
                delay = '5us'\n[transport]\nhandshake = false\n[workload.w]\nkind = 'rpc'\nrequest = '100B'\n\
                response = '900B'\nload = '1Mbps'\ncount = 20\n[host]\nbursts = { coalesce_time = '30us' }\n";
    let scenario = Scenario::parse("inline", text, Path::new(".")).unwrap();
    let outcome = plimsoll_sim::run(&scenario.points()[0].model, &mut |_| true).unwrap();
    assert_eq!(outcome.messages.len(), 20);
    for message in &outcome.messages {
        assert_eq!(message.split.nic, Span::from_us(60));
        assert_eq!(message.latency(), Some(message.ideal + Span::from_us(60)));
        assert_eq!(message.latency(), Some(message.split.total()));
    }
}

/// Time average of the client's queue in bytes, and what its link delivered in bytes.
fn shipped(variant: &str) -> (f64, u64) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/bursts.toml");
    let set = vec!["run.duration=150ms".to_owned()];
    let scenario = Scenario::load_with(file, &Overrides { set, ..Overrides::default() }).unwrap();
    let point = scenario.points().iter().find(|point| point.variant == variant).unwrap();
    let outcome = plimsoll_sim::run(&point.model, &mut |_| true).unwrap();
    let queue = &outcome.queues[0];
    (queue.mean_bytes.iter().sum::<f64>() / queue.mean_bytes.len() as f64, queue.bytes)
}

#[test]
fn hull_needs_its_pacer_when_offloads_are_on() {
    let (plain, trains, paced) = (shipped("plain"), shipped("offloads"), shipped("offloads-pacer"));
    assert!(trains.0 > 5.0 * plain.0, "trains stand in the queue: {trains:?}, {plain:?}");
    assert!(trains.0 > 5.0 * paced.0, "the pacer spreads them: {trains:?}, {paced:?}");
    assert!(trains.1 < paced.1 && paced.1 < plain.1, "and saves part of the rate: {trains:?}, {paced:?}");
}

#[test]
fn losses_are_repaired_and_conserved() {
    for engine in ["auto", "general"] {
        let lossy = format!(
            "buffer = '20 packets'\nengine = '{engine}'\n[host]\nbursts = {{}}\nbackpressure = true\n\
             [port.host]\nbuffer = '50 packets'\n"
        );
        let outcome = run(&lossy);
        assert!(outcome.counters.switch_drops > 0);
        assert!(outcome.messages.iter().all(|message| message.completed.is_some()));
    }
}

#[test]
fn everything_off_is_nothing_at_all() {
    let off = "[host]\nbursts = { segmentation = '0B', coalesce_time = '0s' }";
    assert_eq!(Digest::of(&run(off)), Digest::of(&run("")));
    assert_eq!(Digest::of(&run("[host]\nbursts = {}")), Digest::of(&run("[host]\nbursts = {}")));
}
