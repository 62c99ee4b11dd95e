//! Every paired difference with its interval, and in words what it comes to.

use plimsoll_results::Summary;
use plimsoll_results::stats::paired::Change;

use super::grid::{Cell, Column, Grid, Row};
use crate::{figures, verdict};

/// One row a variant, workload and statistic; no rows where there is nothing to compare.
pub fn differences(summary: &Summary) -> Grid {
    let columns = ["pairs", "difference", "from", "to", "ratio", ""]
        .map(|name| Column { group: String::new(), name: name.to_owned() });
    let mut rows = Vec::new();
    for comparison in &summary.comparisons {
        let at = crate::plots::point_name(&comparison.sweep);
        let at = if at.is_empty() { at } else { format!("{at}, ") };
        for workload in &comparison.workloads {
            for (statistic, change) in workload.statistics() {
                let label = format!("{at}{}: {statistic} of {}", comparison.variant, workload.name);
                rows.push(Row { label, cells: cells(change, workload.pairs) });
            }
        }
    }
    let title = match summary.comparisons.as_slice() {
        [first, rest @ ..] if rest.iter().all(|other| other.base == first.base) => {
            format!("Differences from {}", first.base)
        }
        _ => "Differences from the first run".to_owned(),
    };
    Grid { title, corner: "variant".to_owned(), columns: columns.to_vec(), rows }
}

fn cells(change: &Change, pairs: u64) -> Vec<Cell> {
    let plain = |value: String| Cell { value, ..Cell::default() };
    let interval = change.difference.interval;
    let time = |us: Option<f64>| plain(us.map_or_else(String::new, figures::time));
    vec![
        plain(figures::count(pairs)),
        time(Some(change.difference.value)),
        time(interval.map(|interval| interval.low)),
        time(interval.map(|interval| interval.high)),
        plain(change.ratio.map_or_else(String::new, |ratio| figures::number(ratio.value))),
        plain(verdict::word(change).to_owned()),
    ]
}
