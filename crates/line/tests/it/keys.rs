//! Knees of keys that are no load, whose value is a formula: packets of 1000 B cross three links, so seldom that none
//! waits. With the delay D of each link, 0.8 us at each of the two outer links and S in the middle, a packet takes
//! 1.6 us + S + 3 D.
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use plimsoll_experiment::bench;
use plimsoll_line::search::{Found, SearchState};
use plimsoll_line::{LineQuestion, Lines, Room, SearchWatch, draw};
use plimsoll_report::{Format, TableStyle};
use plimsoll_results::run_dir::Existing;
use plimsoll_scenario::Scenario;

struct Silent;
impl SearchWatch for Silent {}

fn links() -> Scenario {
    let text = "version = 1\ntitle = 'three links'\n[run]\nduration = '60ms'\n\
                [topology]\nkind = 'dumbbell'\nleft = 1\nright = 1\nrate = '10Gbps'\ndelay = '1us'\n\
                bottleneck_rate = '10Gbps'\n\
                [workload.w]\nkind = 'packets'\nfrom = 'h0'\nto = 'h1'\nsize = '1000B'\nload = '5Mbps'\n";
    Scenario::parse("links.toml", text, Path::new(".")).unwrap()
}

fn knee(key: &str, within: &str, objective: &str) -> Lines {
    let question = LineQuestion {
        slo: vec![objective.to_owned()],
        over: Some(key.to_owned()),
        within: Some(within.to_owned()),
        ..LineQuestion::default()
    };
    let scenario = links();
    let asked = question.ask(&scenario).unwrap();
    let room = Room { threads: bench::threads(None), memory_max: u64::MAX };
    draw(&asked, None, Existing::Resume, room, &Silent).unwrap()
}

/// 1.6 us + 0.8 us + 3 D = 20 us at D = 5.87 us: longer links violate it.
#[test]
fn a_delay_meets_a_time_up_to_its_knee() {
    let lines = knee("topology.delay", "1us..20us", "mean(w) < 20us");
    let variant = &lines.variants[0];
    let us = variant.line.load().unwrap() / 1e6;
    assert!((us / 5.867 - 1.0).abs() < 0.01, "{us}");
    assert!(variant.line.met() < variant.line.violated());
    assert_eq!(variant.today, SearchState::Keeps, "the scenario has 1 us");
    let sentence = &lines.sentences()[0];
    assert!(sentence.contains("meets mean(w) < 20us up to 5.8") && sentence.contains("us ("), "{sentence}");
    assert!(sentence.contains("today's 1us meets it"), "{sentence}");
}

/// 1.6 us + S + 3 us = 20 us at S = 15.4 us, which is 519 Mb/s: slower links violate it.
#[test]
fn a_rate_meets_a_time_from_its_knee_on() {
    let lines = knee("topology.bottleneck_rate", "100Mbps..10Gbps", "mean(w) < 20us");
    let variant = &lines.variants[0];
    let mbps = variant.line.load().unwrap() / 1e6;
    assert!((mbps / 519.5 - 1.0).abs() < 0.02, "{mbps}");
    assert!(variant.line.violated() < variant.line.met());
    assert!(variant.headroom.is_some_and(|headroom| (headroom * mbps / 1e4 - 1.0).abs() < 1e-9));
    let sentence = &lines.sentences()[0];
    assert!(sentence.contains("meets mean(w) < 20us from 5") && sentence.contains(") on; "), "{sentence}");
    let table = lines.render(Format::Table, &TableStyle::default());
    assert!(table.starts_with("Knee of topology.bottleneck_rate for mean(w) < 20us"), "{table}");
    assert!(!table.contains("load"), "{table}");
    let again: Lines = serde_json::from_str(&lines.render(Format::Json, &TableStyle::default())).unwrap();
    assert_eq!(again, lines);
}

#[test]
fn ends_that_agree_have_no_knee() {
    for (objective, found, words) in [
        (
            "mean(w) < 1ms",
            Found::Always,
            "w) < 1ms at 1us and at 20us, and at 4 values between them: no change was found",
        ),
        ("mean(w) < 2us", Found::Never, "violates mean(w) < 2us at 1us and at 20us"),
        ("unfinished(w) == 0", Found::Always, "meets unfinished(w) == 0 at 1us and at 20us"),
        ("unfinished(*) == 1", Found::Never, "violates unfinished(*) == 1 at 1us and at 20us"),
    ] {
        let lines = knee("topology.delay", "1us..20us", objective);
        assert_eq!(lines.variants[0].line.found(), found, "{objective}");
        assert!(lines.sentences()[0].contains(words), "{:?}", lines.sentences());
    }
}

