//! Approximate runs beside whole ones.

use std::path::Path;

use plimsoll_results::digest::Digest;
use plimsoll_results::outcome::Approximation;
use plimsoll_results::stats::percentile;
use plimsoll_scenario::Scenario;
use plimsoll_scenario::model::{Approximate, Graph, GraphLink, ListedFlow};
use plimsoll_units::{Bytes, Rate, Span};

use super::*;

const RACK: &str = "kind = 'rack'\nhosts = 8\nrate = '10Gbps'\ndelay = '1us'";
const LEAVES: &str = "kind = 'leaf-spine'\nleaves = 4\nspines = 2\nhosts_per_leaf = 4\nrate = '10Gbps'\n\
                      fabric_rate = '40Gbps'\ndelay = '1us'";
const ALL: &str = "[workload.all]\nkind = 'all-to-all'\nload = 0.5\nsize = '20KB'";

fn model(topology: &str, rest: &str) -> Model {
    let text = format!(
        "version = 1\ntitle = 'flows'\n[run]\nduration = '20ms'\nwarmup = '2ms'\n[topology]\n{topology}\n\
         [transport]\nkind = 'dctcp'\nconnections = 'per-message'\nmin_rto = '5ms'\nhandshake = false\n\
         [port.switch]\necn = {{ threshold = '100KB' }}\nbuffer = '2MB'\n{rest}"
    );
    let scenario = Scenario::parse("flows.toml", &text, Path::new(".")).expect("it is valid");
    scenario.points()[0].model.clone()
}

fn approximate(model: &Model, links: u32, threads: usize) -> Result<Outcome, RunError> {
    run(model, Approximate { links, ..Approximate::default() }, threads, &mut |_| true)
}

fn parts_of(model: &Model) -> Outcome {
    approximate(model, 1_000, 2).expect("nothing is refused")
}

fn whole(model: &Model) -> Outcome {
    crate::run(model, &mut |_| true).expect("it runs")
}

fn slowdowns(outcome: &Outcome) -> Vec<f64> {
    let mut slowdowns: Vec<f64> = outcome.messages.iter().filter_map(|message| message.slowdown()).collect();
    slowdowns.sort_unstable_by(f64::total_cmp);
    slowdowns
}

fn known(outcome: &Outcome) -> &Approximation {
    outcome.approximation.as_ref().expect("it is approximate")
}

#[test]
fn flows_that_never_meet_take_what_they_take_in_the_whole_run() {
    let apart = "[workload.one]\nkind = 'flows'\nfrom = ['h1', 'h5', 'h15']\nto = 'h0'\nsize = '100KB'\n\
                 start = '3ms'\nstagger = '5ms'";
    let model = model(LEAVES, apart);
    let times = |outcome: &Outcome| -> Vec<_> {
        outcome.messages.iter().map(|message| (message.completed, message.ideal)).collect()
    };
    let whole = times(&whole(&model));
    assert_eq!(whole.len(), 3);
    assert_eq!(times(&parts_of(&model)), whole);
}

#[test]
fn a_flow_that_comes_to_a_link_after_the_end_of_traffic_is_sent_until_the_run_ends() {
    let mut model = model(RACK, ALL);
    model.run.drain = Span::from_ms(10);
    let link = |from, to| GraphLink { from, to, rate: Rate::from_gbps(10), delay: Span::from_us(1) };
    let hosts = vec!["h0".to_owned(), "h1".to_owned()];
    let graph = Graph { hosts, switches: vec!["s".to_owned()], links: vec![link(0, 2), link(2, 1)] };
    let flow = |start| ListedFlow {
        start: Span::from_ms(start),
        source: 0,
        destination: 1,
        size: Bytes::new(1_000),
        class: String::new(),
    };
    // Traffic ends after 20 ms, the run after 30.
    let outcome = whole(&Task::new(&model, graph, "", vec![[5, 25, 40].map(flow).to_vec()]).model(&model));
    let completed = outcome.messages.iter().filter(|message| message.completed.is_some()).count();
    assert_eq!((outcome.messages.len(), completed), (3, 2));
}

#[test]
fn flows_with_one_link_in_common_take_what_they_take_in_the_whole_run() {
    let incast = "[workload.in]\nkind = 'flows'\nfrom = 'h1..h7'\nto = 'h0'\nsize = '300KB'\n\
                  start = '3ms'\nstagger = '20us'";
    let model = model(RACK, incast);
    let (whole, parts) = (whole(&model), parts_of(&model));
    assert_eq!((whole.messages.len(), parts.messages.len()), (7, 7));
    assert!(slowdowns(&whole)[3] > 3.0, "they meet");
    for (whole, part) in whole.messages.iter().zip(&parts.messages) {
        let ratio = part.slowdown().unwrap_or(0.0) / whole.slowdown().unwrap_or(0.0);
        assert!((0.995..1.005).contains(&ratio), "{ratio}: {part:?} {whole:?}");
    }
}

/// Two links by themselves are within 2 % in the median and 7 % in the tail: the second sees its flows at their mean
/// pace.
#[test]
fn two_links_at_half_load_are_near_the_whole_run() {
    let model = model(RACK, ALL);
    let (whole, parts) = (slowdowns(&whole(&model)), slowdowns(&parts_of(&model)));
    assert_eq!(whole.len(), parts.len());
    for (share, most) in [(0.5, 0.02), (0.9, 0.04), (0.99, 0.07)] {
        let [whole, parts] = [&whole, &parts].map(|of| percentile(of, share).unwrap_or(f64::NAN));
        assert!((parts / whole - 1.0).abs() < most, "p{}: {whole} {parts}", share * 100.0);
    }
}

#[test]
fn any_number_of_threads_gives_the_same_sample_and_the_same_outcome() {
    let model = model(LEAVES, ALL);
    let [one, two, three] = [1, 2, 3].map(|threads| approximate(&model, 4, threads).expect("it runs"));
    assert_eq!([Digest::of(&one), Digest::of(&two)], [Digest::of(&two), Digest::of(&three)]);
    assert_eq!(known(&one), known(&three));
    // Four of 16 links of hosts and of 8 between the switches, both directions.
    assert_eq!((known(&one).links, known(&one).of_links), (16, 48));
    // What is sent with its headers, at most by a link: 20 kB are 14 packets.
    let load = 0.5 * (20_000.0 + 14.0 * 40.0) / 20_000.0;
    let busiest = known(&one).busiest;
    assert!((busiest / load - 1.0).abs() < 0.1, "{busiest} beside {load}");
}

#[test]
fn a_larger_sample_has_narrower_intervals() {
    let model = model(LEAVES, ALL);
    let width = |links: u32| {
        let outcome = approximate(&model, links, 2).expect("it runs");
        let interval = known(&outcome).slowdowns[0].slowdown[1].and_then(|estimate| estimate.interval);
        interval.map_or(f64::NAN, |interval| interval.high - interval.low)
    };
    let (few, many) = (width(2), width(16));
    assert!(many > 0.0 && many < few, "{few} {many}");
}

#[test]
fn a_busier_link_than_was_compared_is_refused() {
    match approximate(&model(LEAVES, &ALL.replace("0.5", "0.9")), 10, 1) {
        Err(RunError::Build { key, .. }) => assert_eq!(key, "run.approximate"),
        other => panic!("{other:?}"),
    }
}
