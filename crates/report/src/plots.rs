//! The charts of an experiment, made from a summary and its curves.

use plimsoll_results::by_rank::{RankBin, SlowdownByRank};
use plimsoll_results::by_size::SHARES;
use plimsoll_results::curves::Curves;
use plimsoll_results::over_time::LatencySlot;
use plimsoll_results::point::sweep_label;
use plimsoll_results::stats::paired::{Change, ChangeDirection};
use plimsoll_results::stats::{Estimate, samples_needed};
use plimsoll_results::summary::{
    Cell as PointCell, Distribution, QueueSummary, Summary, WAITING_FOR_CIRCUIT,
};

use crate::chart::{
    Around, Axis, Body, Chart, ChartLine, Color, DotRow, Dots, Format, Lines, Part, Read, Schemes, Shape,
    StackPart, StackRow, Whisker,
};
use crate::queues::QueueName;
use crate::verdict;

/// A sweep point: swept keys and their values.
pub type Point = [(String, String)];

/// Assigns the colours and markers of the variants of an experiment.
pub fn schemes(summary: &Summary) -> Schemes {
    Schemes::of([summary.variants.iter().map(String::as_str)])
}

/// Charts the distribution of a workload's completion times, or of its observations, at a sweep point; one line a
/// variant.
pub fn distribution(summary: &Summary, curves: &Curves, workload: &str, point: &Point) -> Chart {
    let mine = curves.cdfs.iter().filter(|cdf| cdf.workload == workload && cdf.sweep == point);
    let schemes = schemes(summary);
    let quantity = summary.quantity(workload);
    let observed = summary.cells.iter().filter_map(|cell| cell.workload(workload)?.observed.as_ref()).next();
    let (what, took) = match observed {
        Some(observed) => (format!("{}s", observed.what), "are at most so large"),
        None if mine.clone().any(|cdf| cdf.by_query) => ("queries".to_owned(), "took at most so long"),
        None => ("messages".to_owned(), "took at most so long"),
    };
    let series = mine
        .map(|cdf| {
            // The first step rises from zero.
            let us = cdf.us.first().into_iter().chain(&cdf.us).copied().collect();
            let share = [0.0].iter().chain(&cdf.share).copied().collect();
            ChartLine { steps: true, ..ChartLine::new(&cdf.variant, schemes.color(&cdf.variant), us, share) }
        })
        .collect();
    Chart {
        title: format!("{quantity} of {workload}"),
        note: format!("Share of the {what} that {took}."),
        body: Body::Lines(Lines {
            x: Axis::log(&quantity.to_lowercase(), Format::Time),
            y: Axis { max: Some(1.0), ..Axis::from_zero(&format!("share of {what}"), Format::Percent) },
            series,
            read: Read::AtY,
            tail_view: true,
        }),
    }
}

/// Charts the latency breakdown of a workload's messages at a sweep point: the mean over all, and over the slowest
/// hundredth. `None` where it is unknown.
pub fn time_split(summary: &Summary, workload: &str, point: &Point) -> Option<Chart> {
    let splits: Vec<_> = summary
        .cells
        .iter()
        .filter(|cell| cell.sweep == point)
        .filter_map(|cell| Some((cell.variant.as_str(), cell.workload(workload)?.time.as_ref()?)))
        .collect();
    let (_, first) = splits.first()?;
    let schemes = schemes(summary);
    // A part that is nowhere a thousandth of a bar could not be seen.
    let seen = |part: usize| {
        splits.iter().flat_map(|(_, split)| [&split.mean_us, &split.slowest_us]).any(|us| {
            let total: f64 = us.iter().sum();
            us.get(part).is_some_and(|value| *value > 1e-3 * total)
        })
    };
    let kept: Vec<usize> = (0..first.parts.len()).filter(|&part| seen(part)).collect();
    let tiers = first.parts.len().saturating_sub(7);
    let color = |part: usize| match first.parts[part].as_str() {
        WAITING_FOR_CIRCUIT => Part::Circuit,
        _ => part_color(part, tiers),
    };
    let mut rows = Vec::new();
    for (group, slowest) in [("slowest 1 %", true), ("mean of all", false)] {
        for (variant, split) in &splits {
            let us = if slowest { &split.slowest_us } else { &split.mean_us };
            rows.push(StackRow {
                group: group.to_owned(),
                label: (*variant).to_owned(),
                scheme: schemes.find(variant),
                values: kept.iter().map(|&part| us.get(part).copied().unwrap_or(0.0)).collect(),
            });
        }
    }
    let parts = kept
        .iter()
        .map(|&part| StackPart { name: first.parts[part].clone(), color: Color::Part(color(part)) })
        .collect();
    let title = format!("Where the time of {workload} went");
    let note = "The parts of a message's completion time; they sum to the whole.";
    Some(Chart::times(title, note, "time", parts, rows))
}

