//! Makes the tables of a summary.

use plimsoll_results::Summary;
use plimsoll_results::outcome::Counters;
use plimsoll_results::stats::Estimate;
use plimsoll_results::summary::{
    Cell as PointCell, Distribution, ExtraTotals, QueueSummary, WorkloadSummary,
};

use super::grid::{Column, Grid, Row};
use super::numbers::{Footnote, NumberColumn, assemble};
use crate::chart::Color;
use crate::circuits;
use crate::figures::{self, RATES, TIMES, Unit};
use crate::plots;
use crate::queues::{self, QueueName};
use crate::{approximation, jobs, priorities, processors};

/// Makes the tables of a summary in the order in which they are read: all of them, or without the details.
pub(super) fn grids(summary: &Summary, details: bool) -> Vec<Grid> {
    let points = summary.sweep_points();
    let mut grids = Vec::new();
    let cells: Vec<&PointCell> = summary.cells.iter().collect();
    match points.len() {
        0 | 1 if details => {
            grids.push(variants_grid(summary, &cells));
            let times = |workload: &&str| time_grid(summary, workload, &cells);
            grids.extend(summary.workloads().iter().filter_map(times));
        }
        // A scenario that only watches queues, and whose flows have no end, has no number to print.
        0 | 1 => {
            grids.extend(Some(percentiles_grid(summary, &cells)).filter(|grid| !grid.columns.is_empty()))
        }
        _ => {
            grids.extend(summary.workloads().iter().map(|workload| sweep_grid(summary, workload)));
            let first = grids.len();
            let queues = if details { queues::shown(summary) } else { Vec::new() };
            grids.extend(queues.into_iter().map(|queue| sweep_queue_grid(summary, queue)));
            if let Some(grid) = grids.get_mut(first) {
                grid.notes.extend(queues::not_shown(summary));
            }
        }
    }
    grids.extend(approximation::summary_grids(summary));
    grids.extend(jobs::summary_grids(summary));
    grids.extend(circuits::summary_grid(summary));
    grids.extend(processors::summary_grid(summary));
    grids.extend(priorities::summary_grid(summary));
    grids
}

/// A function that picks one estimate of a distribution.
pub(crate) type PickEstimate = fn(&Distribution) -> Estimate;

/// Makes a table of all numbers with one row a variant.
pub(crate) fn variants_grid(summary: &Summary, cells: &[&PointCell]) -> Grid {
    let mut columns: Vec<NumberColumn> = Vec::new();
    for name in summary.workloads() {
        workload_columns(summary, name, cells, &mut columns);
    }
    queue_columns(summary, cells, &mut columns);
    network_columns(cells, &mut columns);
    let title = with_replicates("Completion times and queues", cells);
    let mut grid = assemble(title, "variant", labels(summary, cells), &columns);
    grid.notes.extend(queues::not_shown(summary));
    grid
}

/// Makes the table that a run prints without its details: the median and the 99th percentile of each workload. A
/// workload that has none, since its flows have no end, has its goodput.
fn percentiles_grid(summary: &Summary, cells: &[&PointCell]) -> Grid {
    let mut columns: Vec<NumberColumn> = Vec::new();
    for name in summary.workloads() {
        let mut of_workload = Vec::new();
        workload_columns(summary, name, cells, &mut of_workload);
        let has_times = of_workload.iter().any(|column| column.name == "p50");
        of_workload.retain(|column| !has_times || !["mean", "goodput"].contains(&column.name));
        columns.append(&mut of_workload);
    }
    assemble(with_replicates("Completion times", cells), "variant", labels(summary, cells), &columns)
}

fn with_replicates(title: &str, cells: &[&PointCell]) -> String {
    match cells.iter().map(|cell| cell.runs.len()).max().unwrap_or(0) {
        0 | 1 => title.to_owned(),
        n => format!("{title}, {n} replicates"),
    }
}

/// Returns the names of variants with their colours.
fn labels(summary: &Summary, cells: &[&PointCell]) -> Vec<(String, Option<Color>)> {
    let schemes = plots::schemes(summary);
    cells.iter().map(|cell| (cell.variant.clone(), schemes.find(&cell.variant))).collect()
}

