//! The figures: which scenario, which points, which numbers, how close.

use plimsoll_scenario::distribution::{Distribution, SizeDistribution};

use super::testbed;
use crate::metric::{Metric, Of, Population};
use crate::ns2::PairArrivals;
use crate::published::Published;
use crate::study::{Base, Case, Figure, Runs, no_tolerance, nothing};

/// Every figure, in the study's order.
pub(super) fn figures() -> Vec<Figure> {
    let mut figures = testbed::figures();
    figures.extend([web_search(), data_mining(), bound()]);
    figures
}

/// The metrics of a figure that are worth a picture.
pub(super) fn drawn(figure: &str) -> &'static [&'static str] {
    match figure {
        "fig9" => &["small_mean", "small_p99", "large_mean"],
        "fig9-datamining" => &["small_mean", "small_p99"],
        "fig11" => &["one_way_us_mean", "one_way_us_p99"],
        other => testbed::drawn(other),
    }
}

/// The schemes of Fig. 9, in the order of its legend.
pub(super) const SCHEMES: &[&str] = &["TCP", "DCTCP", "pFabric", "QJump"];

/// Completion time over that of idle links, by class. The scripts count a flow of n packets as n x 1500 B.
fn slowdowns() -> Vec<Metric> {
    const fn packets(bytes: u64) -> u64 {
        bytes / 1500
    }
    let class = |mean, p99, over, up_to| {
        let of = Population::Slowdown { over, up_to };
        [Metric::new(mean, "x idle", of, Of::Mean), Metric::new(p99, "x idle", of, Of::P99Above)]
    };
    [
        class("small_mean", "small_p99", 0, packets(100_000)),
        class("small_10kB_mean", "small_10kB_p99", 0, packets(10_000)),
        class("large_mean", "large_p99", packets(10_000_000), u64::MAX),
        class("all_mean", "all_p99", 0, u64::MAX),
    ]
    .concat()
}

/// The mean of a bundled distribution in bytes, as loads are shared out by it.
pub(super) fn mean_bytes(cdf: &str) -> f64 {
    let mut sizes: SizeDistribution =
        Distribution::Cdf { cdf: cdf.to_owned(), interpolate: None, in_multiples_of: None, table: None };
    let no_file = |name: &str| Err(std::io::Error::other(format!("{name} is no file")));
    sizes.load(&no_file).expect("the distribution is bundled");
    sizes.sampler().mean()
}

fn load_case(x: &str, sizes: &'static str, mean_packets: f64, flows: (u64, u64)) -> Case {
    let load = x.parse().expect("loads are numbers");
    Case {
        x: x.to_owned(),
        flows: Some(flows),
        arrivals: Some(PairArrivals { hosts: 144, load, mean_packets, sizes }),
        ..Case::default()
    }
}

const WEB_SEARCH: &str = include_str!("../../../../scenarios/cdf/websearch-pfabric.csv");
const DATA_MINING: &str = include_str!("../../../../scenarios/cdf/datamining-pfabric.csv");

/// As many as the study had, and those of a quick look.
pub(super) const WEB_SEARCH_FLOWS: (u64, u64) = (100_000, 3_000);

/// Fig. 9, web search.
fn web_search() -> Figure {
    let loads = ["0.1", "0.2", "0.3", "0.4", "0.5", "0.6", "0.7", "0.8"];
    Figure {
        id: "fig9",
        title: "Completion times by load, web search, 144 hosts",
        runs: Runs::Scenario("fig9.toml"),
        bases: &[Base::Source, Base::Standard],
        axis: "load",
        log: true,
        cases: loads.map(|x| load_case(x, WEB_SEARCH, 1138.0, WEB_SEARCH_FLOWS)).to_vec(),
        quick: &["0.2", "0.5", "0.8"],
        standard_is_quick: true,
        series: SCHEMES,
        metrics: slowdowns(),
        published: published_web_search,
        original: nothing,
        tolerance: |series, _, metric, _| match (series, metric) {
            ("pFabric" | "QJump", "small_mean") => Some(1.10),
            ("pFabric" | "QJump", "small_p99") => Some(1.15),
            ("DCTCP", "small_mean" | "small_p99") => Some(1.20),
            (_, "large_mean") => Some(1.10),
            _ => None,
        },
    }
}

