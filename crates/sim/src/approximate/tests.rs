//! Approximate runs beside whole ones.

use std::path::Path;

use plimsoll_scenario::Scenario;
use plimsoll_scenario::model::Approximate;

use super::*;

fn model(topology: &str, workload: &str, transport: &str) -> Model {
    let text = format!(
        "version = 1\ntitle = 'flows'\n[run]\nduration = '20ms'\n[topology]\n{topology}\n\
         [transport]\nkind = 'dctcp'\nconnections = 'per-message'\nmin_rto = '5ms'\n{transport}\n\
         [port.switch]\necn = {{ threshold = '100KB' }}\nbuffer = '2MB'\n{workload}"
    );
    let scenario = Scenario::parse("flows.toml", &text, Path::new(".")).expect("it is valid");
    scenario.points()[0].model.clone()
}

const RACK: &str = "kind = 'rack'\nhosts = 8\nrate = '10Gbps'\ndelay = '1us'";

fn approximate(model: &Model, links: u32) -> Outcome {
    let size = Approximate { links, ..Approximate::default() };
    run(model, size, 2, &mut |_| true).expect("nothing is refused")
}

fn exact(model: &Model) -> Outcome {
    crate::run(model, &mut |_| true).expect("it runs")
}

fn slowdowns(outcome: &Outcome) -> Vec<f64> {
    let mut slowdowns: Vec<f64> = outcome.messages.iter().filter_map(|message| message.slowdown()).collect();
    slowdowns.sort_unstable_by(f64::total_cmp);
    slowdowns
}

#[test]
fn flows_that_never_meet_take_what_they_take_in_the_whole_run() {
    let idle = "[workload.one]\nkind = 'flows'\nfrom = ['h1', 'h2', 'h3']\nto = 'h0'\nsize = '100KB'\nstagger = '5ms'";
    let model = model(RACK, idle, "");
    let (whole, parts) = (exact(&model), approximate(&model, 100));
    let times = |outcome: &Outcome| -> Vec<_> {
        outcome.messages.iter().map(|message| (message.completed, message.ideal)).collect()
    };
    assert_eq!(times(&whole).len(), 3);
    assert_eq!(times(&parts), times(&whole));
}

#[test]
fn one_shared_link_is_as_in_the_whole_run() {
    let incast = "[workload.in]\nkind = 'flows'\nfrom = 'h1..h7'\nto = 'h0'\nsize = '300KB'\nstagger = '20us'";
    let model = model(RACK, incast, "");
    let (whole, parts) = (exact(&model), approximate(&model, 100));
    for (whole, part) in whole.messages.iter().zip(&parts.messages) {
        let ratio = part.slowdown().unwrap_or(0.0) / whole.slowdown().unwrap_or(0.0);
        assert!((0.98..1.02).contains(&ratio), "{ratio}: {part:?} {whole:?}");
    }
}

#[test]
fn two_links_at_half_load() {
    let all = "[workload.all]\nkind = 'all-to-all'\nload = 0.5\nsize = '20KB'";
    let model = model(RACK, all, "");
    let (whole, parts) = (slowdowns(&exact(&model)), approximate(&model, 100));
    let parts = slowdowns(&parts);
    assert_eq!(whole.len(), parts.len());
    for share in [0.5, 0.9, 0.99] {
        let of = |all: &[f64]| plimsoll_results::stats::percentile(all, share).unwrap_or(0.0);
        let (whole, parts) = (of(&whole), of(&parts));
        eprintln!("{share} {whole} {parts} {}", parts / whole);
    }
}
