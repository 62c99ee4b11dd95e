//! The two graphs of the experiment, the queue in time, and what delay and threshold decide.

use plimsoll_results::outcome::Outcome;

use super::FRAME_BYTES;
use crate::metric::{Metric, Of, Population};
use crate::row::Row;
use crate::study::{Base, Case, Figure, Runs, no_tolerance, nothing};

const BOTH: &[Base] = &[Base::Kernel, Base::Simulated];
const ARMS: &[&str] = &["TCP", "DCTCP", "DCTCP-PQ", "DCTCP-PQ-Pacer"];

/// Names of the two graphs, `all-latency` and `all-throughput`, are the experiment's.
const LATENCY: Metric = Metric::new("latency", "ms", Population::CompletionMs("ping"), Of::Mean);
const LATENCY_P99: Metric = Metric::new("latency_p99", "ms", Population::CompletionMs("ping"), Of::P99);
const THROUGHPUT: Metric = Metric::new("throughput", "Mb/s", Population::Throughput("receiver"), Of::Mean);
const QUEUE_MEAN: Metric = Metric::new("queue_us_mean", "us", Population::QueueOf("receiver"), Of::Mean);
const QUEUE_P99: Metric = Metric::new("queue_us_p99", "us", Population::QueueOf("receiver"), Of::P99);
const UP_TO_TWO: Metric =
    Metric::new("time_with_0_to_2_packets", "%", Population::TimeUpTo("receiver", 2 * FRAME_BYTES), Of::Mean);
const SENDER_MEAN: Metric =
    Metric::new("sender_interface_us_mean", "us", Population::QueueOf("sender"), Of::Mean);
const SENDER_P99: Metric =
    Metric::new("sender_interface_us_p99", "us", Population::QueueOf("sender"), Of::P99);

/// Every figure, in the page's order.
pub(super) fn figures() -> Vec<Figure> {
    let senders = |hosts: u32| {
        vec![format!("topology.hosts={hosts}"), format!("workload.bulk.from=\"h1..h{}\"", hosts - 1)]
    };
    let by_hosts = |hosts: u32| Case { x: hosts.to_string(), set: senders(hosts), ..Case::default() };
    let base = Figure {
        id: "all",
        title: "3 to 10 hosts, 10 ms there and back",
        runs: Runs::Scenario("star.toml"),
        bases: BOTH,
        axis: "hosts",
        log: true,
        cases: (3..=10).map(by_hosts).collect(),
        quick: &["3", "6", "10"],
        standard_is_quick: false,
        series: ARMS,
        metrics: vec![
            LATENCY,
            LATENCY_P99,
            THROUGHPUT,
            QUEUE_MEAN,
            QUEUE_P99,
            UP_TO_TWO,
            SENDER_MEAN,
            SENDER_P99,
        ],
        published: nothing,
        original: nothing,
        tolerance: no_tolerance,
    };
    let near = |hosts: u32| {
        let mut case = by_hosts(hosts);
        case.set.push("topology.delay=\"50us\"".to_owned());
        case
    };
    let threshold = |bytes: u32| Case {
        x: bytes.to_string(),
        set: vec![format!("port.switch.phantom_queue={{drain=0.95,threshold=\"{bytes}B\"}}")],
        ..Case::default()
    };
    vec![
        Figure {
            id: "occupancy",
            title: "The queue at the receiver in time, 6 hosts",
            axis: "s",
            cases: Vec::new(),
            quick: &[],
            ..base.clone()
        },
        Figure {
            id: "near",
            title: "Without the delay: 0.2 ms there and back",
            cases: [3, 6, 10].map(near).to_vec(),
            series: &["DCTCP", "DCTCP-PQ", "DCTCP-PQ-Pacer"],
            ..base.clone()
        },
        Figure {
            id: "threshold",
            title: "The phantom queue's threshold, 6 hosts",
            axis: "threshold in bytes",
            cases: [1_600, 6_200, 15_500].map(threshold).to_vec(),
            quick: &["1600", "15500"],
            series: &["DCTCP-PQ"],
            ..base.clone()
        },
        base,
    ]
    .into_iter()
    .rev()
    .collect()
}

/// The queue in time, of one point: means over tenths of a second, in packets.
pub(super) fn occupancy(
    figure: &Figure,
    case: &Case,
    series: &str,
    base: Base,
    outcome: &Outcome,
) -> Vec<Row> {
    if (figure.id, case.x.as_str()) != ("all", "6") {
        return Vec::new();
    }
    let queue = outcome.queues.iter().find(|queue| queue.name == "receiver");
    let row = |(place, means): (usize, &[f64])| {
        let queue = queue?;
        let begins = queue.from.as_secs_f64() + (place * MEANS) as f64 * queue.every.as_secs_f64();
        let mut row =
            Row::new("occupancy", base.name(), series, &format!("{begins:.1}"), "queue_packets", "packets");
        row.measured = means.iter().sum::<f64>() / means.len() as f64 / FRAME_BYTES as f64;
        Some(row)
    };
    let means = queue.map_or(&[][..], |queue| &queue.mean_bytes);
    means.chunks_exact(MEANS).enumerate().filter_map(row).collect()
}

/// The metrics of a figure that are worth a picture.
pub(super) fn drawn(figure: &str) -> &'static [&'static str] {
    match figure {
        "all" => &["latency", "throughput", "queue_us_mean"],
        "occupancy" => &["queue_packets"],
        "near" => &["queue_us_mean"],
        _ => &[],
    }
}

/// Intervals of 10 ms in a mean of the queue in time.
const MEANS: usize = 10;
