//! The study's headline percentages: ratios of sums over the three loads of Table II.

use crate::row::Row;
use crate::study::Study;

/// Computes what HULL takes off, or adds to, another scheme, in percent.
pub(crate) fn reductions(study: &Study, rows: &[Row]) -> Vec<Row> {
    let published = [
        ("queue_us_p99", "TCP"),
        ("queue_us_p99", "DCTCP-30K"),
        ("small_fct_us_p99", "TCP"),
        ("small_fct_us_p99", "DCTCP-30K"),
        ("bkg_fct_ms_p99", "TCP"),
        ("bkg_fct_ms_p99", "DCTCP-30K"),
        ("bkg_fct_ms_mean", "DCTCP-30K"),
    ];
    let mut summary = Vec::new();
    for base in ["source", "standard"] {
        // None unless all three loads are there.
        let sum = |series: &str, metric: &str| -> Option<f64> {
            let of = |row: &&Row| {
                row.figure == "table2" && row.base == base && row.series == series && row.metric == metric
            };
            let loads: Vec<f64> = rows.iter().filter(of).map(|row| row.measured).collect();
            (loads.len() == 3).then(|| loads.iter().sum())
        };
        for (metric, other) in published {
            let Some((hull, other_sum)) = sum("DCTCP-PQ-Pacer", metric).zip(sum(other, metric)) else {
                continue;
            };
            let mut row = Row::new("summary", base, other, "HULL against it", metric, "%");
            row.measured = 100.0 * (hull / other_sum - 1.0);
            summary.push(study.published.beside(row, None));
        }
    }
    summary
}