fn workload_columns(summary: &Summary, name: &str, cells: &[&PointCell], columns: &mut Vec<NumberColumn>) {
    let workloads: Vec<Option<&WorkloadSummary>> = cells.iter().map(|cell| cell.workload(name)).collect();
    let group = group_title(name, &workloads);
    let mut push = |column: &'static str, units, values: Vec<Option<Estimate>>| {
        if values.iter().any(Option::is_some) {
            let best = cells.first().and_then(|cell| summary.best(name, column, &cell.sweep));
            columns.push(NumberColumn {
                best: best.and_then(|best| cells.iter().position(|cell| cell.variant == best)),
                footnote: Footnote::of(summary, name, 0.99).filter(|_| column == "p99"),
                ..NumberColumn::new(&group, column, units, values)
            });
        }
    };
    let waited =
        |pick: PickEstimate| workloads.iter().map(|w| (*w)?.waited_us().map(pick)).collect::<Vec<_>>();
    push("p50", Some(TIMES), waited(|d| d.p50));
    push("mean", Some(TIMES), waited(|d| d.mean));
    push("p99", Some(TIMES), waited(|d| d.p99));
    let goodput = workloads.iter().map(|w| (*w)?.goodput_mbps.map(without_interval_at_one)).collect();
    push("goodput", Some(RATES), goodput);
    let deadline = workloads.iter().map(|w| Some((*w)?.queries?.in_deadline?.scaled(100.0)));
    push("in time", Some(PERCENT), deadline.collect());
    let extra = |pick: fn(&ExtraTotals) -> u64| -> Vec<Option<Estimate>> {
        let of = |w: &Option<&WorkloadSummary>| Some(Estimate::bare(pick(&(*w)?.extra?) as f64, 1));
        workloads.iter().map(of).collect()
    };
    if workloads.iter().flatten().any(|w| w.extra.is_some_and(|extra| extra.retries > 0)) {
        push("retries", None, extra(|extra| extra.retries));
    }
    if workloads.iter().flatten().any(|w| w.extra.is_some_and(|extra| extra.replicas > 0)) {
        push("replicas", None, extra(|extra| extra.replicas));
    }
    if workloads.iter().flatten().any(|w| unfinished(w) > 0) {
        let unfinished = workloads.iter().map(|w| Some(Estimate::bare(unfinished((*w)?) as f64, 1)));
        push("unfinished", None, unfinished.collect());
    }
}

/// Counts messages that did not complete, or queries where there are only queries.
fn unfinished(workload: &WorkloadSummary) -> u64 {
    match &workload.queries {
        Some(queries) if workload.messages == 0 => queries.unfinished,
        _ => workload.unfinished,
    }
}

pub(crate) const PERCENT: &[Unit] = &[Unit { name: "%", size: 1.0 }, Unit { name: "%", size: 1.0 }];

/// Drops the interval of a goodput that was neither recorded nor repeated.
fn without_interval_at_one(estimate: Estimate) -> Estimate {
    if estimate.samples <= 1 { Estimate::bare(estimate.value, estimate.samples) } else { estimate }
}

/// Writes the title of a workload's columns: `small: rpc, 9366 messages`.
fn group_title(name: &str, workloads: &[Option<&WorkloadSummary>]) -> String {
    let Some(first) = workloads.iter().flatten().next() else { return name.to_owned() };
    let counts = workloads.iter().flatten().map(|w| match (&w.observed, &w.queries) {
        (Some(observed), _) => observed.us.mean.samples,
        (None, Some(queries)) => queries.queries,
        (None, None) => w.messages,
    });
    let (least, most) = (counts.clone().min().unwrap_or(0), counts.max().unwrap_or(0));
    let noun = match (&first.observed, &first.queries) {
        (Some(observed), _) => format!("{}{}", observed.what, if most == 1 { "" } else { "s" }),
        (None, Some(_)) => (if most == 1 { "query" } else { "queries" }).to_owned(),
        (None, None) => (if most == 1 { "message" } else { "messages" }).to_owned(),
    };
    let range = if least == most { String::new() } else { format!("{} to ", figures::count(least)) };
    format!("{name}: {}, {range}{} {noun}", first.kind, figures::count(most))
}