/// Returns the colour of the n-th component of a breakdown with `tiers` switch tiers.
fn part_color(part: usize, tiers: usize) -> Part {
    match part {
        0 => Part::Window,
        1 => Part::Recovery,
        2 => Part::Nic,
        3 => Part::Pacer,
        n if n < 4 + tiers => Part::Tier(n - 4),
        n if n == 4 + tiers => Part::Serialisation,
        n if n == 5 + tiers => Part::Propagation,
        _ => Part::Service,
    }
}

/// Charts the delay of a queue over time at a sweep point, one line a variant.
pub fn timeline(summary: &Summary, curves: &Curves, queue: QueueName<'_>, point: &Point) -> Chart {
    let schemes = schemes(summary);
    let series = curves
        .timelines
        .iter()
        .filter(|line| line.port == queue.port && line.queue == queue.name && line.sweep == point)
        .map(|line| {
            let color = schemes.color(&line.variant);
            let us = line.ms.iter().map(|ms| ms * 1e3).collect();
            let some = |values: &[f64]| values.iter().copied().map(Some).collect();
            ChartLine {
                around: Some(Around {
                    shape: Shape::Band,
                    low: some(&line.least_us),
                    high: some(&line.most_us),
                }),
                ..ChartLine::new(&line.variant, color, us, line.mean_us.clone())
            }
        })
        .collect();
    Chart::lines(
        format!("Delay in the queue {} ({})", queue.name, queue.port),
        "Mean of each interval; the band reaches from the least to the greatest value. First replicate.",
        Axis { format: Format::Time, label: "time".to_owned(), ..Axis::default() },
        Axis::from_zero("queueing delay", Format::Time),
        series,
    )
}

/// Charts the p99 of a workload by slot of time at a sweep point, one line a variant, with a band down to the p50.
pub fn over_time(summary: &Summary, curves: &Curves, workload: &str, point: &Point) -> Chart {
    let schemes = schemes(summary);
    let mine = curves.latencies.iter().filter(|line| line.workload == workload && line.sweep == point);
    let series = mine
        .map(|line| {
            let values = |pick: fn(&LatencySlot) -> f64| line.slots.iter().map(pick);
            let (p50, p99) = (values(|slot| slot.p50_us), values(|slot| slot.p99_us));
            let (low, high) = (p50.map(Some).collect(), p99.clone().map(Some).collect());
            ChartLine {
                around: Some(Around { shape: Shape::Band, low, high }),
                ..ChartLine::new(
                    &line.variant,
                    schemes.color(&line.variant),
                    values(|slot| slot.ms * 1e3).collect(),
                    p99.collect(),
                )
            }
        })
        .collect();
    let quantity = summary.quantity(workload);
    Chart::lines(
        format!("{quantity} of {workload} over time"),
        "The line is the p99 of each slot of time, by creation; the band reaches down to the p50. All replicates.",
        Axis { format: Format::Time, label: "time".to_owned(), ..Axis::default() },
        Axis::from_zero(&quantity.to_lowercase(), Format::Time),
        series,
    )
}

