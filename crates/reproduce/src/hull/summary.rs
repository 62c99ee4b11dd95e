//! The study's headlines: how HULL's numbers relate to another scheme's, as a factor.
//!
//! The study gives percentages that are taken off or added. Two of them are no measure of each other: +10 % is 50 times
//! +0.2 %, and -98.0 % is nearly -98.2 %. The factors behind them are: 1.105 and 1.002, and 0.020 and 0.018.

use crate::row::Row;
use crate::study::Study;

/// A headline: its table on the page, the figure and metric that it is about, the points that are summed, the scheme
/// that HULL is compared with, its x, and whether the other scheme's number is divided by HULL's.
struct Headline {
    table: &'static str,
    figure: &'static str,
    metric: &'static str,
    loads: &'static [&'static str],
    other: &'static str,
    x: &'static str,
    times_lower: bool,
}

const fn over_all_loads(metric: &'static str, other: &'static str) -> Headline {
    let loads = &["20", "40", "60"];
    let (table, figure, x) = ("summary", "table2", "HULL against it");
    Headline { table, figure, metric, loads, other, x, times_lower: false }
}

const fn queries(
    figure: &'static str,
    loads: &'static [&'static str],
    other: &'static str,
    x: &'static str,
) -> Headline {
    Headline { table: "headlines", figure, metric: "query_ms_p99", loads, other, x, times_lower: false }
}

const fn queue(other: &'static str) -> Headline {
    let (figure, metric, loads) = ("fig4", "queue_us_p99", &["200"]);
    Headline { table: "headlines", figure, metric, loads, other, x: "Fig. 4, 200 Mb/s", times_lower: true }
}

const BUSY: &[&str] = &["200", "400", "600"];

const HEADLINES: [Headline; 13] = [
    over_all_loads("queue_us_p99", "TCP"),
    over_all_loads("queue_us_p99", "DCTCP-30K"),
    over_all_loads("small_fct_us_p99", "TCP"),
    over_all_loads("small_fct_us_p99", "DCTCP-30K"),
    over_all_loads("bkg_fct_ms_p99", "TCP"),
    over_all_loads("bkg_fct_ms_p99", "DCTCP-30K"),
    over_all_loads("bkg_fct_ms_mean", "DCTCP-30K"),
    queries("fig4", &["600"], "TCP", "Fig. 4, 600 Mb/s"),
    queries("fig5", BUSY, "TCP", "Fig. 5, all loads"),
    queries("fig5", BUSY, "DCTCP-30K", "Fig. 5, all loads"),
    queries("fig6", BUSY, "DCTCP-30K", "Fig. 6, all loads"),
    queue("TCP"),
    queue("DCTCP-30K"),
];

/// Computes HULL's number over another scheme's, each summed over the loads.
pub(crate) fn reductions(study: &Study, rows: &[Row]) -> Vec<Row> {
    let mut summary = Vec::new();
    for base in ["source", "standard"] {
        for of in &HEADLINES {
            // None unless all loads are there.
            let sum = |series: &str| -> Option<f64> {
                let is_of = |row: &&Row| {
                    row.figure == of.figure
                        && row.base == base
                        && row.series == series
                        && row.metric == of.metric
                        && of.loads.contains(&row.x.as_str())
                };
                let loads: Vec<f64> = rows.iter().filter(is_of).map(|row| row.measured).collect();
                (loads.len() == of.loads.len()).then(|| loads.iter().sum())
            };
            let Some((hull, other)) = sum("DCTCP-PQ-Pacer").zip(sum(of.other)) else { continue };
            let mut row = Row::new(of.table, base, of.other, of.x, of.metric, "x");
            row.measured = if of.times_lower { other / hull } else { hull / other };
            summary.push(study.published.beside(row, None));
        }
    }
    summary
}
