//! The tables below the figures, which hold the same numbers as text.

use plimsoll_results::by_rank::{self, RankBin};
use plimsoll_results::by_size::SHARES;
use plimsoll_results::stats::Estimate;
use plimsoll_results::summary::{Cell as PointCell, Distribution, QueueSummary};
use plimsoll_results::{Curves, Summary};

use crate::chart::Color;
use crate::figures::{self, TIMES};
use crate::plots;
use crate::plots::cell_label;
use crate::queues::QueueName;
use crate::table::blocks::PERCENT;
use crate::table::numbers::{Footnote, NumberColumn, assemble};
use crate::table::{Column, Grid, Row};

/// Makes the table of a workload's percentiles at every sweep point.
pub(super) fn percentiles(summary: &Summary, workload: &str) -> Grid {
    let known: Vec<(&PointCell, &Distribution)> =
        summary.cells.iter().filter_map(|cell| Some((cell, cell.workload(workload)?.waited_us()?))).collect();
    let column = |name, share: f64, pick: fn(&Distribution) -> Estimate| {
        let values: Vec<Option<Estimate>> = known.iter().map(|(_, d)| Some(pick(d))).collect();
        NumberColumn {
            footnote: Footnote::of(summary, workload, share),
            ..NumberColumn::new("", name, Some(TIMES), values)
        }
    };
    let columns = [
        column("least", 0.0, |d| Estimate::bare(d.min, d.mean.samples)),
        column("p50", 0.5, |d| d.p50),
        column("mean", 0.0, |d| d.mean),
        column("p90", 0.9, |d| d.p90),
        column("p99", 0.99, |d| d.p99),
        column("p99.9", 0.999, |d| d.p999),
        column("most", 0.0, |d| Estimate::bare(d.max, d.mean.samples)),
    ];
    let labels = known.iter().map(|(cell, _)| cell_label(summary, cell)).collect();
    let title = format!("{} of {workload}", summary.quantity(workload));
    let mut grid = assemble(title, "variant", labels, &columns);
    for (row, (cell, _)) in grid.rows.iter_mut().zip(&known) {
        for (cells, column) in row.cells.iter_mut().zip(&columns) {
            cells.best = summary.best(workload, column.name, &cell.sweep) == Some(&cell.variant);
        }
    }
    grid
}

/// Makes the latency breakdown of a workload at every sweep point, in microseconds.
pub(super) fn times(summary: &Summary, workload: &str) -> Grid {
    let mut columns: Vec<Column> = Vec::new();
    let mut rows = Vec::new();
    for cell in &summary.cells {
        let Some(split) = cell.workload(workload).and_then(|w| w.time.as_ref()) else { continue };
        if columns.is_empty() {
            columns = split.parts.iter().map(|part| Column::new("us", part)).collect();
        }
        for (which, us) in [("slowest 1 %", &split.slowest_us), ("mean of all", &split.mean_us)] {
            let (name, scheme) = cell_label(summary, cell);
            let cells = us.iter().map(|&us| figures::number(us));
            rows.push(Row { scheme, ..Row::plain(format!("{name}, {which}"), cells) });
        }
    }
    let title = format!("Where the time of {workload} went");
    Grid { title, corner: "variant".to_owned(), columns, rows, notes: Vec::new() }
}

/// Makes the table of a watched queue at every sweep point.
pub(super) fn queue(summary: &Summary, name: QueueName<'_>) -> Grid {
    let known: Vec<((String, Option<Color>), &QueueSummary)> = summary
        .cells
        .iter()
        .filter_map(|cell| Some((cell_label(summary, cell), name.within(cell)?)))
        .collect();
    let bare = |value: f64| Estimate::bare(value, 1);
    let all = |pick: &dyn Fn(&QueueSummary) -> Option<Estimate>| {
        known.iter().map(|(_, queue)| pick(queue)).collect::<Vec<_>>()
    };
    let (intervals, instants) = ("intervals", "at an instant");
    let columns = [
        NumberColumn::new(intervals, "mean", Some(TIMES), all(&|q| q.mean_us)),
        NumberColumn::new(intervals, "p99", Some(TIMES), all(&|q| q.p99_us)),
        NumberColumn::new(instants, "p50", Some(TIMES), all(&|q| q.instant_us.map(|i| bare(i.p50)))),
        NumberColumn::new(instants, "p99", Some(TIMES), all(&|q| q.instant_us.map(|i| bare(i.p99)))),
        NumberColumn::new(instants, "most", Some(TIMES), all(&|q| Some(bare(q.max_us)))),
        NumberColumn::new(
            "link",
            "used",
            Some(PERCENT),
            all(&|q| q.utilisation.map(|share| bare(100.0 * share))),
        ),
        NumberColumn::new("link", "drops", None, all(&|q| Some(bare(q.drops as f64)))),
        NumberColumn::new("link", "marks", None, all(&|q| Some(bare(q.marks as f64)))),
    ];
    let labels = known.iter().map(|(label, _)| label.clone()).collect();
    assemble(format!("Queue {} ({})", name.name, name.port), "variant", labels, &columns)
}

