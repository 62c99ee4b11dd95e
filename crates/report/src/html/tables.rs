//! The tables below the figures: the same numbers for those who do not see them drawn.

use plimsoll_results::by_size::SHARES;
use plimsoll_results::stats::Estimate;
use plimsoll_results::summary::{Cell as PointCell, Distribution, QueueSummary};
use plimsoll_results::{Curves, Summary};

use crate::figures::{self, TIMES};
use crate::table::blocks::PERCENT;
use crate::table::numbers::{Good, Numbers, assemble};
use crate::table::{Cell, Column, Grid, Row};

/// Percentiles of a workload at every sweep point.
pub(super) fn percentiles(summary: &Summary, workload: &str) -> Grid {
    let known: Vec<(String, &Distribution)> = summary
        .cells
        .iter()
        .filter_map(|cell| Some((label(cell), cell.workload(workload)?.waited_us()?)))
        .collect();
    let column = |name, good, pick: fn(&Distribution) -> Estimate| {
        Numbers::new("", name, Some(TIMES), good, known.iter().map(|(_, d)| Some(pick(d))).collect())
    };
    let columns = [
        column("least", Good::Neither, |d| Estimate::bare(d.min, 1)),
        column("p50", Good::Low, |d| d.p50),
        column("mean", Good::Low, |d| d.mean),
        column("p90", Good::Low, |d| d.p90),
        column("p99", Good::Low, |d| d.p99),
        column("p99.9", Good::Low, |d| d.p999),
        column("most", Good::Neither, |d| Estimate::bare(d.max, 1)),
    ];
    let labels = known.iter().map(|(label, _)| label.clone()).collect();
    assemble(format!("{} of {workload}", summary.quantity(workload)), "variant", labels, &columns)
}

/// Where the time of a workload went at every sweep point, in absolute terms.
pub(super) fn times(summary: &Summary, workload: &str) -> Grid {
    let mut columns: Vec<Column> = Vec::new();
    let mut rows = Vec::new();
    for cell in &summary.cells {
        let Some(split) = cell.workload(workload).and_then(|w| w.time.as_ref()) else { continue };
        if columns.is_empty() {
            columns = split
                .parts
                .iter()
                .map(|part| Column { group: "us".to_owned(), name: part.clone() })
                .collect();
        }
        for (which, us) in [("slowest 1 %", &split.slowest_us), ("mean of all", &split.mean_us)] {
            rows.push(Row {
                label: format!("{}, {which}", label(cell)),
                cells: us.iter().map(|&us| Cell { value: figures::number(us), ..Cell::default() }).collect(),
            });
        }
    }
    let title = format!("Where the time of {workload} went");
    Grid { title, corner: "variant".to_owned(), columns, rows }
}

/// Every watched queue of this name and port at every sweep point.
pub(super) fn queues(summary: &Summary, key: &(String, String)) -> Grid {
    let known: Vec<(String, &QueueSummary)> = summary
        .cells
        .iter()
        .filter_map(|cell| {
            let queue = cell.queues.iter().find(|q| q.name == key.0 && q.port == key.1)?;
            Some((label(cell), queue))
        })
        .collect();
    let bare = |value: f64| Estimate::bare(value, 1);
    let all = |pick: &dyn Fn(&QueueSummary) -> Option<Estimate>| {
        known.iter().map(|(_, queue)| pick(queue)).collect::<Vec<_>>()
    };
    let (intervals, instants) = ("intervals", "at an instant");
    let columns = [
        Numbers::new(intervals, "mean", Some(TIMES), Good::Low, all(&|q| q.mean_us)),
        Numbers::new(intervals, "p99", Some(TIMES), Good::Low, all(&|q| q.p99_us)),
        Numbers::new(instants, "p50", Some(TIMES), Good::Low, all(&|q| q.instant_us.map(|i| bare(i.p50)))),
        Numbers::new(instants, "p99", Some(TIMES), Good::Low, all(&|q| q.instant_us.map(|i| bare(i.p99)))),
        Numbers::new(instants, "most", Some(TIMES), Good::Low, all(&|q| Some(bare(q.max_us)))),
        Numbers::new(
            "link",
            "used",
            Some(PERCENT),
            Good::Neither,
            all(&|q| q.utilisation.map(|share| bare(100.0 * share))),
        ),
        Numbers::new("link", "drops", None, Good::Low, all(&|q| Some(bare(q.drops as f64)))),
        Numbers::new("link", "marks", None, Good::Neither, all(&|q| Some(bare(q.marks as f64)))),
    ];
    let labels = known.iter().map(|(label, _)| label.clone()).collect();
    assemble(format!("Queue {} ({})", key.0, key.1), "variant", labels, &columns)
}

/// A percentile of the slowdown of a workload by size at every sweep point.
pub(super) fn slowdowns(curves: &Curves, workload: &str, share: usize) -> Grid {
    let (_, name) = SHARES[share];
    let columns =
        ["messages", name].map(|name| Column { group: String::new(), name: name.to_owned() }).to_vec();
    let mut rows = Vec::new();
    for slowdown in curves.slowdowns.iter().filter(|slowdown| slowdown.workload == workload) {
        for bucket in &slowdown.buckets {
            let plain = |value: String| Cell { value, ..Cell::default() };
            let ratio = |value: Option<f64>| plain(value.map_or_else(String::new, figures::number));
            let label = with_point(&slowdown.variant, &slowdown.sweep);
            let cells = vec![plain(figures::count(bucket.messages)), ratio(bucket.slowdown[share])];
            rows.push(Row { label: format!("{label}: up to {}", figures::size(bucket.up_to as f64)), cells });
        }
    }
    Grid { title: format!("Slowdown of {workload}"), corner: "variant and size".to_owned(), columns, rows }
}

/// `HULL`, or `load = 0.4, HULL` in a sweep.
fn label(cell: &PointCell) -> String {
    with_point(&cell.variant, &cell.sweep)
}

fn with_point(variant: &str, sweep: &[(String, String)]) -> String {
    match crate::plots::point_name(sweep) {
        at if at.is_empty() => variant.to_owned(),
        at => format!("{at}, {variant}"),
    }
}
