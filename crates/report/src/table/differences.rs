//! Every paired difference with its interval, and its direction in words.

use plimsoll_results::Summary;
use plimsoll_results::stats::paired::Change;

use super::grid::{Grid, Row};
use crate::{figures, plots, verdict};

/// Makes a table with one row a variant, workload and statistic; it has no rows where there is nothing to compare.
pub fn differences(summary: &Summary) -> Grid {
    let schemes = plots::schemes(summary);
    let mut rows = Vec::new();
    for comparison in &summary.comparisons {
        let at = plots::point_name(&comparison.sweep);
        let at = if at.is_empty() { at } else { format!("{at}, ") };
        for workload in &comparison.workloads {
            for (statistic, change) in workload.statistics() {
                let label = format!("{at}{}: {statistic} of {}", comparison.variant, workload.name);
                let scheme = schemes.find(&comparison.variant);
                rows.push(Row { scheme, ..Row::plain(label, cells(change, workload.pairs)) });
            }
        }
    }
    let title = format!("Differences from {}", verdict::base(summary).unwrap_or(verdict::FIRST_RUN));
    Grid::plain(title, "variant", &["pairs", "difference", "95 % interval", "ratio", ""], rows)
}

fn cells(change: &Change, pairs: u64) -> [String; 5] {
    [
        figures::count(pairs),
        figures::time(change.difference.value),
        change.difference.interval.map_or_else(String::new, |_| verdict::interval(change)),
        change.ratio.map_or_else(String::new, |ratio| figures::number(ratio.value)),
        verdict::word(change).to_owned(),
    ]
}