/// The digitised figure. Its small flows are those of at most 100 kB: the table `cut` of the page.
pub(super) fn published_web_search(series: &str, x: &str, metric: &str) -> Option<f64> {
    let (bin, stat) = match metric {
        "small_mean" => ("0-100KB", "mean"),
        "small_p99" => ("0-100KB", "p99"),
        "large_mean" => (">10MB", "mean"),
        _ => return None,
    };
    let keys =
        [("workload", "websearch"), ("flow_bin", bin), ("stat", stat), ("scheme", series), ("load", x)];
    Published::parse(include_str!("../../published/qjump_fig9_websearch.csv")).value(&keys, "normalised_fct")
}

/// Fig. 9 with the sizes of data mining: a handful of flows has most of the bytes.
fn data_mining() -> Figure {
    let loads = ["0.2", "0.5", "0.8"];
    Figure {
        id: "fig9-datamining",
        title: "Completion times by load, data mining, 144 hosts",
        bases: &[Base::Source],
        cases: loads.map(|x| load_case(x, DATA_MINING, 5117.0, (5_000, 500))).to_vec(),
        standard_is_quick: false,
        published: nothing,
        tolerance: no_tolerance,
        ..web_search()
    }
}

/// Fig. 11's senders, packets and path.
const SENDERS: f64 = 60.0;
const PACKET_BYTES: f64 = 256.0;
const NS_PER_BYTE: f64 = 0.8;
const EPSILON_NS: f64 = 4.0 * 3_000.0;
/// n P / R + eps: 24.288 us.
pub(super) const BOUND_US: f64 = (SENDERS * PACKET_BYTES * NS_PER_BYTE + EPSILON_NS) / 1e3;
/// 2 n P / R + eps.
const EPOCH_NS: f64 = 2.0 * SENDERS * PACKET_BYTES * NS_PER_BYTE + EPSILON_NS;

/// Fig. 11: sixty senders that send all that the limiter lets pass.
fn bound() -> Figure {
    let factors = ["0.5", "0.75", "0.9", "1", "1.25", "1.5", "2", "2.5", "2.7", "3", "4"];
    let latency = |name, of| Metric::new(name, "us", Population::CompletionUs("probe"), of);
    let within = Of::PercentUpTo(BOUND_US);
    Figure {
        id: "fig11",
        title: "One-way latency of 60 senders by the factor f",
        runs: Runs::Scenario("fig11.toml"),
        bases: &[Base::Source],
        axis: "f",
        log: true,
        cases: factors.map(factor_case).to_vec(),
        quick: &["0.5", "1", "2", "3"],
        standard_is_quick: false,
        series: &["bucket", "even", "even-framed"],
        metrics: vec![
            latency("one_way_us_mean", Of::Mean),
            latency("one_way_us_p99", Of::P99Above),
            latency("one_way_us_max", Of::Max),
            Metric::new("within_bound_percent", "%", Population::CompletionUs("probe"), within),
        ],
        published: |series, x, metric| {
            let holds = x.parse::<f64>().is_ok_and(|factor| factor <= 1.0);
            match metric {
                // The measurement; its path took less than the 12 us that the bound allows for.
                "one_way_us_mean" if holds && x != "1" => Some(4.3),
                // The guarantee, of packets that take no more of the wire than the bound counts.
                "within_bound_percent" if holds && series != "even-framed" => Some(100.0),
                _ => None,
            }
        },
        original: nothing,
        tolerance: |_, _, metric, _| (metric == "within_bound_percent").then_some(1.0),
    }
}

/// A level's share is at least a packet, so a factor below 1 is one packet in a longer epoch.
fn factor_case(x: &str) -> Case {
    let factor: f64 = x.parse().expect("factors are numbers");
    let epoch = |factor: f64| format!("\"{}ps\"", (EPOCH_NS * 1e3 / factor).round());
    let share = |bytes: f64| {
        let levels = [&format!("\"{}B\"", bytes.round()); 7].map(String::as_str).join(",");
        format!("[\"line\",{levels}]")
    };
    let key = |variant: &str, key: &str| format!("variant.{variant}.host.qjump.{key}");
    let framed = PACKET_BYTES + 24.0;
    Case {
        x: x.to_owned(),
        set: vec![
            format!("{}={}", key("bucket", "epoch"), epoch(factor.min(1.0))),
            format!("{}={}", key("bucket", "levels"), share(PACKET_BYTES * factor.max(1.0))),
            format!("{}={}", key("even", "epoch"), epoch(factor)),
            format!("{}={}", key("even-framed", "epoch"), epoch(factor)),
            format!("{}={}", key("even-framed", "levels"), share(framed)),
        ],
        quick_set: vec!["run.duration=\"10ms\"".to_owned()],
        ..Case::default()
    }
}
