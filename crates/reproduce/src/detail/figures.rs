//! The figures: which scenario, which points, which numbers.

use plimsoll_results::outcome::Outcome;
use plimsoll_units::Span;

use crate::metric::{Metric, Of, Population};
use crate::published::Published;
use crate::row::Row;
use crate::study::{Base, Case, Figure, Runs, no_tolerance, nothing};

/// Every figure: the talk's, then one for each choice that it leaves open.
pub(super) fn figures() -> Vec<Figure> {
    vec![
        motivation(),
        pages(),
        degraded(),
        long_flows(),
        load(),
        order(),
        buffer(),
        pauses(),
        timeout(),
        thresholds(),
        marking(),
    ]
}

/// The metrics of a figure that are worth a picture.
pub(super) fn drawn(figure: &str) -> &'static [&'static str] {
    match figure {
        "degraded" => &["page_ms_p999", "page_ms_p50"],
        "long-flows" => &["background_ms_mean", "page_ms_p999"],
        "order" | "thresholds" => &[],
        _ => &["page_ms_p999"],
    }
}

/// Every arm, in the order of the page.
const ARMS: &[&str] = &[
    "baseline",
    "evicting",
    "none",
    "push-back",
    "balancing",
    "without-balancing",
    "without-push-back",
    "DeTail",
];
/// Those that show what a choice matters for.
const FOUR: &[&str] = &["baseline", "evicting", "without-balancing", "DeTail"];

/// Retrieval sizes in KB; the scenario has a workload for each.
const SIZES: [&str; 5] = ["2", "4", "8", "16", "32"];
const PAGES_OF_SIZE: [&str; 5] = ["page2", "page4", "page8", "page16", "page32"];

const PAGE_P50: Metric = Metric::new("page_ms_p50", "ms", Population::Query, Of::Percentile(0.5));
const PAGE_P999: Metric = Metric::new("page_ms_p999", "ms", Population::Query, Of::Percentile(0.999));
const UNFINISHED: Metric = Metric::new("unfinished_percent", "%", Population::QueryUnfinished, Of::Mean);
const BACKGROUND: Population = Population::CompletionMs("background");
const BACKGROUND_MEAN: Metric = Metric::new("background_ms_mean", "ms", BACKGROUND, Of::Mean);
const BACKGROUND_P99: Metric = Metric::new("background_ms_p99", "ms", BACKGROUND, Of::P99);