/// Charts the paired ratio of every variant to the one that it is compared with, for every workload. `None` where
/// there is nothing to compare.
pub fn who_pays(summary: &Summary, point: &Point) -> Option<Chart> {
    let base = verdict::base(summary).unwrap_or(verdict::FIRST_RUN);
    let schemes = schemes(summary);
    let mut rows = Vec::new();
    for workload in summary.workloads() {
        for comparison in summary.comparisons.iter().filter(|c| c.sweep == point) {
            let Some(change) = comparison.workloads.iter().find(|c| c.name == workload) else { continue };
            let mut push = |statistic: &str, change: &Change| {
                let Some(ratio) = change.ratio else { return };
                rows.push(DotRow {
                    group: workload.to_owned(),
                    label: format!("{} {statistic}", comparison.variant),
                    color: schemes.color(&comparison.variant),
                    at: whisker(&ratio),
                    hollow: change.direction() == ChangeDirection::NotSeen,
                });
            };
            push("mean", &change.mean);
            if change.pairs >= samples_needed(0.99) {
                push("p99", &change.p99);
            }
        }
    }
    (!rows.is_empty()).then(|| Chart {
        title: format!("Completion time relative to {base}"),
        note: "With 95 % confidence intervals; a hollow point is not significant.".to_owned(),
        body: Body::Dots(Dots {
            x: Axis::log(&format!("completion time relative to {base}"), Format::Ratio),
            reference: 1.0,
            sides: [format!("faster than {base}"), "slower".to_owned()],
            rows,
        }),
    })
}

/// The points of a sweep that one chart shows: they differ in one swept key, which is the axis.
pub struct Panel<'a> {
    /// The values of the other swept keys, with their names; empty where one key is swept.
    pub at: Vec<(String, String)>,
    points: Vec<&'a Point>,
    x: Axis,
    places: Vec<f64>,
}

/// Returns the panels of a sweep. The axis is the key with the most values among the keys whose values are ascending
/// numbers of one unit, or else among all; there is a panel for each combination of values of the other keys.
pub fn panels(summary: &Summary) -> Vec<Panel<'_>> {
    let points = summary.sweep_points();
    let keys: Vec<&str> = summary.sweep_keys.iter().map(String::as_str).collect();
    let values = |key: &str| -> Vec<&str> {
        let mut values = Vec::new();
        for value in points.iter().filter_map(|point| value_of(point, key)) {
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    };
    let rank = |key: &&&str| (numeric_sweep(key, &values(key)).is_some(), values(key).len());
    // The first of several equal keys.
    let Some(along) = keys.iter().rev().max_by_key(rank) else { return Vec::new() };
    let all = values(along);
    let (x, places) = sweep_axis(along, &all);
    let mut panels: Vec<Panel<'_>> = Vec::new();
    for point in points {
        let at: Vec<_> = point.iter().filter(|(key, _)| key != along).cloned().collect();
        let place = value_of(point, along).and_then(|value| all.iter().position(|known| *known == value));
        let Some(place) = place.map(|place| places[place]) else { continue };
        match panels.iter_mut().find(|panel| panel.at == at) {
            Some(panel) => {
                panel.points.push(point);
                panel.places.push(place);
            }
            None => panels.push(Panel { at, points: vec![point], x: x.clone(), places: vec![place] }),
        }
    }
    panels
}

fn value_of<'a>(point: &'a Point, key: &str) -> Option<&'a str> {
    point.iter().find(|(swept, _)| swept == key).map(|(_, value)| value.as_str())
}

/// Charts a statistic of a workload's completion time over the sweep, one line a variant.
pub fn over_sweep(
    summary: &Summary,
    panel: &Panel<'_>,
    workload: &str,
    statistic: &str,
    pick: fn(&Distribution) -> Estimate,
) -> Chart {
    let quantity = summary.quantity(workload).to_lowercase();
    let title = format!("{statistic} {quantity} of {workload}");
    sweep_chart(summary, panel, title, &quantity, Format::Time, |variant, point| {
        summary.cell(variant, point)?.workload(workload)?.waited_us().map(pick)
    })
}

