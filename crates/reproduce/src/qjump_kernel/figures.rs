//! The figures: which scenario, which points, which numbers, how close. Published times are scaled as the rates are.

use super::TIMES;
use crate::metric::{Metric, Of, Population};
use crate::published::Published;
use crate::qjump::WRED;
use crate::study::{Base, Case, Figure, Runs, no_tolerance, nothing};

/// Loads of Fig. 6's bursts; the first is as good as none.
pub(super) const LOADS: &[&str] = &["0.01", "0.3", "0.6", "0.9", "1", "1.1", "1.5", "2"];

/// In the order of the page.
pub(super) fn figures() -> Vec<Figure> {
    vec![table_1(), switch(), apps(), wred(), barrier(), commit()]
}

/// The metrics of a figure that are worth a picture.
pub(super) fn drawn(figure: &str) -> &'static [&'static str] {
    match figure {
        "fig3a" => &["rtt_us_p50", "rtt_us_p99"],
        "fig7-wred" => &["ptp_us_rms", "memcached_us_rms", "hadoop_gbps"],
        "fig6" => &["commits_per_s"],
        _ => &[],
    }
}

fn figure(id: &'static str, title: &'static str, scenario: &'static str) -> Figure {
    Figure {
        id,
        title,
        runs: Runs::Scenario(scenario),
        bases: &[Base::Kernel, Base::Simulated],
        axis: "",
        log: true,
        cases: Vec::new(),
        quick: &[],
        standard_is_quick: false,
        series: &[],
        metrics: Vec::new(),
        published: nothing,
        original: nothing,
        tolerance: no_tolerance,
    }
}

fn case(x: &str, set: &[String]) -> Case {
    Case { x: x.to_owned(), set: set.to_vec(), ..Case::default() }
}

fn metric(name: &'static str, of: Population, share: f64) -> Metric {
    Metric::new(name, "us", of, Of::Percentile(share))
}

fn round_trips() -> Vec<Metric> {
    let ping = Population::CompletionUs("ping");
    vec![metric("rtt_us_p50", ping, 0.5), metric("rtt_us_p99", ping, 0.99)]
}