/// Rows of a figure's pages by the size of their retrievals, where that is what the figure shows.
pub(super) fn by_size(figure: &Figure, _: &Case, series: &str, base: Base, outcome: &Outcome) -> Vec<Row> {
    if figure.id != "pages" {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for (size, workload) in SIZES.into_iter().zip(PAGES_OF_SIZE) {
        for (name, of) in [("page_ms_p50", Of::Percentile(0.5)), ("page_ms_p999", Of::Percentile(0.999))] {
            let metric = Metric::new(name, "ms", Population::QueryOf(workload), of);
            let mut row = Row::new(figure.id, base.name(), series, size, name, "ms");
            if let Some(estimate) = metric.measure(outcome, Span::ZERO) {
                row.set_measured(&estimate);
                rows.push(row);
            }
        }
    }
    rows
}

/// What the figures of a sensitivity share.
fn figure(id: &'static str, title: &'static str, axis: &'static str, cases: Vec<Case>) -> Figure {
    Figure {
        id,
        title,
        runs: Runs::Scenario("pages.toml"),
        bases: &[Base::Source],
        axis,
        log: true,
        cases,
        quick: &[],
        standard_is_quick: true,
        series: FOUR,
        metrics: vec![PAGE_P50, PAGE_P999, UNFINISHED, BACKGROUND_MEAN],
        published: nothing,
        original: nothing,
        tolerance: no_tolerance,
    }
}

/// The length of a run and of a quick look, both after the warm-up of 100 ms.
fn case(x: &str, set: Vec<String>, ms: u64) -> Case {
    let length = |ms| Span::from_ms(100 + ms);
    Case { x: x.to_owned(), set, duration: Some((length(ms), length(100))), ..Case::default() }
}

/// Every page workload with that setting.
fn of_pages(key: &str, value: &str) -> Vec<String> {
    PAGES_OF_SIZE.map(|name| format!("workload.{name}.{key}={value}")).to_vec()
}

/// A share of the front-ends' links for retrievals: a page of each size has 620 kB.
fn retrieval_load(share: f64, retrievals: f64) -> Vec<String> {
    let pages_per_second = share * 125e6 / (62e3 * retrievals);
    of_pages("pages_per_second", &format!("{pages_per_second:.3}"))
}

fn motivation() -> Figure {
    let numbers = ["1", "10", "50", "100", "130", "150"];
    let case = |x: &str| Case {
        x: x.to_owned(),
        set: vec![format!("workload.page.retrievals={x}")],
        quick_set: vec!["workload.page.count=2000".to_owned()],
        ..Case::default()
    };
    Figure {
        runs: Runs::Scenario("motivation.toml"),
        log: false,
        quick: &["1", "50", "150"],
        series: &["uniform", "log-uniform", "log-normal"],
        metrics: vec![PAGE_P50, PAGE_P999],
        published: |_, x, metric| {
            talk().value(&[("figure", "motivation"), ("x", x), ("metric", metric)], "value")
        },
        ..figure(
            "motivation",
            "Serial retrievals of one round trip each, drawn from what is known of the measured distribution",
            "retrievals",
            numbers.map(case).to_vec(),
        )
    }
}

/// What the talk says in words and numbers.
pub(crate) fn talk() -> Published {
    Published::parse(include_str!("../../published/detail_talk.csv"))
}

fn pages() -> Figure {
    Figure {
        bases: &[Base::Source, Base::Standard],
        series: ARMS,
        metrics: vec![PAGE_P50, PAGE_P999, UNFINISHED, BACKGROUND_MEAN, BACKGROUND_P99],
        ..figure(
            "pages",
            "Pages of ten serial retrievals, all sizes at once, beside 1 MB flows",
            "retrieval size (KB)",
            vec![case("all", Vec::new(), 1000)],
        )
    }
}

/// The degraded link, one of 32 from the aggregation to the core, for the whole run in both directions.
fn degraded() -> Figure {
    let link = "fault=[{from=\"aggregation0\",to=\"core0\",rate=\"100Mbps\"}]";
    let at = |x: &str| {
        let mut set = retrieval_load(number(x), 10.0);
        set.push(link.to_owned());
        case(x, set, 300)
    };
    Figure {
        bases: &[Base::Source, Base::Standard],
        quick: &["0.1"],
        series: ARMS,
        ..figure(
            "degraded",
            "One of 32 links between aggregation and core at 100 Mb/s instead of 1 Gb/s",
            "load of retrievals",
            ["0.05", "0.1", "0.3"].map(at).to_vec(),
        )
    }
}

/// 1, 16 and 64 MB in the background, beside light retrievals.
fn long_flows() -> Figure {
    let at = |x: &str| {
        let mut set = retrieval_load(0.05, 10.0);
        set.push(format!("workload.background.size=\"{x}MB\""));
        set.push("run.drain=\"10s\"".to_owned());
        case(x, set, 2000)
    };
    Figure {
        quick: &["1"],
        metrics: vec![BACKGROUND_MEAN, BACKGROUND_P99, PAGE_P50, PAGE_P999, UNFINISHED],
        ..figure(
            "long-flows",
            "Background flows of 1, 16 and 64 MB beside light retrievals",
            "background flow size (MB)",
            ["1", "16", "64"].map(at).to_vec(),
        )
    }
}

fn load() -> Figure {
    let at = |x: &str| case(x, retrieval_load(number(x), 10.0), 250);
    Figure {
        quick: &["0.1"],
        series: &["baseline", "evicting", "push-back", "without-balancing", "DeTail"],
        ..figure(
            "load",
            "Sensitivity: the load of retrievals, as a share of a front-end's link",
            "load of retrievals",
            ["0.1", "0.2", "0.3", "0.4"].map(at).to_vec(),
        )
    }
}

fn order() -> Figure {
    let at = |order: &str, retrievals: u32| {
        let mut set = retrieval_load(0.3, f64::from(retrievals));
        set.extend(of_pages("order", &format!("\"{order}\"")));
        set.extend(of_pages("retrievals", &retrievals.to_string()));
        case(&format!("{retrievals} {order}"), set, 250)
    };
    let cases = [("sequential", 10), ("parallel", 10), ("parallel", 40)];
    Figure {
        quick: &["40 parallel"],
        ..figure(
            "order",
            "Sensitivity: how many retrievals, and which wait for which, at the same load",
            "retrievals",
            cases.map(|(order, retrievals)| at(order, retrievals)).to_vec(),
        )
    }
}

fn buffer() -> Figure {
    let at = |x: &str| {
        let limit = "variant.evicting.port.switch.pfabric.limit";
        case(x, vec![format!("port.switch.buffer=\"{x}KB\""), format!("{limit}=\"{x}KB\"")], 250)
    };
    Figure {
        quick: &["512"],
        ..figure(
            "buffer",
            "Sensitivity: the buffer of a port; pauses from 16 KB on as before",
            "buffer (KB)",
            ["64", "128", "512"].map(at).to_vec(),
        )
    }
}

fn pauses() -> Figure {
    let at = |x: &str| {
        let xoff = |arm: &&str| format!("variant.{arm}.port.switch.pfc.xoff=\"{x}KB\"");
        case(x, ["without-balancing", "DeTail"].iter().map(xoff).collect(), 250)
    };
    Figure {
        log: false,
        quick: &["8"],
        series: &["without-balancing", "DeTail"],
        ..figure(
            "pauses",
            "Sensitivity: from how many bytes of a link and priority on a switch pauses",
            "xoff (KB)",
            ["8", "16", "32", "56"].map(at).to_vec(),
        )
    }
}

fn timeout() -> Figure {
    let at = |x: &str| {
        let keys = ["min_rto", "initial_rto"].map(|key| format!("transport.{key}=\"{x}ms\""));
        case(x, keys.to_vec(), 250)
    };
    Figure {
        quick: &["1"],
        series: &["baseline", "evicting"],
        ..figure(
            "timeout",
            "Sensitivity: the baseline's smallest timeout",
            "smallest RTO (ms)",
            ["1", "10", "50"].map(at).to_vec(),
        )
    }
}

fn thresholds() -> Figure {
    let at = |x: &str| {
        let list: Vec<String> = x.split('/').map(|kb| format!("\"{kb}KB\"")).collect();
        case(x, vec![format!("variant.DeTail.paths.adaptive.thresholds=[{}]", list.join(","))], 250)
    };
    Figure {
        quick: &["16"],
        series: &["DeTail"],
        ..figure(
            "thresholds",
            "Sensitivity: the drain bytes that divide ports into good and less good ones",
            "thresholds (KB)",
            ["16", "16/64", "2/4/8/16/32/64"].map(at).to_vec(),
        )
    }
}

fn marking() -> Figure {
    let at = |x: &str| {
        let key = "variant.DeTail.port.switch.ecn.threshold";
        case(x, vec![format!("{key}=\"{x}KB\"")], 250)
    };
    Figure {
        log: false,
        quick: &["16"],
        series: &["DeTail"],
        ..figure(
            "marking",
            "Sensitivity: the queue from which DeTail marks",
            "marking threshold (KB)",
            ["16", "64", "128"].map(at).to_vec(),
        )
    }
}

fn number(x: &str) -> f64 {
    x.parse().expect("these points are numbers")
}