/// Charts the 99th percentile of a workload's slowdown over the sweep, one line a variant; `None` where it has none.
pub fn slowdown_over_sweep(summary: &Summary, panel: &Panel<'_>, workload: &str) -> Option<Chart> {
    let p99 = |variant: &str, point: &Point| {
        Some(summary.cell(variant, point)?.workload(workload)?.slowdown.as_ref()?.p99)
    };
    summary.cells.iter().find_map(|cell| p99(&cell.variant, &cell.sweep))?;
    let title = format!("p99 slowdown of {workload}");
    Some(sweep_chart(summary, panel, title, "completion time over that on idle links", Format::Ratio, p99))
}

/// Charts a percentile of the slowdown of a workload's messages by their size, one line a variant. `share` is its
/// number in [`SHARES`].
pub fn slowdown(summary: &Summary, curves: &Curves, workload: &str, point: &Point, share: usize) -> Chart {
    let schemes = schemes(summary);
    let mine = curves.slowdowns.iter().filter(|found| found.workload == workload && found.sweep == point);
    let series = mine
        .map(|found| {
            let known = found.buckets.iter().filter_map(|bucket| {
                // On a logarithmic axis, the middle of a bucket.
                let middle = (bucket.above.max(1) as f64 * bucket.up_to as f64).sqrt();
                Some((middle, bucket.slowdown[share]?))
            });
            let (x, y) = known.unzip();
            ChartLine::new(&found.variant, schemes.color(&found.variant), x, y)
        })
        .collect();
    let (_, name) = SHARES[share];
    Chart::lines(
        format!("{name} slowdown of {workload} by size"),
        "Completion time over that on idle links.",
        Axis::log("size", Format::Size),
        Axis { min: Some(1.0), ..Axis::log("slowdown", Format::Ratio) },
        series,
    )
}

/// Charts a percentile of the slowdown of a workload's messages by the rank of their size, one line a variant. `share`
/// is its number in [`SHARES`]. Flows that did not finish are named below the title.
pub fn slowdown_by_rank(
    summary: &Summary,
    curves: &Curves,
    workload: &str,
    point: &Point,
    share: usize,
) -> Chart {
    let schemes = schemes(summary);
    let mine: Vec<&SlowdownByRank> =
        curves.ranks.iter().filter(|found| found.workload == workload && found.sweep == point).collect();
    let line = |found: &&SlowdownByRank| {
        let known = found.bins.iter().enumerate().filter_map(|(number, bin)| {
            let (from, to) = RankBin::percent(number);
            Some(((from + to) / 200.0, bin.slowdown[share]?))
        });
        let (x, y) = known.unzip();
        ChartLine::new(&found.variant, schemes.color(&found.variant), x, y)
    };
    let series = mine.iter().map(line).collect();
    let unfinished =
        mine.iter().filter_map(|found| Some(format!(" {}: {}.", found.variant, found.unfinished()?)));
    let (_, name) = SHARES[share];
    Chart::lines(
        format!("{name} slowdown of {workload} by rank"),
        format!(
            "Completion time over that on idle links, in bins of equally many flows; 0 % is the smallest flow.{}",
            unfinished.collect::<String>()
        ),
        Axis { max: Some(1.0), ..Axis::from_zero("rank by size", Format::Percent) },
        Axis { min: Some(1.0), ..Axis::log("slowdown", Format::Ratio) },
        series,
    )
}

/// Charts the delay of a queue over the sweep, one line a variant.
pub fn queue_over_sweep(
    summary: &Summary,
    panel: &Panel<'_>,
    queue: QueueName<'_>,
    statistic: &str,
    pick: fn(&QueueSummary) -> Option<Estimate>,
) -> Chart {
    let title = format!("{statistic} delay in the queue {} ({})", queue.name, queue.port);
    sweep_chart(summary, panel, title, "queueing delay", Format::Time, |variant, point| {
        queue.within(summary.cell(variant, point)?).and_then(pick)
    })
}