/// Makes the table of a percentile of a workload's slowdown by size at every sweep point.
pub(super) fn slowdowns(summary: &Summary, curves: &Curves, workload: &str, share: usize) -> Grid {
    let (_, name) = SHARES[share];
    let schemes = plots::schemes(summary);
    let mut rows = Vec::new();
    for slowdown in curves.slowdowns.iter().filter(|slowdown| slowdown.workload == workload) {
        for bucket in &slowdown.buckets {
            let ratio = bucket.slowdown[share].map_or_else(String::new, figures::number);
            let label = plots::with_point(&slowdown.variant, &slowdown.sweep);
            let label = format!("{label}: up to {}", figures::size(bucket.up_to as f64));
            let row = Row::plain(label, [figures::count(bucket.messages), ratio]);
            rows.push(Row { scheme: schemes.find(&slowdown.variant), ..row });
        }
    }
    Grid::plain(format!("Slowdown of {workload}"), "variant and size", &["messages", name], rows)
}

/// Makes the table of a workload's slowdown by rank at every sweep point, with all percentiles, and with the flows that
/// did not finish in its footnotes.
pub(super) fn slowdowns_by_rank(summary: &Summary, curves: &Curves, workload: &str) -> Grid {
    let schemes = plots::schemes(summary);
    let (mut rows, mut notes) = (Vec::new(), vec![by_rank::DEFINITION.to_owned()]);
    for found in curves.ranks.iter().filter(|found| found.workload == workload) {
        let label = plots::with_point(&found.variant, &found.sweep);
        for (number, bin) in found.bins.iter().enumerate() {
            let (from, to) = RankBin::percent(number);
            let up_to = figures::size(bin.up_to as f64);
            let mut cells = vec![up_to, figures::count(bin.messages), figures::count(bin.unfinished)];
            cells.extend(bin.slowdown.map(|value| value.map_or_else(String::new, figures::number)));
            let row = Row::plain(format!("{label}: {from} .. {to} %"), cells);
            rows.push(Row { scheme: schemes.find(&found.variant), ..row });
        }
        notes.extend(found.unfinished().map(|unfinished| format!("{label}: {unfinished}.")));
    }
    let columns = ["up to", "messages", "unfinished", SHARES[0].1, SHARES[1].1, SHARES[2].1];
    let title = format!("Slowdown of {workload} by rank");
    Grid { notes, ..Grid::plain(title, "variant and rank by size", &columns, rows) }
}

/// Makes the table of a workload's latency over time at every sweep point.
pub(super) fn over_time(summary: &Summary, curves: &Curves, workload: &str) -> Grid {
    let mut rows = Vec::new();
    for line in curves.latencies.iter().filter(|line| line.workload == workload) {
        let label = plots::with_point(&line.variant, &line.sweep);
        rows.extend(line.slots.iter().map(|slot| {
            let [p50, p99] = [slot.p50_us, slot.p99_us].map(figures::number);
            let label = format!("{label}: {}", figures::time(slot.ms * 1e3));
            Row::plain(label, [figures::count(slot.messages), p50, p99])
        }));
    }
    let title = format!("{} of {workload} over time", summary.quantity(workload));
    Grid::plain(title, "variant and middle of the slot", &["messages", "p50 in us", "p99 in us"], rows)
}
