//! The table of approximate runs: slowdown by size with the intervals of their samples, and the bias beside it.

use plimsoll_results::outcome::{ApproximateSlowdown, Approximation};
use plimsoll_results::summary::Cell;
use plimsoll_results::{Interval, Summary};
use plimsoll_text::grouped;

use crate::figures::{self, Unit};
use crate::plots::cell_label;
use crate::table::Grid;
use crate::table::numbers::{NumberColumn, assemble};

/// Makes the table of the approximate runs of every variant and sweep point; none where there are none.
pub(crate) fn summary_grids(summary: &Summary) -> Vec<Grid> {
    let of_cells = || summary.cells.iter().filter_map(|cell| Some((cell, cell.approximation.as_ref()?)));
    let rows: Vec<_> =
        of_cells().flat_map(|(cell, of)| of.slowdowns.iter().map(move |row| (cell, row))).collect();
    if rows.is_empty() {
        return Vec::new();
    }
    let label = |(cell, row): &(&Cell, &ApproximateSlowdown)| {
        let (name, color) = cell_label(summary, cell);
        let parts = [name, row.workload.clone(), sizes(row)];
        let parts: Vec<String> = parts.into_iter().filter(|part| !part.is_empty()).collect();
        (parts.join(", "), color)
    };
    let labels = rows.iter().map(label).collect();
    let of = |share: usize| rows.iter().map(|(_, row)| row.slowdown[share]).collect();
    let slowdown = "slowdown, approximate";
    let columns = [
        NumberColumn::new(slowdown, "p50", Some(RATIOS), of(0)),
        NumberColumn::new(slowdown, "p90", Some(RATIOS), of(1)),
        NumberColumn::new(slowdown, "p99", Some(RATIOS), of(2)),
    ];
    let mut grid = assemble("Approximate: slowdown by size".to_owned(), "variant", labels, &columns);
    grid.notes.push(
        "Slowdown: completion time over that on idle links. Its intervals are of the sample of links and messages, \
         those of completion times of the messages alone; the bias comes on top."
            .to_owned(),
    );
    grid.notes.extend(of_cells().map(|(cell, of)| sentence(&cell_label(summary, cell).0, of)));
    vec![grid]
}

/// Slowdowns have no unit.
const RATIOS: &[Unit] = &[Unit { name: "", size: 1.0 }, Unit { name: "", size: 1.0 }];

fn sizes(row: &ApproximateSlowdown) -> String {
    match row.up_to {
        Some(up_to) => format!("up to {}", figures::size(up_to as f64)),
        None => "larger".to_owned(),
    }
}

/// Says what was simulated, and the bias at such a load.
fn sentence(variant: &str, of: &Approximation) -> String {
    let bias = of.slowdowns.first().map_or(String::new(), |row| {
        let range =
            |Interval { low, high }: &Interval| format!("{:+.0} .. {:+.0} %", low * 100.0, high * 100.0);
        let [p50, p90, p99] = &row.bias;
        format!(
            "; compared with whole runs at such a load, approximate ones differed by {} (p50), {} (p90) and {} (p99)",
            range(p50),
            range(p90),
            range(p99)
        )
    });
    let count = |number: u64| grouped(&number.to_string());
    let variant = if variant.is_empty() { String::new() } else { format!("{variant}: ") };
    format!(
        "{variant}{} of {} directions of links were simulated, of {} flows; the busiest has a load of {:.2}{bias}.",
        count(of.links),
        count(of.of_links),
        count(of.flows),
        of.busiest
    )
}
