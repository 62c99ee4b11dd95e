//! The figures of the testbed: which scenario, which points, which numbers, how close.
//!
//! Absolute times are the hosts'; what is held to a tolerance is what the network makes: queues in the switch,
//! and ratios to the application alone.

use plimsoll_units::Span;

use super::distributions;
use crate::metric::{Metric, Of, Population};
use crate::study::{Base, Case, Figure, Runs, no_tolerance, nothing};

/// In the order of the page.
pub(super) fn figures() -> Vec<Figure> {
    let mut figures = vec![table_1(), switch(), buffer()];
    figures.extend(distributions::figures());
    figures.extend([apps(), assumed(), wred(), barrier(), commit(), rates(), burst()]);
    figures
}

/// The metrics of a figure that are worth a picture.
pub(super) fn drawn(figure: &str) -> &'static [&'static str] {
    match figure {
        "fig1a" => &["offset_us"],
        "fig3a" | "fig3b" | "fig3c" => &["latency_us"],
        "fig7-wred" => &["ptp_us_rms", "memcached_us_rms", "hadoop_gbps"],
        "fig6" => &["commits_per_s"],
        "fig10" => &["requests_per_s", "latency_us_p50", "latency_us_p99"],
        "buffer" => &["latency_us_p50"],
        "burst" => &["completion_us_p99"],
        _ => &[],
    }
}

