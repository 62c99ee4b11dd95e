//! The study's headline percentages: ratios of sums over the three loads of Table II.

use crate::row::Row;

/// What HULL takes off, or adds to, another scheme, in percent.
pub(super) fn rows(rows: &[Row]) -> Vec<Row> {
    // The study's own numbers; the original paper's beside them.
    let published = [
        ("queue_us_p99", "TCP", -98.2, -98.3),
        ("queue_us_p99", "DCTCP-30K", -82.5, -88.6),
        ("small_fct_us_p99", "TCP", -96.4, -89.1),
        ("small_fct_us_p99", "DCTCP-30K", -86.8, -60.2),
        ("bkg_fct_ms_p99", "TCP", 0.2, 20.3),
        ("bkg_fct_ms_p99", "DCTCP-30K", 8.5, 35.8),
        ("bkg_fct_ms_mean", "DCTCP-30K", 62.2, 34.8),
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
        for (metric, other, study, original) in published {
            let Some((hull, other_sum)) = sum("DCTCP-PQ-Pacer", metric).zip(sum(other, metric)) else {
                continue;
            };
            let mut row = Row::new("summary", base, other, "HULL against it", metric, "%");
            row.measured = 100.0 * (hull / other_sum - 1.0);
            summary.push(row.compare(Some(study), Some(original), None));
        }
    }
    summary
}