fn queue_columns(summary: &Summary, cells: &[&PointCell], columns: &mut Vec<NumberColumn>) {
    for queue in queues::shown(summary) {
        let of: Vec<Option<&QueueSummary>> = cells.iter().map(|cell| queue.within(cell)).collect();
        if of.iter().all(Option::is_none) {
            continue;
        }
        let mut push = |name, pick: fn(&QueueSummary) -> Option<Estimate>| {
            let values = of.iter().map(|queue| queue.and_then(pick)).collect();
            columns.push(NumberColumn::new(&queue.title(), name, Some(TIMES), values));
        };
        push("mean", |queue| queue.mean_us);
        push("p99", |queue| queue.p99_us);
    }
}

fn network_columns(cells: &[&PointCell], columns: &mut Vec<NumberColumn>) {
    let mut push = |name, get: fn(&Counters) -> u64| {
        let values: Vec<u64> = cells.iter().map(|cell| get(&cell.counters)).collect();
        if values.iter().any(|&value| value > 0) {
            let values = values.into_iter().map(|value| Some(Estimate::bare(value as f64, 1)));
            columns.push(NumberColumn::new("network", name, None, values.collect()));
        }
    };
    push("drops", Counters::drops);
    for counter in Counters::ALL {
        if let Some(heading) = counter.heading {
            push(heading, counter.get);
        }
    }
}

/// Makes the latency breakdown of the slowest hundredth, in shares. A component that is nowhere one in a thousand is
/// left out.
pub(crate) fn time_grid(summary: &Summary, workload: &str, cells: &[&PointCell]) -> Option<Grid> {
    let splits: Vec<_> = cells
        .iter()
        .filter_map(|cell| Some((cell.variant.as_str(), cell.workload(workload)?.time.clone()?)))
        .collect();
    let (_, first) = splits.first()?;
    let schemes = plots::schemes(summary);
    let total = |us: &[f64]| us.iter().sum::<f64>();
    let share = |us: &[f64], part: usize| 100.0 * us[part] / total(us).max(f64::MIN_POSITIVE);
    let kept: Vec<usize> = (0..first.parts.len())
        .filter(|&part| splits.iter().any(|(_, split)| share(&split.slowest_us, part) >= 0.1))
        .collect();
    let unit = figures::common_unit(splits.iter().map(|(_, split)| total(&split.slowest_us)), TIMES);
    let mut columns = vec![Column::new("", &format!("mean {}", unit.name))];
    columns.extend(kept.iter().map(|&part| Column::new("share %", &first.parts[part])));
    let rows = splits
        .iter()
        .map(|(variant, split)| {
            let mean = figures::number(total(&split.slowest_us) / unit.size);
            let shares = kept.iter().map(|&part| figures::fixed(share(&split.slowest_us, part), 1));
            let row = Row::plain(*variant, [mean].into_iter().chain(shares));
            Row { scheme: schemes.find(variant), ..row }
        })
        .collect();
    let title = format!("Where the slowest 1 % of {workload} spent their time");
    Some(Grid { title, corner: "variant".to_owned(), columns, rows, notes: Vec::new() })
}

