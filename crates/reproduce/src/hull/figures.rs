//! The figures and tables: which scenario, which points, which numbers, how close.

use plimsoll_units::Span;

use crate::metric::{Metric, Of, Population};
use crate::published::Published;
use crate::study::{Base, Case, Figure, Runs, no_tolerance, nothing};

/// Both settings.
const BOTH: &[Base] = &[Base::Source, Base::Standard];
/// All schemes, in the order of the study's legends.
const ALL: &[&str] = &["TCP", "DCTCP-30K", "DCTCP-6K-Pacer", "DCTCP-PQ-Pacer"];
/// Those of Figs. 4 and 5.
const THREE: &[&str] = &["TCP", "DCTCP-30K", "DCTCP-PQ-Pacer"];
/// Those of Fig. 6.
const TWO: &[&str] = &["DCTCP-30K", "DCTCP-PQ-Pacer"];

/// Every figure, in the study's order.
pub(super) fn figures() -> Vec<Figure> {
    vec![
        static_flows(false),
        start_phase(),
        static_flows(true),
        dynamic(),
        search(),
        low_latency(),
        variable(),
        sensitivity(),
    ]
}

const QUEUE_MEAN: Metric = Metric::new("queue_us_mean", "us", Population::Queue, Of::Mean);
const QUEUE_P99: Metric = Metric::new("queue_us_p99", "us", Population::Queue, Of::P99);
const GOODPUT: Metric = Metric::new("goodput_mbps", "Mb/s", Population::Goodput, Of::Mean);
const SMALL_MEAN: Metric =
    Metric::new("small_fct_us_mean", "us", Population::CompletionUs("small"), Of::Mean);
const SMALL_P99: Metric = Metric::new("small_fct_us_p99", "us", Population::CompletionUs("small"), Of::P99);
const LARGE_MEAN: Metric =
    Metric::new("bkg_fct_ms_mean", "ms", Population::CompletionMs("background"), Of::Mean);
const LARGE_P99: Metric =
    Metric::new("bkg_fct_ms_p99", "ms", Population::CompletionMs("background"), Of::P99);

/// Figs. 2b and 2c: a few senders, one receiver.
fn static_flows(far: bool) -> Figure {
    let delay = if far { "100us" } else { "5us" };
    let case = |flows: u32| Case {
        x: flows.to_string(),
        set: vec![
            format!("sweep.\"workload.bulk.from\"=[\"h1..h{flows}\"]"),
            format!("topology.delay=\"{delay}\""),
        ],
        quick_set: vec!["workload.bulk.size=\"20MB\"".to_owned()],
        ..Case::default()
    };
    Figure {
        id: if far { "fig2c" } else { "fig2b" },
        title: if far {
            "A few senders, one receiver, 100 us a link"
        } else {
            "A few senders, one receiver, 5 us a link"
        },
        runs: Runs::Scenario("static.toml"),
        bases: BOTH,
        axis: "flows",
        log: false,
        cases: (2..=8).map(case).collect(),
        quick: &[],
        standard_is_quick: false,
        series: ALL,
        metrics: vec![QUEUE_MEAN, QUEUE_P99, GOODPUT],
        published: if far { nothing } else { published_static },
        original: if far { nothing } else { original_static },
        tolerance: if far { no_tolerance } else { static_tolerance },
    }
}

/// The points of Fig. 2b at which one run is a matter of phase, with starts a little apart.
fn start_phase() -> Figure {
    let case = |flows: u32, stagger: &str| Case {
        x: format!("{flows} flows, {stagger} apart"),
        set: vec![
            format!("sweep.\"workload.bulk.from\"=[\"h1..h{flows}\"]"),
            format!("workload.bulk.stagger=\"{stagger}\""),
        ],
        quick_set: vec!["workload.bulk.size=\"20MB\"".to_owned()],
        ..Case::default()
    };
    Figure {
        id: "fig2b-phase",
        title: "Fig. 2b where the phase of the starts decides",
        axis: "starts",
        log: false,
        cases: vec![case(2, "50us"), case(2, "137us"), case(4, "100us")],
        published: |series, x, metric| published_static(series, x.split_once(' ')?.0, metric),
        original: nothing,
        tolerance: no_tolerance,
        ..static_flows(false)
    }
}

