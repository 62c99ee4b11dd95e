//! Every paired difference with its interval, and its direction in words.

use plimsoll_results::Summary;
use plimsoll_results::stats::paired::Change;

use super::grid::{Cell, Column, Grid, Row};
use crate::{figures, plots, verdict};

/// Makes a table with one row a variant, workload and statistic; it has no rows where there is nothing to compare.
pub fn differences(summary: &Summary) -> Grid {
    let columns = ["pairs", "difference", "95 % interval", "ratio", ""].map(|name| Column::new("", name));
    let schemes = plots::schemes(summary);
    let mut rows = Vec::new();
    for comparison in &summary.comparisons {
        let at = plots::point_name(&comparison.sweep);
        let at = if at.is_empty() { at } else { format!("{at}, ") };
        for workload in &comparison.workloads {
            for (statistic, change) in workload.statistics() {
                let label = format!("{at}{}: {statistic} of {}", comparison.variant, workload.name);
                let scheme = schemes.find(&comparison.variant);
                rows.push(Row { label, scheme, cells: cells(change, workload.pairs) });
            }
        }
    }
    let title = format!("Differences from {}", verdict::base(summary).unwrap_or(verdict::FIRST_RUN));
    Grid { title, corner: "variant".to_owned(), columns: columns.to_vec(), rows, notes: Vec::new() }
}

fn cells(change: &Change, pairs: u64) -> Vec<Cell> {
    let interval = change.difference.interval.map(|_| verdict::interval(change));
    vec![
        Cell::plain(figures::count(pairs)),
        Cell::plain(figures::time(change.difference.value)),
        Cell::plain(interval.unwrap_or_default()),
        Cell::plain(change.ratio.map_or_else(String::new, |ratio| figures::number(ratio.value))),
        Cell::plain(verdict::word(change)),
    ]
}
