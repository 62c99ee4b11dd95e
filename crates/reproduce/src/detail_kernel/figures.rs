//! Page creation by arm and by retrieval size, and the degraded link.

use plimsoll_results::outcome::Outcome;
use plimsoll_units::Span;

use crate::metric::{Metric, Of, Population};
use crate::row::Row;
use crate::study::{Base, Case, Figure, Runs, no_tolerance, nothing};

const BOTH: &[Base] = &[Base::Kernel, Base::Simulated];
/// The whole stack, its parts alone, and the stack without each.
const ARMS: &[&str] = &[
    "baseline",
    "push-back",
    "balancing",
    "without-balancing",
    "without-push-back",
    "without-tolerance",
    "DeTail",
];

/// Retrieval sizes in KB; the scenario has a workload for each.
const SIZES: [&str; 5] = ["2", "4", "8", "16", "32"];
const PAGES_OF_SIZE: [&str; 5] = ["page2", "page4", "page8", "page16", "page32"];

const PAGE_P50: Metric = Metric::new("page_ms_p50", "ms", Population::Query, Of::Percentile(0.5));
const PAGE_P99: Metric = Metric::new("page_ms_p99", "ms", Population::Query, Of::P99);
const PAGE_P999: Metric = Metric::new("page_ms_p999", "ms", Population::Query, Of::Percentile(0.999));
const UNFINISHED: Metric = Metric::new("unfinished_percent", "%", Population::QueryUnfinished, Of::Mean);
const BACKGROUND: Metric =
    Metric::new("background_ms_mean", "ms", Population::CompletionMs("background"), Of::Mean);

/// Every figure, in the page's order.
pub(super) fn figures() -> Vec<Figure> {
    let case = |x: &str, set: Vec<String>| Case { x: x.to_owned(), set, ..Case::default() };
    let pages = Figure {
        id: "pages",
        title: "Pages of ten serial retrievals, all sizes at once, beside 1 MB flows",
        runs: Runs::Scenario("pages.toml"),
        bases: BOTH,
        axis: "retrieval size (KB)",
        log: true,
        cases: vec![case("all", Vec::new())],
        quick: &[],
        standard_is_quick: false,
        series: ARMS,
        metrics: vec![PAGE_P50, PAGE_P99, PAGE_P999, UNFINISHED, BACKGROUND],
        published: nothing,
        original: nothing,
        tolerance: no_tolerance,
    };
    let slow = "fault=[{from=\"aggregation0\",to=\"core0\",rate=\"5Mbps\"}]".to_owned();
    let at = |load: &str| case(load, at_load(load.parse().expect("a number"), slow.clone()));
    let degraded = Figure {
        id: "degraded",
        title: "One of 16 links between aggregation and core at 5 Mb/s instead of 50",
        axis: "load of retrievals",
        // Where the slow link still carries all retrievals, and where it does not.
        cases: vec![at("0.1"), at("0.3")],
        series: &["baseline", "without-balancing", "DeTail"],
        ..pages.clone()
    };
    vec![pages, degraded]
}

/// A share of the front-ends' links for retrievals: a page of each size has 620 kB.
fn at_load(share: f64, also: String) -> Vec<String> {
    let pages_per_second = share * 6.25e6 / 620e3;
    let of_size = |name| format!("workload.{name}.pages_per_second={pages_per_second:.3}");
    PAGES_OF_SIZE.into_iter().map(of_size).chain([also]).collect()
}

/// Rows of a run's pages by the size of their retrievals.
pub(super) fn by_size(figure: &Figure, _: &Case, series: &str, base: Base, outcome: &Outcome) -> Vec<Row> {
    if figure.id != "pages" {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for (size, workload) in SIZES.into_iter().zip(PAGES_OF_SIZE) {
        for (name, of) in [("page_ms_p50", Of::Percentile(0.5)), ("page_ms_p99", Of::P99)] {
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

/// The metrics of a figure that are worth a picture.
pub(super) fn drawn(figure: &str) -> &'static [&'static str] {
    match figure {
        "pages" => &["page_ms_p50", "page_ms_p99"],
        _ => &[],
    }
}