/// Table 1: whom the ping asks, who sends bulk data to whom, the published median and 99th percentile in us.
const SETUPS: &[(&str, &str, &str, &str, f64, f64)] = &[
    ("idle", "h1", r#"["h8"]"#, "h9", 85.0, 126.0),
    ("shared switch", "h1", r#"["h2"]"#, "h3", 110.0, 130.0),
    ("shared source", "h1", r#"["h0"]"#, "h2", 228.0, 268.0),
    ("shared destination", "h1", r#"["h2"]"#, "h1", 125.0, 278.0),
    ("shared both", "h1", r#"["h0"]"#, "h1", 221.0, 229.0),
    ("shared queue", "h4", r#"["h1","h2"]"#, "h5", 1920.0, 2100.0),
];

fn table_1() -> Figure {
    let setup = |(x, ping, from, to, ..): &(&str, &str, &str, &str, f64, f64)| {
        let set = [
            format!("workload.ping.to=\"{ping}\""),
            format!("workload.iperf.from={from}"),
            format!("workload.iperf.to=\"{to}\""),
        ];
        case(x, &set)
    };
    Figure {
        cases: SETUPS.iter().map(setup).collect(),
        quick: &["idle", "shared queue"],
        series: &["TCP", "QJump"],
        metrics: round_trips(),
        published: |series, x, metric| {
            let (.., p50, p99) = SETUPS.iter().find(|(name, ..)| *name == x && series == "TCP")?;
            Some(TIMES * if metric == "rtt_us_p50" { p50 } else { p99 })
        },
        // What a queue in the network makes of a ping.
        tolerance: |_, x, _, _| (x == "shared queue").then_some(1.35),
        ..figure("table1", "Ping and bulk flows share parts of the network", "table1.toml")
    }
}

/// Fig. 3a, and at lower rates: what a ping takes in its hosts does not grow with the time of a packet.
fn switch() -> Figure {
    let at = |x: &&str| {
        let slower = 100.0 / x.parse::<f64>().expect("rates are numbers");
        let set = [format!("topology.rate=\"{x}Mbps\""), format!("topology.delay=\"{}us\"", 72.0 * slower)];
        case(x, &set)
    };
    Figure {
        axis: "rate of the links (Mb/s)",
        cases: ["20", "50", "100"].iter().map(at).collect(),
        quick: &["100"],
        series: &["alone", "+iperf", "+iperf,QJump"],
        metrics: round_trips(),
        published: |series, x, metric| {
            Some(times(x)? * published("3a", series, metric.trim_start_matches("rtt_us_"))?)
        },
        // Beside bulk flows the round trip is the wait on the way there, which was measured.
        tolerance: |series, _, _, _| (series == "+iperf").then_some(1.35),
        ..figure("fig3a", "A ping across one switch, by the rate of its links", "switch.toml")
    }
}

/// How many times as long everything takes at a rate in Mb/s.
pub(super) fn times(rate: &str) -> Option<f64> {
    Some(1e4 / rate.parse::<f64>().ok()?)
}

/// A number of Fig. 3, in us.
pub(super) fn published(panel: &str, case: &str, column: &str) -> Option<f64> {
    Published::parse(include_str!("../../published/qjump_fig3_latency_us.csv"))
        .value(&[("panel", panel), ("case", case)], column)
}

fn applications() -> Vec<Metric> {
    let memcached = Population::CompletionUs("memcached");
    let ptp = Population::OffsetUs("ptp");
    vec![
        metric("memcached_us_p50", memcached, 0.5),
        metric("memcached_us_p90", memcached, 0.9),
        metric("memcached_us_p95", memcached, 0.95),
        metric("memcached_us_p99", memcached, 0.99),
        Metric::new("memcached_us_rms", "us", memcached, Of::Rms),
        Metric::new("ptp_us_rms", "us", ptp, Of::Rms),
        Metric::new("ptp_us_max", "us", ptp, Of::Max),
        Metric::new("hadoop_gbps", "Gb/s", Population::Gbps("hadoop"), Of::Mean),
    ]
}

fn apps() -> Figure {
    Figure {
        cases: vec![case("shared", &[])],
        series: &["ideal", "TCP", "EFC", "ECN", "DCTCP", "QJump", "hadoop"],
        metrics: applications(),
        ..figure("apps", "Figs. 3b, 5 and 7: clocks, memcached and a shuffle", "apps.toml")
    }
}

/// Fig. 7's ECN is the best of these ten settings; the same as in the simulator's study, as bytes are not scaled.
fn wred() -> Figure {
    let setting = |x: &&str| {
        let segments: u64 = x.parse().expect("settings are numbers");
        let key =
            |end: &str, segments: u64| format!("variant.ECN.port.switch.red.{end}=\"{}B\"", segments * 1500);
        case(x, &[key("min", segments), key("max", 2 * segments)])
    };
    Figure {
        axis: "WRED's lower threshold (segments)",
        cases: WRED.iter().map(setting).collect(),
        quick: &["5", "40", "2560"],
        series: &["ECN"],
        metrics: applications(),
        ..figure("fig7-wred", "ECN by WRED's thresholds, from x to 2 x segments", "apps.toml")
    }
}

/// Fig. 6. `x` is the load of both senders together on a server's link, while they send.
fn commit() -> Figure {
    let at = |x: &&str| {
        let load: f64 = x.parse().expect("loads are numbers");
        case(x, &[format!("workload.udp.load={}", load / 2.0)])
    };
    Figure {
        axis: "load of the bursts on a server's link",
        log: false,
        cases: LOADS.iter().map(at).collect(),
        quick: &["0.01", "1", "1.5"],
        series: &["TCP", "UDP", "QJump"],
        metrics: vec![Metric::new("commits_per_s", "1/s", Population::PerSecond("commit"), Of::Mean)],
        ..figure("fig6", "Two-phase commits per second beside bursts of UDP", "commit.toml")
    }
}

fn barrier() -> Figure {
    let barrier = Population::RoundUs("barrier");
    Figure {
        cases: vec![case("shared", &[])],
        series: &["ideal", "TCP", "QJump"],
        metrics: vec![
            metric("barrier_us_p50", barrier, 0.5),
            metric("barrier_us_p90", barrier, 0.9),
            metric("barrier_us_p95", barrier, 0.95),
        ],
        ..figure("barrier", "Fig. 3c: barriers beside a shuffle", "barrier.toml")
    }
}
