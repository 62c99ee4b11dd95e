//! Lines of queues whose answer is a formula: raw packets of one host, whose own link is a thousand times
//! faster, in front of a link of 1 Gb/s. With the service time S of 1000 B (8 us) and the load r:
//!
//! * M/M/1: the time in the system is exponential with mean S / (1 - r), so its mean is at T where
//!   r = 1 - S / T, and its 99th percentile where r = 1 - S ln(100) / T.
//! * M/D/1: the mean is S (1 + r / (2 (1 - r))) (Pollaczek and Khinchine), and the wait's distribution is
//!   Erlang's (Operations research texts call it Crommelin's): P(W <= t) = (1 - r) sum over k <= t / S of
//!   (r (k - t / S))^k / k! x exp(-r (k - t / S)).
#![allow(clippy::print_stderr, reason = "a test; its runner shows it where it fails")]
#![allow(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use plimsoll_experiment::bench;
use plimsoll_line::search::Found;
use plimsoll_line::{LineQuestion, Room, SearchWatch, draw};
use plimsoll_results::run_dir::Existing;
use plimsoll_scenario::Scenario;

/// Mean service time in us.
const S: f64 = 8.0;

struct Silent;
impl SearchWatch for Silent {}

/// The line of a queue as a share of the slow link.
fn line(size: &str, objective: &str, today: f64) -> (f64, f64, f64) {
    let scenario = Scenario::parse(
        "queue.toml",
        &format!(
            "version = 1\ntitle = 'a queue'\n[run]\nwarmup = '20ms'\n\
             [topology]\nkind = 'dumbbell'\nleft = 1\nright = 1\nrate = '1000Gbps'\ndelay = '0s'\n\
             bottleneck_rate = '1Gbps'\n\
             [workload.w]\nkind = 'packets'\nfrom = 'h0'\nto = 'h1'\nsize = {size}\nload = '{}Mbps'\n\
             count = 100000\n",
            today * 1e3
        ),
        Path::new("."),
    )
    .unwrap();
    let question = LineQuestion {
        slo: vec![objective.to_owned()],
        within: Some("500Mbps..950Mbps".to_owned()),
        precision: 0.02,
        replicates_max: 16,
        ..LineQuestion::default()
    };
    let asked = question.ask(&scenario).unwrap();
    let room = Room { threads: bench::threads(None), memory_max: u64::MAX };
    let dir = std::env::temp_dir().join(format!(
        "plimsoll-queues-{}-{objective}-{}",
        std::process::id(),
        size.len()
    ));
    std::fs::create_dir_all(&dir).unwrap();
    let lines = draw(&asked, Some(&dir), Existing::Resume, room, &Silent).unwrap();
    std::fs::remove_dir_all(&dir).unwrap();
    let line = &lines.variants[0].line;
    assert_eq!(line.found(), Found::Line);
    assert_eq!(lines.variants[0].part.as_ref().unwrap().name, "the dumbbell queue");
    (line.load().unwrap() / 1e9, line.low().unwrap() / 1e9, line.high().unwrap() / 1e9)
}

#[track_caller]
fn assert_line(size: &str, objective: &str, today: f64, expected: f64) {
    let (load, low, high) = line(size, objective, today);
    let said = format!("{objective}: {load:.4} ({low:.4} to {high:.4}), theory {expected:.4}");
    assert!((load / expected - 1.0).abs() < 0.01, "{said}");
    assert!(low <= expected && expected <= high, "{said}: the interval misses it");
    eprintln!("{said}");
    assert!(high / low < 1.08, "{said}: the interval is wide");
}

const EXPONENTIAL: &str = "{ kind = 'exponential', mean = '1000B' }";
const CONSTANT: &str = "'1000B'";

#[test]
fn the_mean_of_an_mm1_queue() {
    // r = 1 - 8 / 32.
    assert_line(EXPONENTIAL, "mean(w) < 32us", 0.7, 0.75);
}

#[test]
fn the_99th_percentile_of_an_mm1_queue() {
    assert_line(EXPONENTIAL, "p99(w) < 120us", 0.7, 1.0 - S * 100f64.ln() / 120.0);
}

#[test]
fn the_mean_of_an_md1_queue() {
    // 24 = 8 (1 + r / (2 (1 - r))), so r / (1 - r) = 4.
    assert_line(CONSTANT, "mean(w) < 24us", 0.7, 0.8);
}

/// Computes P(W <= t) of the queue M/D/1.
fn erlang(load: f64, t_over_s: f64) -> f64 {
    let mut sum = 0.0;
    let mut factorial = 1.0;
    for k in 0..=t_over_s.floor() as i32 {
        if k > 0 {
            factorial *= f64::from(k);
        }
        let x = load * (f64::from(k) - t_over_s);
        sum += x.powi(k) / factorial * (-x).exp();
    }
    (1.0 - load) * sum
}

#[test]
fn the_99th_percentile_of_an_md1_queue() {
    // The time in the system is the wait and one service.
    let (limit, mut low, mut high) = (72.0, 0.3, 0.95);
    for _ in 0..60 {
        let middle: f64 = 0.5 * (low + high);
        if erlang(middle, limit / S - 1.0) > 0.99 { low = middle } else { high = middle }
    }
    assert_line(CONSTANT, "p99(w) < 72us", 0.7, low);
}