fn published_static(series: &str, x: &str, metric: &str) -> Option<f64> {
    let scheme = match series {
        "TCP" => "TCP-Droptail",
        "DCTCP-PQ-Pacer" => "DCTCP-PQ900-Pacer",
        other => other,
    };
    Published::parse(include_str!("../../published/hull_fig2b_static_5us.csv"))
        .value(&[("scheme", scheme), ("flows", x)], metric)
}

/// The original paper's Fig. 8, read off a bitmap.
fn original_static(series: &str, x: &str, metric: &str) -> Option<f64> {
    let scheme = match series {
        "TCP" => "TCP-Droptail",
        "DCTCP-PQ-Pacer" => "DCTCP-PQ950-Pacer",
        other => other,
    };
    let column = match metric {
        "queue_us_mean" => "mean_queue_latency_us",
        "queue_us_p99" => "p99_queue_latency_us",
        _ => "aggregate_throughput_mbps",
    };
    Published::parse(include_str!("../../published/hull_original_fig8_static_digitised.csv"))
        .value(&[("scheme", scheme), ("flows", x)], column)
}

fn static_tolerance(series: &str, x: &str, metric: &str, _: f64) -> Option<f64> {
    let flows: u32 = x.parse().ok()?;
    match (series, metric) {
        ("DCTCP-30K", _) => Some(1.05),
        ("DCTCP-PQ-Pacer", "queue_us_mean" | "queue_us_p99") if flows >= 4 => Some(1.05),
        ("TCP", "queue_us_p99") => Some(1.05),
        ("TCP", _) if flows >= 3 => Some(1.15),
        _ => None,
    }
}

/// Means within 1.35 and 99th percentiles within 1.5, where the published value is above 1 us.
fn loose_tolerance(_: &str, _: &str, metric: &str, published: f64) -> Option<f64> {
    let us = if metric.contains("_ms_") { published * 1e3 } else { published };
    let is_time = metric.contains("_us_") || metric.contains("_ms_");
    if is_time && us <= 1.0 {
        return None;
    }
    Some(if metric.ends_with("_mean") { 1.35 } else { 1.5 })
}

/// Table II: small requests beside large transfers.
fn dynamic() -> Figure {
    let case = |load: u32, large: &str, small: &str, seconds: u64| Case {
        x: load.to_string(),
        set: vec![
            format!("workload.background.load=\"{large}\""),
            format!("workload.small.load=\"{small}\""),
        ],
        warmup: Span::ZERO,
        duration: Some((Span::from_secs(seconds), Span::from_secs(seconds / 25))),
        ..Case::default()
    };
    Figure {
        id: "table2",
        title: "900 B requests beside 10 MB transfers",
        runs: Runs::Scenario("dynamic.toml"),
        bases: BOTH,
        axis: "load in percent",
        log: false,
        cases: vec![
            case(20, "200Mbps", "0.09Mbps", 750),
            case(40, "400Mbps", "0.18Mbps", 380),
            case(60, "600Mbps", "0.27Mbps", 250),
        ],
        quick: &[],
        standard_is_quick: false,
        series: ALL,
        metrics: vec![QUEUE_MEAN, QUEUE_P99, SMALL_MEAN, SMALL_P99, LARGE_MEAN, LARGE_P99],
        published: published_dynamic,
        original: nothing,
        tolerance: loose_tolerance,
    }
}

fn published_dynamic(series: &str, x: &str, metric: &str) -> Option<f64> {
    // The study's text prints 169.7 us here; its notebook printed what the file holds.
    let folder = format!("nofanout_{x}_9flows");
    Published::parse(include_str!("../../published/hull_table2_dynamic.csv"))
        .value(&[("folder", &folder), ("scheme", file_scheme(series))], metric)
}