/// Charts a number of each variant and sweep point in one panel of a sweep, one line a variant. The vertical axes of
/// all panels are the same, so that panels can be compared, and no line joins categories.
pub fn sweep_chart(
    summary: &Summary,
    panel: &Panel<'_>,
    title: String,
    quantity: &str,
    format: Format,
    value: impl Fn(&str, &Point) -> Option<Estimate>,
) -> Chart {
    let schemes = schemes(summary);
    let series: Vec<ChartLine> = summary
        .variants
        .iter()
        .map(|variant| {
            let mut line = ChartLine::new(variant, schemes.color(variant), Vec::new(), Vec::new());
            let (mut low, mut high) = (Vec::new(), Vec::new());
            for (point, place) in panel.points.iter().zip(&panel.places) {
                let Some(estimate) = value(variant, point) else { continue };
                line.x.push(*place);
                line.y.push(estimate.value);
                low.push(estimate.interval.map(|interval| interval.low));
                high.push(estimate.interval.map(|interval| interval.high));
            }
            line.around = Some(Around { shape: Shape::ErrorBars, low, high });
            ChartLine { apart: !panel.x.categories.is_empty(), ..line }
        })
        .collect();
    let all: Vec<Estimate> =
        summary.cells.iter().filter_map(|cell| value(&cell.variant, &cell.sweep)).collect();
    let (least, most) =
        all.iter().fold((f64::INFINITY, 0.0f64), |(least, most), e| (least.min(e.value), most.max(e.value)));
    // Where one variant is ten times another, only a logarithmic axis shows both.
    let mut y = if least > 0.0 && most > 10.0 * least {
        Axis::log(quantity, format)
    } else {
        Axis::from_zero(quantity, format)
    };
    let mut title = title;
    if !panel.at.is_empty() {
        // A logarithmic axis has no place for an interval that begins at zero.
        let ends = all.iter().filter_map(|estimate| estimate.interval);
        let (low, high) = ends.fold((least, most), |(low, high), end| {
            (if end.low > 0.0 { low.min(end.low) } else { low }, high.max(end.high))
        });
        y.max = Some(high * 1.05);
        y.min = if y.log { Some(low / 1.05) } else { y.min };
        title = format!("{title}, {}", point_name(&panel.at));
    }
    Chart::lines(title, "With 95 % confidence intervals.", panel.x.clone(), y, series)
}

/// Returns the axis of a swept key and the position of each of its values: numbers where the values are ascending
/// numbers of one unit, names otherwise.
fn sweep_axis(key: &str, values: &[&str]) -> (Axis, Vec<f64>) {
    if let Some((label, places)) = numeric_sweep(key, values) {
        let (first, last) = (places[0], places[places.len() - 1]);
        let log = first > 0.0 && last / first >= 50.0;
        return (Axis { label, log, ..Axis::default() }, places);
    }
    let categories = values.iter().map(|value| (*value).to_owned()).collect();
    let axis = Axis { label: key.to_owned(), categories, ..Axis::default() };
    (axis, (0..values.len()).map(|i| i as f64).collect())
}

fn numeric_sweep(key: &str, values: &[&str]) -> Option<(String, Vec<f64>)> {
    let mut places = Vec::new();
    let mut unit: Option<&str> = None;
    for value in values {
        let digits =
            value.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(value.len());
        let (number, suffix) = value.split_at(digits);
        if *unit.get_or_insert(suffix) != suffix {
            return None;
        }
        places.push(number.parse().ok()?);
    }
    let ascending = places.windows(2).all(|pair: &[f64]| pair[0] < pair[1]);
    let label = match unit?.trim() {
        "" => key.to_owned(),
        unit => format!("{key} ({unit})"),
    };
    (ascending && places.len() > 1).then_some((label, places))
}

/// Writes the name of a sweep point where one must be chosen: its values, with their keys if several.
pub fn point_name(point: &Point) -> String {
    sweep_label(point)
}

/// Names a variant at a sweep point: `HULL`, or `load = 0.4, HULL` in a sweep.
pub(crate) fn with_point(variant: &str, sweep: &[(String, String)]) -> String {
    match point_name(sweep) {
        at if at.is_empty() => variant.to_owned(),
        at => format!("{at}, {variant}"),
    }
}