pub(super) fn figure(id: &'static str, title: &'static str, scenario: &'static str) -> Figure {
    Figure {
        id,
        title,
        runs: Runs::Scenario(scenario),
        bases: &[Base::Source],
        axis: "",
        log: false,
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

const fn ms(full: u64, quick: u64) -> Option<(Span, Span)> {
    Some((Span::from_ms(full), Span::from_ms(quick)))
}

fn case(x: &str, set: &[String], duration: Option<(Span, Span)>) -> Case {
    Case { x: x.to_owned(), set: set.to_vec(), duration, ..Case::default() }
}

/// Median, 99th percentile and what else of a population in us.
fn percentiles(names: [&'static str; 2], of: Population) -> Vec<Metric> {
    let [p50, p99] = names;
    vec![Metric::new(p50, "us", of, Of::Percentile(0.5)), Metric::new(p99, "us", of, Of::P99)]
}

/// Table 1: what ping and bulk flows may share, and the published median and 99th percentile.
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
        case(x, &set, ms(1000, 400))
    };
    Figure {
        cases: SETUPS.iter().map(setup).collect(),
        quick: &["idle", "shared source", "shared queue"],
        series: &["TCP"],
        metrics: percentiles(["rtt_us_p50", "rtt_us_p99"], Population::CompletionUs("ping")),
        published: |_, x, metric| {
            let (.., p50, p99) = SETUPS.iter().find(|(name, ..)| *name == x)?;
            Some(if metric == "rtt_us_p50" { *p50 } else { *p99 })
        },
        // What a queue in the network makes of a ping.
        tolerance: |_, x, _, _| (x == "shared queue").then_some(1.35),
        ..figure("table1", "Ping and bulk flows share parts of the network", "table1.toml")
    }
}

fn switch() -> Figure {
    Figure {
        cases: vec![case("one switch", &[], ms(1000, 200))],
        series: &["alone", "+iperf", "+iperf,QJump", "+iperf,QJump,3KB"],
        metrics: percentiles(["latency_us_p50", "latency_us_p99"], Population::CompletionUs("ping")),
        ..figure("switch", "A ping across one switch: medians and tails of Fig. 3a", "switch.toml")
    }
}

/// What an unknown buffer does to the one number that is all queue.
fn buffer() -> Figure {
    let at = |x: &&str| {
        let key = "variant.\"+iperf\".port.switch.buffer";
        case(x, &[format!("{key}=\"{x}MB\"")], ms(1000, 200))
    };
    Figure {
        axis: "buffer of a port (MB)",
        cases: ["0.5", "1", "1.5", "2", "3", "4"].iter().map(at).collect(),
        series: &["+iperf"],
        metrics: percentiles(["latency_us_p50", "latency_us_p99"], Population::CompletionUs("ping")),
        ..figure("buffer", "Sensitivity: Fig. 3a's ping beside iperf by the buffer", "switch.toml")
    }
}

/// Applications that share the testbed.
const SCHEMES: &[&str] = &["ideal", "TCP", "EFC", "ECN", "DCTCP", "QJump", "hadoop"];

fn applications() -> Vec<Metric> {
    let memcached = Population::CompletionUs("memcached");
    let ptp = Population::OffsetUs("ptp");
    let mut metrics = percentiles(["memcached_us_p50", "memcached_us_p99"], memcached);
    metrics.push(Metric::new("memcached_us_rms", "us", memcached, Of::Rms));
    metrics.push(Metric::new("ptp_us_rms", "us", ptp, Of::Rms));
    metrics.push(Metric::new("ptp_us_max", "us", ptp, Of::Max));
    metrics.push(Metric::new("hadoop_gbps", "Gb/s", Population::Gbps("hadoop"), Of::Mean));
    metrics
}

fn apps() -> Figure {
    Figure {
        cases: vec![case("shared", &[], ms(2000, 250))],
        series: SCHEMES,
        metrics: applications(),
        ..figure("apps", "Clocks, memcached and Hadoop on one testbed", "apps.toml")
    }
}

/// Less than elsewhere for a port, and more for a link that 802.3x pauses.
const ONE_MEGABYTE: &[&str] = &[
    "variant.TCP.port.switch.buffer=\"1MB\"",
    "variant.EFC.port.switch.buffer=\"1MB\"",
    "variant.QJump.port.switch.pfabric.limit=\"1MB\"",
];

/// What is not published about the testbed, one thing at a time.
fn assumed() -> Figure {
    let things = [
        ("as on this page", vec![]),
        ("40 Gb/s between switches", vec!["topology.fabric_rate=\"40Gbps\""]),
        ("server on a Hadoop host", vec!["workload.memcached.servers=\"h6\""]),
        ("1 MB a port or link", ONE_MEGABYTE.to_vec()),
        ("512 KB in the NIC", vec!["port.host.buffer=\"512KB\""]),
        ("transfers of 2 MB", vec!["workload.hadoop.size=\"2MB\""]),
    ];
    let thing = |(x, set): &(&str, Vec<&str>)| {
        case(x, &set.iter().map(|&set| set.to_owned()).collect::<Vec<_>>(), ms(1000, 250))
    };
    Figure {
        cases: things.iter().map(thing).collect(),
        quick: &["server on a Hadoop host"],
        series: &["TCP", "EFC", "QJump"],
        metrics: applications(),
        ..figure("assumed", "Sensitivity: what was assumed about the testbed", "apps.toml")
    }
}

/// Fig. 7's ECN is the best of ten settings.
pub(crate) const WRED: &[&str] = &["5", "10", "20", "40", "80", "160", "320", "640", "1280", "2560"];

fn wred() -> Figure {
    let setting = |x: &&str| {
        let segments: u64 = x.parse().expect("settings are numbers");
        let key =
            |end: &str, segments: u64| format!("variant.ECN.port.switch.red.{end}=\"{}B\"", segments * 1500);
        case(x, &[key("min", segments), key("max", 2 * segments)], ms(2000, 250))
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

fn barrier() -> Figure {
    Figure {
        cases: vec![case("shared", &[], ms(2000, 250))],
        series: &["ideal", "TCP", "QJump"],
        metrics: percentiles(["barrier_us_p50", "barrier_us_p99"], Population::RoundUs("barrier")),
        ..figure("barrier", "Barriers beside Hadoop: medians and tails of Fig. 3c", "barrier.toml")
    }
}

/// Fig. 6. `x` is the load of the bursts, of which the study says only what share of some capacity they were.
fn commit() -> Figure {
    let at = |x: &&str| {
        let load: f64 = x.parse().expect("loads are numbers");
        case(x, &[format!("workload.udp.load={}", load / 2.0)], ms(3000, 300))
    };
    Figure {
        axis: "load of the bursts on a server's link",
        cases: ["0.01", "0.3", "0.6", "0.9", "1", "1.1", "1.5", "2"].iter().map(at).collect(),
        quick: &["0.01", "1", "1.5"],
        series: &["TCP", "UDP", "QJump"],
        metrics: vec![Metric::new("commits_per_s", "1/s", Population::PerSecond("commit"), Of::Mean)],
        ..figure("fig6", "Two-phase commits per second beside bursts of UDP", "commit.toml")
    }
}

fn rates() -> Figure {
    let at = |factor: &u64| {
        let line = r#""line","line","line","line","line""#;
        let levels = format!("variant.QJump.host.qjump.levels=[{line},\"{factor}x\",\"100x\",\"1x\"]");
        // 256 B in 40.96 us are 0.05 Gb/s.
        case(&format!("{}", *factor as f64 * 0.05), &[levels], ms(300, 80))
    };
    let memcached = Population::CompletionUs("memcached");
    let mut metrics = percentiles(["latency_us_p50", "latency_us_p99"], memcached);
    metrics.push(Metric::new("requests_per_s", "1/s", Population::PerSecond("memcached"), Of::Mean));
    Figure {
        axis: "rate of memcached's level (Gb/s)",
        cases: [10, 25, 50, 75, 90, 100, 150, 200].iter().map(at).collect(),
        quick: &["0.5", "5", "10"],
        series: &["QJump"],
        metrics,
        ..figure("fig10", "memcached's throughput and latency by its level's rate", "memcached.toml")
    }
}

/// Bursts in powers of two of the buffer.
fn burst() -> Figure {
    let at = |log: &i32| {
        let size = 12_800.0 * 2f64.powi(*log);
        case(&log.to_string(), &[format!("workload.burst.size=\"{}B\"", size.round())], None)
    };
    Figure {
        axis: "burst over buffer (log2)",
        log: true,
        cases: (-4..=4).collect::<Vec<i32>>().iter().map(at).collect(),
        quick: &["-4", "0", "4"],
        series: &["TCP", "QJump"],
        metrics: vec![
            Metric::new("completion_us_p50", "us", Population::CompletionUs("burst"), Of::Percentile(0.5)),
            Metric::new("completion_us_p99", "us", Population::CompletionUs("burst"), Of::P99),
        ],
        ..figure("burst", "Bursts of ten hosts to one, by their size in buffers", "burst.toml")
    }
}