/// The schemes' names in the study's result folders.
fn file_scheme(series: &str) -> &str {
    match series {
        "DCTCP-30K" => "DCTCP30",
        "DCTCP-6K-Pacer" => "DCTCP6_pacer",
        "DCTCP-PQ-Pacer" => "DCTCP_pacer_PQ",
        other => other,
    }
}

fn fan_out_metrics() -> Vec<Metric> {
    vec![
        QUEUE_MEAN,
        QUEUE_P99,
        LARGE_MEAN,
        LARGE_P99,
        Metric::new("query_ms_mean", "ms", Population::Query, Of::Mean),
        Metric::new("query_ms_p99", "ms", Population::Query, Of::P99),
        Metric::new("resp_ms_mean", "ms", Population::Response, Of::Mean),
        Metric::new("resp_ms_p99", "ms", Population::Response, Of::P99),
        Metric::new("minresp_ms_mean", "ms", Population::FastestResponse, Of::Mean),
        Metric::new("minresp_ms_p99", "ms", Population::FastestResponse, Of::P99),
        Metric::new("servers_in_deadline_mean", "servers", Population::InDeadline, Of::Mean),
        Metric::new("servers_in_deadline_p99worst", "servers", Population::InDeadline, Of::WorstPercent),
    ]
}

/// A point of Figs. 4 to 6: the background's rate, what the study cut, how long to run.
fn background_case(mbps: u32, warmup: Span, seconds: u64) -> Case {
    let mut set = vec![format!("workload.background.load=\"{mbps}Mbps\"")];
    if mbps == 0 {
        // A load of nothing is no load: the workload stays, and creates no request.
        set = vec!["workload.background.count=0".to_owned()];
    }
    Case {
        x: mbps.to_string(),
        set,
        warmup,
        duration: Some((Span::from_secs(seconds), Span::from_secs(seconds / 20) + warmup / 4)),
        ..Case::default()
    }
}

/// Fig. 4: web search.
fn search() -> Figure {
    let warmup = [0, 7, 4, 3].map(Span::from_secs);
    Figure {
        id: "fig4",
        title: "Web search beside 10 MB transfers",
        runs: Runs::Scenario("search.toml"),
        bases: BOTH,
        axis: "background in Mb/s",
        log: false,
        cases: (0..4).map(|i| background_case(200 * i, warmup[i as usize], 150)).collect(),
        quick: &[],
        standard_is_quick: false,
        series: THREE,
        metrics: fan_out_metrics(),
        published: |series, x, metric| {
            let folder = match x {
                "0" => "onlyfanout_wkld1_30_10flows".to_owned(),
                x => format!("bkg{x}_fanout_wkld1_30_10flows"),
            };
            Published::parse(include_str!("../../published/hull_fig4_search.csv"))
                .value(&[("folder", &folder), ("scheme", file_scheme(series))], metric)
        },
        original: nothing,
        tolerance: loose_tolerance,
    }
}

/// Fig. 5: in-memory lookups of 100 us.
fn low_latency() -> Figure {
    let warmup = [0, 7, 7, 7].map(Span::from_secs);
    Figure {
        id: "fig5",
        title: "Lookups of 100 us beside 10 MB transfers",
        runs: Runs::Scenario("low-latency.toml"),
        bases: BOTH,
        axis: "background in Mb/s",
        log: false,
        cases: (0..4).map(|i| background_case(200 * i, warmup[i as usize], 100)).collect(),
        quick: &[],
        standard_is_quick: false,
        series: THREE,
        metrics: fan_out_metrics(),
        published: |series, x, metric| {
            let folder = match x {
                "0" => "onlyfanout_wkld0_5_10flows".to_owned(),
                x => format!("bkg{x}_fanout_wkld0_5_10flows"),
            };
            Published::parse(include_str!("../../published/hull_fig5_lowlatency_fixed.csv"))
                .value(&[("folder", &folder), ("scheme", file_scheme(series))], metric)
        },
        original: nothing,
        tolerance: loose_tolerance,
    }
}