/// Makes a table with one row a sweep point and one group of columns a variant.
pub(crate) fn sweep_grid(summary: &Summary, workload: &str) -> Grid {
    let picks: [(&'static str, PickEstimate); 2] = [("mean", |d| d.mean), ("p99", |d| d.p99)];
    let value = |variant: &str, sweep: &[(String, String)], pick: PickEstimate| {
        summary.cell(variant, sweep)?.workload(workload)?.waited_us().map(pick)
    };
    let columns =
        picks.map(|(name, pick)| (name, Box::new(move |v: &str, s: &[_]| value(v, s, pick)) as Value));
    over_sweep(summary, format!("{} of {workload}", summary.quantity(workload)), Some(workload), &columns)
}

pub(crate) fn sweep_queue_grid(summary: &Summary, name: QueueName<'_>) -> Grid {
    let queue = |variant: &str, sweep: &[(String, String)]| name.within(summary.cell(variant, sweep)?);
    let columns: [(&'static str, Value); 2] = [
        ("mean", Box::new(move |v, s| queue(v, s)?.mean_us)),
        ("p99", Box::new(move |v, s| queue(v, s)?.p99_us)),
    ];
    over_sweep(summary, format!("Delay in {}", name.title()), None, &columns)
}

/// Shortens dotted keys to their last two words, or as many more as make them unique.
fn short_keys(keys: &[String]) -> Vec<String> {
    let tail = |key: &str, words: usize| {
        let cut = key.rmatch_indices('.').nth(words - 1).map_or(0, |(dot, _)| dot + 1);
        // A quoted name may contain dots.
        if key.contains('"') { key.to_owned() } else { key[cut..].to_owned() }
    };
    let short = |key: &String| {
        let others = || keys.iter().filter(|other| *other != key);
        let tells = |words: &usize| others().all(|other| tail(other, *words) != tail(key, *words));
        let words = (2..).find(|words| tells(words) || tail(key, *words) == *key).unwrap_or(usize::MAX);
        tail(key, words)
    };
    keys.iter().map(short).collect()
}

/// A function that returns the number of a variant at a sweep point.
type Value<'a> = Box<dyn Fn(&str, &[(String, String)]) -> Option<Estimate> + 'a>;

/// Makes the table of a workload, or of a queue if `workload` is `None`.
fn over_sweep(
    summary: &Summary,
    title: String,
    workload: Option<&str>,
    columns: &[(&'static str, Value<'_>)],
) -> Grid {
    let points = summary.sweep_points();
    let schemes = plots::schemes(summary);
    let mut numbers = Vec::new();
    for variant in &summary.variants {
        for (name, value) in columns {
            let everywhere = summary.cells.iter().filter_map(|cell| value(&cell.variant, &cell.sweep));
            let of_percentile = workload.filter(|_| *name == "p99");
            numbers.push(NumberColumn {
                scheme: schemes.find(variant),
                beside: everywhere.map(|estimate| estimate.value).collect(),
                footnote: of_percentile.and_then(|workload| Footnote::of(summary, workload, 0.99)),
                ..NumberColumn::new(
                    variant,
                    name,
                    Some(TIMES),
                    points.iter().map(|point| value(variant, point)).collect(),
                )
            });
        }
    }
    let corner = short_keys(&summary.sweep_keys).join(", ");
    let labels = points.iter().map(|point| {
        let values: Vec<&str> = point.iter().map(|(_, value)| value.as_str()).collect();
        (values.join(", "), None)
    });
    let mut grid = assemble(title, &corner, labels.collect(), &numbers);
    // Here variants are side by side, so the best is the best of its row.
    for (row, point) in grid.rows.iter_mut().zip(&points) {
        for (number, (name, _)) in columns.iter().enumerate() {
            let best = workload.and_then(|workload| summary.best(workload, name, point));
            let Some(variant) = best.and_then(|best| summary.variants.iter().position(|v| v == best)) else {
                continue;
            };
            if let Some(cell) = row.cells.get_mut(variant * columns.len() + number) {
                cell.best = true;
            }
        }
    }
    grid
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_cut_to_what_tells_them_apart() {
        let cases: [(&[&str], &[&str]); 5] = [
            (&["workload.background.load"], &["background.load"]),
            (&["run.seed"], &["run.seed"]),
            (
                &["port.switch.ecn.threshold", "port.leaf.ecn.threshold", "transport.min_rto"],
                &["switch.ecn.threshold", "leaf.ecn.threshold", "transport.min_rto"],
            ),
            (&["workload.\"a.b\".load"], &["workload.\"a.b\".load"]),
            (&["a.b.c", "b.c"], &["a.b.c", "b.c"]),
        ];
        for (keys, expected) in cases {
            let keys: Vec<String> = keys.iter().map(|key| (*key).to_owned()).collect();
            assert_eq!(short_keys(&keys), expected);
        }
    }
}