/// A buffer of 5 KB has no room for the threshold of the second variant, which is not asked for and keeps its own.
#[test]
fn a_value_is_given_to_the_variants_that_are_asked_for_alone() {
    let text = "version = 1\ntitle = 'two variants'\n[run]\nduration = '20ms'\n\
                [topology]\nkind = 'dumbbell'\nleft = 1\nright = 1\nrate = '10Gbps'\nbottleneck_rate = '10Gbps'\n\
                delay = '1us'\n\
                [port.switch]\nbuffer = '100KB'\n\
                [workload.w]\nkind = 'packets'\nfrom = 'h0'\nto = 'h1'\nsize = '1000B'\nload = '5Mbps'\n\
                [variant.plain]\n[variant.pauses]\nport.switch.pfc = { xoff = '60KB' }\n";
    let scenario = Scenario::parse("two.toml", text, Path::new(".")).unwrap();
    let ask = |variants: &[&str]| {
        let question = LineQuestion {
            slo: vec!["mean(w) < 20us".to_owned()],
            over: Some("port.switch.buffer".to_owned()),
            within: Some("5KB..40KB".to_owned()),
            variants: variants.iter().map(|name| (*name).to_owned()).collect(),
            ..LineQuestion::default()
        };
        let asked = question.ask(&scenario).map_err(|error| error.to_string())?;
        let room = Room { threads: bench::threads(None), memory_max: u64::MAX };
        draw(&asked, None, Existing::Resume, room, &Silent).map_err(|error| error.to_string())
    };
    let refused = ask(&[]).unwrap_err();
    assert!(refused.contains("flow control needs 67.084KB of buffer"), "{refused}");
    assert!(ask(&["pauses"]).is_err());
    let lines = ask(&["plain"]).unwrap();
    assert_eq!(lines.variants.len(), 1);
    assert_eq!(lines.variants[0].line.found(), Found::Always);
}

/// Paths have 1, 2, 4, ... values, of which NDP has none, and a fat-tree has an even number of ports at each switch.
#[test]
fn values_that_a_key_refuses_are_not_tried_and_a_key_without_effect_is_named() {
    let text = "version = 1\ntitle = 'paths'\n[run]\ndrain = '10ms'\n\
                [topology]\nkind = 'fat-tree'\nk = 4\nrate = '100Gbps'\ndelay = '1us'\n\
                [workload.w]\nkind = 'permutation'\nsize = '100KB'\n\
                [variant.uet]\npreset = 'uet-nscc'\n[variant.ndp]\npreset = 'ndp'\n";
    let scenario = Scenario::parse("paths.toml", text, Path::new(".")).unwrap();
    let question = |key: &str, within: &str| LineQuestion {
        slo: vec!["mean(w) < 1ms".to_owned()],
        over: Some(key.to_owned()),
        within: Some(within.to_owned()),
        replicates_max: 4,
        ..LineQuestion::default()
    };
    let asked = question("transport.uet.paths.values", "2..64").ask(&scenario).unwrap();
    let room = Room { threads: bench::threads(None), memory_max: u64::MAX };
    let lines = draw(&asked, None, Existing::Resume, room, &Silent).unwrap();
    let values: Vec<f64> = lines.variants[0].loads.iter().map(|at| at.load).collect();
    assert_eq!(values, [2.0, 4.0, 8.0, 16.0, 32.0, 64.0]);
    assert_eq!([0, 1].map(|variant: usize| lines.variants[variant].is_without_effect), [false, true]);
    let sentence = &lines.sentences()[1];
    let expected =
        "meets mean(w) < 1ms; `transport.uet.paths.values` has no effect, as runs at 2 and 64 are equal";
    assert!(sentence.ends_with(expected), "{sentence}");
    let refused = question("topology.k", "4..8").ask(&scenario).map(|_| ()).unwrap_err().to_string();
    assert!(refused.contains("`topology.k` does not take all values from 4 to 8"), "{refused}");
}

#[test]
fn a_key_that_cannot_be_searched_is_refused_with_the_reason() {
    let ask = |key: &str, within: Option<&str>| {
        let question = LineQuestion {
            slo: vec!["mean(w) < 20us".to_owned()],
            over: Some(key.to_owned()),
            within: within.map(str::to_owned),
            ..LineQuestion::default()
        };
        question.ask(&links()).map(|_| ()).unwrap_err().to_string()
    };
    for (key, within, words) in [
        ("topology.delay", None, "`plimsoll line` searches other keys of numbers between two values"),
        ("topology.delay", Some("1..10us"), "--within: `1..10us` is no range for `topology.delay`"),
        ("topology.delay", Some("1KB..9KB"), "topology.delay"),
        ("topology.delays", Some("1us..10us"), "did you mean `delay`?"),
    ] {
        let said = ask(key, within);
        assert!(said.contains(words), "{key} {within:?}: {said}");
    }
}