/// Fig. 6: lookups whose service times vary, forty servers.
fn variable() -> Figure {
    let warmup = [14, 14, 7].map(Span::from_secs);
    Figure {
        id: "fig6",
        title: "Forty servers, lookups of varying time, beside 10 MB transfers",
        runs: Runs::Scenario("variable.toml"),
        bases: BOTH,
        axis: "background in Mb/s",
        log: false,
        cases: (1..4).map(|i| background_case(200 * i, warmup[i as usize - 1], 100)).collect(),
        quick: &[],
        standard_is_quick: false,
        series: TWO,
        metrics: fan_out_metrics(),
        published: |series, x, metric| {
            let folder = format!("gamma_bkg{x}_fanout_wkld6_3_40flows");
            Published::parse(include_str!("../../published/hull_fig6_lowlatency_gamma.csv"))
                .value(&[("folder", &folder), ("scheme", file_scheme(series))], metric)
        },
        original: nothing,
        tolerance: loose_tolerance,
    }
}

/// What the phantom queue's threshold and drain and the segment size do at 20 % load.
fn sensitivity() -> Figure {
    let case = |x: &str, set: &[&str]| Case {
        x: x.to_owned(),
        set: set.iter().map(|&set| set.to_owned()).collect(),
        warmup: Span::ZERO,
        duration: Some((Span::from_secs(300), Span::from_secs(30))),
        ..Case::default()
    };
    let threshold = |bytes: u32| {
        let set = format!("port.switch.phantom_queue={{drain=0.95,threshold=\"{bytes}B\"}}");
        case(&format!("threshold {bytes} B"), &[&set])
    };
    let drain = |share: &str| {
        let set = format!("port.switch.phantom_queue={{drain={share},threshold=\"1000B\"}}");
        case(&format!("drain {share}"), &[&set])
    };
    let segment =
        |bytes: u32| case(&format!("segment {bytes} B"), &[&format!("transport.segment=\"{bytes}B\"")]);
    let mut cases = vec![threshold(1000), threshold(1500), threshold(3000), threshold(6000)];
    cases.extend(["0.80", "0.90", "0.99"].map(drain));
    cases.extend([600, 1460].map(segment));
    Figure {
        id: "sensitivity",
        title: "HULL at 20 % load: threshold, drain and segment size",
        runs: Runs::Scenario("dynamic.toml"),
        bases: BOTH,
        axis: "setting",
        log: false,
        cases,
        quick: &[],
        standard_is_quick: false,
        series: &["DCTCP-PQ-Pacer"],
        metrics: vec![QUEUE_MEAN, QUEUE_P99, SMALL_MEAN, SMALL_P99, LARGE_MEAN, LARGE_P99],
        published: |_, x, metric| match (x, metric) {
            ("threshold 1000 B", metric) => published_dynamic("DCTCP-PQ-Pacer", "20", metric),
            ("threshold 1500 B", "queue_us_mean") => Some(1.4),
            ("threshold 1500 B", "queue_us_p99") => Some(60.1),
            ("threshold 1500 B", "small_fct_us_mean") => Some(46.5),
            ("threshold 1500 B", "small_fct_us_p99") => Some(362.2),
            ("threshold 1500 B", "bkg_fct_ms_mean") => Some(132.7),
            ("threshold 1500 B", "bkg_fct_ms_p99") => Some(289.8),
            _ => None,
        },
        original: nothing,
        tolerance: loose_tolerance,
    }
}

/// The metrics of a figure that are worth a picture.
pub(super) fn drawn(figure: &str) -> &'static [&'static str] {
    match figure {
        "fig2b" | "fig2c" => &["queue_us_mean", "goodput_mbps"],
        "table2" => &["queue_us_p99", "small_fct_us_p99", "bkg_fct_ms_mean"],
        "fig4" | "fig5" | "fig6" => &["query_ms_p99", "resp_ms_p99", "queue_us_p99"],
        _ => &[],
    }
}
