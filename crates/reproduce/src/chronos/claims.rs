//! What the text says in words and bounds, from the rows; and values that formulas settle.

use std::path::Path;

use plimsoll_models::fan_out;

use super::tasks::OBSERVED;
use crate::error::ReproduceError;
use crate::published::Kind;
use crate::row::Row;
use crate::study::Study;

/// A number over another, as the text compares them.
struct Claim {
    series: &'static str,
    x: &'static str,
    metric: &'static str,
    /// Figure, series, place and metric of the number, and of what it is set in relation to.
    of: [&'static str; 4],
    over: [&'static str; 4],
}

const CLAIMS: &[Claim] = &[
    Claim {
        series: "CH",
        x: "200",
        metric: "mean_of_MC",
        of: ["fig6.3", "MC", "200", "latency_us_mean"],
        over: ["fig6.3", "CH", "200", "latency_us_mean"],
    },
    Claim {
        series: "CH",
        x: "10",
        metric: "burst_p99_of_MC",
        of: ["fig6.5", "MC 1 ms", "10", "latency_us_p99"],
        over: ["fig6.5", "CH 1 ms", "10", "latency_us_p99"],
    },
    Claim {
        series: "remote",
        x: "1150",
        metric: "mean_of_local",
        of: ["fig6.8", "remote", "1150", "latency_us_mean"],
        over: ["fig6.8", "local", "1150", "latency_us_mean"],
    },
    Claim {
        series: "remote",
        x: "500",
        metric: "mean_of_local",
        of: ["fig6.8", "remote", "500", "latency_us_mean"],
        over: ["fig6.8", "local", "500", "latency_us_mean"],
    },
    Claim {
        series: "static",
        x: "1",
        metric: "p99_of_100_us",
        of: ["fig6.7", "static", "1", "latency_us_p99"],
        over: ["fig6.7", "100 us", "1", "latency_us_p99"],
    },
    Claim {
        series: "static",
        x: "10",
        metric: "p99_of_100_us",
        of: ["fig6.7", "static", "10", "latency_us_p99"],
        over: ["fig6.7", "100 us", "10", "latency_us_p99"],
    },
    Claim {
        series: "100 us",
        x: "1",
        metric: "p99_of_10_us",
        of: ["fig6.7", "100 us", "1", "latency_us_p99"],
        over: ["fig6.7", "10 us", "1", "latency_us_p99"],
    },
    Claim {
        series: "100 us",
        x: "10",
        metric: "p99_of_10_us",
        of: ["fig6.7", "100 us", "10", "latency_us_p99"],
        over: ["fig6.7", "10 us", "10", "latency_us_p99"],
    },
    Claim {
        series: "CH",
        x: "160",
        metric: "mean_of_read_write_lock",
        of: ["fig5.3", "read/write lock", "160", "latency_us_mean"],
        over: ["fig5.3", "CH", "160", "latency_us_mean"],
    },
    Claim {
        series: "UNet locks",
        x: "100",
        metric: "p99_of_CH",
        of: ["fig6.3", "UNet locks", "100", "latency_us_p99"],
        over: ["fig6.3", "CH", "100", "latency_us_p99"],
    },
];

/// Bounds on a number itself: figure, series, place, metric.
const BOUNDS: &[[&str; 4]] = &[
    ["lock", "MC", "20", "contended_percent"],
    ["fig5.1", "MC", "161", "within_150_us_percent"],
    ["table5.1", "MC 161 clients", "kernel", "p99_us"],
    ["fig5.3", "RCU", "160", "application_us_mean"],
    ["fig6.3", "MC", "120", "latency_us_p99"],
    ["fig6.4", "MC", "400", "requests_per_s"],
    ["fig6.5", "CH 1 ms", "40", "latency_us_p99"],
];

/// Computes the ratios that the text gives, and the numbers that it bounds.
pub(crate) fn claims(study: &Study, rows: &[Row]) -> Vec<Row> {
    let find = |[figure, series, x, metric]: [&str; 4]| {
        let is = |row: &&Row| {
            row.base == "source"
                && (row.figure.as_str(), row.series.as_str()) == (figure, series)
                && (row.x.as_str(), row.metric.as_str()) == (x, metric)
        };
        rows.iter().find(is)
    };
    let ratios = CLAIMS.iter().filter_map(|claim| {
        let mut row = Row::new("claims", "source", claim.series, claim.x, claim.metric, "x");
        row.measured = find(claim.of)?.measured / find(claim.over)?.measured;
        Some(held(study, row, "claims", claim.x))
    });
    let bounds = BOUNDS.iter().filter_map(|&[figure, series, x, metric]| {
        let of = find([figure, series, x, metric])?;
        let at = format!("{figure} at {x}");
        let mut row = Row::new("claims", "source", series, &at, metric, &of.unit);
        (row.measured, row.ci) = (of.measured, of.ci);
        Some(held(study, row, figure, if figure == "fig5.1" { "all" } else { x }))
    });
    ratios.chain(bounds).collect()
}

/// How close a number of the text, *about* so much, must be.
const ABOUT: f64 = 1.35;

/// Returns the row beside what the text says: a bound or two, or a number that it must come near.
fn held(study: &Study, row: Row, figure: &str, x: &str) -> Row {
    let said = |kind| study.published.value(kind, figure, &row.series, x, &row.metric);
    let (least, most, about) = (said(Kind::AtLeast), said(Kind::AtMost), said(Kind::About));
    let mut row = row.compare(about.or(least).or(most), None, about.map(|_| ABOUT));
    if least.or(most).is_some() {
        let measured = row.measured;
        row.within =
            Some(least.is_none_or(|least| measured >= least) && most.is_none_or(|most| measured <= most));
    }
    row
}

/// Computes N(90, 50): its percentiles by tables of the normal distribution, and expected maxima by those of order
/// statistics.
pub(crate) fn normal_law(_: &Study, _: u64, _: &Path) -> Result<Vec<Row>, ReproduceError> {
    let row = |x: &str, metric: &str, measured: f64, exact: f64| {
        let mut row = Row::new("oracles", "source", "N(90, 50)", x, metric, "us");
        row.measured = measured;
        row.compare(Some(exact), None, Some(1.0001))
    };
    let expected = |servers, exact| {
        row(&format!("{servers} servers"), "latency_us_mean", fan_out::expected(&OBSERVED, servers), exact)
    };
    Ok(vec![
        row("p99", "latency_us", OBSERVED.quantile(0.99), 90.0 + 50.0 * 2.326_348),
        row("p99.95", "latency_us", OBSERVED.quantile(0.9995), 90.0 + 50.0 * 3.290_527),
        expected(1, 90.0),
        expected(10, 90.0 + 50.0 * 1.538_753),
        expected(100, 90.0 + 50.0 * 2.507_594),
    ])
}