fn whisker(estimate: &Estimate) -> Whisker {
    Whisker {
        value: estimate.value,
        low: estimate.interval.map(|interval| interval.low),
        high: estimate.interval.map(|interval| interval.high),
    }
}

/// Names a cell and its colour: `HULL`, or `load = 0.4, HULL` in a sweep.
pub(crate) fn cell_label(summary: &Summary, cell: &PointCell) -> (String, Option<Color>) {
    (with_point(&cell.variant, &cell.sweep), schemes(summary).find(&cell.variant))
}

#[cfg(test)]
mod tests {
    use plimsoll_results::summary::Options;
    use plimsoll_results::synthetic::{self, Shape};

    use super::*;

    fn axis(values: &[&str]) -> (Axis, Vec<f64>) {
        sweep_axis("load", values)
    }

    #[test]
    fn a_sweep_of_numbers_has_a_numeric_axis() {
        assert_eq!(axis(&["0.2", "0.4", "0.9"]).1, [0.2, 0.4, 0.9]);
        let (rate, places) = axis(&["1Gbps", "10Gbps", "100Gbps"]);
        assert_eq!((rate.label.as_str(), rate.log), ("load (Gbps)", true));
        assert_eq!(places, [1.0, 10.0, 100.0]);
    }

    #[test]
    fn other_sweeps_have_names() {
        for values in [&["a", "b"][..], &["1us", "1ms"], &["2", "1"]] {
            let (axis, places) = axis(values);
            assert_eq!(axis.categories, values);
            assert_eq!(places, [0.0, 1.0]);
        }
    }

    /// A sweep over words and numbers, in either order, has the numbers on its axis and a panel for each word.
    #[test]
    fn of_two_keys_one_is_the_axis_and_the_other_has_panels() {
        let mut points = synthetic::experiment(&Shape::default(), &["TCP", "HULL"], &[0.2, 0.4, 0.6], 1, 1);
        let order = |order: &str| ("order".to_owned(), order.to_owned());
        let mut all = points.clone();
        all.iter_mut().for_each(|point| point.key.sweep.insert(0, order("fifo")));
        points.iter_mut().for_each(|point| point.key.sweep.insert(0, order("fair")));
        all.extend(points);
        let summary = Summary::of(&all, &Options::default());
        let panels = panels(&summary);
        let names: Vec<String> = panels.iter().map(|panel| point_name(&panel.at)).collect();
        assert_eq!(names, ["order = fifo", "order = fair"]);
        let charts: Vec<Chart> =
            panels.iter().map(|panel| over_sweep(&summary, panel, "small", "p99", |d| d.p99)).collect();
        assert_eq!(charts[1].title, "p99 completion time of small, order = fair");
        let axes = charts.iter().map(|chart| {
            let Body::Lines(lines) = &chart.body else { panic!("no lines") };
            assert_eq!(lines.series[0].x, [0.2, 0.4, 0.6]);
            assert!(lines.series.iter().all(|line| !line.apart));
            lines.y.clone()
        });
        let axes: Vec<Axis> = axes.collect();
        assert!(axes[0] == axes[1] && axes[0].max.is_some(), "panels have the same range: {axes:?}");
    }

    #[test]
    fn no_line_joins_categories() {
        let mut points = synthetic::experiment(&Shape::default(), &["TCP", "HULL"], &[0.2, 0.4], 1, 1);
        for point in &mut points {
            point.key.sweep = vec![("order".to_owned(), format!("after {}", point.key.sweep[0].1))];
        }
        let summary = Summary::of(&points, &Options::default());
        let panel = &panels(&summary)[0];
        let Body::Lines(lines) = over_sweep(&summary, panel, "small", "p99", |d| d.p99).body else {
            panic!("no lines")
        };
        assert_eq!(lines.x.categories, ["after 0.2", "after 0.4"]);
        assert!(lines.series.iter().all(|line| line.apart && line.x.len() == 2));
    }
}
